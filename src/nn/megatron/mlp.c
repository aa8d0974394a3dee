/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/mlp.h"

#include "nn/megatron/backend.h"
#include "ops/elementwise.h"
#include "ops/op_by_op.h"
#include "ops/view.h"
#include "tensor/launch.h"

/** One row an activation: what Megatron-LM has of the values or of their gate, with
 *  what it compiles compiled, and with nothing compiled. */
static const struct {
    bool is_gated;
    me_tensor *(*forward)(me_engine *e, me_tensor *u);
    me_tensor *(*op_by_op)(me_engine *e, me_tensor *u);
} activations[] = {
    [ME_ACTIVATION_GELU] = {false, me_gelu, me_gelu},
    [ME_ACTIVATION_SWIGLU] = {true, me_silu, me_silu},
    [ME_ACTIVATION_QUICK_GEGLU] = {true, me_quick_gelu, me_op_by_op_quick_gelu},
    [ME_ACTIVATION_GEGLU] = {true, me_gelu, me_gelu},
    [ME_ACTIVATION_SQUARED_RELU] = {false, me_squared_relu,
                                    me_op_by_op_squared_relu},
};

/** The gate and what it gates, each (…, f), clamped if the model says so: the gate
 *  from above alone. */
static void halve(me_nn *nn, me_tensor *u, me_tensor *halves[2])
{
    me_engine *e = nn->e;
    const uint64_t f = me_dim(u, -1) / 2;
    me_split_last(e, u, 2, (uint64_t[]){f, f}, halves);
    for (int i = 0; i < 2 && nn->config->model.activation_clamp_value > 0;
         i++) {
        halves[i] = me_clamp(e, halves[i], i == 1);
    }
}

bool me_activation_is_gated(const me_nn *nn)
{
    return activations[nn->config->model.activation].is_gated;
}

/** The activation as it is configured. */
static me_tensor *function(me_nn *nn, me_tensor *x)
{
    const me_activation kind = nn->config->model.activation;
    return nn->config->train.torch_compile
               ? activations[kind].forward(nn->e, x)
               : activations[kind].op_by_op(nn->e, x);
}

/** Transformer Engine's function where it is asked for, else NULL. */
static me_tensor *te_activation(me_nn *nn, me_tensor *u)
{
    const me_backend *backend = me_backend_of(nn);
    return nn->config->train.use_te_activation_func &&
                   backend->activation_func != NULL
               ? backend->activation_func(nn->e, u, me_activation_is_gated(nn))
               : NULL;
}

/** activation(first half) · (second half + offset), or of all of @p u. */
static me_tensor *activate(me_nn *nn, me_tensor *u)
{
    me_engine *e = nn->e;
    me_tensor *whole = te_activation(nn, u);
    if (whole != NULL || !me_activation_is_gated(nn)) {
        return whole != NULL ? whole : function(nn, u);
    }
    const me_frame frame = me_enter(e);
    me_tensor *halves[2] = {NULL, NULL};
    halve(nn, u, halves);
    me_tensor *gate = function(nn, halves[0]);       // (s, b, f/t)
    me_tensor *linear = me_add_number(e, halves[1]); // copied, even for + 0
    return me_leave(e, frame, me_mul(e, gate, linear));
}

void me_mlp_create(me_nn *nn, me_module_id module, const me_mlp_spec *spec,
                   me_mlp *mlp)
{
    const me_model_config *c = &nn->config->model;
    const uint64_t f = spec->ffn_hidden_size;
    const uint64_t h =
        spec->is_expert ? me_expert_hidden_size(nn) : c->hidden_size;
    mlp->module = module;
    mlp->is_fused = spec->is_fused;
    mlp->linear_fc1 = me_column_linear_create(
        nn, &(me_linear_spec){
                .name = "linear_fc1",
                .parent = mlp->module,
                .inputs = h,
                .outputs = me_activation_is_gated(nn) ? 2 * f : f,
                .has_norm = spec->has_norm,
                .has_bias = c->add_bias_linear,
                .skip_bias_add = true,
                .is_expert = spec->is_expert,
                .explicit_comm = spec->explicit_comm,
                .save_original_input = spec->save_original_input,
            });
    mlp->linear_fc2 =
        me_row_linear_create(nn, &(me_linear_spec){
                                     .name = "linear_fc2",
                                     .parent = mlp->module,
                                     .inputs = f,
                                     .outputs = h,
                                     .has_bias = c->add_bias_linear,
                                     .skip_bias_add = true,
                                     .is_expert = spec->is_expert,
                                     .explicit_comm = spec->explicit_comm,
                                 });
}

/** A row's weight for each of its elements: (n) to (n, 1). */
static me_tensor *column(me_engine *e, const me_token_scale *scale)
{
    return me_view(e, scale->probs, ME_SHAPE(me_numel(scale->probs), 1));
}

/** weighted_bias_swiglu_impl(). */
static me_tensor *fused_weighted_swiglu(me_engine *e, me_tensor *u,
                                        const me_token_scale *scale,
                                        bool is_compiled)
{
    enum {
        ALIGNMENT_BYTES = 16
    };

    const uint64_t begin =
        scale->first * me_dtype_bytes((me_dtype)scale->probs->dtype);
    const me_frame frame = me_enter(e);
    me_tensor *y = is_compiled
                       ? me_fused_weighted_swiglu(e, u, column(e, scale),
                                                  begin % ALIGNMENT_BYTES == 0)
                       : me_op_by_op_weighted_swiglu(e, u, column(e, scale));
    return me_leave(e, frame, y);
}

/** weighted_bias_quick_geglu_impl() without a bias: halves are clamped outside of
 *  the function, which also keeps the offset, a number on the card. */
static me_tensor *fused_weighted_quick_geglu(me_nn *nn, me_tensor *u,
                                             const me_token_scale *scale)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    if (nn->config->model.activation_clamp_value > 0) {
        const me_frame inner = me_enter(e);
        me_tensor *halves[2] = {NULL, NULL};
        halve(nn, u, halves);
        u = me_cat_last(e, halves[0], halves[1]);
        me_drop(e, halves[1]); // a tuple goes from its end
        u = me_leave(e, inner, u);
    }
    me_tensor *offset = me_empty(e, "tensor", (me_dtype)u->dtype, ME_SCALAR);
    me_tensor *y =
        me_fused_weighted_quick_geglu(e, u, column(e, scale), offset);
    return me_leave(e, frame, y);
}

/** The fused function, if the model's activation has one that applies. */
static me_tensor *fused_activation(me_nn *nn, me_tensor *u, me_parameter *bias,
                                   const me_token_scale *scale)
{
    const me_config *c = nn->config;
    if (!c->train.bias_activation_fusion) {
        return NULL;
    }
    const bool is_compiled = c->train.torch_compile;
    me_tensor *b = bias == NULL ? NULL : bias->tensor;
    if (c->model.activation == ME_ACTIVATION_GELU && bias != NULL) {
        return is_compiled ? me_bias_gelu(nn->e, u, b)
                           : me_op_by_op_bias_gelu(nn->e, u, b);
    }
    if (c->model.activation == ME_ACTIVATION_QUICK_GEGLU && scale != NULL) {
        return fused_weighted_quick_geglu(nn, u, scale);
    }
    if (c->model.activation != ME_ACTIVATION_SWIGLU) {
        return NULL;
    }
    if (scale != NULL) {
        return fused_weighted_swiglu(nn->e, u, scale, is_compiled);
    }
    return is_compiled ? me_fused_swiglu(nn->e, u, b)
                       : me_op_by_op_swiglu(nn->e, u, b);
}

/** Bias, activation and weights as separate operations, each under the name that
 *  @p u has. */
static me_tensor *activation(me_nn *nn, me_tensor *u, const me_parameter *bias,
                             const me_token_scale *scale)
{
    me_engine *e = nn->e;
    if (bias != NULL) {
        u = me_rebind(e, u, me_add(e, u, bias->tensor));
    }
    u = me_rebind(e, u, activate(nn, u));
    if (scale != NULL) {
        const me_dtype dtype = (me_dtype)u->dtype;
        me_tensor *weights = column(e, scale);
        u = me_rebind(e, u, me_mul(e, u, weights));
        me_drop(e, weights);
        u = me_rebind(e, u, me_cast(e, u, dtype)); // weights may be wider
    }
    return u;
}

me_tensor *me_mlp_open_activation(me_nn *nn, me_tensor *u, me_parameter *bias,
                                  const me_token_scale *scale)
{
    const me_frame frame = me_enter(nn->e);
    return me_leave(nn->e, frame,
                    activation(nn, me_hold(nn->e, u), bias, scale));
}

me_tensor *me_mlp_activation(me_nn *nn, me_tensor *u, me_parameter *bias,
                             const me_token_scale *scale)
{
    const me_frame frame = me_enter(nn->e);
    me_tensor *fused = fused_activation(nn, u, bias, scale);
    me_tensor *y =
        fused != NULL ? fused : me_mlp_open_activation(nn, u, bias, scale);
    return me_leave(nn->e, frame, y);
}

me_tensor *me_mlp_plain_activation(me_nn *nn, me_tensor *u)
{
    me_engine *e = nn->e;
    const uint64_t f = me_dim(u, -1) / 2;
    const me_frame frame = me_enter(e);
    me_tensor *y = fused_activation(nn, u, NULL, NULL);
    y = y != NULL ? y : te_activation(nn, u);
    if (y == NULL && me_activation_is_gated(nn)) {
        me_tensor *halves[2] = {NULL, NULL};
        me_split_last(e, u, 2, (uint64_t[]){f, f}, halves);
        y = me_mul(e, function(nn, halves[0]), halves[1]); // (s, b, f/t)
    }
    return me_leave(e, frame, y != NULL ? y : function(nn, u));
}

/** `bias.unsqueeze(0) * scale.unsqueeze(-1)`: (h) and (n) to (n, h). */
static me_tensor *weighted_bias(me_engine *e, const me_parameter *bias,
                                const me_token_scale *scale)
{
    const me_frame frame = me_enter(e);
    me_tensor *row = me_view(e, bias->tensor, ME_SHAPE(1, bias->numel));
    return me_leave(e, frame, me_mul(e, row, column(e, scale)));
}

static me_tensor *by_layers(me_nn *nn, const me_mlp *mlp, me_tensor *x,
                            const me_token_scale *scale)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    me_parameter *bias = mlp->linear_fc1.bias;
    me_tensor *u = me_column_parallel(nn, &mlp->linear_fc1, x);
    me_tensor *fused = fused_activation(nn, u, bias, scale);
    u = fused != NULL ? me_rebind(e, u, fused)
                      : activation(nn, u, bias, scale); // (s, b, f/t)
    me_tensor *y = me_row_parallel(nn, &mlp->linear_fc2, u);
    if (scale != NULL && mlp->linear_fc2.bias != NULL) {
        me_tensor *weighted = weighted_bias(e, mlp->linear_fc2.bias, scale);
        me_drop(e, me_add_in_place(e, me_hold(e, y), weighted));
        me_drop(e, weighted);
    }
    return me_leave(e, frame, y); // (s, b, h)
}

me_tensor *me_mlp_forward(me_nn *nn, const me_mlp *mlp, me_tensor *x,
                          const me_token_scale *scale)
{
    me_engine *e = nn->e;
    if (!me_engine_is_ok(e)) {
        return me_none(e);
    }
    me_module_enter(e, mlp->module);
    me_launch_host(e, ME_HOST_ACTIVATION);
    me_tensor *y = mlp->is_fused ? me_backend_of(nn)->fused_mlp(nn, mlp, x)
                                 : by_layers(nn, mlp, x, scale);
    me_module_leave(e);
    return y;
}
