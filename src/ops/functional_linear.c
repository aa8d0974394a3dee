/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/functional_linear.h"

#include "base/size.h"
#include "ops/autocast_casts.h"
#include "ops/matmul.h"
#include "ops/view.h"
#include "tensor/autograd.h"
#include "tensor/hooks.h"
#include "tensor/region.h"

/** What addmm (mat1, mat2) and mm (mat2, self) remember, in the order in which
 *  it is released. */
enum {
    ADDMM_SAVED_INPUT,
    ADDMM_SAVED_WEIGHT
};

enum {
    MM_SAVED_WEIGHT,
    MM_SAVED_INPUT
};

/** Inputs of AddmmBackward0; MmBackward0 has the last two. */
enum {
    ADDMM_BIAS,
    ADDMM_INPUT,
    ADDMM_WEIGHT
};

/** Tell of `mm`, or of `addmm` with a bias: (m, k) · (k, n) to @p y, (m, n). */
static void tell_product(me_engine *e, const char *op, uint64_t k,
                         me_tensors arguments, const me_tensor *y)
{
    if (me_is_listened_to(e)) {
        me_tell_operation(
            e, &(me_operation){.name = op,
                               .arguments = arguments,
                               .results = ME_TENSORS(y),
                               .flops = me_size_mul(2 * k, me_numel(y))});
    }
}

/** A product with a gradient that may be one number expanded (that of a sum):
 *  the kernel wants it dense. */
static me_tensor *product_with(me_engine *e, me_kernel_class kernel,
                               const me_tensor *gradient,
                               const me_tensor *other, me_shape shape,
                               uint64_t inner)
{
    me_tensor *y = me_empty(e, me_kernel_class_name(kernel),
                            (me_dtype)gradient->dtype, shape);
    me_tensor *copy = NULL;
    if (me_tensor_is_expanded(gradient)) {
        copy = me_empty_inside(e, "clone", (me_dtype)gradient->dtype,
                               gradient->shape);
    }
    me_gemm_run(e, kernel, y, inner);
    me_drop(e, copy);
    tell_product(e, "mm.default", inner, ME_TENSORS(gradient, other), y);
    return y;
}

static const me_op t_kernel = {.dispatcher = "t.default", .is_view = true};

/** Gradient of the input, (n, in), with weightᵀ that was saved. */
static me_tensor *input_gradient(me_engine *e, const me_node *node,
                                 const me_tensor *gy, const me_tensor *wt)
{
    const uint64_t inputs = node->data.n[0];
    me_op_tell(e, &t_kernel, ME_TENSORS(wt), ME_TENSORS(wt));
    return product_with(e, ME_KERNEL_LINEAR_DGRAD, gy, wt,
                        ME_SHAPE(me_dim(gy, 0), inputs), me_dim(gy, 1));
}

/** Gradient of weightᵀ, (in, out): made as (out, in), so that it comes back
 *  from its transpose with the weight's own strides. */
static me_tensor *weight_gradient(me_engine *e, const me_node *node,
                                  const me_tensor *gy, const me_tensor *x)
{
    const uint64_t inputs = node->data.n[0];
    me_op_tell(e, &t_kernel, ME_TENSORS(gy), ME_TENSORS(gy));
    me_tensor *grad =
        product_with(e, ME_KERNEL_LINEAR_WGRAD, gy, x,
                     ME_SHAPE(me_dim(gy, 1), inputs), me_dim(gy, 0));
    me_op_tell(e, &t_kernel, ME_TENSORS(grad), ME_TENSORS(grad));
    return me_alias(e, grad, ME_SHAPE(inputs, me_dim(gy, 1)),
                    (uint64_t[]){1, inputs});
}

static void addmm_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                           me_tensor **gx)
{
    if (me_needs(node, ADDMM_INPUT)) {
        gx[ADDMM_INPUT] =
            input_gradient(e, node, gy[0], node->saved[ADDMM_SAVED_WEIGHT]);
    }
    if (me_needs(node, ADDMM_WEIGHT)) {
        gx[ADDMM_WEIGHT] =
            weight_gradient(e, node, gy[0], node->saved[ADDMM_SAVED_INPUT]);
    }
    gx[ADDMM_BIAS] = gy[0]; // summed to (out) by the tape
}

static void mm_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                        me_tensor **gx)
{
    if (me_needs(node, 1)) {
        gx[1] = weight_gradient(e, node, gy[0], node->saved[MM_SAVED_INPUT]);
    }
    if (me_needs(node, 0)) {
        gx[0] = input_gradient(e, node, gy[0], node->saved[MM_SAVED_WEIGHT]);
    }
}

static const me_op addmm_op = ME_NODE("AddmmBackward0", addmm_backward);
static const me_op mm_op = ME_NODE("MmBackward0", mm_backward);

/** How long a row of the input is, for the formulas. */
static void note_inputs(me_node *node, const me_tensor *wt)
{
    if (node != NULL) {
        node->data.n[0] = me_dim(wt, 0);
    }
}

/** What a product keeps of one operand, before the kernel runs, for the
 *  gradient of the other. */
static const me_tensor *kept_for(const me_tensor *other, const me_tensor *x)
{
    return other->requires_grad ? x : NULL;
}

/** `torch.addmm(bias, x, wt)` through cuBLASLt: (n, in) to (n, out). */
static me_tensor *addmm(me_engine *e, me_tensor *x, me_tensor *wt,
                        me_tensor *bias)
{
    me_node *node = me_record(e, &addmm_op, 3, (me_tensor *[]){bias, x, wt});
    note_inputs(node, wt);
    me_save(e, node, ADDMM_SAVED_INPUT, kept_for(wt, x));
    me_save(e, node, ADDMM_SAVED_WEIGHT, kept_for(x, wt));
    me_tensor *y = me_empty(e, "addmm", (me_dtype)x->dtype,
                            ME_SHAPE(me_dim(x, 0), me_dim(wt, 1)));
    me_gemm_run(e, ME_KERNEL_LINEAR, y, me_dim(wt, 0));
    me_lt_workspace(e);
    tell_product(e, "addmm.default", me_dim(wt, 0), ME_TENSORS(bias, x, wt), y);
    return me_output(e, node, y);
}

/** `torch.mm(x, wt)`: (n, in) to (n, out). */
static me_tensor *mm(me_engine *e, me_tensor *x, me_tensor *wt)
{
    me_node *node = me_record2(e, &mm_op, x, wt);
    note_inputs(node, wt);
    me_save(e, node, MM_SAVED_WEIGHT, kept_for(x, wt));
    me_save(e, node, MM_SAVED_INPUT, kept_for(wt, x));
    me_tensor *y = NULL;
    if (!me_region_kept(e, ME_REGION_MM, 1, &y)) {
        y = me_empty(e, "mm", (me_dtype)x->dtype,
                     ME_SHAPE(me_dim(x, 0), me_dim(wt, 1)));
        me_gemm_run(e, ME_KERNEL_LINEAR, y, me_dim(wt, 0));
        tell_product(e, "mm.default", me_dim(wt, 0), ME_TENSORS(x, wt), y);
        me_region_keep(e, ME_REGION_MM, 1, &y);
    }
    return me_output(e, node, y);
}

/** The rows of all dimensions but the last. */
static me_shape rows_of(const me_tensor *x)
{
    const uint64_t columns = me_dim(x, -1);
    return ME_SHAPE(columns == 0 ? 0 : me_numel(x) / columns, columns);
}

/** Are both factors, and a bias, of one type? PyTorch casts nothing here. */
static bool are_alike(me_engine *e, const me_tensor *x, const me_tensor *weight,
                      const me_tensor *bias)
{
    if (x->dtype != weight->dtype) {
        me_engine_fail(e, ME_ERR_CONFIG,
                       "a matrix product of %s with %s weights: PyTorch wants "
                       "one type of both, by dtype of the module or a cast of "
                       "its input",
                       me_dtype_name((me_dtype)x->dtype),
                       me_dtype_name((me_dtype)weight->dtype));
    } else if (bias != NULL && bias->dtype != weight->dtype) {
        me_engine_fail(e, ME_ERR_CONFIG,
                       "a matrix product with %s weights and a bias of %s: "
                       "PyTorch wants one type of both",
                       me_dtype_name((me_dtype)weight->dtype),
                       me_dtype_name((me_dtype)bias->dtype));
    }
    return me_engine_is_ok(e);
}

me_tensor *me_functional_linear(me_engine *e, me_tensor *x, me_tensor *weight,
                                me_tensor *bias)
{
    if (!me_engine_is_ok(e)) {
        return me_none(e);
    }
    const me_frame frame = me_enter(e);
    bias = me_autocast_lower(e, bias);
    weight = me_autocast_lower(e, weight);
    x = me_autocast_lower(e, x);
    if (!me_engine_is_ok(e) || // a cast may have failed
        !are_alike(e, x, weight, bias)) {
        return me_leave(e, frame, me_none(e));
    }
    me_tensor *rows = x;
    me_tensor *wt = NULL;
    me_shape shape = x->shape;
    shape.dim[shape.ndim - 1] = me_dim(weight, 0);
    if (bias != NULL && shape.ndim != 2) {
        me_tell_device_query(e, x); // native/Linear.cpp: is it XLA?
    }
    if (bias == NULL) {
        wt = me_transpose(e, weight, 0, 1); // matmul gets it, and then folds
    }
    if (shape.ndim > 2) {
        rows = me_reshape(e, x, rows_of(x));
    }
    if (bias != NULL) {
        wt = me_transpose(e, weight, 0, 1);
    }
    me_tensor *y = bias == NULL ? mm(e, rows, wt) : addmm(e, rows, wt, bias);
    if (shape.ndim > 2 && me_engine_is_ok(e)) {
        y = bias == NULL ? me_unsafe_view(e, y, shape) : me_view(e, y, shape);
    }
    return me_leave(e, frame, y); // (…, out)
}
