/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/size.h"
#include "nn/megatron/moe_utils.h"
#include "nn/megatron/shared_experts.h"
#include "nn/megatron/te_permutation.h"
#include "nn/megatron/token_dispatcher.h"
#include "ops/elementwise.h"
#include "ops/index.h"
#include "ops/view.h"
#include "parallel/expert_buffers.h"
#include "tensor/autograd.h"

/* Tokens of all ranks of an expert's group exchanged by DeepEP or HybridEP. A
 * token goes once to a rank, however many of its experts are there. DeepEP hands
 * over the N that arrive, of which the rank makes its R rows; HybridEP hands over
 * the rows. */

static const me_group_kind group = ME_GROUP_EXPERT_TENSOR_EXPERT;

/** What a dispatcher of this kind keeps beside the others' attributes. */
enum {
    KEPT_INDICES,       /* experts of this rank's tokens, (T, K) */
    KEPT_RECEIVED,      /* of those that arrived, (N, K) */
    KEPT_RECEIVED_PROBS /* their weights, of this rank's experts */
};

static uint64_t ranks_of(const me_dispatcher *d)
{
    return (uint64_t)me_dispatcher_ranks(d);
}

static uint64_t nodes_of(const me_dispatcher *d)
{
    return me_max_u64(ranks_of(d) / ME_NVLINK_RANKS, 1);
}

/** Experts that a token is sent to: those of each tensor rank count. */
static uint64_t topk_of(const me_dispatcher *d)
{
    const me_config *c = d->nn->config;
    return c->moe.router_topk * (uint64_t)c->parallel.expert_tensor;
}

/** How likely it is that a token has one of @p n neighbouring experts, if all are
 *  alike, or all of the groups that it may go to. */
static double reach(const me_config *c, double n)
{
    const me_moe_options *m = &c->moe;
    double experts = (double)m->num_experts;
    double share = 1.0;
    if (m->router_group_topk > 0 &&
        n * (double)m->router_num_groups <= experts) {
        share = (double)m->router_group_topk / (double)m->router_num_groups;
        experts *= share;
    }
    double none = 1.0;
    for (uint64_t i = 0; i < m->router_topk && experts - (double)i > 0; i++) {
        const double left = experts - n - (double)i;
        none *= left > 0 ? left / (experts - (double)i) : 0.0;
    }
    return share * (1.0 - none);
}

/** Tokens of all ranks that go to one of a rank's experts if all fare alike. */
static double equal_share(const me_dispatcher *d)
{
    return (double)me_size_mul(ranks_of(d), d->n_tokens) *
           reach(d->nn->config, (double)d->n_local);
}

/** N: those that come here, as many as belong to the rows that come. */
static uint64_t tokens_received(const me_dispatcher *d)
{
    const double rows = (double)me_size_mul(d->n_tokens, topk_of(d));
    const uint64_t tokens =
        (uint64_t)(equal_share(d) * (double)d->n_rows / rows);
    return me_min_u64(me_min_u64(tokens, d->n_rows),
                      me_size_mul(ranks_of(d), d->n_tokens));
}

static me_tensor *bytes_of(me_engine *e, const char *op, uint64_t bytes)
{
    return me_empty(e, op, ME_DTYPE_UINT8, ME_SHAPE(bytes));
}

/** What the library hands out: DeepEP allocates on its own stream, for both. */
static me_tensor *result(const me_dispatcher *d, const char *op, me_dtype dtype,
                         me_shape shape)
{
    me_engine *e = d->nn->e;
    const bool is_deepep = d->kind == &me_dispatcher_deepep;
    const me_category category = me_category_set(e, ME_CATEGORY_COMMUNICATION);
    const uint8_t stream = me_context_now(e)->stream;
    if (is_deepep) {
        me_stream_set(e, ME_STREAM_DISPATCH);
    }
    me_tensor *y = me_empty(e, op, dtype, shape);
    me_stream_set(e, stream);
    me_category_set(e, category);
    return y;
}

/** Rows of @p x by another number. */
static me_shape with_rows(const me_tensor *x, uint64_t rows)
{
    me_shape shape = x->shape;
    shape.dim[0] = rows;
    return shape;
}

/** An exchange of tokens like @p x, to the timing as large as an equal share. */
static void exchange(const me_dispatcher *d, const me_tensor *x)
{
    const uint64_t tokens = (uint64_t)equal_share(d) / ranks_of(d);
    me_communicate(d->nn->e, d->nn->comm,
                   (me_call){group, ME_COLLECTIVE_ALL_TO_ALL,
                             (me_dtype)x->dtype,
                             me_size_mul(tokens, me_dim(x, 1)), -1, false});
}

/** The gradients of tokens and of their weights go back and are summed. */
static void dispatch_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                              me_tensor **gx)
{
    (void)e;
    const me_dispatcher *d = node->data.context;
    exchange(d, gy[0]);
    gx[0] = result(d, "combine", (me_dtype)gy[0]->dtype, node->data.shape);
    gx[1] = result(d, "combine", ME_DTYPE_FLOAT32,
                   ME_SHAPE(d->n_tokens, node->data.n[0]));
}

static const me_op dispatch_op =
    ME_NODE("FusedDispatchBackward", dispatch_backward);

/** And the results' gradient out again, to as many rows as came. */
static void combine_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                             me_tensor **gx)
{
    (void)e;
    const me_dispatcher *d = node->data.context;
    gx[0] = result(d, "dispatch", (me_dtype)gy[0]->dtype, node->data.shape);
    exchange(d, gx[0]);
}

static const me_op combine_op =
    ME_NODE("FusedCombineBackward", combine_backward);

static me_tensor *token_combine(me_dispatcher *d, me_tensor *rows)
{
    me_engine *e = d->nn->e;
    me_node *node = me_record1(e, &combine_op, rows);
    if (node != NULL) {
        node->data.context = d;
    }
    exchange(d, rows);
    me_tensor *y = result(d, "combine", (me_dtype)rows->dtype,
                          with_rows(rows, d->n_tokens)); // (T, h)
    me_attribute_set(e, &d->kept[KEPT_RECEIVED], NULL);
    me_attribute_set(e, &d->kept[KEPT_RECEIVED_PROBS], NULL);
    me_output(e, node, y);
    if (d->shared_experts != NULL) {
        me_shared_experts_fc2(d->shared_experts, y);
    }
    return y;
}

/** token_dispatch(): of this rank's tokens, beside those that arrive. */
static void run_shared_experts(const me_dispatcher *d, me_tensor *tokens,
                               const me_tensor *arrived)
{
    if (d->shared_experts != NULL) {
        me_shared_experts_pre_forward_comm(d->shared_experts, tokens);
        me_shared_experts_fc1_and_act(d->shared_experts, arrived);
    }
}

/** combine_postprocess(): tokens are flat still. */
static me_tensor *add_shared_experts(me_dispatcher *d, me_tensor *tokens)
{
    if (d->shared_experts != NULL) {
        me_add_in_place(d->nn->e, tokens,
                        me_shared_experts_get_output(d->shared_experts));
    }
    return tokens;
}

/** Weights in float32, which both libraries want, under the name that they have. */
static me_tensor *wide_probs(me_dispatcher *d)
{
    me_engine *e = d->nn->e;
    me_tensor *wide = me_cast(e, d->probs, ME_DTYPE_FLOAT32);
    if (wide != d->probs) {
        me_attribute_set(e, &d->probs, wide);
        me_drop(e, wide);
    }
    return d->probs;
}

/** setup_metadata(): the experts of each token as numbers. */
static me_dispatched deepep_preprocess(me_dispatcher *d, me_tensor *tokens,
                                       me_tensor *probs, me_tensor *map)
{
    (void)map;
    me_engine *e = d->nn->e;
    me_tensor *indices = NULL;
    me_tensor *weights = me_topk(e, probs, topk_of(d), &indices); // (T, K)
    me_attribute_set(e, &d->probs, weights);
    me_attribute_set(e, &d->kept[KEPT_INDICES], indices);
    me_drop(e, indices);
    return (me_dispatched){tokens, weights};
}

/** What the receiving side keeps of an exchange for the way back, bytes: within
 *  a node, or over several. */
static uint64_t handle_bytes(const me_dispatcher *d, uint64_t received)
{
    const uint64_t ranks = ranks_of(d);
    const uint64_t nodes = nodes_of(d);
    const uint64_t channels = ME_DEEPEP_SMS / 2;
    if (nodes == 1) {
        return 4 * (ranks * ranks + 2 * ranks * channels + received +
                    d->n_tokens * ranks);
    }
    const double all = (double)me_size_mul(nodes, d->n_tokens);
    const uint64_t forwarded =
        (uint64_t)(all *
                   reach(d->nn->config, (double)d->n_local * ME_NVLINK_RANKS));
    return 4 * (2 * (nodes + ranks) * channels + nodes + ranks +
                d->n_tokens * nodes) +
           8 * received + 4ULL * ME_NVLINK_RANKS * forwarded;
}

static me_dispatched deepep_dispatch(me_dispatcher *d, me_dispatched rows)
{
    me_engine *e = d->nn->e;
    const uint64_t k = topk_of(d);
    const uint64_t n = tokens_received(d);
    me_attribute_set(e, &d->probs, rows.probs);
    me_tensor *probs = wide_probs(d);
    const uint64_t experts = ranks_of(d) * d->n_local;
    me_tensor *counts =
        bytes_of(e, "layout", 4 * (ranks_of(d) + experts + nodes_of(d)));
    me_tensor *is_sent =
        bytes_of(e, "layout", me_size_mul(d->n_tokens, ranks_of(d)));
    me_node *node = me_record2(e, &dispatch_op, rows.tokens, probs);
    if (node != NULL) {
        node->data.context = d;
        node->data.n[0] = k;
    }
    me_tensor *tokens = result(d, "dispatch", (me_dtype)rows.tokens->dtype,
                               with_rows(rows.tokens, n)); // (N, h)
    me_tensor *handle =
        result(d, "dispatch", ME_DTYPE_UINT8, ME_SHAPE(handle_bytes(d, n)));
    me_tensor *indices = result(d, "dispatch", ME_DTYPE_INT64, ME_SHAPE(n, k));
    me_tensor *weights =
        result(d, "dispatch", ME_DTYPE_FLOAT32, ME_SHAPE(n, k));
    exchange(d, tokens);
    me_save(e, node, 0, is_sent);
    me_save(e, node, 1, handle);
    me_drop(e, handle);
    me_drop(e, is_sent);
    me_drop(e, counts);
    me_attribute_set(e, &d->kept[KEPT_RECEIVED], indices);
    me_drop(e, indices);
    me_output(e, node, tokens);
    me_output(e, node, weights);
    me_attribute_set(e, &d->kept[KEPT_RECEIVED_PROBS], weights);
    run_shared_experts(d, rows.tokens, tokens);
    return (me_dispatched){tokens, weights};
}

/** Gradients of the weights where they were put, then where they came from. */
static void multihot_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                              me_tensor **gx)
{
    me_tensor *picked = me_empty(e, "IndexPutBackward0", ME_DTYPE_FLOAT32,
                                 ME_SHAPE(node->data.n[0]));
    gx[0] =
        me_empty(e, "IndexBackward0", (me_dtype)gy[0]->dtype, node->data.shape);
    me_drop(e, picked);
}

static const me_op multihot_op =
    ME_NODE("IndexPutBackward0", multihot_backward);

/** _indices_to_multihot(): weights (N, K) to (N, e), and flags. */
static me_tensor *multihot(me_dispatcher *d, me_tensor *probs,
                           me_tensor **map_out)
{
    me_engine *e = d->nn->e;
    const uint64_t n = me_dim(probs, 0);
    const me_shape shape = ME_SHAPE(n, d->n_local);
    const me_frame frame = me_enter(e);
    me_node *node = me_record1(e, &multihot_op, probs);
    if (node != NULL) {
        node->data.n[0] = d->n_rows;
    }
    me_tensor *flags = me_empty(e, "zeros", ME_DTYPE_INT64, shape);
    me_tensor *weights = me_empty(e, "zeros", ME_DTYPE_FLOAT32, shape);
    me_tensor *mask = me_pointwise(e, "ne", probs, ME_DTYPE_BOOL);
    me_tensor *valid =
        me_empty(e, "index", ME_DTYPE_INT64, ME_SHAPE(d->n_rows));
    me_drop(e, me_empty(e, "arange", ME_DTYPE_INT64, ME_SHAPE(n)));
    me_tensor *rows =
        me_empty(e, "repeat_interleave", ME_DTYPE_INT64, ME_SHAPE(d->n_rows));
    me_drop(e, me_empty(e, "index", ME_DTYPE_FLOAT32, ME_SHAPE(d->n_rows)));
    *map_out = me_pointwise(e, "bool", flags, ME_DTYPE_BOOL);
    me_save(e, node, 0, mask);
    me_save(e, node, 1, rows);
    me_save(e, node, 2, valid);
    me_output(e, node, weights);
    me_leave_with(e, frame, 2, (me_tensor *[]){weights, *map_out});
    return weights;
}

static me_dispatched deepep_postprocess(me_dispatcher *d, me_dispatched rows)
{
    me_engine *e = d->nn->e;
    const me_frame frame = me_enter(e);
    me_tensor *map = NULL;
    me_tensor *probs = multihot(d, rows.probs, &map);
    me_attribute_set(e, &d->routing_map, map);
    me_drop(e, map);
    me_attribute_set(e, &d->kept[KEPT_RECEIVED_PROBS], probs);
    const me_permuted p =
        d->nn->config->moe.permute_fusion
            ? me_te_permute(d->nn, rows.tokens, d->routing_map, probs,
                            d->n_rows)
            : me_permute_tokens(e, rows.tokens, d->routing_map, probs,
                                d->n_rows);
    me_attribute_set(e, &d->row_numbers, p.row_numbers);
    me_leave_with(e, frame, 2, (me_tensor *[]){p.tokens, p.probs});
    return (me_dispatched){p.tokens, p.probs}; // (R, h), (R)
}

static me_tensor *deepep_restore(me_dispatcher *d, me_tensor *rows)
{
    if (d->nn->config->moe.permute_fusion) {
        return me_te_unpermute(d->nn, rows, d->row_numbers); // (N, h)
    }
    return me_unpermute(d->nn->e, rows, d->row_numbers,
                        tokens_received(d)); // (N, h)
}

const me_dispatcher_kind me_dispatcher_deepep = {
    .dispatch_preprocess = deepep_preprocess,
    .token_dispatch = deepep_dispatch,
    .dispatch_postprocess = deepep_postprocess,
    .combine_preprocess = deepep_restore,
    .token_combine = token_combine,
    .combine_postprocess = add_shared_experts,
    .adds_shared_experts = true,
    .spans_tensor_ranks = true,
};

static me_dispatched hybridep_preprocess(me_dispatcher *d, me_tensor *tokens,
                                         me_tensor *probs, me_tensor *map)
{
    me_attribute_set(d->nn->e, &d->routing_map, map);
    me_attribute_set(d->nn->e, &d->probs, probs);
    return (me_dispatched){tokens, probs};
}

static me_dispatched hybridep_dispatch(me_dispatcher *d, me_dispatched rows)
{
    me_engine *e = d->nn->e;
    const uint64_t all = me_size_mul(ranks_of(d), d->n_tokens);
    const uint64_t experts = ranks_of(d) * d->n_local;
    me_attribute_set(e, &d->probs, rows.probs);
    me_tensor *probs = wide_probs(d);
    me_node *node = me_record2(e, &dispatch_op, rows.tokens, probs);
    if (node != NULL) {
        node->data.context = d;
        node->data.n[0] = experts;
    }
    me_tensor *maps = bytes_of(e, "all_gather", me_size_mul(all, experts));
    me_tensor *handle = bytes_of(e, "metadata",
                                 4 * all + 5 * me_size_mul(all, d->n_local) +
                                     2 * d->n_tokens * nodes_of(d));
    me_drop(e, maps);
    me_tensor *tokens = result(d, "dispatch", (me_dtype)rows.tokens->dtype,
                               with_rows(rows.tokens, d->n_rows)); // (R, h)
    me_tensor *weights =
        result(d, "dispatch", ME_DTYPE_FLOAT32, ME_SHAPE(d->n_rows));
    exchange(d, tokens);
    me_save(e, node, 0, handle);
    me_drop(e, handle);
    me_output(e, node, tokens);
    me_output(e, node, weights);
    me_attribute_set(e, &d->kept[KEPT_RECEIVED_PROBS], weights);
    run_shared_experts(d, rows.tokens, tokens);
    return (me_dispatched){tokens, weights};
}

static me_dispatched hybridep_postprocess(me_dispatcher *d, me_dispatched rows)
{
    (void)d;
    return rows; // sorted as they came
}

const me_dispatcher_kind me_dispatcher_hybridep = {
    .dispatch_preprocess = hybridep_preprocess,
    .token_dispatch = hybridep_dispatch,
    .dispatch_postprocess = hybridep_postprocess,
    .token_combine = token_combine,
    .combine_postprocess = add_shared_experts,
    .adds_shared_experts = true,
    .spans_tensor_ranks = true,
};
