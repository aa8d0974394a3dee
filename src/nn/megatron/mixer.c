/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/mixer.h"

#include "nn/megatron/attention.h"
#include "nn/megatron/backend.h"
#include "nn/megatron/mlp.h"
#include "nn/megatron/moe.h"
#include "nn/megatron/multi_latent_attention.h"

static void fini_attention(me_engine *e, void *self)
{
    me_attention *attention = self;
    me_core_attention_fini(e, &attention->core_attention);
}

static void fini_mlp(me_engine *e, void *self)
{
    (void)e;
    (void)self; // parameters alone
}

static me_parameter *has_no_bias(const void *self)
{
    (void)self;
    return NULL;
}

static void create_attention(me_nn *nn, me_module_id parent, int32_t number,
                             void *self)
{
    me_attention_create(nn, parent, number, self);
}

static me_tensor *run_attention(me_nn *nn, void *self, me_tensor *x,
                                const me_mixer_inputs *inputs)
{
    return me_attention_forward(nn, self, x, inputs->mask, inputs->angles);
}

static me_parameter *attention_bias(const void *self)
{
    const me_attention *attention = self;
    return attention->linear_proj.bias;
}

static const me_core_attention *core_of_attention(const void *self)
{
    const me_attention *attention = self;
    return &attention->core_attention;
}

static void create_latent_attention(me_nn *nn, me_module_id parent,
                                    int32_t number, void *self)
{
    me_multi_latent_attention_create(nn, parent, number, self);
}

static me_tensor *run_latent_attention(me_nn *nn, void *self, me_tensor *x,
                                       const me_mixer_inputs *inputs)
{
    return me_multi_latent_attention_forward(nn, self, x, inputs->mask);
}

static me_parameter *latent_attention_bias(const void *self)
{
    const me_multi_latent_attention *attention = self;
    return attention->linear_proj.bias;
}

static const me_core_attention *core_of_latent_attention(const void *self)
{
    const me_multi_latent_attention *attention = self;
    return &attention->core_attention;
}

static void fini_latent_attention(me_engine *e, void *self)
{
    me_multi_latent_attention_fini(e, self);
}

/** `use_te_op_fuser` of megatron/training/models/gpt.py: specifications of models
 *  with experts, and of multi-token prediction, are not told of it. */
static bool is_fused(const me_nn *nn, int32_t number)
{
    return nn->config->train.te_op_fuser && nn->config->moe.num_experts == 0 &&
           number < nn->config->model.num_layers &&
           me_backend_of(nn)->fused_mlp != NULL;
}

static void create_mlp(me_nn *nn, me_module_id parent, int32_t number,
                       void *self)
{
    const bool has_norm = me_norms_are_fused(nn);
    const me_mlp_spec spec = {
        .ffn_hidden_size = nn->config->model.ffn_hidden_size,
        .has_norm = has_norm,
        .is_fused = has_norm && is_fused(nn, number),
    };
    me_mlp_create(nn, me_module_add_as(nn->e, parent, "mlp", "MLP"), &spec,
                  self);
}

static me_tensor *run_mlp(me_nn *nn, void *self, me_tensor *x,
                          const me_mixer_inputs *inputs)
{
    (void)inputs;
    return me_mlp_forward(nn, self, x, NULL);
}

static me_parameter *mlp_bias(const void *self)
{
    const me_mlp *mlp = self;
    return mlp->linear_fc2.bias;
}

static void create_experts(me_nn *nn, me_module_id parent, int32_t number,
                           void *self)
{
    me_moe_layer_create(nn, me_module_add_as(nn->e, parent, "mlp", "MoELayer"),
                        number, self);
}

static me_tensor *run_experts(me_nn *nn, void *self, me_tensor *x,
                              const me_mixer_inputs *inputs)
{
    (void)inputs;
    return me_moe_layer_forward(nn, self, x);
}

static void fini_experts(me_engine *e, void *self)
{
    me_moe_layer_fini(e, self);
}

static const me_mixer attention_mixer = {
    .size = sizeof(me_attention),
    .can_have_norm = true,
    .create = create_attention,
    .forward = run_attention,
    .bias = attention_bias,
    .core_attention = core_of_attention,
    .fini = fini_attention,
};

static const me_mixer latent_attention_mixer = {
    .size = sizeof(me_multi_latent_attention),
    .create = create_latent_attention,
    .forward = run_latent_attention,
    .bias = latent_attention_bias,
    .core_attention = core_of_latent_attention,
    .fini = fini_latent_attention,
};

/** With one projection down, the only reader of the norm before it. */
static const me_mixer fused_latent_attention_mixer = {
    .size = sizeof(me_multi_latent_attention),
    .can_have_norm = true,
    .create = create_latent_attention,
    .forward = run_latent_attention,
    .bias = latent_attention_bias,
    .core_attention = core_of_latent_attention,
    .fini = fini_latent_attention,
};

static const me_mixer mlp_mixer = {
    .size = sizeof(me_mlp),
    .can_have_norm = true,
    .has_mlp_modules = true,
    .create = create_mlp,
    .forward = run_mlp,
    .bias = mlp_bias,
    .fini = fini_mlp,
};

static const me_mixer experts_mixer = {
    .size = sizeof(me_moe_layer),
    .has_experts = true,
    .create = create_experts,
    .forward = run_experts,
    .bias = has_no_bias,
    .fini = fini_experts,
};

const me_mixer *me_attention_mixer(const me_nn *nn)
{
    const me_model_config *c = &nn->config->model;
    if (!c->multi_latent_attention) {
        return &attention_mixer;
    }
    return c->mla_down_proj_fusion ? &fused_latent_attention_mixer
                                   : &latent_attention_mixer;
}

const me_mixer *me_mlp_mixer(const me_nn *nn, int32_t number)
{
    const int32_t last = nn->config->model.num_layers - 1;
    const bool has_experts = nn->config->moe.num_experts > 0 &&
                             nn->is_moe_layer[number < last ? number : last];
    return has_experts ? &experts_mixer : &mlp_mixer;
}
