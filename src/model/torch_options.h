/**
 * @file
 * What a plain PyTorch job says besides its model, as every stage reads it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_MODEL_TORCH_OPTIONS_H
#define MEMEST_MODEL_TORCH_OPTIONS_H

#include "model/choices.h"
#include "model/dtype.h"
#include "model/layer.h"

#include <stdbool.h>
#include <stdint.h>

/** What plain PyTorch jobs say besides their model. */
typedef struct me_torch_options {
    char model_name[64];  /**< of whoever wrote the tree; "": the user */
    char input_shape[64]; /**< "(8, 1024)": what one forward is given */
    me_dtype input_dtype;
    char loss[128]; /**< an expression of y and target */
    me_torch_target target;
    char called_module[128]; /**< path of what the loop calls; "": the model */
    bool keeps_output; /**< the loop names it: it lives through the backward */
    bool keeps_last_output; /**< and on, until the next one is there */
    bool
        loss_parallel; /**< cross_entropy of a DTensor that is cut in classes */
    me_sdpa_backend attention;
    int32_t autocast;       /**< dtype of forward and loss; -1: none */
    bool autocast_backward; /**< the context is around it as well */
    bool grad_scaler;
    me_data_parallel data_parallel;
    bool cpu_offload;           /**< fully_shard's CPUOffloadPolicy */
    bool pin_memory;            /**< its pin_memory */
    bool wrap_one_rank;         /**< also where a batch has one rank alone */
    bool reshard_after_forward; /**< fully_shard's */
    int32_t data_parallel_replicate; /**< HSDP: copies of the shards */
    int32_t data_parallel_shard;     /**< ranks of a copy; 0: what is left */
    int32_t num_microbatches;        /**< of a step, without a global batch */
    bool unshard_stages;             /**< of a pipeline, ahead of their use */
    bool returns_outputs;            /**< a pipeline's step does */
    bool replicate; /**< DDP is replicate()'s, made in the first forward */
    double bucket_cap_mb;         /**< DDP's, in MiB; 0: its default */
    uint64_t bucket_bytes;        /**< derived: the same */
    bool gradient_as_bucket_view; /**< DDP's, as the four below */
    bool find_unused_parameters;
    bool static_graph;
    bool broadcast_buffers;
    bool no_sync; /**< around the passes before a step, but for the last */
    bool zero_grad_set_to_none;
    bool requires_gradient_sync; /**< of every pass; else of the last */
    bool requires_all_reduce;    /**< likewise, over copies of shards */
    int32_t param_dtype;         /**< fully_shard's; -1: as they are */
    int32_t reduce_dtype;        /**< fully_shard's; -1: as they are */
} me_torch_options;

/** What is derived of a plain PyTorch job; borrowed from the job. */
typedef struct me_torch_job {
    const me_layer_tree *tree;
    const me_forward *loss;
    uint64_t input_dims[5]; /**< outermost first */
    int32_t n_input_dims;
} me_torch_job;

#endif /* MEMEST_MODEL_TORCH_OPTIONS_H */
