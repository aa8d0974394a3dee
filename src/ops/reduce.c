/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/reduce.h"

#include "base/size.h"
#include "ops/autocast_casts.h"
#include "tensor/autograd.h"
#include "tensor/hooks.h"
#include "tensor/launch.h"

/** Threads of a block of the reduction kernel for 4-byte accumulators. */
enum {
    BLOCK_THREADS = 512,
    WARP = 32,
    MAX_VECTOR = 4,
    WIDEST_NUMBER = 8 // bytes
};

/** Largest power of two that is at most @p x, capped. */
static uint64_t power_of_two(uint64_t x, uint64_t cap)
{
    uint64_t p = 1;
    while (p * 2 <= x && p * 2 <= cap) {
        p *= 2;
    }
    return p;
}

/** How setReduceConfig lays a reduction over threads and blocks. */
typedef struct layout {
    uint64_t vector; /**< outputs of one thread */
    uint64_t bx, by; /**< block */
    uint64_t per_thread;
    bool is_deep; /**< the block's y splits the reduction too */
} layout;

static layout lay_out(const me_reduction *r)
{
    layout l = {.vector = 1};
    uint64_t threads = BLOCK_THREADS;
    uint64_t width = r->inputs;
    uint64_t height = r->outputs;
    if (r->is_outer) {
        l.vector = r->is_expanded ? 1 : MAX_VECTOR;
        while (r->outputs % l.vector != 0) {
            l.vector /= 2;
        }
        threads /= l.vector;
        width = r->outputs / l.vector;
        height = r->inputs;
    } else if (r->outputs == 1 && r->inputs > 128) {
        width = r->inputs / 4; // vectorised loads of one flat dimension
    }
    l.bx = me_min_u64(power_of_two(width, threads), WARP);
    l.by = me_min_u64(power_of_two(height, threads), threads / l.bx);
    l.bx = me_min_u64(power_of_two(width, threads), threads / l.by);
    l.per_thread = r->is_outer ? r->inputs : me_div_up(r->inputs, l.bx);
    if (l.per_thread >= l.by * 16 || l.per_thread >= 256) {
        l.is_deep = true;
        l.per_thread = me_div_up(l.per_thread, l.by);
    }
    return l;
}

me_reduction_scratch me_reduction_scratch_of(const me_card *card,
                                             const me_reduction *r)
{
    const me_reduction_scratch none = {0, 0};
    if (r->inputs == 0 || r->outputs == 0) {
        return none;
    }
    const layout l = lay_out(r);
    const uint64_t outputs_of_block =
        (r->is_outer ? l.bx : 1) * (l.is_deep ? 1 : l.by);
    const uint64_t grid = me_div_up(r->outputs / l.vector, outputs_of_block);
    const uint64_t target = card->multiprocessors *
                            (card->threads_per_multiprocessor / (l.bx * l.by));
    if (!l.is_deep || l.per_thread < 256 || grid > target) {
        return none;
    }
    const uint64_t blocks = me_max_u64(
        me_min_u64(me_div_up(target, grid), me_div_up(l.per_thread, 16)),
        me_div_up(l.per_thread, 256));
    if (blocks <= 1) {
        return none;
    }
    const uint64_t lanes = r->is_outer ? l.bx * l.vector : 1;
    const uint64_t staging = me_size_mul(
        me_size_mul(r->accumulator_bytes, r->outputs), blocks * lanes);
    return (me_reduction_scratch){staging, 4 * grid};
}

static uint64_t input_bytes(const me_reduction *r)
{
    return me_size_mul(me_size_mul(r->inputs, r->outputs), r->element_bytes);
}

static bool is_split(const me_engine *e, const me_reduction *r)
{
    return me_engine_is_ok(e) && input_bytes(r) > INT32_MAX && r->inputs > 1;
}

/** One kernel, or two halves if the input is beyond 32-bit indexing. */
static void reduce_part(me_engine *e, const me_reduction *reduction)
{
    if (is_split(e, reduction)) {
        me_reduction half = *reduction;
        half.inputs = reduction->inputs / 2;
        reduce_part(e, &half);
        half.inputs = reduction->inputs - half.inputs;
        reduce_part(e, &half);
        return;
    }
    const me_reduction_scratch scratch =
        me_reduction_scratch_of(me_engine_card(e), reduction);
    me_launch_kernel(e, ME_KERNEL_REDUCE,
                     me_size_mul(reduction->inputs, reduction->outputs),
                     input_bytes(reduction));
    if (scratch.staging_bytes == 0) {
        return;
    }
    me_tensor *staging = me_scratch(e, "reduce.staging", scratch.staging_bytes);
    me_tensor *semaphores =
        me_scratch(e, "reduce.semaphores", scratch.semaphore_bytes);
    me_drop(e, semaphores);
    me_drop(e, staging);
}

void me_reduce(me_engine *e, const me_reduction *reduction)
{
    // Partial results of the halves that the output cannot hold need a buffer
    // (Reduce.cuh's AccumulationBuffer).
    me_tensor *partial = NULL;
    if (is_split(e, reduction) && reduction->is_pair) {
        partial = me_scratch(
            e, "reduce.accumulation",
            me_size_mul(reduction->outputs, reduction->accumulator_bytes));
    }
    reduce_part(e, reduction);
    me_drop(e, partial);
}

/** Reduce all of @p x, all but its last dimension, or the last alone. */
static me_reduction reduction_to(const me_tensor *x, const me_shape *shape)
{
    const uint64_t outputs = me_shape_numel(shape);
    const bool is_last = shape->ndim > 0 && shape->dim[shape->ndim - 1] == 1 &&
                         me_dim(x, -1) != 1;
    return (me_reduction){
        .inputs = outputs == 0 ? 0 : me_numel(x) / outputs,
        .outputs = outputs,
        .is_outer = outputs > 1 && !is_last,
        .is_expanded = me_tensor_is_expanded(x),
        .element_bytes = me_dtype_bytes((me_dtype)x->dtype),
        .accumulator_bytes = 4,
    };
}

static me_tensor *sum_as(me_engine *e, const me_tensor *x,
                         const me_shape *shape, me_dtype dtype)
{
    me_tensor *sum = me_empty(e, "sum", dtype, *shape);
    const me_reduction reduction = reduction_to(x, shape);
    me_reduce(e, &reduction);
    return sum;
}

me_tensor *me_sum_to(me_engine *e, me_tensor *gradient, const me_shape *shape)
{
    return sum_as(e, gradient, shape, (me_dtype)gradient->dtype);
}

/** A gradient's sum is made in float32 where its backward runs under autocast,
 *  which the tape casts back. */
static me_tensor *sum_gradient_to(me_engine *e, me_tensor *gradient,
                                  const me_shape *shape)
{
    return sum_as(e, gradient, shape, me_autocast_float_dtype(e, gradient));
}

static const me_op expand_kernel = {.dispatcher = "expand.default",
                                    .is_view = true};

/** The gradient is the incoming scalar, expanded: a view with strides of 0. */
static void sum_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                         me_tensor **gx)
{
    uint64_t strides[ME_MAX_DIMS] = {0};
    if (node->data.shape.ndim > 0) {
        strides[node->data.shape.ndim - 1] = node->data.n[0];
    }
    gx[0] = me_alias(e, gy[0], node->data.shape, strides);
    me_op_tell(e, &expand_kernel, ME_TENSORS(gy[0]), ME_TENSORS(gx[0]));
}

static const me_op sum_op = {"sum", .dispatcher = "sum.default",
                             .node = "SumBackward0", .backward = sum_backward};

me_tensor *me_sum(me_engine *e, me_tensor *x)
{
    me_autocast_ask(e, x);
    me_node *node = me_record1(e, &sum_op, x);
    const me_shape scalar = ME_SCALAR;
    me_tensor *sum = sum_as(e, x, &scalar, me_autocast_float_dtype(e, x));
    me_op_tell(e, &sum_op, ME_TENSORS(x), ME_TENSORS(sum));
    return me_output(e, node, sum);
}

void me_reduce_to(me_engine *e, const me_tensor *x, uint64_t outputs,
                  uint64_t accumulator_bytes)
{
    me_reduce(e, &(me_reduction){
                     .inputs = outputs == 0 ? 0 : me_numel(x) / outputs,
                     .outputs = outputs,
                     .element_bytes = me_dtype_bytes((me_dtype)x->dtype),
                     .accumulator_bytes = accumulator_bytes,
                     .is_pair = accumulator_bytes > WIDEST_NUMBER,
                 });
}

void me_reduce_all(me_engine *e, const me_tensor *x)
{
    me_reduce_to(e, x, 1, x->dtype == ME_DTYPE_INT64 ? 8 : 4);
}

me_tensor *me_sum_detached(me_engine *e, const me_tensor *x)
{
    me_tensor *sum = me_empty(e, "sum", (me_dtype)x->dtype, ME_SCALAR);
    me_reduce_all(e, x);
    return sum;
}

me_tensor *me_sum_rows(me_engine *e, me_tensor *x)
{
    me_node *node = me_record1(e, &sum_op, x);
    if (node != NULL) {
        node->data.n[0] = 1; // the gradient's stride along its columns
    }
    const me_shape columns = ME_SHAPE(me_dim(x, -1));
    return me_output(e, node, me_sum_to(e, x, &columns));
}

static const me_op div_kernel = {"div", "div.Scalar",
                                 .cost = ME_COST(ELEMENTWISE, 1, 0, 1)};

/** What arrives, expanded, over the number of elements. */
void me_mean_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                      me_tensor **gx)
{
    me_op_tell(e, &expand_kernel, ME_TENSORS(gy[0]), ME_TENSORS(gy[0]));
    gx[0] = me_kernel(e, &div_kernel, ME_TENSORS(gy[0]), (me_dtype)gy[0]->dtype,
                      node->data.shape);
}

static const me_op mean_op = {.dispatcher = "mean.default",
                              .node = "MeanBackward0",
                              .backward = me_mean_backward};

me_tensor *me_mean(me_engine *e, me_tensor *x)
{
    me_node *node = me_record1(e, &mean_op, x);
    const me_shape scalar = ME_SCALAR;
    me_tensor *mean = me_sum_to(e, x, &scalar);
    me_op_tell(e, &mean_op, ME_TENSORS(x), ME_TENSORS(mean));
    return me_output(e, node, mean);
}

me_tensor *me_mean_last(me_engine *e, me_tensor *x)
{
    me_node *node = me_record1(e, &mean_op, x);
    const me_shape shape = me_shape_with_last(&x->shape, 1);
    return me_output(e, node, me_sum_to(e, x, &shape));
}

me_tensor *me_sum_last_detached(me_engine *e, const me_tensor *x)
{
    me_shape shape = x->shape;
    if (me_engine_is_ok(e)) {
        shape.ndim--;
    }
    me_tensor *sum = me_empty(e, "sum", ME_DTYPE_FLOAT32, shape);
    me_reduce_to(e, x, me_shape_numel(&shape), 4);
    return sum;
}

me_tensor *me_vector_norm(me_engine *e, const me_tensor *x, me_dtype dtype)
{
    me_tensor *norm = me_empty(e, "linalg_vector_norm", dtype, ME_SCALAR);
    me_reduce_to(e, x, 1, 4);
    return norm;
}

void me_ops_install(me_engine *e)
{
    me_tape_set_sum_to(e, sum_gradient_to);
}
