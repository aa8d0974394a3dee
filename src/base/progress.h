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

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

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
} me_progress;

/** Begin. Local.
 *
 *  @param is_wanted  false: nothing is shown
 *  @param what       the steps are, such as "changes"; static */
void me_progress_begin(me_progress *progress, bool is_wanted, const char *what,
                       uint32_t total);

/** A step is done. Threads may call it at once. Local. */
void me_progress_step(me_progress *progress);

/** All is done: the line goes. Local. */
void me_progress_end(me_progress *progress);

/** "  12 of 40 programs, 8 s left", or "…, then others; 3 s so far": the line
 *  after @p passed_ms; nothing before a
 *  second has passed. For me_progress_step() and its test. Local.
 *
 *  @return characters in @p line, without its end */
int me_progress_line(const me_progress *progress, uint32_t done,
                     uint64_t passed_ms, char line[80]);

#endif /* MEMEST_BASE_PROGRESS_H */
