/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/token_dispatcher.h"

#include "base/size.h"
#include "nn/megatron/moe_utils.h"
#include "nn/megatron/quantization_padding.h"
#include "nn/megatron/router.h"
#include "nn/megatron/shared_experts.h"
#include "ops/elementwise.h"
#include "ops/view.h"
#include "parallel/expert_rows.h"
#include "tensor/launch.h"

static const me_dispatcher_kind *const kinds[] = {
    [ME_DISPATCHER_ALL_GATHER] = &me_dispatcher_all_gather,
    [ME_DISPATCHER_ALL_TO_ALL] = &me_dispatcher_all_to_all,
};

static const me_dispatcher_kind *kind_of(const me_moe_options *m)
{
    if (m->token_dispatcher == ME_DISPATCHER_FLEX) {
        return m->flex_backend == ME_FLEX_DEEPEP ? &me_dispatcher_deepep
                                                 : &me_dispatcher_hybridep;
    }
    return m->pad_to_capacity && m->token_dispatcher == ME_DISPATCHER_ALL_TO_ALL
               ? &me_dispatcher_padded
               : kinds[m->token_dispatcher];
}

int32_t me_dispatcher_ranks(const me_dispatcher *d)
{
    const me_parallel_config *p = &d->nn->config->parallel;
    return d->kind->spans_tensor_ranks ? p->expert * p->expert_tensor
                                       : p->expert;
}

void me_dispatcher_create(me_nn *nn, int32_t layer, me_dispatcher *dispatcher)
{
    const me_config *c = nn->config;
    const uint64_t n_local = c->moe.num_experts / (uint64_t)c->parallel.expert;
    *dispatcher = (me_dispatcher){
        .kind = kind_of(&c->moe),
        .nn = nn,
        .n_local = (uint32_t)n_local,
        .counts = me_engine_alloc(nn->e, n_local, sizeof(uint64_t)),
        .exchange = {.nn = nn, .layer = layer},
    };
    if (dispatcher->kind->create != NULL && me_engine_is_ok(nn->e)) {
        dispatcher->kind->create(dispatcher);
    }
}

void me_dispatcher_fini(me_engine *e, me_dispatcher *dispatcher)
{
    me_attribute_set(e, &dispatcher->probs, NULL);
    me_attribute_set(e, &dispatcher->routing_map, NULL);
    me_attribute_set(e, &dispatcher->row_numbers, NULL);
    me_attribute_set(e, &dispatcher->counts_of_experts, NULL);
    me_clear(e, &dispatcher->chunk_orders[0]);
    me_clear(e, &dispatcher->chunk_orders[1]);
    me_attribute_set(e, &dispatcher->local_map, NULL);
    for (int i = 0; i < ME_DISPATCHER_KEPT; i++) {
        me_attribute_set(e, &dispatcher->kept[i], NULL);
    }
    for (int i = 0; i < ME_DISPATCHER_COUNTS; i++) {
        me_attribute_set(e, &dispatcher->late_counts[i], NULL);
    }
}

void me_dispatcher_launch_host(const me_nn *nn)
{
    static const me_host_work works[] = {
        [ME_DISPATCHER_ALL_GATHER] = ME_HOST_ALL_GATHER_DISPATCHER,
        [ME_DISPATCHER_ALL_TO_ALL] = ME_HOST_ALL_TO_ALL_DISPATCHER,
        [ME_DISPATCHER_FLEX] = ME_HOST_ALL_TO_ALL_DISPATCHER,
    };
    const me_config *c = nn->config;
    me_launch_host(nn->e, works[c->moe.token_dispatcher]);
    if (c->parallel.expert > 1) {
        me_launch_host(nn->e, ME_HOST_EXPERT_RANKS);
    }
}

/** Rows that @p rows are, evenly shared by the experts, once each has a multiple
 *  that quantised products take (get_align_size_for_quantization()). */
static uint64_t padded_rows(const me_config *c, uint64_t rows)
{
    const uint64_t multiple = me_quantization_multiple(c);
    const uint64_t each = (rows + c->moe.num_experts - 1) / c->moe.num_experts;
    return c->moe.router_padding_for_quantization
               ? me_size_mul(c->moe.num_experts,
                             (each + multiple - 1) / multiple * multiple)
               : rows;
}

/** What the router said, as far as the program sees it: how many rows. */
static void count_rows(me_dispatcher *d, uint64_t n_tokens)
{
    const me_config *c = d->nn->config;
    const me_moe_options *m = &c->moe;
    const uint64_t sources =
        (uint64_t)c->parallel.expert * (uint64_t)c->parallel.expert_tensor;
    const uint64_t capacity = me_expert_capacity(c, n_tokens);
    const uint64_t taken = me_size_mul(capacity, m->num_experts);
    me_token_exchange *x = &d->exchange;
    d->n_tokens = n_tokens;
    x->balanced = padded_rows(c, me_size_mul(n_tokens, m->router_topk));
    x->is_fixed = m->has_capacity && m->pad_to_capacity;
    if (m->has_capacity) {
        x->balanced = x->is_fixed ? taken : me_min_u64(x->balanced, taken);
        x->most = me_size_mul(capacity, sources);
    }
    d->n_rows = me_expert_rows(x);
    d->n_sent = me_sent_rows(x);
    me_expert_counts(x, d->counts);
}

/** After a failure, with which the attributes may be missing. */
static me_dispatched nothing(me_engine *e)
{
    return (me_dispatched){me_none(e), me_none(e)};
}

me_dispatched me_dispatch_preprocess(me_dispatcher *d, me_tensor *x,
                                     me_tensor *probs, me_tensor *map)
{
    me_engine *e = d->nn->e;
    if (!me_engine_is_ok(e)) {
        return nothing(e);
    }
    const me_frame frame = me_enter(e);
    const uint64_t h = me_dim(x, -1);
    d->shape = x->shape;
    me_dispatcher_launch_host(d->nn);
    count_rows(d, me_rows(x));
    me_tensor *tokens = me_view(e, x, ME_SHAPE(me_rows(x), h)); // (T, h)
    const me_dispatched rows =
        d->kind->dispatch_preprocess(d, tokens, probs, map);
    me_leave_with(e, frame, 2, (me_tensor *[]){rows.tokens, rows.probs});
    if (rows.probs == probs) {
        me_drop(e, probs); // the caller's name is enough
    }
    return rows;
}

me_dispatched me_token_dispatch(me_dispatcher *d, me_dispatched rows)
{
    me_engine *e = d->nn->e;
    if (!me_engine_is_ok(e)) {
        return nothing(e);
    }
    if (d->kind == &me_dispatcher_all_gather && me_dispatcher_ranks(d) == 1) {
        me_hold(e, rows.tokens); // by another name
        return rows;
    }
    const me_frame frame = me_enter(e);
    const me_dispatched sent = d->kind->token_dispatch(d, rows);
    me_leave_with(e, frame, 2, (me_tensor *[]){sent.tokens, sent.probs});
    return sent;
}

me_dispatched me_dispatch_postprocess(me_dispatcher *d, me_dispatched rows)
{
    if (!me_engine_is_ok(d->nn->e)) {
        return nothing(d->nn->e);
    }
    return d->kind->dispatch_postprocess(d, rows);
}

me_tensor *me_combine_preprocess(me_dispatcher *d, me_tensor *rows)
{
    return d->kind->combine_preprocess == NULL || !me_engine_is_ok(d->nn->e)
               ? rows
               : d->kind->combine_preprocess(d, rows);
}

me_tensor *me_token_combine(me_dispatcher *d, me_tensor *rows)
{
    return d->kind->token_combine == NULL || !me_engine_is_ok(d->nn->e)
               ? rows
               : d->kind->token_combine(d, rows);
}

me_tensor *me_combine_postprocess(me_dispatcher *d, me_tensor *rows)
{
    me_engine *e = d->nn->e;
    if (!me_engine_is_ok(e)) {
        return me_none(e);
    }
    const me_frame frame = me_enter(e);
    me_tensor *sum = d->kind->combine_postprocess == NULL
                         ? rows
                         : d->kind->combine_postprocess(d, rows); // (T, h)
    me_tensor *y = me_view(e, sum, d->shape);                     // (s, b, h)
    if (d->shared_experts != NULL && !d->kind->adds_shared_experts) {
        me_add_in_place(e, y, me_shared_experts_get_output(d->shared_experts));
    }
    return me_leave(e, frame, y);
}
