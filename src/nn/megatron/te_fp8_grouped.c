/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/te_fp8_grouped.h"

#include "nn/megatron/te_fp8_state.h"
#include "nn/megatron/te_grouped.h"
#include "nn/megatron/te_state.h"
#include "nn/megatron/weight_gradients.h"
#include "tensor/autograd.h"

/** Its input, if it is saved as it is. */
enum {
    SAVED_INPUT
};

/** What it saves of each expert's rows, in this order, after what every node has
 *  room for. */
enum {
    SAVED_DATA,
    SAVED_SCALE,
    SAVED_OF_EXPERT
};

static const me_usage both = {true, true};

static me_tensor **saved_of(const me_node *node, uint32_t expert)
{
    return &node->wide->saved[(size_t)expert * SAVED_OF_EXPERT];
}

/** From the last to the first, as a list lets go. */
static void drop_parts(me_nn *nn, const me_grouped_linear *linear,
                       me_quantized *parts)
{
    for (uint32_t i = linear->count; i > 0; i--) {
        me_fp8_drop(nn, &parts[i - 1]);
    }
}

/** The parts of an input that was saved as it is, made in the backward; to be
 *  dropped with the gradient's. */
static me_quantized *quantize_again(me_nn *nn, const me_grouped_linear *linear,
                                    const me_node *node)
{
    me_quantized *again = linear->parts + linear->count;
    const bool rows = me_fp8_row_of(nn)->scale_shape == NULL;
    me_fp8_split_quantize(nn, node->saved[SAVED_INPUT], linear->count,
                          node->wide->extents, (me_usage){rows, true}, again);
    return again;
}

/** clear_tensor_data() of the inputs; where one number is both copies' scale it
 *  is left. */
static void clear_inputs(me_nn *nn, const me_grouped_linear *linear,
                         me_node *node, me_quantized *again)
{
    for (uint32_t i = 0; i < linear->count; i++) {
        if (again != NULL) {
            me_fp8_clear(nn, &again[i]);
            continue;
        }
        me_clear(nn->e, &saved_of(node, i)[SAVED_DATA]);
        if (me_fp8_row_of(nn)->scale_shape != NULL) {
            me_clear(nn->e, &saved_of(node, i)[SAVED_SCALE]);
        }
    }
}

/** Of weights whose gradients wait: WeightGradStore.put(). */
static void keep(me_nn *nn, const me_grouped_linear *linear,
                 const me_node *node, const me_quantized *again,
                 me_tensor *packed, me_tensor **gx)
{
    for (uint32_t i = 0; i < linear->count; i++) {
        const me_quantized x =
            again != NULL
                ? again[i]
                : me_fp8_of_copy(nn, saved_of(node, i)[SAVED_DATA],
                                 saved_of(node, i)[SAVED_SCALE], false);
        me_weight_work work = {.rows = node->wide->extents[i],
                               .is_quantized = true};
        me_fp8_parts(nn, &x, work.x.parts);
        me_fp8_parts(nn, &linear->parts[i], work.gy.parts);
        me_te_grouped_keep(nn, linear, node, i, packed, &work);
    }
    me_te_grouped_kept(nn, linear, packed, gx);
}

static void grouped_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                             me_tensor **gx)
{
    const me_grouped_linear *linear = node->data.context;
    me_nn *nn = linear->nn;
    const me_tensor *weight = linear->weights[0]->tensor;
    const uint64_t rows = me_dim(gy[0], 0);
    me_main_grad_get(nn, weight);
    me_fp8_split_quantize(nn, gy[0], linear->count, node->wide->extents, both,
                          linear->parts);
    gx[0] = me_te_grouped_gemm(
        nn, ME_KERNEL_LINEAR_DGRAD, me_fp8_operands(nn), (me_dtype)gy[0]->dtype,
        ME_SHAPE(rows, me_dim(weight, 1)), me_dim(weight, 0));
    for (uint32_t i = 0; i < linear->count; i++) {
        me_fp8_prepare_weight_columns(nn, linear->weights_fp8[i],
                                      linear->weights[i]);
    }
    const bool keeps = me_te_grouped_keeps(nn);
    me_tensor *packed = me_te_grouped_pack(nn, linear);
    me_quantized *again =
        linear->save_original_input ? quantize_again(nn, linear, node) : NULL;
    if (keeps) {
        keep(nn, linear, node, again, packed, gx);
    } else {
        me_te_grouped_wgrad(nn, linear, me_fp8_operands(nn), rows, NULL);
        clear_inputs(nn, linear, node, again);
        me_te_grouped_return(nn, linear, packed, gx);
    }
    if (node->data.flag) {
        me_fp8_reduce(nn, false);
    }
    drop_parts(nn, linear, linear->parts);
    if (again != NULL) {
        drop_parts(nn, linear, again);
    }
    (void)e;
}

static const me_op grouped_op =
    ME_NODE("_GroupedLinearBackward", grouped_backward);

static me_node *record(me_nn *nn, const me_grouped_linear *linear, me_tensor *x,
                       const uint64_t *tokens)
{
    me_node *node = me_te_grouped_record(nn, &grouped_op, linear, x,
                                         SAVED_OF_EXPERT * linear->count);
    if (node != NULL) {
        node->data.flag = me_fp8_takes_first(nn, false);
        for (uint32_t i = 0; i < linear->count; i++) {
            node->wide->extents[i] = tokens[i];
        }
    }
    return node;
}

/** The columns are kept, the rest goes. */
static void save_parts(me_nn *nn, const me_grouped_linear *linear,
                       me_node *node)
{
    for (uint32_t i = 0; i < linear->count; i++) {
        me_fp8_drop_rows(nn, &linear->parts[i]);
    }
    for (uint32_t i = 0; i < linear->count; i++) {
        const me_quantized *q = &linear->parts[i];
        const uint32_t at = ME_MAX_SAVED + SAVED_OF_EXPERT * i;
        me_save(nn->e, node, at + SAVED_DATA, q->columns);
        me_save(nn->e, node, at + SAVED_SCALE,
                q->column_scale == NULL ? q->row_scale : q->column_scale);
    }
}

me_tensor *me_te_fp8_grouped_linear(me_nn *nn, const me_grouped_linear *linear,
                                    me_tensor *x, const uint64_t *tokens)
{
    me_engine *e = nn->e;
    const me_tensor *weight = linear->weights[0]->tensor;
    const bool is_recording = me_context_now(e)->is_recording;
    const bool is_kept = linear->save_original_input;
    const bool columns =
        (is_recording && x->requires_grad) || me_fp8_is_first_run(nn);
    me_quantized *made = linear->parts + linear->count;
    const me_frame frame = me_enter(e);
    me_fp8_prepare_forward(nn, linear->fp8);
    me_node *node = record(nn, linear, x, tokens);
    me_fp8_split_quantize(nn, x, linear->count, tokens,
                          (me_usage){true, is_recording && !is_kept},
                          linear->parts);
    for (uint32_t i = 0; i < linear->count; i++) {
        me_fp8_prepare_weight(nn, linear->weights_fp8[i], linear->weights[i],
                              columns, &made[i]);
    }
    me_tensor *y = me_te_grouped_gemm(
        nn, ME_KERNEL_LINEAR, me_fp8_operands(nn), (me_dtype)x->dtype,
        ME_SHAPE(me_dim(x, 0), me_dim(weight, 0)), me_dim(weight, 1));
    if (node != NULL && !is_kept) {
        save_parts(nn, linear, node);
    } else {
        me_save(e, node, SAVED_INPUT, x);
        drop_parts(nn, linear, linear->parts);
    }
    y = me_leave(e, frame, me_output(e, node, y));
    for (uint32_t i = 0; i < linear->count; i++) {
        me_fp8_keep_weight(nn, linear->weights_fp8[i], columns, &made[i]);
    }
    return y;
}
