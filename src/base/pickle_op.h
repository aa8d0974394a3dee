/**
 * @file
 * The operations of a pickle, one at a time, as Python's pickletools names
 * them: those of protocols 2 to 5 that make plain data. All others are refused
 * before anybody acts on them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_PICKLE_OP_H
#define MEMEST_BASE_PICKLE_OP_H

#include "base/progress.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    ME_PICKLE_TEXT = 256 /**< of a text that are kept, with the NUL */
};

typedef enum me_pickle_kind {
    ME_PICKLE_NOTHING, /**< the protocol, a frame */
    ME_PICKLE_STOP,
    ME_PICKLE_MARK,
    ME_PICKLE_LITERAL, /**< a number, true, false or null, as JSON has it */
    ME_PICKLE_STRING,
    ME_PICKLE_LIST,    /**< an empty one, as the next */
    ME_PICKLE_DICT,    /**< an empty one */
    ME_PICKLE_TUPLE,   /**< of what stands behind the mark */
    ME_PICKLE_TUPLE_N, /**< of the last `number` values */
    ME_PICKLE_APPEND,  /**< one value */
    ME_PICKLE_APPENDS,
    ME_PICKLE_SETITEM, /**< a key and its value */
    ME_PICKLE_SETITEMS,
    ME_PICKLE_GET, /**< what was put under `number` */
    ME_PICKLE_PUT,
    ME_PICKLE_MEMOIZE /**< as a put under how many there are */
} me_pickle_kind;

/** One operation. */
typedef struct me_pickle_op {
    me_pickle_kind kind;
    uint64_t number;
    char text[ME_PICKLE_TEXT]; /**< of a literal or string, ends with a NUL */
    size_t length;             /**< of it, as kept */
    bool is_cut;               /**< a string that is longer */
} me_pickle_op;

/** Where a reader is; it reads the file ahead. */
typedef struct me_pickle_reader {
    FILE *file;             /**< at the pickle's first byte */
    const char *name;       /**< what errors call it */
    uint64_t offset;        /**< bytes of operations that were read */
    uint64_t at;            /**< where the last operation began */
    me_progress_part *part; /**< of the reading; NULL: nobody looks */
    uint64_t before;        /**< bytes of readings before this one */
    size_t next;            /**< byte of the buffer */
    size_t n_buffered;
    char buffer[1 << 14];
} me_pickle_reader;

/** Read from the first byte, at @p first of the file, once more. Local.
 *  @return ME_OK, ME_ERR_IO */
me_status me_pickle_begin_again(me_pickle_reader *reader,
                                long first) ME_MUST_CHECK;

/** A failure at the last operation. Local. @return ME_ERR_SYNTAX */
me_status me_pickle_bad(const me_pickle_reader *reader, me_diag *diag,
                        const char *what);

/**
 * The next operation. Local.
 *
 * @return ME_OK; ME_ERR_SYNTAX for one that is refused, is not known or is not
 *         whole; ME_ERR_IO
 */
me_status me_pickle_next(me_pickle_reader *reader, me_diag *diag,
                         me_pickle_op *op_out) ME_MUST_CHECK;

#endif /* MEMEST_BASE_PICKLE_OP_H */
