/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/compiled.h"
#include "ops/elementwise.h"
#include "tensor/autograd.h"

/* Activations that are compiled into one function. */

static const me_op bias_gelu_gradient = {"bias_gelu_backward",
                                         .cost = ME_COST(COMPILED, 1, 2, 1)};

/** The gradient of x; the bias's is its sum, which the tape makes. */
static void bias_gelu_backward(me_engine *e, me_node *node,
                               me_tensor *const *gy, me_tensor **gx)
{
    gx[0] = me_kernel_like(e, &bias_gelu_gradient,
                           ME_TENSORS(gy[0], node->saved[0]));
    me_compiled_run(e, ME_COMPILED_BIAS_GELU_BACKWARD, NULL);
    gx[1] = me_needs(node, 1) ? gx[0] : NULL;
}

static const me_op bias_gelu_op =
    ME_OP("bias_gelu", NULL, ME_COST(COMPILED, 1, 1, 1), "GeLUFunctionBackward",
          .backward = bias_gelu_backward);

me_tensor *me_bias_gelu(me_engine *e, me_tensor *x, me_tensor *bias)
{
    me_node *node = me_record2(e, &bias_gelu_op, x, bias);
    me_save(e, node, 0, x);
    me_save(e, node, 1, bias);
    me_tensor *y = me_kernel_like(e, &bias_gelu_op, ME_TENSORS(x));
    me_compiled_run(e, ME_COMPILED_BIAS_GELU, NULL);
    return me_output(e, node, y);
}

/** Half as wide as @p x: (…, 2f) to (…, f). */
static me_tensor *halved(me_engine *e, const me_op *op, const me_tensor *x)
{
    return me_kernel(e, op, ME_TENSORS(x), (me_dtype)x->dtype,
                     me_shape_with_last(&x->shape, me_dim(x, -1) / 2));
}

static const me_op swiglu_gradient = {"swiglu_backward",
                                      .cost = ME_COST(COMPILED, 1, 2, 1)};

/** As of bias_gelu_backward(). */
static void fused_swiglu_backward(me_engine *e, me_node *node,
                                  me_tensor *const *gy, me_tensor **gx)
{
    gx[0] =
        me_kernel_like(e, &swiglu_gradient, ME_TENSORS(node->saved[0], gy[0]));
    me_compiled_run(e, ME_COMPILED_SWIGLU_BACKWARD, NULL);
    if (node->n_inputs > 1) {
        gx[1] = me_needs(node, 1) ? gx[0] : NULL;
    }
}

static const me_op fused_swiglu_op =
    ME_OP("swiglu", NULL, ME_COST(COMPILED, 2, 1, 1), "SwiGLUFunctionBackward",
          .backward = fused_swiglu_backward, .marks_saved = true);
static const me_op bias_swiglu_op = ME_OP(
    "swiglu", NULL, ME_COST(COMPILED, 2, 1, 1), "BiasSwiGLUFunctionBackward",
    .backward = fused_swiglu_backward, .marks_saved = true);

me_tensor *me_fused_swiglu(me_engine *e, me_tensor *x, me_tensor *bias)
{
    me_node *node = bias == NULL ? me_record1(e, &fused_swiglu_op, x)
                                 : me_record2(e, &bias_swiglu_op, x, bias);
    me_save(e, node, 0, x);
    me_save(e, node, 1, bias);
    me_tensor *y = halved(e, &fused_swiglu_op, x);
    me_compiled_run(e, ME_COMPILED_SWIGLU, NULL);
    return me_output(e, node, y);
}

enum {
    WEIGHTED_SWIGLU_SAVED_INPUT,
    WEIGHTED_SWIGLU_SAVED_WEIGHTS,
    WEIGHTED_SWIGLU_SAVED_OFFSET
};

/** What a compiled function that was promised alignment copies first. */
static me_tensor *align(me_engine *e, const me_tensor *x, bool is_aligned)
{
    return is_aligned ? NULL : me_clone_detached(e, x);
}

static const me_op weighted_swiglu_gradient = {
    "weighted_swiglu_backward", .cost = ME_COST(COMPILED, 1, 2, 1)};
static const me_op weight_gradient = {"weighted_swiglu_backward",
                                      .cost = ME_POINTWISE};

static void weighted_swiglu_backward(me_engine *e, me_node *node,
                                     me_tensor *const *gy, me_tensor **gx)
{
    const me_tensor *x = node->saved[WEIGHTED_SWIGLU_SAVED_INPUT];
    const me_tensor *weights = node->saved[WEIGHTED_SWIGLU_SAVED_WEIGHTS];
    me_tensor *copy = align(e, weights, node->data.flag);
    gx[0] = me_kernel_like(e, &weighted_swiglu_gradient, ME_TENSORS(x, gy[0]));
    // The sum of the weights' gradient, a kernel of its own, is not timed.
    me_compiled_run_rows(e, ME_COMPILED_WEIGHTED_SWIGLU_BACKWARD, me_dim(x, 0));
    me_drop(e, copy);
    gx[1] = me_kernel_like(e, &weight_gradient, ME_TENSORS(weights));
}

static const me_op weighted_swiglu_op = ME_OP(
    "weighted_swiglu", NULL, ME_COST(COMPILED, 2, 1, 1),
    "WeightedSwiGLUFunctionBackward", .backward = weighted_swiglu_backward);
static const me_op weighted_quick_geglu_op = ME_OP(
    "weighted_quick_geglu", NULL, ME_COST(COMPILED, 2, 1, 1),
    "WeightedQuickGeGLUFunctionBackward", .backward = weighted_swiglu_backward);

/** @param offset  saved as well; NULL: none */
static me_tensor *weighted(me_engine *e, const me_op *op, me_tensor *x,
                           me_tensor *weights, me_tensor *offset,
                           bool is_aligned)
{
    me_node *node = me_record2(e, op, x, weights);
    me_save(e, node, WEIGHTED_SWIGLU_SAVED_INPUT, x);
    me_save(e, node, WEIGHTED_SWIGLU_SAVED_WEIGHTS, weights);
    me_save(e, node, WEIGHTED_SWIGLU_SAVED_OFFSET, offset);
    if (node != NULL) {
        node->data.flag = is_aligned;
    }
    me_tensor *copy = align(e, weights, is_aligned);
    me_tensor *y = halved(e, op, x);
    me_compiled_run_rows(e, ME_COMPILED_WEIGHTED_SWIGLU, me_dim(x, 0));
    me_drop(e, copy);
    return me_output(e, node, y);
}

me_tensor *me_fused_weighted_swiglu(me_engine *e, me_tensor *x,
                                    me_tensor *weights, bool is_aligned)
{
    return weighted(e, &weighted_swiglu_op, x, weights, NULL, is_aligned);
}

me_tensor *me_fused_weighted_quick_geglu(me_engine *e, me_tensor *x,
                                         me_tensor *weights, me_tensor *offset)
{
    return weighted(e, &weighted_quick_geglu_op, x, weights, offset, true);
}

static const me_op output_gate_gradient = {"output_gate_backward",
                                           .cost = ME_COST(COMPILED, 4, 2, 1)};
static const me_op gate_gradient = {"output_gate_backward",
                                    .cost = ME_COST(COMPILED, 4, 1, 1)};

enum {
    OUTPUT_GATE_SAVED_INPUT,
    OUTPUT_GATE_SAVED_GATE
};

/** One kernel writes both gradients, each dense. */
static void output_gate_backward(me_engine *e, me_node *node,
                                 me_tensor *const *gy, me_tensor **gx)
{
    const me_tensor *x = node->saved[OUTPUT_GATE_SAVED_INPUT];
    const me_tensor *gate = node->saved[OUTPUT_GATE_SAVED_GATE];
    gx[0] = me_kernel_like(e, &output_gate_gradient, ME_TENSORS(x, gy[0]));
    gx[1] = me_kernel(e, &gate_gradient, ME_NO_TENSORS, (me_dtype)x->dtype,
                      gate->shape);
    me_compiled_run(e, ME_COMPILED_OUTPUT_GATE_BACKWARD, NULL);
    me_clear(e, &node->saved[OUTPUT_GATE_SAVED_INPUT]); // as the list of its
    me_clear(e, &node->saved[OUTPUT_GATE_SAVED_GATE]);  // arguments ends
}

static const me_op output_gate_op =
    ME_OP("output_gate", NULL, ME_COST(COMPILED, 4, 2, 1),
          "CompiledFunctionBackward", .backward = output_gate_backward);

me_tensor *me_fused_output_gate(me_engine *e, me_tensor *x, me_tensor *gate)
{
    me_node *node = me_record2(e, &output_gate_op, x, gate);
    me_save(e, node, OUTPUT_GATE_SAVED_INPUT, x);
    me_save(e, node, OUTPUT_GATE_SAVED_GATE, gate);
    me_tensor *y = me_kernel_like(e, &output_gate_op, ME_TENSORS(x));
    me_compiled_run(e, ME_COMPILED_OUTPUT_GATE, NULL);
    return me_output(e, node, y);
}

static const me_op l2_norm_gradient = {"l2_norm_backward",
                                       .cost = ME_COST(COMPILED, 4, 2, 1)};

enum {
    L2_NORM_SAVED_INPUT,
    L2_NORM_SAVED_FACTOR
};

/** Inductor knows how to reduce dense rows, and few of them; others it times, if
 *  several fit in a block (num_splits() of ir.py, reduction_hint() of
 *  codegen/simd_kernel_features.py, _persistent_reduction_configs() of
 *  runtime/triton_heuristics.py). Heads and strides that change are any then. */
static void run_l2_norm(me_engine *e, me_compiled_kernel kernel,
                        const me_tensor *x, const me_tensor *changed)
{
    enum {
        ROWS_OF_SM = 64,
        BLOCK_ELEMENTS = 4096,
        ROWS_OF_BLOCK = 8
    };

    const uint64_t columns = me_dim(x, -1);
    const uint64_t rows = columns == 0 ? 0 : me_numel(x) / columns;
    if (me_tensor_is_contiguous(x) ||
        rows < (uint64_t)me_engine_card(e)->multiprocessors * ROWS_OF_SM ||
        columns > BLOCK_ELEMENTS / ROWS_OF_BLOCK) {
        return;
    }
    const uint64_t numbers[ME_COMPILED_NUMBERS] = {
        me_dim(x, -2), x->strides[0], x->strides[x->shape.ndim - 2]};
    me_compiled_run_numbers(e, kernel, numbers, changed,
                            changed == NULL ? 0 : 1);
}

static void l2_norm_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                             me_tensor **gx)
{
    const me_tensor *x = node->saved[L2_NORM_SAVED_INPUT];
    gx[0] = me_kernel(e, &l2_norm_gradient, ME_TENSORS(x, gy[0]),
                      (me_dtype)x->dtype, x->shape);
    run_l2_norm(e, ME_COMPILED_L2_NORM_BACKWARD, x, NULL);
    me_clear(e, &node->saved[L2_NORM_SAVED_INPUT]);  // as the list of its
    me_clear(e, &node->saved[L2_NORM_SAVED_FACTOR]); // arguments ends
}

static const me_op l2_norm_op =
    ME_OP("l2_norm", NULL, ME_COST(COMPILED, 3, 1, 1),
          "CompiledFunctionBackward", .backward = l2_norm_backward);

me_tensor *me_fused_l2_norm(me_engine *e, me_tensor *x)
{
    const me_frame frame = me_enter(e);
    me_node *node = me_record1(e, &l2_norm_op, x);
    me_tensor *factor = me_empty(e, "l2_norm", ME_DTYPE_FLOAT32,
                                 me_shape_with_last(&x->shape, 1));
    me_save(e, node, L2_NORM_SAVED_INPUT, x);
    me_save(e, node, L2_NORM_SAVED_FACTOR, factor);
    me_tensor *y =
        me_kernel(e, &l2_norm_op, ME_TENSORS(x), (me_dtype)x->dtype, x->shape);
    run_l2_norm(e, ME_COMPILED_L2_NORM, x, factor);
    return me_leave(e, frame, me_output(e, node, y));
}
