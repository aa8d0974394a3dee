/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/te_mlp.h"

#include "base/size.h"
#include "nn/megatron/te_linear.h"
#include "nn/megatron/te_overlap.h"
#include "nn/megatron/te_state.h"
#include "ops/reduce.h"
#include "ops/te_norm.h"
#include "ops/view.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"
#include "tensor/saved_hooks.h"

/* transformer_engine.pytorch.ops: fuser.py runs basic/layer_norm.py or
 * rmsnorm.py, basic_linear.py, bias.py (in half precision within the product:
 * fused/forward_linear_bias_activation.py), activation.py or swiglu.py,
 * basic_linear.py, and reduce_scatter.py or all_reduce.py, forward and then
 * backward. Each operation's input is a variable of the loop, which the next
 * one's takes the place of. With user buffers a linear operation, its bias and
 * what scatters its rows are one (fused/userbuffers_forward_linear.py, …backward…).
 */

/** What the operations save, in their order. */
enum {
    SAVED_INPUT,
    SAVED_MEAN,
    SAVED_RSTD,
    SAVED_NORMED,
    SAVED_FC1_WEIGHT,
    SAVED_FC1_OUTPUT,
    SAVED_ACTIVATION,
    SAVED_FC2_WEIGHT
};

/** The fuser's input and the operations' parameters. */
enum {
    INPUT_X,
    INPUT_NORM_WEIGHT,
    INPUT_NORM_BIAS,
    INPUT_FC1_WEIGHT,
    INPUT_FC1_BIAS,
    INPUT_FC2_WEIGHT,
    INPUT_COUNT
};

static me_tensor *tensor_of(const me_parameter *parameter)
{
    return parameter == NULL ? NULL : parameter->tensor;
}

/** An activation's kernel: an elementwise result of @p shape. */
static me_tensor *activate(me_engine *e, const char *op, const me_tensor *x,
                           me_shape shape)
{
    me_tensor *y = me_empty(e, op, (me_dtype)x->dtype, shape);
    me_launch_kernel(e, ME_KERNEL_ELEMENTWISE, me_numel(y),
                     me_size_add(me_bytes(x), me_bytes(y)));
    return y;
}

/** BasicLinear's product with a weight or its transpose.
 *  @param rows  a shape with the rows of @p x, or of all ranks' in a buffer */
static me_tensor *product(me_nn *nn, me_kernel_class kernel, const me_tensor *x,
                          const me_shape *rows, const me_linear *linear)
{
    const bool is_forward = kernel == ME_KERNEL_LINEAR;
    const me_tensor *weight = linear->weight->tensor;
    return me_te_gemm_with(
        nn,
        (me_te_product){.kernel = kernel,
                        .workspace = me_te_ops_workspace(nn, linear)},
        (me_dtype)x->dtype,
        me_shape_with_last(rows, me_dim(weight, is_forward ? 0 : 1)),
        me_dim(weight, is_forward ? 1 : 0));
}

/** The rows of all tensor ranks of @p x, (s/t, b, h), where the layer's are
 *  gathered: a new variable; or NULL: they are in a user buffer, or @p x is all.
 *  @param rows_out  their shape */
static me_tensor *gather(me_nn *nn, const me_linear *linear, const me_tensor *x,
                         me_shape *rows_out)
{
    const bool gathers = me_te_is_sequence_parallel(nn, linear);
    *rows_out = gathers ? me_te_all_rows(nn, x) : x->shape;
    return gathers && !me_te_ops_overlap(nn, linear) ? me_te_gather(nn, x)
                                                     : NULL;
}

/** fc2, and the reduction behind it. @return the gradient of the activation */
static me_tensor *fc2_backward(me_nn *nn, me_node *node, const me_linear *fc2,
                               me_tensor *gy, me_tensor **gx)
{
    me_main_grad_get(nn, fc2->weight->tensor);
    me_shape rows;
    me_tensor *gathered = gather(nn, fc2, gy, &rows);
    me_tensor *total = gathered == NULL ? gy : gathered;
    me_tensor *da = product(nn, ME_KERNEL_LINEAR_DGRAD, total, &rows, fc2);
    me_tensor *dw = me_te_weight_gradient(
        nn, node, INPUT_FC2_WEIGHT,
        (me_te_factors){.x = node->saved[SAVED_ACTIVATION], .gy = total}, fc2);
    me_saved_clear_data(nn->e, node, SAVED_ACTIVATION);
    gx[INPUT_FC2_WEIGHT] =
        me_te_returned_gradient(nn, node, INPUT_FC2_WEIGHT, fc2, dw);
    me_drop(nn->e, gathered);
    return da;
}

/** `dy.sum((0, 1))`: (s, b, f) to (f). */
static me_tensor *bias_gradient(me_engine *e, const me_tensor *gy)
{
    me_tensor *sum =
        me_empty(e, "sum", (me_dtype)gy->dtype, ME_SHAPE(me_dim(gy, -1)));
    me_reduce(e, &(me_reduction){
                     .inputs = me_rows(gy),
                     .outputs = me_dim(gy, -1),
                     .is_outer = true,
                     .element_bytes = me_dtype_bytes((me_dtype)gy->dtype),
                     .accumulator_bytes = 4,
                 });
    return sum;
}

/** The gradient of fc1's input made in one user buffer, while the input is
 *  gathered in another, and scattered there beside the weight's gradient.
 *  @return a copy of this rank's rows */
static me_tensor *fc1_in_buffers(me_nn *nn, const me_node *node,
                                 const me_linear *fc1, me_tensor *gu,
                                 me_tensor **dw_out)
{
    const me_tensor *weight = fc1->weight->tensor;
    me_tensor *normed = node->saved[SAVED_NORMED];
    me_te_gemm_into_with(nn,
                         (me_te_product){.kernel = ME_KERNEL_LINEAR_DGRAD,
                                         .workspace = ME_TE_WORKSPACE_OVERLAP},
                         (me_dtype)gu->dtype,
                         me_shape_with_last(&gu->shape, me_dim(weight, 1)),
                         me_dim(weight, 0));
    *dw_out = me_te_weight_gradient(
        nn, node, INPUT_FC1_WEIGHT,
        (me_te_factors){
            .x = normed, .gy = gu, .workspace = ME_TE_WORKSPACE_OVERLAP},
        fc1);
    return me_te_copy_out(nn, normed);
}

/** The same by NCCL, or of one tensor rank. */
static me_tensor *fc1_in_tensors(me_nn *nn, const me_node *node,
                                 const me_linear *fc1, me_tensor *gu,
                                 me_tensor **dw_out)
{
    me_engine *e = nn->e;
    me_tensor *normed = node->saved[SAVED_NORMED];
    me_shape rows;
    me_tensor *total = gather(nn, fc1, normed, &rows);
    me_tensor *full = product(nn, ME_KERNEL_LINEAR_DGRAD, gu, &gu->shape, fc1);
    me_tensor *dn = me_te_reduce_input_gradient(nn, fc1, full);
    *dw_out = me_te_weight_gradient(
        nn, node, INPUT_FC1_WEIGHT,
        (me_te_factors){.x = total == NULL ? normed : total, .gy = gu}, fc1);
    me_launch_stream_waits(e);
    if (total != NULL) {
        me_drop(e, full);
        me_drop(e, total);
    }
    return dn;
}

/** fc1. @return the gradient of the normalised input */
static me_tensor *fc1_backward(me_nn *nn, const me_node *node,
                               const me_linear *fc1, me_tensor *gu,
                               me_tensor **gx)
{
    me_main_grad_get(nn, fc1->weight->tensor);
    me_tensor *dw = NULL;
    me_tensor *dn = me_te_ops_overlap(nn, fc1)
                        ? fc1_in_buffers(nn, node, fc1, gu, &dw)
                        : fc1_in_tensors(nn, node, fc1, gu, &dw);
    gx[INPUT_FC1_WEIGHT] =
        me_te_returned_gradient(nn, node, INPUT_FC1_WEIGHT, fc1, dw);
    return dn;
}

static void mlp_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                         me_tensor **gx)
{
    const me_mlp *mlp = node->data.context;
    const me_linear *fc1 = &mlp->linear_fc1;
    me_nn *nn = fc1->nn;
    me_tensor *da = fc2_backward(nn, node, &mlp->linear_fc2, gy[0], gx);
    me_tensor *gu = activate(e, "activation_backward", da,
                             node->saved[SAVED_FC1_OUTPUT]->shape);
    me_saved_clear_data(e, node, SAVED_FC1_OUTPUT);
    me_drop(e, da);
    if (me_needs(node, INPUT_FC1_BIAS)) {
        gx[INPUT_FC1_BIAS] = bias_gradient(e, gu);
    }
    me_tensor *dn = fc1_backward(nn, node, fc1, gu, gx);
    me_drop(e, gu);
    me_tensor *gradients[3] = {NULL, NULL, NULL};
    me_te_normalize_backward(e, dn, fc1->norm_weight->tensor,
                             fc1->norm_bias != NULL, gradients);
    me_saved_clear_data(e, node, SAVED_MEAN);
    me_saved_clear_data(e, node, SAVED_RSTD);
    me_drop(e, dn);
    gx[INPUT_X] = me_te_op_view(e, gradients[0]);
    gx[INPUT_NORM_WEIGHT] = gradients[1];
    gx[INPUT_NORM_BIAS] = gradients[2];
}

static const me_op mlp_op =
    ME_NODE("_OperationFuserAutogradFunctionBackward", mlp_backward);

/** The norm. @return the normalised rows */
static me_tensor *norm(me_engine *e, me_node *node, const me_linear *fc1,
                       me_tensor *x)
{
    me_te_statistics statistics;
    me_tensor *normed =
        me_te_normalize(e, x, fc1->norm_bias != NULL, &statistics);
    me_save(e, node, SAVED_INPUT, x);
    me_save(e, node, SAVED_MEAN, statistics.mean);
    me_save(e, node, SAVED_RSTD, statistics.rstd);
    me_drop(e, statistics.rstd);
    me_drop(e, statistics.mean);
    return normed;
}

/** fc1 with its bias. */
static me_tensor *first(me_nn *nn, me_node *node, const me_linear *fc1,
                        me_tensor *normed)
{
    me_engine *e = nn->e;
    me_shape rows;
    me_tensor *total = gather(nn, fc1, normed, &rows);
    me_tensor *u = product(nn, ME_KERNEL_LINEAR, normed, &rows,
                           fc1); // (s, b, f/t)
    me_drop(e, total);
    me_save(e, node, SAVED_NORMED, normed);
    me_save(e, node, SAVED_FC1_WEIGHT, fc1->weight->tensor);
    me_drop(e, normed);
    if (fc1->bias != NULL && u->dtype == ME_DTYPE_FLOAT32) {
        me_tensor *biased = activate(e, "add", u, u->shape);
        me_drop(e, u);
        return biased;
    }
    return u;
}

/** fc2, whose product may be scattered beside it, else is summed or scattered by
 *  an operation of its own. */
static me_tensor *second(me_nn *nn, me_node *node, const me_linear *fc2,
                         me_tensor *a)
{
    me_engine *e = nn->e;
    const bool overlaps = me_te_ops_overlap(nn, fc2);
    me_tensor *scattered = overlaps ? me_te_scattered_rows(nn, fc2, a) : NULL;
    me_tensor *y =
        product(nn, ME_KERNEL_LINEAR, a, &a->shape, fc2); // (s, b, h)
    if (overlaps) {
        me_drop(e, y);
    }
    me_save(e, node, SAVED_ACTIVATION, a);
    me_save(e, node, SAVED_FC2_WEIGHT, fc2->weight->tensor);
    me_drop(e, a);
    if (overlaps) {
        return scattered;
    }
    me_tensor *whole = NULL;
    me_tensor *reduced = me_te_reduce_output(nn, fc2, y, NULL, &whole);
    me_drop(e, whole);
    return reduced;
}

static me_tensor *run(me_nn *nn, const me_mlp *mlp, me_tensor *x)
{
    me_engine *e = nn->e;
    const me_linear *fc1 = &mlp->linear_fc1;
    const me_linear *fc2 = &mlp->linear_fc2;
    const me_frame frame = me_enter(e);
    me_node *node = me_record(
        e, &mlp_op, INPUT_COUNT,
        (me_tensor *[]){x, tensor_of(fc1->norm_weight),
                        tensor_of(fc1->norm_bias), fc1->weight->tensor,
                        tensor_of(fc1->bias), fc2->weight->tensor});
    if (node != NULL) {
        node->data.context = mlp;
    }
    me_tensor *u = first(nn, node, fc1, norm(e, node, fc1, x));
    me_tensor *a =
        activate(e, "activation", u,
                 me_shape_with_last(&u->shape, me_dim(fc2->weight->tensor, 1)));
    me_save(e, node, SAVED_FC1_OUTPUT, u);
    me_drop(e, u);
    return me_leave(e, frame, me_output(e, node, second(nn, node, fc2, a)));
}

me_tensor *me_te_fused_mlp(me_nn *nn, const me_mlp *mlp, me_tensor *x)
{
    return me_engine_is_ok(nn->e) ? run(nn, mlp, x) : me_none(nn->e);
}
