/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/router_parts.h"
#include "ops/elementwise.h"
#include "ops/index.h"
#include "ops/reduce.h"
#include "ops/scores.h"
#include "ops/softmax.h"
#include "ops/sort.h"
#include "ops/view.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"

/** `sigmoid(logits.float())` or `softplus(logits.float()).sqrt()`: (T, E). */
static me_tensor *scores_of(const me_nn *nn, me_tensor *logits)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    me_tensor *wide = me_cast(e, logits, ME_DTYPE_FLOAT32);
    if (nn->config->moe.router_score_function == ME_SCORE_SIGMOID) {
        return me_leave(e, frame, me_sigmoid(e, wide));
    }
    me_tensor *softplus = me_softplus(e, wide);
    if (wide != logits) {
        me_drop(e, wide);
    }
    return me_leave(e, frame, me_sqrt(e, softplus));
}

/** `scores / (scores.sum(dim=-1, keepdim=True) + 1e-20)`. */
static me_tensor *normalised(me_engine *e, me_tensor *scores)
{
    const me_frame frame = me_enter(e);
    me_tensor *sums = me_sum_last(e, scores); // (…, 1)
    me_tensor *divisor = me_add_number(e, sums);
    me_drop(e, sums);
    return me_leave(e, frame, me_divide(e, scores, divisor));
}

/** group_limited_topk(): the best groups by the sums of their best scores, then
 *  the best experts of these. */
static me_tensor *group_limited_topk(const me_nn *nn, me_tensor *scores,
                                     me_tensor **indices_out)
{
    me_engine *e = nn->e;
    const me_moe_options *m = &nn->config->moe;
    const uint64_t tokens = me_dim(scores, 0);
    const uint64_t groups = m->router_num_groups;
    const me_dtype dtype = (me_dtype)scores->dtype;
    const me_frame frame = me_enter(e);
    me_tensor *dropped = NULL;
    me_tensor *grouped =
        me_view(e, scores, ME_SHAPE(tokens, groups, m->num_experts / groups));
    me_tensor *best =
        me_topk(e, grouped, m->router_topk / m->router_group_topk, &dropped);
    me_drop(e, grouped);
    me_drop(e, dropped);
    me_tensor *group_scores = me_sum_away(e, best); // (T, groups)
    me_drop(e, best);
    me_tensor *group_indices = NULL;
    me_drop(e, me_topk(e, group_scores, m->router_group_topk, &group_indices));
    me_tensor *group_mask = me_pointwise(e, "zeros_like", group_scores, dtype);
    me_launch_kernel(e, ME_KERNEL_INDEX, 0, me_bytes(group_mask));
    me_tensor *score_mask = me_empty(e, "reshape", dtype, scores->shape);
    me_tensor *masked = me_masked_fill_outside(e, scores, score_mask);
    me_tensor *values = me_topk(e, masked, m->router_topk, indices_out);
    me_leave_with(e, frame, 2, (me_tensor *[]){values, *indices_out});
    return values;
}

/** _compute_topk(): (T, E) to values and indices (T, K). */
static me_tensor *compute_topk(const me_nn *nn, me_tensor *scores,
                               me_tensor **indices_out)
{
    const me_moe_options *m = &nn->config->moe;
    return m->router_group_topk > 0
               ? group_limited_topk(nn, scores, indices_out)
               : me_topk(nn->e, scores, m->router_topk, indices_out);
}

/** Scores by softmax, of all experts or of those taken: weights (T, K). */
static me_tensor *softmax_probs(const me_nn *nn, me_tensor *logits,
                                me_tensor **indices_out)
{
    me_engine *e = nn->e;
    if (!nn->config->moe.router_pre_softmax) {
        return me_softmax_in_float32(e, compute_topk(nn, logits, indices_out));
    }
    me_tensor *probs =
        compute_topk(nn, me_softmax_in_float32(e, logits), indices_out);
    me_name_last(e, probs); // named behind top_indices
    return probs;
}

/** Scores of each expert by itself, chosen with the experts' bias: (T, K). */
static me_tensor *sigmoid_probs(const me_router *router, me_tensor *logits,
                                me_tensor **indices_out)
{
    me_nn *nn = router->nn;
    me_engine *e = nn->e;
    const bool is_divided = nn->config->moe.router_topk > 1;
    me_tensor *scores = scores_of(nn, logits); // (T, E)
    me_tensor *biased = NULL;
    me_tensor *values = NULL;
    if (router->expert_bias == NULL) {
        scores = me_rebind(e, scores, compute_topk(nn, scores, indices_out));
    } else {
        biased = me_add(e, scores, router->expert_bias);
        values = compute_topk(nn, biased, indices_out);
        scores = me_rebind(e, scores, me_gather(e, scores, *indices_out));
    }
    me_tensor *probs = is_divided ? normalised(e, scores) : me_hold(e, scores);
    if (biased != NULL) {
        me_name_last(e, biased);
        me_name_last(e, values);
    }
    return probs;
}

/** A gradient of the logits, in their type. What comes is copied if it has holes
 *  or is transposed; the flags' gradient, which nobody gives, is made of zeros. */
static void fused_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                           me_tensor **gx)
{
    me_tensor *flags = me_pointwise(e, "zeros", gy[0], ME_DTYPE_BOOL);
    me_tensor *dense =
        me_tensor_is_contiguous(gy[0])
            ? NULL
            : me_pointwise(e, "contiguous", gy[0], (me_dtype)gy[0]->dtype);
    gx[0] = me_pointwise(e, "fused_router_backward", gy[0],
                         (me_dtype)node->data.n[0]);
    me_drop(e, dense);
    me_drop(e, flags);
}

static const me_op fused_topk_op =
    ME_NODE("FusedTopkScoreFunctionBackward", fused_backward);
static const me_op fused_scores_op =
    ME_NODE("FusedComputeScoresForMoEAuxLossBackward", fused_backward);

/** A kernel of Transformer Engine's router: scores of @p dtype, flags, and what
 *  it keeps for its backward; all (T, E). */
static me_tensor *fused_router(me_engine *e, const me_op *op, me_tensor *logits,
                               me_dtype dtype, me_tensor **map_out)
{
    const bool keeps_map = op == &fused_topk_op;
    me_node *node = me_record1(e, op, logits);
    if (node != NULL) {
        node->data.n[0] = logits->dtype;
    }
    me_tensor *scores = me_pointwise(e, op->node, logits, dtype);
    *map_out = me_pointwise(e, op->node, logits, ME_DTYPE_BOOL);
    me_tensor *kept = me_pointwise(e, op->node, logits, ME_DTYPE_FLOAT32);
    me_save(e, node, 0, keeps_map ? *map_out : NULL);
    me_save(e, node, 1, kept);
    me_drop(e, kept);
    return me_output(e, node, scores);
}

/** `1 / n / (sums + eps)`; @p sums is given up. */
static me_tensor *inverse_of(me_engine *e, me_tensor *sums)
{
    me_tensor *shifted = me_pointwise(e, "add", sums, ME_DTYPE_FLOAT32);
    me_drop(e, sums);
    me_tensor *inverse =
        me_pointwise(e, "reciprocal", shifted, ME_DTYPE_FLOAT32);
    me_tensor *result = me_pointwise(e, "mul", inverse, ME_DTYPE_FLOAT32);
    me_drop(e, inverse);
    me_drop(e, shifted);
    return result;
}

/** `mean(abs(before - now))`: a scalar. */
static me_tensor *change_of(me_engine *e, const me_tensor *now)
{
    me_tensor *difference = me_pointwise(e, "sub", now, ME_DTYPE_FLOAT32);
    me_tensor *size = me_pointwise(e, "abs", difference, ME_DTYPE_FLOAT32);
    me_drop(e, difference);
    me_tensor *mean = me_mean(e, size);
    me_drop(e, size);
    return mean;
}

/** sinkhorn() of the logits in float32: (T, E). The logits are given up. What is
 *  live at once does not depend on the rounds. */
static me_tensor *sinkhorn(me_engine *e, me_tensor *logits, int rounds)
{
    const me_dtype dtype = ME_DTYPE_FLOAT32;
    me_tensor *cost = me_pointwise(e, "exp", logits, dtype);
    me_drop(e, logits);
    me_tensor *d0 =
        me_empty(e, "ones", dtype, ME_SHAPE(me_dim(cost, 0))); // (T)
    me_tensor *d1 =
        me_empty(e, "ones", dtype, ME_SHAPE(me_dim(cost, 1))); // (E)
    me_tensor *change = NULL;
    for (int i = 0; i < rounds; i++) {
        me_tensor *product = me_pointwise(e, "mul", cost, dtype);
        me_tensor *sums = me_sum_last_detached(e, product);
        me_drop(e, product);
        d0 = me_rebind(e, d0, inverse_of(e, sums));
        product = me_pointwise(e, "mul", cost, dtype);
        sums = me_sum_rows(e, product);
        me_drop(e, product);
        me_tensor *before = d1;
        d1 = inverse_of(e, sums);
        change = me_rebind(e, change, change_of(e, d1));
        me_drop(e, before);
        // Read by the host.
        me_drop(e, me_pointwise(e, "gt", change, ME_DTYPE_BOOL));
    }
    me_tensor *half = me_pointwise(e, "mul", cost, dtype);
    me_tensor *scores = me_pointwise(e, "mul", half, dtype);
    me_drop(e, half);
    me_drop(e, cost);
    me_drop(e, d0);
    me_drop(e, change);
    me_drop(e, d1);
    return scores;
}

/** sinkhorn_load_balancing(). */
static me_tensor *sinkhorn_load_balancing(const me_nn *nn, me_tensor *logits,
                                          me_tensor **map_out)
{
    me_engine *e = nn->e;
    const uint64_t k = nn->config->moe.router_topk;
    const me_frame frame = me_enter(e);
    const bool before = me_grad_enable(e, false);
    me_tensor *wide = (me_dtype)logits->dtype == ME_DTYPE_FLOAT32
                          ? me_hold(e, logits)
                          : me_pointwise(e, "to", logits, ME_DTYPE_FLOAT32);
    me_tensor *indices = NULL;
    me_tensor *norm_logits = sinkhorn(e, wide, nn->config->moe.sinkhorn_rounds);
    me_tensor *values = me_topk(e, norm_logits, k, &indices);
    me_grad_enable(e, before);
    me_tensor *activated = k == 1 ? me_sigmoid(e, logits)
                                  : me_cast(e, me_softmax_in_float32(e, logits),
                                            (me_dtype)logits->dtype);
    // The activated logits take an argument's name, and go first.
    me_name_last(e, norm_logits);
    me_name_last(e, values);
    me_name_last(e, indices);
    *map_out = me_scatter_flags(e, activated);
    me_tensor *scores = me_mul(e, activated, *map_out);
    me_leave_with(e, frame, 2, (me_tensor *[]){scores, *map_out});
    return scores;
}

/** Weights (T, E) of those chosen, (T, K), and which they are. */
static me_tensor *scattered(me_engine *e, me_tensor *logits, me_tensor *indices,
                            me_tensor *probs, me_tensor **map_out)
{
    me_tensor *weights = me_scatter_into_zeros(e, logits, indices, probs);
    *map_out = me_scatter_flags(e, logits);
    return weights;
}

/** The same where operations are deterministic. */
static me_tensor *put_in_order(me_engine *e, me_tensor *logits,
                               me_tensor *indices, me_tensor *probs,
                               me_tensor **map_out)
{
    const me_dtype dtype = (me_dtype)logits->dtype;
    me_tensor *weights = me_pointwise(e, "zeros_like", logits, dtype);
    me_tensor *rows = me_arange(e, me_dim(logits, 0));
    weights = me_index_put(e, weights, rows, indices, probs);
    me_tensor *map = me_pointwise(e, "zeros_like", logits, dtype);
    me_tensor *ones = me_pointwise(e, "ones_like", probs, dtype);
    me_index_put_pairs(e, me_numel(indices), me_numel(map), true);
    me_drop(e, ones);
    *map_out = me_pointwise(e, "bool", map, ME_DTYPE_BOOL);
    me_drop(e, map);
    return weights;
}

me_tensor *me_router_topk(const me_router *router, me_tensor *logits,
                          me_tensor **map_out)
{
    me_nn *nn = router->nn;
    me_engine *e = nn->e;
    const me_moe_options *m = &nn->config->moe;
    const me_dtype dtype = (me_dtype)logits->dtype;
    if (m->is_sinkhorn) {
        return sinkhorn_load_balancing(nn, logits, map_out);
    }
    if (m->router_fusion) {
        return fused_router(e, &fused_topk_op, logits, dtype, map_out);
    }
    const me_frame frame = me_enter(e);
    me_tensor *indices = NULL;
    me_tensor *probs = m->router_score_function == ME_SCORE_SOFTMAX
                           ? softmax_probs(nn, logits, &indices)
                           : sigmoid_probs(router, logits, &indices);
    if (m->router_topk_scaling_factor != 0) {
        probs = me_rebind(e, probs, me_mul_number(e, probs));
    }
    probs = me_rebind(e, probs, me_cast(e, probs, dtype)); // (T, K)
    me_tensor *weights = me_is_deterministic(e)
                             ? put_in_order(e, logits, indices, probs, map_out)
                             : scattered(e, logits, indices, probs, map_out);
    me_leave_with(e, frame, 2, (me_tensor *[]){weights, *map_out});
    return weights;
}

me_tensor *me_router_loss_scores(const me_router *router, me_tensor *logits,
                                 me_tensor **map_out)
{
    me_nn *nn = router->nn;
    me_engine *e = nn->e;
    const me_moe_options *m = &nn->config->moe;
    if (m->router_fusion) {
        me_tensor *scores = fused_router(e, &fused_scores_op, logits,
                                         ME_DTYPE_FLOAT32, map_out);
        me_name_last(e, scores); // named behind the map
        return scores;
    }
    const me_frame frame = me_enter(e);
    me_tensor *scores = NULL;
    if (m->router_score_function == ME_SCORE_SOFTMAX) {
        scores = me_softmax_in_float32(e, logits);
    } else {
        scores = scores_of(nn, logits);
        scores = me_rebind(e, scores, normalised(e, scores));
    }
    me_tensor *indices = NULL;
    me_topk(e, scores, m->router_topk, &indices);
    me_tensor *map = me_scatter_flags(e, logits);
    me_leave_with(e, frame, 2, (me_tensor *[]){map, scores});
    *map_out = map;
    return scores;
}
