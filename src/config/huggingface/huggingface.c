/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/huggingface/huggingface.h"

#include "base/json_text.h"
#include "base/parse.h"
#include "config/config_private.h"
#include "config/huggingface/huggingface_private.h"

#include <stdio.h>
#include <string.h>

/** null stands for what the class has without the key. */
static me_status read_key(me_hf_reading *r, const me_hf_rule *rule,
                          const char *key, const json_t *value)
{
    char buffer[64];
    if (json_is_null(value)) {
        return me_hf_list_no_effect(r, me_hf_shown(key, buffer), "null");
    }
    if (rule == NULL) {
        char note[96];
        (void)snprintf(note, sizeof note, "unknown key of %s",
                       r->architecture->name);
        // The class would pass it over, if it is not newer than this.
        return me_hf_list_unmodelled(r, me_hf_shown(key, buffer), note,
                                     (me_effect)ME_EITHER(SOME));
    }
    return me_hf_read_by_rule(r, key, rule, value);
}

/** @param key  of the file, where @p name stands */
static me_status fail_architecture(const me_hf_reading *r, const char *name,
                                   const char *key)
{
    char buffer[64];
    const char *which = NULL;
    const char *what = me_hf_telltale(r->root, &which);
    const int line = me_hf_line_of(r, key);
    if (r->architecture != NULL) {
        return me_fail_at(r->diag, ME_ERR_UNSUPPORTED, r->where, line,
                          "%s is not modelled: it has %s",
                          me_hf_shown(name, buffer), r->architecture->missing);
    }
    if (what != NULL) {
        return me_fail_at(r->diag, ME_ERR_UNSUPPORTED, r->where,
                          me_hf_line_of(r, which),
                          "%s is not modelled: it has %s, as %s says",
                          me_hf_shown(name, buffer), what, which);
    }
    return me_fail_at(r->diag, ME_ERR_UNSUPPORTED, r->where, line,
                      "%s is not modelled: what its layers are made of is not "
                      "known; `memest list architectures` names what is read",
                      me_hf_shown(name, buffer));
}

static me_status find_architecture(me_hf_reading *r)
{
    const json_t *list = json_object_get(r->root, "architectures");
    const char *name =
        json_string_value(json_is_array(list) ? json_array_get(list, 0) : list);
    const char *type =
        json_string_value(json_object_get(r->root, "model_type"));
    if (name == NULL && type == NULL) {
        return me_fail_at(r->diag, ME_ERR_CONFIG, r->where, 0,
                          "neither 'architectures' nor 'model_type' is there: "
                          "is it a config.json of Hugging Face?");
    }
    r->architecture = me_hf_architecture_find(name, type);
    if (r->architecture == NULL || r->architecture->missing != NULL) {
        return fail_architecture(r, name != NULL ? name : type,
                                 name != NULL ? "architectures" : "model_type");
    }
    return ME_OK;
}

/** What stands beside the language model's part; then that part is the root. */
static me_status enter_text(me_hf_reading *r)
{
    const char *part = r->architecture->text;
    if (part == NULL) {
        return ME_OK;
    }
    json_t *text = json_object_get(r->root, part);
    if (text == NULL && json_object_get(r->root, "num_hidden_layers") != NULL) {
        return ME_OK; // older files have the language model's keys beside others
    }
    if (!json_is_object(text)) {
        return me_fail_at(
            r->diag, ME_ERR_CONFIG, r->where, me_hf_line_of(r, part),
            "%s must be an object: a %s has it", part, r->architecture->name);
    }
    me_status status = ME_OK;
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(r->root, key, value)
    {
        if (status == ME_OK && value != text) {
            status = read_key(r, me_hf_outer_rule_find(key), key, value);
        }
    }
    char quoted[64];
    (void)snprintf(quoted, sizeof quoted, "\"%s\"", part);
    const char *at = strstr(r->text, quoted);
    r->from = at != NULL ? at : r->text;
    r->root = text;
    return status;
}

/** Options that the class stands for; and the type in which models are trained,
 * which no key gives: a default still, so that the report says it. */
static me_status apply_settings(me_hf_reading *r)
{
    me_status status = ME_OK;
    if (!me_config_is_set(r->config, "train.params_dtype")) {
        r->config->train.params_dtype = ME_DTYPE_BFLOAT16;
    }
    const char *settings = r->architecture->settings;
    size_t length = 0;
    for (const char *s = me_name_next(&settings, &length);
         status == ME_OK && s != NULL; s = me_name_next(&settings, &length)) {
        char one[96];
        (void)snprintf(one, sizeof one, "%.*s", (int)length, s);
        status = me_config_set_assignment(r->config, one, r->diag);
    }
    return status;
}

/** Query groups that are null are as many as heads, a latent of queries or experts
 * that are null are not there, in every class. */
static bool may_be_null(const char *key)
{
    return strcmp(key, "num_key_value_heads") == 0 ||
           strcmp(key, "q_lora_rank") == 0 ||
           strcmp(key, "n_routed_experts") == 0;
}

/** Is the key there, or one of those with slashes between them? */
static bool has_required(const me_hf_reading *r, const char *keys,
                         size_t length)
{
    for (const char *end = keys + length; keys < end;) {
        char name[64];
        const size_t one = strcspn(keys, "/|");
        (void)snprintf(name, sizeof name, "%.*s", (int)one, keys);
        const json_t *value = json_object_get(r->root, name);
        if (value != NULL && (!json_is_null(value) || may_be_null(name))) {
            return true;
        }
        keys += one + 1;
    }
    return false;
}

static me_status check_required(me_hf_reading *r)
{
    for (const char *key = r->architecture->required; *key != '\0';) {
        const size_t length = strcspn(key, "|");
        if (!has_required(r, key, length)) {
            return me_fail_at(r->diag, ME_ERR_CONFIG, r->where, 0,
                              "%.*s is missing: a %s has it",
                              (int)strcspn(key, "/|"), key,
                              r->architecture->name);
        }
        key += length + (key[length] == '|');
    }
    return ME_OK;
}

static me_status list_lacks(me_hf_reading *r)
{
    me_status status = ME_OK;
    const me_hf_architecture *a = r->architecture;
    for (const me_hf_lack *lack = a->lacks;
         status == ME_OK && lack != NULL && lack->note != NULL; lack++) {
        status = me_hf_list_unmodelled(r, a->name, lack->note, lack->effect);
    }
    return status;
}

static me_status read_keys(me_hf_reading *r)
{
    me_status status = ME_OK;
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(r->root, key, value)
    {
        const me_hf_rule *rule = me_hf_rule_find(r->architecture, key);
        status = status == ME_OK ? read_key(r, rule, key, value) : status;
    }
    return status;
}

static me_status read_root(me_hf_reading *r)
{
    if (!json_is_object(r->root)) {
        return me_fail_at(r->diag, ME_ERR_CONFIG, r->where, 1,
                          "is %s: must be an object", me_hf_type_of(r->root));
    }
    me_status status = find_architecture(r);
    if (status != ME_OK || r->architecture == NULL) {
        return status;
    }
    me_status (*const steps[])(me_hf_reading *) = {
        enter_text, check_required,          apply_settings,
        read_keys,  r->architecture->derive, list_lacks,
    };
    for (size_t i = 0; status == ME_OK && i < sizeof steps / sizeof *steps;
         i++) {
        status = steps[i] == NULL ? ME_OK : steps[i](r);
    }
    return status;
}

me_status me_huggingface_read(me_config *config, const char *where,
                              const char *text, size_t length, me_diag *diag)
{
    json_t *root = NULL;
    me_status status = me_json_parse(where, text, length, diag, &root);
    if (status != ME_OK) {
        return status;
    }
    me_hf_reading r = {.config = config,
                       .where = where,
                       .text = text,
                       .from = text,
                       .root = root,
                       .diag = diag};
    status = read_root(&r);
    json_decref(root);
    return status;
}
