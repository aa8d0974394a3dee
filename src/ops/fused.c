/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/size.h"
#include "ops/compiled.h"
#include "ops/elementwise.h"
#include "tensor/autograd.h"

/* Activations that are compiled into one function. */

/** The gradient of x; the bias's is its sum, which the tape makes. */
static void bias_gelu_backward(me_engine *e, me_node *node,
                               me_tensor *const *gy, me_tensor **gx)
{
    gx[0] = me_kernel(e, ME_KERNEL_COMPILED, "bias_gelu_backward", gy[0], NULL,
                      3 * me_bytes(gy[0]));
    me_compiled_run(e, ME_COMPILED_BIAS_GELU_BACKWARD, NULL);
    gx[1] = me_needs(node, 1) ? gx[0] : NULL;
}

static const me_op bias_gelu_op = {"GeLUFunctionBackward", bias_gelu_backward};

me_tensor *me_bias_gelu(me_engine *e, me_tensor *x, me_tensor *bias)
{
    me_node *node = me_record2(e, &bias_gelu_op, x, bias);
    me_save(e, node, 0, x);
    me_save(e, node, 1, bias);
    me_tensor *y =
        me_kernel(e, ME_KERNEL_COMPILED, "bias_gelu", x, NULL, 2 * me_bytes(x));
    me_compiled_run(e, ME_COMPILED_BIAS_GELU, NULL);
    return me_output(e, node, y);
}

/** As of bias_gelu_backward(). */
static void fused_swiglu_backward(me_engine *e, me_node *node,
                                  me_tensor *const *gy, me_tensor **gx)
{
    (void)gy;
    const me_tensor *x = node->saved[0];
    gx[0] = me_kernel(e, ME_KERNEL_COMPILED, "swiglu_backward", x, NULL,
                      me_size_mul(5, me_bytes(x)) / 2);
    me_compiled_run(e, ME_COMPILED_SWIGLU_BACKWARD, NULL);
    if (node->n_inputs > 1) {
        gx[1] = me_needs(node, 1) ? gx[0] : NULL;
    }
}

static const me_op fused_swiglu_op = {"SwiGLUFunctionBackward",
                                      fused_swiglu_backward};
static const me_op bias_swiglu_op = {"BiasSwiGLUFunctionBackward",
                                     fused_swiglu_backward};

me_tensor *me_fused_swiglu(me_engine *e, me_tensor *x, me_tensor *bias)
{
    me_node *node = bias == NULL ? me_record1(e, &fused_swiglu_op, x)
                                 : me_record2(e, &bias_swiglu_op, x, bias);
    me_save(e, node, 0, x);
    me_save(e, node, 1, bias);
    me_shape shape = x->shape;
    if (me_engine_is_ok(e)) {
        shape.dim[shape.ndim - 1] /= 2;
    }
    me_tensor *y = me_empty(e, "swiglu", (me_dtype)x->dtype, shape);
    me_launch_kernel(e, ME_KERNEL_COMPILED, me_numel(x),
                     me_size_add(me_bytes(x), me_bytes(y)));
    me_compiled_run(e, ME_COMPILED_SWIGLU, NULL);
    return me_output(e, node, y);
}

enum {
    WEIGHTED_SWIGLU_SAVED_INPUT,
    WEIGHTED_SWIGLU_SAVED_WEIGHTS
};

/** What a compiled function that was promised alignment copies first. */
static me_tensor *align(me_engine *e, const me_tensor *x, bool is_aligned)
{
    return is_aligned ? NULL : me_clone_detached(e, x);
}

static void weighted_swiglu_backward(me_engine *e, me_node *node,
                                     me_tensor *const *gy, me_tensor **gx)
{
    (void)gy;
    const me_tensor *x = node->saved[WEIGHTED_SWIGLU_SAVED_INPUT];
    const me_tensor *weights = node->saved[WEIGHTED_SWIGLU_SAVED_WEIGHTS];
    me_tensor *copy = align(e, weights, node->data.flag);
    gx[0] = me_kernel(e, ME_KERNEL_COMPILED, "weighted_swiglu_backward", x,
                      NULL, me_size_mul(5, me_bytes(x)) / 2);
    me_drop(e, copy);
    gx[1] = me_pointwise(e, "weighted_swiglu_backward", weights,
                         (me_dtype)weights->dtype);
    me_compiled_run_rows(e, ME_COMPILED_WEIGHTED_SWIGLU_BACKWARD, me_dim(x, 0));
}

static const me_op weighted_swiglu_op = {"WeightedSwiGLUFunctionBackward",
                                         weighted_swiglu_backward};

me_tensor *me_fused_weighted_swiglu(me_engine *e, me_tensor *x,
                                    me_tensor *weights, bool is_aligned)
{
    me_node *node = me_record2(e, &weighted_swiglu_op, x, weights);
    me_save(e, node, WEIGHTED_SWIGLU_SAVED_INPUT, x);
    me_save(e, node, WEIGHTED_SWIGLU_SAVED_WEIGHTS, weights);
    if (node != NULL) {
        node->data.flag = is_aligned;
    }
    me_shape shape = x->shape;
    if (me_engine_is_ok(e)) {
        shape.dim[shape.ndim - 1] /= 2;
    }
    me_tensor *copy = align(e, weights, is_aligned);
    me_tensor *y = me_empty(e, "weighted_swiglu", (me_dtype)x->dtype, shape);
    me_launch_kernel(e, ME_KERNEL_COMPILED, me_numel(x),
                     me_size_add(me_bytes(x), me_bytes(y)));
    me_compiled_run_rows(e, ME_COMPILED_WEIGHTED_SWIGLU, me_dim(x, 0));
    me_drop(e, copy);
    return me_output(e, node, y);
}
