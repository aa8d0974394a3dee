/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/quantization_padding.h"

#include "base/size.h"
#include "ops/elementwise.h"
#include "ops/view.h"
#include "parallel/expert_rows.h"
#include "tensor/autograd.h"

static const me_op padding_kernel = {"padding",
                                     .cost = ME_COST(INDEX, 0, 0, 2)};

bool me_experts_pad(const me_nn *nn)
{
    const me_moe_options *m = &nn->config->moe;
    const bool dispatcher_pads = m->token_dispatcher == ME_DISPATCHER_FLEX &&
                                 m->flex_backend == ME_FLEX_HYBRIDEP;
    return nn->config->fp8.format != ME_FP8_NONE &&
           !m->router_padding_for_quantization && !dispatcher_pads;
}

static uint64_t padded(const me_nn *nn, uint64_t rows)
{
    const uint64_t multiple = me_quantization_multiple(nn->config);
    return me_size_mul(me_div_up(rows, multiple), multiple);
}

uint64_t me_padded_counts(const me_nn *nn, uint32_t count,
                          const uint64_t *tokens, uint64_t *padded_out)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        padded_out[i] = padded(nn, tokens[i]);
        sum = me_size_add(sum, padded_out[i]);
    }
    return sum;
}

static void padding_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                             me_tensor **gx)
{
    const me_frame frame = me_enter(e);
    me_tensor *y = me_contiguous(e, gy[0]);
    gx[0] = me_kernel(e, &padding_kernel, ME_TENSORS(y), (me_dtype)y->dtype,
                      ME_SHAPE(node->data.n[0], me_dim(y, 1)));
    me_leave(e, frame, gx[0]);
}

static const me_op padding_op =
    ME_NODE("_Fp8PaddingBackward", padding_backward);

me_tensor *me_change_padding(me_nn *nn, me_tensor *x, uint64_t rows)
{
    me_engine *e = nn->e;
    if (!me_engine_is_ok(e) || me_dim(x, 0) == rows) {
        return x;
    }
    me_node *node = me_record1(e, &padding_op, x);
    me_tensor *y = me_kernel(e, &padding_kernel, ME_TENSORS(x),
                             (me_dtype)x->dtype, ME_SHAPE(rows, me_dim(x, 1)));
    if (node != NULL) {
        node->data.n[0] = me_dim(x, 0);
    }
    return me_output(e, node, y);
}

me_tensor *me_pad_with_zeros(me_nn *nn, me_tensor *x)
{
    me_engine *e = nn->e;
    const uint64_t rows = me_engine_is_ok(e) ? me_dim(x, 0) : 0;
    const uint64_t missing = padded(nn, rows) - rows;
    if (missing == 0) {
        return x;
    }
    const me_frame frame = me_enter(e);
    me_shape shape = x->shape;
    shape.dim[0] = missing;
    me_tensor *zeros = me_empty(e, "zeros", (me_dtype)x->dtype, shape);
    me_tensor *y = me_cat_first(e, 2, (me_tensor *[]){x, zeros});
    return me_leave(e, frame, y);
}
