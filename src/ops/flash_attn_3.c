/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/flash_attn_3.h"

#include "base/size.h"
#include "ops/flash_attn.h"
#include "ops/view.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"

enum {
    FLASH_SAVED_OUTPUT = 3, /**< behind query, key and value */
    FLASH_SAVED_STATISTICS
};

/** What sizes of the backward follow from. */
typedef struct sizes {
    uint64_t batch;
    uint64_t heads;
    uint64_t groups;     /**< heads of keys and values */
    uint64_t queries;    /**< rows */
    uint64_t keys;       /**< rows */
    uint64_t head_size;  /**< that of the kernel */
    uint64_t query_rows; /**< of a tile */
    uint64_t key_rows;   /**< of a tile */
} sizes;

/** round_up_headdim(), of a build with all kernels. */
static uint64_t kernel_head_size(uint64_t d)
{
    return d <= 64 ? 64 : d <= 96 ? 96 : d <= 128 ? 128 : d <= 192 ? 192 : 256;
}

/** kBlockM_sm90 and kBlockN_sm90 without a softcap. */
static sizes sizes_of(me_tensor *const qkv[3], me_te_mask mask)
{
    const uint64_t d = kernel_head_size(me_dim(qkv[0], 3) > me_dim(qkv[2], 3)
                                            ? me_dim(qkv[0], 3)
                                            : me_dim(qkv[2], 3));
    return (sizes){
        .batch = me_dim(qkv[0], 1),
        .heads = me_dim(qkv[0], 2),
        .groups = me_dim(qkv[1], 2),
        .queries = me_dim(qkv[0], 0),
        .keys = me_dim(qkv[1], 0),
        .head_size = d,
        .query_rows = d <= 64                               ? 128
                      : d == 128 && mask == ME_TE_MASK_NONE ? 80
                                                            : 64,
        .key_rows = d <= 128   ? 128
                    : d <= 192 ? 96
                               : 80,
    };
}

/** A result of queries, as wide as values. */
static me_tensor *make_output(me_engine *e, const me_tensor *query,
                              const me_tensor *value)
{
    const uint64_t d = me_dim(query, 3);
    const uint64_t u = me_dim(value, 3);
    if (d == u) {
        return me_empty_like(e, "flash_attn_3_fwd", query);
    }
    me_shape shape = query->shape; // (s, b, a, d)
    shape.dim[3] = u;
    const uint64_t row = me_size_mul(me_dim(query, 2), u);
    const uint64_t strides[ME_MAX_DIMS] = {
        row, me_size_mul(row, me_dim(query, 0)), u, 1};
    return me_empty_strided(e, "flash_attn_3_fwd", (me_dtype)query->dtype,
                            shape, strides);
}

/** Counts of tiles, by which blocks of threads take the next one: of a causal
 *  mask alone, with room for what sorts samples of several lengths. */
static me_tensor *make_scheduler(me_engine *e, uint64_t batch, me_te_mask mask)
{
    enum {
        BATCH_ALIGNMENT = 4
    };

    const uint64_t vectors = mask == ME_TE_MASK_WINDOW ? 1 : 2;
    const uint64_t n =
        me_size_mul(vectors, me_round_up(batch, BATCH_ALIGNMENT));
    return me_empty_inside(e, "flash_attn_3_fwd.tile_count_semaphore",
                           ME_DTYPE_INT32, ME_SHAPE(me_size_add(n, 1)));
}

void me_flash_attn_3_forward(me_engine *e, me_tensor *const qkv[3],
                             me_te_mask mask, me_te_attention_made *made_out)
{
    const uint64_t batch = me_dim(qkv[0], 1);
    me_tensor *scheduler = NULL;
    made_out->rng = NULL;
    made_out->output = make_output(e, qkv[0], qkv[2]);
    made_out->statistics =
        me_empty(e, "flash_attn_3_fwd.lse", ME_DTYPE_FLOAT32,
                 ME_SHAPE(batch, me_dim(qkv[0], 2), me_dim(qkv[0], 0)));
    if (mask != ME_TE_MASK_NONE) {
        scheduler = make_scheduler(e, batch, mask);
    }
    me_flash_attn_tell(e, ME_KERNEL_FLASH, qkv, mask);
    me_drop(e, scheduler);
}

/** What the backward makes beside the gradients: what it returns to Python, which
 *  asks for none of it, then what ends with the function itself. */
typedef enum backward_part {
    ROW_SUMS,    /**< softmax_d */
    STATISTICS,  /**< softmax_lse_log2 */
    QUERY_SUMS,  /**< dq_accum */
    KEY_SUMS,    /**< dk_accum, where heads share keys */
    VALUE_SUMS,  /**< dv_accum, likewise */
    QUERY_ORDER, /**< dq_semaphore */
    KEY_ORDER, /**< dk_semaphore, where heads share keys and sums have an order */
    VALUE_ORDER, /**< dv_semaphore, likewise */
    BACKWARD_PARTS
} backward_part;

static me_tensor *make_sums(me_engine *e, const char *op, const sizes *s,
                            uint64_t heads, uint64_t rows)
{
    return me_empty_inside(
        e, op, ME_DTYPE_FLOAT32,
        ME_SHAPE(s->batch, heads, me_size_mul(rows, s->head_size)));
}

static me_tensor *make_order(me_engine *e, const char *op, const sizes *s,
                             uint64_t heads, uint64_t tiles)
{
    return me_empty_inside(e, op, ME_DTYPE_INT32,
                           ME_SHAPE(tiles, s->batch, heads));
}

static void make_parts(me_engine *e, const sizes *s,
                       me_tensor *parts_out[BACKWARD_PARTS])
{
    const uint64_t queries = me_round_up(s->queries, s->query_rows);
    const uint64_t keys = me_round_up(s->keys, s->key_rows);
    const me_shape rows = ME_SHAPE(s->batch, s->heads, queries);
    const bool is_shared = s->groups != s->heads;
    parts_out[ROW_SUMS] = me_empty_inside(e, "flash_attn_3_bwd.softmax_d",
                                          ME_DTYPE_FLOAT32, rows);
    parts_out[STATISTICS] = me_empty_inside(
        e, "flash_attn_3_bwd.softmax_lse_log2", ME_DTYPE_FLOAT32, rows);
    parts_out[QUERY_SUMS] =
        make_sums(e, "flash_attn_3_bwd.dq_accum", s, s->heads, queries);
    if (is_shared) {
        parts_out[KEY_SUMS] =
            make_sums(e, "flash_attn_3_bwd.dk_accum", s, s->groups, keys);
        parts_out[VALUE_SUMS] =
            make_sums(e, "flash_attn_3_bwd.dv_accum", s, s->groups, keys);
    }
    parts_out[QUERY_ORDER] =
        make_order(e, "flash_attn_3_bwd.dq_semaphore", s, s->heads,
                   me_div_up(s->queries, s->query_rows));
    if (is_shared &&
        (me_is_deterministic(e) || me_engine_card(e)->te.is_deterministic)) {
        const uint64_t tiles = me_div_up(s->keys, s->key_rows);
        parts_out[KEY_ORDER] =
            make_order(e, "flash_attn_3_bwd.dk_semaphore", s, s->groups, tiles);
        parts_out[VALUE_ORDER] =
            make_order(e, "flash_attn_3_bwd.dv_semaphore", s, s->groups, tiles);
    }
}

void me_flash_attn_3_backward(me_engine *e, me_tensor *const qkv[3],
                              me_te_mask mask, me_tensor **gx)
{
    me_tensor *parts[BACKWARD_PARTS] = {NULL};
    for (int i = 0; i < 3; i++) {
        gx[i] = me_empty_like(e, "flash_attn_3_bwd", qkv[i]);
    }
    if (me_engine_is_ok(e)) {
        const sizes s = sizes_of(qkv, mask);
        make_parts(e, &s, parts);
    }
    me_flash_attn_tell(e, ME_KERNEL_FLASH_BACKWARD, qkv, mask);
    for (int i = BACKWARD_PARTS; i > 0; i--) {
        me_drop(e, parts[i - 1]);
    }
}

static void flash_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                           me_tensor **gx)
{
    (void)gy;
    me_flash_attn_3_backward(
        e, node->saved, node->data.flag ? ME_TE_MASK_WINDOW : ME_TE_MASK_CAUSAL,
        gx);
}

static const me_op flash_op = {.node = "FlashAttnFuncBackward",
                               .backward = flash_backward,
                               .marks_saved = true};

me_tensor *me_flash_attn_3(me_engine *e, me_tensor *const qkv[3],
                           me_te_mask mask)
{
    const me_frame frame = me_enter(e);
    me_node *node = me_record(e, &flash_op, 3, qkv);
    me_te_attention_made made;
    if (node != NULL) {
        node->data.flag = mask == ME_TE_MASK_WINDOW;
    }
    me_flash_attn_3_forward(e, qkv, mask, &made);
    for (uint32_t i = 0; i < 3; i++) {
        me_save(e, node, i, qkv[i]);
    }
    me_save(e, node, FLASH_SAVED_OUTPUT, made.output);
    me_save(e, node, FLASH_SAVED_STATISTICS, made.statistics);
    me_drop(e, made.statistics);
    return me_leave(e, frame, me_output(e, node, made.output));
}
