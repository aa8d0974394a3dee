/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/assert.h"
#include "base/size.h"
#include "nn/megatron/te_context.h"
#include "nn/megatron/te_state.h"
#include "ops/index.h"
#include "ops/te_fused_attention.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"

enum {
    GATHER_SAVED_QKV,
    GATHER_SAVED_OUTPUT = GATHER_SAVED_QKV + 3,
    GATHER_SAVED_LENGTHS,
    GATHER_SAVED_STATISTICS,
    GATHER_SAVED_RNG = ME_MAX_SAVED,
    HALVES = 2 /**< of a rank's rows, each a step on a stream of its own */
};

static const uint8_t streams[HALVES] = {ME_STREAM_DEFAULT, ME_STREAM_CONTEXT};

/** Rows of keys that half @p i of the rank's queries sees: its chunk of the
 *  sequence and all before it, or what a window shows of it
 *  (get_kv_seq_info_after_all_gather()). */
static uint64_t keys_of(const me_nn *nn, const me_tensor *key, int i)
{
    const uint64_t ranks = (uint64_t)nn->comm->size[ME_GROUP_CONTEXT];
    const uint64_t rank = (uint64_t)nn->comm->index[ME_GROUP_CONTEXT];
    const uint64_t chunk = i == 0 ? rank : 2 * ranks - 1 - rank;
    const uint64_t rows = me_dim(key, 0) / 2;
    const uint64_t all = me_size_mul(chunk + 1, rows);
    const me_model_config *model = &nn->config->model;
    if (!model->window_attention || model->window_keys == 0) {
        return all;
    }
    return me_min_u64(all, rows + (uint64_t)model->window_keys - 1);
}

/** The first @p rows of a contiguous tensor. */
static me_tensor *first_rows(me_engine *e, const me_tensor *x, uint64_t rows)
{
    me_shape shape = x->shape;
    shape.dim[0] = rows;
    return me_alias(e, x, shape, x->strides);
}

/** index_select() over the chunks of all ranks. */
static me_tensor *reorder(me_engine *e, me_tensor *x)
{
    me_tensor *y = me_select_chunks(e, x, 0, me_dim(x, 0));
    me_drop(e, x);
    return y;
}

/** Keys and values of all ranks, in the order of the sequence. */
static void gather(me_nn *nn, me_tensor *const kv[2], me_tensor *all_out[2])
{
    for (int i = 0; i < 2; i++) {
        all_out[i] =
            me_all_gather_first(nn->e, nn->comm, ME_GROUP_CONTEXT, kv[i]);
    }
    me_te_chunk_ids(nn, true, (uint64_t)nn->comm->size[ME_GROUP_CONTEXT]);
    for (int i = 0; i < 2; i++) {
        all_out[i] = reorder(nn->e, all_out[i]);
    }
}

/** Half @p i of the queries, and what it sees of keys and values. */
static void parts_of(me_nn *nn, me_tensor *const qkv[3],
                     me_tensor *const all[2], int i, me_tensor *parts_out[3])
{
    const uint64_t keys = keys_of(nn, qkv[1], i);
    parts_out[0] = first_rows(nn->e, qkv[0], me_dim(qkv[0], 0) / 2);
    parts_out[1] = first_rows(nn->e, all[0], keys);
    parts_out[2] = first_rows(nn->e, all[1], keys);
}

static void forward_half(me_nn *nn, me_tensor *const qkv[3],
                         me_tensor *const all[2], int i,
                         me_te_attention_made *made)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    me_tensor *parts[3] = {NULL, NULL, NULL};
    const uint8_t stream = me_stream_set(e, streams[i]);
    parts_of(nn, qkv, all, i, parts);
    me_te_full_cu_seqlens(nn, me_dim(qkv[0], 1), me_dim(parts[1], 0));
    me_te_context_kernel(nn, parts, ME_TE_MASK_CAUSAL, made);
    me_stream_set(e, stream);
    me_leave_with(e, frame, 3,
                  (me_tensor *[]){made->output, made->rng, made->statistics});
}

/** One half's gradients; those of keys and values are added to the whole ones. */
static void backward_half(me_nn *nn, me_node *node, me_tensor *const all[2],
                          int i, me_tensor *gradients_out[3])
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    me_tensor *parts[3] = {NULL, NULL, NULL};
    const uint8_t stream = me_stream_set(e, streams[i]);
    parts_of(nn, &node->saved[GATHER_SAVED_QKV], all, i, parts);
    me_te_context_kernel_backward(nn, parts, NULL, ME_TE_MASK_CAUSAL,
                                  gradients_out);
    me_launch_kernel(e, ME_KERNEL_COPY, 0, 2 * me_bytes(gradients_out[0]));
    for (int k = 1; k < 3; k++) {
        me_launch_kernel(e, ME_KERNEL_ACCUMULATE, me_numel(gradients_out[k]),
                         3 * me_bytes(gradients_out[k]));
    }
    me_stream_set(e, stream);
    me_leave_with(e, frame, 3, gradients_out);
}

static me_tensor *zeros_of_all(me_nn *nn, const me_tensor *x)
{
    me_shape shape = x->shape;
    shape.dim[0] =
        me_size_mul(shape.dim[0], (uint64_t)nn->comm->size[ME_GROUP_CONTEXT]);
    me_tensor *y = me_empty(nn->e, "zeros", (me_dtype)x->dtype, shape);
    me_launch_kernel(nn->e, ME_KERNEL_ELEMENTWISE, 0, me_bytes(y));
    return y;
}

static me_tensor *reduce(me_nn *nn, me_tensor *x)
{
    me_tensor *y =
        me_reduce_scatter_first(nn->e, nn->comm, ME_GROUP_CONTEXT, x);
    me_drop(nn->e, x);
    return y;
}

static void gather_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                            me_tensor **gx)
{
    (void)gy;
    me_nn nn = *(const me_nn *)node->data.context;
    me_tensor *const *qkv = &node->saved[GATHER_SAVED_QKV];
    gx[0] = me_empty_like(e, "empty", qkv[0]);
    gx[1] = zeros_of_all(&nn, qkv[1]);
    gx[2] = zeros_of_all(&nn, qkv[2]);
    me_tensor *all[2] = {NULL, NULL};
    gather(&nn, &qkv[1], all);
    me_tensor *halves[HALVES][3] = {{NULL}};
    for (int i = 0; i < HALVES; i++) {
        backward_half(&nn, node, all, i, halves[i]);
    }
    me_te_chunk_ids(&nn, false, (uint64_t)nn.comm->size[ME_GROUP_CONTEXT]);
    gx[1] = reorder(e, gx[1]);
    gx[2] = reorder(e, gx[2]);
    gx[1] = reduce(&nn, gx[1]);
    gx[2] = reduce(&nn, gx[2]);
    for (int k = 0; k < 3; k++) { // lists go, their last item first
        me_drop(e, halves[1][k]);
        me_drop(e, halves[0][k]);
    }
    me_drop(e, all[0]);
    me_drop(e, all[1]);
}

static const me_op gather_op = {.node = "AttnFuncWithCPAndKVAllGatherBackward",
                                .backward = gather_backward};

static void save(me_nn *nn, me_node *node, me_tensor *const qkv[3],
                 me_tensor *lengths, const me_te_attention_made *halves,
                 const me_tensor *y)
{
    me_engine *e = nn->e;
    for (uint32_t i = 0; i < 3; i++) {
        me_save(e, node, GATHER_SAVED_QKV + i, qkv[i]);
    }
    me_save(e, node, GATHER_SAVED_OUTPUT, y);
    me_save(e, node, GATHER_SAVED_LENGTHS, lengths);
    for (uint32_t i = 0; i < HALVES; i++) {
        me_save(e, node, GATHER_SAVED_STATISTICS + i, halves[i].statistics);
        me_save(e, node, GATHER_SAVED_RNG + i, halves[i].rng);
    }
    if (node != NULL) {
        node->data.context = nn;
    }
}

/** What would be saved, which without a tape goes from its end. */
static void forget(me_engine *e, me_tensor *lengths,
                   const me_te_attention_made *halves)
{
    for (int i = HALVES - 1; i >= 0; i--) {
        me_drop(e, halves[i].rng);
    }
    for (int i = HALVES - 1; i >= 0; i--) {
        me_drop(e, halves[i].statistics);
    }
    me_drop(e, lengths);
}

me_tensor *me_te_context_gather(me_nn *nn, me_tensor *const qkv[3],
                                me_tensor *offset)
{
    (void)offset; // refused by config/megatron/context_parallel.c
    ME_ASSERT(offset == NULL);
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    me_node *node = me_record_saving(e, &gather_op, 3, qkv, HALVES);
    const me_tensor *query = qkv[0];
    me_tensor *lengths = me_empty(e, "floordiv", ME_DTYPE_INT32,
                                  ME_SHAPE(me_size_add(me_dim(query, 1), 1)));
    me_tensor *all[2] = {NULL, NULL};
    gather(nn, &qkv[1], all);
    me_tensor *y = me_empty(e, "empty", (me_dtype)query->dtype,
                            ME_SHAPE(me_dim(query, 0), me_dim(query, 1),
                                     me_dim(query, 2), me_dim(qkv[2], 3)));
    me_te_attention_made halves[HALVES];
    for (int i = 0; i < HALVES; i++) {
        forward_half(nn, qkv, all, i, &halves[i]);
        me_launch_kernel(e, ME_KERNEL_COPY, 0, me_bytes(y));
    }
    save(nn, node, qkv, lengths, halves, y);
    me_drop(e, halves[1].output);
    me_drop(e, halves[0].output);
    me_drop(e, all[0]);
    me_drop(e, all[1]);
    if (node == NULL) {
        forget(e, lengths, halves);
    }
    return me_leave(e, frame, me_output(e, node, y));
}
