/**
 * @file
 * What stands around the chunks of a rank and spreads them over the ranks of a
 * batch: Megatron-LM's `DP` of get_model(), one row a class. Every member is
 * there unless it says otherwise.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_MEGATRON_MODEL_WRAPPER_H
#define MEMEST_TRAIN_MEGATRON_MODEL_WRAPPER_H

#include "nn/nn.h"

struct me_trainer;

typedef struct me_model_wrapper {
    /** Chunks that are built go to the device, become half precision and are
     *  wrapped; in which order is the class's. */
    void (*wrap)(struct me_trainer *t);
    /** zero_grad_buffer(): a new iteration; NULL: nothing. */
    void (*zero_grad_buffer)(struct me_trainer *t);
    /** start_grad_sync() of a chunk, told by a schedule; NULL: as the next. */
    void (*start_grad_sync)(struct me_trainer *t, int32_t chunk);
    /** finish_grad_sync() of a chunk, which may have been told to begin; NULL:
     *  nothing. */
    void (*finish_grad_sync)(struct me_trainer *t, int32_t chunk);
    /** At the beginning and the end of each backward; NULL: nothing. */
    void (*begin_backward)(struct me_trainer *t);
    void (*end_backward)(struct me_trainer *t);
    /** _allreduce_non_tensor_model_parallel_grads(): the sum over tensor ranks
     * of those gradients that each has a part of, @p numel elements in all. */
    void (*reduce_partial_gradients)(struct me_trainer *t, uint64_t numel);
    /** Elements of a parameter that are this rank's; NULL: parameters are
     * whole, and their gradients lie in buffers. */
    uint64_t (*local_numel)(const struct me_trainer *t, const me_parameter *p);
    /** start_param_sync(), after the optimizer's step; NULL: nothing. */
    void (*end_step)(struct me_trainer *t);
    /** scale_gradients() of a loss per token; NULL: in place. */
    void (*scale_gradients)(struct me_trainer *t);
    void (*fini)(struct me_trainer *t);
    bool has_own_main_parameters; /**< and gradients in their type: the
                                       optimizer makes none */
    bool has_one_optimizer;       /**< of experts and all others together, which
                                       no ChainedOptimizer steps */
    bool has_dtensors; /**< parameters and their gradients are DTensors: a
                            gradient is the parameter's own and a shard */
    bool can_repeat;   /**< actions may be repeated (repeat.h) */
} me_model_wrapper;

/** @name The classes (ddp.c, torch_fsdp2.c, megatron_fsdp.c)
 *  @{ */
extern const me_model_wrapper me_distributed_data_parallel;
extern const me_model_wrapper me_torch_fully_sharded_data_parallel;
extern const me_model_wrapper me_megatron_fully_sharded_data_parallel;
/** @} */

/** The class that a job's options ask for; static. */
const me_model_wrapper *me_model_wrapper_of(const me_config *config);

/** @name The members that may be missing
 *  @{ */
void me_zero_grad_buffer(struct me_trainer *t);
void me_start_grad_sync(struct me_trainer *t, int32_t chunk);
void me_finish_grad_sync(struct me_trainer *t, int32_t chunk);
void me_begin_backward(struct me_trainer *t);
void me_end_backward(struct me_trainer *t);
/** @} */

#endif /* MEMEST_TRAIN_MEGATRON_MODEL_WRAPPER_H */
