/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/str.h"
#include "train/torch/loop.h"

#include <string.h>

/* `model.encoder(x)` in the place of `model(x)`. Parameters of other modules get
 * no gradients, and an optimizer leaves them alone. */

enum {
    NAMES_SHOWN = 8
};

static void refuse(me_loop *l, const char *why)
{
    me_engine_fail(l->e, ME_ERR_CONFIG, "torch.called_module = \"%s\": %s",
                   l->config->torch.called_module, why);
}

/** The same with a text of the caller's, which goes. */
static void refuse_text(me_loop *l, me_str *why)
{
    if (me_str_status(why) == ME_OK) {
        refuse(l, me_str_text(why));
    } else {
        me_engine_fail(l->e, ME_ERR_NOMEM, "no host memory for a message");
    }
    me_str_fini(why);
}

/** The innermost module of the path that there is; its own path is left in
 *  @p path. */
static const me_layer *innermost(me_loop *l, char *path)
{
    const me_layer *layer = NULL;
    while (layer == NULL) {
        char *dot = strrchr(path, '.');
        *(dot == NULL ? path : dot) = '\0';
        layer = me_layer_find(l->model, path);
    }
    return layer;
}

/** Nothing has the name: what there is beside it. */
static void refuse_name(me_loop *l)
{
    const size_t bytes = strlen(l->config->torch.called_module) + 1;
    char *path = me_engine_alloc(l->e, bytes, 1);
    if (path == NULL) {
        return;
    }
    memcpy(path, l->config->torch.called_module, bytes);
    const me_layer *layer = innermost(l, path);
    me_str why = {0};
    me_str_printf(&why, "there is no such module; %s has ",
                  path[0] == '\0' ? "the model" : path);
    for (uint32_t i = 0; i < layer->n_children && i < NAMES_SHOWN; i++) {
        me_str_printf(&why, "%s%s", i == 0 ? "" : ", ",
                      layer->children[i].spec->name);
    }
    me_str_append(&why, layer->n_children == 0            ? "none"
                        : layer->n_children > NAMES_SHOWN ? " and more"
                                                          : "");
    refuse_text(l, &why);
}

static bool has_forward(const me_layer *layer)
{
    return layer->spec->kind != ME_LAYER_MODULE_LIST &&
           layer->spec->kind != ME_LAYER_PARAMETER &&
           layer->spec->kind != ME_LAYER_BUFFER;
}

/** Is a weight that of a module outside of the one with @p path? */
// NOLINTNEXTLINE(misc-no-recursion): as deep as the tree
static bool is_tied_outside(const me_layer_spec *layer, const char *path)
{
    const size_t length = strlen(path);
    bool is =
        layer->tied_to != NULL && (strncmp(layer->tied_to, path, length) != 0 ||
                                   layer->tied_to[length] != '.');
    for (uint32_t i = 0; i < layer->n_children && !is; i++) {
        is = is_tied_outside(&layer->children[i], path);
    }
    return is;
}

/** A group is gathered by the forward of its own module. */
static void check_sharding(me_loop *l, const me_layer *called)
{
    if (!called->spec->is_sharded) {
        refuse(l, "fully_shard gathers parameters in the forward of the module "
                  "that it was called for, which needs fully_shard = true");
    } else if (is_tied_outside(called->spec, l->config->torch.called_module)) {
        refuse(l, "with fully_shard weights that are tied to those of other "
                  "modules are not modelled there");
    }
}

me_layer *me_loop_find_called(me_loop *l)
{
    if (!me_engine_is_ok(l->e) || l->config->torch.called_module[0] == '\0') {
        return l->model;
    }
    me_layer *called = me_layer_find(l->model, l->config->torch.called_module);
    if (called == NULL) {
        refuse_name(l);
    } else if (!has_forward(called)) {
        me_str why = {0};
        me_str_printf(&why, "a %s has no forward",
                      me_layer_kind_name(called->spec->kind));
        refuse_text(l, &why);
    } else if (l->config->torch.data_parallel == ME_DATA_PARALLEL_FULLY_SHARD) {
        check_sharding(l, called);
    }
    return called;
}
