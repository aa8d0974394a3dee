/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/all_to_all.h"

#include "base/size.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"

#include <string.h>

/** Of the depths of a layer of multi-token prediction that runs at all of them. */
static int32_t layer_of(const me_token_exchange *x)
{
    return x->layer + me_pass_get(x->nn->e);
}

static uint32_t local_experts(const me_token_exchange *x)
{
    const me_config *c = x->nn->config;
    return (uint32_t)(c->moe.num_experts / (uint64_t)c->parallel.expert);
}

/** This dispatch, of member @p member of the expert group. */
static me_routing_place place(const me_token_exchange *x, int32_t member)
{
    const me_communicators *comm = x->nn->comm;
    const int32_t own = comm->index[ME_GROUP_EXPERT];
    return (me_routing_place){
        .rank =
            comm->index[ME_GROUP_WORLD] + (member - own) * comm->expert_stride,
        .member = member,
        .iteration = me_iteration_get(x->nn->e),
        .layer = layer_of(x),
        .microbatch = me_microbatch_get(x->nn->e),
    };
}

/** Rows of each expert of member @p member of the expert group. */
static void count_rows(const me_token_exchange *x, int32_t member,
                       uint64_t *counts_out)
{
    const me_communicators *comm = x->nn->comm;
    const me_routing_place at = place(x, member);
    static const me_routing uniform = {.imbalance = 1.0};
    const uint64_t parts = (uint64_t)comm->size[ME_GROUP_EXPERT_TENSOR];
    const uint32_t n = local_experts(x);
    me_routing_counts(x->is_fixed ? &uniform : x->nn->routing, &at,
                      me_size_mul(x->balanced, parts), n, counts_out);
    for (uint32_t i = 0; i < n && x->most > 0; i++) {
        counts_out[i] = me_min_u64(counts_out[i], x->most);
    }
}

void me_expert_counts(const me_token_exchange *exchange, uint64_t *counts_out)
{
    count_rows(exchange, exchange->nn->comm->index[ME_GROUP_EXPERT],
               counts_out);
}

static uint64_t sum_rows(const me_token_exchange *x, int32_t member)
{
    uint64_t counts[ME_MAX_LOCAL_EXPERTS];
    uint64_t sum = 0;
    count_rows(x, member, counts);
    for (uint32_t i = 0; i < local_experts(x); i++) {
        sum = me_size_add(sum, counts[i]);
    }
    return sum;
}

/** Where rows of this dispatch are kept; NULL: nowhere. */
static uint64_t *kept_rows(const me_token_exchange *x)
{
    const me_nn *nn = x->nn;
    const size_t members = (size_t)nn->comm->size[ME_GROUP_EXPERT];
    me_dispatch_rows *kept = nn->moe == NULL ? NULL : &nn->moe->dispatch;
    if (kept == NULL || x->is_fixed || me_routing_is_uniform(nn->routing)) {
        return NULL;
    }
    const me_dispatch_rows now = {
        .iteration = me_iteration_get(nn->e),
        .layer = layer_of(x),
        .microbatch = me_microbatch_get(nn->e),
        .balanced = x->balanced,
        .most = x->most,
        .rows = kept->rows == NULL
                    ? me_engine_alloc(nn->e, members, sizeof *kept->rows)
                    : kept->rows,
        .sent = kept->sent,
        .is_shared = kept->is_shared,
    };
    const bool is_new = kept->rows == NULL || kept->layer != now.layer ||
                        kept->microbatch != now.microbatch ||
                        kept->iteration != now.iteration ||
                        kept->balanced != now.balanced ||
                        kept->most != now.most;
    if (is_new && now.rows != NULL) {
        memset(now.rows, 0xff, members * sizeof *now.rows);
    }
    *kept = now;
    kept->is_shared = now.is_shared && !is_new;
    return now.rows;
}

/** R of member @p member of the expert group, which is asked for of all members
 *  in every exchange. */
static uint64_t rows_of(const me_token_exchange *x, int32_t member)
{
    uint64_t *kept = kept_rows(x);
    if (kept == NULL) {
        return sum_rows(x, member);
    }
    if (kept[member] == UINT64_MAX) {
        kept[member] = sum_rows(x, member);
    }
    return kept[member];
}

/** r of it and a tensor rank. */
static uint64_t rows_arriving(const me_token_exchange *x, int32_t member,
                              int32_t tensor_rank)
{
    return me_routing_share(rows_of(x, member),
                            (uint64_t)x->nn->comm->size[ME_GROUP_EXPERT_TENSOR],
                            (uint64_t)tensor_rank);
}

uint64_t me_expert_rows(const me_token_exchange *exchange)
{
    return rows_of(exchange, exchange->nn->comm->index[ME_GROUP_EXPERT]);
}

uint64_t me_sent_rows(const me_token_exchange *exchange)
{
    const me_communicators *comm = exchange->nn->comm;
    const me_routing *routing = exchange->nn->routing;
    const uint64_t sources =
        (uint64_t)comm->size[ME_GROUP_EXPERT_TENSOR_EXPERT];
    const me_routing_place at = place(exchange, comm->index[ME_GROUP_EXPERT]);
    uint64_t sum = 0;
    if (exchange->is_fixed || me_routing_sent(routing, &at, &sum)) {
        return exchange->is_fixed ? exchange->balanced : sum;
    }
    if (sources == 1) {
        return me_expert_rows(exchange);
    }
    if (exchange->most == 0 || routing->is_alone ||
        me_routing_is_uniform(routing)) {
        return exchange->balanced;
    }
    for (int32_t i = 0; i < comm->size[ME_GROUP_EXPERT]; i++) {
        sum = me_size_add(sum, rows_of(exchange, i));
    }
    return sum / sources;
}

uint64_t me_arriving_rows(const me_token_exchange *exchange,
                          int32_t tensor_rank)
{
    return rows_arriving(exchange, exchange->nn->comm->index[ME_GROUP_EXPERT],
                         tensor_rank);
}

/** Rows to each member of the group, and behind them from each: all have the same
 *  share in what one gets. NULL without memory. */
static const uint64_t *share_rows(const me_token_exchange *x)
{
    const me_communicators *comm = x->nn->comm;
    const int32_t own = comm->index[ME_GROUP_EXPERT];
    const int32_t members = comm->size[ME_GROUP_EXPERT];
    const int32_t tensor_rank = comm->index[ME_GROUP_EXPERT_TENSOR];
    const uint64_t here = rows_arriving(x, own, tensor_rank);
    me_dispatch_rows *kept = &x->nn->moe->dispatch;
    if (kept->sent == NULL) {
        kept->sent =
            me_engine_alloc(x->nn->e, 2 * (size_t)members, sizeof *kept->sent);
    }
    if (kept->sent == NULL || kept->is_shared) {
        return kept->sent;
    }
    for (int32_t i = 0; i < members; i++) {
        kept->sent[i] = me_routing_share(rows_arriving(x, i, tensor_rank),
                                         (uint64_t)members, (uint64_t)own);
        kept->sent[members + i] =
            me_routing_share(here, (uint64_t)members, (uint64_t)i);
    }
    kept->is_shared = true;
    return kept->sent;
}

/** Sends and receives of one exchange, all at once; none of nothing. */
static void exchange_rows(const me_token_exchange *x, me_dtype dtype,
                          uint64_t width, bool is_back)
{
    const me_communicators *comm = x->nn->comm;
    const uint64_t *there = share_rows(x);
    if (there == NULL) {
        return;
    }
    const uint64_t *here = there + comm->size[ME_GROUP_EXPERT];
    me_communicate_exchange(
        x->nn->e, comm,
        &(me_uneven_exchange){.group = ME_GROUP_EXPERT,
                              .dtype = dtype,
                              .width = width,
                              .sent = is_back ? here : there,
                              .received = is_back ? there : here});
}

/** A communication buffer like @p x with @p rows rows. */
static me_tensor *buffer(me_engine *e, const char *op, const me_tensor *x,
                         uint64_t rows)
{
    me_shape shape = x->shape;
    shape.dim[0] = rows;
    const me_category category = me_category_set(e, ME_CATEGORY_COMMUNICATION);
    me_tensor *y = me_empty(e, op, (me_dtype)x->dtype, shape);
    me_category_set(e, category);
    return y;
}

/** Elements of a row, even of none. */
static uint64_t width_of(const me_tensor *x)
{
    uint64_t width = 1;
    for (int32_t i = 1; i < x->shape.ndim; i++) {
        width = me_size_mul(width, x->shape.dim[i]);
    }
    return width;
}

/** (rows, …) from all ranks; all alike where every rank gets the same. */
static me_tensor *exchange_data(const me_token_exchange *exchange,
                                const me_tensor *x, bool is_back, uint64_t rows)
{
    me_engine *e = exchange->nn->e;
    const me_communicators *comm = exchange->nn->comm;
    me_tensor *y = buffer(e, "all_to_all", x, rows);
    const uint64_t width = width_of(x);
    if (!exchange->is_fixed && !me_routing_is_uniform(exchange->nn->routing)) {
        exchange_rows(exchange, (me_dtype)x->dtype, width, is_back);
        return y;
    }
    const uint64_t most = me_size_mul(me_max_u64(rows, me_dim(x, 0)), width);
    me_communicate(
        e, comm,
        (me_call){ME_GROUP_EXPERT, ME_COLLECTIVE_ALL_TO_ALL, (me_dtype)x->dtype,
                  most / (uint64_t)comm->size[ME_GROUP_EXPERT], -1, false});
    return y;
}

/** The gradients take the way back. */
static void all_to_all_backward(me_engine *e, me_node *node,
                                me_tensor *const *gy, me_tensor **gx)
{
    (void)e;
    gx[0] = exchange_data(node->data.context, gy[0], !node->data.flag,
                          node->data.n[0]);
}

static const me_op all_to_all_op =
    ME_NODE("_AllToAllBackward", all_to_all_backward);

/** Of one rank: the function gives back what it is given, there and back. */
static void alone_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                           me_tensor **gx)
{
    (void)node;
    gx[0] = me_alias(e, gy[0], gy[0]->shape, gy[0]->strides);
}

static const me_op all_to_all_alone_op =
    ME_NODE("_AllToAllBackward", alone_backward);

me_tensor *me_all_to_all(me_tensor *x, const me_token_exchange *exchange,
                         bool is_back, uint64_t rows)
{
    me_engine *e = exchange->nn->e;
    if (!me_engine_is_ok(e)) {
        return me_none(e);
    }
    const bool is_alone = exchange->nn->config->parallel.expert == 1;
    me_node *node =
        me_record1(e, is_alone ? &all_to_all_alone_op : &all_to_all_op, x);
    if (is_alone) {
        return me_output(e, node, me_alias(e, x, x->shape, x->strides));
    }
    if (node != NULL) {
        node->data.context = exchange;
        node->data.flag = is_back;
        node->data.n[0] = me_dim(x, 0);
    }
    return me_output(e, node, exchange_data(exchange, x, is_back, rows));
}

/** Do all tensor ranks get as many rows? With one expert rank they always do. */
static bool parts_are_equal(const me_token_exchange *exchange)
{
    const int32_t ranks = exchange->nn->comm->size[ME_GROUP_EXPERT_TENSOR];
    for (int32_t i = 1; i < ranks; i++) {
        if (me_arriving_rows(exchange, i) != me_arriving_rows(exchange, 0)) {
            return false;
        }
    }
    return true;
}

/** What ProcessGroupNCCL makes of a gather or reduce-scatter of a list of parts
 *  that are not equal: one call for each tensor rank. */
static void call_for_each(const me_token_exchange *exchange, me_collective kind,
                          const me_tensor *x)
{
    const me_communicators *comm = exchange->nn->comm;
    for (int32_t i = 0; i < comm->size[ME_GROUP_EXPERT_TENSOR]; i++) {
        me_communicate(
            exchange->nn->e, comm,
            (me_call){ME_GROUP_EXPERT_TENSOR, kind, (me_dtype)x->dtype,
                      me_size_mul(me_arriving_rows(exchange, i), width_of(x)),
                      i, false});
    }
}

/** One call for all tensor ranks, whose parts are equal. */
static void call_once(const me_token_exchange *exchange, me_collective kind,
                      const me_tensor *x)
{
    const me_communicators *comm = exchange->nn->comm;
    const uint64_t ranks = (uint64_t)comm->size[ME_GROUP_EXPERT_TENSOR];
    const uint64_t numel =
        me_size_mul(me_expert_rows(exchange), width_of(x)) / ranks;
    me_communicate(exchange->nn->e, comm,
                   (me_call){ME_GROUP_EXPERT_TENSOR, kind, (me_dtype)x->dtype,
                             numel, -1, false});
}

/** And of a list of equal ones: on a temporary that has them all beside each other
 *  (newLikeFlat()), which each part is copied to or from. */
static void call_flattened(const me_token_exchange *exchange,
                           me_collective kind, const char *op,
                           const me_tensor *x)
{
    me_engine *e = exchange->nn->e;
    const int32_t ranks = exchange->nn->comm->size[ME_GROUP_EXPERT_TENSOR];
    me_tensor *flat = buffer(e, op, x, me_expert_rows(exchange));
    for (int32_t i = 0; i < ranks; i++) {
        me_launch_kernel(e, ME_KERNEL_COPY, 0,
                         2 * (me_bytes(flat) / (uint64_t)ranks));
    }
    call_once(exchange, kind, x);
    me_drop(e, flat);
}

static me_tensor *gather(const me_token_exchange *exchange, const me_tensor *x)
{
    me_tensor *y =
        buffer(exchange->nn->e, "all_gather", x, me_expert_rows(exchange));
    if (exchange->is_fixed) { // nobody counted, so there is no list
        call_once(exchange, ME_COLLECTIVE_ALL_GATHER, x);
    } else if (parts_are_equal(exchange)) {
        call_flattened(exchange, ME_COLLECTIVE_ALL_GATHER, "all_gather", x);
    } else {
        call_for_each(exchange, ME_COLLECTIVE_BROADCAST, x);
    }
    return y;
}

static me_tensor *reduce_scatter(const me_token_exchange *exchange,
                                 const me_tensor *x)
{
    const int32_t own = exchange->nn->comm->index[ME_GROUP_EXPERT_TENSOR];
    me_tensor *y = buffer(exchange->nn->e, "reduce_scatter", x,
                          me_arriving_rows(exchange, own));
    if (exchange->is_fixed) {
        call_once(exchange, ME_COLLECTIVE_REDUCE_SCATTER, x);
    } else if (parts_are_equal(exchange)) {
        call_flattened(exchange, ME_COLLECTIVE_REDUCE_SCATTER, "reduce_scatter",
                       x);
    } else {
        call_for_each(exchange, ME_COLLECTIVE_REDUCE, x);
    }
    return y;
}

static void gather_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                            me_tensor **gx)
{
    (void)e;
    gx[0] = reduce_scatter(node->data.context, gy[0]);
}

static void reduce_scatter_backward(me_engine *e, me_node *node,
                                    me_tensor *const *gy, me_tensor **gx)
{
    (void)e;
    gx[0] = gather(node->data.context, gy[0]);
}

static const me_op gather_op = {.node =
                                    "_GatherFromSequenceParallelRegionBackward",
                                .backward = gather_backward};
static const me_op reduce_scatter_op = ME_NODE(
    "_ReduceScatterToSequenceParallelRegionBackward", reduce_scatter_backward);

me_tensor *me_gather_expert_rows(me_tensor *x,
                                 const me_token_exchange *exchange)
{
    me_engine *e = exchange->nn->e;
    me_node *node = me_record1(e, &gather_op, x);
    if (node != NULL) {
        node->data.context = exchange;
    }
    return me_output(e, node, gather(exchange, x));
}

me_tensor *me_reduce_scatter_expert_rows(me_tensor *x,
                                         const me_token_exchange *exchange)
{
    me_engine *e = exchange->nn->e;
    me_node *node = me_record1(e, &reduce_scatter_op, x);
    if (node != NULL) {
        node->data.context = exchange;
    }
    return me_output(e, node, reduce_scatter(exchange, x));
}
