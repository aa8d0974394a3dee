/**
 * @file
 * A forward and a backward of two micro-batches in turns
 * (core/pipeline_parallel/combined_1f1b.py, combined_forward_backward_step()).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_MEGATRON_COMBINED_1F1B_H
#define MEMEST_TRAIN_MEGATRON_COMBINED_1F1B_H

#include "nn/megatron/schedule_plan.h"

struct me_trainer;

/** Plans of micro-batches between forward and backward, by chunk; of the
 *  engine. */
typedef struct me_combined {
    struct me_trainer *t;
    struct me_flight **first;  /**< the oldest of each chunk */
    struct me_flight **last;   /**< the newest */
    struct me_flight **unused; /**< done with */
} me_combined;

typedef struct me_combined_forward {
    int32_t chunk; /**< -1: no forward */
    int32_t microbatch;
    me_tensor *input;      /**< what the previous stage sent; NULL: first */
    me_tensor *output;     /**< set: the loss or hidden states; the caller's */
    me_tensor *num_tokens; /**< set: on the last stage; the caller's */
} me_combined_forward;

typedef struct me_combined_backward {
    int32_t chunk; /**< -1: no backward */
    int32_t microbatch;
    me_tensor *input; /**< of its forward; borrowed, as those below */
    me_tensor *output;
    me_tensor *gradient;   /**< NULL on the last stage */
    me_tensor *input_grad; /**< set: the caller's; NULL on the first stage */
} me_combined_backward;

/** Does the job run so? */
bool me_is_combined(const struct me_trainer *t);

/** @return false after a failure, which is the engine's */
bool me_combined_init(struct me_trainer *t, me_combined *combined);

/** A forward @p f and a backward @p b in turns, or one of them. */
void me_combined_step(me_combined *s, me_combined_forward *f,
                      me_combined_backward *b, const me_plan_hooks *hooks);

/** As many micro-batches of each chunk were told and not run (rounds.h): those
 *  between forward and backward are later ones. */
void me_combined_advance(me_combined *s, int32_t microbatches);

#endif /* MEMEST_TRAIN_MEGATRON_COMBINED_1F1B_H */
