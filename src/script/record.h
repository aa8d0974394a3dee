/**
 * @file
 * How a process of a script tells memest what would have happened: lists of
 * words through a pipe that all of them inherit, in frames that the kernel
 * keeps whole.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SCRIPT_RECORD_H
#define MEMEST_SCRIPT_RECORD_H

#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ME_RECORD_FD = 250, /**< where the pipe is in every process of a script */
    ME_RECORD_FRAME = 4096,          /**< bytes; Linux's PIPE_BUF */
    ME_RECORD_MAX_BYTES = 28 << 20,  /**< of one record: ARG_MAX, and files */
    ME_RECORD_ALL_BYTES = 256 << 20, /**< of all */
    ME_RECORD_MAX_SENDERS = 1 << 10, /**< that are in the middle of one */
};

/** What a record is about: its first word. */
#define ME_RECORD_LAUNCH  "launch"  /**< place, argc, arguments, environment */
#define ME_RECORD_NOTHING "nothing" /**< words that had no effect */
#define ME_RECORD_FAILURE "failure" /**< one text */

/** Words that follow each other, each with a NUL behind it. */
typedef struct me_words {
    me_str text;
    uint32_t count;
} me_words;

void me_words_add(me_words *words, const char *word);
void me_words_fini(me_words *words);

/** Is the pipe there? A process that was started without it (as Python's subprocess
 *  starts programs) takes that of the process above it. */
bool me_record_is_there(void);

/** Send a record. Blocks while the pipe is full. @return false: it is not there */
bool me_record_send(const me_words *words);

/** A sender's record as far as it came. */
typedef struct me_record_part {
    uint32_t sender;
    me_str bytes;
} me_record_part;

/** The receiving end; all zero is an empty one. */
typedef struct me_record_reader {
    char frame[ME_RECORD_FRAME];
    size_t filled;
    size_t total_bytes;
    me_record_part *parts;
    uint32_t n_parts;
    uint32_t capacity;
} me_record_reader;

/** Told of each record that is whole; @p words end with a NUL. */
typedef me_status me_record_seen(void *self, const char *words, size_t length,
                                 me_diag *diag);

/**
 * Take bytes as they come out of the pipe. Local.
 *
 * @return ME_OK; ME_ERR_CONFIG where they are no frames, or too many;
 *         ME_ERR_NOMEM; what @p seen returned
 */
me_status me_record_take(me_record_reader *reader, const char *bytes,
                         size_t length, me_record_seen *seen, void *self,
                         me_diag *diag) ME_MUST_CHECK;

void me_record_reader_fini(me_record_reader *reader);

#endif /* MEMEST_SCRIPT_RECORD_H */
