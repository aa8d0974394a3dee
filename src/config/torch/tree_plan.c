/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/torch/tree_plan.h"

#include <stddef.h>
#include <string.h>

/** What PyTorch fills in where a plan says nothing (parallel/style.py). */
static const struct {
    me_dlayout input;
    me_dlayout desired_input;
    me_dlayout output;
    bool use_local_output;
} defaults[ME_STYLE_COUNT] = {
    [ME_STYLE_COLWISE] = {ME_DLAYOUT_REPLICATE, ME_DLAYOUT_REPLICATE,
                          ME_DLAYOUT_SHARD_LAST, true},
    [ME_STYLE_ROWWISE] = {ME_DLAYOUT_SHARD_LAST, ME_DLAYOUT_SHARD_LAST,
                          ME_DLAYOUT_REPLICATE, true},
    [ME_STYLE_SEQUENCE] = {(me_dlayout)(ME_DLAYOUT_SHARD_0 + 1),
                           (me_dlayout)(ME_DLAYOUT_SHARD_0 + 1),
                           ME_DLAYOUT_NONE, false},
    [ME_STYLE_PREPARE_INPUT] = {ME_DLAYOUT_NONE, ME_DLAYOUT_NONE,
                                ME_DLAYOUT_NONE, false},
    [ME_STYLE_PREPARE_OUTPUT] = {ME_DLAYOUT_NONE, ME_DLAYOUT_NONE,
                                 ME_DLAYOUT_NONE, true},
};

static me_status read_style_kind(const me_layers_reading *r,
                                 config_setting_t *group,
                                 me_style_kind *kind_out)
{
    const config_setting_t *setting = config_setting_get_member(group, "style");
    const char *word =
        setting == NULL ? NULL : config_setting_get_string(setting);
    me_str known = {0};
    for (int i = 0; i < ME_STYLE_COUNT; i++) {
        const char *name = me_style_kind_name((me_style_kind)i);
        if (word != NULL && strcmp(name, word) == 0) {
            *kind_out = (me_style_kind)i;
            me_str_fini(&known);
            return ME_OK;
        }
        me_str_printf(&known, "%s%s", i == 0 ? "" : ", ", name);
    }
    const me_status status = me_fail_at(
        r->diag, ME_ERR_CONFIG, r->where,
        (int)config_setting_source_line(setting == NULL ? group : setting),
        "style: must be one of %s", me_str_text(&known));
    me_str_fini(&known);
    return status;
}

/** "Replicate", "Shard(1)", "Shard(-1)"; as Python writes it, "Replicate()". */
static me_status read_layout(const me_layers_reading *r,
                             const config_setting_t *setting,
                             me_dlayout *layout_out)
{
    const char *word = config_setting_get_string(setting);
    if (word != NULL &&
        (strcmp(word, "Replicate") == 0 || strcmp(word, "Replicate()") == 0)) {
        *layout_out = ME_DLAYOUT_REPLICATE;
        return ME_OK;
    }
    if (word != NULL && strcmp(word, "Shard(-1)") == 0) {
        *layout_out = ME_DLAYOUT_SHARD_LAST;
        return ME_OK;
    }
    if (word != NULL && strlen(word) == strlen("Shard(0)") &&
        strncmp(word, "Shard(", 6) == 0 && word[6] >= '0' && word[6] <= '4' &&
        word[7] == ')') {
        *layout_out = (me_dlayout)(ME_DLAYOUT_SHARD_0 + (word[6] - '0'));
        return ME_OK;
    }
    return me_layers_fail(r, setting,
                          "must be Replicate or Shard(d), d from -1 to 4");
}

static me_status set_path(const me_layers_reading *r,
                          const config_setting_t *setting, me_style *style)
{
    const char *text = config_setting_get_string(setting);
    if (text == NULL || text[0] == '\0') {
        return me_layers_fail(r, setting,
                              "must be a path of modules, \"layers.*.w1\"");
    }
    style->path = me_arena_strdup(r->arena, text);
    return style->path == NULL ? me_layers_no_memory(r) : ME_OK;
}

static me_status set_use_local(const me_layers_reading *r,
                               const config_setting_t *setting, me_style *style)
{
    if (config_setting_type(setting) != CONFIG_TYPE_BOOL) {
        return me_layers_fail(r, setting, "must be true or false");
    }
    style->use_local_output = config_setting_get_bool(setting) != 0;
    return ME_OK;
}

static me_status set_sequence_dim(const me_layers_reading *r,
                                  const config_setting_t *setting,
                                  me_style *style)
{
    const int type = config_setting_type(setting);
    const int64_t dim = (int64_t)config_setting_get_int64(setting);
    if ((type != CONFIG_TYPE_INT && type != CONFIG_TYPE_INT64) || dim < 0 ||
        dim > 4) {
        return me_layers_fail(r, setting, "must be a dimension from 0 to 4");
    }
    style->input = (me_dlayout)(ME_DLAYOUT_SHARD_0 + dim);
    style->desired_input = style->input;
    return ME_OK;
}

#define STYLE(kind) (1U << (unsigned)(kind))
#define AT(field)   offsetof(me_style, field)
#define LINEARS     (STYLE(ME_STYLE_COLWISE) | STYLE(ME_STYLE_ROWWISE))

/** Keys of an entry: of which styles, and which of them need it. */
static const struct {
    const char *key;
    unsigned styles;
    unsigned required;
    size_t layout; /**< of the style's field that gets a layout; or */
    me_status (*set)(const me_layers_reading *r,
                     const config_setting_t *setting, me_style *style);
} keys[] = {
    {"module", ~0U, ~0U, .set = set_path},
    {"use_local_output", ~0U, 0, .set = set_use_local},
    {"input_layouts", LINEARS | STYLE(ME_STYLE_PREPARE_INPUT),
     STYLE(ME_STYLE_PREPARE_INPUT), .layout = AT(input)},
    {"desired_input_layouts", STYLE(ME_STYLE_PREPARE_INPUT),
     STYLE(ME_STYLE_PREPARE_INPUT), .layout = AT(desired_input)},
    {"output_layouts", LINEARS | STYLE(ME_STYLE_PREPARE_OUTPUT),
     STYLE(ME_STYLE_PREPARE_OUTPUT), .layout = AT(output)},
    {"desired_output_layouts", STYLE(ME_STYLE_PREPARE_OUTPUT),
     STYLE(ME_STYLE_PREPARE_OUTPUT), .layout = AT(desired_output)},
    {"sequence_dim", STYLE(ME_STYLE_SEQUENCE), 0, .set = set_sequence_dim},
};

enum {
    N_KEYS = sizeof keys / sizeof keys[0]
};

static me_status set_key(const me_layers_reading *r,
                         const config_setting_t *setting, me_style *style)
{
    for (size_t i = 0; i < N_KEYS; i++) {
        if (strcmp(keys[i].key, config_setting_name(setting)) == 0 &&
            (keys[i].styles & STYLE(style->kind)) != 0) {
            void *field = (char *)style + keys[i].layout;
            return keys[i].set != NULL ? keys[i].set(r, setting, style)
                                       : read_layout(r, setting, field);
        }
    }
    return me_fail_at(r->diag, ME_ERR_CONFIG, r->where,
                      (int)config_setting_source_line(setting),
                      "%s has no '%.40s'", me_style_kind_name(style->kind),
                      config_setting_name(setting));
}

static me_status read_style(const me_layers_reading *r, config_setting_t *group,
                            me_style *style)
{
    me_status status = read_style_kind(r, group, &style->kind);
    if (status != ME_OK) {
        return status;
    }
    style->input = defaults[style->kind].input;
    style->desired_input = defaults[style->kind].desired_input;
    style->output = defaults[style->kind].output;
    style->use_local_output = defaults[style->kind].use_local_output;
    const int count = config_setting_length(group);
    for (int i = 0; i < count && status == ME_OK; i++) {
        const config_setting_t *s = config_setting_get_elem(group, (unsigned)i);
        if (strcmp(config_setting_name(s), "style") != 0) {
            status = set_key(r, s, style);
        }
    }
    for (size_t i = 0; i < N_KEYS && status == ME_OK; i++) {
        if ((keys[i].required & STYLE(style->kind)) != 0 &&
            config_setting_get_member(group, keys[i].key) == NULL) {
            status = me_fail_at(r->diag, ME_ERR_CONFIG, r->where,
                                (int)config_setting_source_line(group),
                                "%s needs %s", me_style_kind_name(style->kind),
                                keys[i].key);
        }
    }
    return status;
}

me_status me_layers_read_plan(const me_layers_reading *r,
                              config_setting_t *plan, me_layer_tree *tree)
{
    const int count = config_setting_length(plan);
    if (config_setting_is_group(plan) == 0 || count == 0) {
        return me_layers_fail(r, plan,
                              "must be a group of groups, one a style: "
                              "{ w1: { module = \"layers.*.w1\"; style = "
                              "\"ColwiseParallel\"; }; }");
    }
    tree->plan = me_arena_alloc(r->arena, (size_t)count, sizeof *tree->plan);
    if (tree->plan == NULL) {
        return me_layers_no_memory(r);
    }
    for (int i = 0; i < count; i++) {
        config_setting_t *group = config_setting_get_elem(plan, (unsigned)i);
        if (config_setting_is_group(group) == 0) {
            return me_layers_fail(r, group, "must be a group");
        }
        const me_status status = read_style(r, group, &tree->plan[i]);
        if (status != ME_OK) {
            return status;
        }
        tree->n_styles++;
    }
    return ME_OK;
}

static void dump_layout(const char *key, me_dlayout layout, me_str *text)
{
    if (layout == ME_DLAYOUT_REPLICATE) {
        me_str_printf(text, " %s = \"Replicate\";", key);
    } else if (layout == ME_DLAYOUT_SHARD_LAST) {
        me_str_printf(text, " %s = \"Shard(-1)\";", key);
    } else if (layout >= ME_DLAYOUT_SHARD_0) {
        me_str_printf(text, " %s = \"Shard(%d)\";", key,
                      (int)layout - (int)ME_DLAYOUT_SHARD_0);
    }
}

static bool has_key(const me_style *style, size_t key)
{
    return (keys[key].styles & STYLE(style->kind)) != 0;
}

void me_layers_dump_plan(const me_layer_tree *tree, me_str *text)
{
    if (tree->n_styles == 0) {
        return;
    }
    me_str_append(text, "    parallelize_plan: {\n");
    for (uint32_t i = 0; i < tree->n_styles; i++) {
        const me_style *s = &tree->plan[i];
        me_str_printf(text, "        s%u: { module = \"%s\"; style = \"%s\";",
                      i, s->path, me_style_kind_name(s->kind));
        if (s->kind == ME_STYLE_SEQUENCE) {
            me_str_printf(text, " sequence_dim = %d;",
                          (int)s->input - (int)ME_DLAYOUT_SHARD_0);
        }
        const me_dlayout layouts[] = {s->input, s->desired_input, s->output,
                                      s->desired_output};
        for (size_t k = 0; k < sizeof layouts / sizeof layouts[0]; k++) {
            if (has_key(s, k + 2)) {
                dump_layout(keys[k + 2].key, layouts[k], text);
            }
        }
        me_str_printf(text, " use_local_output = %s; };\n",
                      s->use_local_output ? "true" : "false");
    }
    me_str_append(text, "    };\n");
}
