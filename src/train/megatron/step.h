/**
 * @file
 * Forward and backward of one micro-batch (forward_step() and backward_step() of
 * core/pipeline_parallel/schedules.py).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_MEGATRON_STEP_H
#define MEMEST_TRAIN_MEGATRON_STEP_H

#include "nn/megatron/weight_gradients.h"
#include "tensor/tensor.h"

struct me_trainer;

/**
 * forward_step(): @p input is what the previous stage sent, or NULL.
 *
 * @param num_tokens_out  the micro-batch's token count on the last stage,
 *                        owned by the caller; NULL elsewhere
 * @return the loss or the hidden states, owned by the caller
 */
me_tensor *me_forward_step(struct me_trainer *t, int32_t chunk,
                           int32_t microbatch, me_tensor *input,
                           me_tensor **num_tokens_out);
/**
 * backward_step(): the loss is scaled, and @p output is replaced by it.
 *
 * @param output    owned by the caller, replaced on the last stage
 * @param gradient  of the output; NULL on the last stage
 */
void me_backward_step(struct me_trainer *t, int32_t chunk, int32_t microbatch,
                      me_tensor **output, me_tensor *gradient);
/** weight_backward(): the gradients of the weights that a backward of inputs
 *  left for later. */
void me_weight_step(struct me_trainer *t, int32_t chunk, int32_t microbatch,
                    me_weight_gradients *weights);
/** Name of a point of the forward that runs, for the engine's life. */
const char *me_forward_name(struct me_trainer *t, const char *what);
/** deallocate_output_tensor(): one element takes the data's place. */
void me_deallocate_output(struct me_trainer *t, me_tensor *output);

#endif /* MEMEST_TRAIN_MEGATRON_STEP_H */
