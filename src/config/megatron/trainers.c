/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/megatron/trainers.h"

#include "base/input.h"
#include "base/parse.h"
#include "config/config_private.h"
#include "config/file.h"
#include "config/hub_cache.h"
#include "config/known_models.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    ARENA_BYTES = 64 << 20
};

/** Of a model's file, with what the one that was asked for has beside it. */
static me_status read_shapes(me_config *config, const char *name,
                             const char *model, me_diag *diag)
{
    const me_effect effect = ME_HIGHER(ANY);
    const me_status status = me_config_read_file(config, model, diag);
    return status != ME_OK || !me_known_model_sees_images(name)
               ? status
               : me_config_add_not_modelled(
                     config, name,
                     "an encoder of images; the language model alone is "
                     "estimated",
                     effect, diag);
}

me_status me_trainer_read_known(me_config *config, const char *name,
                                me_diag *diag, me_str *model_out)
{
    const bool is_known = me_known_model(name, model_out);
    const me_status status = me_str_status(model_out);
    if (status != ME_OK) {
        return me_fail(diag, status, "no memory for a model's name");
    }
    return is_known ? read_shapes(config, name, me_str_text(model_out), diag)
                    : ME_OK;
}

me_status me_trainer_read_named(me_config *config, const char *flag,
                                const char *name, me_diag *diag)
{
    me_str model = {0};
    const char *lacks = me_known_model_lacks(name);
    me_status status = me_trainer_read_known(config, name, diag, &model);
    if (status == ME_OK && model.length == 0 && lacks != NULL) {
        status = me_fail(diag, ME_ERR_UNSUPPORTED,
                         "%.60s %.80s is not modelled: it has %s", flag, name,
                         lacks);
    } else if (status == ME_OK && model.length == 0) {
        status = me_fail(diag, ME_ERR_CONFIG,
                         "%.60s %.80s: no folder with a config.json, not in "
                         "Hugging Face's cache, and no known name: give memest "
                         "--model with its config.json or a name of `memest "
                         "list models`",
                         flag, name);
    }
    if (status == ME_OK) {
        status = me_config_assume(
            config, diag,
            "the model of %.60s %.80s is %s of configs/models, since its "
            "config.json is not on this machine",
            flag, name, me_str_text(&model));
    }
    me_str_fini(&model);
    return status;
}

me_status me_trainer_read_model(me_config *config, const char *flag,
                                const char *name, me_diag *diag,
                                bool *is_file_out)
{
    const me_hub_environment environment = me_hub_environment_of(config);
    me_str cached = {0};
    if (me_config_is_set(config, "model.num_layers")) {
        return ME_OK;
    }
    me_hub_cached(name, &environment, &cached);
    const bool is_file = cached.length > 0 || me_input_is_there(name);
    const me_status status = me_str_status(&cached);
    me_str_fini(&cached);
    if (status != ME_OK) {
        return me_fail(diag, status, "no host memory for a path");
    }
    if (is_file_out != NULL) {
        *is_file_out = is_file;
    }
    return is_file ? me_config_read_file(config, name, diag)
                   : me_trainer_read_named(config, flag, name, diag);
}

me_status me_trainer_set_ranks(me_config *config, uint64_t nodes,
                               uint64_t per_node, me_diag *diag)
{
    const uint64_t most = 1 << 20;
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64,
                   (nodes < most ? nodes : most) *
                       (per_node < most ? per_node : most));
    return me_config_set(config, "parallel.world_size", text, diag);
}

me_status me_leaf_list_init(me_leaf_list *list, me_diag *diag)
{
    *list = (me_leaf_list){.arena = me_arena_create(ARENA_BYTES, "arguments")};
    list->yaml.leaves = list->arena == NULL
                            ? NULL
                            : me_arena_alloc(list->arena, ME_YAML_LEAVES_MAX,
                                             sizeof *list->yaml.leaves);
    return list->yaml.leaves == NULL
               ? me_fail(diag, ME_ERR_NOMEM, "no memory for arguments")
               : ME_OK;
}

me_status me_leaf_list_add(me_leaf_list *list, const char *path,
                           const char *const *values, int n_values,
                           const char *where, me_diag *diag)
{
    const char *copy = me_arena_strdup(list->arena, path);
    const char **all =
        me_arena_alloc(list->arena, (size_t)n_values + 1, sizeof *all);
    bool is_copied = copy != NULL && all != NULL;
    for (int i = 0; is_copied && i < n_values; i++) {
        all[i] = me_arena_strdup(list->arena, values[i]);
        is_copied = all[i] != NULL;
    }
    if (!is_copied) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory for arguments");
    }
    if (list->yaml.count == ME_YAML_LEAVES_MAX) {
        return me_fail(diag, ME_ERR_CONFIG, "more arguments than a job has");
    }
    const char *dot = strrchr(copy, '.');
    list->yaml.leaves[list->yaml.count++] = (me_yaml_leaf){
        .path = copy,
        .key = dot == NULL ? copy : dot + 1,
        .values = all,
        .n_values = n_values,
        .is_list = n_values != 1,
        .is_plain = true,
        .where = where,
    };
    return ME_OK;
}

me_status me_leaf_list_add_number(me_leaf_list *list, const char *path,
                                  uint64_t number, const char *where,
                                  me_diag *diag)
{
    char text[24];
    const char *value = text;
    (void)snprintf(text, sizeof text, "%" PRIu64, number);
    return me_leaf_list_add(list, path, &value, 1, where, diag);
}

/** Take away all leaves of that path. */
static void remove_leaves(me_leaf_list *list, const char *path)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->yaml.count; i++) {
        if (strcmp(list->yaml.leaves[i].path, path) != 0) {
            list->yaml.leaves[kept++] = list->yaml.leaves[i];
        }
    }
    list->yaml.count = kept;
}

static bool is_said(const me_leaf_list *list, const char *key)
{
    for (size_t i = 0; i < list->yaml.count; i++) {
        if (me_leaf_is_named(&list->yaml.leaves[i], key)) {
            return true;
        }
    }
    return false;
}

me_status me_leaf_list_settle(me_leaf_list *list, const me_leaf_setting *rows,
                              size_t count, const char *where, me_diag *diag)
{
    me_status status = ME_OK;
    for (size_t i = 0; status == ME_OK && i < count; i++) {
        const me_leaf_setting *row = &rows[i];
        if (!row->holds || (row->gives_way && is_said(list, row->key))) {
            continue;
        }
        remove_leaves(list, row->key);
        status = me_leaf_list_add(list, row->key, &row->value, 1, where, diag);
    }
    return status;
}

const me_yaml_leaf *me_leaf_list_find(const me_leaf_list *list,
                                      const char *path)
{
    for (size_t i = list->yaml.count; i-- > 0;) {
        if (strcmp(list->yaml.leaves[i].path, path) == 0) {
            return &list->yaml.leaves[i];
        }
    }
    return NULL;
}

uint64_t me_leaf_list_number(const me_leaf_list *list, const char *path,
                             uint64_t other)
{
    const me_yaml_leaf *leaf = me_leaf_list_find(list, path);
    uint64_t number = 0;
    return leaf != NULL && leaf->n_values == 1 &&
                   me_parse_u64(leaf->values[0], &number) == ME_OK
               ? number
               : other;
}

me_status me_leaf_list_check_numbers(const me_leaf_list *list,
                                     const char *const *paths, me_diag *diag)
{
    for (size_t i = 0; paths[i] != NULL; i++) {
        const me_yaml_leaf *leaf = me_leaf_list_find(list, paths[i]);
        uint64_t number = 0;
        if (leaf != NULL && !me_yaml_is_null(leaf) &&
            (leaf->n_values != 1 ||
             me_parse_u64(leaf->values[0], &number) != ME_OK)) {
            return me_fail(diag, ME_ERR_CONFIG,
                           "%s: %s = %.60s: must be a whole number",
                           leaf->where, leaf->path,
                           leaf->n_values == 0 ? "" : leaf->values[0]);
        }
    }
    return ME_OK;
}

me_status me_leaf_list_add_model(me_leaf_list *list, const me_config *config,
                                 const char *where, me_diag *diag)
{
    static const struct {
        const char *key;
        const char *option;
    } rows[] = {
        {"num_experts", "moe.num_experts"},
        {"moe_shared_expert_intermediate_size",
         "moe.shared_expert_intermediate_size"},
        {"multi_latent_attention", "model.multi_latent_attention"},
    };

    me_status status = ME_OK;
    for (size_t i = 0; status == ME_OK && i < sizeof rows / sizeof *rows; i++) {
        me_str text = {0};
        const me_option *option = me_option_find(rows[i].option);
        me_option_format(option, config, &text);
        const char *value = me_str_text(&text);
        const me_leaf_setting row = {
            .holds = strcmp(value, "0") != 0 && strcmp(value, "none") != 0 &&
                     strcmp(value, "false") != 0,
            .key = rows[i].key,
            .value = value,
            .gives_way = true,
        };
        status = me_str_status(&text) == ME_OK
                     ? me_leaf_list_settle(list, &row, 1, where, diag)
                     : me_fail(diag, ME_ERR_NOMEM, "no memory for arguments");
        me_str_fini(&text);
    }
    return status;
}
