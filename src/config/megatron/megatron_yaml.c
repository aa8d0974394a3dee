/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/megatron/megatron_yaml.h"

#include "base/input.h"
#include "base/parse.h"
#include "config/config_private.h"
#include "config/launch_hosts.h"
#include "config/launch_script.h"
#include "config/megatron/foreign_yaml.h"
#include "config/megatron/megatron_leaves.h"
#include "config/megatron/trainers.h"
#include "config/megatron/yaml_presets.h"
#include "config/megatron/yaml_switches.h"
#include "config/rank_counts.h"

#include <stdio.h>
#include <string.h>

enum {
    ARENA_BYTES = 64 << 20,
    RANKS_MAX = 1 << 20
};

/** FlagScale, Primus, NeMo and Megatron-Bridge: their keys are known to all. */
static const me_trainer trainer = {.fields = NULL};

/** Keys that are flags want group_query_attention beside the number of groups,
 *  which fields of a configuration do not. */
static const me_yaml_field flag_fields[] = {
    {"num_query_groups", NULL, .flags = "--num-query-groups"},
    {.key = NULL},
};

static const me_trainer flag_trainer = {.fields = flag_fields};

/** Files of --yaml-cfg say the fusion of swiglu by its own key, and have none of
 *  gelu with biases (core_transformer_config_from_yaml()). */
static const me_yaml_field cfg_fields[] = {
    {"bias_activation_fusion", "false", .flags = "--no-bias-gelu-fusion"},
    {"activation_func", "gelu", .flags = "--no-bias-gelu-fusion"},
    {.key = NULL},
};

static const me_trainer cfg_trainer = {.fields = cfg_fields};

/** Files of --yaml-cfg, FlagScale's, and those that turn group_query_attention
 *  off. */
static const me_trainer *trainer_of(const me_yaml *yaml)
{
    bool is_flags = false;
    bool is_cfg = false;
    for (size_t i = 0; i < yaml->count; i++) {
        const me_yaml_leaf *leaf = &yaml->leaves[i];
        bool is_on = false;
        if (strcmp(leaf->key, "group_query_attention") == 0 &&
            me_yaml_bool(leaf, &is_on)) {
            return is_on ? &trainer : &flag_trainer;
        }
        is_flags = is_flags || strncmp(leaf->path, "experiment.", 11) == 0;
        is_cfg = is_cfg || strncmp(leaf->path, "language_model.", 15) == 0;
    }
    return is_cfg ? &cfg_trainer : is_flags ? &flag_trainer : &trainer;
}

/** The last leaf that bears one of the names and says something, or NULL. */
static const me_yaml_leaf *find_leaf(const me_yaml *yaml, const char *names)
{
    const me_yaml_leaf *found = NULL;
    for (size_t i = 0; i < yaml->count; i++) {
        const me_yaml_leaf *leaf = &yaml->leaves[i];
        if (me_leaf_is_named(leaf, names) && leaf->n_values > 0 &&
            !me_yaml_is_null(leaf)) {
            found = leaf;
        }
    }
    return found;
}

/** Nodes or processes of a node: a number, `2:4` of which FlagScale takes the
 *  first, or Lightning's list of devices. @return 0: it is not said, or, which
 *  leaves the world open, says no number */
static me_status read_count(me_config *config, const me_yaml *yaml,
                            const char *names, uint64_t *count_out,
                            me_diag *diag)
{
    char text[24];
    const me_yaml_leaf *leaf = find_leaf(yaml, names);
    *count_out = 0;
    if (leaf == NULL) {
        return ME_OK;
    }
    if (leaf->is_list) {
        *count_out = (uint64_t)leaf->n_values;
        return ME_OK;
    }
    (void)snprintf(text, sizeof text, "%.*s",
                   (int)strcspn(leaf->values[0], ":"), leaf->values[0]);
    if (me_parse_u64(text, count_out) == ME_OK && *count_out > 0 &&
        *count_out < RANKS_MAX) {
        return ME_OK;
    }
    *count_out = 0;
    return me_config_leave_world_open(
        config, diag,
        "%.80s:%d: %.60s: %.40s: memest cannot tell how many ranks that are: "
        "give the number, or memest's --world-size",
        leaf->where, leaf->line, leaf->path, leaf->values[0]);
}

/** FlagScale's runner takes no more nodes than its host file has, and no more
 *  processes than slots (flagscale/runner, get_nnodes()). */
static me_status read_hosts(me_config *config, const me_yaml *yaml,
                            uint64_t *nodes, uint64_t *per_node, me_diag *diag)
{
    const me_yaml_leaf *leaf = find_leaf(yaml, "runner.hostfile");
    me_host_pool pool = {.arena = config->own->text};
    me_diag why = {.status = ME_OK};
    if (leaf == NULL) {
        return ME_OK;
    }
    const me_status status = me_host_pool_read(&pool, leaf->values[0], &why);
    if (status == ME_ERR_IO) {
        return *nodes != 0 && *per_node != 0
                   ? me_config_assume(config, diag,
                                      "the host file %.120s, which is not "
                                      "here, has the %llu nodes of nnodes",
                                      leaf->values[0],
                                      (unsigned long long)*nodes)
                   : me_config_leave_world_open(
                         config, diag,
                         "%.80s:%d: %.60s: %.120s: %.80s; it says how many "
                         "ranks there are: give nnodes and nproc_per_node, or "
                         "memest's --world-size",
                         leaf->where, leaf->line, leaf->path, leaf->values[0],
                         why.text);
    }
    if (status != ME_OK) {
        return me_fail_at(diag, status, why.where, why.line, "%s", why.text);
    }
    const uint64_t slots = me_host_pool_slots_each(&pool);
    if (*nodes == 0 || *nodes > pool.count) {
        *nodes = pool.count;
    }
    if (slots != 0 && (*per_node == 0 || *per_node > slots)) {
        *per_node = slots;
    }
    return *per_node != 0 ? ME_OK
                          : me_config_leave_world_open(
                                config, diag,
                                "%.120s: its hosts have different slots: give "
                                "nproc_per_node, or memest's --world-size",
                                leaf->values[0]);
}

/** Ranks: FlagScale's runner, NeMo's trainer, else what calls itself so. */
static me_status set_ranks(me_config *config, const me_yaml *yaml,
                           me_diag *diag)
{
    uint64_t nodes = 0;
    uint64_t per_node = 0;
    const char *before = config->own->world_is_open;
    me_status status = read_count(
        config, yaml, "runner.nnodes|trainer.num_nodes", &nodes, diag);
    if (status == ME_OK) {
        status =
            read_count(config, yaml, "runner.nproc_per_node|trainer.devices",
                       &per_node, diag);
    }
    if (status == ME_OK) {
        status = read_hosts(config, yaml, &nodes, &per_node, diag);
    }
    if (status == ME_OK && nodes == 0 && per_node == 0) {
        status = read_count(config, yaml, "world_size", &per_node, diag);
    }
    if (status != ME_OK || (nodes == 0 && per_node == 0) ||
        config->own->world_is_open != before) {
        return status;
    }
    return me_trainer_set_ranks(config, nodes == 0 ? 1 : nodes,
                                per_node == 0 ? 1 : per_node, diag);
}

/** What builds the model: FlagScale's script, Primus' kind of model, a class of
 *  NeMo's or Megatron-Bridge's. */
static me_status check_model(me_config *config, const me_yaml *yaml,
                             me_diag *diag)
{
    static const char *const classes[] = {"model_type", "model._target_",
                                          "model.config._target_"};
    const me_yaml_leaf *script = find_leaf(yaml, "entrypoint");
    me_diag why = {.status = ME_OK};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        const me_yaml_leaf *leaf = find_leaf(yaml, classes[i]);
        if (leaf != NULL && me_launch_names_other_model(leaf->values[0])) {
            return me_fail_at(diag, ME_ERR_UNSUPPORTED, leaf->where, leaf->line,
                              "%.60s: %.80s: builds no GPT, by its name: of "
                              "Megatron-LM's models GPTs are modelled",
                              leaf->path, leaf->values[0]);
        }
    }
    if (script == NULL) {
        return ME_OK;
    }
    const me_status status =
        me_launch_script_say(config, script->values[0], &why);
    return status == ME_OK
               ? ME_OK
               : me_fail_at(diag, status, script->where, script->line,
                            "%.60s: %s", script->path, why.text);
}

/** Files that the job names and that are nowhere. */
static me_status note_missing(me_config *config, const char *where,
                              const char *missing, me_diag *diag)
{
    const me_effect effect = ME_EITHER(ANY);
    char note[256];
    if (missing[0] == '\0') {
        return ME_OK;
    }
    if (!me_config_is_set(config, "model.num_layers")) {
        return me_fail_at(
            diag, ME_ERR_CONFIG, where, 0,
            "has no num_layers, and what it names is not here: %.200s; put it "
            "beside, or give the model with --set or in the file itself",
            missing);
    }
    (void)snprintf(note, sizeof note,
                   "not beside %.120s: what it sets is not known", where);
    return me_config_add_not_modelled(config, missing, note, effect, diag);
}

me_status me_megatron_read_yaml(me_config *config, const char *where,
                                const char *text, size_t length, me_diag *diag)
{
    const me_yaml_file file = {where, text, length};
    me_yaml yaml = {0};
    me_str missing = {0};
    me_arena *arena = me_arena_create(ARENA_BYTES, "a job in YAML");
    me_status status =
        arena == NULL
            ? me_fail(diag, ME_ERR_NOMEM, "no memory for a job in YAML")
            : me_yaml_gather(config, &file, arena, diag, &yaml, &missing);
    if (status == ME_OK) {
        status = me_foreign_yaml_check(where, &yaml, diag);
    }
    if (status == ME_OK) {
        status = me_yaml_switches_apply(config, &yaml, diag);
    }
    if (status == ME_OK) {
        status = check_model(config, &yaml, diag);
    }
    if (status == ME_OK) {
        status = me_megatron_read_leaves(config, where, &yaml,
                                         trainer_of(&yaml), arena, diag);
    }
    if (status == ME_OK && me_str_status(&missing) != ME_OK) {
        status = me_fail(diag, ME_ERR_NOMEM, "no memory for a job in YAML");
    }
    if (status == ME_OK) {
        status = note_missing(config, where, me_str_text(&missing), diag);
    }
    if (status == ME_OK) {
        status = set_ranks(config, &yaml, diag);
    }
    me_str_fini(&missing);
    me_arena_destroy(arena);
    return status;
}

me_status me_megatron_load_yaml(me_config *config, const char *path,
                                me_diag *diag)
{
    me_str bytes = {0};
    me_status status = me_input_read(path, ME_INPUT_MAX_BYTES, diag, &bytes);
    if (status == ME_OK) {
        status = me_megatron_read_yaml(config, path, me_str_text(&bytes),
                                       bytes.length, diag);
    }
    me_str_fini(&bytes);
    return status;
}
