/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/size.h"
#include "nn/megatron/linear.h"
#include "nn/megatron/moe_utils.h"
#include "nn/megatron/te_permutation.h"
#include "nn/megatron/token_dispatcher.h"
#include "ops/elementwise.h"
#include "ops/index.h"
#include "ops/view.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"

/* Every rank of an expert's group has the tokens of all of them and takes those of
 * its experts; results are summed over the ranks. A = p·u·T are all tokens. */

static const me_group_kind group = ME_GROUP_EXPERT_TENSOR_EXPERT;

static me_dispatched dispatch_preprocess(me_dispatcher *d, me_tensor *tokens,
                                         me_tensor *probs, me_tensor *map)
{
    me_attribute_set(d->nn->e, &d->routing_map, map);
    return (me_dispatched){tokens, probs};
}

/** The gradients of all ranks' rows, summed, as far as they are this one's. */
static void gather_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                            me_tensor **gx)
{
    const me_nn *nn = node->data.context;
    gx[0] = me_reduce_scatter_first(e, nn->comm, group, gy[0]);
}

static const me_op gather_op = {.node =
                                    "_GatherFromSequenceParallelRegionBackward",
                                .backward = gather_backward};

static me_node *record_gather(me_nn *nn, const me_op *op, me_tensor *x)
{
    me_node *node = me_record1(nn->e, op, x);
    if (node != NULL) {
        node->data.context = nn;
    }
    return node;
}

/** @p shape in the buffer that all layers share: a view, so that whoever saves it
 *  keeps nothing; what is written there comes from @p kind of @p x. */
static me_tensor *in_buffer(const me_nn *nn, me_collective kind,
                            const me_tensor *x, me_shape shape)
{
    me_engine *e = nn->e;
    const me_dtype dtype = (me_dtype)x->dtype;
    me_global_buffer(nn, dtype, shape);
    if (!me_engine_is_ok(e)) {
        return me_none(e);
    }
    me_communicate(e, nn->comm,
                   (me_call){group, kind, dtype,
                             me_min_u64(me_numel(x), me_shape_numel(&shape)),
                             -1, false});
    const uint64_t strides[] = {shape.dim[shape.ndim - 1], 1};
    return me_alias(e, *me_engine_global_buffer(e, dtype), shape, strides);
}

static void gather_to_buffer_backward(me_engine *e, me_node *node,
                                      me_tensor *const *gy, me_tensor **gx)
{
    (void)e;
    gx[0] = in_buffer(node->data.context, ME_COLLECTIVE_REDUCE_SCATTER, gy[0],
                      node->data.shape);
}

static const me_op gather_to_buffer_op = {
    .node = "_GatherFromSequenceParallelRegionBackward",
    .backward = gather_to_buffer_backward};

static me_dispatched token_dispatch(me_dispatcher *d, me_dispatched rows)
{
    me_nn *nn = d->nn;
    me_engine *e = nn->e;
    const uint64_t ranks = (uint64_t)me_dispatcher_ranks(d);
    me_tensor *map =
        me_all_gather_first(e, nn->comm, group, d->routing_map); // (A, E)
    me_attribute_set(e, &d->routing_map, map);
    me_drop(e, map);
    me_node *node = record_gather(nn, &gather_op, rows.probs);
    me_tensor *probs =
        me_output(e, node, me_all_gather_first(e, nn->comm, group, rows.probs));
    me_shape shape = rows.tokens->shape;
    shape.dim[0] = me_size_mul(shape.dim[0], ranks);
    node = record_gather(nn, &gather_to_buffer_op, rows.tokens);
    me_tensor *tokens = me_output(
        e, node,
        in_buffer(nn, ME_COLLECTIVE_ALL_GATHER, rows.tokens, shape)); // (A, h)
    return (me_dispatched){tokens, probs};
}

/** `x[:, first:last].contiguous()`: the columns of this rank's experts. */
static me_tensor *own_columns(const me_dispatcher *d, me_tensor *x)
{
    me_engine *e = d->nn->e;
    const uint64_t n = d->n_local;
    const uint64_t first = n * (uint64_t)d->nn->comm->index[ME_GROUP_EXPERT];
    const me_frame frame = me_enter(e);
    me_tensor *columns = me_slice(e, x, -1, first, first + n);
    return me_leave(e, frame, me_contiguous(e, columns));
}

/** `probs.T.contiguous().masked_select(map.T.contiguous())`. */
static me_tensor *select_probs(me_dispatcher *d)
{
    me_engine *e = d->nn->e;
    const me_frame frame = me_enter(e);
    me_tensor *weights = me_contiguous(e, me_transpose(e, d->probs, 0, 1));
    me_tensor *flags = me_contiguous(e, me_transpose(e, d->local_map, 0, 1));
    return me_leave(e, frame, me_masked_select(e, weights, flags, d->n_rows));
}

/** `name = x` of what nobody else names. */
static void keep(me_engine *e, me_tensor **name, me_tensor *x,
                 const me_tensor *given)
{
    me_attribute_set(e, name, x);
    if (x != given) {
        me_drop(e, x);
    }
}

/** The experts of this rank pick their tokens. */
static me_dispatched dispatch_postprocess(me_dispatcher *d, me_dispatched all)
{
    me_engine *e = d->nn->e;
    keep(e, &d->local_map, own_columns(d, d->routing_map), d->routing_map);
    keep(e, &d->probs, own_columns(d, all.probs), all.probs);
    me_drop(e, me_count_flags(e, d->local_map));
    me_launch_host_waits(e);
    const me_permuted p =
        d->nn->config->moe.permute_fusion
            ? me_te_permute(d->nn, all.tokens, d->local_map, NULL, d->n_rows)
            : me_permute_tokens(e, all.tokens, d->local_map, NULL, d->n_rows);
    me_attribute_set(e, &d->row_numbers, p.row_numbers);
    me_drop(e, p.row_numbers);
    me_tensor *probs = select_probs(d); // (R)
    me_attribute_set(e, &d->probs, probs);
    me_attribute_set(e, &d->routing_map, NULL);
    return (me_dispatched){p.tokens, probs};
}

static me_tensor *combine_preprocess(me_dispatcher *d, me_tensor *rows)
{
    const uint64_t ranks = (uint64_t)me_dispatcher_ranks(d);
    if (d->nn->config->moe.permute_fusion) {
        return me_te_unpermute(d->nn, rows, d->row_numbers); // (A, h)
    }
    return me_unpermute(d->nn->e, rows, d->row_numbers,
                        me_size_mul(ranks, d->n_tokens)); // (A, h)
}

static void scatter_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                             me_tensor **gx)
{
    const me_nn *nn = node->data.context;
    gx[0] = me_all_gather_first(e, nn->comm, group, gy[0]);
}

static const me_op scatter_op =
    ME_NODE("_ReduceScatterToSequenceParallelRegionBackward", scatter_backward);

/** Summed in the type of the weights: (T, h). */
static me_tensor *token_combine(me_dispatcher *d, me_tensor *rows)
{
    me_nn *nn = d->nn;
    me_engine *e = nn->e;
    if (me_dispatcher_ranks(d) == 1) {
        return rows;
    }
    const me_frame frame = me_enter(e);
    me_tensor *wide = me_cast(e, rows, (me_dtype)d->probs->dtype);
    me_node *node = me_record1(e, &scatter_op, wide);
    if (node != NULL) {
        node->data.context = nn;
    }
    me_tensor *own =
        me_output(e, node, me_reduce_scatter_first(e, nn->comm, group, wide));
    if (wide != rows) {
        me_drop(e, wide);
    }
    return me_leave(e, frame, me_cast(e, own, (me_dtype)rows->dtype));
}

const me_dispatcher_kind me_dispatcher_all_gather = {
    .dispatch_preprocess = dispatch_preprocess,
    .token_dispatch = token_dispatch,
    .dispatch_postprocess = dispatch_postprocess,
    .combine_preprocess = combine_preprocess,
    .token_combine = token_combine,
    .spans_tensor_ranks = true,
};
