/**
 * @file
 * Several settings of one job side by side: what each takes of memory, stage
 * by stage, how long its step is predicted to take, and whether it fits.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_COMPARISON_H
#define MEMEST_REPORT_COMPARISON_H

#include "parallel/timeline.h"
#include "report/job_report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What a tick of fixed durations is as a time. */
#define ME_COMPARE_TICK_NS INT64_C(1000000)

/** A setting: a schedule of a variant of the job. All borrowed. */
typedef struct me_compare_row {
    const char *schedule;           /**< "1f1b", "interleaved:2" */
    const char *variant;            /**< its name; "": the job as it is */
    const char *assignments;        /**< "KEY=VALUE,…" that make it; "" */
    const me_report *report;        /**< NULL: it cannot run */
    const me_step_time *ticks_step; /**< under fixed durations; else NULL */
    const char *reason;             /**< why it cannot; else NULL */
} me_compare_row;

/** What is compared, in the order in which it was asked for. All borrowed. */
typedef struct me_comparison {
    const char *version;       /**< of memest */
    const char *name;          /**< of the job */
    const me_ticks *durations; /**< of actions, in place of predicted times;
                                    NULL: times are predicted */
    const me_compare_row *rows;
    size_t n_rows;
} me_comparison;

/** The most of a stage's ranks in the steady iteration, each kind of bytes by
 *  itself; unknown ones stay unknown. */
typedef struct me_compare_stage {
    int32_t stage; /**< -1: of all stages */
    int32_t rank;  /**< lowest with most bytes of the verdict's kind */
    uint64_t requested_bytes;
    uint64_t allocated_bytes;
    uint64_t reserved_bytes;
    uint64_t device_bytes;
    int32_t in_flight;            /**< chunk micro-batches whose forward has
                                       begun and whose backward has not ended,
                                       at most */
    const me_rank_result *result; /**< of that rank */
} me_compare_stage;

/** The bytes of me_compare_stage. */
extern const me_schema me_compare_bytes_schema;

/** A row with what is said of it. */
typedef struct me_compare_line {
    const me_compare_row *row;
    me_compare_stage *stages; /**< n_stages of them; owned */
    int32_t n_stages;         /**< 0: it cannot run */
    me_compare_stage worst;   /**< of all stages */
    bool fits;                /**< or nobody knows the card's memory */
    bool is_open;             /**< what is left out of it may be of any size */
    int32_t place;            /**< by step time among those that fit, from 1;
                                   0: none. Ties have the same */
    bool is_tie;              /**< another has this place, too */
} me_compare_line;

/**
 * Judge and sort: first what fits, then what nobody can say that of, then what does
 * not, then what cannot run; each by step time, where that is a lower bound behind
 * the others; as asked for where nothing else decides. What fits has a place,
 * unless its step is a bound or what is left out of it may be of any size. Two
 * predicted times of which the larger is less than ME_TIME_TIE above the fastest
 * of a place have that place; under fixed durations equal ones do. Local.
 *
 * @param lines_out  n_rows of them, for me_compare_lines_destroy()
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status me_compare_lines_create(const me_comparison *comparison,
                                  me_diag *diag,
                                  me_compare_line **lines_out) ME_MUST_CHECK;

/** Give back; NULL is allowed. Local. */
void me_compare_lines_destroy(me_compare_line *lines, size_t n_lines);

/** The step, predicted or under fixed durations; NULL if there is none.
 *  Local. */
const me_step_time *me_compare_step(const me_compare_line *line);

/** What of the host's time the step lacks, so that it is a lower bound; NULL:
 *  nothing, or durations are fixed. Local. */
const char *me_compare_host_lacks(const me_compare_line *line);

/** Is the step a lower bound, which is in no order to others? Local. */
bool me_compare_is_bound(const me_compare_line *line);

/** What a setting's worst rank keeps in the host's memory, all uses together; 0
 *  where it cannot run. Local. */
uint64_t me_compare_host_bytes(const me_compare_line *line);

/** Collectives of the stage that waits longest for them, while no kernel could
 *  run; nanoseconds. Local. */
int64_t me_compare_exposed_ns(const me_step_time *step);

/** Chunks that a rank holds, for in_flight. Local. */
int32_t me_compare_chunks(const me_compare_line *line);

/**
 * Append a comparison in one of the formats of a report. Local.
 *
 * @param has_course  JSON also has the timeline and memory of every stage
 * @return ME_OK, ME_ERR_NOMEM, ME_ERR_OVERFLOW (a number that JSON cannot
 *         hold); ME_ERR_INTERNAL
 */
me_status me_compare_append(const me_comparison *comparison, me_format format,
                            bool has_course, me_diag *diag,
                            me_str *text) ME_MUST_CHECK;

#endif /* MEMEST_REPORT_COMPARISON_H */
