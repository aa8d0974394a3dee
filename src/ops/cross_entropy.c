/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/cross_entropy.h"

#include "ops/autocast_casts.h"
#include "ops/view.h"

#include <inttypes.h>

enum {
    LOG_SOFTMAX_SAVED_RESULT
};

static const me_op log_softmax_gradient = {"_log_softmax_backward_data",
                                           "_log_softmax_backward_data.default",
                                           .cost = ME_COST(SOFTMAX, 1, 2, 1)};

static void log_softmax_backward(me_engine *e, me_node *node,
                                 me_tensor *const *gy, me_tensor **gx)
{
    gx[0] = me_kernel_dense(
        e, &log_softmax_gradient,
        ME_TENSORS(gy[0], node->saved[LOG_SOFTMAX_SAVED_RESULT]));
}

static const me_op log_softmax_op =
    ME_OP("_log_softmax", "_log_softmax.default", ME_COST(SOFTMAX, 1, 1, 1),
          "LogSoftmaxBackward0", .backward = log_softmax_backward,
          .queries = 3 /* half to float? to(): any change? */);

static me_tensor *log_softmax(me_engine *e, me_tensor *x)
{
    me_node *node = me_record1(e, &log_softmax_op, x);
    me_tensor *y = me_kernel_dense(e, &log_softmax_op, ME_TENSORS(x));
    me_save(e, node, LOG_SOFTMAX_SAVED_RESULT, y);
    return me_output(e, node, y);
}

static const me_op nll_loss_gradient = {"nll_loss_backward",
                                        "nll_loss_backward.default",
                                        .cost = ME_COST(SOFTMAX, 1, 0, 1)};

/** Zeros but for one element a row. */
static void nll_loss_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                              me_tensor **gx)
{
    const me_tensor *self = node->saved[ME_NLL_SAVED_SELF];
    gx[0] = me_kernel(e, &nll_loss_gradient,
                      ME_TENSORS(gy[0], self, node->saved[ME_NLL_SAVED_TARGET],
                                 node->saved[ME_NLL_SAVED_TOTAL_WEIGHT]),
                      (me_dtype)self->dtype, self->shape);
}

static const me_op nll_loss_op = {
    "nll_loss_forward", .dispatcher = "nll_loss_forward.default",
    .node = "NllLossBackward0", .backward = nll_loss_backward};

void me_nll_loss_save(me_engine *e, me_node *node, me_tensor *x,
                      me_tensor *target, me_tensor *total_weight)
{
    me_save(e, node, ME_NLL_SAVED_SELF, x);
    me_save(e, node, ME_NLL_SAVED_TARGET, target);
    me_save(e, node, ME_NLL_SAVED_TOTAL_WEIGHT, total_weight);
}

static me_tensor *nll_loss(me_engine *e, me_tensor *x, me_tensor *target)
{
    me_node *node = me_record1(e, &nll_loss_op, x);
    me_tensor *loss =
        me_empty(e, nll_loss_op.event, (me_dtype)x->dtype, ME_SCALAR);
    me_tensor *total_weight =
        me_empty(e, nll_loss_op.event, (me_dtype)x->dtype, ME_SCALAR);
    me_op_tell(e, &nll_loss_op, ME_TENSORS(x, target),
               ME_TENSORS(loss, total_weight));
    me_nll_loss_save(e, node, x, target, total_weight);
    me_drop(e, total_weight);
    return me_output(e, node, loss);
}

bool me_cross_entropy_takes(me_engine *e, const me_tensor *x,
                            const me_tensor *target)
{
    if (!me_engine_is_ok(e)) {
        return false;
    }
    if (target == NULL || target->dtype != ME_DTYPE_INT64 ||
        me_rows(x) != me_numel(target)) {
        me_engine_fail(e, ME_ERR_CONFIG,
                       "cross_entropy: %" PRIu64
                       " rows need as many int64 targets, not %" PRIu64
                       " of %s",
                       me_rows(x), target == NULL ? 0 : me_numel(target),
                       target == NULL ? "nothing"
                                      : me_dtype_name((me_dtype)target->dtype));
        return false;
    }
    return true;
}

me_tensor *me_cross_entropy(me_engine *e, me_tensor *x, me_tensor *target)
{
    if (!me_cross_entropy_takes(e, x, target)) {
        return me_none(e);
    }
    const me_frame frame = me_enter(e);
    if (x->shape.ndim > 2) { // `x.flatten(0, -2)`, `target.flatten()`
        x = me_reshape(e, x, ME_SHAPE(me_rows(x), me_dim(x, -1)));
    }
    if (target->shape.ndim > 1) {
        target = me_reshape(e, target, ME_SHAPE(me_numel(target)));
    }
    me_autocast_ask(e, x);
    me_tensor *log_probabilities = log_softmax(e, x);
    me_autocast_ask(e, target);
    log_probabilities = me_autocast_float(e, log_probabilities);
    return me_leave(e, frame, nll_loss(e, log_probabilities, target));
}
