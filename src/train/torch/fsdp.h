/**
 * @file
 * FSDP2, `fully_shard` (torch/distributed/fsdp/_fully_shard, PyTorch 2.11): each
 * wrapped module's parameters are one group, gathered before its forward and
 * its backward, and sharded again after them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_TORCH_FSDP_H
#define MEMEST_TRAIN_TORCH_FSDP_H

#include "tensor/autograd.h"
#include "train/torch/loop.h"

/** Wraps the modules that are marked, in order, and then the model. */
extern const me_wrapper me_fsdp_wrapper_row;

/** A parameter of a group. */
typedef struct me_fsdp_param {
    me_parameter *parameter; /**< whose tensor is one of the two */
    me_tensor *sharded;      /**< this rank's rows; owned */
    me_tensor *unsharded;    /**< all rows, with a block while they are needed;
                                  owned, NULL until first gathered */
    me_tensor *accumulated;  /**< the gradient of passes that reduced nothing,
                                  in the dtype of the reduction; owned */
    uint64_t shard_numel;    /**< padded */
} me_fsdp_param;

typedef struct me_fsdp me_fsdp;

/** FSDPParamGroup. */
typedef struct me_fsdp_group {
    me_fsdp *fsdp;
    me_layer *layer;
    me_fsdp_param *params;
    uint32_t n_params;
    uint64_t shard_numel; /**< of all parameters */
    bool is_unsharded;
    bool is_alone; /**< one rank has the whole, and parameters wait to be
                        copied without a gather */
    bool has_run_backward; /**< its gradients are reduced, in this backward */
    me_tensor *gathered;   /**< of a gather that is not waited for; owned */
    me_tensor *partial; /**< reduced over shards, not yet over copies; owned */
    me_tensor *all_reduced; /**< until the backward ends (AllReduceState) */
    me_prehook pre_backward;
    me_layer_hooks hooks;
} me_fsdp_group;

/** FSDPCommContext and FSDPState of the root. */
struct me_fsdp {
    me_loop *loop;
    me_fsdp_group *groups; /**< the root's is the last */
    uint32_t n_groups;
    me_fsdp_group **post_forward_order;
    uint32_t n_post_forward;
    me_tensor *last_gathered; /**< of the forward; owned */
    me_tensor *reduce_input;  /**< of the group before; owned */
};

/** @name A group's steps (fsdp_group.c)
 *  @{ */
/** Shards in the place of whole parameters, which go. */
void me_fsdp_group_shard(me_fsdp_group *group);
/** Issue the all-gather, unless it is issued or the group is unsharded. */
void me_fsdp_group_unshard(me_fsdp_group *group);
/** Wait for it and copy out. @return the gathered tensor, the caller's; NULL if
 *  there was nothing to wait for */
me_tensor *me_fsdp_group_wait(me_fsdp_group *group);
/** Whole parameters give their blocks back. */
void me_fsdp_group_reshard(me_fsdp_group *group);
/** @} */

/** @name What becomes of its gradients (fsdp_reduce.c)
 *  @{ */
/** New gradients are added to those that were kept. */
void me_fsdp_group_accumulate(me_fsdp_group *group);
/** Gradients stay, in the dtype of the reduction, for a later pass
 *  (set_requires_gradient_sync(False)). */
void me_fsdp_group_keep_gradients(me_fsdp_group *group);
/** Gradients of DTensors come to lie as their parameters do. */
void me_fsdp_group_place_gradients(me_fsdp_group *group);
/** Reduce-scatter the gradients, and all-reduce shards that have copies. */
void me_fsdp_group_reduce(me_fsdp_group *group);

/** @} */

/** @name For the two files
 *  @{ */
enum {
    ME_FSDP_COPY_BYTES = 2048 /**< that a block of the copy kernels handles
                                   (aten/native/cuda/TensorShape.cu) */
};

/** Ranks that share the shards. */
uint64_t me_fsdp_ranks(const me_fsdp_group *group);
/** Of the shards. */
me_dtype me_fsdp_original_dtype(const me_fsdp_group *group);
/** Of gathered parameters. */
me_dtype me_fsdp_param_dtype(const me_fsdp_group *group);
/** Tell of a collective over one shard of the group. */
void me_fsdp_tell(me_fsdp_group *group, me_group_kind ranks, me_collective kind,
                  me_dtype dtype);
/** A flat tensor on a stream of FSDP's, the caller's. */
me_tensor *me_fsdp_flat(me_fsdp_group *group, const char *op, uint8_t stream,
                        me_dtype dtype, uint64_t numel);
/** Scratch of a kernel. */
void me_fsdp_blip(me_engine *e, const char *op, uint64_t bytes);
/** @} */

#endif /* MEMEST_TRAIN_TORCH_FSDP_H */
