/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/flash_attn_4.h"

#include "base/size.h"
#include "ops/flash_attn.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"

enum {
    FLASH_SAVED_OUTPUT = 3, /**< behind query, key and value */
    FLASH_SAVED_STATISTICS,
    COLUMN_ALIGNMENT = 32, /**< of sums */
    DEDICATED_HEAD_SIZE = 256,
    PAIRED_HEAD_SIZE = 128, /**< from which on two SMs share a tile */
    HOPPER = 9,             /**< majors of compute capabilities */
    BLACKWELL = 10,
    CONSUMER_BLACKWELL = 12
};

/** What sizes of the backward follow from. */
typedef struct sizes {
    uint64_t batch;
    uint64_t heads;
    uint64_t groups;        /**< heads of keys and values */
    uint64_t queries;       /**< rows, in whole tiles */
    uint64_t keys;          /**< likewise */
    uint64_t query_columns; /**< of sums */
    uint64_t value_columns; /**< likewise */
    uint64_t query_rows;    /**< of a tile */
    uint64_t key_rows;      /**< of a tile */
    uint64_t cluster;       /**< SMs that share a tile */
    bool is_dedicated; /**< its kernel sums up without the caller's memory */
} sizes;

/** _tile_size_bwd_sm90() with a causal mask or a window; _flash_attn_bwd(). */
static void set_tiles(uint64_t major, uint64_t d, sizes *s)
{
    s->cluster = 1;
    if (major == HOPPER) {
        s->query_rows = d <= 64 ? 128 : 64;
        s->key_rows = d <= 128 ? 128 : d <= 192 ? 96 : 64;
    } else if (major == CONSUMER_BLACKWELL) {
        s->query_rows = 64;
        s->key_rows = 64;
    } else {
        s->query_rows = 128;
        s->key_rows = 128;
        s->cluster = d >= PAIRED_HEAD_SIZE ? 2 : 1;
    }
}

static sizes sizes_of(const me_engine *e, me_tensor *const qkv[3])
{
    const uint64_t major = me_engine_card(e)->compute_capability / 10;
    const uint64_t d = me_dim(qkv[0], 3);
    const uint64_t u = me_dim(qkv[2], 3);
    sizes s = {
        .batch = me_dim(qkv[0], 1),
        .heads = me_dim(qkv[0], 2),
        .groups = me_dim(qkv[1], 2),
        .query_columns = me_round_up(d, COLUMN_ALIGNMENT),
        .value_columns = me_round_up(u, COLUMN_ALIGNMENT),
        .is_dedicated = major == BLACKWELL && d == DEDICATED_HEAD_SIZE &&
                        u == DEDICATED_HEAD_SIZE,
    };
    set_tiles(major, d, &s);
    s.queries = me_round_up(me_dim(qkv[0], 0), s.query_rows);
    s.keys = me_round_up(me_dim(qkv[1], 0), s.key_rows);
    s.keys = s.cluster > 1 ? me_round_up(s.keys, 2 * s.key_rows) : s.keys;
    return s;
}

/** A result of queries, as wide as values, the batch before the sequence. */
static me_tensor *make_output(me_engine *e, const me_tensor *query, uint64_t u)
{
    me_shape shape = query->shape; // (s, b, a, u)
    shape.dim[3] = u;
    const uint64_t row = me_size_mul(me_dim(query, 2), u);
    const uint64_t strides[ME_MAX_DIMS] = {
        row, me_size_mul(row, me_dim(query, 0)), u, 1};
    return me_empty_strided(e, "flash_attn_4_fwd", (me_dtype)query->dtype,
                            shape, strides);
}

/** What the backward makes beside the gradients. */
typedef enum backward_part {
    QUERY_SUMS,  /**< dq_accum */
    ROW_SUMS,    /**< dpsum */
    STATISTICS,  /**< lse_log2 */
    KEY_SUMS,    /**< dk_accum, where heads share keys */
    VALUE_SUMS,  /**< dv_accum, likewise */
    QUERY_ORDER, /**< dQ_semaphore, where sums have an order */
    KEY_ORDER,   /**< dK_semaphore, where heads share keys as well */
    VALUE_ORDER, /**< dV_semaphore, likewise */
    BACKWARD_PARTS
} backward_part;

static me_tensor *make_sums(me_engine *e, const char *op, uint64_t batch,
                            uint64_t heads, uint64_t numbers)
{
    return me_empty_inside(e, op, ME_DTYPE_FLOAT32,
                           ME_SHAPE(batch, heads, numbers));
}

static me_tensor *make_order(me_engine *e, const char *op, const sizes *s,
                             uint64_t heads, uint64_t counts)
{
    return me_empty_inside(e, op, ME_DTYPE_INT32,
                           ME_SHAPE(s->batch, heads, counts));
}

/** Of sums that are made in an order. */
static void make_orders(me_engine *e, const sizes *s,
                        me_tensor *parts_out[BACKWARD_PARTS])
{
    const uint64_t tiles = s->keys / s->key_rows;
    parts_out[QUERY_ORDER] =
        make_order(e, "flash_attn_4_bwd.dq_semaphore", s, s->heads,
                   me_size_mul(s->queries / s->query_rows, s->cluster));
    if (s->groups != s->heads) {
        parts_out[KEY_ORDER] = make_order(e, "flash_attn_4_bwd.dk_semaphore", s,
                                          s->groups, me_size_mul(tiles, 2));
        parts_out[VALUE_ORDER] =
            make_order(e, "flash_attn_4_bwd.dv_semaphore", s, s->groups,
                       me_size_mul(tiles, 2));
    }
}

static void make_parts(me_engine *e, const sizes *s,
                       me_tensor *parts_out[BACKWARD_PARTS])
{
    if (!s->is_dedicated) {
        parts_out[QUERY_SUMS] =
            make_sums(e, "flash_attn_4_bwd.dq_accum", s->batch, s->heads,
                      me_size_mul(s->queries, s->query_columns));
    }
    parts_out[ROW_SUMS] =
        make_sums(e, "flash_attn_4_bwd.dpsum", s->batch, s->heads, s->queries);
    parts_out[STATISTICS] = make_sums(e, "flash_attn_4_bwd.lse_log2", s->batch,
                                      s->heads, s->queries);
    if (s->groups != s->heads && !s->is_dedicated) {
        parts_out[KEY_SUMS] =
            make_sums(e, "flash_attn_4_bwd.dk_accum", s->batch, s->groups,
                      me_size_mul(s->keys, s->query_columns));
        parts_out[VALUE_SUMS] =
            make_sums(e, "flash_attn_4_bwd.dv_accum", s->batch, s->groups,
                      me_size_mul(s->keys, s->value_columns));
    }
    if (me_is_deterministic(e) || me_engine_card(e)->te.is_deterministic) {
        make_orders(e, s, parts_out);
    }
}

static void flash_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                           me_tensor **gx)
{
    (void)gy;
    me_tensor *const *qkv = node->saved;
    me_tensor *parts[BACKWARD_PARTS] = {NULL};
    for (int i = 0; i < 3; i++) {
        gx[i] = me_empty_like(e, "flash_attn_4_bwd", qkv[i]);
    }
    if (me_engine_is_ok(e)) {
        const sizes s = sizes_of(e, qkv);
        make_parts(e, &s, parts);
    }
    me_flash_attn_tell(e, ME_KERNEL_FLASH_BACKWARD, qkv,
                       node->data.flag ? ME_TE_MASK_WINDOW : ME_TE_MASK_CAUSAL);
    for (int i = 0; i < BACKWARD_PARTS; i++) { // as Python ends its variables
        me_drop(e, parts[i]);
    }
}

static const me_op flash_op = {.node = "FlashAttnFuncBackward",
                               .backward = flash_backward,
                               .marks_saved = true};

me_tensor *me_flash_attn_4(me_engine *e, me_tensor *const qkv[3],
                           me_te_mask mask)
{
    const me_frame frame = me_enter(e);
    me_node *node = me_record(e, &flash_op, 3, qkv);
    if (node != NULL) {
        node->data.flag = mask == ME_TE_MASK_WINDOW;
    }
    me_tensor *output = make_output(e, qkv[0], me_dim(qkv[2], 3));
    me_tensor *statistics = NULL;
    if (node != NULL) { // some input requires a gradient
        statistics = me_empty(
            e, "flash_attn_4_fwd.lse", ME_DTYPE_FLOAT32,
            ME_SHAPE(me_dim(qkv[0], 1), me_dim(qkv[0], 2), me_dim(qkv[0], 0)));
    }
    me_flash_attn_tell(e, ME_KERNEL_FLASH, qkv, mask);
    for (uint32_t i = 0; i < 3; i++) {
        me_save(e, node, i, qkv[i]);
    }
    me_save(e, node, FLASH_SAVED_OUTPUT, output);
    me_save(e, node, FLASH_SAVED_STATISTICS, statistics);
    me_drop(e, statistics);
    return me_leave(e, frame, me_output(e, node, output));
}
