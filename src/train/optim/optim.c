/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/optim/optim.h"

#include "base/alloc.h"
#include "base/size.h"
#include "tensor/hooks.h"
#include "tensor/launch.h"
#include "train/optim/emerging.h"
#include "train/optim/fused_optimizer.h"
#include "train/optim/redistribute.h"

/** A list with one temporary a shard, of as many elements as @p numel says;
 *  free_temporaries() lets it go. */
static me_tensor **
make_temporaries(me_engine *e, const char *op, const me_step_group *group,
                 uint64_t (*numel)(const me_step_group *, uint32_t))
{
    me_tensor **list =
        me_alloc(group->count, sizeof(me_tensor *), "optim.temporaries");
    if (list == NULL) {
        me_engine_fail(e, ME_ERR_NOMEM, "no host memory for a step");
        return NULL;
    }
    for (uint32_t i = 0; i < group->count; i++) {
        const me_frame frame = me_enter(e);
        me_module_switch_to_shard(e, group->shards[i].parameter->module);
        list[i] = me_retain(
            me_empty(e, op, group->shards[i].dtype, ME_SHAPE(numel(group, i))));
        me_leave(e, frame, NULL);
    }
    return list;
}

static uint64_t shard_numel(const me_step_group *group, uint32_t i)
{
    return group->shards[i].numel;
}

/** Of a DTensor the gradient's part, which need not be the parameter's. */
static uint64_t gradient_numel(const me_step_group *group, uint32_t i)
{
    const me_tensor *grad =
        group->nn == NULL ? NULL : group->shards[i].parameter->tensor->grad;
    return grad == NULL ? group->shards[i].numel : me_numel(grad);
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

/** exp_avg.lerp_(grad), then exp_avg_sq.addcmul_(grad, grad). */
static void update_moments(me_engine *e, const me_step_group *group,
                           uint32_t first, uint32_t end)
{
    me_redistribute_group(e, group, first, end, 1, ME_OPERAND_GRADIENT);
    me_redistribute_group(e, group, first, end, 2, ME_OPERAND_GRADIENT);
}

/** Bytes that the foreach kernels move for an element: each reads its operands
 *  and writes its result. Adam: lerp 12, mul 8, addcmul 12, sqrt 8, two divisions
 *  16, add 8, addcdiv 16; its decay is another tensor added, AdamW's a product.
 *  Fused, it reads four tensors and writes three, and SGD reads two or three and
 *  writes one or two. Of float32. */
enum {
    ADAM_BYTES = 80,
    ADAM_DECAY_BYTES = 12,
    ADAMW_DECAY_BYTES = 8,
    ADAM_FUSED_BYTES = 28,
    SGD_UPDATE_BYTES = 12,
    SGD_DECAY_BYTES = 12,
    SGD_MOMENTUM_BYTES = 20,
    SGD_FUSED_MOMENTUM_BYTES = 8
};

static uint64_t adam_bytes(const me_step_group *group)
{
    const uint64_t decay =
        group->adds_decay ? ADAM_DECAY_BYTES : ADAMW_DECAY_BYTES;
    return ADAM_BYTES + (group->is_decayed ? decay : 0);
}

static void pass_over(me_engine *e, const me_step_group *group,
                      me_kernel_class kernel, uint64_t bytes)
{
    for (uint32_t i = 0; i < group->count; i++) {
        const uint64_t numel = group->shards[i].numel;
        me_launch_kernel(e, kernel, numel, me_size_mul(bytes, numel));
    }
}

/** An operation as the dispatcher sees it. */
typedef struct step_op {
    const char *name;
    uint64_t lists;    /**< that it takes and returns, of a tensor a shard */
    uint64_t counters; /**< and of a float32 a shard */
} step_op;

/** A float32 on the host: a step counter, or the 1 that counters go up by. */
enum {
    HOST_NUMBER_BYTES = 4
};

/** Tell of an operation over shards [@p first, @p end). */
static void tell_range(me_engine *e, const me_step_group *group, uint32_t first,
                       uint32_t end, const step_op *op)
{
    if (!me_is_listened_to(e)) {
        return;
    }
    uint64_t bytes = 0;
    for (uint32_t i = first; i < end; i++) {
        const me_shard_state *s = &group->shards[i];
        const uint64_t one = me_size_mul(s->numel, me_dtype_bytes(s->dtype));
        bytes = me_size_add(bytes, me_size_mul(op->lists, one));
        bytes = me_size_add(bytes, op->counters * HOST_NUMBER_BYTES);
    }
    me_tell_op_of(e, op->name, bytes);
}

/** One over lists of all. */
static void tell_all(me_engine *e, const me_step_group *group, const char *name,
                     uint64_t lists)
{
    tell_range(e, group, 0, group->count, &(step_op){name, lists, 0});
}

/** One of shard @p i. */
static void tell_one(me_engine *e, const me_step_group *group, uint32_t i,
                     const char *name, uint64_t tensors)
{
    tell_range(e, group, i, i + 1, &(step_op){name, tensors, 0});
}

/** Ask a step counter on the host for its device. */
static void tell_counter(me_engine *e)
{
    const me_tensor counter = {.dtype = ME_DTYPE_FLOAT32, .shape = ME_SCALAR};
    me_tell_device_query(e, &counter);
}

/** `_group_tensors_by_device_and_dtype()` asks each parameter for its device, to
 *  find the group, and all the lists whether they lie there. */
static void tell_grouping(me_engine *e, const me_step_group *group,
                          bool has_counters)
{
    if (!me_is_listened_to(e) || !group->has_plain_tensors) {
        return;
    }
    for (uint32_t i = 0; i < group->count; i++) {
        const me_shard_state *s = &group->shards[i];
        me_tell_device_queries(e, s->parameter->tensor, 2);
        me_tell_device_queries(e, s->parameter->tensor->grad, 1);
        me_tell_device_queries(e, s->moments[0], 1);
        me_tell_device_queries(e, s->moments[1], 1);
        me_tell_device_queries(e, s->step, 1);
        if (has_counters && s->step == NULL) {
            tell_counter(e);
        }
    }
}

/** `step.item()`. */
static const char READ_STEP[] = "_local_scalar_dense.default";

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
    const uint32_t n = group->count;
    tell_grouping(e, group, true);
    if (group->has_plain_tensors && n > 0) {
        tell_counter(e); // `device_state_steps[0].is_cpu`
    }
    me_tell_host_memory(e, HOST_NUMBER_BYTES);
    me_tell_op_of(e, "lift_fresh.default", UINT64_C(2) * HOST_NUMBER_BYTES);
    me_tell_op_of(e, "_foreach_add_.Tensor",
                  HOST_NUMBER_BYTES * (UINT64_C(1) + n));
    me_tell_host_memory(e, -HOST_NUMBER_BYTES);
    if (group->is_decayed && !group->adds_decay) {
        tell_all(e, group, "_foreach_mul_.Scalar", 1);
    }
    me_tensor **decayed =
        adds_decay(group)
            ? make_temporaries(e, "_foreach_add", group, shard_numel)
            : NULL;
    if (decayed != NULL) {
        tell_all(e, group, "_foreach_add.List", 3);
    }
    tell_all(e, group, "_foreach_lerp_.Scalar", 2);
    tell_all(e, group, "_foreach_mul_.Scalar", 1);
    tell_all(e, group, "_foreach_addcmul_.Scalar", 3);
    for (uint32_t i = 0; i < 2 * n; i++) { // bias corrections
        me_tell_op_of(e, READ_STEP, HOST_NUMBER_BYTES);
    }
    update_moments(e, group, 0, n);
    free_temporaries(e, group, decayed);
    me_tensor **roots =
        make_temporaries(e, "_foreach_sqrt", group, shard_numel);
    tell_all(e, group, "_foreach_sqrt.default", 2);
    tell_all(e, group, "_foreach_div_.ScalarList", 1);
    tell_all(e, group, "_foreach_add_.Scalar", 1);
    tell_all(e, group, "_foreach_addcdiv_.ScalarList", 3);
    free_temporaries(e, group, roots);
    pass_over(e, group, ME_KERNEL_ADAMW, adam_bytes(group));
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
        me_tell_op_of(e, "add_.Tensor", UINT64_C(3) * HOST_NUMBER_BYTES);
        const me_frame frame = me_enter(e);
        me_module_switch_to_shard(e, s->parameter->module);
        me_clear(e, &grad); // `grad = grads[i]`
        if (adds_decay(group)) {
            me_assign(e, &grad,
                      me_empty(e, "add", s->dtype, ME_SHAPE(s->numel)));
            tell_one(e, group, i, "add.Tensor", 3);
        } else if (group->is_decayed) {
            tell_one(e, group, i, "mul_.Tensor", 2);
        }
        update_moments(e, group, i, i + 1);
        tell_one(e, group, i, "lerp_.Scalar", 3);
        tell_one(e, group, i, "mul_.Tensor", 2);
        tell_one(e, group, i, "addcmul_.default", 4);
        me_tell_op_of(e, READ_STEP, HOST_NUMBER_BYTES);
        me_tensor *root = me_empty(e, "sqrt", s->dtype, ME_SHAPE(s->numel));
        tell_one(e, group, i, "sqrt.default", 2);
        me_tensor *next = me_empty(e, "div", s->dtype, ME_SHAPE(s->numel));
        tell_one(e, group, i, "div.Tensor", 2);
        me_drop(e, root);
        tell_one(e, group, i, "add_.Tensor", 2);
        me_assign(e, &denom, next);
        tell_one(e, group, i, "addcdiv_.default", 4);
        me_leave(e, frame, NULL);
    }
    me_release(e, grad);
    me_release(e, denom);
    for (uint32_t i = 0; i < group->count; i++) {
        me_launch_host(e, ME_HOST_PARAMETER);
    }
    pass_over(e, group, ME_KERNEL_ADAMW, adam_bytes(group));
}

/** One kernel that needs no memory. */
static void adam_fused(me_engine *e, const me_step_group *group)
{
    tell_grouping(e, group, true);
    me_redistribute_group(e, group, 0, group->count, 1, ME_OPERAND_GRADIENT);
    const uint32_t n = group->count;
    const char *kernel =
        group->adds_decay ? "_fused_adam_.default" : "_fused_adamw_.default";
    tell_range(e, group, 0, n, &(step_op){"_foreach_add_.Scalar", 0, 1});
    tell_range(e, group, 0, n, &(step_op){kernel, 4, 1});
    if (group->is_scaled) { // steps that were none do not count
        tell_range(e, group, 0, n, &(step_op){"_foreach_sub_.List", 0, 2});
    }
    pass_over(e, group, ME_KERNEL_OPTIMIZER, ADAM_FUSED_BYTES);
}

/** One row an implementation. */
static void (*const adam_kernels[])(me_engine *e,
                                    const me_step_group *group) = {
    [ME_OPTIMIZER_TORCH_FOREACH] = adam_foreach,
    [ME_OPTIMIZER_TORCH_FUSED] = adam_fused,
    [ME_OPTIMIZER_TORCH_FOR_LOOP] = adam_for_loop,
};

/** torch.optim.Adam and AdamW: both moments of each, then the kernels. */
static void adam(me_engine *e, const me_step_group *group)
{
    for (uint32_t i = 0; group->is_first_step && i < group->count; i++) {
        me_shard_state *s = &group->shards[i];
        me_module_switch_to_shard(e, s->parameter->module);
        if (group->impl == ME_OPTIMIZER_TORCH_FUSED) {
            s->step = me_make_state(e, "step", ME_DTYPE_FLOAT32, ME_SCALAR);
            me_tell_op(e, "zeros.default", ME_NO_TENSORS, ME_TENSORS(s->step));
        } else {
            me_tell_host_memory(e, HOST_NUMBER_BYTES);
            me_tell_op_of(e, "lift_fresh.default",
                          UINT64_C(2) * HOST_NUMBER_BYTES);
        }
        s->moments[0] =
            me_make_state(e, "exp_avg", s->dtype, ME_SHAPE(s->numel));
        tell_one(e, group, i, "zeros_like.default", 2);
        s->moments[1] =
            me_make_state(e, "exp_avg_sq", s->dtype, ME_SHAPE(s->numel));
        tell_one(e, group, i, "zeros_like.default", 2);
    }
    adam_kernels[group->impl](e, group);
}

/** What makes momentum of a gradient. */
static const char CLONE[] = "clone.default";

/** A buffer of @p numel elements, which @p op makes on the first step. */
static void make_momentum(me_engine *e, const me_step_group *group, uint32_t i,
                          uint64_t numel, const char *op)
{
    me_shard_state *s = &group->shards[i];
    me_module_switch_to_shard(e, s->parameter->module);
    s->moments[0] =
        me_make_state(e, "momentum_buffer", s->dtype, ME_SHAPE(numel));
    tell_one(e, group, i, op, 2);
}

/** `buffer *= momentum`, then `buffer += grad`. With decay both lie alike. */
static void update_momentum(me_engine *e, const me_step_group *group)
{
    if (!group->is_decayed) {
        me_redistribute_group(e, group, 0, group->count, 1, ME_OPERAND_SUMMAND);
        me_redistribute_group(e, group, 0, group->count, 2, ME_OPERAND_SUMMAND);
    }
    tell_all(e, group, "_foreach_mul_.Scalar", 1);
    tell_all(e, group, "_foreach_add_.List", 2);
}

/** `_foreach_add(grads, params, alpha=weight_decay)`: all gradients are taken,
 *  then all parameters. @return the sums; NULL: there is no decay */
static me_tensor **decay_foreach(me_engine *e, const me_step_group *group)
{
    me_copies c = {.count = 0};
    if (!group->is_decayed ||
        !me_copies_init(e, 2 * (size_t)group->count, &c)) {
        return NULL;
    }
    for (uint32_t i = 0; group->nn != NULL && i < group->count; i++) {
        me_copies_take(e, group, i, ME_OPERAND_TO_DECAY, &c);
    }
    for (uint32_t i = 0; group->nn != NULL && i < group->count; i++) {
        me_copies_take(e, group, i, ME_OPERAND_DECAY, &c);
    }
    me_tensor **sums =
        make_temporaries(e, "_foreach_add", group, gradient_numel);
    tell_all(e, group, "_foreach_add.List", 3);
    me_copies_fini(e, &c);
    return sums;
}

/** With momentum its buffers take the place of the decayed gradients, which
 *  go. */
static void sgd_foreach(me_engine *e, const me_step_group *group)
{
    tell_grouping(e, group, false);
    me_tensor **decayed = decay_foreach(e, group);
    for (uint32_t i = 0;
         group->has_momentum && group->is_first_step && i < group->count; i++) {
        make_momentum(e, group, i, gradient_numel(group, i), CLONE);
    }
    if (group->has_momentum && !group->is_first_step) {
        update_momentum(e, group);
    }
    if (group->has_momentum) {
        free_temporaries(e, group, decayed);
    }
    me_redistribute_group(e, group, 0, group->count, 1,
                          group->is_decayed ? ME_OPERAND_DECAYED
                                            : ME_OPERAND_GRADIENT);
    tell_all(e, group, "_foreach_add_.List", 2);
    if (!group->has_momentum) {
        free_temporaries(e, group, decayed);
    }
}

/** `grad.add(param, alpha=weight_decay)`. @return the caller's */
static me_tensor *decay_one(me_engine *e, const me_step_group *group,
                            uint32_t i, uint64_t numel)
{
    me_copies c;
    if (!me_copies_init(e, 2, &c)) {
        return NULL;
    }
    if (group->nn != NULL) {
        me_copies_take(e, group, i, ME_OPERAND_TO_DECAY, &c);
        me_copies_take(e, group, i, ME_OPERAND_DECAY, &c);
    }
    const me_frame frame = me_enter(e);
    me_module_switch_to_shard(e, group->shards[i].parameter->module);
    me_tensor *sum =
        me_retain(me_empty(e, "add", group->shards[i].dtype, ME_SHAPE(numel)));
    tell_one(e, group, i, "add.Tensor", 3);
    me_leave(e, frame, NULL);
    me_copies_fini(e, &c);
    return sum;
}

/** Parameter by parameter; a sum without momentum lives until the loop takes
 *  the next gradient. */
static void sgd_for_loop(me_engine *e, const me_step_group *group)
{
    me_tensor *grad = NULL;
    for (uint32_t i = 0; i < group->count && me_engine_is_ok(e); i++) {
        const me_parameter *p = group->shards[i].parameter;
        const bool lies_as_parameter =
            group->is_decayed && group->nn != NULL &&
            me_decayed_layout(group, p) == me_dparameter_of(p)->tensor.layout;
        const uint64_t numel = lies_as_parameter ? group->shards[i].numel
                                                 : gradient_numel(group, i);
        me_clear(e, &grad);
        if (group->is_decayed) {
            grad = decay_one(e, group, i, numel);
        }
        if (group->has_momentum) {
            if (group->is_first_step) {
                make_momentum(e, group, i, numel, CLONE);
            } else {
                tell_one(e, group, i, "mul_.Tensor", 2);
                tell_one(e, group, i, "add_.Tensor", 3);
            }
            me_clear(e, &grad);
        }
        me_redistribute_group(e, group, i, i + 1, 1,
                              group->is_decayed ? ME_OPERAND_DECAYED
                                                : ME_OPERAND_GRADIENT);
        tell_one(e, group, i, "add_.Tensor", 3);
        me_launch_host(e, ME_HOST_PARAMETER);
    }
    me_clear(e, &grad);
}

/** One kernel, which adds the decay itself. */
static void sgd_fused(me_engine *e, const me_step_group *group)
{
    for (uint32_t i = 0;
         group->has_momentum && group->is_first_step && i < group->count; i++) {
        make_momentum(e, group, i, group->shards[i].numel,
                      "empty_like.default");
    }
    tell_grouping(e, group, false);
    tell_all(e, group, "_fused_sgd_.default", group->has_momentum ? 3 : 2);
}

/** One row an implementation. */
static void (*const sgd_kernels[])(me_engine *e, const me_step_group *group) = {
    [ME_OPTIMIZER_TORCH_FOREACH] = sgd_foreach,
    [ME_OPTIMIZER_TORCH_FUSED] = sgd_fused,
    [ME_OPTIMIZER_TORCH_FOR_LOOP] = sgd_for_loop,
};

/** torch.optim.SGD, and the bytes that it moves. */
static void sgd(me_engine *e, const me_step_group *group)
{
    sgd_kernels[group->impl](e, group);
    const bool is_fused = group->impl == ME_OPTIMIZER_TORCH_FUSED;
    const uint64_t momentum =
        is_fused ? SGD_FUSED_MOMENTUM_BYTES : SGD_MOMENTUM_BYTES;
    uint64_t bytes = SGD_UPDATE_BYTES;
    bytes += group->is_decayed && !is_fused ? SGD_DECAY_BYTES : 0;
    bytes += group->has_momentum ? momentum : 0;
    pass_over(e, group, ME_KERNEL_OPTIMIZER, bytes);
}

/** One row an optimizer: PyTorch's, Transformer Engine's; of each of
 *  emerging_optimizers there is one. */
static void (*const optimizers[][2])(me_engine *e,
                                     const me_step_group *group) = {
    [ME_OPTIMIZER_ADAM] = {adam, me_fused_adam_step},
    [ME_OPTIMIZER_ADAMW] = {adam, me_fused_adam_step},
    [ME_OPTIMIZER_SGD] = {sgd, me_fused_sgd_step},
    [ME_OPTIMIZER_MUON] = {me_muon_step, me_muon_step},
    [ME_OPTIMIZER_ADAPTIVE_MUON] = {me_muon_step, me_muon_step},
    [ME_OPTIMIZER_LION] = {me_lion_step, me_lion_step},
    [ME_OPTIMIZER_SOAP] = {me_soap_step, me_soap_step},
};

void me_shard_state_fini(me_engine *e, me_shard_state *shard)
{
    me_clear(e, &shard->main);
    me_clear(e, &shard->gradient);
    me_clear(e, &shard->moments[0]);
    me_clear(e, &shard->moments[1]);
    for (int i = 0; i < shard->n_extras; i++) {
        me_clear(e, &shard->extras[i]);
    }
}

void me_optim_step(me_engine *e, me_optimizer_kind kind,
                   const me_step_group *group)
{
    optimizers[kind][group->impl == ME_OPTIMIZER_FUSED](e, group);
    me_module_switch(e, ME_NO_MODULE);
}
