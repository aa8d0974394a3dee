/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/file.h"

#include "base/conf.h"
#include "base/data_files.h"
#include "base/input.h"
#include "base/parse.h"
#include "config/config_private.h"
#include "config/hub_cache.h"
#include "config/huggingface/huggingface.h"
#include "config/known_models.h"
#include "config/megatron/megatron_yaml.h"
#include "config/megatron/trainers.h"
#include "config/said.h"
#include "config/torch/tree.h"
#include "config/torchtitan/torchtitan.h"

#include <stdio.h>
#include <string.h>

enum {
    INCLUDE_DEPTH_MAX = 8,
    FILES_MAX = 64
};

/** One reading: a file and what it includes. */
typedef struct reading {
    me_config *config;
    int depth;
    int n_files;
    me_diag *diag;
} reading;

static const char *type_of(const config_setting_t *setting)
{
    switch (config_setting_type(setting)) {
    case CONFIG_TYPE_GROUP: return "a group";
    case CONFIG_TYPE_ARRAY: return "an array";
    case CONFIG_TYPE_LIST: return "a list";
    case CONFIG_TYPE_STRING: return "text in quotes";
    case CONFIG_TYPE_BOOL: return "true or false";
    case CONFIG_TYPE_FLOAT: return "a decimal";
    default: return "a whole number";
    }
}

/** Is a setting of this type right for the option? */
static bool fits(const me_option *option, const config_setting_t *setting)
{
    const int type = config_setting_type(setting);
    const bool is_whole = type == CONFIG_TYPE_INT || type == CONFIG_TYPE_INT64;
    switch (option->type) {
    case ME_OPTION_INT:
    case ME_OPTION_COUNT: return is_whole;
    case ME_OPTION_SIZE: return is_whole || type == CONFIG_TYPE_STRING;
    case ME_OPTION_BOOL: return type == CONFIG_TYPE_BOOL;
    case ME_OPTION_DOUBLE: return is_whole || type == CONFIG_TYPE_FLOAT;
    case ME_OPTION_ENUM:
    case ME_OPTION_STRING: return type == CONFIG_TYPE_STRING;
    }
    return false;
}

static void append_value(const config_setting_t *setting, me_str *text)
{
    switch (config_setting_type(setting)) {
    case CONFIG_TYPE_STRING:
        me_str_append(text, config_setting_get_string(setting));
        break;
    case CONFIG_TYPE_BOOL:
        me_str_append(text,
                      config_setting_get_bool(setting) ? "true" : "false");
        break;
    case CONFIG_TYPE_FLOAT:
        me_option_format_double(config_setting_get_float(setting), text);
        break;
    default:
        me_str_printf(text, "%lld", config_setting_get_int64(setting));
        break;
    }
}

/** The bytes of @p where up to the last slash; none for an absolute @p path. */
static int folder_of(const char *where, const char *path)
{
    const char *slash = strrchr(where, '/');
    return path[0] == '/' || slash == NULL ? 0 : (int)(slash - where) + 1;
}

/** A file that lies beside the one that names it; else the name stays, of a
 *  file of the working directory. */
static void look_beside(const char *where, me_str *name)
{
    me_str path = {0};
    me_str_printf(&path, "%.*s%s", folder_of(where, me_str_text(name)), where,
                  me_str_text(name));
    if (me_str_status(&path) == ME_OK && name->length > 0 &&
        me_input_is_file(me_str_text(&path))) {
        me_str_fini(name);
        *name = path;
    } else {
        me_str_fini_piece(&path, name);
    }
}

static me_status set_option(reading *r, const me_option *option,
                            const config_setting_t *setting, const char *where)
{
    const int line = (int)config_setting_source_line(setting);
    me_str text = {0};
    if (!fits(option, setting)) {
        me_option_format_range(option, &text);
        const me_status status = me_fail_at(
            r->diag, ME_ERR_CONFIG, where, line, "%s is %s: must be %s",
            option->name, type_of(setting), me_str_text(&text));
        me_str_fini(&text);
        return status;
    }
    append_value(setting, &text);
    if (me_option_names_file(option)) {
        look_beside(where, &text);
    }
    me_status status = me_str_status(&text);
    if (status == ME_OK) {
        const me_origin origin = {.file = where, .line = line};
        status = me_option_set(option, r->config, me_str_text(&text), &origin,
                               r->diag);
    } else {
        status = me_fail(r->diag, status, "no memory for %s", option->name);
    }
    me_str_fini(&text);
    return status;
}

static me_status set_by_name(reading *r, const char *name,
                             const config_setting_t *setting, const char *where)
{
    const me_option *option = me_option_find(name);
    if (option != NULL) {
        return set_option(r, option, setting, where);
    }
    const int line = (int)config_setting_source_line(setting);
    const me_option *nearest = me_option_nearest(name);
    if (nearest == NULL) {
        return me_fail_at(r->diag, ME_ERR_CONFIG, where, line,
                          "unknown option '%.80s' (`memest options` lists all)",
                          name);
    }
    return me_fail_at(r->diag, ME_ERR_CONFIG, where, line,
                      "unknown option '%.80s': did you mean %s?", name,
                      nearest->name);
}

/** The tree of a file takes the place of one that it included. */
static me_status set_layers(reading *r, config_setting_t *group,
                            const char *where)
{
    me_layers *layers = NULL;
    const me_status status = me_layers_read(group, where, r->diag, &layers);
    if (status == ME_OK) {
        me_layers_release(r->config->layers);
        r->config->layers = layers;
    }
    return status;
}

static me_status set_group(reading *r, config_setting_t *group,
                           const char *where)
{
    if (strcmp(config_setting_name(group), "module") == 0) {
        return set_layers(r, group, where);
    }
    if (strcmp(config_setting_name(group), "launch") == 0) {
        return me_said_read(r->config, group, where, r->diag);
    }
    const int count = config_setting_length(group);
    if (count == 0 && !me_option_group_is_known(config_setting_name(group))) {
        return set_by_name(r, config_setting_name(group), group, where);
    }
    for (int i = 0; i < count; i++) {
        const config_setting_t *setting =
            config_setting_get_elem(group, (unsigned)i);
        char name[160];
        (void)snprintf(name, sizeof name, "%.79s.%.79s",
                       config_setting_name(group),
                       config_setting_name(setting));
        const me_status status = set_by_name(r, name, setting, where);
        if (status != ME_OK) {
            return status;
        }
    }
    return ME_OK;
}

static me_status set_all(reading *r, const config_t *parsed, const char *where)
{
    config_setting_t *root = config_root_setting(parsed);
    const int count = config_setting_length(root);
    for (int i = 0; i < count; i++) {
        config_setting_t *setting = config_setting_get_elem(root, (unsigned)i);
        const me_status status =
            config_setting_is_group(setting)
                ? set_group(r, setting, where)
                : set_by_name(r, config_setting_name(setting), setting, where);
        if (status != ME_OK) {
            return status;
        }
    }
    return ME_OK;
}

static me_status parse(reading *r, const char *where, const me_source *source)
{
    config_t parsed;
    config_init(&parsed);
    me_status status = me_conf_parse(where, source, r->diag, &parsed);
    if (status == ME_OK) {
        status = set_all(r, &parsed, where);
    }
    config_destroy(&parsed);
    return status;
}

static me_status read_path(reading *r, const char *path);

/** Includes are looked up beside the file that names them. */
static me_status read_include(reading *r, const char *where,
                              const me_include *include)
{
    char path[1024];
    const int length =
        snprintf(path, sizeof path, "%.*s%s", folder_of(where, include->path),
                 where, include->path);
    if (length < 0 || (size_t)length >= sizeof path) {
        return me_fail_at(r->diag, ME_ERR_IO, where, include->line,
                          "path of the include is too long");
    }
    if (r->depth == INCLUDE_DEPTH_MAX || r->n_files == FILES_MAX) {
        return me_fail_at(r->diag, ME_ERR_CONFIG, where, include->line,
                          "@include \"%.80s\": more than %d levels or %d "
                          "files; does a file include itself?",
                          include->path, INCLUDE_DEPTH_MAX, FILES_MAX);
    }
    r->depth++;
    const me_status status = read_path(r, path);
    r->depth--;
    return status;
}

static me_status read_text(reading *r, const char *where, const char *text,
                           size_t length)
{
    me_source source;
    me_status status = me_source_scan(where, text, length, r->diag, &source);
    for (size_t i = 0; status == ME_OK && i < source.n_includes; i++) {
        status = read_include(r, where, &source.includes[i]);
    }
    if (status == ME_OK) {
        status = parse(r, where, &source);
    }
    me_source_fini(&source);
    return status;
}

static me_status read_path(reading *r, const char *path)
{
    me_str bytes = {0};
    r->n_files++;
    me_status status = me_input_read(path, ME_INPUT_MAX_BYTES, r->diag, &bytes);
    if (status == ME_OK && me_ends_with(path, ".json")) {
        status = me_huggingface_read(r->config, path, me_str_text(&bytes),
                                     bytes.length, r->diag);
    } else if (status == ME_OK && me_ends_with(path, ".toml")) {
        status = me_torchtitan_read(r->config, path, me_str_text(&bytes),
                                    bytes.length, r->diag);
    } else if (status == ME_OK &&
               (me_ends_with(path, ".yaml") || me_ends_with(path, ".yml"))) {
        status = me_megatron_read_yaml(r->config, path, me_str_text(&bytes),
                                       bytes.length, r->diag);
    } else if (status == ME_OK) {
        status = read_text(r, path, me_str_text(&bytes), bytes.length);
    }
    me_str_fini(&bytes);
    return status;
}

/** Is it a name or a file of configs/models, or a file? */
static bool is_model(const char *model, me_str *path)
{
    me_str known = {0};
    const me_status status = me_data_find(&me_data_models, model, NULL, &known);
    me_str_fini(&known);
    if (status == ME_ERR_NOMEM) {
        path->status = status;
    }
    return status == ME_OK;
}

/** The config.json of a folder as Hugging Face's are: @p model itself, or in the
 *  Hub's cache. @return false: there is none, or it is a name that is known */
static bool find_folder(const me_config *config, const char *model,
                        me_str *path)
{
    const me_hub_environment environment = me_hub_environment_of(config);
    if (strchr(model, '/') == NULL && is_model(model, path)) {
        return false;
    }
    if (!me_input_is_there(model)) {
        me_hub_cached(model, &environment, path);
    } else if (me_input_is_folder(model)) {
        me_str_append(path, model);
    }
    me_str_append(path, path->length > 0 ? "/config.json" : "");
    const bool is_there =
        path->length > 0 && me_input_is_there(me_str_text(path));
    if (!is_there && me_str_status(path) == ME_OK) {
        me_str_fini(path);
    }
    return is_there || me_str_status(path) != ME_OK;
}

/** A name without files here, `ORG/NAME` as the Hub has them, or of a family that
 *  is known for what is not modelled of it; not a file that is missing. */
static bool is_bare_name(const char *model)
{
    static const char *const files[] = {".cfg", ".json", ".toml", ".yaml",
                                        ".yml"};
    const char *slash = strchr(model, '/');
    me_str known = {0};
    bool is_file = model[0] == '.' || model[0] == '/' ||
                   me_input_is_there(model) ||
                   (slash != NULL && strchr(slash + 1, '/') != NULL);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        is_file = is_file || me_ends_with(model, files[i]);
    }
    const bool is_known = me_known_model(model, &known);
    me_str_fini(&known);
    return !is_file && (slash != NULL ||
                        (!is_known && me_known_model_lacks(model) != NULL));
}

me_status me_config_read_file(me_config *config, const char *model,
                              me_diag *diag)
{
    reading r = {.config = config, .diag = diag};
    me_str path = {0};
    me_status status = ME_OK;
    if (!find_folder(config, model, &path)) {
        if (is_bare_name(model)) {
            return me_trainer_read_named(config, "--model", model, diag);
        }
        status = me_data_find(&me_data_models, model, diag, &path);
    } else if (me_str_status(&path) != ME_OK) {
        status = me_fail(diag, me_str_status(&path), "no memory for a path");
    }
    if (status == ME_OK) {
        status = read_path(&r, me_str_text(&path));
    }
    me_str_fini(&path);
    return status;
}

me_status me_config_read_text(me_config *config, const char *where,
                              const char *text, size_t length, me_diag *diag)
{
    reading r = {.config = config, .diag = diag};
    return read_text(&r, where, text, length);
}
