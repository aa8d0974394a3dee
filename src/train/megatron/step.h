/**
 * @file
 * Forward and backward of one micro-batch (forward_step() and backward_step() of
 * core/pipeline_parallel/schedules.py).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_MEGATRON_STEP_H
#define MEMEST_TRAIN_MEGATRON_STEP_H

#include "nn/megatron/gpt.h"
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
/** @name Parts of a forward, for schedules that run them apart
 *  @{ */
/** A micro-batch for a stage, variables of the running frame; what the stage has
 *  no use for goes at once. */
void me_get_batch(struct me_trainer *t, const me_gpt_spec *stage,
                  me_batch *batch);
/** forward_step_calc_loss(): the mean over tokens and micro-batches, or (loss per
 *  token) the sum over tokens, which finalize_model_grads() divides.
 *  @param num_tokens  owned by the caller */
me_tensor *me_calculate_loss(struct me_trainer *t, me_tensor *losses,
                             me_tensor *loss_mask, me_tensor **num_tokens);
/** Scales of the gradients of auxiliary losses. */
void me_set_loss_scales(struct me_trainer *t);
/** The loss times the loss scale, a tensor of one element. */
me_tensor *me_scale_loss(struct me_trainer *t, me_tensor *loss);
/** fwdK_begin and fwdK_end around the K-th forward of iteration 1. */
void me_forward_point(struct me_trainer *t, const char *what);
/** @} */

/** Name of a point of the forward that runs, for the engine's life. */
const char *me_forward_name(struct me_trainer *t, const char *what);
/** deallocate_output_tensor(): one element takes the data's place. */
void me_deallocate_output(struct me_trainer *t, me_tensor *output);

#endif /* MEMEST_TRAIN_MEGATRON_STEP_H */
