/**
 * @file
 * Megatron-LM's training of a GPT model on one rank: from the end of its
 * initialisation to the end of the last iteration (training/training.py,
 * core/pipeline_parallel, core/distributed, core/optimizer at core_v0.19.0).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_MEGATRON_MEGATRON_H
#define MEMEST_TRAIN_MEGATRON_MEGATRON_H

#include "base/model.h"
#include "nn/gpt.h"
#include "parallel/pipeline_order.h"
#include "train/fsdp/fsdp.h"

/** Who is told where ranks of a tensor group do not do the same: between its
 *  beginning and its end each makes scalars that live side by side and go, some
 *  ranks more of them than others. */
typedef struct me_unlike {
    void (*tell)(void *self, bool begins); /**< NULL: nobody */
    void *self;
} me_unlike;

/** What a rank's program is made from; read-only while it runs. */
typedef struct me_megatron_config {
    me_transformer_config model;
    const me_gpt_spec *chunks; /**< n_chunks of them, borrowed */
    int32_t n_chunks;
    me_pipeline pipeline;           /**< ranks, micro-batches, chunks */
    const me_pipeline_order *order; /**< with sends and receives; borrowed;
                                         NULL: Megatron's own schedule */
    bool create_attention_mask;     /**< in the data loader */
    bool check_for_nan;             /**< in loss and gradients */
    bool has_dynamic_loss_scale;    /**< of float16: the first steps overflow */
    me_dtype grad_dtype;            /**< of the gradient buffer */
    me_optimizer_kind optimizer;
    bool distributed_optimizer;
    bool torch_fsdp2; /**< in place of DDP; with the next */
    me_fully_shard_config fully_shard;
    bool overlap_grad_reduce;
    bool overlap_param_gather;
    bool overlap_param_gather_with_step; /**< of the first chunk, which has an
                                              optimizer and a bucket of its own */
    bool align_grad_reduce;              /**< stages begin to reduce together */
    bool overlap_p2p_comm;               /**< of the interleaved schedule */
    bool overlap_p2p_comm_warmup_flush;  /**< its first and last steps too */
    uint64_t ddp_num_buckets;            /**< 0: ddp_bucket_size counts */
    uint64_t ddp_bucket_size;            /**< elements, 0: Megatron's default */
    bool pads_buckets;                   /**< for high NCCL bus bandwidth */
    bool clips_gradients;                /**< clip-grad above 0 */
    bool decays_weights;                 /**< weight-decay above 0 */
    bool has_momentum;                   /**< of SGD */
    int32_t iterations;                  /**< to run */
    bool runs_all_rounds; /**< micro-batches that repeat are run as well */
    bool *must_run_all; /**< set where they turn out not to repeat; borrowed */
    me_unlike unlike;
} me_megatron_config;

/**
 * Run the program on @p e, which tells its observers. Set-up is iteration -1.
 *
 * @return the engine's status; a failure's reason is the engine's
 */
me_status me_megatron_run(me_engine *e, const me_megatron_config *config,
                          const me_communicators *comm);

/**
 * Number the data-parallel ranks (context included) of the rank's stage by
 * what they own under the distributed optimizer: ranks with the same number
 * step the same parts of the same parameters, so that their programs are
 * equal. Builds the model on @p e, which must be new.
 *
 * @param expert_index  of each member of the group, its place in its expert
 *                      data-parallel group
 * @param class_out     a number for each member of the group, from 0 on
 * @return the engine's status
 */
me_status me_megatron_shard_classes(me_engine *e,
                                    const me_megatron_config *config,
                                    const me_communicators *comm,
                                    const int32_t *expert_index,
                                    int32_t *class_out);

#endif /* MEMEST_TRAIN_MEGATRON_MEGATRON_H */
