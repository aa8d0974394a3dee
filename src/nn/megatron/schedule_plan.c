/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/schedule_plan.h"

#include "base/assert.h"
#include "nn/megatron/fine_offload.h"
#include "nn/megatron/schedule_layer.h"
#include "nn/megatron/te_fp8_state.h"
#include "ops/view.h"
#include "tensor/launch.h"

static me_nn *nn_of(const me_chunk_plan *plan)
{
    return &plan->gpt->nn;
}

static me_flow flow_of(me_tensor *x)
{
    return (me_flow){.count = x == NULL ? 0 : 1, .items = {x}};
}

/** What a run has at hand: of the chunks, and of the layers in turn. */
typedef struct run {
    me_chunk_plan *f;
    me_chunk_plan *b;
    me_flow x;        /**< the forward's */
    me_flow gradient; /**< the backward's */
} run;

typedef me_flow forward_part(me_chunk_plan *p, me_layer_plan *l, me_flow x);

/** In the layer's own context of FP8; depths count from 0 as layers do there. */
static void forward(run *r, me_layer_plan *l, forward_part *part)
{
    if (l == NULL || !me_engine_is_ok(nn_of(r->f)->e)) {
        return;
    }
    me_nn *nn = nn_of(r->f);
    const int32_t number = l->mtp == NULL
                               ? l->layer->number
                               : (int32_t)(l->mtp - r->f->gpt->mtp.layers);
    const me_fp8_state before = me_fp8_enter(nn, ME_FP8_CONTEXT_INNER, number);
    me_flow_bind(nn->e, &r->x, part(r->f, l, r->x));
    me_fp8_exit(nn, &before);
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
    const bool splits_b = b != NULL && me_layer_plan_experts(b) != NULL;
    const bool splits_f = f != NULL && me_layer_plan_experts(f) != NULL;
    const bool is_early =
        b != NULL && nn_of(r.b)->config->moe.overlap_early_attention;
    const bool predicts = f != NULL && f->mtp != NULL;
    backward(&r, b != NULL && b->mtp != NULL ? &b->mtp_post_process : NULL,
             false);
    backward(&r, splits_b ? &b->combine : NULL, true);
    forward(&r, f, me_layer_plan_pre_dispatch);
    backward(&r, b == NULL ? NULL : &b->mlp, true);
    forward(&r, splits_f ? f : NULL, me_layer_plan_dispatch);
    if (b != NULL) {
        weights(&r, &b->mlp);
        weights(&r, &b->combine); // of latents, by the experts
    }
    backward(&r, splits_b ? &b->dispatch : NULL, false);
    backward(&r, is_early ? &b->pre_dispatch : NULL, true);
    forward(&r, f, me_layer_plan_mlp);
    forward(&r, splits_f ? f : NULL, me_layer_plan_combine);
    backward(&r, b == NULL || is_early ? NULL : &b->pre_dispatch, true);
    forward(&r, predicts ? f : NULL, me_layer_plan_mtp_post_process);
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
    me_schedule_node_fini(e, &l->mtp_post_process);
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
    p->decoder_input = me_retain(x);
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
    me_tensor *loss = me_gpt_postprocess(p->gpt, &p->batch, x, NULL, false);
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

/** What it receives is of the stream of communication, on which it is called. */
static void post_forward(run *r, const me_plan_hooks *hooks)
{
    me_engine *e = nn_of(r->f)->e;
    const uint8_t stream = me_stream_set(e, ME_STREAM_DISPATCH);
    hooks->post_forward(hooks->self, first_of(&r->x));
    me_stream_set(e, stream);
}

static void end(run *r, me_layer_plan *last, const me_plan_hooks *hooks)
{
    if (r->f != NULL && hooks->post_forward != NULL) {
        post_forward(r, hooks);
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

/** me_chunk_plans_run() within the context of FP8 that is around all of it. */
static me_tensor *run_plans(me_chunk_plan *f, me_chunk_plan *b,
                            me_tensor *gradient, const me_plan_hooks *hooks)
{
    me_engine *e = nn_of(f != NULL ? f : b)->e;
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

me_tensor *me_chunk_plans_run(me_chunk_plan *f, me_chunk_plan *b,
                              me_tensor *gradient, const me_plan_hooks *hooks)
{
    const me_chunk_plan *one = f != NULL ? f : b;
    if (one == NULL) {
        return NULL;
    }
    me_nn *nn = nn_of(one);
    const me_fp8_state before = me_fp8_enter(nn, ME_FP8_CONTEXT_OUTER, -1);
    me_tensor *output = run_plans(f, b, gradient, hooks);
    me_fp8_exit(nn, &before);
    return output;
}

me_chunk_plan *me_chunk_plan_create(me_gpt *gpt)
{
    me_engine *e = gpt->nn.e;
    const int32_t n_decoder = gpt->decoder.num_layers;
    const int32_t count = n_decoder + gpt->mtp.num_layers;
    me_chunk_plan *plan = me_engine_alloc(e, 1, sizeof *plan);
    me_layer_plan *layers = me_engine_alloc(e, (size_t)count, sizeof *layers);
    if (plan == NULL || layers == NULL) {
        return NULL;
    }
    *plan = (me_chunk_plan){.gpt = gpt, .layers = layers, .n_layers = count};
    for (int32_t i = 0; i < count; i++) {
        const me_mtp_layer *mtp =
            i < n_decoder ? NULL : &gpt->mtp.layers[i - n_decoder];
        layers[i] = (me_layer_plan){
            .layer =
                mtp == NULL ? &gpt->decoder.layers[i] : &mtp->mtp_model_layer,
            .mtp = mtp,
            .is_last = i == n_decoder - 1,
        };
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
    me_clear(e, &plan->decoder_hidden);
    me_clear(e, &plan->batch.labels);
    me_clear(e, &plan->batch.loss_mask);
}
