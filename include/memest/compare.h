/**
 * @file
 * One job under several schedules and settings, side by side: the table of
 * `memest compare` as data.
 *
 * Functions that fill a record return false, and leave it alone, if there is
 * no such row or stage, or if `struct_size` is too small to hold anything.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_COMPARE_H
#define MEMEST_COMPARE_H

#include "memest/error.h"
#include "memest/job.h"
#include "memest/report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct memest_comparison memest_comparison;

/** What to compare: every variant under every schedule. Texts are borrowed for
 *  the call. */
typedef struct memest_compare_options {
    size_t struct_size;
    const char *const *schedules; /**< n_schedules of them, "NAME" or
                                       "NAME:CHUNKS" as --schedule takes them:
                                       "1f1b", "interleaved:2" */
    size_t n_schedules;           /**< 0: the job's own alone */
    const char *const *variants;  /**< n_variants of them, beside the job as it
                                       is, as --variant takes them:
                                       "big:train.micro_batch_size=2" */
    size_t n_variants;
    const char *durations; /**< "F=1,I=1,W=1,B=2,comm=0", any of them: fixed
                                durations of actions, in ticks, in place of
                                predicted times; NULL: times are predicted */
    bool strict;           /**< what is not modelled is an error */
    bool no_fold;          /**< every rank and micro-batch runs by itself: the
                                same numbers, slower */
    uint32_t threads;      /**< of the host that simulate ranks; 0: one, the
                                caller's */
} memest_compare_options;

/**
 * Simulate a job under all of them. What one of them cannot run is a row with
 * its reason; what is wrong with all alike is a failure.
 *
 * @param job             stays the caller's; may be changed or destroyed at once
 * @param options         at least one schedule or variant
 * @param comparison_out  owned by the caller
 * @return MEMEST_OK, also where nothing fits; MEMEST_ERR_CONFIG for a schedule,
 *         variant or duration that is none, with the flag of the program that
 *         it would be, or for what memest_job_check() would return of all of
 *         them; MEMEST_ERR_NOMEM
 */
MEMEST_API memest_status memest_compare(const memest_job *job,
                                        const memest_compare_options *options,
                                        memest_comparison **comparison_out,
                                        memest_error *error) MEMEST_MUST_CHECK;

/** Give back; NULL is allowed. */
MEMEST_API void memest_comparison_destroy(memest_comparison *comparison);

/** A row of the table. Texts are the comparison's. Bytes are the most of any
 *  rank in the steady iteration, each kind by itself; those that nobody knows
 *  are MEMEST_BYTES_UNKNOWN. */
typedef struct memest_compare_row {
    size_t struct_size;
    const char *schedule;    /**< "1f1b", "interleaved:2" */
    const char *variant;     /**< its name; "": the job as it is */
    const char *assignments; /**< "KEY=VALUE,…" that make it; "" */
    const char *reason;      /**< why it cannot run, and nothing below is set;
                                  NULL: it runs */
    int32_t place;           /**< by step time among those that fit, from 1; 0:
                                  none, so where the step is a lower bound.
                                  Ties have the same */
    bool is_tie;             /**< another has this place, too */
    bool fits;               /**< or the card's memory is not known */
    memest_risk risk;
    int32_t worst_rank; /**< lowest with most bytes of the verdict's kind */
    uint64_t requested_bytes;
    uint64_t allocated_bytes;
    uint64_t reserved_bytes;
    uint64_t device_bytes;
    int32_t chunks;    /**< stages of each rank */
    int32_t in_flight; /**< chunk micro-batches whose forward has begun and
                            whose backward has not ended, at most; over
                            `chunks` it is in whole micro-batches */
    bool has_step;     /**< of what follows, the unit is seconds; with fixed
                            durations ticks */
    double step;
    const char *host_lacks;  /**< what of the host's time it lacks, so that it
                                  is a lower bound; NULL: nothing */
    double forward_backward; /**< of it, without the optimizer and the like */
    double bubble;           /**< the step's forwards and backwards less the
                                  busiest stage's work */
    double span_bubble;      /**< the largest idle within a stage's own span */
    double exposed_communication; /**< of the stage that waits longest */
    double tokens_per_second; /**< of all ranks, predicted; at most that where
                                   `host_lacks` is set; 0: not predicted */
    int32_t n_stages;
} memest_compare_row;

/** Rows: first what fits, then what does not, then what cannot run; by step time,
 *  bounds of it behind the others, and as asked for where nothing else decides. */
MEMEST_API size_t memest_comparison_n_rows(const memest_comparison *comparison);
MEMEST_API bool memest_comparison_row(const memest_comparison *comparison,
                                      size_t index,
                                      memest_compare_row *row_out);

/** A pipeline stage of a row: the most of its ranks. */
typedef struct memest_compare_stage {
    size_t struct_size;
    int32_t stage;
    int32_t worst_rank;
    int32_t in_flight; /**< chunk micro-batches */
    uint64_t requested_bytes;
    uint64_t allocated_bytes;
    uint64_t reserved_bytes;
    uint64_t device_bytes;
} memest_compare_stage;

MEMEST_API bool memest_comparison_stage(const memest_comparison *comparison,
                                        size_t row, int32_t stage,
                                        memest_compare_stage *stage_out);

/** The report of a row, borrowed from the comparison; NULL if it cannot run. */
MEMEST_API const memest_report *
memest_comparison_report(const memest_comparison *comparison, size_t row);

/**
 * The table as the program writes it.
 *
 * @param format       MEMEST_FORMAT_TEXT, _JSON, _CSV (not with fixed durations)
 *                     or _HTML
 * @param keep_course  JSON also has the timeline and memory of every stage
 * @param text_out     ends with a NUL; owned by the caller, for
 *                     memest_text_destroy()
 * @param length_out   bytes without the NUL; may be NULL
 * @return MEMEST_OK; MEMEST_ERR_CONFIG for another format;
 *         MEMEST_ERR_UNSUPPORTED for HTML that is not built in;
 *         MEMEST_ERR_NOMEM, MEMEST_ERR_OVERFLOW (a number that JSON cannot hold)
 */
MEMEST_API memest_status memest_comparison_text(
    const memest_comparison *comparison, memest_format format, bool keep_course,
    char **text_out, size_t *length_out, memest_error *error) MEMEST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif /* MEMEST_COMPARE_H */
