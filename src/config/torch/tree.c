/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/torch/tree.h"

#include "base/alloc.h"
#include "config/torch/forward_text.h"
#include "config/torch/tree_keys.h"

#include <stdio.h>
#include <string.h>

/** Far above any tree that can be written by hand, repeats included. */
static const uint64_t tree_max_bytes = UINT64_C(256) << 20;

enum {
    MODULES_MAX = 1 << 18
};

/** `class`, or Module where there is none. */
static me_status read_class(const me_layers_reading *r,
                            const config_setting_t *group,
                            me_layer_kind *kind_out)
{
    const config_setting_t *setting = config_setting_get_member(group, "class");
    const char *word =
        setting == NULL ? "Module" : config_setting_get_string(setting);
    me_str known = {0};
    for (int i = 0; i < ME_LAYER_COUNT; i++) {
        const char *name = me_layer_kind_name((me_layer_kind)i);
        if (word != NULL && strcmp(name, word) == 0) {
            *kind_out = (me_layer_kind)i;
            me_str_fini(&known);
            return ME_OK;
        }
        me_str_printf(&known, "%s%s", i == 0 ? "" : ", ", name);
    }
    const me_status status =
        me_fail_at(r->diag, ME_ERR_CONFIG, r->where,
                   (int)config_setting_source_line(setting),
                   "class: must be one of %s", me_str_text(&known));
    me_str_fini(&known);
    return status;
}

static bool is_child(const config_setting_t *setting)
{
    return config_setting_is_group(setting) != 0 &&
           strcmp(config_setting_name(setting), "parallelize_plan") != 0;
}

/** All keys of a group but for its children and its forward. */
static me_status set_keys(const me_layers_reading *r, config_setting_t *group,
                          const me_layer_target *t)
{
    const int count = config_setting_length(group);
    for (int i = 0; i < count; i++) {
        const config_setting_t *s = config_setting_get_elem(group, (unsigned)i);
        const char *name = config_setting_name(s);
        const bool is_forward =
            strcmp(name, "forward") == 0 && t->layer->kind == ME_LAYER_MODULE;
        if (is_child(s) || strcmp(name, "class") == 0 || is_forward) {
            continue;
        }
        const me_status status = me_layer_key_set(r, s, t);
        if (status != ME_OK) {
            return status;
        }
    }
    return me_layer_keys_check(r, group, t->layer);
}

static me_status read_layer(me_layers_reading *r, config_setting_t *group,
                            const me_layer_target *t);

/** A list that grows one at a time; the arena keeps what it leaves behind. */
static me_layer_spec *append(me_layers_reading *r, me_layer_spec *parent)
{
    const uint32_t n = parent->n_children;
    if (n == 0 || (n >= 8 && (n & (n - 1)) == 0)) {
        me_layer_spec *larger = me_arena_alloc(
            r->arena, n == 0 ? 8 : (size_t)n * 2, sizeof *larger);
        if (larger == NULL) {
            return NULL;
        }
        if (n > 0) {
            memcpy(larger, parent->children, n * sizeof *larger);
        }
        parent->children = larger;
    }
    r->n_modules++;
    parent->n_children++;
    return &parent->children[n];
}

/** An attribute's name; in a list its place. */
static const char *name_of(const me_layers_reading *r,
                           const me_layer_spec *parent, const char *written)
{
    char number[16] = "";
    (void)snprintf(number, sizeof number, "%u", parent->n_children - 1);
    return me_arena_strdup(r->arena,
                           me_layer_is_list(parent) ? number : written);
}

/** A child and its copies. */
static me_status add_child(me_layers_reading *r, config_setting_t *group,
                           me_layer_spec *parent)
{
    me_layer_placing placing = {.repeat = 1, .repeat_children = 1};
    me_layer_spec *first = append(r, parent);
    if (first == NULL) {
        return me_layers_no_memory(r);
    }
    *first = (me_layer_spec){.dtype = parent->dtype};
    first->name = name_of(r, parent, config_setting_name(group));
    if (first->name == NULL) {
        return me_layers_no_memory(r);
    }
    me_layer_spec child = *first;
    const me_status status = read_layer(
        r, group, &(me_layer_target){.layer = &child, .placing = &placing});
    if (status != ME_OK) {
        return status;
    }
    if (placing.repeat > 1 && !me_layer_is_list(parent)) {
        return me_fail_at(r->diag, ME_ERR_CONFIG, r->where,
                          (int)config_setting_source_line(group),
                          "repeat: %s is no Sequential or ModuleList",
                          parent->name);
    }
    if (placing.checkpoint_from >= placing.repeat &&
        placing.checkpoint_from > 0) {
        return me_fail_at(r->diag, ME_ERR_CONFIG, r->where,
                          (int)config_setting_source_line(group),
                          "checkpoint_from = %lld: %s is there %lld times, "
                          "from 0, so that none is checkpointed",
                          (long long)placing.checkpoint_from,
                          config_setting_name(group),
                          (long long)placing.repeat);
    }
    for (int64_t i = 0; i < placing.repeat; i++) {
        me_layer_spec *copy = i == 0 ? &parent->children[parent->n_children - 1]
                                     : append(r, parent);
        if (copy == NULL || r->n_modules > MODULES_MAX) {
            return me_layers_no_memory(r);
        }
        *copy = child;
        copy->name = name_of(r, parent, child.name);
        if (copy->name == NULL) {
            return me_layers_no_memory(r);
        }
        copy->is_checkpointed =
            child.is_checkpointed && i >= placing.checkpoint_from;
    }
    return ME_OK;
}

static me_status add_children(me_layers_reading *r, config_setting_t *group,
                              me_layer_spec *layer, int64_t times)
{
    const int count = config_setting_length(group);
    for (int64_t k = 0; k < times; k++) {
        for (int i = 0; i < count; i++) {
            config_setting_t *s = config_setting_get_elem(group, (unsigned)i);
            if (!is_child(s)) {
                continue;
            }
            if (!me_layer_kind_has_children(layer->kind)) {
                return me_layers_fail(r, s, "this class has no children");
            }
            const me_status status = add_child(r, s, layer);
            if (status != ME_OK) {
                return status;
            }
        }
    }
    return ME_OK;
}

/** Of a Module; without one its children run one after the other. */
static me_status read_forward(const me_layers_reading *r,
                              const config_setting_t *group,
                              me_layer_spec *layer)
{
    static const char *const parameters[] = {"x"};
    const config_setting_t *setting =
        config_setting_get_member(group, "forward");
    me_str text = {0};
    if (setting != NULL && config_setting_get_string(setting) == NULL) {
        return me_layers_fail(r, setting, "must be text in quotes");
    }
    if (setting != NULL) {
        layer->line = (int)config_setting_source_line(setting);
        me_str_append(&text, config_setting_get_string(setting));
    } else {
        for (uint32_t i = 0; i < layer->n_children; i++) {
            const me_layer_kind kind = layer->children[i].kind;
            if (kind != ME_LAYER_PARAMETER && kind != ME_LAYER_BUFFER) {
                me_str_printf(&text, "x = %s(x); ", layer->children[i].name);
            }
        }
        me_str_append(&text, "return x");
    }
    me_str why = {0};
    const me_forward_scope scope = {
        .parameters = parameters,
        .n_parameters = 1,
        .children = layer->children,
        .n_children = layer->n_children,
        .must_return = true,
    };
    me_status status = me_str_status(&text);
    if (status == ME_OK) {
        status = me_forward_parse(r->arena, me_str_text(&text), &scope, &why,
                                  &layer->forward);
    }
    if (status == ME_ERR_CONFIG) {
        status = me_layers_fail(r, setting == NULL ? group : setting,
                                me_str_text(&why));
    } else if (status != ME_OK) {
        status = me_layers_no_memory(r);
    }
    me_str_fini(&why);
    me_str_fini(&text);
    return status;
}

// NOLINTNEXTLINE(misc-no-recursion): the file's groups nest 16 deep at most
static me_status read_layer(me_layers_reading *r, config_setting_t *group,
                            const me_layer_target *t)
{
    me_layer_spec *layer = t->layer;
    layer->where = r->where;
    layer->line = (int)config_setting_source_line(group);
    layer->has_bias = true;
    layer->p = 0.5;
    me_status status = read_class(r, group, &layer->kind);
    if (status == ME_OK) {
        status = set_keys(r, group, t);
    }
    if (status == ME_OK) {
        status = add_children(r, group, layer, t->placing->repeat_children);
    }
    if (status == ME_OK && layer->kind == ME_LAYER_MODULE) {
        status = read_forward(r, group, layer);
    }
    return status;
}

me_status me_layers_read(config_setting_t *group, const char *where,
                         me_diag *diag, me_layers **layers_out)
{
    me_layers *layers = me_alloc(1, sizeof *layers, "config.layers");
    if (layers != NULL) {
        layers->refs = 1;
        layers->arena = me_arena_create(tree_max_bytes, "config.layers");
    }
    if (layers == NULL || layers->arena == NULL) {
        me_layers_release(layers);
        return me_fail(diag, ME_ERR_NOMEM, "no memory for modules");
    }
    me_layers_reading r = {.arena = layers->arena,
                           .where = me_arena_strdup(layers->arena, where),
                           .diag = diag};
    if (r.where == NULL) {
        me_layers_release(layers);
        return me_fail(diag, ME_ERR_NOMEM, "no memory for modules");
    }
    me_layer_placing placing = {.repeat = 1, .repeat_children = 1};
    layers->tree.root.name = "";
    me_status status = read_layer(
        &r, group,
        &(me_layer_target){&layers->tree.root, &placing, &layers->tree});
    if (status == ME_OK && layers->tree.root.kind == ME_LAYER_MODULE_LIST) {
        status =
            me_layers_fail(&r, group,
                           "a ModuleList has no forward; a Sequential or a "
                           "Module is a model");
    }
    if (status == ME_OK && placing.repeat > 1) {
        status =
            me_layers_fail(&r, group, "the whole model cannot be repeated");
    }
    if (status != ME_OK) {
        me_layers_release(layers);
        return status;
    }
    *layers_out = layers;
    return ME_OK;
}

me_layers *me_layers_retain(me_layers *layers)
{
    if (layers != NULL) {
        layers->refs++;
    }
    return layers;
}

void me_layers_release(me_layers *layers)
{
    if (layers != NULL && --layers->refs == 0) {
        me_arena_destroy(layers->arena);
        me_free(layers);
    }
}
