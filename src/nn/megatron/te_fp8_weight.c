/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/te_fp8_weight.h"

#include "nn/megatron/te_fp8_state.h"
#include "tensor/autograd.h"

bool me_fp8_keeps_weight(const me_nn *nn)
{
    return !nn->config->parallel.torch_fsdp2;
}

static me_quantized quantize(me_nn *nn, const me_linear *linear, bool columns)
{
    return me_fp8_quantize_weight(nn, linear->weight->tensor,
                                  (me_usage){true, columns},
                                  ME_CATEGORY_TEMPORARY);
}

void me_fp8_linear_weight(me_nn *nn, const me_linear *linear, bool columns,
                          me_quantized *made_out)
{
    if (me_fp8_keeps_weight(nn)) {
        me_fp8_prepare_weight(nn, linear->fp8, linear->weight, columns,
                              made_out);
    } else {
        *made_out = quantize(nn, linear, columns);
    }
}

void me_fp8_linear_drop(me_nn *nn, me_quantized *weight)
{
    if (!me_fp8_keeps_weight(nn)) {
        me_fp8_release(nn->e, weight);
    }
}

void me_fp8_linear_keep(me_nn *nn, const me_linear *linear, me_node *node,
                        bool columns, const me_quantized *made)
{
    if (!me_fp8_keeps_weight(nn)) {
        return;
    }
    me_fp8_keep_weight(nn, linear->fp8, columns, made);
    if (node != NULL && made->rows != NULL) {
        node->data.n[0] = 1;
    }
}

me_tensor *me_fp8_linear_zeros(me_nn *nn, const me_node *node,
                               const me_tensor *gy)
{
    if (node->data.n[0] == 0) {
        return NULL;
    }
    const me_linear *linear = node->data.context;
    return me_empty(nn->e, "zeros", (me_dtype)gy->dtype,
                    linear->weight->tensor->shape);
}

void me_fp8_linear_weight_columns(me_nn *nn, const me_linear *linear)
{
    if (me_fp8_keeps_weight(nn)) {
        me_fp8_prepare_weight_columns(nn, linear->fp8, linear->weight);
    } else {
        linear->fp8->weight = quantize(nn, linear, true);
    }
}

void me_fp8_linear_clear_columns(me_nn *nn, const me_linear *linear)
{
    if (!me_fp8_keeps_weight(nn)) {
        me_fp8_release_columns(nn->e, &linear->fp8->weight);
    }
}

void me_fp8_release_columns(me_engine *e, me_quantized *q)
{
    me_clear(e, &q->columns);
    me_clear(e, &q->column_scale);
}

void me_fp8_release(me_engine *e, me_quantized *q)
{
    me_clear(e, &q->rows);
    if (q->column_scale == NULL) {
        me_clear(e, &q->row_scale);
    }
    me_clear(e, &q->columns);
    me_clear(e, &q->row_scale);
    me_clear(e, &q->column_scale);
}
