/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/moe.h"

#include "nn/megatron/backend.h"
#include "nn/megatron/te_fp8_state.h"
#include "ops/elementwise.h"

static bool has_latents(const me_nn *nn)
{
    return nn->config->moe.latent_size > 0;
}

/** MoELayer.preprocess(). */
static me_dispatched preprocess(me_nn *nn, const me_moe_layer *moe,
                                me_tensor *x, me_tensor *probs, me_tensor *map)
{
    const me_frame frame = me_enter(nn->e);
    me_tensor *hidden =
        has_latents(nn)
            ? me_backend_of(nn)->linear(nn, &moe->fc1_latent_proj, x)
            : x;
    const me_dispatched rows =
        me_dispatch_preprocess(moe->token_dispatcher, hidden, probs, map);
    me_leave_with(nn->e, frame, 2, (me_tensor *[]){rows.tokens, rows.probs});
    if (rows.probs == probs) {
        me_drop(nn->e, probs); // the caller's name is enough
    }
    return rows;
}

/** MoELayer.routed_experts_compute(). */
static me_tensor *routed_experts_compute(me_nn *nn, const me_moe_layer *moe,
                                         me_dispatched rows)
{
    me_dispatcher *d = moe->token_dispatcher;
    const me_frame frame = me_enter(nn->e);
    const me_dispatched sorted = me_dispatch_postprocess(d, rows);
    me_tensor *y = me_experts_forward(nn, &moe->experts, sorted.tokens,
                                      d->counts, sorted.probs); // (R, h)
    return me_leave(nn->e, frame, me_combine_preprocess(d, y));
}

/** MoELayer.postprocess(): with what the shared experts made, or NULL. */
static me_tensor *postprocess(me_nn *nn, const me_moe_layer *moe,
                              me_tensor *rows, me_tensor *shared)
{
    const me_frame frame = me_enter(nn->e);
    me_tensor *y = me_combine_postprocess(moe->token_dispatcher, rows);
    if (has_latents(nn)) {
        y = me_rebind(nn->e, y,
                      me_backend_of(nn)->linear(nn, &moe->fc2_latent_proj, y));
    }
    if (shared != NULL) {
        y = me_rebind(nn->e, y, me_add(nn->e, y, shared));
    }
    return me_leave(nn->e, frame, y); // (s, b, h)
}

/** MoELayer.shared_experts_compute(): NULL: there are none, or the dispatcher
 *  runs them. */
static me_tensor *shared_experts_compute(me_nn *nn, const me_moe_layer *moe,
                                         me_tensor *x)
{
    return moe->has_shared_experts &&
                   moe->token_dispatcher->shared_experts == NULL
               ? me_shared_experts_forward(nn, &moe->shared_experts, x)
               : NULL;
}

me_dispatched me_moe_pre_dispatch(me_nn *nn, const me_moe_layer *moe,
                                  me_tensor *x, me_tensor **shared_out)
{
    me_engine *e = nn->e;
    me_module_enter(e, moe->module);
    const me_frame frame = me_enter(e);
    me_tensor *shared = shared_experts_compute(nn, moe, x);
    me_tensor *map = NULL;
    me_tensor *probs = me_router_forward(nn, moe->router, x, &map);
    const me_dispatched rows = preprocess(nn, moe, x, probs, map);
    *shared_out = shared;
    me_leave_with(e, frame, shared == NULL ? 2 : 3,
                  (me_tensor *[]){rows.tokens, rows.probs, shared});
    me_module_leave(e);
    return rows;
}

me_dispatched me_moe_dispatch(me_nn *nn, const me_moe_layer *moe,
                              me_dispatched rows)
{
    me_module_enter(nn->e, moe->module);
    const me_dispatched sent = me_token_dispatch(moe->token_dispatcher, rows);
    me_module_leave(nn->e);
    return sent;
}

me_tensor *me_moe_experts(me_nn *nn, const me_moe_layer *moe,
                          me_dispatched rows)
{
    me_module_enter(nn->e, moe->module);
    me_tensor *y = routed_experts_compute(nn, moe, rows);
    me_module_leave(nn->e);
    return y;
}

me_tensor *me_moe_combine(me_nn *nn, const me_moe_layer *moe, me_tensor *rows,
                          me_tensor *shared)
{
    me_engine *e = nn->e;
    me_module_enter(e, moe->module);
    const me_frame frame = me_enter(e);
    me_tensor *y = me_token_combine(moe->token_dispatcher, rows);
    y = me_rebind(e, y, postprocess(nn, moe, y, shared)); // (s, b, h)
    me_leave(e, frame, y);
    me_module_leave(e);
    return y;
}

/** custom_forward() of MoELayer.forward(). Names live as long as Python's do: what
 * was sent stays until the function returns, though nobody needs it. */
static me_tensor *run_layer(const me_section *section, me_tensor *const *inputs)
{
    me_nn *nn = section->nn;
    me_engine *e = nn->e;
    const me_moe_layer *moe = section->self;
    me_dispatcher *d = moe->token_dispatcher;
    const me_frame frame = me_enter(e);
    me_tensor *hidden = me_hold(e, inputs[0]);
    me_tensor *shared = shared_experts_compute(nn, moe, hidden);
    me_tensor *map = NULL;
    me_tensor *probs = me_router_forward(nn, moe->router, hidden, &map);
    const me_dispatched rows = preprocess(nn, moe, hidden, probs, map);
    me_rebind(e, hidden, rows.tokens);
    me_rebind(e, probs, rows.probs);
    const me_dispatched sent = me_token_dispatch(d, rows);
    me_rebind(e, rows.probs, sent.probs);
    me_tensor *y = routed_experts_compute(nn, moe, sent);
    y = me_rebind(e, y, me_token_combine(d, y));
    y = me_rebind(e, y, postprocess(nn, moe, y, shared)); // (s, b, h)
    return me_leave(e, frame, y);
}

/** Outputs of the first part, by place. */
enum {
    CAPTURED_TOKENS,
    CAPTURED_PROBS,
    CAPTURED_MAP /**< without preprocess() */
};

static void add_output(me_graph_outputs *outputs, me_tensor *x)
{
    outputs->items[outputs->count++] = x;
}

void me_moe_capture(me_nn *nn, const me_moe_layer *moe, me_tensor *x,
                    me_graph_outputs *outputs_out)
{
    me_engine *e = nn->e;
    me_graph_outputs *out = outputs_out;
    me_dispatcher *d = moe->token_dispatcher;
    *out = (me_graph_outputs){.count = 0};
    me_module_enter(e, moe->module);
    const me_frame frame = me_enter(e);
    me_tensor *shared = shared_experts_compute(nn, moe, x);
    me_tensor *map = NULL;
    me_tensor *probs = me_router_forward(nn, moe->router, x, &map);
    if (nn->config->train.cuda_graph_preprocess) {
        const me_dispatched rows = preprocess(nn, moe, x, probs, map);
        add_output(out, rows.tokens);
        add_output(out, rows.probs);
        out->count += me_dispatcher_attributes(d, &out->items[out->count]);
        out->unread = d->probs;
    } else {
        add_output(out, x);
        add_output(out, probs);
        add_output(out, map);
    }
    if (shared != NULL) {
        add_output(out, shared);
    }
    me_leave_with(e, frame, out->count, out->items);
    me_module_leave(e);
}

void me_moe_stash(const me_moe_layer *moe, me_dispatcher_stash *stash_out)
{
    me_dispatcher_take(moe->token_dispatcher, stash_out);
}

void me_moe_unstash(me_nn *nn, const me_moe_layer *moe,
                    me_dispatcher_stash *stash)
{
    if (nn->config->train.cuda_graph_preprocess) {
        me_dispatcher_let_go(moe->token_dispatcher, stash);
    } else {
        me_dispatcher_put_back(moe->token_dispatcher, stash);
    }
}

me_tensor *me_moe_resume(me_nn *nn, const me_moe_layer *moe,
                         const me_graph_outputs *outputs)
{
    me_engine *e = nn->e;
    me_dispatcher *d = moe->token_dispatcher;
    const bool has_shared =
        moe->has_shared_experts && d->shared_experts == NULL;
    me_tensor *shared = has_shared ? outputs->items[outputs->count - 1] : NULL;
    me_module_enter(e, moe->module);
    const me_frame frame = me_enter(e);
    me_dispatched rows = {me_hold(e, outputs->items[CAPTURED_TOKENS]),
                          me_hold(e, outputs->items[CAPTURED_PROBS])};
    if (!nn->config->train.cuda_graph_preprocess) {
        const me_dispatched given = rows;
        rows = preprocess(nn, moe, given.tokens, given.probs,
                          outputs->items[CAPTURED_MAP]);
        me_rebind(e, given.tokens, rows.tokens);
        me_rebind(e, given.probs, rows.probs);
    }
    const me_dispatched sent = me_token_dispatch(d, rows);
    me_rebind(e, rows.probs, sent.probs);
    me_tensor *y = routed_experts_compute(nn, moe, sent);
    y = me_rebind(e, y, me_token_combine(d, y));
    y = me_rebind(e, y, postprocess(nn, moe, y, shared)); // (s, b, h)
    me_leave(e, frame, y);
    me_module_leave(e);
    return y;
}

/** It under te_checkpoint(), which recomputes it in FP8 as the layer does. */
static me_tensor *run_checkpointed(const me_section *section,
                                   me_tensor *const *inputs)
{
    const me_fp8_state before = me_fp8_checkpoint_enter(
        section->nn, me_fp8_is_layer(section->nn, section->first));
    me_tensor *y = run_layer(section, inputs);
    me_fp8_checkpoint_exit(section->nn, &before);
    return y;
}

/** The projections, which every tensor rank has all of. */
static void create_latents(me_nn *nn, me_module_id module, me_moe_layer *moe)
{
    me_linear_spec spec = {
        .name = "fc1_latent_proj",
        .parent = module,
        .inputs = nn->config->model.hidden_size,
        .outputs = nn->config->moe.latent_size,
        .has_bias = nn->config->model.add_bias_linear,
        .is_duplicated = true,
    };
    moe->fc1_latent_proj = me_column_linear_create(nn, &spec);
    moe->fc1_latent_proj.turn = ME_TURN_LATENT;
    const uint64_t latent = spec.outputs;
    spec.name = "fc2_latent_proj";
    spec.outputs = spec.inputs;
    spec.inputs = latent;
    moe->fc2_latent_proj = me_column_linear_create(nn, &spec);
}

void me_moe_layer_create(me_nn *nn, me_module_id module, int32_t layer,
                         me_moe_layer *moe)
{
    moe->module = module;
    moe->router = me_engine_alloc(nn->e, 1, sizeof *moe->router);
    moe->token_dispatcher =
        me_engine_alloc(nn->e, 1, sizeof *moe->token_dispatcher);
    if (!me_engine_is_ok(nn->e)) {
        return;
    }
    me_router_create(nn, module, layer, moe->router);
    if (has_latents(nn)) {
        create_latents(nn, module, moe);
    }
    me_dispatcher_create(nn, layer, moe->token_dispatcher);
    me_experts_create(nn, module, &moe->experts);
    moe->has_shared_experts =
        nn->config->moe.shared_expert_intermediate_size > 0;
    if (moe->has_shared_experts) {
        me_shared_experts_create(nn, module, layer, &moe->shared_experts);
    }
    if (moe->has_shared_experts && nn->config->moe.shared_expert_overlap) {
        moe->token_dispatcher->shared_experts = &moe->shared_experts;
    }
    moe->section = (me_section){
        .nn = nn, .run = run_checkpointed, .self = moe, .first = layer};
}

void me_moe_layer_fini(me_engine *e, me_moe_layer *moe)
{
    if (moe->router != NULL && moe->token_dispatcher != NULL) {
        me_router_fini(e, moe->router);
        me_dispatcher_fini(e, moe->token_dispatcher);
        me_shared_experts_fini(e, &moe->shared_experts);
    }
}

me_tensor *me_moe_layer_forward(me_nn *nn, const me_moe_layer *moe,
                                me_tensor *x)
{
    me_engine *e = nn->e;
    const me_recompute_config *recompute = &nn->config->recompute;
    if (!me_engine_is_ok(e)) {
        return me_none(e);
    }
    me_tensor *const inputs[ME_CHECKPOINT_INPUTS] = {x};
    me_module_enter(e, moe->module);
    me_tensor *y =
        recompute->granularity == ME_RECOMPUTE_SELECTIVE && recompute->moe
            ? me_checkpoint(nn, &moe->section, inputs, false)
            : run_layer(&moe->section, inputs);
    me_module_leave(e);
    return y;
}
