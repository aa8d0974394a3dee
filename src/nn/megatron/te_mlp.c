/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/te_mlp.h"

#include "base/size.h"
#include "nn/megatron/te_linear.h"
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
 * one's takes the place of. */

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

/** BasicLinear's product with a weight or its transpose. */
static me_tensor *product(me_nn *nn, me_kernel_class kernel, const me_tensor *x,
                          const me_linear *linear)
{
    const bool is_forward = kernel == ME_KERNEL_LINEAR;
    const me_tensor *weight = linear->weight->tensor;
    return me_te_gemm(
        nn, kernel, (me_dtype)x->dtype,
        me_shape_with_last(&x->shape, me_dim(weight, is_forward ? 0 : 1)),
        me_dim(weight, is_forward ? 1 : 0));
}

/** fc2, and the reduction behind it. @return the gradient of the activation */
static me_tensor *fc2_backward(me_nn *nn, me_node *node, const me_linear *fc2,
                               me_tensor *gy, me_tensor **gx)
{
    me_main_grad_get(nn, fc2->weight->tensor);
    me_tensor *gathered =
        me_te_is_sequence_parallel(nn, fc2) ? me_te_gather(nn, gy) : NULL;
    me_tensor *total = gathered == NULL ? gy : gathered;
    me_tensor *da = product(nn, ME_KERNEL_LINEAR_DGRAD, total, fc2);
    me_tensor *dw = me_te_weight_gradient(
        nn, node, INPUT_FC2_WEIGHT, node->saved[SAVED_ACTIVATION], total, fc2);
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

/** fc1. @return the gradient of the normalised input */
static me_tensor *fc1_backward(me_nn *nn, const me_node *node,
                               const me_linear *fc1, me_tensor *gu,
                               me_tensor **gx)
{
    me_engine *e = nn->e;
    me_tensor *normed = node->saved[SAVED_NORMED];
    const bool gathers = me_te_is_sequence_parallel(nn, fc1);
    me_main_grad_get(nn, fc1->weight->tensor);
    me_tensor *total = gathers ? me_te_gather(nn, normed) : NULL;
    me_tensor *full = product(nn, ME_KERNEL_LINEAR_DGRAD, gu, fc1);
    me_tensor *dn = me_te_reduce_input_gradient(nn, fc1, full);
    me_tensor *dw = me_te_weight_gradient(
        nn, node, INPUT_FC1_WEIGHT, total == NULL ? normed : total, gu, fc1);
    me_launch_stream_waits(e);
    if (gathers) {
        me_drop(e, full);
        me_drop(e, total);
    }
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
    const bool gathers = me_te_is_sequence_parallel(nn, fc1);
    me_tensor *total = gathers ? me_te_gather(nn, normed) : normed;
    me_tensor *u = product(nn, ME_KERNEL_LINEAR, total, fc1); // (s, b, f/t)
    if (gathers) {
        me_drop(e, total);
    }
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
    me_tensor *y = product(nn, ME_KERNEL_LINEAR, a, fc2); // (s, b, h)
    me_save(e, node, SAVED_ACTIVATION, a);
    me_save(e, node, SAVED_FC2_WEIGHT, fc2->weight->tensor);
    me_drop(e, a);
    me_tensor *whole = NULL;
    me_tensor *reduced = me_te_reduce_output(nn, fc2, y, NULL, &whole);
    me_drop(e, whole);
    return me_leave(e, frame, me_output(e, node, reduced));
}

me_tensor *me_te_fused_mlp(me_nn *nn, const me_mlp *mlp, me_tensor *x)
{
    return me_engine_is_ok(nn->e) ? run(nn, mlp, x) : me_none(nn->e);
}
