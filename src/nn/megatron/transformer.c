/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/transformer.h"

#include "nn/megatron/backend.h"
#include "nn/megatron/cpu_offload.h"
#include "nn/megatron/cpu_offload_v1.h"
#include "nn/megatron/layer_graph.h"
#include "nn/megatron/residual.h"
#include "nn/megatron/te_fp8_state.h"
#include "ops/elementwise.h"
#include "ops/view.h"

static me_tensor *run_norm(const me_section *section, me_tensor *const *inputs)
{
    return me_norm_forward(section->nn, section->self, inputs[0]);
}

static me_tensor *run_mixer(const me_section *section, me_tensor *const *inputs)
{
    const me_sublayer *sublayer = section->self;
    const me_mixer_inputs others = {.mask = inputs[1], .angles = inputs[2]};
    return sublayer->mixer->forward(section->nn, sublayer->self, inputs[0],
                                    &others);
}

/** The mixer under te_checkpoint(), which recomputes it in FP8 as the layer
 *  does. */
static me_tensor *run_checkpointed_mixer(const me_section *section,
                                         me_tensor *const *inputs)
{
    const me_sublayer *sublayer = section->self;
    const me_fp8_state before = me_fp8_checkpoint_enter(
        section->nn, me_fp8_is_layer(section->nn, sublayer->number));
    me_tensor *y = run_mixer(section, inputs);
    me_fp8_checkpoint_exit(section->nn, &before);
    return y;
}

/** @param norms  names of the norms before and after the mixer */
static void create_sublayer(me_nn *nn, const me_transformer_layer *layer,
                            int32_t number, const char *const norms[2],
                            me_sublayer *sublayer)
{
    me_sublayer *l = sublayer;
    const me_norm_placement placement = nn->config->model.norm_placement;
    l->has_norm = placement != ME_NORMS_POST &&
                  !(me_norms_are_fused(nn) && l->mixer->can_have_norm);
    l->has_post_norm = placement != ME_NORMS_PRE;
    if (l->has_norm) {
        l->norm = me_norm_create(nn, layer->module, norms[0],
                                 nn->config->model.hidden_size);
    }
    l->self = me_engine_alloc(nn->e, 1, l->mixer->size);
    if (l->self == NULL) {
        return;
    }
    l->mixer->create(nn, layer->module, number, l->self);
    if (l->has_post_norm) { // Megatron-Bridge: TERowParallelLinearLayerNorm
        l->post_norm = me_norm_create(nn, layer->module, norms[1],
                                      nn->config->model.hidden_size);
    }
    l->norm_section = (me_section){.nn = nn, .run = run_norm, .self = &l->norm};
    l->mixer_section =
        (me_section){.nn = nn, .run = run_checkpointed_mixer, .self = l};
    l->number = number;
}

void me_transformer_layer_create(me_nn *nn, me_module_id module, int32_t number,
                                 me_transformer_layer *layer)
{
    static const char *const attention[2] = {"input_layernorm",
                                             "post_self_attn_layernorm"};
    static const char *const mlp[2] = {"pre_mlp_layernorm",
                                       "post_mlp_layernorm"};

    const bool before = me_fp8_init_enter(nn, number);
    layer->module = module;
    layer->number = number;
    me_module_set_class(nn->e, module, "TransformerLayer");
    layer->graph = me_graph_module_create(nn);
    const uint32_t first_parameter = nn->parameters->count;
    layer->attention.mixer = me_attention_mixer(nn);
    create_sublayer(nn, layer, number, attention, &layer->attention);
    layer->attention.norm_group = ME_OFFLOAD_ATTN_NORM;
    layer->mlp.norm_group = ME_OFFLOAD_MLP_NORM;
    layer->mlp.mixer = me_mlp_mixer(nn, number);
    create_sublayer(nn, layer, number, mlp, &layer->mlp);
    me_fp8_init_exit(nn, before);
    layer->mlp.keeps_norm = me_layer_graph_keeps_norm(nn, layer);
    me_layer_graph_create(nn, layer, first_parameter);
}

static void fini_sublayer(me_engine *e, const me_sublayer *sublayer)
{
    if (sublayer->self != NULL) {
        sublayer->mixer->fini(e, sublayer->self);
    }
}

void me_transformer_layer_fini(me_engine *e, me_transformer_layer *layer)
{
    fini_sublayer(e, &layer->attention);
    fini_sublayer(e, &layer->mlp);
}

/** A norm whose output is run again for the backward, or is not. */
static me_tensor *layernorm(me_nn *nn, const me_sublayer *sublayer,
                            me_tensor *x, me_output_checkpoint **checkpoint_out)
{
    const me_section *section = &sublayer->norm_section;
    *checkpoint_out = NULL;
    if (nn->config->recompute.granularity == ME_RECOMPUTE_SELECTIVE &&
        nn->config->recompute.layernorm && !sublayer->keeps_norm) {
        return me_checkpoint_output(nn, section, x, checkpoint_out);
    }
    return section->run(section, &x);
}

static me_tensor *mixer(me_nn *nn, const me_sublayer *sublayer, me_tensor *x,
                        const me_mixer_inputs *inputs)
{
    me_tensor *const all[ME_CHECKPOINT_INPUTS] = {x, inputs->mask,
                                                  inputs->angles};
    const me_recompute_config *recompute = &nn->config->recompute;
    if (recompute->granularity == ME_RECOMPUTE_SELECTIVE && recompute->mlp &&
        sublayer->mixer->has_mlp_modules) {
        me_tensor *const inputs_of_mlp[ME_CHECKPOINT_INPUTS] = {x};
        return me_checkpoint(nn, &sublayer->mixer_section, inputs_of_mlp,
                             false);
    }
    return run_mixer(&sublayer->mixer_section, all);
}

/** _forward_attention() and _forward_mlp(): x + dropout(mixer(norm(x))). */
static me_tensor *sublayer(me_nn *nn, const me_sublayer *sublayer, me_tensor *x,
                           const me_mixer_inputs *inputs)
{
    const me_frame frame = me_enter(nn->e);
    me_output_checkpoint *c = NULL;
    me_offload_group group = {.is_on = false};
    me_tensor *n = x;
    if (sublayer->has_norm) {
        me_tensor *named =
            me_offload_enter(nn, &group, sublayer->norm_group, x);
        n = layernorm(nn, sublayer, named, &c);
        me_offload_exit(nn, &group);
        // Of the MLP's norm the residual keeps the name from before.
        x = sublayer->norm_group == ME_OFFLOAD_ATTN_NORM ? named : x;
    }
    me_tensor *y = mixer(nn, sublayer, n, inputs);
    me_checkpoint_discard(c, y);
    if (sublayer->has_post_norm) {
        y = me_rebind(nn->e, y, me_norm_forward(nn, &sublayer->post_norm, y));
    }
    me_tensor *out =
        me_bias_dropout_add(nn, y, sublayer->mixer->bias(sublayer->self), x);
    out = me_rebind(nn->e, out, me_offload_commit(nn, &group, out, 1, &x));
    if (nn->is_evaluating && sublayer->norm_group == ME_OFFLOAD_MLP_NORM) {
        out = me_viewless_residual(nn, out);
    }
    if (group.is_on && group.module == ME_OFFLOAD_MLP_NORM) {
        out = me_rebind(nn->e, out, me_make_viewless(nn->e, out));
    }
    return me_leave(nn->e, frame, out); // (s, b, h)
}

me_tensor *me_layer_attention(me_nn *nn, const me_transformer_layer *layer,
                              me_tensor *x, const me_mixer_inputs *inputs)
{
    return sublayer(nn, &layer->attention, x, inputs);
}

me_tensor *me_layer_mlp(me_nn *nn, const me_transformer_layer *layer,
                        me_tensor *x, const me_mixer_inputs *inputs)
{
    return sublayer(nn, &layer->mlp, x, inputs);
}

me_tensor *me_layer_mlp_norm(me_nn *nn, const me_transformer_layer *layer,
                             me_tensor **x, me_offload_group *group,
                             me_output_checkpoint **checkpoint_out)
{
    *x = me_offload_enter(nn, group, layer->mlp.norm_group, *x);
    me_tensor *y = layernorm(nn, &layer->mlp, *x, checkpoint_out);
    me_offload_exit(nn, group);
    return y;
}

me_tensor *me_layer_add_residual(me_nn *nn, me_tensor *x, me_tensor *residual)
{
    return me_bias_dropout_add(nn, x, NULL, residual);
}

/** TransformerLayer.forward. */
static me_tensor *run_layer(me_nn *nn, const me_transformer_layer *layer,
                            me_tensor *const *inputs)
{
    const me_frame frame = me_enter(nn->e);
    const me_mixer_inputs others = {.mask = inputs[1], .angles = inputs[2]};
    me_tensor *y = sublayer(nn, &layer->attention, inputs[0], &others);
    y = sublayer(nn, &layer->mlp, y, &others);
    return me_leave(nn->e, frame, y);
}

/** Transformer Engine's graphs are of training alone, from when they are made. */
static bool runs_graph(const me_nn *nn, const me_transformer_layer *layer)
{
    return layer->graph != NULL &&
           (nn->config->train.cuda_graph_impl != ME_CUDA_GRAPH_TE ||
            (nn->graphs->is_created && !nn->is_evaluating));
}

me_tensor *me_transformer_layer_forward(me_nn *nn,
                                        const me_transformer_layer *layer,
                                        me_tensor *x, me_tensor *mask,
                                        me_tensor *angles)
{
    me_engine *e = nn->e;
    if (!me_engine_is_ok(e)) {
        return me_none(e);
    }
    const me_module_id before = me_module_current(e);
    me_module_enter(e, layer->module);
    const me_frame frame = me_enter(e);
    x = me_pre_forward(layer->hooks, x);
    me_tensor *const inputs[ME_GRAPH_INPUTS] = {x, mask, angles};
    me_tensor *y = !runs_graph(nn, layer)
                       ? run_layer(nn, layer, inputs)
                       : me_layer_graph_forward(nn, layer, inputs);
    y = me_post_forward(layer->hooks, y);
    me_leave(e, frame, y);
    me_module_leave(e);
    me_module_resume(e, before);
    return y;
}

/** `for layer in section: x = layer(x)`; inputs: x, mask and angles. */
static me_tensor *run_section(const me_section *section,
                              me_tensor *const *inputs)
{
    me_nn *nn = section->nn;
    const me_transformer_block *block = section->self;
    const me_frame frame = me_enter(nn->e);
    me_tensor *x = inputs[0];
    for (int32_t i = 0; i < section->count; i++) {
        const me_transformer_layer *layer = &block->layers[section->first + i];
        const me_fp8_state before =
            me_fp8_enter(nn, ME_FP8_CONTEXT_INNER, layer->number);
        me_cpu_offload_enter(nn->e, block->offload);
        me_cpu_offload_v1_enter(nn->e, block->offload_v1);
        me_tensor *y =
            me_transformer_layer_forward(nn, layer, x, inputs[1], inputs[2]);
        me_cpu_offload_exit(nn->e, block->offload, y);
        y = me_rebind(nn->e, y,
                      me_cpu_offload_v1_exit(nn->e, block->offload_v1, y));
        me_fp8_exit(nn, &before);
        x = i == 0 ? y : me_rebind(nn->e, x, y);
    }
    return me_leave(nn->e, frame, x);
}

/** A section under te_checkpoint(). */
static me_tensor *run_checkpointed(const me_section *section,
                                   me_tensor *const *inputs)
{
    const me_fp8_state before = me_fp8_checkpoint_enter(
        section->nn, me_fp8_has_outer_context(section->nn));
    me_tensor *y = run_section(section, inputs);
    me_fp8_checkpoint_exit(section->nn, &before);
    return y;
}

/** get_cpu_offload_context(), by either code path. */
static void create_offload(me_nn *nn, me_transformer_block *block)
{
    const me_offload_config *o = &nn->config->offload;
    const int32_t layers = block->num_layers;
    block->offload =
        me_cpu_offload_create(nn->e, layers, o->is_v1 ? 0 : o->num_layers);
    block->offload_v1 =
        me_cpu_offload_v1_create(nn->e, layers, o->is_v1 ? o->num_layers : 0);
}

void me_transformer_block_create(me_nn *nn, me_module_id parent,
                                 int32_t first_layer, int32_t num_layers,
                                 bool has_final_layernorm,
                                 me_transformer_block *block)
{
    me_engine *e = nn->e;
    const size_t count = num_layers < 0 ? 0 : (size_t)num_layers;
    *block = (me_transformer_block){
        .module = me_module_add_as(e, parent, "decoder", "TransformerBlock"),
        .num_layers = num_layers,
        .has_final_layernorm = has_final_layernorm,
    };
    block->layers = me_engine_alloc(e, count, sizeof *block->layers);
    block->sections = me_engine_alloc(e, count, sizeof *block->sections);
    if (!me_engine_is_ok(e)) {
        block->num_layers = 0;
        return;
    }
    create_offload(nn, block);
    const me_module_id layers =
        me_module_add_as(e, block->module, "layers", "ModuleList");
    for (int32_t i = 0; i < num_layers; i++) {
        me_transformer_layer_create(
            nn, me_module_add_index(e, layers, (uint32_t)(first_layer + i)),
            first_layer + i, &block->layers[i]);
        block->sections[i] = (me_section){
            .nn = nn, .run = run_checkpointed, .self = block, .first = i};
    }
    if (has_final_layernorm) {
        block->final_layernorm = me_norm_create_final(
            nn, block->module, nn->config->model.hidden_size);
    }
}

void me_transformer_block_fini(me_engine *e, me_transformer_block *block)
{
    for (int32_t i = 0; i < block->num_layers; i++) {
        me_transformer_layer_fini(e, &block->layers[i]);
    }
    me_cpu_offload_fini(e, block->offload);
    me_cpu_offload_v1_fini(e, block->offload_v1);
    me_clear(e, &block->input_tensor);
}

/** Layers of the section that begins at layer @p first. */
static int32_t section_length(const me_config *config,
                              const me_transformer_block *block, int32_t first)
{
    const int32_t left = block->num_layers - first;
    if (config->recompute.method == ME_RECOMPUTE_BLOCK) {
        return 1;
    }
    return left < config->recompute.num_layers ? left
                                               : config->recompute.num_layers;
}

/** TransformerBlock._checkpointed_forward. */
static me_tensor *run_recomputed(me_nn *nn, me_transformer_block *block,
                                 me_tensor *const inputs[ME_CHECKPOINT_INPUTS])
{
    const me_config *config = nn->config;
    const bool distributes = config->recompute.distribute_saved_activations &&
                             !config->parallel.sequence;
    const me_frame frame = me_enter(nn->e);
    me_tensor *x = inputs[0];
    for (int32_t i = 0; i < block->num_layers;) {
        me_section *section = &block->sections[i];
        section->count = section_length(config, block, i);
        me_tensor *const now[ME_CHECKPOINT_INPUTS] = {x, inputs[1], inputs[2],
                                                      NULL};
        const bool is_recomputed =
            config->recompute.method == ME_RECOMPUTE_UNIFORM ||
            i < config->recompute.num_layers;
        me_tensor *y = is_recomputed
                           ? me_checkpoint(nn, section, now, distributes)
                           : run_section(section, now);
        x = x == inputs[0] ? y : me_rebind(nn->e, x, y);
        i += section->count;
    }
    return me_leave(nn->e, frame, x);
}

me_tensor *me_transformer_block_forward(me_nn *nn, me_transformer_block *block,
                                        me_tensor *x, me_tensor *mask,
                                        me_tensor *angles)
{
    me_engine *e = nn->e;
    if (!me_engine_is_ok(e)) {
        return me_none(e);
    }
    me_module_enter(e, block->module);
    const me_frame frame = me_enter(e);
    me_tensor *const inputs[ME_CHECKPOINT_INPUTS] = {me_make_viewless(e, x),
                                                     mask, angles, NULL};
    const me_section all = {
        .nn = nn, .self = block, .count = block->num_layers};
    const me_fp8_state before = me_fp8_enter(nn, ME_FP8_CONTEXT_OUTER, -1);
    me_tensor *y = nn->config->recompute.granularity == ME_RECOMPUTE_FULL
                       ? run_recomputed(nn, block, inputs)
                       : run_section(&all, inputs);
    me_fp8_exit(nn, &before);
    if (block->has_final_layernorm) {
        y = me_rebind_own(e, y, inputs[0],
                          me_norm_forward(nn, &block->final_layernorm, y));
        y = me_make_viewless(e, y);
    }
    if (!block->pre_process && !block->has_final_layernorm &&
        block->num_layers == 0) {
        y = me_clone(e, y); // else the stage's output were its input
    }
    me_leave(e, frame, y);
    me_module_leave(e);
    return y;
}
