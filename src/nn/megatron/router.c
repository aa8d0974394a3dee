/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/router.h"

#include "nn/megatron/backend.h"
#include "nn/megatron/token_dispatcher.h"
#include "ops/elementwise.h"
#include "ops/index.h"
#include "ops/reduce.h"
#include "ops/softmax.h"
#include "ops/view.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"

me_router me_router_create(me_nn *nn, me_module_id parent)
{
    const me_config *c = nn->config;
    me_router router = {
        .nn = nn,
        .module = me_module_add(nn->e, parent, "router"),
    };
    router.weight = me_parameter_create(
        nn, &(me_parameter_spec){
                .name = "weight",
                .module = router.module,
                .shape = ME_SHAPE(c->moe.num_experts, c->model.hidden_size),
                .is_made_on_host = true,
                .is_made_in_params_dtype = true,
                .is_sequence_parallel = true,
            });
    return router;
}

enum {
    GATING_SAVED_INPUT,
    GATING_SAVED_WEIGHT
};

static void gating_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                            me_tensor **gx)
{
    (void)gy;
    const me_tensor *x = node->saved[GATING_SAVED_INPUT];
    const me_tensor *weight = node->saved[GATING_SAVED_WEIGHT];
    me_nn *nn = ((const me_router *)node->data.context)->nn;
    const me_backend *backend = me_backend_of(nn);
    me_launch_host(e, ME_HOST_ROUTER);
    me_dispatcher_launch_host(nn); // its layer's last node
    gx[0] = backend->gemm(nn, ME_KERNEL_ROUTER_DGRAD, (me_dtype)x->dtype,
                          x->shape, me_dim(weight, 0));
    gx[1] = backend->gemm(nn, ME_KERNEL_ROUTER_WGRAD, (me_dtype)weight->dtype,
                          weight->shape, me_rows(x));
}

static const me_op gating_op =
    ME_NODE("RouterGatingLinearFunctionBackward", gating_backward);

/** router_gating_linear(): (s, b, h) to logits (s, b, E). */
static me_tensor *gating(me_nn *nn, const me_router *router, me_tensor *x)
{
    me_engine *e = nn->e;
    me_tensor *weight = router->weight->tensor;
    me_node *node = me_record2(e, &gating_op, x, weight);
    if (node != NULL) {
        node->data.context = router;
    }
    me_save(e, node, GATING_SAVED_INPUT, x);
    me_save(e, node, GATING_SAVED_WEIGHT, weight);
    me_shape shape = x->shape;
    shape.dim[shape.ndim - 1] = me_dim(weight, 0);
    me_tensor *logits = me_backend_of(nn)->gemm(
        nn, ME_KERNEL_ROUTER, (me_dtype)x->dtype, shape, me_dim(x, -1));
    return me_output(e, node, logits);
}

/** topk_routing_with_score_function(): logits (T, E) to weights (T, E). */
static me_tensor *topk_routing(me_nn *nn, me_tensor *logits,
                               me_tensor **map_out)
{
    me_engine *e = nn->e;
    const uint64_t k = nn->config->moe.router_topk;
    const me_dtype dtype = logits->dtype;
    const me_frame frame = me_enter(e);
    me_tensor *indices = NULL;
    me_tensor *probs = NULL;
    if (nn->config->moe.router_pre_softmax) {
        probs = me_topk(e, me_softmax_in_float32(e, logits), k, &indices);
        me_name_last(e, probs); // named behind top_indices
    } else {
        probs = me_softmax_in_float32(e, me_topk(e, logits, k, &indices));
    }
    probs = me_rebind(e, probs, me_cast(e, probs, dtype)); // (T, K)
    me_tensor *weights = me_scatter_into_zeros(e, logits, indices, probs);
    me_tensor *map = me_scatter_flags(e, logits);
    me_leave_with(e, frame, 2, (me_tensor *[]){weights, map});
    *map_out = map;
    return weights;
}

/** compute_routing_scores_for_aux_loss(): fp32 scores (T, E), flags (T, E). */
static me_tensor *scores_for_aux_loss(me_nn *nn, me_tensor *logits,
                                      me_tensor **map_out)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    me_tensor *scores = me_softmax_in_float32(e, logits);
    me_tensor *indices = NULL;
    me_topk(e, scores, nn->config->moe.router_topk, &indices);
    me_tensor *map = me_scatter_flags(e, logits);
    me_leave_with(e, frame, 2, (me_tensor *[]){map, scores});
    *map_out = map;
    return scores;
}

/** switch_load_balancing_loss_func(): a scalar. */
static me_tensor *load_balancing_loss(me_engine *e, me_tensor *scores,
                                      me_tensor *tokens_per_expert)
{
    const me_frame frame = me_enter(e);
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
static void record_loss(me_nn *nn, const me_tensor *loss)
{
    me_engine *e = nn->e;
    me_moe_state *moe = nn->moe;
    const me_frame frame = me_enter(e);
    me_pointwise(e, "div", loss, ME_DTYPE_FLOAT32);
    if (moe->losses == NULL) {
        moe->losses = me_retain(
            me_empty(e, "zeros", ME_DTYPE_FLOAT32,
                     ME_SHAPE((uint64_t)nn->config->model.num_layers)));
    }
    moe->has_recorded = true;
    me_leave(e, frame, NULL);
}

/** The loss's gradient is the loss scale, which has one dimension. */
static void scale_aux_loss_backward(me_engine *e, me_node *node,
                                    me_tensor *const *gy, me_tensor **gx)
{
    gx[0] = gy[0];
    me_launch_host(e, ME_HOST_AUX_LOSS);
    me_tensor *ones =
        me_pointwise(e, "ones_like", node->saved[0], ME_DTYPE_FLOAT32);
    gx[1] = me_empty(e, "mul", ME_DTYPE_FLOAT32, ME_SHAPE(1));
    me_drop(e, ones);
}

static const me_op scale_aux_loss_op =
    ME_NODE("MoEAuxLossAutoScalerBackward", scale_aux_loss_backward);

/** MoEAuxLossAutoScaler.apply: @p x, whose backward begins the loss's. */
static me_tensor *scale_aux_loss(me_engine *e, me_tensor *x, me_tensor *loss)
{
    me_node *node = me_record2(e, &scale_aux_loss_op, x, loss);
    me_save(e, node, 0, loss);
    return me_output(e, node, me_alias(e, x, x->shape, x->strides));
}

/** TopKRouter._apply_aux_loss(). */
static me_tensor *apply_aux_loss(me_nn *nn, me_tensor *probs, me_tensor *scores,
                                 const me_tensor *map)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    me_launch_host(e, ME_HOST_AUX_LOSS);
    me_tensor *tokens_per_expert = me_count_flags(e, map); // (E)
    if (nn->comm->size[ME_GROUP_TENSOR_CONTEXT] > 1) {
        me_all_reduce(e, nn->comm, ME_GROUP_TENSOR_CONTEXT, tokens_per_expert);
    }
    me_tensor *loss = load_balancing_loss(e, scores, tokens_per_expert);
    record_loss(nn, loss);
    return me_leave(e, frame, scale_aux_loss(e, probs, loss));
}

/** The first call of its compiled helper (_apply_expert_bias). */
static void initialise_compiler(me_nn *nn)
{
    if (!nn->moe->has_routed) {
        me_temporary(nn->e, "init_gpu_context", 4);
        nn->moe->has_routed = true;
    }
}

/** TopKRouter.routing(). */
static me_tensor *routing(me_nn *nn, me_tensor *logits, me_tensor **map_out)
{
    me_engine *e = nn->e;
    const uint64_t experts = me_dim(logits, -1);
    const me_frame frame = me_enter(e);
    logits = me_view(e, logits, ME_SHAPE(me_rows(logits), experts));
    me_tensor *probs = topk_routing(nn, logits, map_out);
    if (nn->config->moe.has_aux_loss && me_context_now(e)->is_recording) {
        me_tensor *map = NULL;
        me_tensor *scores = scores_for_aux_loss(nn, logits, &map);
        probs = me_rebind(e, probs, apply_aux_loss(nn, probs, scores, map));
    }
    initialise_compiler(nn);
    me_leave_with(e, frame, 2, (me_tensor *[]){probs, *map_out});
    return probs;
}

me_tensor *me_router_forward(me_nn *nn, const me_router *router, me_tensor *x,
                             me_tensor **map_out)
{
    me_engine *e = nn->e;
    *map_out = me_none(e);
    if (!me_engine_is_ok(e)) {
        return me_none(e);
    }
    me_module_enter(e, router->module);
    me_launch_host(e, ME_HOST_ROUTER);
    const me_frame frame = me_enter(e);
    me_tensor *logits = gating(nn, router, x); // (s, b, E)
    me_tensor *probs = routing(nn, logits, map_out);
    me_leave_with(e, frame, 2, (me_tensor *[]){probs, *map_out});
    me_module_leave(e);
    return probs;
}
