/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/config_private.h"
#include "config/flags.h"
#include "config/huggingface/huggingface_private.h"

#include <stdio.h>
#include <string.h>

int me_hf_line_of(const me_hf_reading *r, const char *key)
{
    me_str quoted = {0};
    me_str_printf(&quoted, "\"%s\"", key);
    const char *at = me_str_status(&quoted) == ME_OK
                         ? strstr(r->from, me_str_text(&quoted))
                         : NULL;
    me_str_fini(&quoted);
    int line = at == NULL ? 0 : 1;
    for (const char *c = r->text; at != NULL && c < at; c++) {
        line += *c == '\n';
    }
    return line;
}

const char *me_hf_shown(const char *text, char buffer[64])
{
    (void)snprintf(buffer, 64, "%.63s", text);
    for (char *c = buffer; *c != '\0'; c++) {
        if (*c < ' ' || *c > '~') {
            *c = '?';
        }
    }
    return buffer;
}

const char *me_hf_type_of(const json_t *value)
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
    case JSON_NULL: me_str_append(text, me_hf_type_of(value)); break;
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

static me_status list_key(me_hf_reading *r, me_flag_list *list, const char *key,
                          const char *note)
{
    return me_flag_list_add(r->config, list, key, note, r->diag);
}

me_status me_hf_list_unmodelled(me_hf_reading *r, const char *key,
                                const char *note, me_effect effect)
{
    return me_config_add_not_modelled(r->config, key, note, effect, r->diag);
}

static me_status list_modelled(me_hf_reading *r, const char *key)
{
    return list_key(r, &r->config->modelled, key, NULL);
}

me_status me_hf_list_no_effect(me_hf_reading *r, const char *key,
                               const char *note)
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

me_status me_hf_fail_type(const me_hf_reading *r, const char *key,
                          const json_t *value, const char *right)
{
    return me_fail_at(r->diag, ME_ERR_CONFIG, r->where, me_hf_line_of(r, key),
                      "%s is %s: must be %s", key, me_hf_type_of(value), right);
}

static me_status read_option(me_hf_reading *r, const char *key,
                             const char *name, const json_t *value)
{
    const me_option *option = me_option_find(name);
    me_str text = {0};
    me_status status = ME_OK;
    if (!fits(option, value)) {
        me_option_format_range(option, &text);
        status = me_hf_fail_type(r, key, value, me_str_text(&text));
        me_str_fini(&text);
        return status;
    }
    append_value(value, &text);
    status = me_str_status(&text);
    if (status == ME_OK) {
        const me_origin origin = {
            .file = r->where, .line = me_hf_line_of(r, key), .name = key};
        status = me_option_set(option, r->config, me_str_text(&text), &origin,
                               r->diag);
    } else {
        status = me_fail(r->diag, status, "no memory for %.80s", key);
    }
    me_str_fini(&text);
    return status == ME_OK ? list_modelled(r, key) : status;
}

static me_status read_inverse(me_hf_reading *r, const char *key,
                              const char *name, const json_t *value)
{
    if (!json_is_boolean(value)) {
        return me_hf_fail_type(r, key, value, "true or false");
    }
    const me_status status = me_config_set(
        r->config, name, json_is_true(value) ? "false" : "true", r->diag);
    return status == ME_OK ? list_modelled(r, key) : status;
}

/** Megatron-LM has biases everywhere, or at most in the query-key-value
 * projection; there is none between. */
static me_status read_bias(me_hf_reading *r, const char *key, const char *name,
                           const json_t *value)
{
    if (!json_is_boolean(value)) {
        return me_hf_fail_type(r, key, value, "true or false");
    }
    const bool has_attention =
        json_is_true(json_object_get(r->root, "attention_bias"));
    const bool has_mlp = json_is_true(json_object_get(r->root, "mlp_bias"));
    if (json_is_false(value)) {
        return list_modelled(r, key);
    }
    if (has_attention != has_mlp) {
        return me_hf_list_unmodelled(r, key,
                                     has_attention
                                         ? "biases of the attention alone; "
                                           "model.add_qkv_bias is nearest"
                                         : "biases of the MLP alone",
                                     (me_effect)ME_EITHER(SMALL));
    }
    const me_status status = me_config_set(r->config, name, "true", r->diag);
    return status == ME_OK ? list_modelled(r, key) : status;
}

/** The kind of an object about positions; one for each kind of layers has several,
 *  of which none must be special. NULL: as usual. */
static const json_t *special_rope(const me_hf_rule *rule, const json_t *value)
{
    const json_t *type = json_object_get(value, "rope_type");
    type = type != NULL ? type : json_object_get(value, "type");
    if (type != NULL) {
        return is_neutral(rule, type) ? NULL : type;
    }
    static const char *const layers[] = {"full_attention", "sliding_attention"};
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        const json_t *part = json_object_get(value, layers[i]);
        const json_t *own = json_object_get(part, "rope_type");
        if (own != NULL && !is_neutral(rule, own)) {
            return own;
        }
    }
    return NULL;
}

static me_status read_rope(me_hf_reading *r, const char *key,
                           const me_hf_rule *rule, const json_t *value)
{
    static const char share[] = "partial_rotary_factor";
    const json_t *turned = json_object_get(value, share);
    if (turned != NULL && !json_is_null(turned)) {
        const me_status status =
            read_option(r, share, "model.rotary_percent", turned);
        if (status != ME_OK) {
            return status;
        }
    }
    return json_is_object(value) && special_rope(rule, value) == NULL
               ? me_hf_list_no_effect(r, key, NULL)
               : me_hf_list_unmodelled(r, key, rule->note, rule->effect);
}

/** Of two embeddings: @p option is set where it is yarn's. */
static me_status read_yarn(me_hf_reading *r, const char *key,
                           const me_hf_rule *rule, const json_t *value,
                           const char *option)
{
    const char *word = json_string_value(special_rope(rule, value));
    if (word == NULL || strcmp(word, "yarn") != 0) {
        return read_rope(r, key, rule, value);
    }
    const me_status status = me_config_set(r->config, option, "yarn", r->diag);
    return status == ME_OK ? list_modelled(r, key) : status;
}

/** The classes leave these layers out; so does Megatron-LM without its flag. */
static me_status read_depths(me_hf_reading *r, const char *key,
                             const json_t *value)
{
    if (!json_is_integer(value)) {
        return me_hf_fail_type(r, key, value, "a whole number from 0");
    }
    const me_status status =
        me_hf_list_no_effect(r, key, "as the class leaves these layers out");
    return status == ME_OK && json_integer_value(value) > 0
               ? me_config_assume(r->config, r->diag,
                                  "%s = %lld: layers of multi-token prediction "
                                  "are not trained (model.mtp_num_layers)",
                                  key, (long long)json_integer_value(value))
               : status;
}

static me_status set_window(me_hf_reading *r, const char *key)
{
    const me_status status =
        me_config_set(r->config, "model.window_attention", "true", r->diag);
    return status == ME_OK ? list_modelled(r, key) : status;
}

static me_status read_window(me_hf_reading *r, const char *key)
{
    const json_t *use = json_object_get(r->root, "use_sliding_window");
    const bool is_used =
        use != NULL ? !json_is_false(use) : r->architecture->is_windowed;
    return is_used
               ? set_window(r, key)
               : me_hf_list_no_effect(r, key, "use_sliding_window is false");
}

static bool is_window(const json_t *word)
{
    const char *text = json_string_value(word);
    return text != NULL && (strcmp(text, "sliding_attention") == 0 ||
                            strcmp(text, "chunked_attention") == 0);
}

static me_status read_layer_types(me_hf_reading *r, const char *key,
                                  const me_hf_rule *rule, const json_t *value)
{
    bool is_known = json_is_array(value);
    bool has_window = false;
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *word = json_array_get(value, i);
        has_window = has_window || is_window(word);
        is_known = is_known && (is_window(word) || is_neutral(rule, word));
    }
    if (!is_known) {
        return me_hf_list_unmodelled(r, key, rule->note, rule->effect);
    }
    return has_window ? set_window(r, key) : me_hf_list_no_effect(r, key, NULL);
}

/** The dropout of the residuals, under its name in the class. */
static double residual_dropout(const me_hf_reading *r)
{
    static const char *const keys[] = {"resid_pdrop", "residual_dropout"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const json_t *value = json_object_get(r->root, keys[i]);
        if (json_is_number(value)) {
            return json_number_value(value);
        }
    }
    return r->config->model.hidden_dropout; // the class's own
}

static me_status read_embedding_dropout(me_hf_reading *r, const char *key,
                                        const me_hf_rule *rule,
                                        const json_t *value)
{
    if (!json_is_number(value)) {
        return me_hf_fail_type(r, key, value, "a number from 0 to 1");
    }
    const double residual = residual_dropout(r);
    const double own = json_number_value(value);
    return own >= residual && own <= residual
               ? list_modelled(r, key)
               : me_hf_list_unmodelled(r, key, rule->note, rule->effect);
}

static me_status read_refused(me_hf_reading *r, const char *key,
                              const me_hf_rule *rule, const json_t *value)
{
    if (is_neutral(rule, value)) {
        return me_hf_list_no_effect(r, key, NULL);
    }
    me_str text = {0};
    char buffer[64];
    append_value(value, &text);
    const me_status status = me_fail_at(
        r->diag, ME_ERR_UNSUPPORTED, r->where, me_hf_line_of(r, key),
        "%s %s: %s", key, me_hf_shown(me_str_text(&text), buffer), rule->note);
    me_str_fini(&text);
    return status;
}

/** Weights of a published checkpoint are unpacked before they are trained; those
 *  of other methods are trained beside. */
static me_status read_quantized(me_hf_reading *r, const char *key,
                                const me_hf_rule *rule, const json_t *value)
{
    const json_t *method = json_object_get(value, "quant_method");
    return method != NULL && is_neutral(rule, method)
               ? me_hf_list_no_effect(r, key, "of the stored checkpoint")
               : me_hf_list_unmodelled(r, key, rule->note, rule->effect);
}

me_status me_hf_read_by_rule(me_hf_reading *r, const char *key,
                             const me_hf_rule *rule, const json_t *value)
{
    switch (rule->use) {
    case ME_HF_OPTION:
        return is_neutral(rule, value)
                   ? me_hf_list_no_effect(r, key, "at this value")
                   : read_option(r, key, rule->option, value);
    case ME_HF_DERIVED: return list_modelled(r, key);
    case ME_HF_NO_EFFECT: return me_hf_list_no_effect(r, key, rule->note);
    case ME_HF_UNMODELLED:
        return is_neutral(rule, value)
                   ? me_hf_list_no_effect(r, key, "at this value")
                   : me_hf_list_unmodelled(r, key, rule->note, rule->effect);
    case ME_HF_REFUSED: return read_refused(r, key, rule, value);
    case ME_HF_INVERSE: return read_inverse(r, key, rule->option, value);
    case ME_HF_BIAS: return read_bias(r, key, rule->option, value);
    case ME_HF_ROPE: return read_rope(r, key, rule, value);
    case ME_HF_YARN:
        return read_yarn(r, key, rule, value, "model.position_embedding_type");
    case ME_HF_LATENT_ROPE:
        return read_yarn(r, key, rule, value, "model.rope_type");
    case ME_HF_WINDOW: return read_window(r, key);
    case ME_HF_LAYER_TYPES: return read_layer_types(r, key, rule, value);
    case ME_HF_DROPOUT: return read_embedding_dropout(r, key, rule, value);
    case ME_HF_QUANTIZED: return read_quantized(r, key, rule, value);
    case ME_HF_DEPTHS: return read_depths(r, key, value);
    }
    return ME_ERR_INTERNAL;
}
