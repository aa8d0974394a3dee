/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/megatron/yaml_presets.h"

#include "base/input.h"
#include "base/parse.h"
#include "config/megatron/dumped_values.h"
#include "config/megatron/megatron_leaves.h"
#include "config/megatron/trainers.h"
#include "config/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FILES_MAX = 16,
    DEPTH_MAX = 8,
    FOLDERS_ABOVE = 8,
    GROUP_BYTES = 64
};

/** One gathering. */
typedef struct gathering {
    me_config *config;
    me_arena *arena;
    me_diag *diag;
    me_yaml all;
    me_str *missing;
    int n_files;
    const me_yaml_leaf *overlap; /**< the file of user buffers, not here */
} gathering;

/** Files that a leaf names. */
typedef struct naming {
    char group[GROUP_BYTES]; /**< the folder that Hydra would look in */
    bool is_optional;        /**< to Hydra */
} naming;

/** NeMo 1's files for Transformer Engine, which are no job's. */
static const char overlap_group[] = "tp_overlap";
static const char overlap_key[] = "ub_tp_comm_overlap_cfg";

/** In the tree of one of the folders above (Primus: configs). */
static const char *const above[] = {
    "primus/configs/models/megatron/",
    "primus/configs/modules/megatron/",
};

/** An entry of Hydra's `defaults`: `optional GROUP@PACKAGE: NAME`, of which a NAME
 *  that is null selects nothing. */
static bool is_default(const me_yaml_leaf *leaf, naming *named_out)
{
    static const char optional[] = "optional ";
    const char *entry = leaf->path + strlen("defaults.");
    entry += strspn(entry, "0123456789");
    entry += *entry == '.';
    named_out->is_optional = strncmp(entry, optional, sizeof optional - 1) == 0;
    entry += named_out->is_optional ? sizeof optional - 1 : 0;
    entry += strspn(entry, "./ ");
    (void)snprintf(named_out->group, GROUP_BYTES, "%.*s",
                   (int)strcspn(entry, "@"), entry);
    return strchr(named_out->group, ' ') == NULL && !me_yaml_is_null(leaf) &&
           leaf->values[0][0] != '_';
}

/** Does the leaf name files? */
static bool names_files(const me_yaml_leaf *leaf, naming *named_out)
{
    static const char *const lists[] = {"extends", "includes", "bases"};
    const char *first = leaf->n_values > 0 ? leaf->values[0] : "";
    *named_out = (naming){.group = ""};
    if (me_is_one_of(leaf->key, strlen(leaf->key), lists,
                     sizeof lists / sizeof *lists)) {
        return leaf->n_values > 0;
    }
    if (leaf->n_values != 1) {
        return false;
    }
    if (strncmp(leaf->path, "defaults.", 9) == 0 && !leaf->is_list) {
        return is_default(leaf, named_out);
    }
    return me_leaf_is_named(leaf, "model|config") &&
           (me_ends_with(first, ".yaml") || me_ends_with(first, ".yml"));
}

/** The folder of @p where, @p up above it, @p folder below that, @p name: is it
 *  there? */
static bool try_path(const char *where, int up, const char *folder,
                     const char *name, me_str *path)
{
    const char *slash = strrchr(where, '/');
    const bool has_end =
        me_ends_with(name, ".yaml") || me_ends_with(name, ".yml");
    me_str_fini(path);
    me_str_append_n(path, where,
                    slash == NULL ? 0 : (size_t)(slash - where) + 1);
    for (int i = 0; i < up; i++) {
        me_str_append(path, "../");
    }
    me_str_printf(path, "%s%s%s", folder, name, has_end ? "" : ".yaml");
    return me_str_status(path) == ME_OK && me_input_is_file(me_str_text(path));
}

/** The file of @p name, or false: there is none. Hydra has it in the group's
 *  folder, where one beside it may bear its name. */
static bool look(const char *where, const char *group, const char *name,
                 me_str *path)
{
    char below[GROUP_BYTES + 1];
    (void)snprintf(below, sizeof below, "%s/", group);
    bool is_found =
        (group[0] != '\0' && try_path(where, 0, below, name, path)) ||
        try_path(where, 0, "", name, path);
    for (int up = 0; up < FOLDERS_ABOVE && !is_found; up++) {
        for (size_t i = 0; i < sizeof above / sizeof *above && !is_found; i++) {
            is_found = try_path(where, up, above[i], name, path);
        }
    }
    return is_found;
}

/** A model that is known by its name stands in for the file. */
static me_status take_known(gathering *g, const me_yaml_leaf *leaf,
                            const char *name, bool *is_known_out)
{
    me_str model = {0};
    me_status status = me_trainer_read_known(g->config, name, g->diag, &model);
    *is_known_out = model.length > 0;
    if (status == ME_OK && *is_known_out) {
        status = me_config_assume(
            g->config, g->diag,
            "%.80s: %.80s is not here: its model is %s of configs/models",
            leaf->key, name, me_str_text(&model));
    }
    me_str_fini(&model);
    return status;
}

static void note_missing(gathering *g, const me_yaml_leaf *leaf,
                         const char *name)
{
    me_str_append(g->missing, g->missing->length == 0 ? "" : ", ");
    me_str_append_clean(g->missing, name, strlen(name));
    me_str_printf(g->missing, " (%.60s, line %d)", leaf->key, leaf->line);
}

static me_status gather_text(gathering *g, const me_yaml_file *file, int depth);

static me_status gather_file(gathering *g, const me_yaml_leaf *leaf,
                             const char *path, int depth)
{
    me_str bytes = {0};
    const char *where = me_arena_strdup(g->arena, path);
    if (depth == DEPTH_MAX || ++g->n_files > FILES_MAX) {
        return me_fail_at(g->diag, ME_ERR_CONFIG, leaf->where, leaf->line,
                          "%.80s: more than %d levels or %d files; does a file "
                          "name itself?",
                          leaf->path, DEPTH_MAX, FILES_MAX);
    }
    me_status status =
        where == NULL
            ? me_fail(g->diag, ME_ERR_NOMEM, "no memory for a path")
            : me_input_read(path, ME_INPUT_MAX_BYTES, g->diag, &bytes);
    if (status == ME_OK) {
        const me_yaml_file file = {where, me_str_text(&bytes), bytes.length};
        status = gather_text(g, &file, depth + 1);
    }
    me_str_fini(&bytes);
    return status;
}

/** `${NAME:other}.yaml`: the variable's value, else the other one. */
static void expand(const char *text, me_str *name)
{
    const char *end = strchr(text, '}');
    char inside[4 * GROUP_BYTES];
    const char *other = NULL;
    if (strncmp(text, "${", 2) == 0 && end != NULL) {
        (void)snprintf(inside, sizeof inside, "%.*s", (int)(end - text - 2),
                       text + 2);
    }
    if (strncmp(text, "${", 2) != 0 || end == NULL ||
        !me_leaf_names_variable(inside, &other)) {
        me_str_append(name, text);
        return;
    }
    const char *value = getenv(inside);
    if (value != NULL) {
        me_str_append_clean(name, value, strlen(value));
    } else {
        me_str_append(name, other == NULL ? "" : other);
    }
    me_str_append(name, end + 1);
}

/** What Hydra goes on without, and which may lie where it looks as well. */
static me_status note_optional(gathering *g, const me_yaml_leaf *leaf,
                               const char *name)
{
    const me_effect effect = ME_EITHER(SOME);
    char note[256];
    char words[128];
    (void)snprintf(note, sizeof note, "not beside %.120s: optional to Hydra",
                   leaf->where);
    (void)snprintf(words, sizeof words, "%.60s (%.40s, line %d)", name,
                   leaf->key, leaf->line);
    return me_config_add_not_modelled(g->config, words, note, effect, g->diag);
}

/** The file's path in place of its name, as a key of the model's. */
static me_status keep_overlap(gathering *g, const me_yaml_leaf *leaf,
                              const char *path)
{
    const char **value = me_arena_alloc(g->arena, 1, sizeof *value);
    const char *copy = me_arena_strdup(g->arena, path);
    if (value == NULL || copy == NULL) {
        return me_fail(g->diag, ME_ERR_NOMEM, "no memory for a path");
    }
    if (g->all.count < ME_YAML_LEAVES_MAX) {
        *value = copy;
        g->all.leaves[g->all.count] = *leaf;
        g->all.leaves[g->all.count].path = overlap_key;
        g->all.leaves[g->all.count].key = overlap_key;
        g->all.leaves[g->all.count++].values = value;
    }
    return ME_OK;
}

/** A file that a leaf names. */
static me_status follow_name(gathering *g, const me_yaml_leaf *leaf,
                             const naming *named, const char *name, int depth)
{
    me_str path = {0};
    bool is_known = false;
    me_status status = ME_OK;
    const bool is_overlap = strcmp(named->group, overlap_group) == 0;
    const bool is_there = look(leaf->where, named->group, name, &path);
    if (is_there && is_overlap) {
        status = keep_overlap(g, leaf, me_str_text(&path));
    } else if (is_there) {
        status = gather_file(g, leaf, me_str_text(&path), depth);
    } else if (me_str_status(&path) != ME_OK) {
        status = me_fail(g->diag, ME_ERR_NOMEM, "no memory for a path");
    } else if (is_overlap) {
        g->overlap = leaf;
    } else if (named->is_optional) {
        status = note_optional(g, leaf, name);
    } else {
        status = take_known(g, leaf, name, &is_known);
        if (status == ME_OK && !is_known) {
            note_missing(g, leaf, name);
        }
    }
    me_str_fini(&path);
    return status;
}

/** Files first that a leaf names. */
static me_status follow(gathering *g, const me_yaml_leaf *leaf, int depth)
{
    naming named;
    me_status status = ME_OK;
    const bool is_preset = names_files(leaf, &named);
    for (int i = 0; is_preset && status == ME_OK && i < leaf->n_values; i++) {
        me_str name = {0};
        expand(leaf->values[i], &name);
        status = me_str_status(&name) == ME_OK
                     ? follow_name(g, leaf, &named, me_str_text(&name), depth)
                     : me_fail(g->diag, ME_ERR_NOMEM, "no memory for a name");
        me_str_fini(&name);
    }
    return status;
}

/** A later file's key takes the place of an earlier one's. */
static void put(gathering *g, const me_yaml_leaf *leaf)
{
    size_t n = 0;
    for (size_t i = 0; i < g->all.count; i++) {
        const me_yaml_leaf *old = &g->all.leaves[i];
        if (old->where == leaf->where || strcmp(old->key, leaf->key) != 0) {
            g->all.leaves[n++] = *old;
        }
    }
    g->all.count = n;
    g->all.leaves[g->all.count++] = *leaf;
}

static bool is_within(const char *path, const char *section)
{
    const size_t n = strlen(section);
    return strncmp(path, section, n) == 0 &&
           (path[n] == '\0' || path[n] == '.');
}

/** A key that is null takes back what the file says of it above. */
static void take_back(me_yaml *own)
{
    size_t kept = 0;
    for (size_t i = 0; i < own->count; i++) {
        size_t left = 0;
        const bool is_null = me_yaml_is_null(&own->leaves[i]);
        for (size_t k = 0; is_null && k < kept; k++) {
            if (!is_within(own->leaves[k].path, own->leaves[i].path)) {
                own->leaves[left++] = own->leaves[k];
            }
        }
        kept = is_null ? left : kept;
        own->leaves[kept++] = own->leaves[i];
    }
    own->count = kept;
}

// NOLINTNEXTLINE(misc-no-recursion): DEPTH_MAX ends it
static me_status gather_text(gathering *g, const me_yaml_file *file, int depth)
{
    me_yaml own = {0};
    me_status status = me_yaml_parse(file->where, file->text, file->length,
                                     g->arena, g->diag, &own);
    if (status == ME_OK) {
        take_back(&own);
        status = me_dumped_values_read(&own, g->arena, g->diag);
    }
    for (size_t i = 0; status == ME_OK && i < own.count; i++) {
        status = follow(g, &own.leaves[i], depth);
    }
    if (status == ME_OK && g->all.count + own.count > ME_YAML_LEAVES_MAX) {
        status = me_fail_at(g->diag, ME_ERR_CONFIG, file->where, 0,
                            "more values than a job has");
    }
    for (size_t i = 0; status == ME_OK && i < own.count; i++) {
        naming named;
        if (names_files(&own.leaves[i], &named)) {
            continue; // what it names has been followed
        }
        if (g->n_files == 0) {
            g->all.leaves[g->all.count++] = own.leaves[i];
        } else {
            put(g, &own.leaves[i]);
        }
    }
    return status;
}

/** A recipe's name in a job that has no layers of its own. */
static me_status take_recipe(gathering *g)
{
    const me_yaml_leaf *recipe = NULL;
    for (size_t i = 0; i < g->all.count; i++) {
        const me_yaml_leaf *leaf = &g->all.leaves[i];
        if (me_leaf_is_named(leaf, "num_layers")) {
            return ME_OK;
        }
        if (me_leaf_is_named(leaf, "_target_|recipe|recipe_name|factory") &&
            leaf->n_values == 1) {
            recipe = recipe == NULL ? leaf : recipe;
        }
    }
    bool is_known = // or the model was given beside
        recipe == NULL || me_config_is_set(g->config, "model.num_layers");
    me_status status = ME_OK;
    for (const char *at = is_known ? "" : recipe->values[0];
         status == ME_OK && !is_known && *at != '\0';) {
        char part[GROUP_BYTES];
        const size_t n = strcspn(at, ".");
        (void)snprintf(part, sizeof part, "%.*s", (int)n, at);
        status = take_known(g, recipe, part, &is_known);
        at += n + (at[n] == '.');
    }
    if (status == ME_OK && recipe != NULL) {
        note_missing(g, recipe, recipe->values[0]);
    }
    return status;
}

/** User buffers whose file is not here matter to a job that has some. */
static me_status note_overlap(gathering *g)
{
    bool is_on = false;
    for (size_t i = 0; g->overlap != NULL && i < g->all.count; i++) {
        if (me_leaf_is_named(&g->all.leaves[i], "ub_tp_comm_overlap")) {
            (void)me_yaml_bool(&g->all.leaves[i], &is_on);
        }
    }
    return is_on ? note_optional(g, g->overlap, g->overlap->values[0]) : ME_OK;
}

me_status me_yaml_gather(me_config *config, const me_yaml_file *file,
                         me_arena *arena, me_diag *diag, me_yaml *yaml_out,
                         me_str *missing)
{
    gathering g = {
        .config = config,
        .arena = arena,
        .diag = diag,
        .all = {.leaves = me_arena_alloc(arena, ME_YAML_LEAVES_MAX,
                                         sizeof *g.all.leaves)},
        .missing = missing,
    };
    me_status status =
        g.all.leaves == NULL
            ? me_fail(diag, ME_ERR_NOMEM, "no memory for a job in YAML")
            : gather_text(&g, file, 0);
    if (status == ME_OK) {
        status = take_recipe(&g);
    }
    if (status == ME_OK) {
        status = note_overlap(&g);
    }
    if (status == ME_OK) {
        *yaml_out = g.all;
    }
    return status;
}
