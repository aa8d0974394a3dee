/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/residual.h"

#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "ops/view.h"
#include "tensor/launch.h"

/** _bias_dropout_add_func() writes into @p x in evaluation, where nothing that it
 *  takes asks for a gradient. */
static bool adds_in_place(const me_nn *nn, const me_tensor *x,
                          const me_parameter *bias, const me_tensor *residual)
{
    return nn->is_evaluating && bias == NULL && !x->requires_grad &&
           !residual->requires_grad;
}

/** `out.add_(residual)`. */
static me_tensor *add_in_place(me_engine *e, me_tensor *x, me_tensor *residual)
{
    if (x->dtype != residual->dtype) { // fp32_residual_connection
        x = me_cast(e, x, (me_dtype)residual->dtype);
    }
    return me_add_in_place(e, x, residual);
}

static bool compiles_residuals(const me_nn *nn)
{
    return nn->config->train.bias_dropout_fusion &&
           nn->config->train.torch_compile;
}

/** residual + dropout(x + bias), anew. */
static me_tensor *add_residual(me_nn *nn, me_tensor *x, me_parameter *bias,
                               me_tensor *residual)
{
    me_engine *e = nn->e;
    const double p = nn->config->model.hidden_dropout;
    if (compiles_residuals(nn)) {
        return me_fused_bias_dropout_add(
            e, x, bias == NULL ? NULL : bias->tensor, residual, p);
    }
    if (bias != NULL) {
        x = me_add(e, x, bias->tensor);
    }
    me_tensor *dropped = me_dropout(e, x, p);
    me_tensor *out = me_add(e, residual, dropped);
    if (dropped != x) {
        me_drop(e, dropped);
    }
    return out;
}

me_tensor *me_bias_dropout_add(me_nn *nn, me_tensor *x, me_parameter *bias,
                               me_tensor *residual)
{
    me_engine *e = nn->e;
    const bool grad = me_grad_enable(e, true);
    const me_frame frame = me_enter(e);
    me_tensor *out = NULL;
    me_launch_host(e, ME_HOST_RESIDUAL);
    if (!adds_in_place(nn, x, bias, residual)) {
        out = add_residual(nn, x, bias, residual);
    } else if (!compiles_residuals(nn)) {
        out = add_in_place(e, x, residual);
    } else {
        out = x->dtype == residual->dtype
                  ? me_fused_add_in_place(e, x, residual)
                  : add_residual(nn, x, NULL, residual);
    }
    me_leave(e, frame, out);
    me_grad_enable(e, grad);
    return out;
}

me_tensor *me_viewless_residual(const me_nn *nn, me_tensor *y)
{
    me_engine *e = nn->e;
    if (nn->config->impl.transformer != ME_TRANSFORMER_LOCAL &&
        !y->requires_grad) {
        y = me_rebind(e, y, me_alias(e, y, y->shape, y->strides));
    }
    return me_rebind(e, y, me_make_viewless(e, y));
}
