/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/elementwise.h"
#include "tensor/autograd.h"
#include "tensor/hooks.h"

static void cast_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                          me_tensor **gx)
{
    if (node->is_dtensor) { // `.to(options)` names the device
        me_fake_device(e);
    }
    gx[0] =
        me_kernel_as(e, node->op, ME_TENSORS(gy[0]), (me_dtype)node->data.n[0]);
}

static const me_op cast_op =
    ME_OP("to", "_to_copy.default", ME_POINTWISE, "ToCopyBackward0",
          .backward = cast_backward);

me_tensor *me_cast(me_engine *e, me_tensor *a, me_dtype dtype)
{
    if (a->dtype == (uint8_t)dtype) {
        me_tell_device_query(e, a); // to_will_alias()
        return a;
    }
    me_node *node = me_record1(e, &cast_op, a);
    if (node != NULL) {
        me_tell_device_query(e, a); // ToCopyBackward0 keeps self_options
        node->data.n[0] = a->dtype;
    }
    return me_output(e, node, me_kernel_as(e, &cast_op, ME_TENSORS(a), dtype));
}
