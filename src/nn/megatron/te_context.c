/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/te_context.h"

#include "nn/megatron/te_exchange.h"
#include "nn/megatron/te_state.h"
#include "ops/flash_attn.h"
#include "ops/flash_attn_3.h"
#include "tensor/autograd.h"

enum {
    HEADS_SAVED_QKV,
    HEADS_SAVED_OUTPUT = HEADS_SAVED_QKV + 3,
    HEADS_SAVED_STATISTICS,
    HEADS_SAVED_RNG,
    HEADS_SAVED_OFFSET
};

/** All layers, or none, have a window where ranks share sequences. */
static me_te_mask within_window(const me_nn *nn, me_te_mask mask)
{
    return mask == ME_TE_MASK_CAUSAL && nn->config->model.window_attention
               ? ME_TE_MASK_WINDOW
               : mask;
}

static void run_flash(me_nn *nn, me_tensor *const qkv[3], me_te_mask mask,
                      me_te_attention_made *made_out)
{
    me_flash_attn_forward(nn->e, qkv, mask, nn->config->model.attention_dropout,
                          made_out);
}

static void run_flash_backward(me_nn *nn, me_tensor *const qkv[3],
                               const me_tensor *offset, me_te_mask mask,
                               me_tensor **gx)
{
    (void)offset;
    me_flash_attn_backward(nn->e, qkv, mask, gx);
}

static void run_flash_3(me_nn *nn, me_tensor *const qkv[3], me_te_mask mask,
                        me_te_attention_made *made_out)
{
    me_flash_attn_3_forward(nn->e, qkv, within_window(nn, mask), made_out);
}

static void run_flash_3_backward(me_nn *nn, me_tensor *const qkv[3],
                                 const me_tensor *offset, me_te_mask mask,
                                 me_tensor **gx)
{
    (void)offset;
    me_flash_attn_3_backward(nn->e, qkv, within_window(nn, mask), gx);
}

static void run_fused(me_nn *nn, me_tensor *const qkv[3], me_te_mask mask,
                      me_te_attention_made *made_out)
{
    me_te_fused_forward(nn->e, qkv, mask, made_out);
}

static void run_fused_backward(me_nn *nn, me_tensor *const qkv[3],
                               const me_tensor *offset, me_te_mask mask,
                               me_tensor **gx)
{
    me_te_fused_backward(nn->e, qkv, offset,
                         &(me_te_attention_spec){.mask = mask}, gx);
}

/** The kernels of a core attention that shares sequences. */
typedef struct kernels {
    void (*forward)(me_nn *nn, me_tensor *const qkv[3], me_te_mask mask,
                    me_te_attention_made *made_out);
    void (*backward)(me_nn *nn, me_tensor *const qkv[3],
                     const me_tensor *offset, me_te_mask mask, me_tensor **gx);
} kernels;

/** By me_core_attention_kind; others do not share sequences. */
static const kernels rows[] = {
    [ME_CORE_ATTENTION_TE_FUSED] = {run_fused, run_fused_backward},
    [ME_CORE_ATTENTION_TE_FLASH] = {run_flash, run_flash_backward},
    [ME_CORE_ATTENTION_TE_FLASH_3] = {run_flash_3, run_flash_3_backward},
};

void me_te_context_kernel(me_nn *nn, me_tensor *const qkv[3], me_te_mask mask,
                          me_te_attention_made *made_out)
{
    rows[nn->config->impl.core_attention].forward(nn, qkv, mask, made_out);
}

void me_te_context_kernel_backward(me_nn *nn, me_tensor *const qkv[3],
                                   const me_tensor *offset, me_te_mask mask,
                                   me_tensor **gx)
{
    rows[nn->config->impl.core_attention].backward(nn, qkv, offset, mask, gx);
}

static void heads_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                           me_tensor **gx)
{
    me_nn nn = *(const me_nn *)node->data.context;
    me_tensor *dout = gy[0];
    me_te_exchange(&nn, ME_GROUP_CONTEXT, ME_TE_TO_HEADS, 1, &dout);
    me_tensor *made[4] = {NULL};
    me_te_context_kernel_backward(&nn, &node->saved[HEADS_SAVED_QKV],
                                  node->saved[HEADS_SAVED_OFFSET],
                                  ME_TE_MASK_CAUSAL, made);
    for (int i = 0; i < 3; i++) {
        gx[i] = made[i];
    }
    me_te_exchange(&nn, ME_GROUP_CONTEXT, ME_TE_TO_ROWS, 3, gx);
    for (int i = 0; i < 3; i++) {
        me_drop(e, made[i]); // what the exchange gave has their names
    }
    if (made[3] != NULL) {
        gx[3] = me_all_gather_first(e, nn.comm, ME_GROUP_CONTEXT, made[3]);
    }
    me_drop(e, dout);
    me_drop(e, made[3]);
}

static const me_op heads_op = {.node = "AttnFuncWithCPAndQKVOA2ABackward",
                               .backward = heads_backward};

/** flash_attn_a2a_communicate_softmax_offset(): this rank's heads of it. */
static me_tensor *select_offset(me_nn *nn, const me_tensor *offset)
{
    const uint64_t ranks = (uint64_t)nn->comm->size[ME_GROUP_CONTEXT];
    me_te_offset_ids(nn, ranks);
    return me_empty(nn->e, "index_select", ME_DTYPE_FLOAT32,
                    ME_SHAPE(me_numel(offset) / ranks));
}

me_tensor *me_te_context_heads(me_nn *nn, me_tensor *const qkv[3],
                               me_tensor *offset)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    me_node *node = me_record(e, &heads_op, 4,
                              (me_tensor *[]){qkv[0], qkv[1], qkv[2], offset});
    me_tensor *local[3] = {qkv[0], qkv[1], qkv[2]};
    me_te_exchange(nn, ME_GROUP_CONTEXT, ME_TE_TO_HEADS, 3, local);
    me_tensor *part = offset == NULL ? NULL : select_offset(nn, offset);
    me_te_attention_made made;
    me_te_context_kernel(nn, local, ME_TE_MASK_CAUSAL, &made);
    me_tensor *y = made.output;
    me_te_exchange(nn, ME_GROUP_CONTEXT, ME_TE_TO_ROWS, 1, &y);
    for (uint32_t i = 0; i < 3; i++) {
        me_save(e, node, HEADS_SAVED_QKV + i, local[i]);
    }
    me_save(e, node, HEADS_SAVED_OUTPUT, made.output);
    me_save(e, node, HEADS_SAVED_STATISTICS, made.statistics);
    me_save(e, node, HEADS_SAVED_RNG, made.rng);
    me_save(e, node, HEADS_SAVED_OFFSET, part);
    if (node != NULL) {
        node->data.context = nn;
    }
    me_drop(e,
            made.rng); // without a tape what would be saved goes from its end
    me_drop(e, made.statistics);
    me_drop(e, made.output);
    for (int i = 2; i >= 0; i--) {
        me_drop(e, local[i]);
    }
    return me_leave(e, frame, me_output(e, node, y));
}

/** By me_cp_comm_type. */
static me_tensor *(*const ways[])(me_nn *nn, me_tensor *const qkv[3],
                                  me_tensor *offset) = {
    [ME_CP_COMM_P2P] = me_te_context_ring,
    [ME_CP_COMM_ALL_GATHER] = me_te_context_gather,
    [ME_CP_COMM_A2A] = me_te_context_heads,
    [ME_CP_COMM_A2A_P2P] = me_te_context_hierarchy,
};

me_cp_comm_type me_te_context_way(const me_nn *nn, me_cp_comm_type type)
{
    if (type != ME_CP_COMM_A2A_P2P) {
        return type;
    }
    return nn->comm->size[ME_GROUP_CONTEXT_HEADS] == 1  ? ME_CP_COMM_P2P
           : nn->comm->size[ME_GROUP_CONTEXT_RING] == 1 ? ME_CP_COMM_A2A
                                                        : type;
}

me_tensor *me_te_context_attention(me_nn *nn, me_cp_comm_type type,
                                   me_tensor *const qkv[3], me_tensor *offset)
{
    return me_engine_is_ok(nn->e)
               ? ways[me_te_context_way(nn, type)](nn, qkv, offset)
               : me_none(nn->e);
}
