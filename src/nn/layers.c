/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/layers.h"

#include "base/size.h"
#include "nn/forward.h"
#include "nn/parallelize.h"
#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "ops/norm.h"
#include "tensor/region.h"

#include <inttypes.h>
#include <string.h>

/** One build: what every module needs to know. */
typedef struct build {
    me_nn *nn;
    const me_layer_tree *tree;
    me_layer *root;
} build;

static me_parameter *parameter(const build *b, const me_layer *layer,
                               const char *name, me_shape shape)
{
    return me_parameter_create_as(
        b->nn,
        &(me_parameter_spec){.name = name,
                             .module = layer->module,
                             .shape = shape,
                             .is_made_on_host = b->tree->is_built_on_host},
        layer->spec->dtype);
}

static void build_linear(const build *b, me_layer *layer)
{
    const me_layer_spec *s = layer->spec;
    layer->weight =
        parameter(b, layer, "weight", ME_SHAPE(s->outputs, s->inputs));
    if (s->has_bias) {
        layer->bias = parameter(b, layer, "bias", ME_SHAPE(s->outputs));
    }
}

static void build_embedding(const build *b, me_layer *layer)
{
    const me_layer_spec *s = layer->spec;
    layer->weight =
        parameter(b, layer, "weight", ME_SHAPE(s->inputs, s->outputs));
}

static void build_layer_norm(const build *b, me_layer *layer)
{
    const uint64_t n = layer->spec->inputs;
    layer->weight = parameter(b, layer, "weight", ME_SHAPE(n));
    layer->bias = parameter(b, layer, "bias", ME_SHAPE(n));
}

static void build_rms_norm(const build *b, me_layer *layer)
{
    const uint64_t n = layer->spec->inputs;
    layer->weight = parameter(b, layer, "weight", ME_SHAPE(n));
}

/** The last dimension of what a layer gets must be what it was made for, or
 *  what a plan has left of it. */
static bool has_columns(me_engine *e, const me_layer *layer, const me_tensor *x)
{
    const uint64_t columns = me_dim(layer->weight->tensor, -1);
    if (x->shape.ndim == 0 || me_dim(x, -1) != columns) {
        me_engine_fail(
            e, ME_ERR_CONFIG,
            "module %s: %s of %" PRIu64
            " columns gets a tensor whose last dimension is %" PRIu64,
            me_module_path(e), me_layer_kind_name(layer->spec->kind), columns,
            x->shape.ndim == 0 ? 0 : me_dim(x, -1));
        return false;
    }
    return true;
}

static me_tensor *run_linear(me_engine *e, const me_layer *layer, me_tensor *x)
{
    if (!has_columns(e, layer, x)) {
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
                       me_module_path(e), me_dtype_name((me_dtype)x->dtype));
        return me_none(e);
    }
    return me_rowwise_embedding(layer, x);
}

static me_tensor *run_layer_norm(me_engine *e, const me_layer *layer,
                                 me_tensor *x)
{
    if (!has_columns(e, layer, x)) {
        return me_none(e);
    }
    return me_layer_norm(e, x, layer->weight->tensor, layer->bias->tensor);
}

static me_tensor *run_rms_norm(me_engine *e, const me_layer *layer,
                               me_tensor *x)
{
    if (!has_columns(e, layer, x)) {
        return me_none(e);
    }
    return me_rms_norm(e, x, layer->weight->tensor);
}

static me_tensor *run_relu(me_engine *e, const me_layer *layer, me_tensor *x)
{
    (void)layer;
    return me_relu(e, x);
}

static me_tensor *run_gelu(me_engine *e, const me_layer *layer, me_tensor *x)
{
    (void)layer;
    return me_gelu(e, x);
}

static me_tensor *run_silu(me_engine *e, const me_layer *layer, me_tensor *x)
{
    (void)layer;
    return me_silu(e, x);
}

static me_tensor *run_dropout(me_engine *e, const me_layer *layer, me_tensor *x)
{
    return me_dropout(e, x, layer->spec->p);
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
};

// NOLINTNEXTLINE(misc-no-recursion): as deep as the tree
static void build_layer(const build *b, me_layer *layer,
                        const me_layer_spec *spec, me_module_id module)
{
    *layer = (me_layer){.spec = spec, .nn = b->nn, .module = module};
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
                    me_module_add(b->nn->e, module, child->name));
    }
}

/** The module of a dotted path below @p layer, NULL if there is none. */
static me_layer *find(me_layer *layer, const char *path)
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
        path += length + (path[length] == '.' ? 1 : 0);
    }
    return layer;
}

/** `self.output.weight = self.embedding.weight`: its own one goes. */
// NOLINTNEXTLINE(misc-no-recursion): as deep as the tree
static void tie(const build *b, me_layer *layer)
{
    if (layer->spec->tied_to != NULL) {
        me_layer *other = find(b->root, layer->spec->tied_to);
        if (other == NULL || other->weight == NULL || other == layer ||
            !me_shape_equal(&other->weight->shape, &layer->weight->shape)) {
            me_engine_fail(b->nn->e, ME_ERR_CONFIG,
                           "module: weight = \"%s.weight\" names no weight of "
                           "the same shape",
                           layer->spec->tied_to);
            return;
        }
        me_parameter_remove(b->nn, layer->weight);
        layer->weight = other->weight;
    }
    for (uint32_t i = 0; i < layer->n_children; i++) {
        tie(b, &layer->children[i]);
    }
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
        tie(&b, root);
    }
    if (tree->is_built_on_host || tree->has_cast) {
        me_parameters_to(nn, tree->has_cast ? &tree->cast : NULL);
    }
    return me_engine_is_ok(nn->e) ? root : NULL;
}

me_tensor *me_layer_forward(me_layer *layer, me_tensor *x)
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
    const me_layer_hooks *hooks = layer->hooks;
    if (hooks != NULL) {
        x = hooks->pre_forward(hooks->self, layer, x);
    }
    x = me_style_input(layer, x);
    me_tensor *y = kinds[layer->spec->kind].run(e, layer, x);
    y = me_style_output(layer, x, y);
    if (hooks != NULL && me_engine_is_ok(e)) {
        hooks->post_forward(hooks->self, layer, y);
    }
    me_leave(e, frame, y);
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
    const me_region_function function = {.run = run_region, .self = layer};
    return me_region_forward(layer->nn->e, &function, x);
}
