/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/te_attention.h"

#include "base/size.h"
#include "nn/megatron/te_context.h"
#include "nn/megatron/te_state.h"
#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "ops/flash_attention.h"
#include "ops/flash_attn.h"
#include "ops/flash_attn_3.h"
#include "ops/flash_attn_4.h"
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "ops/softmax.h"
#include "ops/te_fused_attention.h"
#include "ops/view.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"

/** Are the three interleaved views of one projection, a head's query, key and
 *  value side by side? */
static bool is_interleaved(me_tensor *const qkv[3])
{
    const uint64_t d = me_dim(qkv[0], 3);
    bool is = true;
    for (int i = 0; i < 3; i++) {
        is = is && qkv[i]->storage == qkv[0]->storage &&
             me_shape_equal(&qkv[i]->shape, &qkv[0]->shape) &&
             qkv[i]->strides[3] == 1 && qkv[i]->strides[2] == 3 * d;
    }
    return is;
}

/** Ranks that share a sequence. */
static uint64_t context_ranks(const me_nn *nn)
{
    return me_max_u64(1, (uint64_t)nn->comm->size[ME_GROUP_CONTEXT]);
}

/** DotProductAttention.forward() before it takes a back end: get_qkv_layout()
 *  copies what has holes unless all are interleaved, which @return says. */
static bool prepare(me_nn *nn, me_tensor *const given[3], me_tensor *dense[3])
{
    const bool is_one = is_interleaved(given);
    for (int i = 0; i < 3; i++) {
        dense[i] = is_one ? given[i] : me_contiguous(nn->e, given[i]);
    }
    me_te_full_cu_seqlens(nn, me_dim(given[0], 1),
                          me_size_mul(me_dim(given[0], 0), context_ranks(nn)));
    return is_one;
}

/** Heads beside each other: (s, b, a u). */
static me_tensor *join_heads(me_engine *e, me_tensor *y)
{
    const uint64_t width = me_size_mul(me_dim(y, 2), me_dim(y, 3));
    return me_view(e, y, ME_SHAPE(me_dim(y, 0), me_dim(y, 1), width));
}

/** FusedAttention.forward(). Interleaved inputs are copied where ranks share a
 *  sequence. */
static me_tensor *fused(me_nn *nn, me_cp_comm_type type,
                        me_tensor *const given[3], me_tensor *offset)
{
    me_engine *e = nn->e;
    me_tensor *dense[3] = {NULL, NULL, NULL};
    const me_te_attention_spec spec = {.is_interleaved =
                                           prepare(nn, given, dense)};
    for (int i = 0; i < 3 && context_ranks(nn) > 1; i++) {
        dense[i] = me_contiguous(e, dense[i]);
    }
    if (offset != NULL) {
        offset = me_cast(e, offset, ME_DTYPE_FLOAT32);
    }
    return context_ranks(nn) > 1
               ? me_te_context_attention(nn, type, dense, offset)
               : me_te_fused_attention(e, dense, offset, &spec);
}

me_tensor *me_te_attention_fused(me_nn *nn, me_cp_comm_type type,
                                 me_tensor *const qkv[3], me_tensor *offset)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    return me_leave(e, frame, join_heads(e, fused(nn, type, qkv, offset)));
}

/** `x.transpose(0, 1).contiguous()`, shown as (s, b, a, d) again. */
static me_tensor *turn(me_engine *e, me_tensor *x)
{
    me_tensor *rows =
        me_contiguous(e, me_transpose(e, x, 0, 1)); // (b, s, a, d)
    return me_transpose(e, rows, 0, 1);
}

/** _pad_qkv_head_dim(): values get as many columns as queries, or the other way
 *  round. */
static void pad_heads(me_engine *e, me_tensor *qkv[3])
{
    const uint64_t query = me_dim(qkv[0], 3);
    const uint64_t value = me_dim(qkv[2], 3);
    for (int i = 0; i < 2 && query < value; i++) {
        qkv[i] = me_pad_heads(e, qkv[i], value - query);
    }
    if (value < query) {
        qkv[2] = me_pad_heads(e, qkv[2], query - value);
    }
}

/** The samples of a micro-batch one after the other, as flash-attn takes them; one
 *  kernel turns interleaved queries, keys and values of 128 columns. */
static void turn_for_flash(me_engine *e, bool is_interleaved, me_tensor *qkv[3])
{
    enum {
        PREPARED_HEAD_SIZE = 128,
        LEAST_PREPARED_ROWS = 512
    };

    const uint64_t rows = me_size_mul(me_dim(qkv[0], 0), me_dim(qkv[0], 1));
    if (is_interleaved && me_dim(qkv[0], 3) == PREPARED_HEAD_SIZE &&
        rows >= LEAST_PREPARED_ROWS) {
        me_te_prepare_for_flash(e, qkv);
        return;
    }
    for (int i = 0; i < 3; i++) {
        qkv[i] = turn(e, qkv[i]);
    }
}

/** _trim_output(): what is left of heads that were padded, copied. */
static me_tensor *trim(me_engine *e, me_tensor *y, uint64_t head_size)
{
    return me_contiguous(e, me_slice(e, y, 3, 0, head_size));
}

/** FlashAttention.forward(). */
static me_tensor *flash(me_nn *nn, me_cp_comm_type type,
                        me_tensor *const given[3])
{
    me_engine *e = nn->e;
    const uint64_t value_head_size = me_dim(given[2], 3);
    me_tensor *qkv[3] = {NULL, NULL, NULL};
    const bool is_interleaved = prepare(nn, given, qkv);
    pad_heads(e, qkv);
    turn_for_flash(e, is_interleaved, qkv);
    me_tensor *y =
        context_ranks(nn) > 1
            ? me_te_context_attention(nn, type, qkv, NULL)
            : me_flash_attn(e, qkv, nn->config->model.attention_dropout);
    y = me_contiguous(e, y);
    return me_dim(y, 3) > value_head_size ? trim(e, y, value_head_size) : y;
}

me_tensor *me_te_attention_flash(me_nn *nn, me_cp_comm_type type,
                                 me_tensor *const qkv[3])
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    return me_leave(e, frame, join_heads(e, flash(nn, type, qkv)));
}

/** Version 3 takes values of another width as they are. */
static me_tensor *flash_3(me_nn *nn, me_cp_comm_type type, me_te_mask mask,
                          me_tensor *const given[3])
{
    me_engine *e = nn->e;
    me_tensor *qkv[3] = {NULL, NULL, NULL};
    turn_for_flash(e, prepare(nn, given, qkv), qkv);
    return me_contiguous(e, context_ranks(nn) > 1
                                ? me_te_context_attention(nn, type, qkv, NULL)
                                : me_flash_attn_3(e, qkv, mask));
}

me_tensor *me_te_attention_flash_3(me_nn *nn, me_cp_comm_type type,
                                   bool is_windowed, me_tensor *const qkv[3])
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    const me_te_mask mask = is_windowed ? ME_TE_MASK_WINDOW : ME_TE_MASK_CAUSAL;
    return me_leave(e, frame, join_heads(e, flash_3(nn, type, mask, qkv)));
}

/** So does version 4, which knows no context parallelism. */
static me_tensor *flash_4(me_nn *nn, me_te_mask mask, me_tensor *const given[3])
{
    me_tensor *qkv[3] = {NULL, NULL, NULL};
    turn_for_flash(nn->e, prepare(nn, given, qkv), qkv);
    return me_contiguous(nn->e, me_flash_attn_4(nn->e, qkv, mask));
}

me_tensor *me_te_attention_flash_4(me_nn *nn, bool is_windowed,
                                   me_tensor *const qkv[3])
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    const me_te_mask mask = is_windowed ? ME_TE_MASK_WINDOW : ME_TE_MASK_CAUSAL;
    return me_leave(e, frame, join_heads(e, flash_4(nn, mask, qkv)));
}

static me_tensor *integers(me_engine *e, const char *op, uint64_t rows,
                           uint64_t columns)
{
    return me_empty(e, op, ME_DTYPE_INT32, ME_SHAPE(1, 1, rows, columns));
}

static me_tensor *bools(me_engine *e, const char *op, uint64_t s)
{
    return me_empty(e, op, ME_DTYPE_BOOL, ME_SHAPE(1, 1, s, s));
}

/** not (left <= 0 and not right < 0). */
static me_tensor *window_mask(me_engine *e, uint64_t s)
{
    const me_frame frame = me_enter(e);
    me_tensor *is_left = bools(e, "le", s);
    me_tensor *is_right = bools(e, "lt", s);
    me_tensor *is_not_right = bools(e, "bitwise_not", s);
    me_drop(e, is_right);
    bools(e, "bitwise_and", s);
    me_drop(e, is_left);
    me_drop(e, is_not_right);
    me_tensor *mask = bools(e, "logical_not", s);
    me_fill_resized(e, 1);
    return me_leave(e, frame, mask);
}

/** `torch.logical_or(given, …)` with a mask that broadcasts to it. */
static me_tensor *logical_or(me_engine *e, const me_tensor *given)
{
    me_tensor *mask = me_empty(e, "logical_or", ME_DTYPE_BOOL, given->shape);
    me_fill_resized(e, 1);
    return mask;
}

/** get_full_mask(): the window's mask, made anew in every layer, with what the
 *  loader made. (1 or b, 1, s, s) */
static me_tensor *full_mask(me_engine *e, uint64_t s, const me_tensor *given)
{
    const me_frame frame = me_enter(e);
    me_tensor *rows = integers(e, "arange", s, 1);
    me_fill_resized(e, 4);
    me_tensor *columns = integers(e, "arange", 1, s);
    me_fill_resized(e, 4);
    integers(e, "sub", s, s);
    me_drop(e, rows);
    me_drop(e, columns);
    integers(e, "swa_left", s, s);
    integers(e, "swa_right", s, s);
    me_tensor *mask = window_mask(e, s);
    if (given != NULL) {
        mask = logical_or(e, given);
    }
    return me_leave(e, frame, mask);
}

/** The product of queries and keys, and the result that it does not use: (b, a,
 *  s, s). */
static me_tensor *scores_of(me_engine *e, me_tensor *query, me_tensor *key)
{
    const me_frame frame = me_enter(e);
    const uint64_t s = me_dim(query, 0);
    const uint64_t b = me_dim(query, 1);
    const uint64_t a = me_dim(query, 2);
    const uint64_t d = me_dim(query, 3);
    me_tensor *unused = me_empty(e, "matmul_result", (me_dtype)query->dtype,
                                 ME_SHAPE(b * a, s, s));
    me_tensor *q = me_reshape(e, query, ME_SHAPE(s, b * a, d));
    me_tensor *k = me_reshape(e, key, ME_SHAPE(s, b * a, d));
    me_tensor *turned = me_transpose(e, me_transpose(e, k, 0, 1), 1, 2);
    me_tensor *product = me_baddbmm(e, me_transpose(e, q, 0, 1), turned);
    me_drop(e, unused);
    return me_leave(e, frame, me_view(e, product, ME_SHAPE(b, a, s, s)));
}

/** FusedScaleMaskSoftmax.is_kernel_available(). */
static bool has_softmax_kernel(const me_nn *nn, const me_tensor *scores)
{
    enum {
        LEAST_KEYS = 16,
        MOST_KEYS = 16384,
        ROWS_OF_A_BLOCK = 4
    };

    const uint64_t rows = me_size_mul(me_dim(scores, 0), me_dim(scores, 1));
    const uint64_t s = me_dim(scores, 3);
    const uint64_t block = s <= 128 ? 2 * ROWS_OF_A_BLOCK : ROWS_OF_A_BLOCK;
    return !me_engine_card(nn->e)->te.has_torch_softmax &&
           scores->dtype != ME_DTYPE_FLOAT32 && s > LEAST_KEYS &&
           s < MOST_KEYS && s % 8 == 0 && rows % 4 == 0 &&
           me_dim(scores, 2) % block == 0;
}

/** forward_torch_softmax(), in float32. @param is_causal  the mask is not all
 *  that is masked */
static me_tensor *torch_softmax(me_nn *nn, me_tensor *scores,
                                const me_tensor *mask, bool is_causal)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    const me_dtype dtype = (me_dtype)scores->dtype;
    me_tensor *input = me_cast(e, scores, ME_DTYPE_FLOAT32);
    if (nn->config->model.query_key_layer_scaling &&
        dtype == ME_DTYPE_FLOAT16) {
        input = me_rebind(e, input, me_mul_number(e, input));
    }
    if (is_causal) {
        (void)me_te_causal_mask(nn, me_dim(scores, 3));
        mask = logical_or(e, mask);
    }
    me_masked_fill_in_place(e, input, mask);
    me_name_last(e, input); // as mask_output
    me_tensor *probs = me_softmax(e, input);
    if (dtype != ME_DTYPE_FLOAT32) {
        probs = me_rebind(e, probs, me_cast(e, probs, dtype));
    }
    return me_leave(e, frame, probs);
}

/** Softmax over the scores and one more column, the heads' offsets, (1, a, 1, 1)
 *  in float32, without that column again: (b, a, s, s), a view. No kernel takes an
 *  odd width. */
static me_tensor *softmax_with_offset(me_nn *nn, me_tensor *scores,
                                      me_tensor *mask, me_tensor *offset)
{
    me_engine *e = nn->e;
    const uint64_t s = me_dim(scores, 3);
    me_shape column = scores->shape;
    column.dim[3] = 1;
    const me_frame frame = me_enter(e);
    me_tensor *sink = me_cast(e, offset, (me_dtype)scores->dtype);
    me_tensor *sunk = me_cat_last(e, scores, me_expand(e, sink, column));
    scores = me_rebind(e, scores, me_leave(e, frame, sunk)); // (b, a, s, s + 1)
    me_shape padded = mask->shape;
    padded.dim[3]++;
    mask = me_rebind(e, mask,
                     me_empty(e, "constant_pad_nd", ME_DTYPE_BOOL, padded));
    me_tensor *probs = torch_softmax(nn, scores, mask, false);
    return me_rebind(e, probs, me_slice(e, probs, 3, 0, s));
}

/** Values weighed by probabilities, heads side by side: (s, b, a d). */
static me_tensor *context_of(me_engine *e, me_tensor *probs, me_tensor *value)
{
    const me_frame frame = me_enter(e);
    const uint64_t s = me_dim(value, 0);
    const uint64_t b = me_dim(value, 1);
    const uint64_t a = me_dim(value, 2);
    const uint64_t d = me_dim(value, 3);
    me_tensor *v =
        me_transpose(e, me_reshape(e, value, ME_SHAPE(s, b * a, d)), 0, 1);
    me_tensor *rows =
        me_bmm(e, me_view(e, probs, ME_SHAPE(b * a, s, s)), v); // (ba, s, d)
    me_tensor *heads = me_view(e, rows, ME_SHAPE(b, a, s, d));
    me_tensor *turned = me_permute(e, heads, (int32_t[]){2, 0, 1, 3});
    me_tensor *context = me_contiguous(e, turned); // (s, b, a, d)
    return me_leave(e, frame, me_view(e, context, ME_SHAPE(s, b, a * d)));
}

/** FusedScaleMaskSoftmax. @param offset  or NULL */
static me_tensor *softmax_of(me_nn *nn, me_tensor *scores, me_tensor *mask,
                             me_tensor *offset, bool is_windowed)
{
    if (offset != NULL) {
        return softmax_with_offset(nn, scores, mask, offset);
    }
    return has_softmax_kernel(nn, scores)
               ? me_scaled_masked_softmax(nn->e, scores)
               : torch_softmax(nn, scores, mask, !is_windowed);
}

static const me_op amax_op = {"amax", .node = "AmaxBackward0"};

/** `torch.amax(scores, dim=(0, 2, 3))`: (a). The scores live on with its node. */
static me_tensor *largest_of(me_engine *e, me_tensor *scores)
{
    const me_dtype dtype = (me_dtype)scores->dtype;
    const uint64_t a = me_dim(scores, 1);
    me_node *node = me_record1(e, &amax_op, scores);
    me_tensor *largest = me_empty(e, amax_op.event, dtype, ME_SHAPE(a));
    me_reduce_to(e, scores, a, dtype == ME_DTYPE_BFLOAT16 ? 2 : sizeof(float));
    me_save(e, node, 0, scores);
    me_save(e, node, 1, largest);
    return me_output(e, node, largest);
}

/** TEDotProductAttention.forward(): the largest of all micro-batches, of which the
 *  graph goes. */
static void keep_largest(me_engine *e, me_tensor *of_batch, me_tensor **kept)
{
    if (!me_engine_is_ok(e)) {
        return;
    }
    me_tensor *largest = me_detach(e, of_batch);
    me_drop(e, of_batch);
    if (*kept == NULL) {
        *kept = me_retain(largest);
        return;
    }
    me_tensor *both = me_empty_like(e, "maximum", largest);
    me_clear(e, kept);
    *kept = me_retain(both);
    me_drop(e, both);
    me_drop(e, largest);
}

/** UnfusedDotProductAttention.forward(). @param largest_out  where the spec asks
 *  for largest scores, a variable of the running frame */
static me_tensor *unfused(me_nn *nn, me_tensor *const qkv[3],
                          const me_te_unfused_spec *spec, me_tensor *offset,
                          me_tensor **largest_out)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    me_tensor *query = qkv[0];
    me_tensor *key = qkv[1];
    me_tensor *value = qkv[2];
    const uint64_t a = me_dim(query, 2);
    me_tensor *full = full_mask(e, me_dim(query, 0), spec->mask);
    if (me_dim(key, 2) != a) {
        key = me_repeat_heads(e, key, a / me_dim(key, 2));
        value = me_repeat_heads(e, value, a / me_dim(value, 2));
        me_name_last(e, full); // an argument behind them
    }
    me_tensor *scores = scores_of(e, query, key);
    if (spec->max_logits != NULL) {
        scores = me_masked_fill_in_place(e, scores, full);
        *largest_out = largest_of(e, scores);
    }
    me_tensor *probs = softmax_of(nn, scores, full, offset, spec->is_windowed);
    me_tensor *dropped =
        me_dropout(e, probs, nn->config->model.attention_dropout);
    probs = me_rebind(e, probs, dropped);
    me_tensor *context = context_of(e, probs, value);
    me_leave_with(e, frame, *largest_out == NULL ? 1 : 2,
                  (me_tensor *[]){context, *largest_out});
    return context;
}

/** DotProductAttention.forward(). @param largest_out  as in unfused() */
static me_tensor *dot_product(me_nn *nn, me_tensor *const qkv[3],
                              const me_te_unfused_spec *spec,
                              me_tensor **largest_out)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    me_tensor *dense[3] = {NULL, NULL, NULL};
    me_tensor *offset = spec->offset;
    (void)prepare(nn, qkv, dense);
    if (offset != NULL) {
        offset = me_view(e, offset, ME_SHAPE(1, me_dim(offset, 0), 1, 1));
        offset = me_cast(e, offset, ME_DTYPE_FLOAT32);
    }
    me_tensor *y = unfused(nn, dense, spec, offset, largest_out);
    me_leave_with(e, frame, *largest_out == NULL ? 1 : 2,
                  (me_tensor *[]){y, *largest_out});
    return y;
}

me_tensor *me_te_attention_unfused(me_nn *nn, me_tensor *const qkv[3],
                                   const me_te_unfused_spec *spec)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    me_tensor *largest = NULL;
    me_tensor *y = dot_product(nn, qkv, spec, &largest);
    if (largest != NULL) {
        keep_largest(e, largest, spec->max_logits);
    }
    return me_leave(e, frame, y);
}
