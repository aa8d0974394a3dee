/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/size.h"
#include "nn/megatron/moe_utils.h"
#include "nn/megatron/router.h"
#include "nn/megatron/shared_experts.h"
#include "nn/megatron/te_permutation.h"
#include "nn/megatron/token_dispatcher.h"
#include "ops/index.h"
#include "ops/sort.h"
#include "ops/view.h"
#include "parallel/expert_rows.h"
#include "tensor/launch.h"

/* All-to-all whose experts all get C tokens of every rank, be they padding: nobody
 * counts, and chunks are reordered by transposing (drop_and_pad). */

/** `x.T.contiguous().view(-1)`: one name. */
static me_tensor *transposed_flat(me_engine *e, me_tensor *x)
{
    const me_frame frame = me_enter(e);
    me_tensor *t = me_contiguous(e, me_transpose(e, x, 0, 1));
    return me_leave(e, frame, me_view(e, t, ME_SHAPE(me_numel(t))));
}

/** The first C tokens of each expert: `map.to(int8).T.contiguous().argsort(…)`
 *  and its first columns. (E, T) are left in @p map_out. */
static me_tensor *first_tokens(me_engine *e, me_tensor *map, uint64_t capacity,
                               me_tensor **map_out)
{
    const uint64_t experts = me_dim(map, 1);
    me_tensor *bytes = me_empty(e, "to", ME_DTYPE_UINT8, map->shape);
    *map_out = me_empty(e, "contiguous", ME_DTYPE_UINT8,
                        ME_SHAPE(experts, me_dim(map, 0)));
    me_drop(e, bytes);
    me_tensor *positions = me_argsort_rows(e, *map_out); // (E, T)
    me_tensor *first = me_empty(e, "contiguous", ME_DTYPE_INT64,
                                ME_SHAPE(me_size_mul(experts, capacity)));
    me_drop(e, positions);
    return first;
}

/** permute() of tokens whose number for each expert is known. */
static me_permuted permute(me_engine *e, me_tensor *tokens, me_tensor *map,
                           me_tensor *probs, uint64_t capacity)
{
    const me_frame frame = me_enter(e);
    const uint64_t experts = me_dim(map, 1);
    me_permuted p = {.probs = NULL};
    me_tensor *bytes = NULL;
    p.row_numbers = first_tokens(e, map, capacity, &bytes); // (C·E)
    me_tensor *flat = transposed_flat(e, probs);            // (E·T)
    me_arange(e, experts);
    me_tensor *begins = me_empty(e, "mul", ME_DTYPE_INT64, ME_SHAPE(experts));
    me_tensor *places =
        me_empty(e, "add", ME_DTYPE_INT64, p.row_numbers->shape);
    me_drop(e, begins);
    p.probs = me_index_select(e, flat, places);           // (C·E)
    p.tokens = me_index_select(e, tokens, p.row_numbers); // (C·E, h)
    me_leave_with(e, frame, 3,
                  (me_tensor *[]){p.tokens, p.probs, p.row_numbers});
    return p;
}

static bool is_fused(const me_dispatcher *d)
{
    return d->nn->config->moe.permute_fusion;
}

static void create(me_dispatcher *d)
{
    me_dispatcher_all_to_all.create(d);
}

/** num_global_tokens_per_local_expert, where the kernels' indices are. */
static void keep_counts(me_dispatcher *d)
{
    me_engine *e = d->nn->e;
    const uint64_t count = d->nn->config->moe.num_experts *
                           (uint64_t)d->nn->config->parallel.expert_tensor;
    me_tensor *counts = me_empty(e, "full", ME_DTYPE_INT64, ME_SHAPE(count));
    me_attribute_set(e, &d->counts_of_experts, counts);
    me_drop(e, counts);
}

static me_dispatched dispatch_preprocess(me_dispatcher *d, me_tensor *tokens,
                                         me_tensor *probs, me_tensor *map)
{
    me_engine *e = d->nn->e;
    me_attribute_set(e, &d->probs, probs);
    me_attribute_set(e, &d->routing_map, map);
    const uint64_t capacity = me_expert_capacity(d->nn->config, d->n_tokens);
    if (is_fused(d)) {
        keep_counts(d);
    }
    if (d->shared_experts != NULL) {
        me_shared_experts_pre_forward_comm(d->shared_experts,
                                           me_view(e, tokens, d->shape));
    }
    const me_permuted p =
        is_fused(d)
            ? me_te_permute(d->nn, tokens, d->routing_map, probs, d->n_sent)
            : permute(e, tokens, d->routing_map, probs, capacity);
    me_attribute_set(e, &d->row_numbers, p.row_numbers);
    return (me_dispatched){p.tokens, p.probs}; // (C·E, h), (C·E)
}

/** With one rank, chunks are in the order of experts as they come. */
static bool reorders(const me_dispatcher *d)
{
    const me_parallel_config *p = &d->nn->config->parallel;
    return d->n_local > 1 && p->expert * p->expert_tensor > 1;
}

static me_dispatched token_dispatch(me_dispatcher *d, me_dispatched rows)
{
    return me_dispatcher_all_to_all.token_dispatch(d, rows);
}

static me_dispatched dispatch_postprocess(me_dispatcher *d, me_dispatched given)
{
    me_engine *e = d->nn->e;
    me_dispatched rows = given;
    const me_frame frame = me_enter(e);
    if (d->nn->config->parallel.expert_tensor > 1) {
        rows.tokens = me_gather_expert_rows(given.tokens, &d->exchange);
        rows.probs = me_gather_expert_rows(given.probs, &d->exchange);
    }
    if (reorders(d)) {
        rows.tokens = me_rebind_own(e, rows.tokens, given.tokens,
                                    me_reorder_rows(e, rows.tokens));
        rows.probs = me_rebind_own(e, rows.probs, given.probs,
                                   me_reorder_rows(e, rows.probs));
    }
    me_leave_with(e, frame, 2, (me_tensor *[]){rows.tokens, rows.probs});
    return rows; // (R, h), (R)
}

static me_tensor *combine_preprocess(me_dispatcher *d, me_tensor *given)
{
    me_engine *e = d->nn->e;
    me_tensor *rows = given;
    const me_frame frame = me_enter(e);
    if (reorders(d)) {
        rows = me_reorder_rows(e, rows);
    }
    if (d->nn->config->parallel.expert_tensor > 1) {
        me_tensor *own = me_reduce_scatter_expert_rows(rows, &d->exchange);
        rows = me_rebind_own(e, rows, given, own);
    }
    return me_leave(e, frame, rows);
}

static me_tensor *token_combine(me_dispatcher *d, me_tensor *rows)
{
    return me_dispatcher_all_to_all.token_combine(d, rows);
}

static me_tensor *combine_postprocess(me_dispatcher *d, me_tensor *rows)
{
    return is_fused(d) ? me_te_unpermute(d->nn, rows, d->row_numbers)
                       : me_unpermute(d->nn->e, rows, d->row_numbers,
                                      d->n_tokens); // (T, h)
}

const me_dispatcher_kind me_dispatcher_padded = {
    .create = create,
    .dispatch_preprocess = dispatch_preprocess,
    .token_dispatch = token_dispatch,
    .dispatch_postprocess = dispatch_postprocess,
    .combine_preprocess = combine_preprocess,
    .token_combine = token_combine,
    .combine_postprocess = combine_postprocess,
};
