/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/torch/layers.h"

#include "base/size.h"
#include "nn/torch/forward.h"
#include "nn/torch/layer_inputs.h"
#include "nn/torch/parallelize.h"
#include "nn/torch/tie.h"
#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "ops/layer_norm.h"
#include "ops/view.h"
#include "ops/vision.h"
#include "tensor/hooks.h"
#include "tensor/region.h"

#include <inttypes.h>
#include <string.h>

/** One build: what every module needs to know. */
typedef struct build {
    me_nn *nn;
    const me_layer_tree *tree;
    me_layer *root;
} build;

static me_parameter *make(const build *b, const me_layer *layer,
                          const char *name, me_shape shape, bool is_drawn)
{
    return me_parameter_create_as(
        b->nn,
        &(me_parameter_spec){.name = name,
                             .module = layer->module,
                             .shape = shape,
                             .is_drawn = is_drawn,
                             .is_made_on_host =
                                 b->tree->is_built_on_host || b->tree->is_meta},
        layer->spec->dtype);
}

/** Drawn with uniform_() or normal_(). */
static me_parameter *drawn(const build *b, const me_layer *layer,
                           const char *name, me_shape shape)
{
    return make(b, layer, name, shape, true);
}

/** Filled with ones_() or zeros_(). */
static me_parameter *filled(const build *b, const me_layer *layer,
                            const char *name, me_shape shape)
{
    return make(b, layer, name, shape, false);
}

static void build_linear(const build *b, me_layer *layer)
{
    const me_layer_spec *s = layer->spec;
    layer->weight = drawn(b, layer, "weight", ME_SHAPE(s->outputs, s->inputs));
    if (s->has_bias) {
        layer->bias = drawn(b, layer, "bias", ME_SHAPE(s->outputs));
    }
}

static void build_embedding(const build *b, me_layer *layer)
{
    const me_layer_spec *s = layer->spec;
    layer->weight = drawn(b, layer, "weight", ME_SHAPE(s->inputs, s->outputs));
}

static void build_layer_norm(const build *b, me_layer *layer)
{
    const uint64_t n = layer->spec->inputs;
    layer->weight = filled(b, layer, "weight", ME_SHAPE(n));
    layer->bias = filled(b, layer, "bias", ME_SHAPE(n));
}

static void build_rms_norm(const build *b, me_layer *layer)
{
    const uint64_t n = layer->spec->inputs;
    layer->weight = filled(b, layer, "weight", ME_SHAPE(n));
}

static void build_conv2d(const build *b, me_layer *layer)
{
    const me_layer_spec *s = layer->spec;
    layer->weight =
        drawn(b, layer, "weight",
              ME_SHAPE(s->outputs, s->inputs, s->kernel, s->kernel));
    if (s->has_bias) {
        layer->bias = drawn(b, layer, "bias", ME_SHAPE(s->outputs));
    }
}

/** A buffer of a module, which lives as long as the engine. */
static me_tensor *buffer(const build *b, const me_layer *layer,
                         const char *name, me_dtype dtype, me_shape shape)
{
    me_engine *e = b->nn->e;
    me_tensor *x = me_keep(e, name, ME_CATEGORY_BUFFER, dtype, shape);
    me_module_count_buffer(e, layer->module, me_bytes(x));
    return x;
}

static void build_batch_norm(const build *b, me_layer *layer)
{
    const me_shape shape = ME_SHAPE(layer->spec->inputs);
    layer->weight = filled(b, layer, "weight", shape);
    layer->bias = filled(b, layer, "bias", shape);
    me_running_stats *running = &layer->running;
    running->mean = buffer(b, layer, "running_mean", ME_DTYPE_FLOAT32, shape);
    running->var = buffer(b, layer, "running_var", ME_DTYPE_FLOAT32, shape);
    running->n_batches =
        buffer(b, layer, "num_batches_tracked", ME_DTYPE_INT64, ME_SCALAR);
}

/** Of the module above, whose `self.name = nn.Parameter(…)` it is. */
static void build_parameter(const build *b, me_layer *layer)
{
    layer->weight =
        filled(b, layer, layer->spec->name, ME_SHAPE(layer->spec->inputs));
}

/** `register_buffer(name, …)`. */
static void build_buffer(const build *b, me_layer *layer)
{
    me_engine *e = b->nn->e;
    layer->buffer = me_keep(e, layer->spec->name, ME_CATEGORY_BUFFER,
                            layer->spec->dtype, ME_SHAPE(layer->spec->inputs));
}

static me_tensor *run_linear(me_engine *e, const me_layer *layer, me_tensor *x)
{
    if (!me_layer_has_columns(e, layer, x)) {
        return me_none(e);
    }
    return me_rowwise_linear(layer, x);
}

static me_tensor *run_embedding(me_engine *e, const me_layer *layer,
                                me_tensor *x)
{
    if (x->dtype != ME_DTYPE_INT64) {
        me_engine_fail(e, ME_ERR_CONFIG,
                       "module %s: Embedding gets %s, not int64 indices",
                       me_module_shown(e), me_dtype_name((me_dtype)x->dtype));
        return me_none(e);
    }
    return me_rowwise_embedding(layer, x);
}

static me_tensor *run_layer_norm(me_engine *e, const me_layer *layer,
                                 me_tensor *x)
{
    if (!me_layer_has_columns(e, layer, x)) {
        return me_none(e);
    }
    return me_layer_norm(e, x, layer->weight->tensor, layer->bias->tensor);
}

static me_tensor *run_rms_norm(me_engine *e, const me_layer *layer,
                               me_tensor *x)
{
    if (!me_layer_has_columns(e, layer, x)) {
        return me_none(e);
    }
    return me_rms_norm(e, x, layer->weight->tensor);
}

static me_tensor *run_relu(me_engine *e, const me_layer *layer, me_tensor *x)
{
    return layer->spec->is_in_place ? me_hold(e, me_relu_in_place(e, x))
                                    : me_relu(e, x);
}

static me_tensor *run_conv2d(me_engine *e, const me_layer *layer, me_tensor *x)
{
    const me_window window = me_layer_window(layer->spec);
    return me_layer_has_images(e, layer, x, layer->spec->inputs) &&
                   me_layer_has_type(e, layer, x)
               ? me_conv2d(e, x, layer->weight->tensor,
                           layer->bias == NULL ? NULL : layer->bias->tensor,
                           &window)
               : me_none(e);
}

static me_tensor *run_batch_norm(me_engine *e, const me_layer *layer,
                                 me_tensor *x)
{
    return me_layer_has_images(e, layer, x, layer->spec->inputs) &&
                   me_layer_has_type(e, layer, x)
               ? me_batch_norm(e, x, layer->weight->tensor, layer->bias->tensor,
                               &layer->running)
               : me_none(e);
}

static me_tensor *run_max_pool2d(me_engine *e, const me_layer *layer,
                                 me_tensor *x)
{
    const me_window window = me_layer_window(layer->spec);
    return me_layer_has_images(e, layer, x, 0) &&
                   me_layer_is_floating(e, layer, x)
               ? me_max_pool2d(e, x, &window)
               : me_none(e);
}

static me_tensor *run_average(me_engine *e, const me_layer *layer, me_tensor *x)
{
    return me_layer_has_images(e, layer, x, 0) &&
                   me_layer_is_floating(e, layer, x)
               ? me_average_channels(e, x)
               : me_none(e);
}

/** All dimensions but the first become one. */
static me_tensor *run_flatten(me_engine *e, const me_layer *layer, me_tensor *x)
{
    (void)layer;
    if (!me_engine_is_ok(e) || x->shape.ndim < 2 || me_dim(x, 0) == 0) {
        return x->shape.ndim < 2 ? me_hold(e, x) : me_none(e);
    }
    const uint64_t columns = me_numel(x) / me_dim(x, 0);
    return me_reshape(e, x, ME_SHAPE(me_dim(x, 0), columns));
}

static me_tensor *run_gelu(me_engine *e, const me_layer *layer, me_tensor *x)
{
    return me_layer_is_floating(e, layer, x) ? me_gelu(e, x) : me_none(e);
}

static me_tensor *run_silu(me_engine *e, const me_layer *layer, me_tensor *x)
{
    return me_layer_is_floating(e, layer, x) ? me_silu(e, x) : me_none(e);
}

static me_tensor *run_dropout(me_engine *e, const me_layer *layer, me_tensor *x)
{
    return layer->spec->p == 0 || me_layer_is_floating(e, layer, x)
               ? me_dropout(e, x, layer->spec->p)
               : me_none(e);
}

/** Sequential, and a loop over a ModuleList: `for m in self: x = m(x)`. */
static me_tensor *run_in_turn(me_engine *e, const me_layer *layer, me_tensor *x)
{
    me_tensor *input = me_hold(e, x);
    for (uint32_t i = 0; i < layer->n_children; i++) {
        input = me_rebind_result(e, input,
                                 me_layer_call(&layer->children[i], input));
    }
    return input;
}

static me_tensor *run_module(me_engine *e, const me_layer *layer, me_tensor *x)
{
    (void)e;
    return me_forward_evaluate(layer->nn, &layer->spec->forward, layer, 1, &x);
}

/** What is no module cannot be called (config/torch/forward_text.c refuses it). */
static me_tensor *run_nothing(me_engine *e, const me_layer *layer, me_tensor *x)
{
    (void)layer;
    (void)x;
    return me_none(e);
}

/** One row a class; NULL: no parameters. */
static const struct {
    void (*build)(const build *b, me_layer *layer);
    me_tensor *(*run)(me_engine *e, const me_layer *layer, me_tensor *x);
} kinds[] = {
    [ME_LAYER_MODULE] = {NULL, run_module},
    [ME_LAYER_SEQUENTIAL] = {NULL, run_in_turn},
    [ME_LAYER_MODULE_LIST] = {NULL, run_in_turn},
    [ME_LAYER_LINEAR] = {build_linear, run_linear},
    [ME_LAYER_EMBEDDING] = {build_embedding, run_embedding},
    [ME_LAYER_LAYER_NORM] = {build_layer_norm, run_layer_norm},
    [ME_LAYER_RMS_NORM] = {build_rms_norm, run_rms_norm},
    [ME_LAYER_RELU] = {NULL, run_relu},
    [ME_LAYER_GELU] = {NULL, run_gelu},
    [ME_LAYER_SILU] = {NULL, run_silu},
    [ME_LAYER_DROPOUT] = {NULL, run_dropout},
    [ME_LAYER_CONV2D] = {build_conv2d, run_conv2d},
    [ME_LAYER_BATCH_NORM2D] = {build_batch_norm, run_batch_norm},
    [ME_LAYER_MAX_POOL2D] = {NULL, run_max_pool2d},
    [ME_LAYER_ADAPTIVE_AVG_POOL2D] = {NULL, run_average},
    [ME_LAYER_FLATTEN] = {NULL, run_flatten},
    [ME_LAYER_PARAMETER] = {build_parameter, run_nothing},
    [ME_LAYER_BUFFER] = {build_buffer, run_nothing},
};

static bool is_module(const me_layer_spec *spec)
{
    return spec->kind != ME_LAYER_PARAMETER && spec->kind != ME_LAYER_BUFFER;
}

static me_tensor *run_section(const me_section *section,
                              me_tensor *const *inputs)
{
    return me_layer_forward(section->self, inputs[0]);
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the tree
static void build_layer(const build *b, me_layer *layer,
                        const me_layer_spec *spec, me_module_id module)
{
    *layer = (me_layer){.spec = spec, .nn = b->nn, .module = module};
    layer->section =
        (me_section){.nn = b->nn, .run = run_section, .self = layer};
    me_module_set_class(b->nn->e, module,
                        spec->class_name != NULL
                            ? spec->class_name
                            : me_layer_kind_name(spec->kind));
    if (is_module(spec)) {
        me_module_set_source(b->nn->e, module, spec->where, spec->line);
    }
    if (kinds[spec->kind].build != NULL) {
        kinds[spec->kind].build(b, layer);
    }
    layer->children = me_engine_alloc(b->nn->e, (size_t)spec->n_children + 1,
                                      sizeof *layer->children);
    for (uint32_t i = 0; i < spec->n_children && me_engine_is_ok(b->nn->e);
         i++) {
        const me_layer_spec *child = &spec->children[i];
        layer->n_children = i + 1;
        build_layer(b, &layer->children[i], child,
                    is_module(child)
                        ? me_module_add(b->nn->e, module, child->name)
                        : module);
    }
}

me_layer *me_layer_find(me_layer *layer, const char *path)
{
    while (layer != NULL && *path != '\0') {
        const size_t length = strcspn(path, ".");
        me_layer *next = NULL;
        for (uint32_t i = 0; i < layer->n_children; i++) {
            const char *name = layer->children[i].spec->name;
            if (strlen(name) == length && strncmp(name, path, length) == 0) {
                next = &layer->children[i];
            }
        }
        layer = next;
        path += length;
        if (*path == '.' && *++path == '\0') {
            return NULL;
        }
    }
    return layer;
}

me_layer *me_layers_build(me_nn *nn, const me_layer_tree *tree,
                          const char *name)
{
    me_layer *root = me_engine_alloc(nn->e, 1, sizeof *root);
    if (root == NULL) {
        return NULL;
    }
    const build b = {.nn = nn, .tree = tree, .root = root};
    const me_module_id module =
        name == NULL ? ME_NO_MODULE : me_module_add(nn->e, 0, name);
    build_layer(&b, root, &tree->root, module);
    if (me_engine_is_ok(nn->e)) {
        me_layers_tie(nn, root);
    }
    if (tree->is_meta && tree->has_cast) {
        me_parameters_cast_on_meta(nn, tree->cast);
    } else if ((tree->is_built_on_host && !tree->stays_on_host) ||
               tree->has_cast) {
        me_parameters_to(nn, tree->has_cast ? &tree->cast : NULL);
    }
    me_layers_share(nn);
    return me_engine_is_ok(nn->e) ? root : NULL;
}

me_tensor *me_layer_forward(const me_layer *layer, me_tensor *x)
{
    me_engine *e = layer->nn->e;
    if (!me_engine_is_ok(e)) {
        return me_none(e);
    }
    const bool is_named = layer->module != ME_NO_MODULE;
    if (is_named) {
        me_module_enter(e, layer->module);
    }
    const me_frame frame = me_enter(e);
    const bool is_called = layer->spec->kind != ME_LAYER_MODULE_LIST;
    if (is_called) {
        me_tell_pre_forward(e, layer->module, x);
    }
    x = me_pre_forward(layer->hooks, x);
    x = me_style_input(layer, x);
    me_tensor *y = kinds[layer->spec->kind].run(e, layer, x);
    y = me_style_output(layer, x, y);
    if (is_called) {
        me_tell_post_forward(e, layer->module, y);
    }
    y = me_post_forward(layer->hooks, y);
    me_leave(e, frame, y);
    me_engine_locate(e);
    if (is_named) {
        me_module_leave(e);
    }
    return y;
}

static me_tensor *run_region(void *self, me_engine *e, me_tensor *x)
{
    (void)e;
    return me_layer_forward(self, x);
}

me_tensor *me_layer_call(me_layer *layer, me_tensor *x)
{
    if (!layer->spec->is_checkpointed) {
        return me_layer_forward(layer, x);
    }
    if (layer->spec->is_reentrant) {
        return me_checkpoint(layer->nn, &layer->section,
                             (me_tensor *[ME_CHECKPOINT_INPUTS]){x}, false);
    }
    const me_region_function function = {
        .run = run_region,
        .self = layer,
        .is_selective = layer->spec->is_selective,
        .runs_to_end = layer->spec->is_recomputed_to_end,
    };
    return me_region_forward(layer->nn->e, &function, x);
}
