/**
 * @file
 * A training loop of plain PyTorch on one rank: a model of torch.nn's layers,
 * an optimizer of torch.optim, and around them nothing,
 * DistributedDataParallel, fully_shard or torch.distributed.pipelining.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_TORCH_TORCH_H
#define MEMEST_TRAIN_TORCH_TORCH_H

#include "model/choices.h"
#include "model/layer.h"
#include "nn/nn.h"
#include "parallel/pipeline_order.h"
#include "tensor/autocast.h"
#include "train/fsdp/fsdp.h"

/** DistributedDataParallel's arguments. */
typedef struct me_ddp_config {
    bool is_replicate;     /**< replicate(), made in the first forward */
    uint64_t bucket_bytes; /**< bucket_cap_mb; 0: 25 MiB, the first one 1 MiB */
    bool gradient_as_bucket_view;
    bool finds_unused_parameters;
    bool is_static_graph;
    bool broadcasts_buffers;
    bool has_no_sync; /**< passes before a step, but for the last, run in
                           no_sync() */
} me_ddp_config;

/** What a rank's program is made from; read-only while it runs. */
typedef struct me_torch_config {
    const me_layer_tree *tree; /**< borrowed */
    const me_forward *loss;    /**< of y and target; borrowed */
    const char *called_module; /**< path of what the loop calls, "": the
                                    model; borrowed */
    me_torch_target target;
    me_sdpa_backend attention;
    me_autocast_state autocast; /**< of the forward and the loss */
    bool autocasts_step;        /**< and of a pipeline's whole step */
    bool scales_gradients;      /**< with a GradScaler */
    bool clips_gradients;       /**< clip_grad_norm_() before each step */
    me_shape input_shape;       /**< of one micro-batch */
    me_dtype input_dtype;
    bool keeps_output;      /**< through the backward */
    bool keeps_last_output; /**< until the next one is there */
    bool is_loss_parallel;  /**< the loop runs in loss_parallel() */
    me_data_parallel data_parallel;
    me_fully_shard_config fully_shard;
    me_ddp_config ddp;
    bool returns_outputs; /**< a pipeline's step, of all micro-batches */
    bool unshards_stages; /**< of a pipeline, ahead of their use (UNSHARD) */
    me_pipeline pipeline; /**< ranks, micro-batches, chunks */
    const me_schedule *schedule; /**< of a pipeline without an order: GPipe or
                                      1F1B; else NULL */
    const me_pipeline_order *order; /**< of a pipeline, with all that its
                                         runtime does; borrowed; NULL: none */
    me_optimizer_kind optimizer;
    me_optimizer_impl optimizer_impl;
    bool decays_weights;
    bool adds_decay;     /**< Adam's: to gradients; AdamW scales parameters */
    bool has_momentum;   /**< of SGD */
    bool keeps_zeros;    /**< zero_grad(set_to_none=False) */
    bool is_distributed; /**< there is a process group */
    int32_t iterations;
} me_torch_config;

/**
 * Run the program on @p e, which tells its observers. Set-up is iteration -1.
 *
 * @return the engine's status; a failure's reason is the engine's
 */
me_status me_torch_run(me_engine *e, const me_torch_config *config,
                       const me_communicators *comm);

#endif /* MEMEST_TRAIN_TORCH_TORCH_H */
