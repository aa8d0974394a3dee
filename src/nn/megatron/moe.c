/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/moe.h"

#include "ops/elementwise.h"

void me_moe_layer_create(me_nn *nn, me_module_id module, int32_t layer,
                         me_moe_layer *moe)
{
    moe->module = module;
    me_router_create(nn, module, &moe->router);
    me_dispatcher_create(nn, layer, &moe->token_dispatcher);
    me_experts_create(nn, module, &moe->experts);
    const me_mlp_spec shared = {
        .ffn_hidden_size = nn->config->moe.shared_expert_intermediate_size};
    moe->has_shared_experts = shared.ffn_hidden_size > 0;
    if (moe->has_shared_experts) {
        me_mlp_create(nn, me_module_add(nn->e, module, "shared_experts"),
                      &shared, &moe->shared_experts);
    }
}

void me_moe_layer_fini(me_engine *e, me_moe_layer *moe)
{
    me_dispatcher_fini(e, &moe->token_dispatcher);
    me_router_fini(e, &moe->router);
}

/** MoELayer.routed_experts_compute(). */
static me_tensor *routed_experts_compute(me_nn *nn, me_moe_layer *moe,
                                         me_dispatched rows)
{
    me_dispatcher *d = &moe->token_dispatcher;
    const me_frame frame = me_enter(nn->e);
    const me_dispatched sorted = me_dispatch_postprocess(d, rows);
    me_tensor *y = me_experts_forward(nn, &moe->experts, sorted.tokens,
                                      d->counts, sorted.probs); // (R, h)
    return me_leave(nn->e, frame, me_combine_preprocess(d, y));
}

/** MoELayer.postprocess(): with what the shared experts made, or NULL. */
static me_tensor *postprocess(me_nn *nn, me_moe_layer *moe, me_tensor *rows,
                              me_tensor *shared)
{
    const me_frame frame = me_enter(nn->e);
    me_tensor *y = me_combine_postprocess(&moe->token_dispatcher, rows);
    if (shared != NULL) {
        y = me_rebind(nn->e, y, me_add(nn->e, y, shared));
    }
    return me_leave(nn->e, frame, y); // (s, b, h)
}

/** MoELayer.forward(). Names live as long as Python's do: what was sent stays
 * until the function returns, though nobody needs it. */
me_tensor *me_moe_layer_forward(me_nn *nn, me_moe_layer *moe, me_tensor *x)
{
    me_engine *e = nn->e;
    if (!me_engine_is_ok(e)) {
        return me_none(e);
    }
    me_dispatcher *d = &moe->token_dispatcher;
    me_module_enter(e, moe->module);
    const me_frame frame = me_enter(e);
    me_tensor *hidden = me_hold(e, x);
    me_tensor *shared =
        moe->has_shared_experts
            ? me_mlp_forward(nn, &moe->shared_experts, hidden, NULL)
            : NULL;
    me_tensor *map = NULL;
    me_tensor *probs = me_router_forward(nn, &moe->router, hidden, &map);
    const me_dispatched rows = me_dispatch_preprocess(d, hidden, probs, map);
    me_rebind(e, hidden, rows.tokens);
    me_rebind(e, probs, rows.probs);
    const me_dispatched sent = me_token_dispatch(d, rows);
    me_rebind(e, rows.probs, sent.probs);
    me_tensor *y = routed_experts_compute(nn, moe, sent);
    y = me_rebind(e, y, me_token_combine(d, y));
    y = me_rebind(e, y, postprocess(nn, moe, y, shared)); // (s, b, h)
    me_leave(e, frame, y);
    me_module_leave(e);
    return y;
}
