/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/te_activation.h"

#include "ops/te_norm.h"
#include "tensor/autograd.h"
#include "tensor/saved_hooks.h"

static const me_op gradient_kernel = {"activation_backward",
                                      .cost = ME_POINTWISE};

static void activation_backward(me_engine *e, me_node *node,
                                me_tensor *const *gy, me_tensor **gx)
{
    const me_tensor *x = node->saved[0];
    gx[0] = me_te_op_view(
        e, me_kernel_like(e, &gradient_kernel, ME_TENSORS(x, gy[0])));
    if (me_saved_is_own(node)) {
        me_clear(e, &node->saved[0]); // clear_tensor_data()
    }
}

static const me_op activation_op = {
    "activation", .cost = ME_POINTWISE,
    .node = "_OperationFuserAutogradFunctionBackward",
    .backward = activation_backward, .marks_saved = true};

me_tensor *me_te_op_activation(me_engine *e, me_tensor *x, bool is_gated)
{
    const me_frame frame = me_enter(e);
    me_node *node = me_record1(e, &activation_op, x);
    const uint64_t columns = is_gated ? me_dim(x, -1) / 2 : me_dim(x, -1);
    me_tensor *y =
        me_kernel(e, &activation_op, ME_TENSORS(x), (me_dtype)x->dtype,
                  me_shape_with_last(&x->shape, columns));
    me_save(e, node, 0, x);
    return me_leave(e, frame, me_output(e, node, me_te_op_view(e, y)));
}
