/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/optim/optim.h"

#include "base/alloc.h"
#include "base/size.h"
#include "nn/dtensor.h"
#include "tensor/hooks.h"
#include "tensor/launch.h"

/** State of one shard that lives from now on. */
static me_tensor *make_state(me_engine *e, const char *op, me_dtype dtype,
                             me_shape shape)
{
    const me_frame frame = me_enter(e);
    const me_category before = me_category_set(e, ME_CATEGORY_OPTIMIZER_STATE);
    me_tensor *x = me_retain(me_empty(e, op, dtype, shape));
    me_category_set(e, before);
    me_leave(e, frame, NULL);
    return x;
}

/** A list with one temporary a shard; me_temporaries_free() lets it go. */
static me_tensor **make_temporaries(me_engine *e, const char *op,
                                    const me_step_group *group)
{
    me_tensor **list =
        me_alloc(group->count, sizeof(me_tensor *), "optim.temporaries");
    if (list == NULL) {
        me_engine_fail(e, ME_ERR_NOMEM, "no host memory for a step");
        return NULL;
    }
    for (uint32_t i = 0; i < group->count; i++) {
        const me_frame frame = me_enter(e);
        me_module_switch(e, group->shards[i].parameter->module);
        list[i] = me_retain(me_empty(e, op, group->shards[i].dtype,
                                     ME_SHAPE(group->shards[i].numel)));
        me_leave(e, frame, NULL);
    }
    return list;
}

/** The last one goes first. */
static void free_temporaries(me_engine *e, const me_step_group *group,
                             me_tensor **list)
{
    for (uint32_t i = group->count; list != NULL && i > 0; i--) {
        me_release(e, list[i - 1]);
    }
    me_free(list);
}

/** What an operation over DTensors redistributes. */
typedef enum operand {
    OPERAND_GRADIENT, /**< what lies otherwise than the parameter does */
    OPERAND_SUMMAND,  /**< what is a summand on each rank, alone: no parameter
                           takes part */
} operand;

/** Does a gradient lie so that an operation redistributes it? */
static bool lies_otherwise(const me_step_group *group, uint32_t i, operand kind)
{
    const me_parameter *p = group->shards[i].parameter;
    return group->nn != NULL && p->layout != p->gradient_layout &&
           p->tensor->grad != NULL &&
           (kind == OPERAND_GRADIENT ||
            p->gradient_layout == ME_DLAYOUT_PARTIAL);
}

/**
 * Operations that take the gradients of DTensors of shards [@p first, @p end)
 * as @p uses of their operands: each redistributes those that lie otherwise
 * than their parameters, and lets them go after it, the last one first.
 */
static void redistribute(me_engine *e, const me_step_group *group,
                         uint32_t first, uint32_t end, uint32_t uses,
                         operand kind)
{
    const size_t room = (size_t)(end - first) * uses;
    me_tensor **copies =
        me_alloc(room + 1, sizeof(me_tensor *), "optim.redistributed");
    uint32_t n = 0;
    if (copies == NULL) {
        me_engine_fail(e, ME_ERR_NOMEM, "no host memory for a step");
        return;
    }
    for (uint32_t i = 0; i < room; i++) {
        const uint32_t at = first + i % (end - first);
        if (lies_otherwise(group, at, kind) && me_engine_is_ok(e)) {
            const me_parameter *p = group->shards[at].parameter;
            const me_frame frame = me_enter(e);
            me_module_switch(e, p->module);
            copies[n++] = me_retain(me_redistribute_local(
                group->nn, p->tensor->grad, (me_dlayout)p->gradient_layout,
                (me_dlayout)p->layout, false));
            me_leave(e, frame, NULL);
        }
    }
    while (n > 0) {
        me_release(e, copies[--n]);
    }
    me_free(copies);
}

/** exp_avg.lerp_(grad), then exp_avg_sq.addcmul_(grad, grad). */
static void update_moments(me_engine *e, const me_step_group *group,
                           uint32_t first, uint32_t end)
{
    if (group->nn != NULL) {
        redistribute(e, group, first, end, 1, OPERAND_GRADIENT);
        redistribute(e, group, first, end, 2, OPERAND_GRADIENT);
    }
}

/** Bytes that the foreach kernels move for an element: each reads its operands
 *  and writes its result. AdamW: decay 8, lerp 12, mul 8, addcmul 12, sqrt 8,
 *  two divisions 16, add 8, addcdiv 16. Fused, it reads four tensors and writes
 *  three. Of float32. */
enum {
    ADAMW_BYTES = 88,
    ADAMW_FUSED_BYTES = 28,
    SGD_UPDATE_BYTES = 12,
    SGD_DECAY_BYTES = 12,
    SGD_MOMENTUM_BYTES = 20
};

static void pass_over(me_engine *e, const me_step_group *group,
                      me_kernel_class kernel, uint64_t bytes)
{
    for (uint32_t i = 0; i < group->count; i++) {
        const uint64_t numel = group->shards[i].numel;
        me_launch_kernel(e, kernel, numel, me_size_mul(bytes, numel));
    }
}

/** Operations as the dispatcher sees them, up to a NULL. */
static void tell_ops(me_engine *e, const char *const *ops)
{
    for (; *ops != NULL; ops++) {
        me_tell_op(e, *ops);
    }
}

/** Does Adam's step make `grad + weight_decay * parameter`? */
static bool adds_decay(const me_step_group *group)
{
    return group->is_decayed && group->adds_decay;
}

/** A step for which all temporaries of one kind are there together: gradients
 *  with decay, if it is added to them, until the moments are made of them; then
 *  the roots of all the second moments, which the update divides by. */
static void adam_foreach(me_engine *e, const me_step_group *group)
{
    static const char *const moments[] = {
        "lift_fresh.default",       "_foreach_add_.Tensor",
        "_foreach_lerp_.Scalar",    "_foreach_mul_.Scalar",
        "_foreach_addcmul_.Scalar", NULL};
    static const char *const update[] = {
        "_foreach_sqrt.default", "_foreach_div_.ScalarList",
        "_foreach_add_.Scalar", "_foreach_addcdiv_.ScalarList", NULL};
    if (group->is_decayed && !group->adds_decay) {
        me_tell_op(e, "_foreach_mul_.Scalar");
    }
    me_tensor **decayed =
        adds_decay(group) ? make_temporaries(e, "_foreach_add", group) : NULL;
    if (decayed != NULL) {
        me_tell_op(e, "_foreach_add.List");
    }
    tell_ops(e, moments);
    update_moments(e, group, 0, group->count);
    free_temporaries(e, group, decayed);
    me_tensor **roots = make_temporaries(e, "_foreach_sqrt", group);
    tell_ops(e, update);
    free_temporaries(e, group, roots);
    pass_over(e, group, ME_KERNEL_ADAMW, ADAMW_BYTES);
}

/** Parameter by parameter: the gradient with decay, until the next gradient; the
 *  root, the root over its bias correction, which the loop's variable keeps until
 *  the next one is there. */
static void adam_for_loop(me_engine *e, const me_step_group *group)
{
    me_tensor *denom = NULL;
    me_tensor *grad = NULL;
    for (uint32_t i = 0; i < group->count; i++) {
        const me_shard_state *s = &group->shards[i];
        const me_frame frame = me_enter(e);
        me_module_switch(e, s->parameter->module);
        me_clear(e, &grad); /* `grad = grads[i]` */
        if (adds_decay(group)) {
            me_assign(e, &grad,
                      me_empty(e, "add", s->dtype, ME_SHAPE(s->numel)));
        }
        update_moments(e, group, i, i + 1);
        me_tensor *root = me_empty(e, "sqrt", s->dtype, ME_SHAPE(s->numel));
        me_tensor *next = me_empty(e, "div", s->dtype, ME_SHAPE(s->numel));
        me_drop(e, root);
        me_assign(e, &denom, next);
        me_leave(e, frame, NULL);
    }
    me_release(e, grad);
    me_release(e, denom);
    for (uint32_t i = 0; i < group->count; i++) {
        me_launch_host(e, ME_HOST_PARAMETER);
    }
    pass_over(e, group, ME_KERNEL_ADAMW, ADAMW_BYTES);
}

/** One kernel that needs no memory. */
static void adam_fused(me_engine *e, const me_step_group *group)
{
    if (group->nn != NULL) {
        redistribute(e, group, 0, group->count, 1, OPERAND_GRADIENT);
    }
    pass_over(e, group, ME_KERNEL_OPTIMIZER, ADAMW_FUSED_BYTES);
}

/** One row an implementation. */
static void (*const adam_kernels[])(me_engine *e,
                                    const me_step_group *group) = {
    [ME_OPTIMIZER_TORCH_FOREACH] = adam_foreach,
    [ME_OPTIMIZER_TORCH_FUSED] = adam_fused,
    [ME_OPTIMIZER_TORCH_FOR_LOOP] = adam_for_loop,
};

/** A step counter on the host, a float32, and while it is made the number that
 *  it is made from. */
static void count_step_on_host(me_engine *e)
{
    const int64_t bytes = (int64_t)me_dtype_bytes(ME_DTYPE_FLOAT32);
    me_tell_host_memory(e, bytes);
    me_tell_host_memory(e, bytes);
    me_tell_host_memory(e, -bytes);
}

/** torch.optim.Adam and AdamW: both moments of each, then the kernels. */
static void adam(me_engine *e, const me_step_group *group)
{
    for (uint32_t i = 0; group->is_first_step && i < group->count; i++) {
        me_shard_state *s = &group->shards[i];
        me_module_switch(e, s->parameter->module);
        if (group->impl == ME_OPTIMIZER_TORCH_FUSED) {
            s->step = make_state(e, "step", ME_DTYPE_FLOAT32, ME_SCALAR);
        } else {
            count_step_on_host(e);
        }
        s->moments[0] = make_state(e, "exp_avg", s->dtype, ME_SHAPE(s->numel));
        me_tell_op(e, "zeros_like.default");
        s->moments[1] =
            make_state(e, "exp_avg_sq", s->dtype, ME_SHAPE(s->numel));
        me_tell_op(e, "zeros_like.default");
    }
    adam_kernels[group->impl](e, group);
}

/** The first step's `grad.clone()`, which lies as the gradient does. */
static void make_momentum(me_engine *e, const me_step_group *group)
{
    for (uint32_t i = 0; i < group->count; i++) {
        me_shard_state *s = &group->shards[i];
        const me_tensor *grad =
            group->nn == NULL ? NULL : s->parameter->tensor->grad;
        me_module_switch(e, s->parameter->module);
        s->moments[0] =
            make_state(e, "momentum_buffer", s->dtype,
                       ME_SHAPE(grad == NULL ? s->numel : me_numel(grad)));
    }
}

/** `buffer *= momentum`, then `buffer += grad`. */
static void update_momentum(me_engine *e, const me_step_group *group)
{
    if (group->nn != NULL) {
        redistribute(e, group, 0, group->count, 1, OPERAND_SUMMAND);
        redistribute(e, group, 0, group->count, 2, OPERAND_SUMMAND);
    }
    me_tell_op(e, "_foreach_mul_.Scalar");
    me_tell_op(e, "_foreach_add_.List");
}

/** All gradients with decay together, and on the first step momentum. */
static void sgd_foreach(me_engine *e, const me_step_group *group)
{
    me_tensor **decayed =
        group->is_decayed ? make_temporaries(e, "_foreach_add", group) : NULL;
    if (group->is_decayed) {
        me_tell_op(e, "_foreach_add.List");
    }
    if (group->has_momentum && group->is_first_step) {
        make_momentum(e, group);
    } else if (group->has_momentum) {
        update_momentum(e, group);
    }
    if (group->nn != NULL) {
        redistribute(e, group, 0, group->count, 1, OPERAND_GRADIENT);
    }
    me_tell_op(e, "_foreach_add_.List");
    free_temporaries(e, group, decayed);
}

/** Parameter by parameter: the gradient with decay, until momentum takes its
 *  name or the next gradient does. */
static void sgd_for_loop(me_engine *e, const me_step_group *group)
{
    me_tensor *grad = NULL;
    for (uint32_t i = 0; i < group->count; i++) {
        me_shard_state *s = &group->shards[i];
        const me_frame frame = me_enter(e);
        me_module_switch(e, s->parameter->module);
        me_clear(e, &grad);
        if (group->is_decayed) {
            me_assign(e, &grad,
                      me_empty(e, "add", s->dtype, ME_SHAPE(s->numel)));
        }
        if (group->has_momentum && group->is_first_step) {
            s->moments[0] =
                make_state(e, "momentum_buffer", s->dtype, ME_SHAPE(s->numel));
        }
        if (group->has_momentum) {
            me_clear(e, &grad);
        }
        me_leave(e, frame, NULL);
        me_launch_host(e, ME_HOST_PARAMETER);
    }
    me_clear(e, &grad);
}

/** One kernel that needs no memory. */
static void sgd_fused(me_engine *e, const me_step_group *group)
{
    if (group->has_momentum && group->is_first_step) {
        make_momentum(e, group);
    }
}

/** One row an implementation. */
static void (*const sgd_kernels[])(me_engine *e, const me_step_group *group) = {
    [ME_OPTIMIZER_TORCH_FOREACH] = sgd_foreach,
    [ME_OPTIMIZER_TORCH_FUSED] = sgd_fused,
    [ME_OPTIMIZER_TORCH_FOR_LOOP] = sgd_for_loop,
};

/** torch.optim.SGD. */
static void sgd(me_engine *e, const me_step_group *group)
{
    sgd_kernels[group->impl](e, group);
    uint64_t bytes = SGD_UPDATE_BYTES;
    bytes += group->is_decayed ? SGD_DECAY_BYTES : 0;
    bytes += group->has_momentum ? SGD_MOMENTUM_BYTES : 0;
    pass_over(e, group, ME_KERNEL_OPTIMIZER, bytes);
}

/** One row an optimizer. */
static void (*const optimizers[])(me_engine *e, const me_step_group *group) = {
    [ME_OPTIMIZER_ADAM] = adam,
    [ME_OPTIMIZER_SGD] = sgd,
};

void me_optim_step(me_engine *e, me_optimizer_kind kind,
                   const me_step_group *group)
{
    optimizers[kind](e, group);
    me_module_switch(e, ME_NO_MODULE);
}
