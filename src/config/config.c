/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/config.h"

#include "base/alloc.h"
#include "config/config_private.h"
#include "config/framework.h"
#include "config/said.h"
#include "config/torch/tree.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/** Far above any command line that a kernel passes on. */
static const uint64_t text_max_bytes = UINT64_C(64) << 20;

static me_flag_list *list_at(me_config *config, int index)
{
    me_flag_list *const lists[] = {
        &config->modelled,    &config->no_effect,   &config->not_modelled,
        &config->assumptions, &config->environment,
    };
    return index < (int)(sizeof lists / sizeof lists[0]) ? lists[index] : NULL;
}

static bool set_defaults(me_config *config)
{
    size_t count = 0;
    const me_option *options = me_options(&count);
    for (size_t i = 0; i < count; i++) {
        // A default of 0 is "not given" and stays the zero that it is.
        if (strcmp(options[i].default_text, "0") != 0 &&
            me_option_set(&options[i], config, options[i].default_text,
                          &(me_origin){0}, NULL) != ME_OK) {
            return false;
        }
    }
    memset(config->own->is_set, 0, sizeof config->own->is_set);
    return true;
}

static me_config *create_empty(void)
{
    me_config *config = me_alloc(1, sizeof *config, "config");
    if (config == NULL) {
        return NULL;
    }
    config->own = me_alloc(1, sizeof *config->own, "config.private");
    if (config->own == NULL) {
        me_config_destroy(config);
        return NULL;
    }
    config->own->text = me_arena_create(text_max_bytes, "config.text");
    if (config->own->text == NULL) {
        me_config_destroy(config);
        return NULL;
    }
    return config;
}

me_config *me_config_create(void)
{
    me_config *config = create_empty();
    if (config != NULL && !set_defaults(config)) {
        me_config_destroy(config);
        return NULL;
    }
    return config;
}

void me_config_destroy(me_config *config)
{
    if (config == NULL) {
        return;
    }
    for (int i = 0; list_at(config, i) != NULL; i++) {
        me_free(list_at(config, i)->flags);
    }
    me_layers_release(config->layers);
    if (config->own != NULL) {
        me_titan_said_destroy(config->own->titan);
        me_arena_destroy(config->own->text);
    }
    me_free(config->own);
    me_free(config);
}

static me_status copy_vocabulary(me_config *to, const me_vocabulary_said *from)
{
    me_vocabulary_said *said = &to->own->vocabulary;
    *said = *from;
    if (from->tokens == 0) {
        return ME_OK;
    }
    said->type = me_arena_strdup(to->own->text, from->type);
    said->from = me_arena_strdup(to->own->text, from->from);
    return said->type == NULL || said->from == NULL ? ME_ERR_NOMEM : ME_OK;
}

/** @param text  NULL: there is none */
static me_status copy_text(me_config *to, const char *text,
                           const char **copy_out)
{
    if (text != NULL) {
        *copy_out = me_arena_strdup(to->own->text, text);
    }
    return text == NULL || *copy_out != NULL ? ME_OK : ME_ERR_NOMEM;
}

static me_status copy_list(me_config *to, me_flag_list *list,
                           const me_flag_list *from)
{
    *list = (me_flag_list){0};
    for (int32_t i = 0; i < from->count; i++) {
        const me_flag_note *note = &from->flags[i];
        const me_status status =
            me_flag_list_add(to, list, note->flag, note->note, NULL);
        if (status != ME_OK) {
            return status;
        }
        list->flags[i].effect = note->effect;
    }
    return ME_OK;
}

me_config *me_config_clone(const me_config *config)
{
    me_config *copy = create_empty();
    if (copy == NULL) {
        return NULL;
    }
    struct me_config_private *own = copy->own;
    memcpy(own->is_set, config->own->is_set, sizeof own->is_set);
    own->has_launch = config->own->has_launch;
    own->has_leaves = config->own->has_leaves;
    own->paste = config->own->paste;
    own->takes_unknown = config->own->takes_unknown;
    own->tasks_around = config->own->tasks_around;
    own->tasks_variable = config->own->tasks_variable;
    memcpy(own->n_said, config->own->n_said, sizeof own->n_said);
    *copy = *config;
    copy->own = own;
    copy->layers = me_layers_retain(config->layers);
    for (int i = 0; list_at(copy, i) != NULL; i++) {
        *list_at(copy, i) = (me_flag_list){0};
    }
    const me_flag_list *const from[] = {
        &config->modelled,    &config->no_effect,   &config->not_modelled,
        &config->assumptions, &config->environment,
    };
    if (copy_vocabulary(copy, &config->own->vocabulary) != ME_OK ||
        copy_text(copy, config->own->world_is_open, &own->world_is_open) !=
            ME_OK ||
        copy_text(copy, config->own->fork_sign, &own->fork_sign) != ME_OK ||
        !me_titan_said_copy(copy, config->own->titan)) {
        me_config_destroy(copy);
        return NULL;
    }
    for (int i = 0; list_at(copy, i) != NULL; i++) {
        if (copy_list(copy, list_at(copy, i), from[i]) != ME_OK) {
            me_config_destroy(copy);
            return NULL;
        }
    }
    return copy;
}

me_status me_config_assume(me_config *config, me_diag *diag, const char *format,
                           ...)
{
    char sentence[ME_DIAG_TEXT];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    return me_flag_list_add(config, &config->assumptions, "", sentence, diag);
}

me_status me_config_assume_of(me_config *config, const char *options,
                              me_diag *diag, const char *format, ...)
{
    if (me_flag_list_has(&config->assumptions, options)) {
        return ME_OK;
    }
    char sentence[ME_DIAG_TEXT];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    return me_flag_list_add(config, &config->assumptions, options, sentence,
                            diag);
}

me_status me_config_add_not_modelled(me_config *config, const char *name,
                                     const char *note, me_effect effect,
                                     me_diag *diag)
{
    me_flag_list *list = &config->not_modelled;
    const me_status status = me_flag_list_add(config, list, name, note, diag);
    if (status == ME_OK) {
        list->flags[list->count - 1].effect = effect;
    }
    return status;
}

const char *me_config_variable(const me_config *config, const char *name)
{
    const char *value = NULL;
    for (int32_t i = 0; i < config->environment.count; i++) {
        const me_flag_note *variable = &config->environment.flags[i];
        if (strcmp(variable->flag, name) == 0) {
            value = variable->note; // the last one holds
        }
    }
    return value;
}

/** PyTorch looks at the older name only where the newer one is not set. */
static bool is_allocator_conf(const me_config *config, const char *name)
{
    return strcmp(name, "PYTORCH_ALLOC_CONF") == 0 ||
           (strcmp(name, "PYTORCH_CUDA_ALLOC_CONF") == 0 &&
            me_config_variable(config, "PYTORCH_ALLOC_CONF") == NULL);
}

me_status me_config_keep_variable(me_config *config, const char *name,
                                  const char *value, me_diag *diag)
{
    const me_status status =
        me_flag_list_add(config, &config->environment, name, value, diag);
    if (status != ME_OK || value == NULL || !is_allocator_conf(config, name)) {
        return status;
    }
    const me_origin origin = {.name = name};
    return me_option_set(me_option_find("device.alloc_conf"), config, value,
                         &origin, diag);
}

me_status me_config_finish(me_config *config, int32_t num_processes,
                           me_diag *diag)
{
    const me_framework_rules *rules = me_framework_rules_of(config->framework);
    me_said_settle(config);
    me_status status = me_framework_check_foreign(config, diag);
    if (status == ME_OK) {
        status = rules->derive(config, num_processes, diag);
    }
    if (status == ME_OK) {
        status = rules->validate(config, diag);
    }
    if (status == ME_OK) {
        status = rules->note(config, diag);
    }
    if (status == ME_OK) {
        return me_config_note_needless(config, diag);
    }
    me_config_name_flags(config, diag);
    return status;
}

/** Buffers and workspaces, which the verdict's band holds. */
static bool is_small(me_effect effect)
{
    return effect.lower != ME_REACH_UNKNOWN &&
           effect.higher != ME_REACH_UNKNOWN &&
           effect.lower <= ME_REACH_SMALL && effect.higher <= ME_REACH_SMALL;
}

me_status me_config_check_strict(const me_config *config, me_diag *diag)
{
    const me_flag_list *list = &config->not_modelled;
    me_str names = {0};
    for (int32_t i = 0; i < list->count; i++) {
        if (!is_small(list->flags[i].effect)) {
            me_str_printf(&names, "%s%s", names.length == 0 ? "" : ", ",
                          list->flags[i].flag);
        }
    }
    const me_status status =
        me_str_status(&names) != ME_OK || names.length > 0
            ? me_fail(diag, ME_ERR_CONFIG, "--strict: not modelled: %s",
                      me_str_text(&names))
            : ME_OK;
    me_str_fini(&names);
    return status;
}
