/**
 * @file
 * Hooks for whoever watches a program as PyTorch's own tools do: forward hooks
 * of all modules, hooks of tensors, the end of a backward, what fully_shard
 * does around a module, and memory of the host that operations take.
 *
 * Nothing is told, and nothing is kept, while nobody has asked.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TENSOR_HOOKS_H
#define MEMEST_TENSOR_HOOKS_H

#include "tensor/autograd.h"

/** Moments around FSDPState's and FSDPParamGroup's hooks of one module. */
typedef enum me_shard_moment {
    ME_SHARD_BEFORE_PRE_FORWARD,
    ME_SHARD_AFTER_PRE_FORWARD,
    ME_SHARD_BEFORE_POST_FORWARD,
    ME_SHARD_AFTER_POST_FORWARD,
    ME_SHARD_BEFORE_PRE_BACKWARD,
    ME_SHARD_AFTER_PRE_BACKWARD,
    ME_SHARD_BEFORE_POST_BACKWARD,
    ME_SHARD_AFTER_POST_BACKWARD
} me_shard_moment;

/** What a tensor is to fully_shard. */
typedef enum me_shard_role {
    ME_SHARD_UNSHARDED_PARAMETER,
    ME_SHARD_UNSHARDED_GRADIENT,
    ME_SHARD_SHARDED_GRADIENT,
    ME_SHARD_GATHERED,      /**< output of an all-gather */
    ME_SHARD_REDUCE_SCATTER /**< input of a reduce-scatter */
} me_shard_role;

/** An operation that PyTorch's dispatcher has seen, views too. */
typedef struct me_operation {
    const char *name; /**< there, as "addmm.default"; static */
    me_tensors arguments;
    me_tensors results;  /**< of one in place, what it has changed */
    uint64_t more_bytes; /**< of arguments and results that are no tensors
                              here: an optimizer's lists, the host's numbers */
    uint64_t flops;      /**< of products, two for a multiplication and its
                              addition; 0 of others */
} me_operation;

/** A collective of torch.distributed that PyTorch's dispatcher has seen. */
typedef struct me_collective_op {
    const char *name; /**< there, as "c10d.allreduce_.default"; static */
    me_group_kind group;
    int32_t group_size;
    int32_t peer;   /**< the other side or the root, by its place in the group;
                         or -1 */
    bool has_bytes; /**< false: it only waits */
    uint64_t bytes; /**< of storages, as PyTorch's tools count them */
} me_collective_op;

/** Who is told; tensors are borrowed, a function may be NULL. */
typedef struct me_hooks {
    /** Before the forward of any module but lists, before its own hooks. */
    void (*pre_forward)(void *self, me_module_id module, me_tensor *x);
    /** After it; runs as well where a recomputation was stopped inside. @p y
     *  may then be the engine's empty tensor. */
    void (*post_forward)(void *self, me_module_id module, me_tensor *y);
    /** All nodes of a backward have run. */
    void (*end_backward)(void *self);
    void (*shard_moment)(void *self, me_module_id module,
                         me_shard_moment moment);
    void (*shard_role)(void *self, const me_tensor *x, me_shard_role role);
    /** An operation has ended; borrowed. */
    void (*operation)(void *self, const me_operation *operation);
    /** An operation saves @p x for its backward: what the pack hook of
     *  `torch.autograd.graph.saved_tensors_hooks` gets. */
    void (*saved)(void *self, const me_tensor *x);
    /** PyTorch's own code asks for the device of @p x, which of a fake tensor is
     *  an operation (`prim.device`) that modes of the dispatcher see, between
     *  those that operation() is told. */
    void (*device_query)(void *self, const me_tensor *x);
    /** A collective begins; borrowed. */
    void (*collective)(void *self, const me_collective_op *collective);
    /** `register_optimizer_step_pre_hook()` and its post hook: an optimizer's
     *  step begins, or has ended. */
    void (*optimizer_step)(void *self, bool begins);
    /** Memory of the host: @p bytes more, or less where negative. */
    void (*host_memory)(void *self, int64_t bytes);
    bool is_dispatch_mode; /**< it listens as a TorchDispatchMode does, under
                                which autograd adds no gradient in place */
    bool is_fake;          /**< it listens under FakeTensorMode, whose attention
                                has its random state on the device */
    void *self;
} me_hooks;

enum {
    ME_MAX_HOOKS = 4
};

/** Tell @p hooks from now on, after those that came before; at most
 *  ME_MAX_HOOKS, else the engine fails. */
void me_engine_hook(me_engine *e, me_hooks hooks);

/** Is anybody told of anything? */
bool me_is_listened_to(const me_engine *e);

/** Does anybody listen under FakeTensorMode? */
bool me_is_fake(const me_engine *e);

/** Is a backward running, or a recomputation inside of one? */
bool me_is_backward(const me_engine *e);

/**
 * `x.register_hook()`: run a function once the gradient of @p x is complete,
 * before the operation that made @p x runs backward. Those of one tensor run in
 * the order they were made. Nothing happens where @p x needs no gradient.
 *
 * @param number  handed to the function
 * @return the node of a leaf, which keeps its hooks only while somebody holds it;
 *         the caller's, for me_node_release() once the graph has it. NULL for
 *         other tensors
 */
me_node *me_tensor_hook(me_engine *e, me_tensor *x,
                        void (*run)(void *self, uint32_t number), void *self,
                        uint32_t number);

/** `Node.register_prehook()`, and a tensor's hooks that look at its gradient: a
 *  node runs them in the order they were added. @p hook is borrowed until it is
 *  removed or the node has gone. */
void me_prehook_add(me_node *node, me_prehook *hook);

/** `handle.remove()`: the node's others stay. Nothing where it has none of it. */
void me_prehook_remove(me_node *node, const me_prehook *hook);

/** @name For modules, fully_shard, optimizers
 *  @{ */
void me_tell_pre_forward(me_engine *e, me_module_id module, me_tensor *x);
void me_tell_post_forward(me_engine *e, me_module_id module, me_tensor *y);
void me_tell_end_backward(me_engine *e);
void me_tell_shard_moment(me_engine *e, me_module_id module,
                          me_shard_moment moment);
void me_tell_shard_role(me_engine *e, const me_tensor *x, me_shard_role role);
void me_tell_operation(me_engine *e, const me_operation *operation);
/** The same of one that is no product. */
void me_tell_op(me_engine *e, const char *op, me_tensors arguments,
                me_tensors results);
/** The same of one whose tensors are none here, of @p bytes in all. */
void me_tell_op_of(me_engine *e, const char *op, uint64_t bytes);
void me_tell_saved(me_engine *e, const me_tensor *x);
void me_tell_device_query(me_engine *e, const me_tensor *x);
/** The same @p count times; x may be NULL, which is nothing. */
void me_tell_device_queries(me_engine *e, const me_tensor *x, uint32_t count);
void me_tell_collective(me_engine *e, const me_collective_op *collective);
void me_tell_optimizer_step(me_engine *e, bool begins);
void me_tell_host_memory(me_engine *e, int64_t bytes);
/** @} */

/** @name For the tape alone
 *  @{ */
/** Run a node's hooks, in their order. */
void me_node_hooks_run(me_node *node);
/** A node has gone: its hooks are free. */
void me_node_hooks_free(me_engine *e, me_node *node);
/** Tell a node's prehooks, in their order, of its outputs' gradients @p gy. */
void me_prehooks_run(me_engine *e, const me_node *node, me_tensor *const *gy);
/** @} */

#endif /* MEMEST_TENSOR_HOOKS_H */
