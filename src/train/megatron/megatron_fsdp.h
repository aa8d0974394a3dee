/**
 * @file
 * Megatron-FSDP (core/distributed/fsdp, --use-megatron-fsdp): parameters lie in
 * buckets, of which ranks own equal parts of gradients, main parameters and,
 * under optim_grads_params, of the parameters themselves. There each transformer
 * layer is a unit, whose buckets are gathered before it runs and go after it;
 * buckets of what lies outside of units stay once they are gathered.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_MEGATRON_MEGATRON_FSDP_H
#define MEMEST_TRAIN_MEGATRON_MEGATRON_FSDP_H

#include "nn/module_hooks.h"
#include "nn/nn.h"
#include "parallel/fsdp_buckets.h"
#include "train/optim/optim.h"

struct me_trainer;

/** BucketStatus, of its parameters. */
typedef enum me_fsdp_status {
    ME_FSDP_EMPTY,     /**< without memory */
    ME_FSDP_PRESERVED, /**< with memory, and to be gathered again */
    ME_FSDP_GATHERED
} me_fsdp_status;

/** TrainingState of a module. */
typedef enum me_training_state {
    ME_TRAINING_IDLE,
    ME_TRAINING_FORWARD,
    ME_TRAINING_PRE_BACKWARD
} me_training_state;

/** A bucket and the buffers that belong to it; all tensors are owned. */
typedef struct me_fsdp_group_buffers {
    const me_fsdp_bucket *layout;
    uint64_t numel;      /**< of the whole bucket */
    me_group_kind group; /**< that shares it */
    uint64_t ranks;      /**< members of it */
    uint64_t instances; /**< that share a rank's part of the main parameters, 1:
                             each has all of it */
    uint32_t first;     /**< of the buckets that are gathered together */
    me_dtype dtype;     /**< of the parameters */
    me_tensor *shard;   /**< of the parameters, or all of them; NULL: the
                                parameters are where they were made */
    me_tensor *weights; /**< all, gathered; its storage may be empty; NULL:
                                `shard` has all */
    me_tensor *main;    /**< main parameters; NULL: none */
    me_tensor *sent;    /**< gradients in another type, between instances; NULL:
                          none now */
    me_tensor *gradients; /**< all, until they are reduced; NULL: none yet, or
                                the buffer of all buckets has them */
    me_fsdp_status status;
    bool can_be_released; /**< before the next bucket is gathered */
    uint32_t n_ready;     /**< gradients that are there */
    bool is_pooled;       /**< double buffers take the place of `weights` and
                         `gradients` */
    uint32_t place;       /**< among the buckets of its unit */
} me_fsdp_group_buffers;

enum {
    ME_FSDP_POOL_BUFFERS = 2 /**< UB_BUFFER_NUM */
};

/** A FixedPoolAllocator: two buffers for each bucket of a unit, which like units
 *  take in turns. */
typedef struct me_fsdp_pool {
    me_tensor *
        *buffers;    /**< two for each place in a unit; owned; NULL: none yet */
    int8_t *planned; /**< which of them a bucket got first; -1: none yet */
    int8_t *used;    /**< which it has; -1: none */
} me_fsdp_pool;

/** A module that has parameters of its own, or a unit. */
typedef struct me_fsdp_module {
    struct me_megatron_fsdp *fsdp;
    me_module_id module;
    bool is_unit;
    me_training_state state;
    me_module_hooks hooks;
} me_fsdp_module;

/** One rank's; memory is the engine's, tensors are owned. */
typedef struct me_megatron_fsdp {
    struct me_trainer *t;
    me_fsdp_buckets *layout; /**< owned */
    me_fsdp_group_buffers *buckets;
    uint32_t n_buckets;
    me_fsdp_module *modules;
    uint32_t n_modules;
    uint32_t *module_of; /**< each parameter's of these, by its index */
    uint32_t *bucket_of; /**< each parameter's bucket, by its index */
    uint32_t *item_of;   /**< and its place in the layout */
    bool *is_awaited;    /**< its gradient, in the backward that runs */
    bool *is_ready;      /**< its gradient is there to be reduced */
    bool *is_asked;      /**< scratch of a gather: which buckets */
    uint32_t *queue;     /**< buckets that are being reduced, oldest first */
    uint32_t n_queued;
    uint32_t most_queued;  /**< what `queue` has room for */
    uint32_t microbatches; /**< backwards since the last step */
    me_fsdp_pool weight_pool;
    me_fsdp_pool gradient_pool;
    uint64_t prefetch_numel; /**< gathered ahead of their use */
    uint64_t queue_numel;    /**< gradients that may wait for their reduction */
    me_tensor *gradients[3]; /**< of all buckets by type; owned */
    uint32_t *shard_of;      /**< each parameter's in the optimizer; UINT32_MAX:
                                  none */
} me_megatron_fsdp;

/** @name The layout (megatron_fsdp_layout.c)
 *  @{ */
/** Units, modules, buckets and what is derived from them. */
void me_megatron_fsdp_lay_out(me_megatron_fsdp *f);
/** Elements of a parameter that this rank owns. */
me_fsdp_slice me_megatron_fsdp_slice(const me_megatron_fsdp *f,
                                     const me_parameter *p);
/** Ranks own parts of the parameters, the main parameters, or the gradients. */
bool me_megatron_fsdp_shards_weights(const me_megatron_fsdp *f,
                                     const me_fsdp_group_buffers *b);
bool me_megatron_fsdp_shards_main(const me_megatron_fsdp *f,
                                  const me_fsdp_group_buffers *b);
bool me_megatron_fsdp_shards_gradients(const me_megatron_fsdp *f,
                                       const me_fsdp_group_buffers *b);
/** Are there several instances of the distributed optimizer, a hybrid? */
bool me_megatron_fsdp_has_instances(const me_megatron_fsdp *f);
/** The parameter of an item of the layout. */
me_parameter *me_megatron_fsdp_parameter(const me_megatron_fsdp *f,
                                         const me_fsdp_item *item);
/** @} */

/** @name Buffers and set-up (megatron_fsdp_build.c)
 *  @{ */
/** ParamAndGradBuffer.__init__(), on the side stream. */
void me_megatron_fsdp_build(me_megatron_fsdp *f);
/** `p.data = …`: a bucket's parameters lie in @p weights. */
void me_megatron_fsdp_point(me_megatron_fsdp *f, const me_fsdp_group_buffers *b,
                            const me_tensor *weights);
/** @} */

/** @name Double buffers (megatron_fsdp_pool.c)
 *  @{ */
/** Which buckets have them. */
void me_megatron_fsdp_make_pools(me_megatron_fsdp *f);
/** A buffer for a bucket, made when first needed; the bucket keeps the one that
 *  it has. @param is_strict  the same each time. @return the pool's */
me_tensor *me_fsdp_pool_take(me_megatron_fsdp *f, me_fsdp_pool *pool,
                             uint32_t bucket, me_dtype dtype, bool is_strict);
/** The bucket gives its buffer back. */
void me_fsdp_pool_give(me_fsdp_pool *pool, uint32_t bucket);
void me_fsdp_pool_fini(me_engine *e, const me_megatron_fsdp *f,
                       me_fsdp_pool *pool);
/** @} */

/** @name Gathering parameters (megatron_fsdp_gather.c)
 *  @{ */
/** Register the forward hooks. */
void me_megatron_fsdp_hook(me_megatron_fsdp *f);
/** _root_pre_backward(). */
void me_megatron_fsdp_begin_backward(me_megatron_fsdp *f);
/** AllGatherPipeline.reset(): units' buckets go, the others are to be gathered
 *  again. */
void me_megatron_fsdp_reset_gathers(me_megatron_fsdp *f);
/** start_param_sync(), after a step. */
void me_megatron_fsdp_start_param_sync(me_megatron_fsdp *f);
/** @} */

/** @name Reducing gradients (megatron_fsdp_reduce.c)
 *  @{ */
/** get_main_grad(): the bucket's gradients have memory. */
void me_megatron_fsdp_main_grad(void *self, const me_parameter *weight);
/** A parameter has got its gradient. */
void me_megatron_fsdp_on_grad(void *self, me_engine *e, me_tensor *tensor);
/** _root_post_backward(). */
void me_megatron_fsdp_end_backward(me_megatron_fsdp *f);
/** finish_grad_sync(). */
void me_megatron_fsdp_finish_grad_sync(me_megatron_fsdp *f);
/** update_main_grads(): this rank's gradients as the optimizer takes them. */
void me_megatron_fsdp_update_main_grads(me_megatron_fsdp *f);
/** zero_grad(): these go. */
void me_megatron_fsdp_zero_grad(me_megatron_fsdp *f);
/** @} */

#endif /* MEMEST_TRAIN_MEGATRON_MEGATRON_FSDP_H */
