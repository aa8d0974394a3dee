/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/torch/loss_parallel.h"

#include "base/size.h"
#include "nn/torch/dtensor.h"
#include "ops/autocast_casts.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"

/** A new tensor that a kernel makes, @p reads bytes of others read for it. */
static me_tensor *made(me_engine *e, const char *op, me_dtype dtype,
                       me_shape shape, uint64_t reads)
{
    me_tensor *y = me_empty(e, op, dtype, shape);
    me_launch_kernel(e, ME_KERNEL_ELEMENTWISE, me_numel(y),
                     me_size_add(reads, me_bytes(y)));
    return y;
}

/** An operation on each element of @p x. */
static me_tensor *each(me_engine *e, const char *op, const me_tensor *x)
{
    return made(e, op, (me_dtype)x->dtype, x->shape, me_bytes(x));
}

/** Rows of (…, classes), as flatten() leaves them. */
static me_shape rows_of(const me_tensor *x)
{
    return ME_SHAPE(me_rows(x));
}

static me_shape column_of(const me_tensor *x)
{
    return ME_SHAPE(me_rows(x), 1);
}

enum {
    LOG_SOFTMAX_SAVED_RESULT
};

/** _log_softmax_backward_handler(): the node before has done its work. */
static void log_softmax_backward(me_engine *e, me_node *node,
                                 me_tensor *const *gy, me_tensor **gx)
{
    (void)node;
    (void)e;
    gx[0] = gy[0];
}

static const me_op log_softmax_op =
    ME_NODE("LogSoftmaxBackward0", log_softmax_backward);

/** _log_softmax(): in float32, whatever @p x is. */
static me_tensor *log_softmax_local(const me_nn *nn, me_tensor *x)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    const me_dtype dtype = (me_dtype)x->dtype;
    const me_dtype wide = ME_DTYPE_FLOAT32;
    me_tensor *logits = dtype == wide
                            ? me_hold(e, x)
                            : made(e, "to", wide, x->shape, me_bytes(x));
    me_tensor *most = made(e, "amax", wide, column_of(x), me_bytes(logits));
    (void)me_rebind(e, most, me_all_reduce_local(nn, most));
    me_tensor *shifted = each(e, "sub", logits);
    me_tensor *exponentials = each(e, "exp", shifted);
    me_tensor *sum = made(e, "sum", wide, column_of(x), me_bytes(exponentials));
    me_drop(e, exponentials);
    sum = me_rebind(e, sum, me_all_reduce_local(nn, sum));
    each(e, "log", sum);
    me_tensor *result = each(e, "sub", shifted);
    if (dtype != wide) {
        result = me_rebind(e, result,
                           made(e, "to", dtype, x->shape, me_bytes(result)));
    }
    me_drop(e, logits); // Python's locals go by where they first stand
    me_drop(e, shifted);
    return me_leave(e, frame, result);
}

static me_tensor *log_softmax(const me_nn *nn, me_tensor *x)
{
    me_engine *e = nn->e;
    me_node *node = me_record1(e, &log_softmax_op, x);
    me_tensor *y = log_softmax_local(nn, x);
    me_lay(e, y, me_layout_of(x));
    me_save(e, node, LOG_SOFTMAX_SAVED_RESULT, y);
    return me_output(e, node, y);
}

/** `torch.where(target != ignore_index, x, 0)`: (rows, 1) or (rows). The 0 is
 *  copied to the device as a number of the dtype of @p x. */
static me_tensor *where_counted(me_engine *e, const me_tensor *target,
                                const me_tensor *x, me_shape shape)
{
    const me_dtype dtype = (me_dtype)x->dtype;
    me_tensor *counts = made(e, "ne", ME_DTYPE_BOOL, shape, me_bytes(target));
    me_tensor *zero = me_empty(e, "to", dtype, ME_SCALAR);
    me_tensor *y = made(e, "where", dtype, shape, me_bytes(x));
    me_drop(e, zero);
    me_drop(e, counts);
    return y;
}

/** What _MaskPartial._partition_value() makes of indices: those of this rank's
 *  classes, others are 0. @p mask_out says which are others'. */
static me_tensor *partition(me_engine *e, const me_tensor *indices,
                            me_tensor **mask_out)
{
    const uint64_t bytes = me_bytes(indices);
    me_tensor *below = made(e, "lt", ME_DTYPE_BOOL, indices->shape, bytes);
    me_tensor *above = made(e, "ge", ME_DTYPE_BOOL, indices->shape, bytes);
    *mask_out = each(e, "bitwise_or", below);
    me_drop(e, below);
    me_drop(e, above);
    me_tensor *copy = each(e, "clone", indices);
    me_tensor *shifted = each(e, "sub", copy);
    me_drop(e, copy);
    return shifted;
}

/** The mean of the losses of the rows that count, and how many they are. */
static me_tensor *mean(me_engine *e, const me_tensor *target,
                       const me_tensor *losses, me_tensor **total_weight_out)
{
    const me_dtype dtype = (me_dtype)losses->dtype;
    me_tensor *counts =
        made(e, "ne", ME_DTYPE_BOOL, losses->shape, me_bytes(target));
    me_tensor *count = me_empty(e, "sum", ME_DTYPE_INT64, ME_SCALAR);
    me_tensor *numbers = // a sum of int64
        made(e, "to", ME_DTYPE_INT64, losses->shape, me_bytes(counts));
    me_drop(e, numbers);
    me_drop(e, counts);
    *total_weight_out = made(e, "to", dtype, ME_SCALAR, me_bytes(count));
    me_drop(e, count);
    me_tensor *sum = made(e, "sum", dtype, ME_SCALAR, me_bytes(losses));
    me_tensor *y = each(e, "div", sum);
    me_drop(e, sum);
    return y;
}

/** _nll_loss_forward(). */
static me_tensor *nll_loss_local(const me_nn *nn, me_tensor *x,
                                 me_tensor *target,
                                 me_tensor **total_weight_out)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    const me_dtype dtype = (me_dtype)x->dtype;
    me_tensor *safe_target = where_counted(e, target, target, column_of(x));
    me_tensor *mask = NULL;
    partition(e, safe_target, &mask);
    me_tensor *own =
        made(e, "gather", dtype, column_of(x), me_bytes(safe_target));
    me_drop(e, mask); // other ranks' rows are 0
    const me_tensor *all = me_all_reduce_local(nn, own);
    me_tensor *losses = made(e, "neg", dtype, rows_of(x), me_bytes(all));
    losses = me_rebind(e, losses, where_counted(e, target, losses, rows_of(x)));
    me_tensor *result = mean(e, target, losses, total_weight_out);
    me_drop(e, losses);
    me_retain(*total_weight_out);
    return me_leave(e, frame, result);
}

/** The gradient of the target's class alone: -1 where it is this rank's. */
static me_tensor *one_hot(me_engine *e, const me_tensor *x,
                          const me_tensor *safe_target)
{
    me_tensor *gradient =
        made(e, "zeros_like", (me_dtype)x->dtype, x->shape, 0);
    me_tensor *mask = NULL;
    partition(e, safe_target, &mask);
    me_tensor *numbers =
        made(e, "to", (me_dtype)x->dtype, rows_of(x), me_bytes(mask));
    each(e, "sub", numbers);
    me_drop(e, numbers);
    made(e, "arange", ME_DTYPE_INT64, rows_of(x), 0);
    return gradient;
}

/** _nll_loss_and_log_softmax_backward(): that of both at once. */
static void nll_loss_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                              me_tensor **gx)
{
    const me_tensor *x = node->saved[ME_NLL_SAVED_SELF];
    const me_tensor *target = node->saved[ME_NLL_SAVED_TARGET];
    const me_frame frame = me_enter(e);
    me_tensor *mean_gradient = each(e, "div", gy[0]);
    const me_tensor *safe_target = where_counted(e, target, target, rows_of(x));
    me_tensor *gradient = one_hot(e, x, safe_target);
    me_tensor *of_row = where_counted(e, target, mean_gradient, column_of(x));
    me_drop(e, mean_gradient);
    me_tensor *probabilities = each(e, "exp", x);
    me_tensor *sum = each(e, "add", gradient);
    me_drop(e, probabilities);
    gx[0] = made(e, "mul", (me_dtype)x->dtype, x->shape,
                 me_size_add(me_bytes(sum), me_bytes(of_row)));
    me_drop(e, sum);
    me_drop(e, of_row);
    gx[0] = me_leave(e, frame, gx[0]);
}

static const me_op nll_loss_op = ME_NODE("NllLossBackward0", nll_loss_backward);

static me_tensor *nll_loss(const me_nn *nn, me_tensor *x, me_tensor *target)
{
    me_engine *e = nn->e;
    me_node *node = me_record1(e, &nll_loss_op, x);
    me_tensor *total_weight = NULL;
    me_tensor *loss = nll_loss_local(nn, x, target, &total_weight);
    me_lay(e, loss, ME_DLAYOUT_REPLICATE);
    me_nll_loss_save(e, node, x, target, total_weight);
    me_release(e, total_weight);
    return me_output(e, node, loss);
}

me_tensor *me_loss_parallel(const me_nn *nn, me_tensor *x, me_tensor *target)
{
    me_engine *e = nn->e;
    if (!me_cross_entropy_takes(e, x, target)) {
        return me_none(e);
    }
    const me_frame frame = me_enter(e);
    me_tensor *log_probabilities = me_autocast_float(e, log_softmax(nn, x));
    return me_leave(e, frame, nll_loss(nn, log_probabilities, target));
}
