/**
 * @file
 * finalize_model_grads() (core/distributed/finalize_model_grads.py): what is left
 * to reduce of the gradients once all backwards have run.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_MEGATRON_FINALIZE_H
#define MEMEST_TRAIN_MEGATRON_FINALIZE_H

#include "nn/nn.h"

struct me_trainer;

/** Gradients that each tensor rank has only a part of the sum of. */
bool me_gradient_is_partial(const struct me_trainer *t, const me_parameter *p);
/** finish_embedding_wgrad_compute(): the output layer's weight gradients that have
 *  waited for the flush. */
void me_finish_embedding_wgrad(struct me_trainer *t);

/** Fine-grained offloading's reset() at the end of an iteration's
 *  micro-batches; the first one tells all ranks what each offloads
 *  (offload_summary.c). */
void me_reset_offload(struct me_trainer *t);

/** finalize_model_grads(). */
void me_finalize_model_grads(struct me_trainer *t);

#endif /* MEMEST_TRAIN_MEGATRON_FINALIZE_H */
