/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/router.h"

#include "nn/megatron/router_parts.h"
#include "ops/elementwise.h"
#include "ops/view.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"

/** A buffer of zeros on the card, float32 until the model is cast. */
static void register_buffer(me_nn *nn, me_tensor **buffer, me_shape shape,
                            bool stays_wide)
{
    const me_category category = me_category_set(nn->e, ME_CATEGORY_BUFFER);
    const me_frame frame = me_enter(nn->e);
    *buffer = me_retain(me_empty(nn->e, "zeros", ME_DTYPE_FLOAT32, shape));
    me_leave(nn->e, frame, NULL);
    me_category_set(nn->e, category);
    me_buffer_register(nn, buffer, stays_wide);
}

static me_parameter *parameter(me_nn *nn, const me_router *router,
                               const char *name, me_shape shape)
{
    return me_parameter_create(nn, &(me_parameter_spec){
                                       .name = name,
                                       .module = router->module,
                                       .shape = shape,
                                       .is_made_on_host = true,
                                       .is_made_in_params_dtype = true,
                                       .is_sequence_parallel = true,
                                   });
}

void me_router_create(me_nn *nn, me_module_id parent, int32_t layer,
                      me_router *router)
{
    const me_config *c = nn->config;
    const uint64_t experts = c->moe.num_experts;
    *router = (me_router){
        .nn = nn,
        .module = me_module_add_as(nn->e, parent, "router", "TopKRouter"),
        .is_mtp_layer = layer >= c->model.num_layers,
    };
    router->weight = parameter(nn, router, "weight",
                               ME_SHAPE(experts, c->model.hidden_size));
    if (c->model.add_bias_linear) {
        router->bias = parameter(nn, router, "bias", ME_SHAPE(experts));
    }
    if (c->moe.router_enable_expert_bias) {
        register_buffer(nn, &router->local_tokens_per_expert, ME_SHAPE(experts),
                        false);
        register_buffer(nn, &router->expert_bias, ME_SHAPE(experts), true);
        nn->moe->n_biased++;
    }
    if (c->moe.has_loss[ME_LOAD_BALANCING_GLOBAL_AUX_LOSS]) {
        register_buffer(nn, &router->global_tokens_per_expert,
                        ME_SHAPE(experts), false);
        register_buffer(nn, &router->ga_steps, ME_SCALAR, false);
    }
}

void me_router_fini(me_engine *e, me_router *router)
{
    me_clear(e, &router->local_tokens_per_expert);
    me_clear(e, &router->expert_bias);
    me_clear(e, &router->global_tokens_per_expert);
    me_clear(e, &router->ga_steps);
    me_clear(e, &router->input_jitter[0]);
    me_clear(e, &router->input_jitter[1]);
    me_clear(e, &router->forced_bias);
}

/** apply_input_jitter(): @p x times numbers about 1. The distribution is made,
 *  and its bounds are checked, when it is first used. */
static me_tensor *jitter(me_router *router, me_tensor *x)
{
    me_engine *e = router->nn->e;
    const me_dtype dtype = (me_dtype)x->dtype;
    if (!router->nn->config->moe.has_input_jitter) {
        return x;
    }
    const me_frame frame = me_enter(e);
    for (int i = 0; i < 2 && router->input_jitter[i] == NULL; i++) {
        me_assign(e, &router->input_jitter[i],
                  me_empty(e, "tensor", dtype, ME_SCALAR));
    }
    me_tensor *numbers = me_pointwise(e, "rand", x, dtype);
    me_tensor *width = me_empty(e, "sub", dtype, ME_SCALAR);
    me_tensor *scaled = me_pointwise(e, "mul", numbers, dtype);
    me_drop(e, width);
    me_tensor *noise = me_pointwise(e, "add", scaled, dtype);
    me_drop(e, scaled);
    me_drop(e, numbers);
    me_tensor *y = me_mul(e, x, noise);
    me_drop(e, noise);
    return me_leave(e, frame, y);
}

static void pass_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                          me_tensor **gx)
{
    (void)e;
    (void)node;
    gx[0] = gy[0];
}

static const me_op random_op = ME_NODE("RandomSTEBackward", pass_backward);

/** RandomSTE: numbers in the place of @p logits, which stay. */
static me_tensor *randomize(me_engine *e, me_tensor *logits)
{
    me_node *node = me_record1(e, &random_op, logits);
    return me_output(e, node,
                     me_pointwise(e, "clone", logits, (me_dtype)logits->dtype));
}

/** RandomSTEShared: a bias, made anew each time, or once where its deviation is
 *  below 0. */
static me_tensor *add_shared_bias(me_router *router, me_tensor *logits)
{
    me_engine *e = router->nn->e;
    const me_dtype dtype = (me_dtype)logits->dtype;
    me_node *node = me_record1(e, &random_op, logits);
    me_tensor *bias = router->forced_bias;
    if (bias == NULL) {
        bias = me_empty(e, "empty", dtype, ME_SHAPE(me_dim(logits, -1)));
    }
    me_tensor *y = me_pointwise(e, "add", logits, dtype);
    if (router->nn->config->moe.router_force_biased > 0) {
        me_drop(e, bias);
    } else if (router->forced_bias == NULL) {
        me_assign(e, &router->forced_bias, bias);
    }
    return me_output(e, node, y);
}

/** Logits that are not the model's. apply_biased_logits() makes random ones too,
 *  and its caller's go when it is back. */
static me_tensor *force(me_router *router, me_tensor *logits)
{
    me_engine *e = router->nn->e;
    const me_moe_options *m = &router->nn->config->moe;
    if (m->router_force_load_balancing) {
        logits = me_rebind(e, logits, randomize(e, logits));
    }
    if (m->router_force_biased != 0) {
        me_tensor *random = randomize(e, logits);
        me_tensor *y = add_shared_bias(router, random);
        me_drop(e, random);
        logits = me_rebind(e, logits, y);
    }
    return logits;
}

/** Flags summed over rows: their 64-bit copy dies before the sums. */
static void sum_flags(me_engine *e, const me_tensor *map)
{
    const me_frame frame = me_enter(e);
    me_empty(e, "sum", ME_DTYPE_INT64, ME_SHAPE(me_dim(map, 1)));
    me_drop(e, me_empty(e, "to", ME_DTYPE_INT64, map->shape));
    me_leave(e, frame, NULL);
}

/** _apply_expert_bias(), compiled: the flags of 128 rows are summed at a time.
 *  The first call of all initialises the compiler. Without a tape there is
 *  nothing to compile in it, and then it never is. */
static void count_tokens(const me_router *router, const me_tensor *map)
{
    me_nn *nn = router->nn;
    const uint64_t rows_at_a_time = 128;
    const bool is_recording = me_context_now(nn->e)->is_recording;
    if (!nn->moe->has_routed) {
        me_temporary(nn->e, "init_gpu_context", 4);
        nn->moe->has_routed = true;
        nn->moe->is_count_eager = !is_recording;
    }
    if (router->expert_bias == NULL || !is_recording) {
        return;
    }
    if (nn->moe->is_count_eager) {
        sum_flags(nn->e, map);
        return;
    }
    const uint64_t parts =
        (me_dim(map, 0) + rows_at_a_time - 1) / rows_at_a_time;
    me_temporary(nn->e, "sum", 8 * me_dim(map, 1) * parts);
}

/** TopKRouter.routing(). */
static me_tensor *routing(const me_router *router, me_tensor *logits,
                          uint64_t sequences, me_tensor **map_out)
{
    me_nn *nn = router->nn;
    me_engine *e = nn->e;
    const uint64_t experts = me_dim(logits, -1);
    const bool is_recording = me_context_now(e)->is_recording;
    const me_frame frame = me_enter(e);
    logits = me_view(e, logits, ME_SHAPE(me_rows(logits), experts));
    if (is_recording) {
        logits = me_router_apply_z_loss(router, logits);
    }
    me_tensor *probs = me_router_topk(router, logits, map_out);
    if (nn->config->moe.has_capacity) {
        me_tensor *map = *map_out;
        me_tensor *kept = me_router_drop_tokens(router, probs, &map);
        probs = me_rebind(e, probs, kept);
        *map_out = me_rebind(e, *map_out, map);
    }
    if (is_recording && me_router_has_aux_loss(nn->config)) {
        probs = me_rebind(
            e, probs,
            me_router_apply_aux_losses(router, logits, probs, sequences));
    }
    count_tokens(router, *map_out);
    me_leave_with(e, frame, 2, (me_tensor *[]){probs, *map_out});
    return probs;
}

me_tensor *me_router_forward(me_nn *nn, me_router *router, me_tensor *x,
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
    me_tensor *input = jitter(router, x);
    me_tensor *logits = force(router, me_router_gating(router, input));
    me_tensor *probs = routing(router, logits, me_dim(x, 1), map_out); // (T, E)
    me_leave_with(e, frame, 2, (me_tensor *[]){probs, *map_out});
    me_module_leave(e);
    return probs;
}
