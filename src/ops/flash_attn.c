/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/flash_attn.h"

#include "base/size.h"
#include "ops/flash_attention.h"
#include "ops/view.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"

enum {
    FLASH_SAVED_OUTPUT = 3, /**< behind query, key and value */
    FLASH_SAVED_STATISTICS,
    FLASH_SAVED_RNG,
    RNG_STATE_BYTES = 16
};

/** What sizes follow from. */
typedef struct sizes {
    uint64_t queries;
    uint64_t batch;
    uint64_t heads;
    uint64_t head_size;
    uint64_t rounded_queries;
    uint64_t rounded_head_size;
} sizes;

static sizes sizes_of(const me_tensor *query)
{
    const uint64_t d = me_dim(query, 3);
    return (sizes){
        .queries = me_dim(query, 0),
        .batch = me_dim(query, 1),
        .heads = me_dim(query, 2),
        .head_size = d,
        .rounded_queries = me_round_up(me_dim(query, 0), 128),
        .rounded_head_size = me_round_up(d, d <= 128 ? 32 : 64),
    };
}

void me_flash_attn_tell(me_engine *e, me_kernel_class kernel,
                        me_tensor *const qkv[2], me_te_mask mask)
{
    const sizes s = sizes_of(qkv[0]);
    const uint64_t keys = me_size_mul(2, me_dim(qkv[1], 0));
    const uint64_t unseen =
        mask == ME_TE_MASK_NONE ? 0 : me_min_u64(s.queries, keys);
    const uint64_t flops =
        me_size_mul(2, me_size_mul(me_numel(qkv[0]), keys - unseen));
    me_launch_attention(
        e, kernel, (me_dtype)qkv[0]->dtype,
        kernel == ME_KERNEL_FLASH ? flops : me_size_mul(flops, 5) / 2,
        (uint64_t[3]){me_size_mul(s.batch, s.heads), s.queries, s.head_size});
}

/** set_params_splitkv(): partial results of split keys. */
static void make_partial_results(me_engine *e, const me_tensor *key,
                                 const sizes *s, me_tensor *results_out[2])
{
    const uint64_t k =
        me_flash_key_splits(me_engine_card(e), s->batch, s->heads, s->queries,
                            me_dim(key, 0), s->head_size);
    if (k > 1) {
        results_out[0] =
            me_empty_inside(e, "flash_attn_fwd.lse_accum", ME_DTYPE_FLOAT32,
                            ME_SHAPE(k, s->batch, s->heads, s->queries));
        results_out[1] = me_empty_inside(
            e, "flash_attn_fwd.out_accum", ME_DTYPE_FLOAT32,
            ME_SHAPE(k, s->batch, s->heads, s->queries, s->rounded_head_size));
    }
}

void me_flash_attn_forward(me_engine *e, me_tensor *const qkv[3],
                           me_te_mask mask, double dropout,
                           me_te_attention_made *made_out)
{
    const sizes s = sizes_of(qkv[0]);
    me_tensor *partial[2] = {NULL, NULL};
    made_out->output = me_empty_like(e, "flash_attn_fwd", qkv[0]);
    made_out->statistics = me_empty(e, "flash_attn_fwd.lse", ME_DTYPE_FLOAT32,
                                    ME_SHAPE(s.batch, s.heads, s.queries));
    if (dropout <= 0 && me_engine_is_ok(e)) {
        make_partial_results(e, qkv[1], &s, partial);
    }
    made_out->rng = me_scratch(e, "flash_attn_fwd.rng", RNG_STATE_BYTES);
    me_flash_attn_tell(e, ME_KERNEL_FLASH, qkv, mask);
    me_drop(e, partial[1]);
    me_drop(e, partial[0]);
}

/** Float32 sums of the queries' gradients, of each block of threads its own where
 *  they have to be added in order. */
static me_tensor *make_query_sums(me_engine *e, const sizes *s)
{
    const me_card *card = me_engine_card(e);
    const bool is_deterministic =
        me_is_deterministic(e) || card->te.is_deterministic;
    const uint64_t splits =
        is_deterministic && me_engine_is_ok(e)
            ? me_div_up((uint64_t)card->multiprocessors, s->batch * s->heads)
            : 1;
    return me_empty_inside(e, "flash_attn_bwd.dq_accum", ME_DTYPE_FLOAT32,
                           ME_SHAPE(splits, s->batch, s->rounded_queries,
                                    s->heads, s->rounded_head_size));
}

static me_tensor *gradient_of_every_head(me_engine *e, const me_tensor *key,
                                         const sizes *s)
{
    return me_empty_inside(
        e, "flash_attn_bwd.expanded", (me_dtype)key->dtype,
        ME_SHAPE(s->batch, me_dim(key, 0), s->heads, s->head_size));
}

void me_flash_attn_backward(me_engine *e, me_tensor *const qkv[3],
                            me_te_mask mask, me_tensor **gx)
{
    const sizes s = sizes_of(qkv[0]);
    for (int i = 0; i < 3; i++) {
        gx[i] = me_empty_like(e, "flash_attn_bwd", qkv[i]);
    }
    me_tensor *rows =
        me_empty_inside(e, "flash_attn_bwd.softmax_d", ME_DTYPE_FLOAT32,
                        ME_SHAPE(s.batch, s.heads, s.rounded_queries));
    me_tensor *sums = make_query_sums(e, &s);
    me_tensor *expanded[2] = {NULL, NULL};
    for (int i = 0; i < 2 && me_dim(qkv[1], 2) != s.heads; i++) {
        expanded[i] = gradient_of_every_head(e, qkv[1], &s);
    }
    me_flash_attn_tell(e, ME_KERNEL_FLASH_BACKWARD, qkv, mask);
    me_drop(e, expanded[1]);
    me_drop(e, expanded[0]);
    me_drop(e, sums);
    me_drop(e, rows); // returned to Python, which asks for none of it
}

static void flash_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                           me_tensor **gx)
{
    (void)gy;
    me_flash_attn_backward(e, node->saved, ME_TE_MASK_CAUSAL, gx);
}

static const me_op flash_op = {.node = "FlashAttnFuncBackward",
                               .backward = flash_backward,
                               .marks_saved = true};

me_tensor *me_flash_attn(me_engine *e, me_tensor *const qkv[3], double dropout)
{
    const me_frame frame = me_enter(e);
    me_node *node = me_record(e, &flash_op, 3, qkv);
    me_te_attention_made made;
    me_flash_attn_forward(e, qkv, ME_TE_MASK_CAUSAL, dropout, &made);
    for (uint32_t i = 0; i < 3; i++) {
        me_save(e, node, i, qkv[i]);
    }
    me_save(e, node, FLASH_SAVED_OUTPUT, made.output);
    me_save(e, node, FLASH_SAVED_STATISTICS, made.statistics);
    me_save(e, node, FLASH_SAVED_RNG, made.rng);
    me_drop(e, made.statistics);
    me_drop(e, made.rng);
    return me_leave(e, frame, me_output(e, node, made.output));
}

static const me_op prepare_gradient = {"fa_prepare_bwd",
                                       .cost = ME_COST(STRIDED, 0, 3, 1)};

/** One tensor, interleaved as the queries, keys and values were. */
static void prepare_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                             me_tensor **gx)
{
    (void)node;
    me_shape shape = gy[0]->shape; // (s, b, a, d)
    shape.dim[3] = me_size_mul(3, shape.dim[3]);
    me_tensor *all =
        me_kernel(e, &prepare_gradient, ME_TENSORS(gy[0], gy[1], gy[2]),
                  (me_dtype)gy[0]->dtype, shape);
    for (int i = 0; i < 3; i++) {
        gx[i] = me_alias(e, all, gy[0]->shape, all->strides);
    }
    me_drop(e, all);
}

static const me_op prepare_op =
    ME_OP("fa_prepare_fwd", NULL, ME_COST(STRIDED, 0, 3, 1),
          "_PrepareQKVForFABackward", .backward = prepare_backward);

void me_te_prepare_for_flash(me_engine *e, me_tensor *qkv[3])
{
    const me_shape shape = qkv[0]->shape; // (s, b, a, d)
    me_node *node = me_record(e, &prepare_op, 3, qkv);
    me_tensor *all = me_kernel(
        e, &prepare_op, ME_TENSORS(qkv[0], qkv[1], qkv[2]),
        (me_dtype)qkv[0]->dtype,
        ME_SHAPE(3, shape.dim[1], shape.dim[0], shape.dim[2], shape.dim[3]));
    const uint64_t row = me_size_mul(shape.dim[2], shape.dim[3]);
    const uint64_t strides[4] = {row, me_size_mul(row, shape.dim[0]),
                                 shape.dim[3], 1};
    for (int i = 0; i < 3; i++) {
        qkv[i] = me_output(e, node, me_alias(e, all, shape, strides));
    }
    me_drop(e, all);
}

/** A negative pad is a copy of what remains. */
static const me_op pad_gradient = {"constant_pad_nd",
                                   .cost = ME_COST(STRIDED, 0, 0, 2)};

static const me_op pad_op =
    ME_OP("constant_pad_nd", NULL, ME_COST(STRIDED, 0, 0, 2),
          "ConstantPadNdBackward0", .backward = me_gradient_shaped_backward,
          .gradient = &pad_gradient);

me_tensor *me_pad_heads(me_engine *e, me_tensor *x, uint64_t n)
{
    me_node *node = me_record1(e, &pad_op, x);
    me_shape shape = x->shape;
    if (me_engine_is_ok(e)) {
        shape.dim[3] = me_size_add(shape.dim[3], n);
    }
    return me_output(
        e, node,
        me_kernel(e, &pad_op, ME_TENSORS(x), (me_dtype)x->dtype, shape));
}
