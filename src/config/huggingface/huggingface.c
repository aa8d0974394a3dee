/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/huggingface/huggingface.h"

#include "base/json_text.h"
#include "config/config_private.h"
#include "config/flags.h"
#include "config/huggingface/huggingface_private.h"

#include <stdio.h>
#include <string.h>

/** One reading of a file. */
typedef struct reading {
    me_config *config;
    const char *where;
    const char *text;
    json_t *root;
    const me_hf_architecture *architecture;
    me_diag *diag;
} reading;

/** The line that a key is on, 0 if it is not found as it is written here. */
static int line_of(const reading *r, const char *key)
{
    me_str quoted = {0};
    me_str_printf(&quoted, "\"%s\"", key);
    const char *at = me_str_status(&quoted) == ME_OK
                         ? strstr(r->text, me_str_text(&quoted))
                         : NULL;
    me_str_fini(&quoted);
    int line = at == NULL ? 0 : 1;
    for (const char *c = r->text; at != NULL && c < at; c++) {
        line += *c == '\n';
    }
    return line;
}

/** Text of the file for messages and lists: one line of plain letters. */
static const char *shown(const char *text, char buffer[64])
{
    (void)snprintf(buffer, 64, "%.63s", text);
    for (char *c = buffer; *c != '\0'; c++) {
        if (*c < ' ' || *c > '~') {
            *c = '?';
        }
    }
    return buffer;
}

static const char *type_of(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "a list";
    case JSON_STRING: return "text";
    case JSON_REAL: return "a decimal";
    case JSON_INTEGER: return "a whole number";
    case JSON_TRUE:
    case JSON_FALSE: return "true or false";
    case JSON_NULL: break;
    }
    return "null";
}

/** A value as options take it; what is no single value is named. */
static void append_value(const json_t *value, me_str *text)
{
    switch (json_typeof(value)) {
    case JSON_STRING: me_str_append(text, json_string_value(value)); break;
    case JSON_INTEGER:
        me_str_printf(text, "%lld", (long long)json_integer_value(value));
        break;
    case JSON_REAL:
        me_option_format_double(json_real_value(value), text);
        break;
    case JSON_TRUE: me_str_append(text, "true"); break;
    case JSON_FALSE: me_str_append(text, "false"); break;
    case JSON_OBJECT:
    case JSON_ARRAY:
    case JSON_NULL: me_str_append(text, type_of(value)); break;
    }
}

static bool is_neutral(const me_hf_rule *rule, const json_t *value)
{
    if (rule->neutral == NULL) {
        return false;
    }
    me_str text = {0};
    append_value(value, &text);
    const bool is_among =
        me_words_have(rule->neutral, strlen(rule->neutral), me_str_text(&text));
    me_str_fini(&text);
    return is_among;
}

static me_status list_key(reading *r, me_flag_list *list, const char *key,
                          const char *note)
{
    return me_flag_list_add(r->config, list, key, note, r->diag);
}

static me_status list_unmodelled(reading *r, const char *key, const char *note,
                                 me_effect effect)
{
    return me_config_add_not_modelled(r->config, key, note, effect, r->diag);
}

static me_status list_modelled(reading *r, const char *key)
{
    return list_key(r, &r->config->modelled, key, NULL);
}

static me_status list_no_effect(reading *r, const char *key, const char *note)
{
    return list_key(r, &r->config->no_effect, key, note);
}

static bool fits(const me_option *option, const json_t *value)
{
    switch (option->type) {
    case ME_OPTION_INT:
    case ME_OPTION_COUNT:
    case ME_OPTION_SIZE: return json_is_integer(value);
    case ME_OPTION_DOUBLE: return json_is_number(value);
    case ME_OPTION_BOOL: return json_is_boolean(value);
    case ME_OPTION_ENUM:
    case ME_OPTION_STRING: return json_is_string(value);
    }
    return false;
}

static me_status fail_type(reading *r, const char *key, const json_t *value,
                           const char *right)
{
    return me_fail_at(r->diag, ME_ERR_CONFIG, r->where, line_of(r, key),
                      "%s is %s: must be %s", key, type_of(value), right);
}

static me_status read_option(reading *r, const char *key, const char *name,
                             const json_t *value)
{
    const me_option *option = me_option_find(name);
    me_str text = {0};
    me_status status = ME_OK;
    if (!fits(option, value)) {
        me_option_format_range(option, &text);
        status = fail_type(r, key, value, me_str_text(&text));
        me_str_fini(&text);
        return status;
    }
    append_value(value, &text);
    status = me_str_status(&text);
    if (status == ME_OK) {
        const me_origin origin = {
            .file = r->where, .line = line_of(r, key), .name = key};
        status = me_option_set(option, r->config, me_str_text(&text), &origin,
                               r->diag);
    } else {
        status = me_fail(r->diag, status, "no memory for %.80s", key);
    }
    me_str_fini(&text);
    return status == ME_OK ? list_modelled(r, key) : status;
}

static me_status read_tied(reading *r, const char *key, const char *name,
                           const json_t *value)
{
    if (!json_is_boolean(value)) {
        return fail_type(r, key, value, "true or false");
    }
    const me_status status = me_config_set(
        r->config, name, json_is_true(value) ? "false" : "true", r->diag);
    return status == ME_OK ? list_modelled(r, key) : status;
}

/** Megatron-LM has biases everywhere, or at most in the query-key-value
 * projection; there is none between. */
static me_status read_bias(reading *r, const char *key, const char *name,
                           const json_t *value)
{
    if (!json_is_boolean(value)) {
        return fail_type(r, key, value, "true or false");
    }
    const bool has_attention =
        json_is_true(json_object_get(r->root, "attention_bias"));
    const bool has_mlp = json_is_true(json_object_get(r->root, "mlp_bias"));
    if (json_is_false(value)) {
        return list_modelled(r, key);
    }
    if (has_attention != has_mlp) {
        return list_unmodelled(r, key,
                               has_attention ? "biases of the attention alone; "
                                               "model.add_qkv_bias is nearest"
                                             : "biases of the MLP alone",
                               (me_effect)ME_EITHER(SMALL));
    }
    const me_status status = me_config_set(r->config, name, "true", r->diag);
    return status == ME_OK ? list_modelled(r, key) : status;
}

static me_status read_rope(reading *r, const char *key, const me_hf_rule *rule,
                           const json_t *value)
{
    const json_t *type = json_object_get(value, "rope_type");
    type = type != NULL ? type : json_object_get(value, "type");
    if (json_is_object(value) && (type == NULL || is_neutral(rule, type))) {
        return list_no_effect(r, key, NULL);
    }
    return list_unmodelled(r, key, rule->note, rule->effect);
}

static me_status read_window(reading *r, const char *key,
                             const me_hf_rule *rule, const json_t *value)
{
    (void)value;
    const json_t *use = json_object_get(r->root, "use_sliding_window");
    const bool is_used =
        use != NULL ? !json_is_false(use) : r->architecture->is_windowed;
    return is_used ? list_unmodelled(r, key, rule->note, rule->effect)
                   : list_no_effect(r, key, "use_sliding_window is false");
}

static me_status read_layer_types(reading *r, const char *key,
                                  const me_hf_rule *rule, const json_t *value)
{
    bool is_plain = json_is_array(value);
    for (size_t i = 0; i < json_array_size(value); i++) {
        is_plain = is_plain && is_neutral(rule, json_array_get(value, i));
    }
    return is_plain ? list_no_effect(r, key, NULL)
                    : list_unmodelled(r, key, rule->note, rule->effect);
}

static me_status read_embedding_dropout(reading *r, const char *key,
                                        const me_hf_rule *rule,
                                        const json_t *value)
{
    const json_t *other = json_object_get(r->root, "resid_pdrop");
    if (!json_is_number(value)) {
        return fail_type(r, key, value, "a number from 0 to 1");
    }
    const double residual =
        json_is_number(other) ? json_number_value(other) : 0.1;
    const double own = json_number_value(value);
    return own >= residual && own <= residual
               ? list_modelled(r, key)
               : list_unmodelled(r, key, rule->note, rule->effect);
}

static me_status read_refused(reading *r, const char *key,
                              const me_hf_rule *rule, const json_t *value)
{
    if (is_neutral(rule, value)) {
        return list_no_effect(r, key, NULL);
    }
    me_str text = {0};
    char buffer[64];
    append_value(value, &text);
    const me_status status = me_fail_at(
        r->diag, ME_ERR_UNSUPPORTED, r->where, line_of(r, key), "%s %s: %s",
        key, shown(me_str_text(&text), buffer), rule->note);
    me_str_fini(&text);
    return status;
}

static me_status read_by_rule(reading *r, const char *key,
                              const me_hf_rule *rule, const json_t *value)
{
    switch (rule->use) {
    case ME_HF_OPTION: return read_option(r, key, rule->option, value);
    case ME_HF_NO_EFFECT: return list_no_effect(r, key, rule->note);
    case ME_HF_UNMODELLED:
        return is_neutral(rule, value)
                   ? list_no_effect(r, key, "at this value")
                   : list_unmodelled(r, key, rule->note, rule->effect);
    case ME_HF_REFUSED: return read_refused(r, key, rule, value);
    case ME_HF_TIED: return read_tied(r, key, rule->option, value);
    case ME_HF_BIAS: return read_bias(r, key, rule->option, value);
    case ME_HF_ROPE: return read_rope(r, key, rule, value);
    case ME_HF_WINDOW: return read_window(r, key, rule, value);
    case ME_HF_LAYER_TYPES: return read_layer_types(r, key, rule, value);
    case ME_HF_DROPOUT: return read_embedding_dropout(r, key, rule, value);
    }
    return ME_ERR_INTERNAL;
}

/** null stands for what the class has without the key. */
static me_status read_key(reading *r, const char *key, const json_t *value)
{
    const me_hf_rule *rule = me_hf_rule_find(r->architecture, key);
    char buffer[64];
    if (json_is_null(value)) {
        return list_no_effect(r, shown(key, buffer), "null");
    }
    if (rule == NULL) {
        char note[96];
        (void)snprintf(note, sizeof note, "unknown key of %s",
                       r->architecture->name);
        // The class would pass it over, if it is not newer than this.
        return list_unmodelled(r, shown(key, buffer), note,
                               (me_effect)ME_EITHER(SOME));
    }
    return read_by_rule(r, key, rule, value);
}

static me_status fail_architecture(reading *r, const char *name,
                                   const char *key)
{
    char buffer[64];
    return me_fail_at(r->diag, ME_ERR_UNSUPPORTED, r->where, line_of(r, key),
                      "%s is not modelled: LlamaForCausalLM, "
                      "MistralForCausalLM, MixtralForCausalLM, "
                      "Qwen2ForCausalLM, Qwen3ForCausalLM and "
                      "GPT2LMHeadModel are",
                      shown(name, buffer));
}

static me_status find_architecture(reading *r)
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
    if (r->architecture == NULL) {
        return fail_architecture(r, name != NULL ? name : type,
                                 name != NULL ? "architectures" : "model_type");
    }
    return ME_OK;
}

/** Options that the class stands for; and the type in which models are trained,
 * which no key gives: a default still, so that the report says it. */
static me_status apply_settings(reading *r)
{
    me_status status = ME_OK;
    if (!me_config_is_set(r->config, "train.params_dtype")) {
        r->config->train.params_dtype = ME_DTYPE_BFLOAT16;
    }
    for (const char *s = r->architecture->settings;
         status == ME_OK && *s != '\0';) {
        char one[96];
        const size_t length = strcspn(s, " ");
        (void)snprintf(one, sizeof one, "%.*s", (int)length, s);
        status = me_config_set_assignment(r->config, one, r->diag);
        s += length + (s[length] == ' ');
    }
    return status;
}

/** Query groups that are null are as many as heads, in every class. */
static me_status check_required(reading *r)
{
    for (const char *key = r->architecture->required; *key != '\0';) {
        char name[64];
        const size_t length = strcspn(key, "|");
        (void)snprintf(name, sizeof name, "%.*s", (int)length, key);
        const json_t *value = json_object_get(r->root, name);
        const bool may_be_null = strcmp(name, "num_key_value_heads") == 0;
        if (value == NULL || (json_is_null(value) && !may_be_null)) {
            return me_fail_at(r->diag, ME_ERR_CONFIG, r->where, 0,
                              "%s is missing: a %s has it", name,
                              r->architecture->name);
        }
        key += length + (key[length] == '|');
    }
    return ME_OK;
}

static me_status read_root(reading *r)
{
    if (!json_is_object(r->root)) {
        return me_fail_at(r->diag, ME_ERR_CONFIG, r->where, 1,
                          "is %s: must be an object", type_of(r->root));
    }
    me_status status = find_architecture(r);
    if (status != ME_OK || r->architecture == NULL) {
        return status;
    }
    status = check_required(r);
    if (status == ME_OK) {
        status = apply_settings(r);
    }
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(r->root, key, value)
    {
        status = status == ME_OK ? read_key(r, key, value) : status;
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
    reading r = {.config = config,
                 .where = where,
                 .text = text,
                 .root = root,
                 .diag = diag};
    status = read_root(&r);
    json_decref(root);
    return status;
}
