/**
 * @file
 * FSDP2, `fully_shard` (torch/distributed/fsdp/_fully_shard, PyTorch 2.11): each
 * wrapped module's parameters are one group, gathered before its forward and
 * its backward, and sharded again after them. A training loop wraps modules,
 * gives each the hooks of its group, and says when a backward has ended.
 *
 * On a mesh of two dimensions (HSDP) the ranks of one share the shards, and
 * those of the other have copies of them. Left out: sharding along another
 * dimension than the first.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_FSDP_FSDP_H
#define MEMEST_TRAIN_FSDP_FSDP_H

#include "nn/module_hooks.h"
#include "nn/nn.h"
#include "tensor/hooks.h"

/** fully_shard()'s arguments. */
typedef struct me_fully_shard_config {
    bool reshard_after_forward;
    bool has_param_dtype; /**< MixedPrecisionPolicy's */
    me_dtype param_dtype;
    bool has_reduce_dtype;
    me_dtype reduce_dtype;
    bool syncs_last;       /**< of passes before a step only the last reduces:
                                set_requires_gradient_sync() */
    bool all_reduces_last; /**< likewise over copies of the shards:
                                set_requires_all_reduce() */
    bool offloads;    /**< CPUOffloadPolicy: shards, their gradients and the
                                optimizer's state are the host's */
    bool pins_memory; /**< its pin_memory */
} me_fully_shard_config;

/** What fully_shard() is called with, for all modules of a model. */
typedef struct me_fully_shard_spec {
    me_nn *nn;           /**< whose parameters are sharded; borrowed */
    me_group_kind group; /**< of the ranks that share the shards */
    bool has_copies;     /**< HSDP: `copies` have the same shards */
    me_group_kind copies;
    const bool *is_last_pass; /**< of those before a step, as it changes;
                                   borrowed; NULL: each is */
    const me_fully_shard_config *config; /**< borrowed */
    uint32_t n_modules;                  /**< that are wrapped, at most */
    bool is_meta;  /**< the model is on the meta device, and its shards are what
                        to_empty() gives memory to */
    bool is_stage; /**< of a pipeline: passes leave parameters whole and reduce
                        nothing until me_fsdp_reduce() */
} me_fully_shard_spec;

/** A parameter of a group. */
typedef struct me_fsdp_param {
    me_parameter *parameter; /**< whose tensor is one of the two */
    me_tensor *sharded;      /**< this rank's rows, without a block if they are
                                  the host's; owned */
    me_tensor *copied;       /**< of these on the device, while a gather is
                                  issued; owned */
    me_tensor *gathered;     /**< all ranks' rows and what pads them, with a
                                  block while they are needed; owned, NULL until
                                  first gathered */
    me_tensor *unsharded;    /**< of these the parameter's own; owned */
    me_tensor *accumulated;  /**< the gradient of passes that reduced nothing,
                                  in the dtype of the reduction; owned */
    uint64_t shard_numel;    /**< padded */
    bool has_host_gradient;  /**< the host has held one */
} me_fsdp_param;

/** TrainingState. */
typedef enum me_fsdp_state {
    ME_FSDP_IDLE,
    ME_FSDP_FORWARD,
    ME_FSDP_PRE_BACKWARD,
    ME_FSDP_POST_BACKWARD
} me_fsdp_state;

typedef struct me_fsdp me_fsdp;
typedef struct me_fsdp_group me_fsdp_group;

/** FSDPState of a module and its FSDPParamGroup. */
struct me_fsdp_group {
    me_fsdp *fsdp;
    me_module_id module;
    me_fsdp_param *params;
    uint32_t n_params;
    me_fsdp_param **with_grad; /**< room for what a reduction takes */
    uint64_t shard_numel;      /**< of all parameters, padded */
    me_fsdp_state state;
    bool is_in_backward; /**< the module's own state is PRE_BACKWARD */
    bool is_unsharded;
    bool keeps_unsharded;       /**< fully_shard(reshard_after_forward=False) */
    bool has_backward_prefetch; /**< set_modules_to_backward_prefetch() */
    me_fsdp_group *backward_prefetch; /**< NULL: a module without parameters */
    bool is_pending;                  /**< a gather that is not waited for */
    me_tensor *gathered; /**< its output; owned; NULL among one rank */
    me_tensor *partial;  /**< reduced over shards, not yet over copies; owned */
    me_tensor *all_reduced; /**< until the backward ends (AllReduceState) */
    me_module_hooks hooks;  /**< the module's */
};

/** One use of a group in the forward. */
typedef struct me_fsdp_use {
    me_fsdp_group *group;
    bool is_popped; /**< its backward has prefetched */
} me_fsdp_use;

/** FSDPStateContext and FSDPCommContext. */
struct me_fsdp {
    me_fully_shard_spec spec;
    me_fsdp_group *groups; /**< in the order of wrapping: the root's is last */
    uint32_t n_groups;
    me_fsdp_group **all_states; /**< in the order of modules; once a forward
                                          has run the root's alone */
    uint32_t n_states;
    const me_fsdp_group
        *root; /**< the first whose forward ran; NULL: none has */
    me_fsdp_use *post_forward_order; /**< owned */
    uint32_t n_uses;
    uint32_t uses_capacity;
    me_fsdp_group *forward_root; /**< whose forward runs; NULL: none */
    me_tensor *last_gathered;    /**< of the forward; owned */
    me_tensor *reduce_input;     /**< of the group before; owned */
    bool is_reducing;            /**< me_fsdp_reduce() runs */
    bool is_callback_queued;     /**< a backward has come to a group: the end of
                                      its run calls me_fsdp_end_backward() */
};

/**
 * Room for the groups of a model.
 *
 * @return the engine's memory, to be emptied with me_fsdp_fini(); NULL after a
 *         failure of the engine
 */
me_fsdp *me_fsdp_create(const me_fully_shard_spec *spec);

/**
 * fully_shard(@p module): its parameters that no other group has, in the order
 * of registration, move to the device and are sharded on the running stream.
 * The model itself is wrapped last.
 *
 * @return the group, whose hooks the module gets; NULL after a failure of the
 *         engine
 */
me_fsdp_group *me_fsdp_wrap(me_fsdp *fsdp, me_module_id module);

/** FSDPModule.set_modules_to_backward_prefetch() of one module; @p other may be
 *  NULL, which stands for one that has no parameters. */
void me_fsdp_set_backward_prefetch(me_fsdp_group *group, me_fsdp_group *other);

/** The end-of-backward callback of the root. */
void me_fsdp_end_backward(me_fsdp *fsdp);

/** @name What a pipeline's runtime does with the groups of a stage
 *  (torch/distributed/pipelining), in the order of modules
 *  @{ */
/** UNSHARD: issue all gathers that are not. */
void me_fsdp_unshard(me_fsdp *fsdp);
/** Wait for what me_fsdp_unshard() has issued. */
void me_fsdp_wait(me_fsdp *fsdp);
/** RESHARD: whole parameters give their blocks back. */
void me_fsdp_reshard(me_fsdp *fsdp);
/** REDUCE_GRAD: reduce the gradients of all passes, which ends them. */
void me_fsdp_reduce(me_fsdp *fsdp);
/** @} */

/** Let go of everything; NULL is allowed. */
void me_fsdp_fini(me_fsdp *fsdp);

/** Rows of a parameter of @p rows rows on the rank in place @p index of
 *  @p ranks, as torch.chunk() cuts them. */
uint64_t me_fsdp_local_rows(uint64_t rows, uint64_t ranks, uint64_t index);

/** Whoever watches is told; of modules that have parameters of their own. */
void me_fsdp_tell(const me_fsdp_group *group, me_shard_moment moment);

/** @name A group's steps (group.c)
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
/** post_backward(): reshard, and reduce-scatter the gradients there are, or keep
 *  them for a later pass (reduce.c). */
void me_fsdp_group_post_backward(me_fsdp_group *group);
/** @} */

#endif /* MEMEST_TRAIN_FSDP_FSDP_H */
