/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/router_parts.h"
#include "ops/elementwise.h"
#include "ops/index.h"
#include "ops/reduce.h"
#include "ops/scores.h"
#include "ops/view.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"

/** What one loss is made of. */
typedef struct loss_kind {
    int index;           /**< in the log */
    me_group_kind group; /**< whose tokens count */
    bool is_by_sequence; /**< a column for each expert and sequence */
    bool is_averaged;    /**< over the micro-batches of the step so far */
} loss_kind;

/** In the order in which a router makes them. */
static const loss_kind kinds[] = {
    {ME_LOAD_BALANCING_AUX_LOSS, ME_GROUP_TENSOR_CONTEXT, false, false},
    {ME_LOAD_BALANCING_SEQ_AUX_LOSS, ME_GROUP_TENSOR_CONTEXT, true, false},
    {ME_LOAD_BALANCING_GLOBAL_AUX_LOSS, ME_GROUP_TENSOR_DATA_CONTEXT, false,
     true},
};

enum {
    N_KINDS = sizeof kinds / sizeof kinds[0]
};

bool me_router_has_aux_loss(const me_config *config)
{
    bool has_one = false;
    for (int i = 0; i < N_KINDS; i++) {
        has_one = has_one || config->moe.has_loss[kinds[i].index];
    }
    return has_one;
}

enum {
    FUSED_SAVED_CONSTANTS,
    FUSED_SAVED_COUNTS
};

static void fused_loss_backward(me_engine *e, me_node *node,
                                me_tensor *const *gy, me_tensor **gx)
{
    gx[0] = me_empty(e, "fused_moe_aux_loss_bwd", (me_dtype)gy[0]->dtype,
                     node->data.shape);
}

static const me_op fused_loss_op =
    ME_NODE("FusedAuxLossBackward", fused_loss_backward);

/** switch_load_balancing_loss_func(): a scalar. */
static me_tensor *load_balancing_loss(const me_nn *nn, me_tensor *scores,
                                      me_tensor *tokens_per_expert)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    if (nn->config->moe.router_fusion) {
        me_node *node = me_record1(e, &fused_loss_op, scores);
        me_tensor *loss =
            me_empty(e, "fused_moe_aux_loss", ME_DTYPE_FLOAT32, ME_SCALAR);
        me_tensor *constants =
            me_empty(e, "fused_moe_aux_loss", ME_DTYPE_FLOAT32, ME_SHAPE(2));
        me_save(e, node, FUSED_SAVED_CONSTANTS, constants);
        me_save(e, node, FUSED_SAVED_COUNTS, tokens_per_expert);
        me_drop(e, constants);
        return me_leave(e, frame, me_output(e, node, loss));
    }
    me_tensor *probs_per_expert = me_sum_rows(e, scores); // (E)
    me_tensor *product = me_mul(e, probs_per_expert, tokens_per_expert);
    me_tensor *sum = me_sum(e, product);
    me_drop(e, product);
    me_tensor *loss = me_mul_number(e, sum);
    me_drop(e, sum);
    return me_leave(e, frame, loss);
}

/** MoEMetricsTracker.record(): added to the layer's place of a vector that the
 *  process's first router makes. */
static void record_loss(const me_nn *nn, int index, const me_tensor *loss)
{
    me_engine *e = nn->e;
    me_moe_state *moe = nn->moe;
    const me_frame frame = me_enter(e);
    me_pointwise(e, "div", loss, (me_dtype)loss->dtype);
    if (moe->losses[index] == NULL) {
        const me_model_config *m = &nn->config->model;
        moe->losses[index] = me_retain(me_empty(
            e, "zeros", ME_DTYPE_FLOAT32,
            ME_SHAPE((uint64_t)m->num_layers + (uint64_t)m->mtp_num_layers)));
    }
    moe->has_recorded[index] = true;
    me_leave(e, frame, NULL);
}

/** The loss's gradient is the loss scale, which has one dimension. */
static void scale_loss_backward(me_engine *e, me_node *node,
                                me_tensor *const *gy, me_tensor **gx)
{
    gx[0] = gy[0];
    me_launch_host(e, ME_HOST_AUX_LOSS);
    me_tensor *ones = me_pointwise(e, "ones_like", node->saved[0],
                                   (me_dtype)node->saved[0]->dtype);
    gx[1] = me_empty(e, "mul", ME_DTYPE_FLOAT32, ME_SHAPE(1));
    me_drop(e, ones);
}

static const me_op scale_loss_op =
    ME_NODE("MoEAuxLossAutoScalerBackward", scale_loss_backward);

/** MoEAuxLossAutoScaler.apply: @p x, whose backward begins the loss's. Loss per
 *  token: times the tokens of this rank, times the ranks. */
static me_tensor *scale_loss(const me_nn *nn, me_tensor *x, me_tensor *loss)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    if (nn->config->train.calculate_per_token_loss) {
        me_tensor *of_tokens = me_mul_number(e, loss);
        loss = me_mul_number(e, of_tokens);
        me_drop(e, of_tokens);
    }
    me_node *node = me_record2(e, &scale_loss_op, x, loss);
    me_save(e, node, 0, loss);
    return me_leave(e, frame,
                    me_output(e, node, me_alias(e, x, x->shape, x->strides)));
}

/** get_tokens_per_expert_and_token_count(), and their mean over micro-batches,
 *  which is of the buffers' type: (columns). */
static me_tensor *count_tokens(const me_router *router, const loss_kind *kind,
                               const me_tensor *map)
{
    const me_nn *nn = router->nn;
    me_engine *e = nn->e;
    me_tensor *counts = me_count_flags(e, map);
    if (nn->comm->size[kind->group] > 1) {
        me_all_reduce(e, nn->comm, kind->group, counts);
    }
    if (!kind->is_averaged) {
        return counts;
    }
    const me_tensor *sums = router->global_tokens_per_expert;
    return me_pointwise(e, "div", sums, (me_dtype)sums->dtype);
}

/** A layer of multi-token prediction that runs at each depth: each one's part of
 *  @p loss. Of another layer @p loss itself. */
static me_tensor *loss_of_depth(const me_router *router, me_tensor *loss)
{
    const me_nn *nn = router->nn;
    const bool is_repeated =
        router->is_mtp_layer && nn->config->model.mtp_use_repeated_layer;
    return is_repeated ? me_div_number(nn->e, loss) : loss;
}

/** attach_and_log_load_balancing_loss(). */
static me_tensor *attach_loss(const me_router *router, int index,
                              me_tensor *probs, me_tensor *loss)
{
    me_nn *nn = router->nn;
    const me_frame frame = me_enter(nn->e);
    loss = loss_of_depth(router, loss);
    record_loss(nn, index, loss);
    return me_leave(nn->e, frame, scale_loss(nn, probs, loss));
}

/** _apply_aux_loss() and its like. */
static me_tensor *apply_loss(const me_router *router, const loss_kind *kind,
                             me_tensor *probs, me_tensor *scores,
                             me_tensor *map, uint64_t sequences)
{
    me_nn *nn = router->nn;
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    me_launch_host(e, ME_HOST_AUX_LOSS);
    if (kind->is_by_sequence) {
        const me_shape shape =
            ME_SHAPE(me_dim(map, 0) / sequences, me_dim(map, 1) * sequences);
        scores = me_view(e, scores, shape);
        map = me_view(e, map, shape);
    }
    me_tensor *counts = count_tokens(router, kind, map);
    me_tensor *loss = load_balancing_loss(nn, scores, counts);
    if (kind->is_by_sequence) {
        loss = me_rebind(e, loss, me_div_number(e, loss));
    }
    return me_leave(e, frame, attach_loss(router, kind->index, probs, loss));
}

me_tensor *me_router_apply_aux_losses(const me_router *router,
                                      me_tensor *logits, me_tensor *probs,
                                      uint64_t sequences)
{
    me_engine *e = router->nn->e;
    me_tensor *map = NULL;
    me_tensor *scores = me_router_loss_scores(router, logits, &map);
    me_tensor *y = probs;
    for (int i = 0; i < N_KINDS; i++) {
        if (router->nn->config->moe.has_loss[kinds[i].index]) {
            me_tensor *scaled =
                apply_loss(router, &kinds[i], y, scores, map, sequences);
            y = y == probs ? scaled : me_rebind(e, y, scaled);
        }
    }
    return y;
}

me_tensor *me_router_apply_z_loss(const me_router *router, me_tensor *logits)
{
    me_nn *nn = router->nn;
    me_engine *e = nn->e;
    if (!nn->config->moe.has_loss[ME_ROUTER_Z_LOSS]) {
        return logits;
    }
    const me_frame frame = me_enter(e);
    me_tensor *logsum = me_logsumexp(e, logits); // (T)
    me_tensor *squares = me_square(e, logsum);
    me_tensor *mean = me_mean(e, squares);
    me_tensor *loss = me_mul_number(e, mean);
    me_drop(e, mean);
    me_drop(e, logsum);
    me_drop(e, squares);
    me_tensor *scaled = scale_loss(nn, logits, loss);
    me_tensor *logged = loss_of_depth(router, loss);
    loss = logged == loss ? loss : me_rebind(e, loss, logged);
    record_loss(nn, ME_ROUTER_Z_LOSS, loss);
    return me_leave(e, frame, scaled);
}
