/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/megatron/megatron_yaml.h"

#include "base/input.h"
#include "base/parse.h"
#include "config/config_private.h"
#include "config/megatron/megatron_leaves.h"
#include "config/megatron/trainers.h"
#include "config/megatron/yaml_presets.h"

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

/** FlagScale's files, and those that turn group_query_attention off. */
static const me_trainer *trainer_of(const me_yaml *yaml)
{
    bool is_flags = false;
    for (size_t i = 0; i < yaml->count; i++) {
        const me_yaml_leaf *leaf = &yaml->leaves[i];
        bool is_on = false;
        if (strcmp(leaf->key, "group_query_attention") == 0 &&
            me_yaml_bool(leaf, &is_on)) {
            return is_on ? &trainer : &flag_trainer;
        }
        is_flags = is_flags || strncmp(leaf->path, "experiment.", 11) == 0;
    }
    return is_flags ? &flag_trainer : &trainer;
}

/** The number of the first leaf that bears one of the names, or 0. */
static uint64_t find_number(const me_yaml *yaml, const char *names)
{
    for (size_t i = 0; i < yaml->count; i++) {
        const me_yaml_leaf *leaf = &yaml->leaves[i];
        uint64_t number = 0;
        if (me_leaf_is_named(leaf, names) && leaf->n_values == 1 &&
            me_parse_u64(leaf->values[0], &number) == ME_OK && number > 0 &&
            number < RANKS_MAX) {
            return number;
        }
    }
    return 0;
}

/** Ranks: FlagScale's runner, NeMo's trainer, else what calls itself so. */
static me_status set_ranks(me_config *config, const me_yaml *yaml,
                           me_diag *diag)
{
    const uint64_t nodes = find_number(yaml, "runner.nnodes|trainer.num_nodes");
    const uint64_t per_node =
        find_number(yaml, "runner.nproc_per_node|trainer.devices");
    const uint64_t ranks = find_number(yaml, "world_size");
    if (nodes == 0 && per_node == 0 && ranks != 0) {
        return me_trainer_set_ranks(config, 1, ranks, diag);
    }
    return nodes == 0 && per_node == 0
               ? ME_OK
               : me_trainer_set_ranks(config, nodes == 0 ? 1 : nodes,
                                      per_node == 0 ? 1 : per_node, diag);
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
