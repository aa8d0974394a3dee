/**
 * @file
 * The estimate of a job: every rank's peak and what it is made of, what each
 * module took, and whether it fits on the card.
 *
 * Four kinds of bytes are never mixed: requested by the program; allocated,
 * after the allocator's rounding; reserved, held from CUDA by the allocator;
 * device, gone from the card with CUDA's context, libraries and NCCL.
 *
 * Functions that fill a record return false, and leave it alone, if there is
 * no such rank or index or `struct_size` is too small to hold anything.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_H
#define MEMEST_REPORT_H

#include "memest/error.h"
#include "memest/job.h"
#include "memest/names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct memest_report memest_report;

/** How to estimate. */
typedef struct memest_estimate_options {
    size_t struct_size;
    bool strict;      /**< what is not modelled is an error */
    bool no_fold;     /**< every rank and micro-batch runs by itself: the same
                           numbers, slower */
    bool keep_course; /**< JSON has the course of the steady iteration too */
    uint32_t
        threads; /**< of the host that simulate ranks; 0: one, the caller's */
} memest_estimate_options;

/**
 * Simulate all ranks of a job, check that they agree in their collectives, and
 * say what each took.
 *
 * @param job         stays the caller's; may be changed or destroyed at once
 * @param options     NULL: all zero
 * @param report_out  owned by the caller
 * @return MEMEST_OK, also for a job that does not fit; what memest_job_check()
 *         returns; MEMEST_ERR_MISMATCH for ranks that would hang or disagree;
 *         MEMEST_ERR_OVERFLOW, MEMEST_ERR_NOMEM
 */
MEMEST_API memest_status memest_estimate(const memest_job *job,
                                         const memest_estimate_options *options,
                                         memest_report **report_out,
                                         memest_error *error) MEMEST_MUST_CHECK;

/** Give back; NULL is allowed. */
MEMEST_API void memest_report_destroy(memest_report *report);

/** Ranks of the job; they count from 0. */
MEMEST_API int32_t memest_report_world_size(const memest_report *report);

/** Where a rank stands, and what it holds. */
typedef struct memest_rank {
    size_t struct_size;
    int32_t rank;
    int32_t tp; /**< place in its tensor group, from 0; likewise below */
    int32_t pp; /**< pipeline rank: the stage */
    int32_t dp;
    int32_t cp;
    int32_t ep;
    int32_t class_id;         /**< ranks of one class run equal programs */
    uint64_t parameters;      /**< elements */
    uint64_t parameter_bytes; /**< as the model has them, without copies */
} memest_rank;

MEMEST_API bool memest_report_rank(const memest_report *report, int32_t rank,
                                   memest_rank *rank_out);

/** The most that a rank had requested at once in an iteration. Texts are the
 *  report's. */
typedef struct memest_peak {
    size_t struct_size;
    uint64_t requested_bytes;
    uint64_t allocated_bytes; /**< its own peak in the iteration */
    uint64_t reserved_bytes;  /**< the most since the process began */
    uint64_t device_bytes;    /**< with those, and all that is outside of the
                                   allocator when the iteration ended */
    int32_t iteration;
    int32_t microbatch; /**< -1: outside of one */
    const char *phase;  /**< "backward" */
    const char *module; /**< "decoder.layers.5.mlp"; "": outside of any */
    const char *op;     /**< whose allocation made the peak, as PyTorch names
                             it; NULL: the iteration never took more than at
                             its start */
} memest_peak;

/** The peak of the steady iteration, 1; of a job that is not run as long, of
 *  its last one. */
MEMEST_API bool memest_report_peak(const memest_report *report, int32_t rank,
                                   memest_peak *peak_out);

/** Bytes of a category at the instant of that peak. They add up to its
 *  requested bytes. 0 as well if there is no such rank or category. */
MEMEST_API uint64_t memest_report_peak_category_bytes(
    const memest_report *report, int32_t rank, memest_category category);

/** The peaks of every iteration, index 0 being set-up (iteration -1). */
MEMEST_API size_t memest_report_n_iterations(const memest_report *report,
                                             int32_t rank);
MEMEST_API bool memest_report_iteration(const memest_report *report,
                                        int32_t rank, size_t index,
                                        memest_peak *peak_out);

/** A named moment of the training loop ("model_built", "finalize_begin", …);
 *  peaks are those since the moment before. Bytes may be
 *  MEMEST_BYTES_UNKNOWN. */
typedef struct memest_point {
    size_t struct_size;
    const char *name;
    uint64_t requested_bytes;
    uint64_t requested_peak_bytes;
    uint64_t allocated_bytes;
    uint64_t allocated_peak_bytes;
    uint64_t reserved_bytes;
    uint64_t reserved_peak_bytes;
    uint64_t device_bytes;
} memest_point;

MEMEST_API size_t memest_report_n_points(const memest_report *report,
                                         int32_t rank);
MEMEST_API bool memest_report_point(const memest_report *report, int32_t rank,
                                    size_t index, memest_point *point_out);

/** A module of a rank in the steady iteration. */
typedef struct memest_module {
    size_t struct_size;
    const char *name;             /**< dotted path */
    size_t parent;                /**< its index; SIZE_MAX: at the top */
    uint64_t forward_peak_bytes;  /**< most that the whole rank had requested
                                       while it ran; MEMEST_BYTES_UNKNOWN: it
                                       never did */
    uint64_t backward_peak_bytes; /**< likewise, with recomputation */
    uint64_t parameters;          /**< elements */
    uint64_t parameter_bytes;
    uint64_t activation_bytes; /**< of one micro-batch: made in its forward,
                                    kept for the backward */
} memest_module;

/** Modules of a rank, parents before their children. */
MEMEST_API size_t memest_report_n_modules(const memest_report *report,
                                          int32_t rank);
MEMEST_API bool memest_report_module(const memest_report *report, int32_t rank,
                                     size_t index, memest_module *module_out);

/** Device memory outside of the allocator. */
typedef struct memest_device {
    size_t struct_size;
    uint64_t context_bytes;      /**< CUDA itself */
    uint64_t library_bytes;      /**< cuBLAS, kernels' code */
    uint64_t communicator_bytes; /**< NCCL */
    uint64_t band_bytes;         /**< how far off the three may be */
} memest_device;

/** false as well where the card's numbers are not known. */
MEMEST_API bool memest_report_device(const memest_report *report, int32_t rank,
                                     memest_device *device_out);

/** How a rank ends within the card's memory, or `device.memory_limit`. */
typedef struct memest_limit {
    size_t struct_size;
    bool is_oom;       /**< the rest of where is 0 or NULL if not */
    int32_t iteration; /**< where it died */
    const char *phase;
    const char *module;
    const char *op;
    const char *message;        /**< as the job would print it */
    uint64_t tried_bytes;       /**< of the segment that was not to be had */
    uint64_t num_alloc_retries; /**< times that cached blocks had to go */
    uint64_t reserved_bytes;    /**< at the end, or when it died */
} memest_limit;

MEMEST_API bool memest_report_limit(const memest_report *report, int32_t rank,
                                    memest_limit *limit_out);

/** How sure a verdict is. */
typedef enum memest_risk {
    MEMEST_RISK_UNKNOWN, /**< the card's memory is not known */
    MEMEST_RISK_FITS,
    MEMEST_RISK_TIGHT,     /**< it fits, with little to spare */
    MEMEST_RISK_COIN_FLIP, /**< within what memest may be off */
    MEMEST_RISK_DOES_NOT_FIT,
    MEMEST_RISK_CANNOT_SAY /**< what is not modelled can be larger than the
                                margin: `memest check` ends with 4 */
} memest_risk;

/** Does the job fit on the card that `device.name` names? */
typedef struct memest_verdict {
    size_t struct_size;
    memest_risk risk;
    bool fits;               /**< meaningless when the risk is unknown or
                                  cannot be said */
    bool lets_go;            /**< the job may be started: `memest check` ends
                                  with 0 */
    uint64_t capacity_bytes; /**< of the card; 0: unknown */
    const char *basis;       /**< which kind of bytes is held against it */
    uint64_t worst_bytes;    /**< of the worst rank, in its whole life */
    uint64_t band_bytes;     /**< how far off worst_bytes may be */
    int32_t worst_rank;
    int32_t oom_rank;      /**< lowest that dies; -1: none */
    uint64_t lower_bytes;  /**< by which what is not modelled may lower
                                worst_bytes at most; MEMEST_BYTES_UNKNOWN: by
                                any number */
    uint64_t higher_bytes; /**< likewise, raise */
} memest_verdict;

MEMEST_API bool memest_report_verdict(const memest_report *report,
                                      memest_verdict *verdict_out);

/** The predicted time of a training step. */
typedef struct memest_step {
    size_t struct_size;
    double seconds;
    double tokens_per_second; /**< of all ranks; at most that where
                                   `host_lacks` is set */
    double flops_utilisation; /**< of the data sheet's FLOPs; 0: not counted */
    double uncertainty;       /**< 0.1 is 10 % */
    const char *host_lacks;   /**< what of the host's time `seconds` lacks, so
                                   that it is a lower bound; NULL: nothing */
} memest_step;

/** false as well where it is not predicted. */
MEMEST_API bool memest_report_step(const memest_report *report,
                                   memest_step *step_out);

/** What the numbers do not cover, by name ("--flag"), and in one phrase why;
 *  what was assumed, a sentence each. NULL beyond the last, and where there is
 *  no note. */
MEMEST_API const char *memest_report_not_modelled(const memest_report *report,
                                                  size_t index);
MEMEST_API const char *
memest_report_not_modelled_note(const memest_report *report, size_t index);
MEMEST_API const char *memest_report_assumption(const memest_report *report,
                                                size_t index);

/** As what the report is written. */
typedef enum memest_format {
    MEMEST_FORMAT_TEXT,
    MEMEST_FORMAT_JSON, /**< what scripts rely on */
    MEMEST_FORMAT_CSV,
    MEMEST_FORMAT_HTML,         /**< one page that loads nothing */
    MEMEST_FORMAT_JSON_CLASSES, /**< JSON, equal ranks together */
    MEMEST_FORMAT_CHECK         /**< text, the verdict alone */
} memest_format;

/**
 * The report as the program writes it.
 *
 * @param text_out    ends with a NUL; owned by the caller, for
 *                    memest_text_destroy()
 * @param length_out  bytes without the NUL; may be NULL
 * @return MEMEST_OK; MEMEST_ERR_UNSUPPORTED for HTML that is not built in;
 *         MEMEST_ERR_CONFIG for no such format; MEMEST_ERR_NOMEM,
 *         MEMEST_ERR_OVERFLOW (a number that JSON cannot hold)
 */
MEMEST_API memest_status memest_report_text(
    const memest_report *report, memest_format format, char **text_out,
    size_t *length_out, memest_error *error) MEMEST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif /* MEMEST_REPORT_H */
