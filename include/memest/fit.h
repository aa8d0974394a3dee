/**
 * @file
 * What would make a job fit: `memest fit` as data. Changes of the job, each
 * simulated as a whole, of all ranks: with one of them it fits.
 *
 * Functions that fill a record return false, and leave it alone, if there is no
 * such change, or if `struct_size` is too small to hold anything.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_FIT_H
#define MEMEST_FIT_H

#include "memest/error.h"
#include "memest/job.h"
#include "memest/report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A job as it is, and what makes it fit. */
typedef struct memest_fitting memest_fitting;

/** How far to look. */
typedef struct memest_fit_options {
    size_t struct_size;
    bool strict;      /**< what is not modelled is an error */
    bool is_quick;    /**< no more simulations than `memest check` makes */
    uint32_t threads; /**< of the host that simulate; 0: one, the caller's */
} memest_fit_options;

/**
 * Estimate a job and, if it does not fit or is too close to call, look for changes
 * with which it does: single ones, then pairs, then more together. World size and
 * global batch stay.
 *
 * @param job          stays the caller's; may be changed or destroyed at once
 * @param options      NULL: all zero
 * @param fitting_out  owned by the caller
 * @return MEMEST_OK, also where the job fits and where nothing helps; what
 *         memest_estimate() returns
 */
MEMEST_API memest_status memest_fit(const memest_job *job,
                                    const memest_fit_options *options,
                                    memest_fitting **fitting_out,
                                    memest_error *error) MEMEST_MUST_CHECK;

/** Give back; NULL is allowed. */
MEMEST_API void memest_fitting_destroy(memest_fitting *fitting);

/** The job as it is; borrowed. */
MEMEST_API const memest_report *
memest_fitting_report(const memest_fitting *fitting);

/** What became of the changes that were tried. */
typedef struct memest_fit_counts {
    size_t struct_size;
    bool has_searched;  /**< false: the job fits as it is, or nobody can say
                                whether it does, and all below is 0 */
    int32_t tried;      /**< all that follow, and those that fit */
    int32_t refused;    /**< by the framework, or another batch would be run */
    int32_t do_not_fit; /**< either */
    int32_t equal;      /**< do the same as one that fits */
    int32_t not_simulated;  /**< may fit, and were not simulated as a whole */
    int32_t together;       /**< changes that each offer is made of; 0: none */
    const char *closest;    /**< that takes least, where none fits; else NULL */
    uint64_t closest_bytes; /**< of the rank that is worst without it */
} memest_fit_counts;

MEMEST_API bool memest_fitting_count(const memest_fitting *fitting,
                                     memest_fit_counts *counts_out);

/** A change with which the job fits. Texts are the fitting's. */
typedef struct memest_fit_change {
    size_t struct_size;
    const char *name;        /**< "micro-batch 1", "tensor 4 + micro-batch 1" */
    const char *assignments; /**< "KEY=VALUE,…" that make it, for
                                  memest_job_set() */
    const char *flags;       /**< of the launch command, after its own; of a job
                                  without one, memest's --set */
    bool changes_numerics;   /**< losses come out otherwise */
    int32_t
        place;   /**< by step time, from 1; ties have the same; 0: the time is a
                        lower bound, or not predicted */
    bool is_tie; /**< another has this place, too */
    memest_risk risk;
    int32_t worst_rank;   /**< lowest with most bytes of the verdict's kind */
    uint64_t worst_bytes; /**< of it, in its whole life */
    uint64_t capacity_bytes; /**< that they are held against */
    bool has_step;
    bool is_lower_bound; /**< a part of the host's time is not in the step */
    double step;         /**< seconds */
    double tokens_per_second; /**< of all ranks; 0: not predicted */
} memest_fit_change;

/** Changes, the fastest first, those whose time is no more than a bound last. */
MEMEST_API size_t memest_fitting_n_changes(const memest_fitting *fitting);
MEMEST_API bool memest_fitting_change(const memest_fitting *fitting,
                                      size_t index,
                                      memest_fit_change *change_out);

/** The job with a change; borrowed, NULL beyond the last. */
MEMEST_API const memest_report *
memest_fitting_change_report(const memest_fitting *fitting, size_t index);

/**
 * All of it as the program writes it.
 *
 * @param format      MEMEST_FORMAT_TEXT or _JSON
 * @param text_out    ends with a NUL; owned by the caller, for
 *                    memest_text_destroy()
 * @param length_out  bytes without the NUL; may be NULL
 * @return MEMEST_OK; MEMEST_ERR_CONFIG for another format; MEMEST_ERR_NOMEM,
 *         MEMEST_ERR_OVERFLOW (a number that JSON cannot hold)
 */
MEMEST_API memest_status memest_fitting_text(
    const memest_fitting *fitting, memest_format format, char **text_out,
    size_t *length_out, memest_error *error) MEMEST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif /* MEMEST_FIT_H */
