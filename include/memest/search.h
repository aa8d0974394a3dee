/**
 * @file
 * Which layouts of a number of GPUs fit, and which is fastest: `memest search` as
 * data.
 *
 * Functions that fill a record return false, and leave it alone, if there is no
 * such row, or if `struct_size` is too small to hold anything.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SEARCH_H
#define MEMEST_SEARCH_H

#include "memest/error.h"
#include "memest/job.h"
#include "memest/report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct memest_found memest_found;

/** A candidate that was simulated. Texts live as long as the hook runs, or as
 *  long as what was found. */
typedef struct memest_candidate {
    size_t struct_size;
    const char *assignments; /**< "KEY=VALUE,…" that make it */
    const char *schedule;    /**< as asked for; "": what the degrees imply */
    const char *layout;      /**< the same in short, "tp=8 pp=4" */
    const char *flags;       /**< of the launch command, after its own, of
                                  these; of rows of the front alone, else NULL */
    const char *reason;      /**< why it cannot run after all, and nothing below
                                  is set but the world size; NULL: it runs */
    int32_t world_size;
    bool fits; /**< or the card's memory is not known */
    memest_risk risk;
    int32_t worst_rank;   /**< lowest with most bytes of the verdict's kind */
    uint64_t worst_bytes; /**< of it, in its whole life */
    uint64_t capacity_bytes; /**< that they are held against; 0: not known */
    uint64_t
        requested_bytes; /**< these four: the most of any rank in the steady
                                   iteration, each kind by itself */
    uint64_t allocated_bytes;
    uint64_t reserved_bytes;
    uint64_t device_bytes;
    bool has_step;
    bool is_lower_bound; /**< a part of the host's time is not in the step */
    double step;         /**< seconds */
    double tokens_per_second; /**< of all ranks; 0: not predicted */
    int32_t place; /**< in the front, by step time, from 1; 0: none, so where it
                        is a lower bound. Ties have the same */
    bool is_tie;   /**< another has this place */
    bool is_equal; /**< another has these very numbers */
} memest_candidate;

/** Told of candidates as they are simulated. @return 0 to go on; else the rest is
 *  left undecided, which is no failure */
typedef int memest_candidate_hook(void *self, const memest_candidate *candidate,
                                  uint32_t n_decided, uint32_t n_candidates);

/** What to search. Texts are borrowed for the call. */
typedef struct memest_search_options {
    size_t struct_size;
    const char *gpus; /**< "512", "256,512"; NULL: as many as the job has */
    const char *const *spaces; /**< n_spaces of them, "KEY=A,B" or "KEY" or a
                                       file, as --space takes them */
    size_t n_spaces;
    const char *const *schedules; /**< n_schedules of them, as --schedule takes
                                       them */
    size_t n_schedules;           /**< 0: what the degrees imply */
    bool strict;                  /**< what is not modelled is an error */
    uint32_t threads;             /**< of the host that simulate; 0: one, the
                                       caller's */
    double budget_seconds;        /**< 0: none; what is left is undecided */
    const char *jsonl;            /**< a log that is continued; NULL: none */
    memest_candidate_hook
        *hook; /**< called by the thread of the caller; NULL */
    void *hook_self;
} memest_search_options;

/**
 * Search: enumerate what the framework may accept, rule out by proven bounds,
 * simulate the rest.
 *
 * @param job        stays the caller's; may be changed or destroyed at once
 * @param options    NULL: all that is left zero
 * @param found_out  owned by the caller
 * @return MEMEST_OK, also where nothing fits or a hook has stopped it;
 *         MEMEST_ERR_CONFIG for a space that is none, a job that does not say
 *         its global batch or ranks, or a log of another job; MEMEST_ERR_SYNTAX,
 *         MEMEST_ERR_IO for a log; MEMEST_ERR_NOMEM
 */
MEMEST_API memest_status memest_search(const memest_job *job,
                                       const memest_search_options *options,
                                       memest_found **found_out,
                                       memest_error *error) MEMEST_MUST_CHECK;

/** Give back; NULL is allowed. */
MEMEST_API void memest_found_destroy(memest_found *found);

/** What became of all candidates. */
typedef struct memest_found_counts {
    size_t struct_size;
    uint32_t candidates;
    uint32_t undecided;
    uint32_t refused;   /**< by the framework */
    uint32_t too_large; /**< by their bounds */
    uint32_t behind;    /**< others, by their bounds */
    uint32_t simulated;
    uint32_t fit;        /**< of them */
    uint32_t cannot_say; /**< of them: nobody can say whether they fit */
} memest_found_counts;

MEMEST_API bool memest_found_count(const memest_found *found,
                                   memest_found_counts *counts_out);

/** Rows of the front: candidates that fit and that no other one beats in step
 *  time, margin and GPUs at once; by step time, then margin, then GPUs. */
MEMEST_API size_t memest_found_n_rows(const memest_found *found);
MEMEST_API bool memest_found_row(const memest_found *found, size_t index,
                                 memest_candidate *row_out);

/**
 * What was found as the program writes it.
 *
 * @param format      MEMEST_FORMAT_TEXT, _JSON or _CSV
 * @param text_out    ends with a NUL; owned by the caller, for
 *                    memest_text_destroy()
 * @param length_out  bytes without the NUL; may be NULL
 * @return MEMEST_OK; MEMEST_ERR_CONFIG for another format; MEMEST_ERR_NOMEM,
 *         MEMEST_ERR_OVERFLOW (a number that JSON cannot hold)
 */
MEMEST_API memest_status memest_found_text(
    const memest_found *found, memest_format format, char **text_out,
    size_t *length_out, memest_error *error) MEMEST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif /* MEMEST_SEARCH_H */
