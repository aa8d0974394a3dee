/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/transformer.h"

#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "ops/view.h"
#include "tensor/launch.h"

static bool is_moe_layer(const me_nn *nn, int32_t number)
{
    const me_moe_options *c = &nn->config->moe;
    return c->num_experts > 0 && number >= 0 && nn->is_moe_layer[number];
}

static void create_mlp(me_nn *nn, int32_t number, me_transformer_layer *l)
{
    const me_module_id module = me_module_add(nn->e, l->module, "mlp");
    if (is_moe_layer(nn, number)) {
        l->moe = me_engine_alloc(nn->e, 1, sizeof *l->moe);
        if (l->moe != NULL) {
            me_moe_layer_create(nn, module, number, l->moe);
        }
        return;
    }
    const me_mlp_spec spec = {.ffn_hidden_size =
                                  nn->config->model.ffn_hidden_size};
    me_mlp_create(nn, module, &spec, &l->mlp);
}

static me_tensor *run_norm(const me_section *section, me_tensor *const *inputs)
{
    return me_norm_forward(section->nn, section->self, inputs[0]);
}

static me_tensor *run_mlp(const me_section *section, me_tensor *const *inputs)
{
    const me_transformer_layer *layer = section->self;
    return me_mlp_forward(section->nn, &layer->mlp, inputs[0], NULL);
}

void me_transformer_layer_create(me_nn *nn, me_module_id module, int32_t number,
                                 me_transformer_layer *layer)
{
    const uint64_t h = nn->config->model.hidden_size;
    me_transformer_layer *l = layer;
    l->module = module;
    l->input_layernorm = me_norm_create(nn, l->module, "input_layernorm", h);
    if (nn->config->model.multi_latent_attention) {
        me_multi_latent_attention_create(nn, l->module, &l->mla);
    } else {
        me_attention_create(nn, l->module, &l->self_attention);
    }
    l->pre_mlp_layernorm =
        me_norm_create(nn, l->module, "pre_mlp_layernorm", h);
    create_mlp(nn, number, layer);
    layer->input_layernorm_section = (me_section){
        .nn = nn, .run = run_norm, .self = &layer->input_layernorm};
    layer->pre_mlp_layernorm_section = (me_section){
        .nn = nn, .run = run_norm, .self = &layer->pre_mlp_layernorm};
    layer->mlp_section = (me_section){.nn = nn, .run = run_mlp, .self = layer};
}

void me_transformer_layer_fini(me_engine *e, me_transformer_layer *layer)
{
    me_multi_latent_attention_fini(e, &layer->mla);
    if (layer->moe != NULL) {
        me_moe_layer_fini(e, layer->moe);
    }
}

/** residual + dropout(x + bias); the tape is on even under recomputation. */
static me_tensor *bias_dropout_add(me_nn *nn, me_tensor *x, me_parameter *bias,
                                   me_tensor *residual)
{
    me_engine *e = nn->e;
    const double p = nn->config->model.hidden_dropout;
    const bool grad = me_grad_enable(e, true);
    const me_frame frame = me_enter(e);
    me_tensor *out = NULL;
    me_launch_host(e, ME_HOST_RESIDUAL);
    if (nn->config->train.bias_dropout_fusion) {
        out = me_fused_bias_dropout_add(
            e, x, bias == NULL ? NULL : bias->tensor, residual, p);
    } else {
        if (bias != NULL) {
            x = me_add(e, x, bias->tensor);
        }
        me_tensor *dropped = me_dropout(e, x, p);
        out = me_add(e, residual, dropped);
        if (dropped != x) {
            me_drop(e, dropped);
        }
    }
    me_leave(e, frame, out);
    me_grad_enable(e, grad);
    return out;
}

/** A norm whose output is run again for the backward, or is not. */
static me_tensor *layernorm(me_nn *nn, const me_section *section, me_tensor *x,
                            me_output_checkpoint **checkpoint_out)
{
    *checkpoint_out = NULL;
    if (nn->config->recompute.granularity == ME_RECOMPUTE_SELECTIVE &&
        nn->config->recompute.layernorm) {
        return me_checkpoint_output(nn, section, x, checkpoint_out);
    }
    return section->run(section, &x);
}

static me_tensor *attention_part(me_nn *nn, const me_transformer_layer *layer,
                                 me_tensor *x, me_tensor *mask,
                                 me_tensor *angles)
{
    const me_frame frame = me_enter(nn->e);
    const bool is_latent = nn->config->model.multi_latent_attention;
    const me_attention *attention = &layer->self_attention;
    me_output_checkpoint *c = NULL;
    me_tensor *n = layernorm(nn, &layer->input_layernorm_section, x, &c);
    me_tensor *y =
        is_latent ? me_multi_latent_attention_forward(nn, &layer->mla, n, mask)
                  : me_attention_forward(nn, attention, n, mask, angles);
    me_checkpoint_discard(c, y);
    const me_linear *projection =
        is_latent ? &layer->mla.linear_proj : &attention->linear_proj;
    me_tensor *out = bias_dropout_add(nn, y, projection->bias, x);
    return me_leave(nn->e, frame, out); // (s, b, h)
}

static me_tensor *run_or_checkpoint_mlp(me_nn *nn,
                                        const me_transformer_layer *layer,
                                        me_tensor *x)
{
    if (nn->config->recompute.granularity == ME_RECOMPUTE_SELECTIVE &&
        nn->config->recompute.mlp) {
        me_tensor *const inputs[ME_CHECKPOINT_INPUTS] = {x};
        return me_checkpoint(nn, &layer->mlp_section, inputs, false);
    }
    return me_mlp_forward(nn, &layer->mlp, x, NULL);
}

static me_tensor *mlp_part(me_nn *nn, const me_transformer_layer *layer,
                           me_tensor *x)
{
    const me_frame frame = me_enter(nn->e);
    me_output_checkpoint *c = NULL;
    me_tensor *n = layernorm(nn, &layer->pre_mlp_layernorm_section, x, &c);
    me_tensor *y = layer->moe != NULL ? me_moe_layer_forward(nn, layer->moe, n)
                                      : run_or_checkpoint_mlp(nn, layer, n);
    me_checkpoint_discard(c, y);
    me_tensor *out = bias_dropout_add(nn, y, layer->mlp.linear_fc2.bias, x);
    return me_leave(nn->e, frame, out); // (s, b, h)
}

/** TransformerLayer.forward. */
static me_tensor *run_layer(me_nn *nn, const me_transformer_layer *layer,
                            me_tensor *x, me_tensor *mask, me_tensor *angles)
{
    const me_frame frame = me_enter(nn->e);
    me_tensor *y = attention_part(nn, layer, x, mask, angles);
    y = mlp_part(nn, layer, y);
    return me_leave(nn->e, frame, y);
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
    me_tensor *y = run_layer(nn, layer, x, mask, angles);
    me_post_forward(layer->hooks, y);
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
        me_tensor *y =
            me_transformer_layer_forward(nn, layer, x, inputs[1], inputs[2]);
        x = i == 0 ? y : me_rebind(nn->e, x, y);
    }
    return me_leave(nn->e, frame, x);
}

void me_transformer_block_create(me_nn *nn, me_module_id parent,
                                 int32_t first_layer, int32_t num_layers,
                                 bool has_final_layernorm,
                                 me_transformer_block *block)
{
    me_engine *e = nn->e;
    const size_t count = num_layers < 0 ? 0 : (size_t)num_layers;
    *block = (me_transformer_block){
        .module = me_module_add(e, parent, "decoder"),
        .num_layers = num_layers,
        .has_final_layernorm = has_final_layernorm,
    };
    block->layers = me_engine_alloc(e, count, sizeof *block->layers);
    block->sections = me_engine_alloc(e, count, sizeof *block->sections);
    if (!me_engine_is_ok(e)) {
        block->num_layers = 0;
        return;
    }
    const me_module_id layers = me_module_add(e, block->module, "layers");
    for (int32_t i = 0; i < num_layers; i++) {
        me_transformer_layer_create(
            nn, me_module_add_index(e, layers, (uint32_t)(first_layer + i)),
            first_layer + i, &block->layers[i]);
        block->sections[i] = (me_section){
            .nn = nn, .run = run_section, .self = block, .first = i};
    }
    if (has_final_layernorm) {
        block->final_layernorm =
            me_norm_create(nn, block->module, "final_layernorm",
                           nn->config->model.hidden_size);
    }
}

void me_transformer_block_fini(me_engine *e, me_transformer_block *block)
{
    for (int32_t i = 0; i < block->num_layers; i++) {
        me_transformer_layer_fini(e, &block->layers[i]);
    }
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
    me_tensor *y = nn->config->recompute.granularity == ME_RECOMPUTE_FULL
                       ? run_recomputed(nn, block, inputs)
                       : run_section(&all, inputs);
    if (block->has_final_layernorm) {
        y = me_norm_forward(nn, &block->final_layernorm, y);
    }
    if (!block->pre_process && !block->has_final_layernorm &&
        block->num_layers == 0) {
        y = me_clone(e, y); // else the stage's output were its input
    }
    me_leave(e, frame, y);
    me_module_leave(e);
    return y;
}
