/**
 * @file
 * How memest's functions report failure: a status code and, in an object that
 * the caller owns, the one line that a person reads.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_STATUS_H
#define MEMEST_BASE_STATUS_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/** X(constant, value, text): every status, its code and what it means. */
#define ME_STATUS_LIST(X)                                                      \
    X(ME_OK, 0, "ok")                                                          \
    X(ME_ERR_NOMEM, -1, "out of host memory")                                  \
    X(ME_ERR_CONFIG, -2, "configuration that does not make sense")             \
    X(ME_ERR_SYNTAX, -3, "input that cannot be read")                          \
    X(ME_ERR_IO, -4, "input or output failed")                                 \
    X(ME_ERR_OVERFLOW, -5, "a size exceeds 64 bits")                           \
    X(ME_ERR_CAPACITY, -6, "the device's memory is exhausted")                 \
    X(ME_ERR_MISMATCH, -7, "ranks disagree")                                   \
    X(ME_ERR_UNSUPPORTED, -8, "not modelled")                                  \
    X(ME_ERR_MPI, -9, "MPI failed")                                            \
    X(ME_ERR_INTERNAL, -10, "a bug in memest")                                 \
    X(ME_ERR_STOPPED, -11, "stopped by a hook")

typedef enum me_status {
#define ME_STATUS_ENUM(constant, value, text) constant = (value),
    ME_STATUS_LIST(ME_STATUS_ENUM)
#undef ME_STATUS_ENUM
} me_status;

enum {
    ME_DIAG_TEXT = 512,
    ME_DIAG_WHERE = 128,
    ME_DIAG_FLAG = 96
};

/** Why a call failed. Owned by the caller; all zero means nothing failed. */
typedef struct me_diag {
    me_status status;
    int line;                  /**< of the user's input, 0: no line */
    char where[ME_DIAG_WHERE]; /**< file of the user's input, "" if none */
    char text[ME_DIAG_TEXT];   /**< one line: what, value, what is right */
    char flag[ME_DIAG_FLAG];   /**< whose value it is, "" if of none */
    bool is_missing; /**< nothing gives a value that there has to be */
} me_diag;

#if defined(__GNUC__)
#    define ME_MUST_CHECK __attribute__((warn_unused_result))
#    define ME_PRINTF(text_at, first_at)                                       \
        __attribute__((format(printf, text_at, first_at)))
#else
#    define ME_MUST_CHECK
#    define ME_PRINTF(text_at, first_at)
#endif

/**
 * Record a failure: the one way an error is born. Whoever passes it on adds
 * nothing. Local.
 *
 * @param diag    filled in; may be NULL when nobody reads it
 * @param status  what kind of failure, not ME_OK
 * @param format  printf format of one line, lower case, no full stop
 * @return @p status, so that `return me_fail(…)` reads well
 */
me_status me_fail(me_diag *diag, me_status status, const char *format, ...)
    ME_PRINTF(3, 4);

/** As me_fail(), for a failure at a line of the user's input. Local. */
me_status me_fail_at(me_diag *diag, me_status status, const char *where,
                     int line, const char *format, ...) ME_PRINTF(5, 6);

/** Say of which flag of a launch a failure's value is, for who knows where the flag
 *  stands. Local. @return @p status */
me_status me_fail_flag(me_diag *diag, me_status status, const char *flag);

/** Say that nothing gives a value that there has to be, for who knows which file
 *  it could stand in. Local. @return @p status */
me_status me_fail_missing(me_diag *diag, me_status status);

enum {
    ME_DIAG_LINE = ME_DIAG_WHERE + ME_DIAG_TEXT + 16
};

/**
 * Say before the text of a failure what its value was given by, where whoever
 * found it could not know: `x.cfg:3: MEMEST_SITE: …`. Local.
 *
 * @param diag    of the failure, whose place and flag stay; may be NULL
 * @param status  of the failure
 * @param format  printf format of the flag, option or variable
 * @return @p status
 */
me_status me_fail_of(me_diag *diag, me_status status, const char *format, ...)
    ME_PRINTF(3, 4);

/**
 * Say behind the text of a failure, in parentheses, what led to it; a text that has
 * no room beside that is cut. Local.
 *
 * @param diag    of the failure, whose place and flag stay; may be NULL
 * @param status  of the failure
 * @param format  printf format of the reason
 * @return @p status
 */
me_status me_fail_behind(me_diag *diag, me_status status, const char *format,
                         ...) ME_PRINTF(3, 4);

/** The line for a person: the place in the user's input, if there is one, and
 *  what is wrong. Local. */
void me_diag_line(const me_diag *diag, char line_out[ME_DIAG_LINE]);

/** The meaning of @p status as a phrase; static, never NULL. Local. */
const char *me_status_text(me_status status);

#ifdef __cplusplus
}
#endif

#endif /* MEMEST_BASE_STATUS_H */
