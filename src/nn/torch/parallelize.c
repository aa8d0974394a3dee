/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/torch/parallelize.h"

#include "base/size.h"
#include "nn/torch/distribute.h"
#include "nn/torch/dtensor.h"
#include "ops/autocast_casts.h"
#include "ops/embedding_lookup.h"
#include "ops/functional_linear.h"
#include "tensor/autograd.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>

enum {
    PATTERN_BYTES = 128
};

static uint64_t ranks_of(const me_nn *nn)
{
    return (uint64_t)nn->comm->size[ME_GROUP_TENSOR];
}

static bool can_have(const me_layer *layer, me_style_kind kind)
{
    const me_layer_kind k = layer->spec->kind;
    switch (kind) {
    case ME_STYLE_COLWISE:
    case ME_STYLE_ROWWISE:
        return k == ME_LAYER_LINEAR || k == ME_LAYER_EMBEDDING;
    case ME_STYLE_SEQUENCE:
        return k == ME_LAYER_LAYER_NORM || k == ME_LAYER_RMS_NORM ||
               k == ME_LAYER_DROPOUT || k == ME_LAYER_MODULE;
    case ME_STYLE_PREPARE_INPUT:
    case ME_STYLE_PREPARE_OUTPUT:
    case ME_STYLE_COUNT: break;
    }
    return true;
}

/** DTensor.from_local() of all parameters, and those of Parameters below. */
// NOLINTNEXTLINE(misc-no-recursion): as deep as the tree
static void replicate(const me_nn *nn, me_layer *layer, bool is_owner)
{
    (void)me_distribute(nn, layer->weight, ME_DLAYOUT_REPLICATE,
                        ME_DLAYOUT_PARTIAL, is_owner);
    (void)me_distribute(nn, layer->bias, ME_DLAYOUT_REPLICATE,
                        ME_DLAYOUT_PARTIAL, is_owner);
    for (uint32_t i = 0; i < layer->n_children; i++) {
        replicate(nn, &layer->children[i], is_owner);
    }
}

/** What becomes of a module's parameters. */
static void partition(const me_nn *nn, me_layer *layer, me_style_kind kind)
{
    const bool is_table = layer->spec->kind == ME_LAYER_EMBEDDING;
    const me_dlayout first = ME_DLAYOUT_SHARD_0;
    const me_dlayout second = (me_dlayout)(ME_DLAYOUT_SHARD_0 + 1);
    const bool is_owner = layer->spec->tied_to == NULL;
    me_tensor *whole[2] = {NULL, NULL};
    if (kind == ME_STYLE_COLWISE) {
        const me_dlayout layout = is_table ? second : first;
        whole[0] = me_distribute(nn, layer->weight, layout, layout, is_owner);
        whole[1] = me_distribute(nn, layer->bias, first, first, is_owner);
    } else if (kind == ME_STYLE_ROWWISE) {
        whole[0] = is_table ? me_distribute(nn, layer->weight, first,
                                            ME_DLAYOUT_REPLICATE, is_owner)
                            : me_distribute(nn, layer->weight, second, second,
                                            is_owner);
        whole[1] = me_distribute(nn, layer->bias, ME_DLAYOUT_REPLICATE,
                                 ME_DLAYOUT_REPLICATE, is_owner);
    } else if (kind == ME_STYLE_SEQUENCE) {
        replicate(nn, layer, is_owner);
    }
    me_release(nn->e, whole[0]);
    me_release(nn->e, whole[1]);
}

static void apply(const me_nn *nn, me_layer *layer, const me_style *style)
{
    if (!can_have(layer, style->kind)) {
        me_engine_fail(nn->e, ME_ERR_CONFIG,
                       "parallelize_plan: \"%s\" is a %s, which has no %s",
                       style->path, me_layer_kind_name(layer->spec->kind),
                       me_style_kind_name(style->kind));
        return;
    }
    if (layer->n_styles == ME_LAYER_STYLES) {
        me_engine_fail(nn->e, ME_ERR_CONFIG,
                       "parallelize_plan: \"%s\" names a module that has %d "
                       "styles already",
                       style->path, ME_LAYER_STYLES);
        return;
    }
    layer->styles[layer->n_styles++] = style;
    partition(nn, layer, style->kind);
}

/** @return how many modules the rest of a path names below @p layer */
// NOLINTNEXTLINE(misc-no-recursion): as deep as the tree
static uint32_t apply_below(const me_nn *nn, me_layer *layer,
                            const me_style *style, const char *path)
{
    char pattern[PATTERN_BYTES] = "";
    const size_t length = strcspn(path, ".");
    const char *rest = path + length + (path[length] == '.' ? 1 : 0);
    uint32_t count = 0;
    if (length < sizeof pattern) {
        memcpy(pattern, path, length);
    }
    for (uint32_t i = 0; i < layer->n_children && me_engine_is_ok(nn->e); i++) {
        me_layer *child = &layer->children[i];
        if (fnmatch(pattern, child->spec->name, 0) != 0) {
            continue;
        }
        if (*rest == '\0') {
            apply(nn, child, style);
            count++;
        } else {
            count += apply_below(nn, child, style, rest);
        }
    }
    return count;
}

/** Characters of a path up to its first part with a star; 0: it has none. */
static size_t star_end(const char *path)
{
    const char *star = strchr(path, '*');
    return star == NULL ? 0 : (size_t)(star - path) + strcspn(star, ".");
}

/** Entries from @p first on that loop over the same modules. */
static uint32_t count_loop(const me_layer_tree *tree, uint32_t first)
{
    const char *path = tree->plan[first].path;
    const size_t length = star_end(path);
    uint32_t n = 1;
    while (length > 0 && first + n < tree->n_styles &&
           star_end(tree->plan[first + n].path) == length &&
           strncmp(tree->plan[first + n].path, path, length) == 0) {
        n++;
    }
    return n;
}

/** `for layer in layers: parallelize_module(layer, …)`: entries of the loop,
 *  module by module. @p at is where the rest of their common path begins */
// NOLINTNEXTLINE(misc-no-recursion): as deep as the tree
static void apply_loop(const me_nn *nn, me_layer *layer, const me_style *styles,
                       uint32_t *counts, uint32_t n, size_t at)
{
    char pattern[PATTERN_BYTES] = "";
    const char *path = styles[0].path;
    const size_t length = strcspn(path + at, ".");
    const size_t end = at + length;
    if (length < sizeof pattern) {
        memcpy(pattern, path + at, length);
    }
    for (uint32_t i = 0; i < layer->n_children && me_engine_is_ok(nn->e); i++) {
        me_layer *child = &layer->children[i];
        if (fnmatch(pattern, child->spec->name, 0) != 0) {
            continue;
        }
        if (end < star_end(path)) {
            apply_loop(nn, child, styles, counts, n, end + 1);
            continue;
        }
        for (uint32_t k = 0; k < n && me_engine_is_ok(nn->e); k++) {
            if (styles[k].path[end] == '\0') {
                apply(nn, child, &styles[k]);
                counts[k]++;
            } else {
                counts[k] += apply_below(nn, child, &styles[k],
                                         styles[k].path + end + 1);
            }
        }
    }
}

/** @param counts  of modules that each entry names */
static void apply_plan(const me_nn *nn, me_layer *root,
                       const me_layer_tree *tree, uint32_t *counts)
{
    for (uint32_t i = 0; i < tree->n_styles && me_engine_is_ok(nn->e);) {
        const uint32_t n = count_loop(tree, i);
        if (n > 1) {
            apply_loop(nn, root, &tree->plan[i], &counts[i], n, 0);
        } else {
            counts[i] =
                apply_below(nn, root, &tree->plan[i], tree->plan[i].path);
        }
        i += n;
    }
    me_distribute_end(nn);
}

static uint32_t *counts_of(const me_nn *nn, const me_layer_tree *tree)
{
    return me_engine_alloc(nn->e, (size_t)tree->n_styles + 1, sizeof(uint32_t));
}

void me_parallelize_stage(me_nn *nn, me_layer *root, const me_layer_tree *tree)
{
    apply_plan(nn, root, tree, counts_of(nn, tree));
}

void me_parallelize(me_nn *nn, me_layer *root, const me_layer_tree *tree)
{
    uint32_t *counts = counts_of(nn, tree);
    apply_plan(nn, root, tree, counts);
    for (uint32_t i = 0; i < tree->n_styles && me_engine_is_ok(nn->e); i++) {
        if (counts[i] == 0) {
            me_engine_fail(nn->e, ME_ERR_CONFIG,
                           "parallelize_plan: \"%s\" names no module",
                           tree->plan[i].path);
        }
    }
}

/** How the gradient of a module's input lies: a summand of each rank where all
 *  see the whole and have a part of the weights. */
static me_dlayout input_gradient(const me_style *style)
{
    const bool is_summed =
        style->desired_input == ME_DLAYOUT_REPLICATE &&
        !(style->kind == ME_STYLE_PREPARE_INPUT && style->use_local_output);
    return is_summed ? ME_DLAYOUT_PARTIAL : style->desired_input;
}

static me_tensor *prepare_input(const me_layer *layer, const me_style *style,
                                me_tensor *x)
{
    const me_nn *nn = layer->nn;
    const int32_t n = x->shape.ndim;
    const bool is_table = layer->spec->kind == ME_LAYER_EMBEDDING;
    const me_dlayout desired = is_table
                                   ? ME_DLAYOUT_REPLICATE
                                   : me_dlayout_of(style->desired_input, n);
    const me_dlayout gradient = input_gradient(style);
    if (me_layout_of(x) == ME_DLAYOUT_NONE) {
        const me_dlayout input = me_dlayout_of(style->input, n);
        if (style->kind == ME_STYLE_ROWWISE && !is_table &&
            me_uneven_extent(nn, layer->spec->inputs) != 0) {
            me_engine_fail(nn->e, ME_ERR_CONFIG,
                           "module %s: %" PRIu64 " in_features, which %" PRIu64
                           " ranks do not divide, of a plain tensor: the "
                           "module before needs use_local_output = false",
                           me_module_shown(nn->e), layer->spec->inputs,
                           ranks_of(nn));
        }
        x = me_from_local(nn, x, input, input == desired ? gradient : input);
    }
    x = me_redistribute(nn, x, desired, gradient);
    return style->kind == ME_STYLE_PREPARE_INPUT && style->use_local_output
               ? me_to_local(nn, x)
               : x;
}

me_tensor *me_style_input(const me_layer *layer, me_tensor *x)
{
    me_engine *e = layer->nn->e;
    for (uint32_t i = 0; i < layer->n_styles && me_engine_is_ok(e); i++) {
        if (layer->styles[i]->kind != ME_STYLE_PREPARE_OUTPUT) {
            x = prepare_input(layer, layer->styles[i], x);
        }
    }
    return x;
}

/** Is the class one that keeps the layout of its input? */
static bool keeps_layout(me_layer_kind kind)
{
    return kind == ME_LAYER_RELU || kind == ME_LAYER_GELU ||
           kind == ME_LAYER_SILU || kind == ME_LAYER_DROPOUT;
}

static void check_plain(const me_layer *layer)
{
    me_engine *e = layer->nn->e;
    const me_layer_kind kind = layer->spec->kind;
    if (!keeps_layout(kind) && !me_layer_kind_has_children(kind)) {
        me_engine_fail(e, ME_ERR_CONFIG,
                       "module %s: %s gets a DTensor and needs a style in "
                       "parallelize_plan",
                       me_module_shown(e), me_layer_kind_name(kind));
    }
}

static me_tensor *prepare_output(const me_layer *layer, const me_style *style,
                                 me_tensor *y)
{
    const me_nn *nn = layer->nn;
    const int32_t n = y->shape.ndim;
    me_dlayout to = me_dlayout_of(style->output, n);
    if (style->kind == ME_STYLE_COLWISE) {
        me_lay_uneven(nn->e, y, me_dlayout_of(ME_DLAYOUT_SHARD_LAST, n),
                      me_uneven_extent(nn, layer->spec->outputs));
    } else if (style->kind == ME_STYLE_ROWWISE) {
        me_lay(nn->e, y, ME_DLAYOUT_PARTIAL);
    } else if (style->kind == ME_STYLE_SEQUENCE) {
        to = me_dlayout_of(style->input, n);
        me_lay(nn->e, y, to);
    } else if (style->kind == ME_STYLE_PREPARE_OUTPUT) {
        if (me_layout_of(y) == ME_DLAYOUT_NONE) {
            y = me_from_local(nn, y, to, to);
        }
        to = me_dlayout_of(style->desired_output, n);
    } else {
        return y;
    }
    y = me_redistribute(nn, y, to, to);
    return style->use_local_output ? me_to_local(nn, y) : y;
}

me_tensor *me_style_output(const me_layer *layer, const me_tensor *x,
                           me_tensor *y)
{
    me_engine *e = layer->nn->e;
    if (layer->n_styles == 0 && me_layout_of(x) != ME_DLAYOUT_NONE && y != x &&
        me_engine_is_ok(e)) {
        check_plain(layer);
        if (keeps_layout(layer->spec->kind)) {
            me_lies_as(e, y, x);
        }
    }
    for (uint32_t i = 0; i < layer->n_styles && me_engine_is_ok(e); i++) {
        y = prepare_output(layer, layer->styles[i], y);
    }
    return y;
}

static bool is_rowwise(const me_layer *layer)
{
    for (uint32_t i = 0; i < layer->n_styles; i++) {
        if (layer->styles[i]->kind == ME_STYLE_ROWWISE) {
            return true;
        }
    }
    return false;
}

me_tensor *me_rowwise_linear(const me_layer *layer, me_tensor *x)
{
    me_engine *e = layer->nn->e;
    me_tensor *weight = layer->weight->tensor;
    me_tensor *bias = layer->bias == NULL ? NULL : layer->bias->tensor;
    if (bias == NULL || !is_rowwise(layer)) {
        return me_functional_linear(e, x, weight, bias);
    }
    const me_frame frame = me_enter(e);
    bias = me_autocast_lower(e, bias);
    weight = me_autocast_lower(e, weight);
    x = me_autocast_lower(e, x);
    me_tensor *part = me_redistribute_local(
        layer->nn, bias, ME_DLAYOUT_REPLICATE, ME_DLAYOUT_PARTIAL, false);
    me_tensor *y = me_functional_linear(e, x, weight, bias);
    me_drop(e, part);
    return me_leave(e, frame, y);
}

me_tensor *me_rowwise_embedding(const me_layer *layer, me_tensor *x)
{
    me_engine *e = layer->nn->e;
    const me_parameter *table = layer->weight;
    if (!is_rowwise(layer)) {
        return me_embedding(e, x, table->tensor);
    }
    me_tensor *below = me_empty(e, "lt", ME_DTYPE_BOOL, x->shape);
    me_tensor *above = me_empty(e, "ge", ME_DTYPE_BOOL, x->shape);
    me_tensor *mask = me_empty(e, "bitwise_or", ME_DTYPE_BOOL, x->shape);
    me_drop(e, below);
    me_drop(e, above);
    me_tensor *copy = me_empty(e, "clone", ME_DTYPE_INT64, x->shape);
    me_tensor *shifted = me_empty(e, "sub", ME_DTYPE_INT64, x->shape);
    me_drop(e, copy);
    me_tensor *y = me_embedding(e, x, table->tensor);
    if (y->grad_fn != NULL) { // a gradient of all rows
        y->grad_fn->data.shape.dim[0] = me_dparameter_of(table)->whole[0];
    }
    me_drop(e, shifted);
    me_drop(e, mask); // applied before the sum
    return y;
}
