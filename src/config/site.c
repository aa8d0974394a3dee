/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/site.h"

#include "base/conf.h"
#include "base/data_roots.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST_GPUS = 64 /**< of a node */
};

/** The file that MEMEST_SITE names, else the first configs/site.cfg; empty: there
 *  is none. */
static me_status find_file(const char *named, me_diag *diag, me_str *path)
{
    me_data_roots roots = me_data_roots_find();
    me_status status = ME_OK;
    me_str_append(path, named == NULL ? "" : named);
    for (size_t i = 0; i < roots.count && path->length == 0; i++) {
        const char *root = me_str_text(&roots.path[i]);
        me_str candidate = {0};
        me_str_printf(&candidate, "%s%sconfigs/site.cfg", root,
                      root[0] == '\0' ? "" : "/");
        if (access(me_str_text(&candidate), R_OK) == 0) {
            me_str_append(path, me_str_text(&candidate));
        }
        status = status == ME_OK ? me_str_status(&candidate) : status;
        me_str_fini(&candidate);
    }
    me_data_roots_fini(&roots);
    status = status == ME_OK ? me_str_status(path) : status;
    return status == ME_OK ? ME_OK
                           : me_fail(diag, status, "no memory for a path");
}

/** A text of a partition; what is missing stays "". */
static bool take_text(const config_setting_t *value, char out[ME_SLURM_TYPE])
{
    const char *text = config_setting_get_string(value);
    if (text == NULL || text[0] == '\0' || strlen(text) >= ME_SLURM_TYPE) {
        return false;
    }
    (void)snprintf(out, ME_SLURM_TYPE, "%s", text);
    return true;
}

static bool take_count(const config_setting_t *value, uint64_t *out)
{
    double n = 0;
    if (!me_conf_number(value, &n) || !(n >= 1 && n <= MOST_GPUS)) {
        return false;
    }
    *out = (uint64_t)n;
    return (double)*out == n;
}

static bool take(const config_setting_t *value, me_site_partition *to)
{
    const char *key = config_setting_name(value);
    if (key == NULL) {
        return false;
    }
    if (strcmp(key, "name") == 0) {
        return take_text(value, to->name);
    }
    if (strcmp(key, "card") == 0) {
        return take_text(value, to->card);
    }
    if (strcmp(key, "gpus_per_node") == 0) {
        return take_count(value, &to->gpus_per_node);
    }
    to->is_default = config_setting_get_bool(value) != 0;
    return strcmp(key, "default") == 0 &&
           config_setting_type(value) == CONFIG_TYPE_BOOL;
}

static me_status read_partition(const char *path, const config_setting_t *group,
                                me_diag *diag, me_site_partition *to)
{
    const int n =
        config_setting_is_group(group) ? config_setting_length(group) : 0;
    *to = (me_site_partition){.gpus_per_node = 0};
    for (int i = 0; i < n; i++) {
        const config_setting_t *value =
            config_setting_get_elem(group, (unsigned)i);
        if (!take(value, to)) {
            return me_fail_at(diag, ME_ERR_CONFIG, path, me_conf_line(value),
                              "partitions: '%.40s' is no value of one: name "
                              "and card are texts, gpus_per_node is 1 to %d, "
                              "default true or false",
                              config_setting_name(value), MOST_GPUS);
        }
    }
    if (to->name[0] == '\0' || to->card[0] == '\0') {
        return me_fail_at(diag, ME_ERR_CONFIG, path, me_conf_line(group),
                          "partitions: one without a name and a card");
    }
    return ME_OK;
}

static me_status search(const char *path, const config_t *file,
                        const char *name, me_diag *diag,
                        me_site_partition *partition_out)
{
    const config_setting_t *list = config_lookup(file, "partitions");
    const config_setting_t *root = config_root_setting(file);
    if (list == NULL || !config_setting_is_list(list) ||
        config_setting_length(root) != 1) {
        return me_fail_at(diag, ME_ERR_CONFIG, path, 0,
                          "a site's file is partitions = ( { name = \"…\"; "
                          "card = \"…\"; }, … );");
    }
    for (int i = 0; i < config_setting_length(list); i++) {
        me_site_partition one;
        const me_status status = read_partition(
            path, config_setting_get_elem(list, (unsigned)i), diag, &one);
        if (status != ME_OK) {
            return status;
        }
        if (name == NULL ? one.is_default : strcmp(one.name, name) == 0) {
            *partition_out = one;
        }
    }
    return ME_OK;
}

me_status me_site_partition_find(const char *name, me_diag *diag,
                                 me_site_partition *partition_out)
{
    me_str path = {0};
    const char *named = getenv("MEMEST_SITE");
    *partition_out = (me_site_partition){.gpus_per_node = 0};
    me_status status = find_file(named, diag, &path);
    if (status == ME_OK && path.length > 0) {
        config_t file;
        config_init(&file);
        status = me_conf_load(me_str_text(&path), "a site", diag, &file);
        if (status == ME_OK) {
            status =
                search(me_str_text(&path), &file, name, diag, partition_out);
        }
        config_destroy(&file);
        if (status != ME_OK && named != NULL && named[0] != '\0') {
            status = me_fail_of(diag, status, "MEMEST_SITE");
        }
    }
    me_str_fini(&path);
    return status;
}
