/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/norm.h"

#include "ops/norm.h"

static me_tensor *layer_norm(me_engine *e, const me_norm *norm, me_tensor *x)
{
    return me_layer_norm(e, x, norm->weight->tensor, norm->bias->tensor);
}

static me_tensor *rms_norm(me_engine *e, const me_norm *norm, me_tensor *x)
{
    return me_rms_norm(e, x, norm->weight->tensor);
}

/** One row a kind of norm. */
static const struct {
    bool has_bias;
    me_tensor *(*forward)(me_engine *e, const me_norm *norm, me_tensor *x);
} norms[] = {
    [ME_NORMALIZATION_LAYER_NORM] = {true, layer_norm},
    [ME_NORMALIZATION_RMS_NORM] = {false, rms_norm},
};

static me_parameter *parameter(me_nn *nn, const me_norm *norm, const char *name,
                               uint64_t size)
{
    return me_parameter_create(nn, &(me_parameter_spec){
                                       .name = name,
                                       .module = norm->module,
                                       .shape = ME_SHAPE(size),
                                       .is_made_on_host = true,
                                       .is_sequence_parallel = true,
                                   });
}

me_norm me_norm_create(me_nn *nn, me_module_id parent, const char *name,
                       uint64_t size)
{
    me_norm norm = {.module = me_module_add(nn->e, parent, name)};
    norm.weight = parameter(nn, &norm, "weight", size);
    if (norms[nn->config->model.normalization].has_bias) {
        norm.bias = parameter(nn, &norm, "bias", size);
    }
    return norm;
}

me_tensor *me_norm_forward(me_nn *nn, const me_norm *norm, me_tensor *x)
{
    if (!me_engine_is_ok(nn->e)) {
        return me_none(nn->e);
    }
    me_module_enter(nn->e, norm->module);
    me_tensor *y =
        norms[nn->config->model.normalization].forward(nn->e, norm, x);
    me_module_leave(nn->e);
    return y;
}
