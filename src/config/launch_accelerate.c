/* SPDX-License-Identifier: BSD-3-Clause */
/* accelerate/commands/launch.py: _validate_launch_command(), launch_command();
 * utils/launch.py. */
#include "config/launch_accelerate.h"

#include "base/input.h"
#include "base/parse.h"
#include "base/yaml_text.h"
#include "config/config_private.h"
#include "config/hub_cache.h"

#include <stdio.h>
#include <string.h>

/** What is known so far: options, then what the file says of the rest. */
typedef struct launch {
    me_accelerate_said said;
    me_rank_counts *counts;
    bool has_file;  /**< that was read */
    bool is_single; /**< the file's distributed_type is NO */
    me_config *config;
    me_diag *diag;
} launch;

static const me_yaml_leaf *find(const me_yaml *yaml, const char *path)
{
    const me_yaml_leaf *found = NULL;
    for (size_t i = 0; i < yaml->count; i++) {
        const me_yaml_leaf *leaf = &yaml->leaves[i];
        if (strcmp(leaf->path, path) == 0 && leaf->n_values == 1 &&
            !me_yaml_is_null(leaf)) {
            found = leaf;
        }
    }
    return found;
}

/** A number that no option says; -1 is accelerate's word for none. */
static me_status take_number(launch *l, const me_yaml *yaml, const char *path,
                             uint64_t *number)
{
    const me_yaml_leaf *leaf = find(yaml, path);
    uint64_t value = 0;
    if (*number != 0 || leaf == NULL || strcmp(leaf->values[0], "-1") == 0) {
        return ME_OK;
    }
    if (me_parse_u64(leaf->values[0], &value) != ME_OK || value == 0 ||
        value > ME_RANKS_MOST) {
        return me_fail_at(l->diag, ME_ERR_CONFIG, leaf->where, leaf->line,
                          "%s = %.60s must be a whole number from 1 to %d",
                          path, leaf->values[0], ME_RANKS_MOST);
    }
    *number = value;
    return ME_OK;
}

static me_status take_text(launch *l, const me_yaml *yaml, const char *path,
                           const char **text)
{
    const me_yaml_leaf *leaf = find(yaml, path);
    if (*text == NULL && leaf != NULL) {
        *text = me_arena_strdup(l->config->own->text, leaf->values[0]);
    }
    return *text != NULL || leaf == NULL
               ? ME_OK
               : me_fail(l->diag, ME_ERR_NOMEM,
                         "no memory for a launch command");
}

/** `distributed_type: NO` starts one process, whatever num_processes says. */
static void take_type(launch *l, const me_yaml *yaml)
{
    const me_yaml_leaf *leaf = find(yaml, "distributed_type");
    const char *type = leaf == NULL ? "" : leaf->values[0];
    bool is_true = true;
    // An unquoted NO is false to YAML, which accelerate takes for the same.
    const bool is_no =
        strcmp(type, "NO") == 0 ||
        (leaf != NULL && me_yaml_bool(leaf, &is_true) && !is_true);
    l->is_single = is_no && !l->said.is_several;
    if (strcmp(type, "DEEPSPEED") == 0 && !l->said.is_several) {
        l->said.deepspeed.is_used = true;
    }
}

static me_status take_file(launch *l, const me_yaml *yaml)
{
    static const char deepspeed[] = "deepspeed_config.deepspeed_hostfile";
    me_deepspeed_said *d = &l->said.deepspeed;
    take_type(l, yaml);
    me_status status = take_number(l, yaml, "num_processes", &l->counts->ranks);
    if (status == ME_OK) {
        status = take_number(l, yaml, "num_machines", &l->counts->nodes);
    }
    if (status == ME_OK) {
        status = take_text(l, yaml, deepspeed, &d->host_file);
    }
    if (status == ME_OK) {
        status =
            take_text(l, yaml, "deepspeed_config.deepspeed_inclusion_filter",
                      &d->include);
    }
    if (status == ME_OK) {
        status =
            take_text(l, yaml, "deepspeed_config.deepspeed_exclusion_filter",
                      &d->exclude);
    }
    return status == ME_OK
               ? take_text(l, yaml,
                           "deepspeed_config.deepspeed_multinode_launcher",
                           &l->said.launcher)
               : status;
}

/** @return ME_ERR_IO where the file is not here */
static me_status read_file(launch *l, me_diag *diag)
{
    me_str bytes = {0};
    me_yaml yaml = {.count = 0};
    me_status status =
        me_input_read(l->said.file, ME_INPUT_MAX_BYTES, diag, &bytes);
    if (status == ME_OK) {
        status = me_yaml_parse(l->said.file, me_str_text(&bytes), bytes.length,
                               l->config->own->text, diag, &yaml);
    }
    if (status == ME_OK) {
        l->has_file = true;
        status = take_file(l, &yaml);
    }
    me_str_fini(&bytes);
    return status;
}

/** Without its file, but with a number of processes. */
static me_status go_without_file(launch *l, const me_diag *why)
{
    if (l->counts->ranks == 0) {
        return me_config_leave_world_open(
            l->config, l->diag,
            "accelerate launch --config_file %.120s: %.80s; it says how many "
            "ranks there are: give --num_processes, or memest's --world-size",
            l->said.file, why->text);
    }
    return me_config_assume(l->config, l->diag,
                            "accelerate's --config_file %.120s, which is not "
                            "here, starts the %llu processes of "
                            "--num_processes",
                            l->said.file, (unsigned long long)l->counts->ranks);
}

/** Each machine starts the same number; a rest is lost. */
static me_status share(launch *l)
{
    me_rank_counts *c = l->counts;
    const uint64_t asked = c->ranks;
    c->per_node = c->nodes > 1 ? asked / c->nodes : asked;
    c->ranks = c->nodes > 1 ? c->per_node * c->nodes : asked;
    if (c->ranks == 0) {
        return me_fail(l->diag, ME_ERR_CONFIG,
                       "accelerate launch: %llu processes on %llu machines are "
                       "none on each",
                       (unsigned long long)asked, (unsigned long long)c->nodes);
    }
    return c->ranks == asked
               ? ME_OK
               : me_config_assume(l->config, l->diag,
                                  "accelerate starts %llu processes, as many "
                                  "on each of %llu machines, of the %llu of "
                                  "num_processes",
                                  (unsigned long long)c->ranks,
                                  (unsigned long long)c->nodes,
                                  (unsigned long long)asked);
}

static bool is_here(const char *path)
{
    me_diag why = {.status = ME_OK};
    FILE *file = NULL;
    if (me_input_open(path, &why, &file) != ME_OK) {
        return false;
    }
    (void)fclose(file);
    return true;
}

/** Several machines with DeepSpeed: its command starts them, by its host file. */
static me_status hand_over(launch *l, const me_gpus_here *here)
{
    me_deepspeed_said *d = &l->said.deepspeed;
    const char *launcher = l->said.launcher;
    const bool is_filter = d->include != NULL || d->exclude != NULL;
    if (!d->is_used || l->counts->nodes <= 1 || d->host_file == NULL ||
        (launcher != NULL && strcmp(launcher, "standard") == 0)) {
        return ME_OK;
    }
    // Of num_machines nothing is handed over: the host file has them.
    me_rank_counts counts = {.is_used = true};
    if (!is_filter) {
        counts.per_node = l->counts->per_node;
        counts.nodes = is_here(d->host_file) ? 0 : l->counts->nodes;
    }
    const me_status status =
        me_deepspeed_settle(d, here, &counts, l->config, l->diag);
    *l->counts = counts;
    return status;
}

/** One process, or those of all machines. */
static me_status settle(launch *l, const me_gpus_here *here)
{
    me_rank_counts *c = l->counts;
    me_status status = ME_OK;
    if (l->is_single) {
        c->ranks = 1;
        return me_config_assume(l->config, l->diag,
                                "accelerate starts one process, since %.120s "
                                "has distributed_type NO",
                                l->said.file);
    }
    if (c->ranks == 0 && l->has_file) {
        return me_config_leave_world_open(
            l->config, l->diag,
            "accelerate launch: %.120s has no num_processes: give "
            "--num_processes, or memest's --world-size",
            l->said.file);
    }
    if (c->ranks == 0) {
        status = me_gpus_here_count(here, l->config, l->diag, &c->ranks);
    }
    if (status == ME_OK) {
        status = share(l);
    }
    return status == ME_OK ? hand_over(l, here) : status;
}

/** The file of `accelerate config`, which no option names (config_args.py). */
static me_status take_default(launch *l)
{
    const me_hub_environment environment = me_hub_environment_of(l->config);
    me_str path = {0};
    me_hub_home(&environment, &path);
    if (path.length > 0) {
        me_str_append(&path, "/accelerate/default_config.yaml");
    }
    const bool is_taken = path.length > 0 && is_here(me_str_text(&path));
    me_status status = me_str_status(&path);
    if (status == ME_OK && is_taken) {
        l->said.file =
            me_arena_strdup(l->config->own->text, me_str_text(&path));
        status = l->said.file == NULL ? ME_ERR_NOMEM : ME_OK;
    }
    me_str_fini(&path);
    if (status != ME_OK) {
        return me_fail(l->diag, status, "no memory for a launch command");
    }
    return is_taken ? me_config_assume(l->config, l->diag,
                                       "accelerate launch takes %.160s of this "
                                       "machine, since it has no --config_file",
                                       l->said.file)
                    : ME_OK;
}

me_status me_accelerate_settle(const me_accelerate_said *said,
                               const me_gpus_here *here, me_rank_counts *counts,
                               me_config *config, me_diag *diag)
{
    me_diag why = {.status = ME_OK};
    launch l = {
        .said = *said, .counts = counts, .config = config, .diag = diag};
    const me_status taken =
        said->file == NULL && !said->is_cpu ? take_default(&l) : ME_OK;
    if (taken != ME_OK) {
        return taken;
    }
    if (l.said.file != NULL) {
        l.diag = &why;
        const me_status status = read_file(&l, &why);
        l.diag = diag;
        if (status == ME_ERR_IO) {
            const me_status stated = go_without_file(&l, &why);
            if (stated != ME_OK || counts->ranks == 0) {
                return stated;
            }
        } else if (status != ME_OK) {
            return me_fail_at(diag, status, why.where, why.line, "%s",
                              why.text);
        }
    }
    return settle(&l, here);
}
