/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/backend.h"
#include "nn/megatron/experts.h"
#include "ops/view.h"

/** bias_act_func() of TEGroupedMLP.forward(); inputs: what fc1 gave, weights. */
static me_tensor *run_activation(const me_section *section,
                                 me_tensor *const *inputs)
{
    const me_token_scale scale = {inputs[1], 0};
    return me_mlp_activation(section->nn, inputs[0], NULL, &scale);
}

void me_grouped_experts_create(me_nn *nn, me_experts *experts)
{
    const me_config *c = nn->config;
    const uint64_t f = c->moe.ffn_hidden_size;
    const uint64_t h = c->model.hidden_size;
    me_linear_spec spec = {
        .name = "linear_fc1",
        .parent = experts->module,
        .inputs = h,
        .outputs = me_activation_is_gated(nn) ? 2 * f : f,
        .has_bias = c->model.add_bias_linear,
        .is_expert = true,
    };
    me_grouped_linear_create(nn, &spec, experts->count, false,
                             &experts->linear_fc1);
    spec.name = "linear_fc2";
    spec.inputs = f;
    spec.outputs = h;
    spec.skip_bias_add = true;
    me_grouped_linear_create(nn, &spec, experts->count, true,
                             &experts->linear_fc2);
    experts->activation =
        (me_section){.nn = nn, .run = run_activation, .self = experts};
}

me_tensor *me_grouped_experts_forward(me_nn *nn, const me_experts *experts,
                                      me_tensor *x, const uint64_t *tokens,
                                      me_tensor *probs)
{
    const me_backend *backend = me_backend_of(nn);
    (void)tokens;
    const me_frame frame = me_enter(nn->e);
    me_tensor *u = backend->grouped_linear(nn, &experts->linear_fc1, x);
    me_tensor *a =
        run_activation(&experts->activation, (me_tensor *const[]){u, probs});
    me_tensor *y = backend->grouped_linear(nn, &experts->linear_fc2, a);
    return me_leave(nn->e, frame, y); // (R, h)
}
