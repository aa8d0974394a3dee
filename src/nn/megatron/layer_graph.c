/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/layer_graph.h"

#include "nn/megatron/mixer.h"
#include "nn/megatron/moe.h"

/** Of one layer. */
typedef struct parts {
    bool attention;
    bool mlp;    /**< what comes after attention, experts or not */
    bool router; /**< of experts what comes before their tokens leave */
} parts;

static parts captured_parts(const me_nn *nn, const me_transformer_layer *layer)
{
    const me_train_config *t = &nn->config->train;
    const bool has_experts = layer->mlp.mixer->has_experts;
    return (parts){.attention = t->cuda_graph_attention,
                   .mlp =
                       has_experts ? t->cuda_graph_experts : t->cuda_graph_mlp,
                   .router = has_experts && t->cuda_graph_router};
}

bool me_layer_graph_keeps_norm(const me_nn *nn,
                               const me_transformer_layer *layer)
{
    const me_moe_options *m = &nn->config->moe;
    const bool sorts =
        nn->config->train.cuda_graph_preprocess &&
        (m->token_dispatcher == ME_DISPATCHER_ALL_TO_ALL || m->latent_size > 0);
    return captured_parts(nn, layer).router &&
           !(sorts && !m->shared_expert_overlap);
}

/** Do operations run in place of a graph's? */
static bool is_replay(const me_engine *e)
{
    return me_context_now(e)->mempool == ME_MEMPOOL_REPLAY;
}

/** _forward_mlp() up to where the experts' part is captured: the norm is run again
 *  once the gradient of any of what goes to the experts is there. The residual is
 *  the last output. */
static void capture_router(me_nn *nn, const me_transformer_layer *layer,
                           me_tensor *x, me_graph_outputs *outputs_out)
{
    me_offload_group group = {.is_on = false};
    me_output_checkpoint *c = NULL;
    me_tensor *hidden = x;
    if (!is_replay(nn->e)) {
        me_assign(nn->e, &layer->graph->residual, x); // self.mlp_norm_manager
    }
    me_tensor *normed = me_layer_mlp_norm(nn, layer, &hidden, &group, &c);
    me_moe_capture(nn, layer->mlp.self, normed, outputs_out);
    for (uint32_t i = 0; c != NULL && i < outputs_out->count; i++) {
        if (outputs_out->items[i]->grad_fn != NULL) {
            me_checkpoint_discard(c, outputs_out->items[i]);
        }
    }
    outputs_out->items[outputs_out->count++] = hidden;
}

static void run_captured(me_nn *nn, const void *self,
                         me_tensor *const inputs[ME_GRAPH_INPUTS],
                         me_graph_outputs *outputs_out)
{
    const me_transformer_layer *layer = self;
    const parts captured = captured_parts(nn, layer);
    const me_mixer_inputs others = {.mask = inputs[1], .angles = inputs[2]};
    const me_frame frame = me_enter(nn->e);
    me_tensor *y = inputs[0];
    if (captured.attention) {
        y = me_layer_attention(nn, layer, y, &others);
    }
    if (captured.mlp) {
        y = me_layer_mlp(nn, layer, y, &others);
    }
    *outputs_out = (me_graph_outputs){.items = {y}, .count = 1};
    if (captured.router && me_engine_is_ok(nn->e)) {
        capture_router(nn, layer, y, outputs_out);
    }
    me_leave_with(nn->e, frame, outputs_out->count, outputs_out->items);
}

void me_layer_graph_create(me_nn *nn, me_transformer_layer *layer,
                           uint32_t first_parameter)
{
    const parts captured = captured_parts(nn, layer);
    if (layer->graph == NULL) {
        return;
    }
    if (!captured.attention && !captured.mlp && !captured.router) {
        layer->graph = NULL; // _layer_is_graphable()
        return;
    }
    layer->graph->run = run_captured;
    layer->graph->self = layer;
    layer->graph->module = layer->module;
    layer->graph->number = layer->number;
    layer->graph->takes_mask = captured.attention;
    layer->graph->first_parameter = first_parameter;
    layer->graph->end_parameter = nn->parameters->count;
}

/** _te_cuda_graph_replay_impl() behind a graph up to the router. */
static me_tensor *resume(me_nn *nn, const me_transformer_layer *layer,
                         const me_graph_outputs *outputs)
{
    me_tensor *residual = outputs->items[outputs->count - 1];
    me_graph_outputs of_experts = *outputs;
    of_experts.count--;
    const me_frame frame = me_enter(nn->e);
    me_tensor *y = me_moe_resume(nn, layer->mlp.self, &of_experts);
    me_tensor *out = me_layer_add_residual(nn, y, residual);
    me_clear(nn->e, &layer->graph->residual); // self.mlp_norm_manager = None
    return me_leave(nn->e, frame, out);
}

me_tensor *me_layer_graph_forward(me_nn *nn, const me_transformer_layer *layer,
                                  me_tensor *const inputs[ME_GRAPH_INPUTS])
{
    const me_frame frame = me_enter(nn->e);
    const parts captured = captured_parts(nn, layer);
    const me_mixer_inputs others = {.mask = inputs[1], .angles = inputs[2]};
    me_tensor *now = inputs[0];
    if (!captured.attention) {
        now = me_layer_attention(nn, layer, now, &others);
    }
    me_tensor *const of_graph[ME_GRAPH_INPUTS] = {
        now, captured.attention ? inputs[1] : NULL,
        captured.attention ? inputs[2] : NULL};
    me_graph_outputs outputs;
    const bool has_experts = layer->mlp.mixer->has_experts &&
                             (captured.mlp || captured.router) &&
                             nn->graphs->is_created;
    me_dispatcher_stash stash;
    if (has_experts) {
        me_moe_stash(layer->mlp.self, &stash);
    }
    me_graph_module_forward(layer->graph, of_graph, &outputs);
    if (has_experts) {
        me_moe_unstash(nn, layer->mlp.self, &stash);
    }
    now = outputs.items[0];
    if (captured.router) {
        now = resume(nn, layer, &outputs);
    } else if (!captured.mlp) {
        now = me_layer_mlp(nn, layer, now, &others);
    }
    return me_leave(nn->e, frame, now);
}
