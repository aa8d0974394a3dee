/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/schedule_layer.h"

#include "nn/megatron/fine_offload.h"
#include "nn/megatron/mixer.h"
#include "nn/megatron/multi_token_prediction.h"
#include "ops/view.h"

static me_nn *nn_of(const me_chunk_plan *plan)
{
    return &plan->gpt->nn;
}

const me_moe_layer *me_layer_plan_experts(const me_layer_plan *l)
{
    return l->layer->mlp.mixer->has_experts ? l->layer->mlp.self : NULL;
}

static void hold(me_engine *e, me_tensor **name, me_tensor *x)
{
    me_tensor *before = *name;
    *name = me_retain(x);
    me_release(e, before);
}

/** A node of a layer that runs. */
typedef struct running {
    me_nn *nn;
    me_module_id module; /**< the layer's */
    me_schedule_node *node;
    const me_flow *given; /**< borrowed */
    me_module_id before;
} running;

/** Its work belongs to the layer. */
static running begin_node(const me_chunk_plan *p, const me_layer_plan *l,
                          me_schedule_node *node, const me_flow *x)
{
    me_nn *nn = nn_of(p);
    const running r = {nn, l->layer->module, node, x, me_module_current(nn->e)};
    me_microbatch(nn->e, p->microbatch);
    me_phase_set(nn->e, ME_PHASE_FORWARD);
    me_module_enter(nn->e, l->layer->module);
    me_schedule_node_begin(nn, node, x);
    return r;
}

/** @param frees  as me_schedule_node_end() */
static me_flow end_node(const running *r, uint32_t n_outputs,
                        me_tensor *const *outputs, bool frees)
{
    const me_flow y = me_schedule_node_end(r->nn, r->node, n_outputs, outputs,
                                           r->given, frees);
    // The final norm and a depth's modules, which it has run, are not within it.
    me_module_resume(r->nn->e, r->module);
    me_module_leave(r->nn->e);
    me_module_resume(r->nn->e, r->before);
    return y;
}

/** The rest of submodule_pre_dispatch_forward() of a layer with experts: what goes
 *  to them, and what is held for what comes after them. */
static void route(me_nn *nn, me_layer_plan *l, me_tensor *hidden,
                  me_tensor **outputs)
{
    me_engine *e = nn->e;
    const me_moe_layer *moe = me_layer_plan_experts(l);
    me_schedule_node *node = &l->pre_dispatch;
    const me_frame frame = me_enter(e);
    me_tensor *normed =
        me_layer_mlp_norm(nn, l->layer, &hidden, &l->norm_group, &l->norm);
    me_tensor *shared = NULL;
    const me_dispatched rows = me_moe_pre_dispatch(nn, moe, normed, &shared);
    outputs[0] = rows.tokens;
    outputs[1] = rows.probs;
    me_tensor *kept[] = {rows.tokens, rows.probs, shared, NULL};
    uint32_t n_kept = shared == NULL ? 2 : 3;
    if (l->norm_group.is_on) {
        kept[n_kept++] = hidden;
    }
    me_leave_with(e, frame, n_kept, kept);
    hold(e, &l->residual, me_schedule_node_detach(e, node, hidden));
    if (shared != NULL) {
        // Transformer Engine's products come back as a view.
        shared->is_view =
            shared->is_view ||
            (nn->config->impl.transformer == ME_TRANSFORMER_ENGINE &&
             !nn->config->moe.shared_expert_gate);
        hold(e, &l->shared, me_schedule_node_detach(e, node, shared));
    }
}

/** What a depth does first, in submodule_mtp_pre_dispatch_forward(): (s, b, h) of
 *  the decoder to (s, b, h) of its layer. Only one depth runs in turns. */
static me_tensor *begin_depth(me_chunk_plan *p, const me_mtp_layer *mtp,
                              me_tensor *x)
{
    me_nn *nn = nn_of(p);
    me_engine *e = nn->e;
    me_tensor *state[ME_MTP_STATE] = {
        [ME_MTP_TOKENS] = p->batch.tokens,
        [ME_MTP_POSITIONS] = p->batch.position_ids,
    };
    me_chunk_first(e, x, 1, &state[ME_MTP_HIDDEN]);
    hold(e, &p->decoder_hidden, state[ME_MTP_HIDDEN]);
    me_tensor *embedded = me_mtp_get_embeddings(nn, &p->gpt->embedding, state);
    hold(e, &p->batch.tokens, state[ME_MTP_TOKENS]);
    hold(e, &p->batch.position_ids, state[ME_MTP_POSITIONS]);
    return me_mtp_concat_embeddings(nn, mtp, state[ME_MTP_HIDDEN], embedded);
}

me_flow me_layer_plan_pre_dispatch(me_chunk_plan *p, me_layer_plan *l,
                                   me_flow x)
{
    me_nn *nn = nn_of(p);
    me_schedule_node *node = &l->pre_dispatch;
    const running r = begin_node(p, l, node, &x);
    const me_mixer_inputs inputs = {.mask = p->batch.attention_mask,
                                    .angles = p->angles};
    me_tensor *given = node->inputs.items[0];
    if (l->mtp != NULL) {
        given = begin_depth(p, l->mtp, given);
    }
    me_tensor *hidden = me_layer_attention(nn, l->layer, given, &inputs);
    me_tensor *outputs[ME_NODE_TENSORS] = {hidden};
    uint32_t n_outputs = 1;
    if (me_layer_plan_experts(l) != NULL) {
        route(nn, l, hidden, outputs);
        n_outputs = 2;
    }
    return end_node(&r, n_outputs, outputs, false);
}

me_flow me_layer_plan_dispatch(me_chunk_plan *p, me_layer_plan *l, me_flow x)
{
    me_nn *nn = nn_of(p);
    const me_moe_layer *moe = me_layer_plan_experts(l);
    me_schedule_node *node = &l->dispatch;
    const running r = begin_node(p, l, node, &x);
    const me_dispatched sent = me_moe_dispatch(
        nn, moe, (me_dispatched){node->inputs.items[0], node->inputs.items[1]});
    hold(nn->e, &l->dispatched_probs,
         me_schedule_node_detach(nn->e, node, sent.probs));
    const bool frees =
        nn->config->moe.token_dispatcher == ME_DISPATCHER_ALL_TO_ALL;
    return end_node(&r, 1, (me_tensor *[]){sent.tokens}, frees);
}

/** should_free_input("mlp"): not what experts themselves save. */
static bool frees_expert_input(const me_nn *nn, const me_moe_layer *moe)
{
    const me_config *c = nn->config;
    if (c->fp8.format != ME_FP8_NONE) {
        return true;
    }
    return c->moe.token_dispatcher == ME_DISPATCHER_ALL_TO_ALL
               ? moe->token_dispatcher->n_local > 1
               : c->moe.flex_backend != ME_FLEX_HYBRIDEP;
}

/** Is what experts give a product of Transformer Engine's itself, which comes back
 *  as a view? Several experts' rows are sorted, biases added, padding taken off. */
static bool gives_view(const me_nn *nn, const me_moe_layer *moe)
{
    const me_config *c = nn->config;
    return c->impl.transformer == ME_TRANSFORMER_ENGINE &&
           c->fp8.format == ME_FP8_NONE && !c->model.add_bias_linear &&
           moe->token_dispatcher->n_local == 1;
}

me_flow me_layer_plan_mlp(me_chunk_plan *p, me_layer_plan *l, me_flow x)
{
    me_nn *nn = nn_of(p);
    const me_moe_layer *moe = me_layer_plan_experts(l);
    me_schedule_node *node = &l->mlp;
    const running r = begin_node(p, l, node, &x);
    me_tensor *y = NULL;
    if (moe == NULL) {
        const me_mixer_inputs none = {.mask = NULL};
        y = me_layer_mlp(nn, l->layer, node->inputs.items[0], &none);
    } else {
        y = me_moe_experts(
            nn, moe,
            (me_dispatched){node->inputs.items[0], l->dispatched_probs});
        y->is_view = y->is_view || gives_view(nn, moe);
        me_checkpoint_discard(l->norm, y);
    }
    return end_node(&r, 1, (me_tensor *[]){y},
                    moe != NULL && frees_expert_input(nn, moe));
}

/** The decoder's final norm, behind its last layer. */
static me_tensor *final_norm(const me_chunk_plan *p, const me_layer_plan *l,
                             me_tensor *x)
{
    const me_transformer_block *decoder = &p->gpt->decoder;
    if (!l->is_last || !decoder->has_final_layernorm) {
        return x;
    }
    me_nn *nn = nn_of(p);
    return me_make_viewless(nn->e,
                            me_norm_forward(nn, &decoder->final_layernorm, x));
}

me_flow me_layer_plan_combine(me_chunk_plan *p, me_layer_plan *l, me_flow x)
{
    me_nn *nn = nn_of(p);
    me_engine *e = nn->e;
    me_schedule_node *node = &l->combine;
    const running r = begin_node(p, l, node, &x);
    me_tensor *y = me_moe_combine(nn, me_layer_plan_experts(l),
                                  node->inputs.items[0], l->shared);
    me_tensor *sum = me_layer_add_residual(nn, y, l->residual);
    sum = me_rebind(
        e, sum, me_offload_commit(nn, &l->norm_group, sum, 1, &l->residual));
    if (l->norm_group.is_on) {
        sum = me_rebind(e, sum, me_make_viewless(e, sum));
    }
    me_use_on_stream(e, l->residual);
    if (l->shared != NULL) {
        me_use_on_stream(e, l->shared);
    }
    me_clear(e, &l->residual);
    me_clear(e, &l->shared);
    me_tensor *out = final_norm(p, l, sum);
    return end_node(&r, 1, (me_tensor *[]){out}, true);
}

me_flow me_layer_plan_mtp_post_process(me_chunk_plan *p, me_layer_plan *l,
                                       me_flow x)
{
    me_nn *nn = nn_of(p);
    me_schedule_node *node = &l->mtp_post_process;
    const running r = begin_node(p, l, node, &x);
    me_tensor *pieces[2] = {
        p->decoder_hidden,
        me_mtp_postprocess(nn, l->mtp, node->inputs.items[0])};
    me_tensor *y = me_cat_first(nn->e, 2, pieces);
    me_clear(nn->e, &p->decoder_hidden);
    me_drop(nn->e, pieces[1]);
    return end_node(&r, 1, (me_tensor *[]){y}, false);
}
