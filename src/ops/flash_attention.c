/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/flash_attention.h"

#include "base/size.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"
#include "tensor/region.h"

enum {
    FLASH_SAVED_KEY,
    FLASH_SAVED_QUERY,
    FLASH_SAVED_VALUE,
    FLASH_SAVED_LSE,
    FLASH_SAVED_OUTPUT,
    FLASH_SAVED_RNG,
    FLASH_SAVED_UNUSED
};

enum {
    FLASH_MAX_SPLITS = 128,
    FLASH_QUERY_BLOCK = 64
};

static uint64_t key_block(uint64_t head_size)
{
    return head_size <= 64 ? 256 : (head_size <= 128 ? 128 : 64);
}

/** How full the card is in its last wave with @p blocks blocks of threads. */
static double wave_efficiency(uint64_t blocks, uint64_t slots)
{
    const double waves = (double)blocks / (double)slots;
    return waves / (double)me_div_up(blocks, slots);
}

uint64_t me_flash_key_splits(const me_card *card, uint64_t batch,
                             uint64_t heads, uint64_t queries, uint64_t keys,
                             uint64_t head_size)
{
    const uint64_t key_blocks = me_div_up(keys, key_block(head_size));
    const uint64_t blocks =
        batch * heads * me_div_up(queries, FLASH_QUERY_BLOCK);
    const uint64_t slots = 2 * (uint64_t)card->multiprocessors;
    if ((double)blocks >= 0.8 * (double)slots) {
        return 1;
    }
    const uint64_t most =
        me_min_u64(me_min_u64(FLASH_MAX_SPLITS, slots), key_blocks);
    double best = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (uint64_t k = 1; k <= most; k++) {
            if (k > 1 &&
                me_div_up(key_blocks, k) == me_div_up(key_blocks, k - 1)) {
                continue;
            }
            const double efficiency = wave_efficiency(blocks * k, slots);
            if (pass == 0) {
                best = efficiency > best ? efficiency : best;
            } else if (efficiency >= 0.85 * best) {
                return k;
            }
        }
    }
    return 1;
}

/** Dense rows in the kernel's own order (b, s, a, d)? */
static bool is_kernel_order(const me_tensor *x)
{
    const me_shape shape = {
        .ndim = 4,
        .dim = {me_dim(x, 0), me_dim(x, 2), me_dim(x, 1), me_dim(x, 3)}};
    const uint64_t strides[ME_MAX_DIMS] = {x->strides[0], x->strides[2],
                                           x->strides[1], x->strides[3]};
    return me_is_contiguous(&shape, strides);
}

static const me_op copy_kernel = {"contiguous",
                                  .cost = ME_COST(STRIDED, 0, 0, 2)};

/** A copy in the kernel's order, or NULL if there is nothing to copy. */
static me_tensor *kernel_order(me_engine *e, const me_tensor *x)
{
    if (!me_engine_is_ok(e) || is_kernel_order(x)) {
        return NULL;
    }
    return me_kernel(
        e, &copy_kernel, ME_TENSORS(x), (me_dtype)x->dtype,
        ME_SHAPE(me_dim(x, 0), me_dim(x, 2), me_dim(x, 1), me_dim(x, 3)));
}

static me_tensor *per_head_gradient(me_engine *e, const me_tensor *query)
{
    return me_empty_inside(e, "flash_bwd.expanded", (me_dtype)query->dtype,
                           query->shape);
}

static uint64_t attention_flops(const me_tensor *query, const me_tensor *key)
{
    // Two products over the causal half: 2 · 2 · b a s s d / 2.
    const uint64_t scores = me_size_mul(me_numel(query), me_dim(key, 2));
    return me_size_mul(2, scores);
}

/** Rows of queries, heads and their size stand for a product's m, batch, k. */
static void tell_flash(me_engine *e, me_kernel_class kernel,
                       const me_tensor *query, uint64_t flops)
{
    const uint64_t heads = me_size_mul(me_dim(query, 0), me_dim(query, 1));
    me_launch_attention(
        e, kernel, (me_dtype)query->dtype, flops,
        (uint64_t[3]){heads, me_dim(query, 2), me_dim(query, 3)});
}

static void flash_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                           me_tensor **gx)
{
    const me_tensor *query = node->saved[FLASH_SAVED_QUERY];
    const me_tensor *key = node->saved[FLASH_SAVED_KEY];
    const me_tensor *value = node->saved[FLASH_SAVED_VALUE];
    const uint64_t b = me_dim(query, 0);
    const uint64_t a = me_dim(query, 1);
    const uint64_t s = me_round_up(me_dim(query, 2), 128);
    const uint64_t d = me_round_up(me_dim(query, 3), 32);
    me_tensor *dout = kernel_order(e, gy[0]);
    me_tensor *out = kernel_order(e, node->saved[FLASH_SAVED_OUTPUT]);
    gx[0] = me_empty_like(e, "flash_bwd.dq", query);
    gx[1] = me_empty_like(e, "flash_bwd.dk", key);
    gx[2] = me_empty_like(e, "flash_bwd.dv", value);
    me_tensor *softmax_d = me_empty_inside(e, "flash_bwd.softmax_d",
                                           ME_DTYPE_FLOAT32, ME_SHAPE(b, a, s));
    me_tensor *dq_accum = me_empty_inside(
        e, "flash_bwd.dq_accum", ME_DTYPE_FLOAT32, ME_SHAPE(b, a, s, d));
    me_tensor *dk = NULL;
    me_tensor *dv = NULL;
    if (me_dim(key, 1) != a) {
        dk = per_head_gradient(e, query);
        dv = per_head_gradient(e, query);
    }
    tell_flash(e, ME_KERNEL_FLASH_BACKWARD, query,
               me_size_mul(attention_flops(query, key), 5) / 2);
    me_drop(e, dv);
    me_drop(e, dk);
    me_drop(e, dq_accum);
    me_drop(e, softmax_d);
    me_drop(e, out);
    me_drop(e, dout);
}

static const me_op flash_op = {.node =
                                   "ScaledDotProductFlashAttentionBackward0",
                               .backward = flash_backward};

/** Partial results of split keys: log-sum-exps and outputs, float32. */
static void split_buffers(me_engine *e, const me_tensor *query,
                          const me_tensor *key, me_tensor *buffers_out[2])
{
    const uint64_t b = me_dim(query, 0);
    const uint64_t a = me_dim(query, 1);
    const uint64_t s = me_dim(query, 2);
    const uint64_t d = me_dim(query, 3);
    const uint64_t k =
        me_flash_key_splits(me_engine_card(e), b, a, s, me_dim(key, 2), d);
    if (k > 1) {
        buffers_out[0] = me_empty_inside(
            e, "flash_fwd.lse_accum", ME_DTYPE_FLOAT32, ME_SHAPE(k, b, a, s));
        buffers_out[1] =
            me_empty_inside(e, "flash_fwd.out_accum", ME_DTYPE_FLOAT32,
                            ME_SHAPE(k, b, a, s, me_round_up(d, 32)));
    }
}

/** What the forward kernel makes. */
enum {
    FLASH_OUT,
    FLASH_LSE,
    FLASH_RNG,
    FLASH_UNUSED,
    FLASH_RESULTS
};

static void run_flash(me_engine *e, me_tensor *query, me_tensor *key,
                      me_tensor *value, double dropout, me_tensor **results_out)
{
    const bool is_narrow = me_dim(value, 3) != me_dim(query, 3);
    me_tensor *out =
        me_empty_like(e, "flash_fwd.out", is_narrow ? value : query);
    me_tensor *lse = me_empty(
        e, "flash_fwd.lse", ME_DTYPE_FLOAT32,
        ME_SHAPE(me_dim(query, 0), me_dim(query, 1), me_dim(query, 2)));
    me_tensor *splits[2] = {NULL, NULL};
    if (dropout <= 0 && me_engine_is_ok(e)) {
        split_buffers(e, query, key, splits);
    }
    me_tensor *rng = me_empty(e, "flash_fwd.rng", ME_DTYPE_UINT8, ME_SHAPE(16));
    me_tensor *unused =
        me_empty(e, "flash_fwd.unused", ME_DTYPE_UINT8, ME_SHAPE(8));
    if (dropout > 0) {
        me_tensor *state =
            me_empty(e, "flash_fwd.rng", ME_DTYPE_UINT8, ME_SHAPE(16));
        me_drop(e, rng);
        rng = state;
    }
    me_drop(e, splits[0]);
    me_drop(e, splits[1]);
    tell_flash(e, ME_KERNEL_FLASH, query, attention_flops(query, key));
    results_out[FLASH_OUT] = out;
    results_out[FLASH_LSE] = lse;
    results_out[FLASH_RNG] = rng;
    results_out[FLASH_UNUSED] = unused;
}

me_tensor *me_sdpa_flash(me_engine *e, me_tensor *query, me_tensor *key,
                         me_tensor *value, double dropout)
{
    me_node *node =
        me_record(e, &flash_op, 3, (me_tensor *[]){query, key, value});
    me_tensor *results[FLASH_RESULTS] = {NULL};
    if (!me_region_kept(e, ME_REGION_ATTENTION, FLASH_RESULTS, results)) {
        run_flash(e, query, key, value, dropout, results);
        me_region_keep(e, ME_REGION_ATTENTION, FLASH_RESULTS, results);
    }
    me_save(e, node, FLASH_SAVED_KEY, key);
    me_save(e, node, FLASH_SAVED_QUERY, query);
    me_save(e, node, FLASH_SAVED_VALUE, value);
    me_save(e, node, FLASH_SAVED_LSE, results[FLASH_LSE]);
    me_save(e, node, FLASH_SAVED_OUTPUT, results[FLASH_OUT]);
    me_save(e, node, FLASH_SAVED_RNG, results[FLASH_RNG]);
    me_save(e, node, FLASH_SAVED_UNUSED, results[FLASH_UNUSED]);
    me_drop(e, results[FLASH_LSE]);
    me_drop(e, results[FLASH_RNG]);
    me_drop(e, results[FLASH_UNUSED]);
    return me_output(e, node, results[FLASH_OUT]);
}

static const me_op repeat_gradient = {"sum", .cost = ME_COST(REDUCE, 1, 1, 0)};

static const me_op repeat_op =
    ME_OP("repeat_interleave", NULL, ME_COST(STRIDED, 0, 0, 2),
          "RepeatInterleaveBackward", .backward = me_gradient_shaped_backward,
          .gradient = &repeat_gradient);

me_tensor *me_repeat_heads(me_engine *e, me_tensor *x, uint64_t n)
{
    me_node *node = me_record1(e, &repeat_op, x);
    me_shape shape = x->shape;
    if (me_engine_is_ok(e)) {
        shape.dim[2] = me_size_mul(shape.dim[2], n);
    }
    return me_output(
        e, node,
        me_kernel(e, &repeat_op, ME_TENSORS(x), (me_dtype)x->dtype, shape));
}
