/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/megatron/clip_grads.h"

#include "base/alloc.h"
#include "base/size.h"
#include "ops/index.h"
#include "ops/reduce.h"
#include "tensor/launch.h"
#include "train/megatron/bookkeeping.h"
#include "train/megatron/trainer.h"

/** Does a tensor rank's norm count this gradient? */
static bool counts(const me_trainer *t, const me_parameter *p)
{
    if (p->is_replica_of_tied) {
        return false;
    }
    return p->is_tensor_sharded || t->comm->index[ME_GROUP_TENSOR] == 0;
}

/** Ranks of a tensor group differ in how many of the norms they make. */
static void tell_twin_span(const me_trainer *t, bool begins)
{
    const me_twin_listener *listener = &t->spec->twin_listener;
    if (listener->tell != NULL) {
        listener->tell(listener->self, begins);
    }
}

static void all_reduce_scalar(me_trainer *t, me_group_kind group,
                              me_dtype dtype)
{
    me_communicate(
        t->e, t->comm,
        (me_call){group, ME_COLLECTIVE_ALL_REDUCE, dtype, 1, -1, false});
}

/** A number is added up over the ranks that hold other gradients. */
static void add_up(me_trainer *t, me_group_kind group, me_dtype dtype)
{
    if (t->wrapper->has_dtensors) { // of which each has a shard
        all_reduce_scalar(t, ME_GROUP_DATA_CONTEXT, dtype);
    }
    all_reduce_scalar(t, group, dtype);
}

/** The norm of each gradient of an optimizer that counts, after the others. */
static uint32_t append_norms(me_trainer *t, const me_optimizer *o,
                             me_tensor **norms, uint32_t n)
{
    me_engine *e = t->e;
    for (uint32_t i = 0; norms != NULL && i < o->count; i++) {
        if (counts(t, o->shards[i].parameter)) {
            const uint64_t strides[ME_MAX_DIMS] = {1};
            me_tensor *gradient = me_alias(
                e, o->constants[0], ME_SHAPE(o->shards[i].numel), strides);
            gradient->dtype = ME_DTYPE_FLOAT32;
            norms[n++] = me_vector_norm(e, gradient, ME_DTYPE_FLOAT32);
            me_drop(e, gradient);
        }
    }
    return n;
}

/** Megatron-LM's own local_multi_tensor_l2_norm(): a norm of each gradient, and
 *  one of all these. The result is a number of the host. */
static me_tensor *local_norm(me_trainer *t, int begin, int end,
                             me_group_kind group)
{
    me_engine *e = t->e;
    const me_frame frame = me_enter(e);
    me_tensor *zero = me_scratch(e, "zeros", 4);
    me_tensor *flag = me_scratch(e, "zeros", 4);
    tell_twin_span(t, true);
    const me_frame norms = me_enter(e);
    me_tensor **all =
        me_alloc(t->parameters.count, sizeof(me_tensor *), "norms");
    if (all == NULL) {
        me_engine_fail(e, ME_ERR_NOMEM, "no host memory for norms");
    }
    uint32_t n = 0;
    for (int i = begin; i < end; i++) {
        n = append_norms(t, &t->optimizers[i], all, n);
    }
    me_tensor *total = me_scratch(e, "linalg_vector_norm", 4);
    while (all != NULL && n > 0) {
        me_launch_host_waits(e); // each norm is read back
        me_drop(e, all[--n]);
    }
    me_free(all);
    me_leave(e, norms, total);
    me_tensor *square = me_scratch(e, "pow", 4);
    me_drop(e, zero);
    add_up(t, group, ME_DTYPE_FLOAT32);
    me_drop(e, square);
    me_drop(e, flag);
    me_drop(e, total);
    tell_twin_span(t, false);
    me_leave(e, frame, NULL);
    return NULL;
}

/** Blocks that Transformer Engine's multi_tensor_l2norm() writes, one float32
 *  each (csrc/extensions/multi_tensor/l2norm.cpp). */
enum {
    L2NORM_BLOCKS_BYTES = 4 * 320
};

me_tensor *me_multi_tensor_l2norm(me_engine *e, me_dtype dtype, uint64_t numel)
{
    me_tensor *blocks =
        me_scratch(e, "multi_tensor_l2norm", L2NORM_BLOCKS_BYTES);
    me_tensor *norm = me_scratch(e, "multi_tensor_l2norm", 4);
    me_launch_kernel(e, ME_KERNEL_OPTIMIZER, me_size_mul(2, numel),
                     me_size_mul(me_dtype_bytes(dtype), numel));
    me_drop(e, blocks);
    return norm;
}

/** Elements of the gradients that count; 0: there are none. */
static uint64_t count_elements(const me_trainer *t, int begin, int end,
                               uint64_t *of_all_out)
{
    uint64_t numel = 0;
    *of_all_out = 0;
    for (int i = begin; i < end; i++) {
        const me_optimizer *o = &t->optimizers[i];
        for (uint32_t k = 0; k < o->count; k++) {
            const me_parameter *p = o->shards[k].parameter;
            if (counts(t, p)) {
                numel = me_size_add(numel, o->shards[k].numel);
                *of_all_out += p->is_tensor_sharded ? o->shards[k].numel : 0;
            }
        }
    }
    return numel;
}

me_strand_traits me_strand_traits_of(const me_trainer *t, int i)
{
    uint64_t of_all = 0;
    const uint64_t numel = count_elements(t, i, i + 1, &of_all);
    return (me_strand_traits){
        .has_shards = t->optimizers[i].count > 0,
        .has_norm = numel > 0,
        .has_split_norm = of_all > 0,
    };
}

/** Transformer Engine's kernel over all gradients at once. The result stays on
 *  the device. @return owned by the caller */
static me_tensor *multi_tensor_norm(me_trainer *t, int begin, int end,
                                    me_group_kind group)
{
    me_engine *e = t->e;
    const me_frame frame = me_enter(e);
    me_tensor *sum = me_scratch(e, "zeros", 4);
    me_tensor *flag = NULL;
    me_tensor *norm = NULL;
    uint64_t of_all = 0;
    const uint64_t numel = count_elements(t, begin, end, &of_all);
    const bool has_span = of_all == 0; // else all ranks make one of its size
    if (has_span) {
        tell_twin_span(t, true);
    }
    if (numel > 0) {
        flag = me_scratch(e, "zeros", 4);
        norm = me_multi_tensor_l2norm(e, me_step_grad_dtype(t), numel);
        sum = me_rebind(e, sum, me_scratch(e, "pow", 4));
    }
    add_up(t, group, ME_DTYPE_FLOAT32);
    me_tensor *total = me_retain(me_scratch(e, "pow", 4));
    me_drop(e, sum);
    me_drop(e, flag);
    me_drop(e, norm);
    if (has_span) {
        tell_twin_span(t, false);
    }
    me_leave(e, frame, NULL);
    return total;
}

/** get_grad_norm_fp32() of optimizers from @p begin to before @p end.
 *  @return owned by the caller; NULL: a number of the host */
static me_tensor *gradient_norm(me_trainer *t, int begin, int end,
                                me_group_kind group)
{
    return t->config->impl.optimizer == ME_OPTIMIZER_FUSED
               ? multi_tensor_norm(t, begin, end, group)
               : local_norm(t, begin, end, group);
}

me_group_kind me_statistics_group(const me_trainer *t, const me_optimizer *o)
{
    static const me_group_kind groups[ME_SHARINGS] = {
        [ME_SHARING_DENSE] = ME_GROUP_MODEL,
        [ME_SHARING_EXPERT] = ME_GROUP_EXPERT_MODEL,
    };
    return t->config->optimizer.distributed ? ME_GROUP_OPTIMIZER_INSTANCE
                                            : groups[o->sharing];
}

/** `math.sqrt(sum([x**2 for x in grad_norms]))` of norms on the device: all
 *  squares, and a sum that begins at 0. */
static void combine_norms(me_trainer *t, me_tensor **norms, int count)
{
    me_engine *e = t->e;
    const me_frame frame = me_enter(e);
    me_tensor *squares[ME_OPTIMIZERS_MAX];
    me_tensor *sum = NULL;
    for (int i = 0; i < count; i++) {
        squares[i] = me_scratch(e, "pow", 4);
    }
    for (int i = 0; i < count; i++) {
        sum = me_rebind(e, sum, me_scratch(e, "add", 4));
    }
    for (int i = count; i > 0; i--) {
        me_drop(e, squares[i - 1]);
    }
    me_launch_host_waits(e); // math.sqrt() reads it
    me_drop(e, sum);
    me_leave(e, frame, NULL);
    for (int i = count - 2; i >= 0; i--) { // the last has a name of its own
        me_clear(e, &norms[i]);
    }
    me_clear(e, &norms[count - 1]);
}

/** Have the optimizers one norm? They do where the same ranks add it up. */
static bool has_one_norm(const me_trainer *t, int count)
{
    bool is_shared = true;
    for (int i = 1; i < count; i++) {
        is_shared = is_shared && me_statistics_group(t, &t->optimizers[i]) ==
                                     me_statistics_group(t, &t->optimizers[0]);
    }
    return is_shared;
}

/** ChainedOptimizer.get_grad_norm() */
static void gradient_norms(me_trainer *t, int count)
{
    me_clear(t->e, &t->grad_norm);
    if (has_one_norm(t, count)) {
        t->grad_norm = gradient_norm(t, 0, count,
                                     me_statistics_group(t, &t->optimizers[0]));
        return;
    }
    me_tensor *norms[ME_OPTIMIZERS_MAX] = {NULL};
    for (int i = 0; i < count; i++) {
        norms[i] = gradient_norm(t, i, i + 1,
                                 me_statistics_group(t, &t->optimizers[i]));
    }
    if (norms[0] != NULL) {
        combine_norms(t, norms, count);
    }
}

/** The coefficient of a norm on the device: `clip / (norm + 1e-6)`, which goes
 *  by way of the reciprocal. */
static me_tensor *make_coefficient(me_engine *e)
{
    me_tensor *sum = me_scratch(e, "add", 4);
    me_tensor *reciprocal = me_scratch(e, "reciprocal", 4);
    me_tensor *coefficient = me_scratch(e, "mul", 4);
    me_drop(e, reciprocal);
    me_drop(e, sum);
    return coefficient;
}

/** Transformer Engine's kernel scales all gradients at once, in place. */
static void clip_fused(me_trainer *t, const me_optimizer *o)
{
    me_engine *e = t->e;
    const me_frame frame = me_enter(e);
    me_tensor *coefficient = t->grad_norm == NULL ? NULL : make_coefficient(e);
    me_tensor *flag = me_scratch(e, "zeros", 4);
    const uint64_t bytes = 2 * me_dtype_bytes(me_step_grad_dtype(t));
    for (uint32_t i = 0; i < o->count; i++) {
        const uint64_t numel = o->shards[i].numel;
        me_launch_kernel(e, ME_KERNEL_OPTIMIZER, numel, bytes * numel);
    }
    me_drop(e, coefficient);
    me_drop(e, flag);
    me_leave(e, frame, NULL);
}

/** Each gradient scaled, and copied back. */
static void clip_local(me_trainer *t, const me_optimizer *o)
{
    me_engine *e = t->e;
    const me_frame frame = me_enter(e);
    me_tensor *coefficient = me_scratch(e, "clip_coeff", 4);
    for (uint32_t i = 0; i < o->count; i++) {
        const uint64_t numel = o->shards[i].numel;
        me_temporary(e, "mul", 4 * numel);
        me_launch_kernel(e, ME_KERNEL_OPTIMIZER, numel, 8 * numel);
        me_launch_kernel(e, ME_KERNEL_OPTIMIZER, 0, 8 * numel); // copy_
    }
    me_drop(e, coefficient);
    me_leave(e, frame, NULL);
}

/** has_grad_norm_group(): once, the ranks of an optimizer's norm agree on whether
 *  one of them has gradients with a norm apart. */
static void agree_on_norms(me_trainer *t, const me_optimizer *o)
{
    me_tensor *flag = me_scratch(t->e, "has_grad_norm_group", 4);
    me_communicate(t->e, t->comm,
                   (me_call){me_statistics_group(t, o),
                             ME_COLLECTIVE_ALL_REDUCE, ME_DTYPE_INT32, 1, -1,
                             false});
    me_drop(t->e, flag);
}

/** clip_grad_by_total_norm_fp32(), when the norm exceeds the limit. A
 *  ChainedOptimizer has a norm even of what it does not clip; one optimizer of all
 *  is in no chain, and MixedPrecisionOptimizer.step() has none then. */
void me_clip_gradients(me_trainer *t, int count)
{
    const bool is_fused = t->config->impl.optimizer == ME_OPTIMIZER_FUSED;
    const bool clips = t->config->optimizer.clip_grad > 0;
    if (!clips && t->wrapper->has_one_optimizer) {
        return;
    }
    gradient_norms(t, count);
    // A layer-wise optimizer asks for all that it is made of.
    const int apart = me_config_is_layer_wise(t->config) ? 1 : count;
    for (int i = 0; clips && i < apart && !t->optimizers[i].has_stepped; i++) {
        agree_on_norms(t, &t->optimizers[i]);
    }
    for (int i = 0; clips && i < count; i++) {
        if (t->optimizers[i].count > 0 && is_fused) {
            clip_fused(t, &t->optimizers[i]);
        } else if (t->optimizers[i].count > 0) {
            clip_local(t, &t->optimizers[i]);
        }
    }
}

/** How many zeros a gradient has: `numel - count_nonzero`.
 *  @return a variable of the running frame */
static me_tensor *count_zeros_of(me_engine *e, uint64_t numel)
{
    const me_frame frame = me_enter(e);
    me_tensor *nonzero = me_count_nonzero(e, numel);
    me_tensor *zeros = me_scratch(e, "rsub", 8);
    me_drop(e, nonzero);
    return me_leave(e, frame, zeros);
}

/** count_zeros_fp32() of optimizers from @p begin to before @p end. */
static void count_zeros(me_trainer *t, int begin, int end, me_group_kind group)
{
    me_engine *e = t->e;
    const me_frame frame = me_enter(e);
    me_tensor *total = me_scratch(e, "zeros", 8);
    me_tensor *zeros = NULL;
    tell_twin_span(t, true);
    for (int i = begin; i < end; i++) {
        const me_optimizer *o = &t->optimizers[i];
        for (uint32_t k = 0; k < o->count && me_engine_is_ok(e); k++) {
            if (counts(t, o->shards[k].parameter)) {
                me_module_switch_to_shard(e, o->shards[k].parameter->module);
                zeros =
                    me_rebind(e, zeros, count_zeros_of(e, o->shards[k].numel));
                total = me_rebind(e, total, me_scratch(e, "add", 8));
            }
        }
    }
    me_module_switch(e, ME_NO_MODULE);
    tell_twin_span(t, false);
    add_up(t, group, ME_DTYPE_INT64);
    me_launch_host_waits(e); // total_num_zeros.item()
    me_drop(e, total);
    me_drop(e, zeros);
    me_leave(e, frame, NULL);
}

/** As the norms are: of all at once where the same ranks add them up. */
void me_count_zeros(me_trainer *t, int count)
{
    if (has_one_norm(t, count)) {
        count_zeros(t, 0, count, me_statistics_group(t, &t->optimizers[0]));
        return;
    }
    for (int i = 0; i < count; i++) {
        count_zeros(t, i, i + 1, me_statistics_group(t, &t->optimizers[i]));
    }
}
