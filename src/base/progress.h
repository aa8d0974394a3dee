/**
 * @file
 * How far something is that takes long: a line on the terminal of standard error
 * that is written anew, from the second second on, and gone at the end. Nothing
 * where standard error is no terminal.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_PROGRESS_H
#define MEMEST_BASE_PROGRESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
    ME_PROGRESS_BYTES = 168 /**< of what is written at once */
};

/** Of one thing that is done in steps. All zero shows nothing. */
typedef struct me_progress {
    const char *what; /**< "programs"; static */
    uint32_t total;   /**< steps */
    bool is_on;       /**< somebody can see it */
    const char
        *then; /**< not NULL: how long it will go on nobody can say, since
                           steps are unlike or others follow (", then …", or
                           ""); static. What has passed is shown */
    uint64_t start_ms;     /**< of a clock that only goes forward */
    atomic_uint done;      /**< steps */
    atomic_ullong last_ms; /**< when the line was written last; 0: never */
    atomic_uint shown;     /**< characters of the line that is there */
    bool has_pulse; /**< a thread shows each second that no step is done yet */
    bool is_over;   /**< its end, which the lock guards */
    pthread_t pulse;
    pthread_mutex_t lock;
    pthread_cond_t over; /**< of a clock that only goes forward */
} me_progress;

/** A part of it: bytes of a file that are read, in so many of the steps. All zero
 *  shows nothing. */
typedef struct me_progress_part {
    me_progress *progress; /**< borrowed; NULL: nobody looks */
    uint64_t bytes;        /**< from one end to the other; 0: nobody knows */
    uint32_t steps;
    uint32_t done; /**< of them */
} me_progress_part;

/** Begin. Until the first step is done, which may take minutes, a thread shows the
 *  line. Local.
 *
 *  @param is_wanted  false: nothing is shown
 *  @param what       the steps are, such as "changes"; static */
void me_progress_begin(me_progress *progress, bool is_wanted, const char *what,
                       uint32_t total);

/** Other steps begin, as long after the beginning as it is; others may follow
 *  them. Not while threads step. Local. @param what  static */
void me_progress_next(me_progress *progress, const char *what, uint32_t total);

/** Say what follows the steps, and go on from an earlier beginning. Not while
 *  threads step. Local.
 *
 *  @param then      static, as in me_progress
 *  @param start_ms  of me_progress; 0: it stays */
void me_progress_follow(me_progress *progress, const char *then,
                        uint64_t start_ms);

/** A step is done. Threads may call it at once. Local. */
void me_progress_step(me_progress *progress);

/** A file's bytes from where it is to its end. Local. @return 0 for a pipe */
uint64_t me_progress_bytes_of(FILE *file);

/** So many tenths of a part's steps, for so many bytes; of NULL nothing. Local. */
me_progress_part me_progress_share(const me_progress_part *part,
                                   uint32_t tenths, uint64_t bytes);

/** So many bytes of a part have been read; NULL is allowed. Local. */
void me_progress_reach(me_progress_part *part, uint64_t bytes);

/** All is done: the line goes. Local. */
void me_progress_end(me_progress *progress);

/** "  12 of 40 programs, 8 s left", or "…, then others; 3 s so far", as of no step
 *  that is done: the line after @p passed_ms; nothing before a
 *  second has passed. For me_progress_step() and its test. Local.
 *
 *  @return characters in @p line, without its end */
int me_progress_line(const me_progress *progress, uint32_t done,
                     uint64_t passed_ms, char line[80]);

/** What puts @p length characters of a line in the place of one of @p shown: blanks
 *  and no escape sequences, which not every terminal knows (TERM=dumb). Without a
 *  line the place is left empty. For the same test. Local.
 *
 *  @return characters in @p text */
int me_progress_write(const char *line, int length, unsigned shown,
                      char text[ME_PROGRESS_BYTES]);

#endif /* MEMEST_BASE_PROGRESS_H */
