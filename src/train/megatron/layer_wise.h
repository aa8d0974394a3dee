/**
 * @file
 * LayerWiseDistributedOptimizer (core/optimizer/layer_wise_optimizer.py):
 * parameters of all optimizers are dealt out to the data-parallel ranks by size,
 * and gathered again after a step. Another way, a layout of the buffers in which
 * parameters are kept whole, is get_model()'s of training.py; pretrain_gpt.py's
 * models are wrapped by models/dist_utils.py, which makes none.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_MEGATRON_LAYER_WISE_H
#define MEMEST_TRAIN_MEGATRON_LAYER_WISE_H

#include <stdint.h>

struct me_trainer;

/** _shard_params_ping_pong(): the optimizers, which have collected all parameters,
 *  keep those of this rank. Nothing for one rank. */
void me_layer_wise_deal(struct me_trainer *t);

/** allgather_params(), after a step of all of them. */
void me_layer_wise_gather(struct me_trainer *t);

/** The same with overlap_param_gather, bucket by bucket: at the beginning of a
 *  chunk's first forward after a step. Megatron-LM gathers the third bucket and
 *  those after it when the forward arrives at the one before. */
void me_layer_wise_gather_chunk(struct me_trainer *t, int32_t chunk);

#endif /* MEMEST_TRAIN_MEGATRON_LAYER_WISE_H */
