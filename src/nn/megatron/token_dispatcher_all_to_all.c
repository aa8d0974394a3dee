/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/moe_utils.h"
#include "nn/megatron/shared_experts.h"
#include "nn/megatron/te_permutation.h"
#include "nn/megatron/token_dispatcher.h"
#include "ops/index.h"
#include "ops/view.h"
#include "tensor/launch.h"

/** Numbers of the ranks, for all to know. */
static me_tensor *numbers(me_engine *e, const char *op, uint64_t count)
{
    return me_empty(e, op, ME_DTYPE_INT64, ME_SHAPE(count));
}

static bool is_fused(const me_dispatcher *d)
{
    return d->nn->config->moe.permute_fusion;
}

/** Ranks that hold this rank's tokens' experts, p·u. */
static uint64_t expert_ranks(const me_dispatcher *d)
{
    const me_parallel_config *c = &d->nn->config->parallel;
    return (uint64_t)c->expert * (uint64_t)c->expert_tensor;
}

/** sort_input_by_local_experts and restore_output_by_local_experts: on the device
 *  if kernels read them. Of one rank, or with one expert each, both are views of
 *  one list. */
static void create(me_dispatcher *d)
{
    me_engine *e = d->nn->e;
    if (!is_fused(d)) {
        return;
    }
    const me_frame frame = me_enter(e);
    const me_category category = me_category_set(e, ME_CATEGORY_BUFFER);
    const uint64_t chunks = expert_ranks(d) * d->n_local;
    me_tensor *all = numbers(e, "arange", chunks);
    if (expert_ranks(d) == 1 || d->n_local == 1) {
        me_assign(e, &d->chunk_orders[0], all);
    } else {
        for (int i = 0; i < 2; i++) {
            me_assign(e, &d->chunk_orders[i], numbers(e, "ravel", chunks));
        }
    }
    me_category_set(e, category);
    me_leave(e, frame, NULL);
}

/** Copied to the host on a stream of its own; the host's copy takes its name.
 *  It is pageable memory, so that the host waits. */
static void to_host(me_engine *e, me_tensor *x)
{
    me_record_stream(x);
    me_drop(e, x);
}

/** `all[:, :, first:last].contiguous()`, of (u, p, E): the counts of this rank's
 *  experts, copied unless it has all. */
static me_tensor *own_columns(const me_dispatcher *d, const me_tensor *all)
{
    const me_parallel_config *c = &d->nn->config->parallel;
    const uint64_t count =
        (uint64_t)c->expert_tensor * (uint64_t)c->expert * d->n_local;
    return c->expert == 1
               ? me_alias(d->nn->e, all, ME_SHAPE(count), (uint64_t[]){1})
               : numbers(d->nn->e, "contiguous", count);
}

/** Numbers that the host needs, in the order in which it copies them. */
typedef struct device_counts {
    me_tensor *of[ME_DISPATCHER_COUNTS];
    int n;
} device_counts;

static void add_counts(device_counts *counts, me_tensor *x)
{
    if (x != NULL) {
        counts->of[counts->n++] = x;
    }
}

/** How many rows a rank sends is a number on the device where they are padded,
 *  or where some are dropped. */
static me_tensor *count_rows(const me_dispatcher *d)
{
    const me_moe_options *m = &d->nn->config->moe;
    return m->router_padding_for_quantization || m->has_capacity
               ? numbers(d->nn->e, "sum", 1)
               : NULL;
}

/**
 * MoEAlltoAllTokenDispatcher.preprocess(): how many rows go where, which all
 * ranks tell each other.
 */
static device_counts preprocess(me_dispatcher *d)
{
    me_engine *e = d->nn->e;
    const me_config *c = d->nn->config;
    const uint64_t p = (uint64_t)c->parallel.expert;
    const uint64_t u = (uint64_t)c->parallel.expert_tensor;
    const bool keeps_counts = is_fused(d) && d->n_local > 1;
    device_counts counts = {.n = 0};
    me_tensor *local = me_count_flags(e, d->routing_map); // (E)
    me_tensor *num_out = count_rows(d);
    if (p * u == 1) {
        if (keeps_counts) {
            me_attribute_set(e, &d->counts_of_experts, local);
        }
        add_counts(&counts, num_out);
        add_counts(&counts, local);
        return counts;
    }
    add_counts(&counts, numbers(e, "sum", p)); // input_splits
    me_tensor *all =
        me_all_gather_first(e, d->nn->comm, ME_GROUP_EXPERT_TENSOR_EXPERT,
                            local);                // (p·u·E)
    me_tensor *of_experts = own_columns(d, all);   // (u, p, n)
    add_counts(&counts, numbers(e, "sum", p * u)); // output_splits
    add_counts(&counts, numbers(e, "sum", u));     // output_splits_tp
    me_tensor *tokens_per_expert = numbers(e, "sum", d->n_local);
    if (keeps_counts) {
        me_attribute_set(e, &d->counts_of_experts, of_experts);
    }
    me_drop(e, local);
    me_drop(e, all);
    add_counts(&counts, num_out);
    if (d->n_local == 1 || keeps_counts) { // else an attribute
        me_drop(e, of_experts);
    } else {
        add_counts(&counts, of_experts);
    }
    add_counts(&counts, tokens_per_expert);
    return counts;
}

/** _maybe_dtoh_and_synchronize() before the first permutation. Where that is or
 *  might be captured, they stay for token_dispatch(). */
static void copy_to_host(me_dispatcher *d, const device_counts *counts)
{
    me_engine *e = d->nn->e;
    if (d->nn->config->train.cuda_graph_late_counts) {
        for (int i = 0; i < counts->n; i++) {
            me_attribute_set(e, &d->late_counts[i], counts->of[i]);
        }
        d->n_late_counts = (uint32_t)counts->n;
        return;
    }
    for (int i = 0; i < counts->n; i++) {
        to_host(e, counts->of[i]);
    }
    me_launch_host_waits(e);
}

/** The same before rows leave the rank. */
static void copy_late_counts(me_dispatcher *d)
{
    me_engine *e = d->nn->e;
    for (uint32_t i = 0; i < d->n_late_counts; i++) {
        me_record_stream(d->late_counts[i]);
        me_attribute_set(e, &d->late_counts[i], NULL);
    }
    if (d->n_late_counts > 0) {
        me_launch_host_waits(e);
    }
    d->n_late_counts = 0;
}

/** Permutation 1: a row for each of a token's experts. */
static me_dispatched dispatch_preprocess(me_dispatcher *d, me_tensor *tokens,
                                         me_tensor *probs, me_tensor *map)
{
    me_attribute_set(d->nn->e, &d->probs, probs);
    me_attribute_set(d->nn->e, &d->routing_map, map);
    if (d->nn->config->moe.router_padding_for_quantization) {
        me_pad_routing_map(d->nn->e, d->routing_map);
    }
    const me_frame frame = me_enter(d->nn->e);
    const device_counts counts = preprocess(d);
    if (d->shared_experts != NULL) {
        me_shared_experts_pre_forward_comm(d->shared_experts,
                                           me_view(d->nn->e, tokens, d->shape));
    }
    copy_to_host(d, &counts);
    me_leave(d->nn->e, frame, NULL);
    const me_permuted p =
        is_fused(d)
            ? me_te_permute(d->nn, tokens, d->routing_map, probs, d->n_sent)
            : me_permute_tokens(d->nn->e, tokens, d->routing_map, probs,
                                d->n_sent);
    me_attribute_set(d->nn->e, &d->row_numbers, p.row_numbers);
    return (me_dispatched){p.tokens, p.probs}; // (K·T, h), (K·T)
}

static me_dispatched token_dispatch(me_dispatcher *d, me_dispatched rows)
{
    const uint64_t arriving = me_arriving_rows(
        &d->exchange, d->nn->comm->index[ME_GROUP_EXPERT_TENSOR]);
    copy_late_counts(d);
    me_tensor *tokens =
        me_all_to_all(rows.tokens, &d->exchange, false, arriving);
    if (d->shared_experts != NULL) {
        me_shared_experts_fc1_and_act(d->shared_experts, tokens);
    }
    return (me_dispatched){
        tokens,
        me_all_to_all(rows.probs, &d->exchange, false, arriving),
    };
}

/** sort_chunks_by_idxs(). */
static me_dispatched sort_chunks(me_dispatcher *d, me_dispatched rows)
{
    me_engine *e = d->nn->e;
    if (is_fused(d)) {
        const me_permuted p = me_te_sort_chunks(d->nn, rows.tokens, rows.probs);
        return (me_dispatched){p.tokens, p.probs};
    }
    me_tensor *tokens = me_reorder_rows(e, rows.tokens);
    me_tensor *probs =
        rows.probs == NULL ? NULL : me_reorder_rows(e, rows.probs);
    return (me_dispatched){tokens, probs};
}

/** All tensor ranks' rows, then permutation 2: from the order of ranks to that
 *  of experts. */
static me_dispatched dispatch_postprocess(me_dispatcher *d, me_dispatched given)
{
    me_engine *e = d->nn->e;
    me_dispatched rows = given;
    const me_frame frame = me_enter(e);
    if (d->nn->config->parallel.expert_tensor > 1) {
        rows.tokens = me_gather_expert_rows(given.tokens, &d->exchange);
        rows.probs = me_gather_expert_rows(given.probs, &d->exchange);
    }
    if (d->n_local > 1) {
        const me_dispatched sorted = sort_chunks(d, rows);
        rows.tokens =
            me_rebind_own(e, rows.tokens, given.tokens, sorted.tokens);
        rows.probs = me_rebind_own(e, rows.probs, given.probs, sorted.probs);
    }
    me_leave_with(e, frame, 2, (me_tensor *[]){rows.tokens, rows.probs});
    return rows; // (R, h), (R)
}

static me_tensor *combine_preprocess(me_dispatcher *d, me_tensor *given)
{
    me_engine *e = d->nn->e;
    me_tensor *rows = given;
    const me_frame frame = me_enter(e);
    if (d->n_local > 1) {
        me_tensor *counts =
            is_fused(d) && expert_ranks(d) > 1
                ? numbers(e, "ravel", me_numel(d->counts_of_experts))
                : NULL;
        rows = sort_chunks(d, (me_dispatched){rows, NULL}).tokens;
        me_drop(e, counts);
    }
    if (d->nn->config->parallel.expert_tensor > 1) {
        me_tensor *own = me_reduce_scatter_expert_rows(rows, &d->exchange);
        rows = me_rebind_own(e, rows, given, own);
    }
    return me_leave(e, frame, rows); // (r, h)
}

static me_tensor *token_combine(me_dispatcher *d, me_tensor *rows)
{
    me_tensor *own = me_all_to_all(rows, &d->exchange, true, d->n_sent);
    if (d->shared_experts != NULL) {
        me_shared_experts_fc2(d->shared_experts, own);
    }
    return own;
}

static me_tensor *combine_postprocess(me_dispatcher *d, me_tensor *rows)
{
    return is_fused(d) ? me_te_unpermute(d->nn, rows, d->row_numbers)
                       : me_unpermute(d->nn->e, rows, d->row_numbers,
                                      d->n_tokens); // (T, h)
}

/** Places of all names that a graph's outputs have, in the order of
 *  cudagraph_attrs: tokens_per_expert is the last of the counts. @return how
 *  many */
static uint32_t list_names(me_dispatcher *d,
                           me_tensor **names_out[ME_DISPATCHER_COUNTS + 4])
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->n_late_counts; i++) {
        const uint32_t at = i == 0 ? d->n_late_counts - 1 : i - 1;
        names_out[n++] = &d->late_counts[at];
    }
    me_tensor **const others[] = {&d->counts_of_experts, &d->row_numbers,
                                  &d->routing_map, &d->probs};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        names_out[n++] = others[i];
    }
    return n;
}

uint32_t me_dispatcher_attributes(me_dispatcher *d, me_tensor **attributes_out)
{
    me_tensor **names[ME_DISPATCHER_COUNTS + 4];
    const uint32_t n_names = list_names(d, names);
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_names; i++) {
        if (*names[i] != NULL) {
            attributes_out[n++] = *names[i];
        }
        if (i == 0 && d->n_late_counts > 0 && expert_ranks(d) == 1 &&
            d->n_local > 1 && !is_fused(d)) {
            attributes_out[n++] = *names[i]; // num_global_tokens_per_…, a view
        }
    }
    return n;
}

void me_dispatcher_take(me_dispatcher *d, me_dispatcher_stash *stash_out)
{
    me_tensor **names[ME_DISPATCHER_COUNTS + 4];
    const uint32_t n = list_names(d, names);
    *stash_out = (me_dispatcher_stash){.n_late_counts = d->n_late_counts};
    for (uint32_t i = 0; i < n; i++) {
        stash_out->items[i] = *names[i];
        *names[i] = NULL;
    }
    d->n_late_counts = 0;
}

void me_dispatcher_put_back(me_dispatcher *d, me_dispatcher_stash *stash)
{
    me_dispatcher_stash now;
    me_tensor **names[ME_DISPATCHER_COUNTS + 4];
    me_dispatcher_take(d, &now);
    d->n_late_counts = stash->n_late_counts;
    const uint32_t n = list_names(d, names);
    for (uint32_t i = 0; i < n; i++) {
        *names[i] = stash->items[i];
    }
    me_dispatcher_let_go(d, &now);
}

void me_dispatcher_let_go(me_dispatcher *d, me_dispatcher_stash *stash)
{
    for (size_t i = 0; i < sizeof stash->items / sizeof stash->items[0]; i++) {
        me_clear(d->nn->e, &stash->items[i]);
    }
}

const me_dispatcher_kind me_dispatcher_all_to_all = {
    .create = create,
    .dispatch_preprocess = dispatch_preprocess,
    .token_dispatch = token_dispatch,
    .dispatch_postprocess = dispatch_postprocess,
    .combine_preprocess = combine_preprocess,
    .token_combine = token_combine,
    .combine_postprocess = combine_postprocess,
};
