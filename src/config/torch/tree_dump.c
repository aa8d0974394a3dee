/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/config_private.h"
#include "config/torch/tree.h"
#include "config/torch/tree_keys.h"
#include "config/torch/tree_plan.h"

static void indent(me_str *text, int depth)
{
    for (int i = 0; i < depth; i++) {
        me_str_append(text, "    ");
    }
}

static void dump_class_name(const me_layer_spec *layer, me_str *text)
{
    if (layer->class_name != NULL) {
        me_str_printf(text, " class_name = \"%s\";", layer->class_name);
    }
}

static void dump_checkpoint(const me_layer_spec *layer, me_str *text)
{
    if (layer->is_checkpointed) {
        me_str_printf(text, " checkpoint = %s;",
                      layer->is_reentrant ? "\"reentrant\"" : "true");
    }
    if (layer->is_selective) {
        me_str_append(text, " checkpoint_policy = \"op\";");
    }
    if (layer->is_recomputed_to_end) {
        me_str_append(text, " checkpoint_early_stop = false;");
    }
}

/** What it says of itself but for its names and types. */
static void dump_settings(const me_layer_spec *layer, me_str *text)
{
    me_layer_keys_dump(layer, text);
    if (layer->kind == ME_LAYER_ADAPTIVE_AVG_POOL2D) {
        me_str_append(text, " output_size = 1;");
    }
    if (layer->kind == ME_LAYER_DROPOUT) {
        me_str_append(text, " p = ");
        me_option_format_double(layer->p, text);
        me_str_append(text, ";");
    }
    if (layer->tied_to != NULL) {
        me_str_printf(text, " weight = \"%s.weight\";", layer->tied_to);
    }
    dump_checkpoint(layer, text);
    if (layer->is_sharded) {
        me_str_append(text, " fully_shard = true;");
    }
    if (layer->keeps_unsharded) {
        me_str_append(text, " reshard_after_forward = false;");
    }
    if (layer->kind == ME_LAYER_MODULE) {
        me_str_printf(text, " forward = \"%s\";", layer->forward.text);
    }
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the file's groups
static void dump_layer(const me_layer_spec *layer, const me_layer_spec *parent,
                       int depth, me_str *text)
{
    indent(text, depth);
    me_str_printf(text, "%s%s: { class = \"%s\"; dtype = \"%s\";",
                  me_layer_is_list(parent) ? "m" : "", layer->name,
                  me_layer_kind_name(layer->kind), me_dtype_name(layer->dtype));
    dump_class_name(layer, text);
    dump_settings(layer, text);
    if (layer->n_children > 0) {
        me_str_append(text, "\n");
    }
    for (uint32_t i = 0; i < layer->n_children; i++) {
        dump_layer(&layer->children[i], layer, depth + 1, text);
    }
    if (layer->n_children > 0) {
        indent(text, depth);
    }
    me_str_append(text, "};\n");
}

void me_layers_dump(const me_layers *layers, me_str *text)
{
    const me_layer_tree *tree = &layers->tree;
    const me_layer_spec *root = &tree->root;
    me_str_printf(text, "module: {\n    class = \"%s\"; dtype = \"%s\";",
                  me_layer_kind_name(root->kind), me_dtype_name(root->dtype));
    dump_class_name(root, text);
    me_str_printf(text, " device = \"%s\";",
                  tree->is_meta            ? "meta"
                  : tree->stays_on_host    ? "host"
                  : tree->is_built_on_host ? "cpu"
                                           : "cuda");
    if (tree->has_cast) {
        me_str_printf(text, " to = \"%s\";", me_dtype_name(tree->cast));
    }
    dump_settings(root, text);
    me_str_append(text, "\n");
    me_layers_dump_plan(tree, text);
    for (uint32_t i = 0; i < root->n_children; i++) {
        dump_layer(&root->children[i], root, 1, text);
    }
    me_str_append(text, "};\n");
}
