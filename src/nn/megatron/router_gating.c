/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/router_parts.h"
#include "nn/megatron/te_state.h"
#include "nn/megatron/token_dispatcher.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"

/* RouterGatingLinearFunction: a product whose result may be wider than what it
 * is made of. Transformer Engine's takes operands of unlike types; PyTorch's
 * needs copies of both. */

enum {
    SAVED_INPUT,
    SAVED_WEIGHT,
    SAVED_BIAS
};

static me_dtype router_dtype(const me_nn *nn, const me_tensor *x)
{
    switch (nn->config->moe.router_dtype) {
    case ME_ROUTER_DTYPE_FP32: return ME_DTYPE_FLOAT32;
    case ME_ROUTER_DTYPE_FP64: return ME_DTYPE_FLOAT64;
    case ME_ROUTER_DTYPE_NONE: break;
    }
    return (me_dtype)x->dtype;
}

/** te_general_gemm() is there and knows no float64. */
static bool has_te_product(const me_nn *nn, me_dtype dtype)
{
    return nn->config->impl.importable == ME_IMPORTABLE_TE &&
           dtype != ME_DTYPE_FLOAT64;
}

static me_tensor *product(me_nn *nn, me_kernel_class kernel, me_dtype dtype,
                          me_shape shape, uint64_t inner)
{
    return has_te_product(nn, dtype)
               ? me_te_gemm(nn, kernel, dtype, shape, inner)
               : me_gemm(nn->e, kernel, dtype, shape, inner);
}

/** `x.to(dtype)`, off the tape: @p x itself if it is of that type. */
static me_tensor *converted(me_engine *e, me_tensor *x, me_dtype dtype)
{
    return (me_dtype)x->dtype == dtype ? x : me_pointwise(e, "to", x, dtype);
}

static void drop_copy(me_engine *e, me_tensor *copy, const me_tensor *of)
{
    if (copy != of) {
        me_drop(e, copy);
    }
}

/** A gradient of @p dtype, made with a copy of the operand @p other in the type
 *  of the router. */
static me_tensor *gradient(me_nn *nn, me_kernel_class kernel, me_tensor *other,
                           const me_tensor *like, uint64_t inner,
                           me_dtype dtype)
{
    me_tensor *wide = converted(nn->e, other, dtype);
    me_tensor *y = product(nn, kernel, dtype, like->shape, inner);
    drop_copy(nn->e, wide, other);
    return y;
}

/** As it is needed: in the type of what it is the gradient of. */
static me_tensor *narrowed(me_engine *e, me_tensor *x, const me_tensor *like)
{
    me_tensor *y = converted(e, x, (me_dtype)like->dtype);
    drop_copy(e, x, y);
    return y;
}

static void gating_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                            me_tensor **gx)
{
    me_tensor *x = node->saved[SAVED_INPUT];
    me_tensor *weight = node->saved[SAVED_WEIGHT];
    me_nn *nn = ((const me_router *)node->data.context)->nn;
    const me_dtype dtype = (me_dtype)gy[0]->dtype;
    const uint64_t experts = me_dim(weight, 0);
    me_launch_host(e, ME_HOST_ROUTER);
    me_dispatcher_launch_host(nn); // its layer's last node
    gx[0] = gradient(nn, ME_KERNEL_ROUTER_DGRAD, weight, x, experts, dtype);
    if (!has_te_product(nn, dtype)) {
        gx[0] = narrowed(e, gx[0], x);
    }
    gx[1] = gradient(nn, ME_KERNEL_ROUTER_WGRAD, x, weight, me_rows(x), dtype);
    gx[0] = narrowed(e, gx[0], x);
    gx[1] = narrowed(e, gx[1], weight);
    if (node->n_inputs > 2) {
        const me_shape columns = ME_SHAPE(experts);
        gx[2] = narrowed(e, me_sum_to(e, gy[0], &columns), weight);
    }
}

static const me_op gating_op =
    ME_NODE("RouterGatingLinearFunctionBackward", gating_backward);

me_tensor *me_router_gating(const me_router *router, me_tensor *x)
{
    me_nn *nn = router->nn;
    me_engine *e = nn->e;
    me_tensor *weight = router->weight->tensor;
    me_tensor *bias = router->bias == NULL ? NULL : router->bias->tensor;
    const me_dtype dtype = router_dtype(nn, x);
    me_node *node = me_record(e, &gating_op, bias == NULL ? 2 : 3,
                              (me_tensor *[]){x, weight, bias});
    if (node != NULL) {
        node->data.context = router;
    }
    me_save(e, node, SAVED_INPUT, x);
    me_save(e, node, SAVED_WEIGHT, weight);
    me_save(e, node, SAVED_BIAS, bias);
    me_shape shape = x->shape;
    shape.dim[shape.ndim - 1] = me_dim(weight, 0);
    const bool copies = !has_te_product(nn, dtype);
    me_tensor *wide_x = copies ? converted(e, x, dtype) : x;
    me_tensor *wide_weight = copies ? converted(e, weight, dtype) : weight;
    me_tensor *logits =
        product(nn, ME_KERNEL_ROUTER, dtype, shape, me_dim(x, -1));
    drop_copy(e, wide_x, x);
    drop_copy(e, wide_weight, weight);
    return me_output(e, node, logits);
}
