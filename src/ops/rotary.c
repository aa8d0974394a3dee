/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/rotary.h"

#include "ops/elementwise.h"
#include "tensor/autograd.h"

/** The conjugate of freqs_cis is a lazy view, which the product makes real: one
 *  complex64 for each position and pair. */
static void product_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                             me_tensor **gx)
{
    me_tensor *conjugate =
        me_empty(e, "conj", ME_DTYPE_FLOAT32,
                 ME_SHAPE(me_dim(gy[0], 1), me_dim(gy[0], -1)));
    gx[0] = me_kernel_dense(e, node->op, ME_TENSORS(gy[0]));
    me_drop(e, conjugate);
}

/** float32 numbers in float32 pairs: views of the operand and of the result do
 * not matter, so that one tensor stands for both. */
static const me_op product_op =
    ME_OP("mul", NULL, ME_COST(ELEMENTWISE, 3, 1, 1), "MulBackward0",
          .backward = product_backward);

void me_apply_rotary_emb(me_engine *e, me_tensor *const x[2],
                         me_tensor *out_out[2])
{
    me_tensor *complex[2] = {NULL, NULL};
    me_tensor *turned[2] = {NULL, NULL};
    const me_frame frame = me_enter(e);
    for (int i = 0; i < 2; i++) {
        complex[i] = me_cast(e, x[i], ME_DTYPE_FLOAT32);
    }
    for (int i = 0; i < 2; i++) {
        me_node *node = me_record1(e, &product_op, complex[i]);
        turned[i] = me_output(
            e, node, me_kernel_dense(e, &product_op, ME_TENSORS(complex[i])));
    }
    for (int i = 0; i < 2; i++) {
        out_out[i] = me_cast(e, turned[i], (me_dtype)x[i]->dtype);
    }
    me_leave_with(e, frame, 2, out_out);
}
