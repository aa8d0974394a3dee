/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/torch/layer_inputs.h"

#include <inttypes.h>

bool me_layer_has_columns(me_engine *e, const me_layer *layer,
                          const me_tensor *x)
{
    const uint64_t columns = me_dim(layer->weight->tensor, -1);
    if (x->shape.ndim == 0 || me_dim(x, -1) != columns) {
        me_engine_fail(
            e, ME_ERR_CONFIG,
            "module %s: %s of %" PRIu64
            " columns gets a tensor whose last dimension is %" PRIu64,
            me_module_shown(e), me_layer_kind_name(layer->spec->kind), columns,
            x->shape.ndim == 0 ? 0 : me_dim(x, -1));
        return false;
    }
    return true;
}

bool me_layer_is_floating(me_engine *e, const me_layer *layer,
                          const me_tensor *x)
{
    if (!me_dtype_is_floating((me_dtype)x->dtype) && me_engine_is_ok(e)) {
        me_engine_fail(e, ME_ERR_CONFIG,
                       "module %s: %s gets %s, and is of floating-point "
                       "numbers alone: .float() makes such",
                       me_module_shown(e),
                       me_layer_kind_name(layer->spec->kind),
                       me_dtype_name((me_dtype)x->dtype));
    }
    return me_engine_is_ok(e);
}

me_window me_layer_window(const me_layer_spec *s)
{
    const uint64_t stride = s->kind == ME_LAYER_MAX_POOL2D ? s->kernel : 1;
    return (me_window){.kernel = s->kernel,
                       .stride = s->stride == 0 ? stride : s->stride,
                       .padding = s->padding};
}

bool me_layer_has_images(me_engine *e, const me_layer *layer,
                         const me_tensor *x, uint64_t channels)
{
    const me_layer_spec *s = layer->spec;
    const me_window window = me_layer_window(s);
    const bool has_window = s->kernel > 0;
    if (!me_engine_is_ok(e)) {
        return false;
    }
    if (x->shape.ndim != 4 || (channels != 0 && me_dim(x, 1) != channels) ||
        (has_window && (me_window_count(&window, me_dim(x, 2)) == 0 ||
                        me_window_count(&window, me_dim(x, 3)) == 0))) {
        me_engine_fail(e, ME_ERR_CONFIG,
                       "module %s: %s wants (batch, channels, height, width) "
                       "of its channels, and at least as large as its window",
                       me_module_shown(e), me_layer_kind_name(s->kind));
        return false;
    }
    if (s->kind == ME_LAYER_BATCH_NORM2D && me_numel(x) == me_dim(x, 1)) {
        me_engine_fail(e, ME_ERR_CONFIG,
                       "module %s: BatchNorm2d gets one value of each channel, "
                       "and PyTorch wants more of them in training",
                       me_module_shown(e));
        return false;
    }
    return true;
}

bool me_layer_has_type(me_engine *e, const me_layer *layer, const me_tensor *x)
{
    const me_dtype own = (me_dtype)layer->weight->tensor->dtype;
    const bool is_mixed = layer->spec->kind == ME_LAYER_BATCH_NORM2D &&
                          own == ME_DTYPE_FLOAT32 &&
                          me_dtype_is_floating((me_dtype)x->dtype);
    if (x->dtype != (uint8_t)own && !is_mixed && me_engine_is_ok(e)) {
        me_engine_fail(e, ME_ERR_CONFIG,
                       "module %s: %s of %s weights gets %s: PyTorch wants one "
                       "type of both, by dtype of the module or a cast of its "
                       "input",
                       me_module_shown(e),
                       me_layer_kind_name(layer->spec->kind),
                       me_dtype_name(own), me_dtype_name((me_dtype)x->dtype));
    }
    return me_engine_is_ok(e);
}
