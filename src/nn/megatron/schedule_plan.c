/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/schedule_plan.h"

#include "base/assert.h"
#include "nn/megatron/fine_offload.h"
#include "nn/megatron/mixer.h"
#include "nn/megatron/moe.h"
#include "ops/view.h"
#include "tensor/launch.h"

static me_nn *nn_of(const me_chunk_plan *plan)
{
    return &plan->gpt->nn;
}

static const me_moe_layer *experts_of(const me_layer_plan *l)
{
    return l->layer->mlp.mixer->has_experts ? l->layer->mlp.self : NULL;
}

static me_flow flow_of(me_tensor *x)
{
    return (me_flow){.count = x == NULL ? 0 : 1, .items = {x}};
}

static void hold(me_engine *e, me_tensor **name, me_tensor *x)
{
    me_tensor *before = *name;
    *name = me_retain(x);
    me_release(e, before);
}

/** A node of a layer runs: its work belongs to the layer. */
static me_module_id enter_layer(const me_chunk_plan *p, const me_layer_plan *l)
{
    me_engine *e = nn_of(p)->e;
    const me_module_id before = me_module_current(e);
    me_microbatch(e, p->microbatch);
    me_phase_set(e, ME_PHASE_FORWARD);
    me_module_enter(e, l->layer->module);
    return before;
}

static void leave_layer(const me_chunk_plan *p, me_module_id before)
{
    me_module_leave(nn_of(p)->e);
    me_module_resume(nn_of(p)->e, before);
}

/** The rest of submodule_pre_dispatch_forward() of a layer with experts: what goes
 *  to them, and what is held for what comes after them. */
static void route(me_nn *nn, me_layer_plan *l, me_tensor *hidden,
                  me_tensor **outputs)
{
    me_engine *e = nn->e;
    const me_moe_layer *moe = experts_of(l);
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

/** submodule_pre_dispatch_forward(). */
static me_flow pre_dispatch(me_chunk_plan *p, me_layer_plan *l, me_flow x)
{
    me_nn *nn = nn_of(p);
    me_schedule_node *node = &l->pre_dispatch;
    const me_module_id before = enter_layer(p, l);
    me_schedule_node_begin(nn, node, &x);
    const me_mixer_inputs inputs = {.mask = p->batch.attention_mask,
                                    .angles = p->angles};
    me_tensor *hidden =
        me_layer_attention(nn, l->layer, node->inputs.items[0], &inputs);
    me_tensor *outputs[ME_NODE_TENSORS] = {hidden};
    uint32_t n_outputs = 1;
    if (experts_of(l) != NULL) {
        route(nn, l, hidden, outputs);
        n_outputs = 2;
    }
    me_flow y = me_schedule_node_end(nn, node, n_outputs, outputs, &x, false);
    leave_layer(p, before);
    return y;
}

/** submodule_dispatch_forward(). */
static me_flow dispatch(me_chunk_plan *p, me_layer_plan *l, me_flow x)
{
    me_nn *nn = nn_of(p);
    const me_moe_layer *moe = experts_of(l);
    me_schedule_node *node = &l->dispatch;
    const me_module_id before = enter_layer(p, l);
    me_schedule_node_begin(nn, node, &x);
    const me_dispatched sent = me_moe_dispatch(
        nn, moe, (me_dispatched){node->inputs.items[0], node->inputs.items[1]});
    hold(nn->e, &l->dispatched_probs,
         me_schedule_node_detach(nn->e, node, sent.probs));
    const bool frees =
        nn->config->moe.token_dispatcher == ME_DISPATCHER_ALL_TO_ALL;
    me_flow y = me_schedule_node_end(nn, node, 1, (me_tensor *[]){sent.tokens},
                                     &x, frees);
    leave_layer(p, before);
    return y;
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

/** submodule_moe_forward(), or of a dense layer all that follows attention. */
static me_flow mlp(me_chunk_plan *p, me_layer_plan *l, me_flow x)
{
    me_nn *nn = nn_of(p);
    const me_moe_layer *moe = experts_of(l);
    me_schedule_node *node = &l->mlp;
    const me_module_id before = enter_layer(p, l);
    me_schedule_node_begin(nn, node, &x);
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
    me_flow out =
        me_schedule_node_end(nn, node, 1, (me_tensor *[]){y}, &x,
                             moe != NULL && frees_expert_input(nn, moe));
    leave_layer(p, before);
    return out;
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

/** submodule_combine_forward(). */
static me_flow combine(me_chunk_plan *p, me_layer_plan *l, me_flow x)
{
    me_nn *nn = nn_of(p);
    me_engine *e = nn->e;
    me_schedule_node *node = &l->combine;
    const me_module_id before = enter_layer(p, l);
    me_schedule_node_begin(nn, node, &x);
    me_tensor *y =
        me_moe_combine(nn, experts_of(l), node->inputs.items[0], l->shared);
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
    me_flow result =
        me_schedule_node_end(nn, node, 1, (me_tensor *[]){out}, &x, true);
    leave_layer(p, before);
    return result;
}

/** What a run has at hand: of the chunks, and of the layers in turn. */
typedef struct run {
    me_chunk_plan *f;
    me_chunk_plan *b;
    me_flow x;        /**< the forward's */
    me_flow gradient; /**< the backward's */
} run;

typedef me_flow forward_part(me_chunk_plan *p, me_layer_plan *l, me_flow x);

static void forward(run *r, me_layer_plan *l, forward_part *part)
{
    if (l != NULL && me_engine_is_ok(nn_of(r->f)->e)) {
        me_flow_bind(nn_of(r->f)->e, &r->x, part(r->f, l, r->x));
    }
}

static bool delays(const me_nn *nn)
{
    return nn->config->moe.delay_wgrad_compute &&
           nn->config->impl.transformer == ME_TRANSFORMER_ENGINE;
}

/** @param node  NULL: a dense layer has none there */
static void backward(run *r, me_schedule_node *node, bool has_weights)
{
    if (node == NULL) {
        return;
    }
    me_nn *nn = nn_of(r->b);
    me_microbatch(nn->e, r->b->microbatch);
    me_phase_set(nn->e, ME_PHASE_BACKWARD);
    me_flow_bind(nn->e, &r->gradient,
                 me_schedule_node_backward(nn, node, &r->gradient,
                                           has_weights && delays(nn)));
}

static void weights(run *r, me_schedule_node *node)
{
    me_nn *nn = nn_of(r->b);
    me_microbatch(nn->e, r->b->microbatch);
    me_phase_set(nn->e, ME_PHASE_BACKWARD);
    me_schedule_node_weights(nn, node);
}

/** TransformerLayerSchedulePlan.run(). @p f or @p b NULL: one of them alone. The
 *  caller's names hold what the layers begin with until they are done. */
static void run_layers(run *outer, me_layer_plan *f, me_layer_plan *b,
                       bool is_last_backward)
{
    run r = {.f = outer->f, .b = outer->b};
    ME_ASSERT(b == NULL || r.b != NULL);
    r.x = me_flow_hold(outer->x);
    r.gradient = me_flow_hold(outer->gradient);
    const bool splits_b = b != NULL && experts_of(b) != NULL;
    const bool splits_f = f != NULL && experts_of(f) != NULL;
    const bool is_early =
        b != NULL && nn_of(r.b)->config->moe.overlap_early_attention;
    backward(&r, splits_b ? &b->combine : NULL, true);
    forward(&r, f, pre_dispatch);
    backward(&r, b == NULL ? NULL : &b->mlp, true);
    forward(&r, splits_f ? f : NULL, dispatch);
    if (b != NULL) {
        weights(&r, &b->mlp);
        weights(&r, &b->combine); // of latents, by the experts
    }
    backward(&r, splits_b ? &b->dispatch : NULL, false);
    backward(&r, is_early ? &b->pre_dispatch : NULL, true);
    forward(&r, f, mlp);
    forward(&r, splits_f ? f : NULL, combine);
    backward(&r, b == NULL || is_early ? NULL : &b->pre_dispatch, true);
    if (b != NULL && !is_last_backward) {
        weights(&r, &b->pre_dispatch);
    }
    me_engine *e = nn_of(outer->f != NULL ? outer->f : outer->b)->e;
    me_flow_bind(e, &outer->x, r.x);
    me_flow_bind(e, &outer->gradient, r.gradient);
}

/** TransformerLayerSchedulePlan.release_state(). */
static void release_layer(me_engine *e, me_layer_plan *l)
{
    me_schedule_node_fini(e, &l->pre_dispatch);
    me_schedule_node_fini(e, &l->dispatch);
    me_schedule_node_fini(e, &l->mlp);
    me_schedule_node_fini(e, &l->combine);
    me_clear(e, &l->residual);
    me_clear(e, &l->dispatched_probs);
    me_clear(e, &l->shared);
}

static void preprocess(run *r)
{
    me_chunk_plan *p = r->f;
    me_nn *nn = nn_of(p);
    const me_flow none = {.count = 0};
    me_microbatch(nn->e, p->microbatch);
    me_phase_set(nn->e, ME_PHASE_FORWARD);
    me_schedule_node_begin(nn, &p->pre_process, &none);
    me_tensor *x = me_gpt_preprocess(p->gpt, &p->batch, &p->angles);
    hold(nn->e, &p->decoder_input, x);
    me_flow_bind(nn->e, &r->x,
                 me_schedule_node_end(nn, &p->pre_process, 1,
                                      (me_tensor *[]){x}, &none, false));
}

static void postprocess(run *r)
{
    me_chunk_plan *p = r->f;
    me_nn *nn = nn_of(p);
    me_microbatch(nn->e, p->microbatch);
    me_phase_set(nn->e, ME_PHASE_FORWARD);
    me_schedule_node_begin(nn, &p->post_process, &r->x);
    me_tensor *x = p->post_process.inputs.items[0];
    const me_transformer_block *decoder = &p->gpt->decoder;
    if (decoder->num_layers == 0 && decoder->has_final_layernorm) {
        x = me_make_viewless(nn->e,
                             me_norm_forward(nn, &decoder->final_layernorm, x));
    }
    me_tensor *loss = me_gpt_postprocess(p->gpt, &p->batch, x, p->angles);
    me_flow_bind(nn->e, &r->x,
                 me_schedule_node_end(nn, &p->post_process, 1,
                                      (me_tensor *[]){loss}, &r->x, false));
}

static void begin(run *r, const me_plan_hooks *hooks)
{
    if (r->f != NULL) {
        if (hooks->pre_forward != NULL) {
            hooks->pre_forward(hooks->self);
        }
        preprocess(r);
    }
    if (r->b != NULL) {
        if (hooks->pre_backward != NULL) {
            hooks->pre_backward(hooks->self);
        }
        backward(r, r->b->gpt->spec.post_process ? &r->b->post_process : NULL,
                 false);
    }
}

static me_tensor *first_of(const me_flow *flow)
{
    return flow->count == 0 ? NULL : flow->items[0];
}

static void end(run *r, me_layer_plan *last, const me_plan_hooks *hooks)
{
    if (r->f != NULL && hooks->post_forward != NULL) {
        hooks->post_forward(hooks->self, first_of(&r->x));
    }
    if (r->b != NULL && hooks->post_backward != NULL) {
        hooks->post_backward(hooks->self, first_of(&r->gradient));
    }
    if (r->b != NULL && last != NULL) {
        weights(r, &last->pre_dispatch);
        release_layer(nn_of(r->b)->e, last);
    }
    if (r->f != NULL && r->f->gpt->spec.post_process) {
        postprocess(r);
    }
    if (r->b != NULL) {
        me_engine *e = nn_of(r->b)->e;
        me_flow taken = me_flow_hold(r->gradient); // the node gives none back
        backward(r, &r->b->pre_process, false);
        me_flow_release(e, &taken);
        me_schedule_node_fini(e, &r->b->pre_process);
        me_schedule_node_fini(e, &r->b->post_process);
    }
}

me_tensor *me_chunk_plans_run(me_chunk_plan *f, me_chunk_plan *b,
                              me_tensor *gradient, const me_plan_hooks *hooks)
{
    const me_chunk_plan *one = f != NULL ? f : b;
    if (one == NULL) {
        return NULL;
    }
    me_engine *e = nn_of(one)->e;
    run r = {.f = f, .b = b};
    r.gradient = me_flow_hold(flow_of(gradient));
    begin(&r, hooks);
    const int32_t n_f = f == NULL ? 0 : f->n_layers;
    const int32_t n_b = b == NULL ? 0 : b->n_layers;
    const int32_t both = n_f < n_b ? n_f : n_b;
    me_layer_plan *last = NULL;
    for (int32_t i = 0; i < n_b && me_engine_is_ok(e); i++) {
        last = &b->layers[--b->n_left];
        run_layers(&r, f != NULL && i < both ? &f->layers[i] : NULL, last,
                   i == n_b - 1);
        if (i < n_b - 1) {
            release_layer(e, last);
        }
    }
    for (int32_t i = both; f != NULL && i < n_f && me_engine_is_ok(e); i++) {
        run_layers(&r, &f->layers[i], NULL, false);
    }
    end(&r, last, hooks);
    me_tensor *output = me_retain(f == NULL ? NULL : first_of(&r.x));
    me_flow_release(e, &r.gradient);
    me_flow_release(e, &r.x);
    return output;
}

me_chunk_plan *me_chunk_plan_create(me_gpt *gpt)
{
    me_engine *e = gpt->nn.e;
    const int32_t count = gpt->decoder.num_layers;
    me_chunk_plan *plan = me_engine_alloc(e, 1, sizeof *plan);
    me_layer_plan *layers = me_engine_alloc(e, (size_t)count, sizeof *layers);
    if (plan == NULL || layers == NULL) {
        return NULL;
    }
    *plan = (me_chunk_plan){.gpt = gpt, .layers = layers, .n_layers = count};
    for (int32_t i = 0; i < count; i++) {
        layers[i] = (me_layer_plan){.layer = &gpt->decoder.layers[i],
                                    .is_last = i == count - 1};
        layers[i].dispatch.communicates = true;
        layers[i].combine.communicates = true;
    }
    return plan;
}

void me_chunk_plan_begin(me_chunk_plan *plan, const me_batch *batch,
                         int32_t microbatch)
{
    plan->batch = *batch;
    me_retain(batch->tokens);
    me_retain(batch->labels);
    me_retain(batch->loss_mask);
    me_retain(batch->attention_mask);
    me_retain(batch->position_ids);
    plan->microbatch = microbatch;
    plan->n_left = plan->n_layers;
    me_fine_offload_begin_chunk(nn_of(plan)->e, nn_of(plan)->fine_offload,
                                plan->gpt->spec.chunk);
}

void me_chunk_plan_release(me_chunk_plan *plan)
{
    me_engine *e = nn_of(plan)->e;
    for (int32_t i = 0; i < plan->n_layers; i++) {
        release_layer(e, &plan->layers[i]);
    }
    me_schedule_node_fini(e, &plan->pre_process);
    me_schedule_node_fini(e, &plan->post_process);
    me_clear(e, &plan->batch.tokens);
    me_clear(e, &plan->batch.position_ids);
    me_clear(e, &plan->batch.attention_mask);
    me_clear(e, &plan->decoder_input);
    me_clear(e, &plan->batch.labels);
    me_clear(e, &plan->batch.loss_mask);
}
