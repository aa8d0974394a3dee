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

/** What a rank's program is made from; read-only while it runs. */
typedef struct me_torch_spec {
    const me_config *config;     /**< the job; borrowed */
    me_pipeline pipeline;        /**< ranks, micro-batches, chunks */
    const me_schedule *schedule; /**< of a pipeline without an order: GPipe or
                                      1F1B; else NULL */
    const me_pipeline_order *order; /**< of a pipeline, with all that its
                                         runtime does; borrowed; NULL: none */
    int32_t iterations;             /**< to run */
} me_torch_spec;

/**
 * Run the program on @p e, which tells its observers. Set-up is iteration -1.
 *
 * @return the engine's status; a failure's reason is the engine's
 */
me_status me_torch_run(me_engine *e, const me_torch_spec *spec,
                       const me_communicators *comm);

#endif /* MEMEST_TRAIN_TORCH_TORCH_H */
