/**
 * @file
 * A job's optimizer, as every stage reads it: which it is, how it is spread over
 * ranks and what it keeps where.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_MODEL_OPTIMIZER_CONFIG_H
#define MEMEST_MODEL_OPTIMIZER_CONFIG_H

#include "model/choices.h"
#include "model/dtype.h"

#include <stdbool.h>
#include <stdint.h>

/** Does it step matrices of layers alone, beside another that steps the rest? */
bool me_is_emerging_optimizer(me_optimizer_kind kind);

/** Is it Muon or adaptive Muon? */
bool me_is_muon(me_optimizer_kind kind);

/** The group `optimizer` of the options. */
typedef struct me_optimizer_config {
    me_optimizer_kind kind;
    bool distributed;      /**< --use-distributed-optimizer */
    int32_t num_instances; /**< of the distributed optimizer */
    bool overlap_grad_reduce;
    bool overlap_param_gather;
    bool overlap_param_gather_with_optimizer_step; /**< of the first chunk */
    bool align_grad_reduce;   /**< stages begin to reduce together */
    uint64_t ddp_bucket_size; /**< elements; 0: Megatron's default */
    uint64_t ddp_num_buckets; /**< 0: as ddp_bucket_size says */
    bool ddp_pad_buckets_for_high_nccl_busbw;
    bool ddp_reduce_scatter_with_fp32_accumulation; /**< an all-to-all, then a
                                                         sum in float32 */
    bool saves_fully_reshardable; /**< a checkpoint, at the end */
    double clip_grad;             /**< 0: no clipping */
    double weight_decay;
    double sgd_momentum;
    bool muon_nesterov;
    bool muon_split_qkv; /**< queries, keys and values, each on its own */
    int32_t muon_num_ns_steps;
    me_matmul_precision muon_fp32_matmul_prec;
    me_muon_tp_mode muon_tp_mode;
    me_optimizer_kind muon_scalar_optimizer; /**< of what is no matrix */
    bool decoupled_lr; /**< word embeddings and output layer have their own */
    bool decoupled_min_lr;         /**< and its least */
    bool apply_wd_to_qk_layernorm; /**< weight decay of these vectors too */
    bool log_num_zeros_in_grad;
    bool precision_aware;       /**< FusedAdam holds main parameters, and each
                                     state in a type of its own */
    me_dtype main_grads_dtype;  /**< of precision_aware, as those below */
    me_dtype main_params_dtype; /**< float32: the low half of it */
    me_dtype exp_avg_dtype;     /**< uint8: FP8 */
    me_dtype exp_avg_sq_dtype;
    bool cpu_offload;        /**< of precision_aware: the host steps a part */
    double offload_fraction; /**< that part of the elements */
    bool overlap_cpu_optimizer_d2h_h2d; /**< on streams of their own */
    bool pin_cpu_grads;
} me_optimizer_config;

#endif /* MEMEST_MODEL_OPTIMIZER_CONFIG_H */
