/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/size.h"
#include "nn/torch/dtensor.h"
#include "tensor/launch.h"
#include "train/torch/loop.h"

/* clip_grad_norm_() (torch/nn/utils/clip_grad.py). Over DTensors each of its
 * operations says how its operands must lie (torch/distributed/tensor/_ops):
 * norms are taken of sums over ranks, not of summands, and the norm of a part
 * is a _NormPartial, whose root is taken after the sum. */

/** Elements that a block of the foreach kernels takes
 *  (aten/native/cuda/MultiTensorApply.cuh). */
enum {
    FOREACH_CHUNK = 65536
};

/** How many gradients are whole on each tensor-parallel rank, and how many are
 *  parts? */
typedef struct lie {
    uint32_t whole;
    uint32_t parts;
} lie;

/** The gradient of a parameter that model.parameters() has. In
 *  DistributedDataParallel around a plan those that were DTensors have been
 *  replaced by the end of a forward, by new ones without gradients
 *  (_localize_dtensor() in tensor/parallel/ddp.py): the norm is of the others,
 *  and so is what is clipped. */
static const me_tensor *gradient_of(const me_loop *l, const me_parameter *p)
{
    return l->config->torch.data_parallel == ME_DATA_PARALLEL_DDP &&
                   p->kind != NULL
               ? NULL
               : p->tensor->grad;
}

static lie count_gradients(const me_loop *l)
{
    lie n = {0};
    for (uint32_t i = 0; i < l->parameters.count; i++) {
        const me_parameter *p = l->parameters.parameters[i];
        if (gradient_of(l, p) != NULL) {
            const bool is_part =
                me_dlayout_is_part(me_loop_gradient_layout(l, p));
            n.parts += is_part ? 1 : 0;
            n.whole += is_part ? 0 : 1;
        }
    }
    return n;
}

/** Bytes of those that are clipped. */
static uint64_t clipped_bytes(const me_loop *l)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < l->parameters.count; i++) {
        const me_tensor *grad = gradient_of(l, l->parameters.parameters[i]);
        bytes = me_size_add(bytes, grad == NULL ? 0 : me_bytes(grad));
    }
    return bytes;
}

/** Gradients that are summands on each rank are summed; the sums are variables
 *  of the running frame. */
static void sum_summands(me_loop *l)
{
    for (uint32_t i = 0; i < l->parameters.count; i++) {
        const me_parameter *p = l->parameters.parameters[i];
        if (gradient_of(l, p) != NULL &&
            me_loop_gradient_layout(l, p) == ME_DLAYOUT_PARTIAL) {
            (void)me_all_reduce_local(&l->nn, p->tensor->grad);
        }
    }
}

/** A partial result for each chunk of the largest gradient, of every one. */
static void make_partial(me_loop *l, uint32_t count)
{
    uint64_t largest = 0;
    for (uint32_t i = 0; i < l->parameters.count; i++) {
        const me_tensor *grad = gradient_of(l, l->parameters.parameters[i]);
        if (grad != NULL) {
            largest = me_max_u64(largest, me_numel(grad));
        }
    }
    (void)me_empty_inside(
        l->e, "_foreach_norm", ME_DTYPE_FLOAT32,
        ME_SHAPE(me_size_mul(count, me_div_up(largest, FOREACH_CHUNK))));
}

/** `torch._foreach_norm(grads)`: the partial results, then a scalar each
 *  (ForeachReduceOp.cu), which are the caller's variables. */
static void foreach_norm(me_loop *l, uint32_t count)
{
    me_engine *e = l->e;
    me_tensor **norms =
        me_engine_alloc(e, (size_t)count + 1, sizeof(me_tensor *));
    uint32_t n = 0;
    const me_frame frame = me_enter(e);
    sum_summands(l);
    make_partial(l, count);
    for (uint32_t i = 0; i < l->parameters.count && me_engine_is_ok(e); i++) {
        const me_tensor *grad = gradient_of(l, l->parameters.parameters[i]);
        if (grad != NULL) {
            norms[n++] =
                me_empty(e, "_foreach_norm", (me_dtype)grad->dtype, ME_SCALAR);
            me_launch_kernel(e, ME_KERNEL_REDUCE, me_numel(grad),
                             me_bytes(grad));
        }
    }
    me_leave_with(e, frame, n, norms);
    me_tell_operation(
        e, &(me_operation){.name = "_foreach_norm.Scalar",
                           .results = {n, (const me_tensor *const *)norms},
                           .more_bytes = clipped_bytes(l)});
}

/** `torch.stack(norms)`: beside norms of parts, those of whole gradients are
 *  divided so that their sum is the whole. */
static me_tensor *stack_norms(me_loop *l, lie n)
{
    me_engine *e = l->e;
    const me_frame frame = me_enter(e);
    for (uint32_t i = 0; n.parts > 0 && i < n.whole; i++) {
        (void)me_empty(e, "div", ME_DTYPE_FLOAT32, ME_SCALAR);
    }
    me_tensor *stack = me_empty(e, "stack", ME_DTYPE_FLOAT32,
                                ME_SHAPE((uint64_t)n.whole + n.parts));
    me_tell_operation(e, &(me_operation){.name = "stack.default",
                                         .results = ME_TENSORS(stack),
                                         .more_bytes = me_bytes(stack)});
    return me_leave(e, frame, stack);
}

/** `funcol.all_reduce()` of norms of @p bytes. */
static void tell_all_reduce(const me_loop *l, me_group_kind group,
                            uint64_t bytes)
{
    me_communicate_c10d(l->e, l->comm,
                        (me_c10d_call){.op = ME_C10D_FUNCTIONAL_ALL_REDUCE,
                                       .group = group,
                                       .peer = -1,
                                       .input_bytes = bytes});
}

static bool has_shards(const me_loop *l)
{
    return l->config->torch.data_parallel == ME_DATA_PARALLEL_FULLY_SHARD &&
           l->comm->size[ME_GROUP_DATA_SHARD] > 1;
}

/** The same of gradients on the host, all of them parts: nothing of it takes
 *  the device, nor NCCL. */
static void tell_on_host(const me_loop *l)
{
    const lie n = count_gradients(l);
    const uint64_t bytes = me_size_mul((uint64_t)n.whole + n.parts,
                                       me_dtype_bytes(ME_DTYPE_FLOAT32));
    if (has_shards(l)) {
        tell_all_reduce(l, me_mesh_group(l->comm, ME_GROUP_DATA_SHARD), bytes);
    }
    if (n.parts > 0) {
        tell_all_reduce(l, me_mesh_group(l->comm, ME_GROUP_TENSOR), bytes);
    }
}

/** _NormPartial._reduce_value(): squares, their sum over the ranks, its
 *  root. */
static me_tensor *sum_norms(me_loop *l, const me_tensor *norms,
                            me_group_kind group)
{
    me_engine *e = l->e;
    const me_frame frame = me_enter(e);
    const me_tensor *squares = me_empty_like(e, "pow", norms);
    (void)me_empty_like(e, "all_reduce", norms);
    tell_all_reduce(l, group, me_storage_bytes(squares));
    me_communicate(e, l->comm,
                   (me_call){.group = group,
                             .kind = ME_COLLECTIVE_ALL_REDUCE,
                             .dtype = ME_DTYPE_FLOAT32,
                             .count = me_numel(norms),
                             .peer = -1});
    return me_leave(e, frame, me_empty_like(e, "pow", norms));
}

/** _get_total_norm(): the norms stacked, summed over each dimension of the mesh
 *  that has parts, in their order, and their norm, which outlives them. */
static me_tensor *total_norm(me_loop *l)
{
    me_engine *e = l->e;
    const lie n = count_gradients(l);
    const me_frame frame = me_enter(e);
    foreach_norm(l, n.whole + n.parts);
    me_tensor *stack = stack_norms(l, n);
    me_tensor *sums = NULL;
    if (has_shards(l)) {
        sums = sum_norms(l, stack, me_mesh_group(l->comm, ME_GROUP_DATA_SHARD));
    }
    if (n.parts > 0) {
        me_tensor *before = sums;
        sums = sum_norms(l, before == NULL ? stack : before,
                         me_mesh_group(l->comm, ME_GROUP_TENSOR));
        if (before != NULL) {
            me_drop(e, before);
        }
    }
    me_tensor *total =
        me_empty(e, "linalg_vector_norm", ME_DTYPE_FLOAT32, ME_SCALAR);
    me_tell_op(e, "linalg_vector_norm.default",
               ME_TENSORS(sums == NULL ? stack : sums), ME_TENSORS(total));
    if (sums != NULL) {
        me_drop(e, sums);
    }
    me_drop(e, stack);
    return me_leave(e, frame, total);
}

/** One number, made by an operation of the dispatcher. */
static me_tensor *scalar(me_engine *e, const char *name, const char *op)
{
    me_tensor *x = me_empty(e, name, ME_DTYPE_FLOAT32, ME_SCALAR);
    me_tell_op(e, op, ME_TENSORS(x), ME_TENSORS(x));
    return x;
}

/** `torch._foreach_mul_(grads, coefficient)`, which multiplies the sums of
 *  summands in the summands' place. */
static void multiply(me_loop *l)
{
    const me_frame frame = me_enter(l->e);
    sum_summands(l);
    for (uint32_t i = 0; i < l->parameters.count; i++) {
        const me_tensor *grad = gradient_of(l, l->parameters.parameters[i]);
        if (grad != NULL) {
            me_launch_kernel(l->e, ME_KERNEL_ELEMENTWISE, me_numel(grad),
                             2 * me_bytes(grad));
        }
    }
    me_leave(l->e, frame, NULL);
}

/** The norm, the coefficient max_norm / (norm + 1e-6), which Python makes of
 *  the sum's reciprocal, and what it is clamped to; gradients are multiplied in
 *  place. Gradients of the host are clipped there. */
void me_loop_clip_gradients(me_loop *l)
{
    me_engine *e = l->e;
    if (!me_engine_is_ok(e)) {
        return;
    }
    if (l->config->torch.cpu_offload) {
        tell_on_host(l);
        return;
    }
    me_loop_refuse_mixed(l, "optimizer.clip_grad");
    const lie n = count_gradients(l);
    if (n.whole + n.parts == 0) {
        return;
    }
    const me_phase phase = me_phase_set(e, ME_PHASE_OPTIMIZER);
    const me_category category = me_category_set(e, ME_CATEGORY_TEMPORARY);
    const me_frame frame = me_enter(e);
    (void)total_norm(l);
    me_tensor *sum = scalar(e, "add", "add.Tensor");
    me_tensor *inverse = scalar(e, "reciprocal", "reciprocal.default");
    me_tensor *coefficient = scalar(e, "mul", "mul.Tensor");
    me_drop(e, inverse);
    me_drop(e, sum);
    (void)scalar(e, "clamp", "clamp.default");
    multiply(l);
    me_tell_operation(e, &(me_operation){.name = "_foreach_mul_.Tensor",
                                         .arguments = ME_TENSORS(coefficient),
                                         .more_bytes = clipped_bytes(l)});
    me_drop(e, coefficient);
    me_leave(e, frame, NULL);
    me_category_set(e, category);
    me_phase_set(e, phase);
}
