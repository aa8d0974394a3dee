/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/te_fused_attention.h"

#include "base/size.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"
#include "tensor/saved_hooks.h"

enum {
    RNG_STATE_BYTES = 16,
    FORWARD_WORKSPACE_BYTES = 256,
    QUERY_TILE = 64, /**< of the kernel's score matrix */
    KEY_TILE = 128,
    /* In bytes, of parts of the workspace: sums of the scores' gradient, and keys'
     * or values' gradients of all heads. Read off 280 shapes with cuDNN 9.19. */
    SUMS_ALIGNMENT = 16,
    HEADS_ALIGNMENT = 128
};

enum {
    ATTENTION_SAVED_QUERY,
    ATTENTION_SAVED_KEY,
    ATTENTION_SAVED_VALUE,
    ATTENTION_SAVED_OUTPUT,
    ATTENTION_SAVED_STATISTICS,
    ATTENTION_SAVED_RNG,
    ATTENTION_SAVED_OFFSET
};

/** Sums of the queries' gradient, in float32; a kernel that may not add them in
 *  any order keeps the scores' gradient instead, in the type of the tensors and
 *  in whole tiles, whatever the size of a head. Read off 24 jobs of cuDNN 9.19:
 *  head sizes of 32 to 256, sequences of 1024 to 16384. */
static uint64_t sums_bytes(const me_te_attention_call *call, uint64_t rows)
{
    const uint64_t heads = me_size_mul(call->batch, call->heads);
    const uint64_t scores = me_size_mul(me_round_up(call->queries, QUERY_TILE),
                                        me_round_up(call->keys, KEY_TILE));
    return call->is_deterministic ? me_size_mul(2, me_size_mul(heads, scores))
                                  : me_size_mul(4 * call->head_size, rows);
}

/** Gradients of @p size elements for each of @p rows, of every head for itself. */
static uint64_t heads_bytes(uint64_t size, uint64_t rows)
{
    return me_round_up(me_size_mul(2 * size, rows), HEADS_ALIGNMENT);
}

uint64_t me_te_attention_workspace_bytes(const me_te_attention_call *call)
{
    const uint64_t rows =
        me_size_mul(me_size_mul(call->batch, call->heads), call->queries);
    uint64_t bytes =
        me_size_add(sums_bytes(call, rows),
                    me_round_up(me_size_mul(4, rows), SUMS_ALIGNMENT));
    if (call->heads != call->groups) {
        const uint64_t keys =
            me_size_mul(me_size_mul(call->batch, call->heads), call->keys);
        bytes = me_size_add(bytes, heads_bytes(call->head_size, keys));
        bytes = me_size_add(bytes, heads_bytes(call->value_head_size, keys));
    }
    return me_size_add(bytes, FORWARD_WORKSPACE_BYTES);
}

/** Two products over the keys that queries see: 4 a d of each pair. */
static uint64_t attention_flops(const me_tensor *query, const me_tensor *key,
                                me_te_mask mask)
{
    const uint64_t keys = me_size_mul(2, me_dim(key, 0));
    const uint64_t unseen =
        mask == ME_TE_MASK_CAUSAL ? me_min_u64(me_dim(query, 0), keys) : 0;
    return me_size_mul(2, me_size_mul(me_numel(query), keys - unseen));
}

/** Heads, rows of queries and their size stand for a product's batch, m, k. */
static void tell_kernel(me_engine *e, me_kernel_class kernel,
                        const me_tensor *query, uint64_t flops)
{
    const uint64_t heads = me_size_mul(me_dim(query, 1), me_dim(query, 2));
    me_launch_attention(
        e, kernel, (me_dtype)query->dtype, flops,
        (uint64_t[3]){heads, me_dim(query, 0), me_dim(query, 3)});
}

/** Gradients of query, key and value, which are as those are: three tensors, or
 *  views of one. */
static void make_gradients(me_engine *e, me_tensor *const qkv[3],
                           bool is_interleaved, me_tensor **gx)
{
    const char *op = "fused_attn_bwd";
    if (is_interleaved) {
        me_shape shape = qkv[0]->shape;
        shape.dim[shape.ndim - 1] = me_size_mul(3, shape.dim[shape.ndim - 1]);
        me_tensor *all = me_empty(e, op, (me_dtype)qkv[0]->dtype, shape);
        for (int i = 0; i < 3; i++) {
            gx[i] = me_alias(e, all, qkv[i]->shape, qkv[i]->strides);
        }
        me_drop(e, all);
        return;
    }
    for (int i = 0; i < 3; i++) {
        gx[i] = me_empty(e, op, (me_dtype)qkv[i]->dtype, qkv[i]->shape);
    }
}

void me_te_fused_backward(me_engine *e, me_tensor *const qkv[3],
                          const me_tensor *offset,
                          const me_te_attention_spec *spec, me_tensor **gx)
{
    const me_tensor *query = qkv[0];
    const me_tensor *key = qkv[1];
    make_gradients(e, qkv, spec->is_interleaved, gx);
    if (offset != NULL) {
        gx[3] = me_empty_like(e, "fused_attn_bwd.offset", offset);
    }
    const me_te_attention_call call = {
        .batch = me_dim(query, 1),
        .heads = me_dim(query, 2),
        .groups = me_dim(key, 2),
        .queries = me_dim(query, 0),
        .keys = me_dim(key, 0),
        .head_size = me_dim(query, 3),
        .value_head_size = me_dim(qkv[2], 3),
        .is_deterministic =
            me_is_deterministic(e) || me_engine_card(e)->te.is_deterministic,
    };
    me_tensor *workspace = me_scratch(e, "fused_attn_bwd.workspace",
                                      me_te_attention_workspace_bytes(&call));
    tell_kernel(e, ME_KERNEL_FUSED_ATTENTION_BACKWARD, query,
                me_size_mul(attention_flops(query, key, spec->mask), 5) / 2);
    me_drop(e, workspace);
}

static void attention_backward(me_engine *e, me_node *node,
                               me_tensor *const *gy, me_tensor **gx)
{
    (void)gy;
    me_te_fused_backward(e, node->saved, node->saved[ATTENTION_SAVED_OFFSET],
                         &(me_te_attention_spec){
                             .is_interleaved = node->data.flag,
                         },
                         gx);
    if (me_saved_is_own(node)) { // names go, then a list from its end
        for (int i = 0; i <= ATTENTION_SAVED_OUTPUT; i++) {
            me_clear(e, &node->saved[i]);
        }
        me_clear(e, &node->saved[ATTENTION_SAVED_RNG]);
    }
}

static const me_op attention_op = {
    "fused_attn_fwd", .node = "FusedAttnFuncBackward",
    .backward = attention_backward, .marks_saved = true, .offloads_base = true};

void me_te_fused_forward(me_engine *e, me_tensor *const qkv[3], me_te_mask mask,
                         me_te_attention_made *made_out)
{
    const me_tensor *query = qkv[0];
    const char *op = attention_op.event;
    made_out->output = me_empty(e, op, (me_dtype)query->dtype,
                                ME_SHAPE(me_dim(query, 0), me_dim(query, 1),
                                         me_dim(query, 2), me_dim(qkv[2], 3)));
    made_out->rng = me_scratch(e, op, RNG_STATE_BYTES);
    me_tensor *workspace = me_scratch(e, op, FORWARD_WORKSPACE_BYTES);
    made_out->statistics = me_empty(
        e, op, ME_DTYPE_FLOAT32,
        ME_SHAPE(me_dim(query, 1), me_dim(query, 2), me_dim(query, 0), 1));
    tell_kernel(e, ME_KERNEL_FUSED_ATTENTION, query,
                attention_flops(query, qkv[1], mask));
    me_drop(e, workspace);
}

me_tensor *me_te_fused_attention(me_engine *e, me_tensor *const qkv[3],
                                 me_tensor *offset,
                                 const me_te_attention_spec *spec)
{
    const me_frame frame = me_enter(e);
    me_node *node = me_record(e, &attention_op, 4,
                              (me_tensor *[]){qkv[0], qkv[1], qkv[2], offset});
    me_te_attention_made made;
    me_te_fused_forward(e, qkv, spec->mask, &made);
    for (uint32_t i = 0; i < 3; i++) {
        me_save(e, node, ATTENTION_SAVED_QUERY + i, qkv[i]);
    }
    me_save(e, node, ATTENTION_SAVED_OUTPUT, made.output);
    me_save(e, node, ATTENTION_SAVED_STATISTICS, made.statistics);
    me_save(e, node, ATTENTION_SAVED_RNG, made.rng);
    me_save(e, node, ATTENTION_SAVED_OFFSET, offset);
    if (node != NULL) {
        node->data.flag = spec->is_interleaved;
    }
    me_drop(e, made.rng);
    me_drop(e, made.statistics);
    return me_leave(e, frame, me_output(e, node, made.output));
}

static const me_op rope_gradient = {"fused_rope_backward",
                                    .cost = ME_POINTWISE};

static void rope_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                          me_tensor **gx)
{
    (void)node;
    gx[0] = me_kernel_dense(e, &rope_gradient, ME_TENSORS(gy[0]));
}

static const me_op rope_op =
    ME_OP("fused_rope_forward", NULL, ME_POINTWISE, "FusedRoPEFuncBackward",
          .backward = rope_backward);

me_tensor *me_te_rope(me_engine *e, me_tensor *x, me_tensor *angles)
{
    me_node *node = me_record1(e, &rope_op, x);
    me_tensor *y = me_kernel_dense(e, &rope_op, ME_TENSORS(x));
    me_save(e, node, 0, angles);
    return me_output(e, node, y);
}
