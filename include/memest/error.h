/**
 * @file
 * How the library's functions report failure: a status, and in an object that
 * the caller makes the one line that a person reads.
 *
 * The library never prints, never ends the process and keeps no last error of
 * its own.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_ERROR_H
#define MEMEST_ERROR_H

#include "memest/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What came of a call. */
typedef enum memest_status {
    MEMEST_OK = 0,
    MEMEST_ERR_NOMEM = -1,       /**< no host memory */
    MEMEST_ERR_CONFIG = -2,      /**< a job or an argument that does not make
                                       sense */
    MEMEST_ERR_SYNTAX = -3,      /**< input that cannot be read */
    MEMEST_ERR_IO = -4,          /**< input or output failed */
    MEMEST_ERR_OVERFLOW = -5,    /**< a size exceeds 64 bits */
    MEMEST_ERR_CAPACITY = -6,    /**< the device's memory is exhausted */
    MEMEST_ERR_MISMATCH = -7,    /**< ranks disagree in a collective */
    MEMEST_ERR_UNSUPPORTED = -8, /**< not modelled, or not built in */
    MEMEST_ERR_MPI = -9,         /**< MPI failed */
    MEMEST_ERR_INTERNAL = -10,   /**< a bug in memest */
    MEMEST_ERR_STOPPED = -11     /**< a hook wanted no more */
} memest_status;

/** Why a call failed. */
typedef struct memest_error memest_error;

/**
 * An error object that says nothing yet, for any number of calls. Every
 * function that takes one accepts NULL as well: then there is the status
 * alone. A failure replaces what was there; success leaves it as it is.
 *
 * @return owned by the caller; NULL without memory
 */
MEMEST_API memest_error *memest_error_create(void);

/** Give back; NULL is allowed. */
MEMEST_API void memest_error_destroy(memest_error *error);

/** The status of the last failure, MEMEST_OK before the first. */
MEMEST_API memest_status memest_error_status(const memest_error *error);

/** One line, lower case: what, its value, what would be right; "" before the
 *  first failure. Borrowed until the next failure. */
MEMEST_API const char *memest_error_text(const memest_error *error);

/** The user's file that is to blame, "" for none. Borrowed as the text. */
MEMEST_API const char *memest_error_file(const memest_error *error);

/** The line of that file, from 1; 0: no line. */
MEMEST_API int memest_error_line(const memest_error *error);

/** What a status means, as a phrase; static, never NULL. */
MEMEST_API const char *memest_status_text(memest_status status);

#ifdef __cplusplus
}
#endif

#endif /* MEMEST_ERROR_H */
