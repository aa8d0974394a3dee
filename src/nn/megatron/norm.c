/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/norm.h"

#include "nn/megatron/backend.h"
#include "ops/elementwise.h"

/** Has a kind of norm a bias? */
static const bool has_bias[] = {
    [ME_NORMALIZATION_LAYER_NORM] = true,
    [ME_NORMALIZATION_RMS_NORM] = false,
};

static me_norm create(me_nn *nn, const me_backend *backend, me_module_id module,
                      uint64_t size, const char *const names[2])
{
    me_norm norm = {.backend = backend, .module = module};
    me_parameter **const parameters[2] = {&norm.weight, &norm.bias};
    const int count = has_bias[nn->config->model.normalization] ? 2 : 1;
    for (int i = 0; i < count; i++) {
        *parameters[i] = me_parameter_create(
            nn, &(me_parameter_spec){
                    .name = names[i],
                    .module = module,
                    .shape = ME_SHAPE(size),
                    .is_made_on_host = backend->makes_norms_on_host,
                    .is_sequence_parallel = true,
                });
    }
    return norm;
}

me_norm me_norm_of(me_nn *nn, me_module_id module, uint64_t size,
                   const char *const names[2])
{
    return create(nn, me_backend_of(nn), module, size, names);
}

static const char *const own_names[2] = {"weight", "bias"};

/** TENorm and WrappedTorchNorm both make one of these. */
static me_module_id add_module(me_nn *nn, me_module_id parent, const char *name)
{
    return me_module_add_as(
        nn->e, parent, name,
        has_bias[nn->config->model.normalization] ? "LayerNorm" : "RMSNorm");
}

me_norm me_norm_create(me_nn *nn, me_module_id parent, const char *name,
                       uint64_t size)
{
    return me_norm_of(nn, add_module(nn, parent, name), size, own_names);
}

me_norm me_norm_create_l2(me_nn *nn, me_module_id parent, const char *name)
{
    return (me_norm){.module = me_module_add_as(nn->e, parent, name, "L2Norm"),
                     .is_l2 = true};
}

me_norm me_norm_create_final(me_nn *nn, me_module_id parent, uint64_t size)
{
    return create(nn, me_final_norm_backend_of(nn),
                  add_module(nn, parent, "final_layernorm"), size, own_names);
}

me_tensor *me_norm_forward(me_nn *nn, const me_norm *norm, me_tensor *x)
{
    if (!me_engine_is_ok(nn->e)) {
        return me_none(nn->e);
    }
    me_module_enter(nn->e, norm->module);
    x = me_pre_forward(norm->hooks, x);
    me_tensor *y = norm->is_l2 ? me_fused_l2_norm(nn->e, x)
                               : norm->backend->layer_norm(nn, norm, x);
    me_module_leave(nn->e);
    return y;
}
