/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/mlp.h"

#include "ops/elementwise.h"
#include "ops/view.h"

/** silu(first half) · (second half + offset). */
static me_tensor *glu(me_engine *e, me_tensor *u)
{
    const me_frame frame = me_enter(e);
    const uint64_t f = me_dim(u, -1) / 2;
    me_tensor *halves[2] = {NULL, NULL};
    me_split_last(e, u, 2, (uint64_t[]){f, f}, halves);
    me_tensor *gate = me_silu(e, halves[0]);         // (s, b, f/t)
    me_tensor *linear = me_add_number(e, halves[1]); // copied, even for + 0
    return me_leave(e, frame, me_mul(e, gate, linear));
}

/** One row an activation: as separate operations, and as one compiled. */
static const struct {
    bool is_gated;
    me_tensor *(*forward)(me_engine *e, me_tensor *u);
} activations[] = {
    [ME_ACTIVATION_GELU] = {false, me_gelu},
    [ME_ACTIVATION_SWIGLU] = {true, glu},
    [ME_ACTIVATION_SQUARED_RELU] = {false, me_squared_relu},
};

void me_mlp_create(me_nn *nn, me_module_id parent, me_mlp *mlp)
{
    const me_transformer_config *c = nn->config;
    const uint64_t f = c->ffn_hidden_size;
    mlp->module = me_module_add(nn->e, parent, "mlp");
    mlp->linear_fc1 = me_column_linear_create(
        nn, &(me_linear_spec){
                .name = "linear_fc1",
                .parent = mlp->module,
                .inputs = c->hidden_size,
                .outputs = activations[c->activation].is_gated ? 2 * f : f,
                .has_bias = c->add_bias_linear,
                .skip_bias_add = true,
            });
    mlp->linear_fc2 =
        me_row_linear_create(nn, &(me_linear_spec){
                                     .name = "linear_fc2",
                                     .parent = mlp->module,
                                     .inputs = f,
                                     .outputs = c->hidden_size,
                                     .has_bias = c->add_bias_linear,
                                     .skip_bias_add = true,
                                 });
}

/** The compiled function, if the model's activation has one that applies. */
static me_tensor *fused_activation(me_nn *nn, me_tensor *u, me_parameter *bias)
{
    const me_transformer_config *c = nn->config;
    if (!c->bias_activation_fusion) {
        return NULL;
    }
    if (c->activation == ME_ACTIVATION_GELU && bias != NULL) {
        return me_bias_gelu(nn->e, u, bias->tensor);
    }
    if (c->activation == ME_ACTIVATION_SWIGLU && bias == NULL) {
        return me_fused_swiglu(nn->e, u);
    }
    return NULL;
}

me_tensor *me_mlp_forward(me_nn *nn, const me_mlp *mlp, me_tensor *x)
{
    me_engine *e = nn->e;
    if (!me_engine_is_ok(e)) {
        return me_none(e);
    }
    me_module_enter(e, mlp->module);
    const me_frame frame = me_enter(e);
    me_parameter *bias = mlp->linear_fc1.bias;
    me_tensor *u = me_column_linear(nn, &mlp->linear_fc1, x, NULL);
    me_tensor *a = fused_activation(nn, u, bias);
    if (a == NULL && bias != NULL) {
        u = me_rebind(e, u, me_add(e, u, bias->tensor));
    }
    if (a == NULL) {
        a = activations[nn->config->activation].forward(e, u); // (s, b, f/t)
    }
    a = me_rebind(e, u, a); // the name that u had
    me_tensor *y = me_row_linear(nn, &mlp->linear_fc2, a);
    me_leave(e, frame, y); // (s, b, h)
    me_module_leave(e);
    return y;
}
