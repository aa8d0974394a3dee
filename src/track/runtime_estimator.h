/**
 * @file
 * PyTorch's RuntimeEstimator (torch/distributed/_tools/runtime_estimator.py):
 * what each module's forward and backward take by a roofline, and in which order
 * modules run. An operation counts for every module that runs then, so that
 * times of a backward, in which neighbours run together, overlap.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRACK_RUNTIME_ESTIMATOR_H
#define MEMEST_TRACK_RUNTIME_ESTIMATOR_H

#include "time/roofline.h"
#include "track/mod_tracker.h"

/** Times of a module. */
typedef struct me_module_runtime {
    const char *fqn; /**< "Global" is all that runs; as the tracker's */
    double forward_ms;
    double backward_ms;
} me_module_runtime;

/** Names in the order in which a kind of hook fired; they live as long as the
 *  ModTracker. */
typedef struct me_module_order {
    const char **fqns; /**< the estimator's */
    uint32_t count;
    uint32_t capacity;
} me_module_order;

typedef struct me_runtime_estimator me_runtime_estimator;

/**
 * An estimator on the program of @p e, before it runs; of nothing but iteration
 * @p iteration.
 *
 * @param mod       names modules and knows which run; outlives it
 * @param roofline  copied
 * @return owned by the caller; NULL without memory
 */
me_runtime_estimator *me_runtime_estimator_create(me_engine *e,
                                                  me_mod_tracker *mod,
                                                  const me_roofline *roofline,
                                                  int32_t iteration);

/**
 * Charge queries of fake tensors' devices too, as PyTorch's estimator does: each
 * counts as a read of the tensor, though nobody reads it, and all together are a
 * tenth to a quarter of what it says. Before the program runs.
 */
void me_runtime_estimator_count_queries(me_runtime_estimator *r);

/** Give back; NULL is allowed. */
void me_runtime_estimator_destroy(me_runtime_estimator *r);

/** Milliseconds of all operations. */
double me_runtime_estimator_total_ms(const me_runtime_estimator *r);

/** Modules in the order in which they were first charged; borrowed. */
const me_module_runtime *
me_runtime_estimator_modules(const me_runtime_estimator *r,
                             uint32_t *count_out);

/** One module's; NULL: nothing was charged to it. */
const me_module_runtime *
me_runtime_estimator_module(const me_runtime_estimator *r, const char *fqn);

/** The order of a kind of hook; borrowed. */
const me_module_order *me_runtime_estimator_order(const me_runtime_estimator *r,
                                                  me_mod_event_kind kind);

#endif /* MEMEST_TRACK_RUNTIME_ESTIMATOR_H */
