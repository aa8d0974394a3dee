/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/dropout.h"

#include "base/size.h"
#include "ops/compiled.h"
#include "tensor/autograd.h"
#include "tensor/hooks.h"

static const me_op dropout_gradient = {"native_dropout_backward",
                                       "native_dropout_backward.default",
                                       .cost = ME_COST(DROPOUT, 1, 2, 1)};

static void dropout_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                             me_tensor **gx)
{
    gx[0] =
        me_kernel_like(e, &dropout_gradient, ME_TENSORS(gy[0], node->saved[0]));
}

static const me_op dropout_op =
    ME_OP("native_dropout", "native_dropout.default", ME_COST(DROPOUT, 1, 2, 1),
          "NativeDropoutBackward0", .backward = dropout_backward);

me_tensor *me_dropout(me_engine *e, me_tensor *x, double p)
{
    me_tell_device_query(e, x); // is_fused_kernel_acceptable()
    if (p <= 0) {
        return x;
    }
    me_node *node = me_record1(e, &dropout_op, x);
    me_tensor *mask =
        me_empty_like_as(e, "native_dropout.mask", x, ME_DTYPE_BOOL);
    me_tensor *y = me_empty_like(e, dropout_op.event, x);
    me_op_launch(e, &dropout_op, ME_TENSORS(x, mask), y);
    me_op_tell(e, &dropout_op, ME_TENSORS(x), ME_TENSORS(y, mask));
    me_save(e, node, 0, mask);
    me_drop(e, mask);
    return me_output(e, node, y);
}

/**
 * Rows that one partial sum of the compiled bias gradient takes
 * (torch/_inductor/choices.py, the split of an outer reduction).
 */
static uint64_t partial_sums(const me_card *card, uint64_t rows,
                             uint64_t columns)
{
    const uint64_t sms = card->multiprocessors;
    const uint64_t numel = me_size_mul(rows, columns);
    if (numel < 65536 * sms) {
        return me_div_up(rows, 128);
    }
    if (numel >= 1048576 * sms) {
        return me_div_up(rows, UINT64_C(4) * 512);
    }
    const uint64_t x = me_div_up(8 * sms, me_div_up(columns, 128));
    uint64_t each = me_max_u64(me_div_up(rows, me_size_mul(4, x)), 1);
    for (uint64_t distance = 1; distance < 20; distance++) {
        const uint64_t below = each > distance ? each - distance : 0;
        if (below != 0 && rows % below == 0) {
            each = me_max_u64(below, 32);
            break;
        }
        const uint64_t above = me_size_add(each, distance);
        if (rows % above == 0) {
            each = me_max_u64(above, 32);
            break;
        }
    }
    return me_div_up(rows, me_size_mul(4, each));
}

/** A card has enough to do with a block for each column: rows are summed at once,
 *  in the kernel that applies the mask. */
static bool sums_at_once(const me_card *card, uint64_t columns)
{
    return columns >= UINT64_C(64) * card->multiprocessors;
}

static const me_op bias_gradient = {"sum", .cost = ME_COST(REDUCE, 1, 1, 0)};

/** The bias's gradient by partial sums, as the compiled kernels make it. */
static me_tensor *compiled_bias_gradient(me_engine *e, const me_tensor *gx,
                                         const me_shape *shape)
{
    const uint64_t columns = shape->dim[shape->ndim - 1];
    const uint64_t rows = columns == 0 ? 0 : me_numel(gx) / columns;
    const me_card *card = me_engine_card(e);
    const uint64_t k =
        sums_at_once(card, columns) ? 1 : partial_sums(card, rows, columns);
    me_tensor *partial = NULL;
    if (k > 1) {
        partial = me_empty_inside(e, "partial_sums", ME_DTYPE_FLOAT32,
                                  ME_SHAPE(k, columns));
    }
    me_tensor *sum = me_kernel(e, &bias_gradient, ME_TENSORS(gx),
                               (me_dtype)gx->dtype, *shape);
    me_drop(e, partial);
    return sum;
}

enum {
    BDA_X,
    BDA_RESIDUAL,
    BDA_BIAS
};

static const me_op fused_gradient = {"bias_dropout_add_backward",
                                     .cost = ME_COST(COMPILED, 1, 2, 1)};

static void fused_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                           me_tensor **gx)
{
    gx[BDA_RESIDUAL] = gy[0];
    gx[BDA_X] = gy[0];
    if (node->data.flag) {
        gx[BDA_X] = me_kernel_like(e, &fused_gradient,
                                   ME_TENSORS(gy[0], node->saved[0]));
        me_compiled_run(e, ME_COMPILED_BIAS_DROPOUT_ADD_BACKWARD, NULL);
    }
    if (!sums_at_once(me_engine_card(e), me_dim(gy[0], -1))) {
        me_clear(e, &node->saved[0]); // another kernel sums
    }
    if (me_needs(node, BDA_BIAS)) {
        gx[BDA_BIAS] = compiled_bias_gradient(e, gx[BDA_X], &node->data.shape);
    }
}

/** The residual is read as the result is written. */
static const me_op fused_op =
    ME_OP("bias_dropout_add", NULL, ME_COST(COMPILED, 1, 2, 2),
          "CompiledFunctionBackward", .backward = fused_backward);

/** AOTAutograd saves what some gradient is made of: the residual's is the incoming
 *  one, whatever was masked. So it is where a checkpoint's first run has the tape
 *  on for this step alone and there is no bias. */
static bool gradient_needs_mask(const me_node *node)
{
    return node != NULL && (node->edges[BDA_X].node != NULL ||
                            node->edges[BDA_BIAS].node != NULL);
}

me_tensor *me_fused_bias_dropout_add(me_engine *e, me_tensor *x,
                                     me_tensor *bias, me_tensor *residual,
                                     double p)
{
    me_node *node =
        me_record(e, &fused_op, 3, (me_tensor *[]){x, residual, bias});
    if (node != NULL && bias != NULL) {
        node->data.shape = bias->shape;
    }
    me_tensor *seed = NULL;
    me_tensor *mask = NULL;
    if (p > 0) {
        seed = me_empty(e, "seed", ME_DTYPE_INT64, ME_SHAPE(1));
    }
    if (p > 0 && gradient_needs_mask(node)) {
        mask = me_empty_like_as(e, "dropout.mask", x, ME_DTYPE_BOOL);
        me_save(e, node, 0, mask);
    }
    me_tensor *y = me_kernel_like(e, &fused_op, ME_TENSORS(x, mask));
    me_compiled_run(e, ME_COMPILED_BIAS_DROPOUT_ADD, residual);
    if (node != NULL) {
        node->data.flag = mask != NULL;
    }
    me_drop(e, seed);
    me_drop(e, mask);
    return me_output(e, node, y);
}

me_tensor *me_fused_add_in_place(me_engine *e, me_tensor *x,
                                 me_tensor *residual)
{
    me_op_launch(e, &fused_op, ME_TENSORS(x, residual), x);
    me_compiled_run_updating(e, ME_COMPILED_ADD_IN_PLACE, residual, x);
    return x;
}
