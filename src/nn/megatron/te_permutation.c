/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/te_permutation.h"

#include "base/size.h"
#include "ops/elementwise.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"

static const me_op permute_kernel = {"permute",
                                     .cost = ME_COST(INDEX, 0, 0, 2)};
static const me_op unpermute_kernel = {"unpermute",
                                       .cost = ME_COST(INDEX, 0, 1, 1)};
static const me_op sort_kernel = {"sort_chunks",
                                  .cost = ME_COST(INDEX, 0, 1, 1)};

/** The kernel's first call with or without weights. */
static void tune(const me_nn *nn, me_te_permutation kernel, bool has_probs)
{
    // Block sizes that are tried, and triton's get_empty_cache_for_benchmark().
    enum {
        CONFIGURATIONS = 7,
        CACHE_BYTES = 256 << 20
    };

    bool *is_tuned = &nn->moe->is_tuned[kernel][has_probs ? 1 : 0];
    for (int i = 0; i < CONFIGURATIONS && !*is_tuned; i++) {
        me_temporary(nn->e, "get_empty_cache_for_benchmark", CACHE_BYTES);
    }
    *is_tuned = true;
}

/** (rows, h) like @p x. */
static me_tensor *rows_of(me_engine *e, const me_op *kernel, me_tensor *x,
                          uint64_t rows)
{
    return me_kernel(e, kernel, ME_TENSORS(x), (me_dtype)x->dtype,
                     ME_SHAPE(rows, me_dim(x, 1)));
}

/** Zeros for the gradient that a row map does not have: the custom operator's
 *  outputs are all materialised. */
static me_tensor *zeros_of(me_engine *e, const me_tensor *row_map)
{
    return me_pointwise(e, "zeros", row_map, (me_dtype)row_map->dtype);
}

enum {
    SAVED_ROW_MAP
};

/** Outputs of permute and sort_chunks that have gradients. */
enum {
    OUTPUT_TOKENS,
    OUTPUT_PROBS
};

static void permute_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                             me_tensor **gx)
{
    const me_tensor *row_map = node->saved[SAVED_ROW_MAP];
    const me_nn *nn = node->data.context;
    const bool has_probs = node->n_outputs > OUTPUT_PROBS;
    me_tensor *zeros = zeros_of(e, row_map);
    gx[0] =
        rows_of(e, &unpermute_kernel, gy[OUTPUT_TOKENS], me_dim(row_map, 0));
    if (has_probs) {
        gx[1] = me_empty(e, unpermute_kernel.event,
                         (me_dtype)gy[OUTPUT_PROBS]->dtype,
                         ME_SHAPE(me_dim(row_map, 0), node->data.n[0]));
    }
    tune(nn, ME_TE_UNPERMUTE, has_probs);
    me_drop(e, zeros);
}

static const me_op permute_op =
    ME_NODE("GeneratedBackwardFor_te_moe_permute_mask_map_fwd_defaultBackward",
            permute_backward);

/** make_row_id_map(). */
static me_tensor *make_row_map(me_engine *e, const me_tensor *map)
{
    enum {
        BLOCK_SIZE = 1024
    };

    const uint64_t tokens = me_dim(map, 0);
    const uint64_t experts = me_dim(map, 1);
    me_tensor *row_map =
        me_empty(e, "row_id_map", ME_DTYPE_INT32,
                 ME_SHAPE(tokens, me_size_add(me_size_mul(2, experts), 1)));
    me_drop(e, me_empty(e, "row_id_map", ME_DTYPE_INT32,
                        ME_SHAPE(experts, me_div_up(tokens, BLOCK_SIZE))));
    return row_map;
}

me_permuted me_te_permute(me_nn *nn, me_tensor *tokens, me_tensor *map,
                          me_tensor *probs, uint64_t rows)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    me_node *node = me_record(e, &permute_op, probs == NULL ? 1 : 2,
                              (me_tensor *[]){tokens, probs});
    me_permuted p = {.row_numbers = make_row_map(e, map)};
    p.tokens = rows_of(e, &permute_kernel, tokens, rows);
    if (probs != NULL) {
        p.probs = me_empty(e, permute_kernel.event, (me_dtype)probs->dtype,
                           ME_SHAPE(rows));
    }
    tune(nn, ME_TE_PERMUTE, probs != NULL);
    me_save(e, node, SAVED_ROW_MAP, p.row_numbers);
    if (node != NULL) {
        node->data.context = nn;
        node->data.n[0] = me_dim(map, 1);
    }
    me_output(e, node, p.tokens);
    if (probs != NULL) {
        me_output(e, node, p.probs);
    }
    me_leave_with(e, frame, 3,
                  (me_tensor *[]){p.tokens, p.probs, p.row_numbers});
    return p;
}

static void unpermute_backward(me_engine *e, me_node *node,
                               me_tensor *const *gy, me_tensor **gx)
{
    gx[0] = rows_of(e, &permute_kernel, gy[0], node->data.shape.dim[0]);
    tune(node->data.context, ME_TE_PERMUTE, false);
}

static const me_op unpermute_op = ME_NODE(
    "GeneratedBackwardFor_te_moe_unpermute_mask_map_fwd_defaultBackward",
    unpermute_backward);

me_tensor *me_te_unpermute(me_nn *nn, me_tensor *rows, me_tensor *row_map)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    me_node *node = me_record1(e, &unpermute_op, rows);
    me_tensor *y = rows_of(e, &unpermute_kernel, rows, me_dim(row_map, 0));
    tune(nn, ME_TE_UNPERMUTE, false);
    me_save(e, node, SAVED_ROW_MAP, row_map);
    if (node != NULL) {
        node->data.context = nn;
    }
    return me_leave(e, frame, me_output(e, node, y));
}

static void sort_chunks_backward(me_engine *e, me_node *node,
                                 me_tensor *const *gy, me_tensor **gx)
{
    me_tensor *zeros = zeros_of(e, node->saved[SAVED_ROW_MAP]);
    for (uint32_t i = 0; i < node->n_outputs; i++) {
        gx[i] = me_kernel_like(e, &sort_kernel, ME_TENSORS(gy[i]));
    }
    tune(node->data.context, ME_TE_SORT_CHUNKS, node->n_outputs > OUTPUT_PROBS);
    me_drop(e, zeros);
}

static const me_op sort_chunks_op =
    ME_NODE("GeneratedBackwardFor_te_moe_chunk_sort_fwd_defaultBackward",
            sort_chunks_backward);

me_permuted me_te_sort_chunks(me_nn *nn, me_tensor *rows, me_tensor *probs)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    me_node *node = me_record(e, &sort_chunks_op, probs == NULL ? 1 : 2,
                              (me_tensor *[]){rows, probs});
    me_permuted p = {.row_numbers = me_empty(e, "row_id_map", ME_DTYPE_INT32,
                                             ME_SHAPE(me_dim(rows, 0)))};
    p.tokens = me_kernel_like(e, &sort_kernel, ME_TENSORS(rows));
    if (probs != NULL) {
        p.probs = me_kernel_like(e, &sort_kernel, ME_TENSORS(probs));
    }
    tune(nn, ME_TE_SORT_CHUNKS, probs != NULL);
    me_save(e, node, SAVED_ROW_MAP, p.row_numbers);
    if (node != NULL) {
        node->data.context = nn;
    }
    me_output(e, node, p.tokens);
    if (probs != NULL) {
        me_output(e, node, p.probs);
    }
    me_leave_with(e, frame, 2, (me_tensor *[]){p.tokens, p.probs});
    return p;
}
