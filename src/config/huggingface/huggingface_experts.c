/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "base/size.h"
#include "config/huggingface/huggingface_private.h"
#include "config/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What several keys say together: which layers have experts, how wide the shared
 * ones are, how many query groups there are. */

/** Far above any model's, so that no product of two overflows. */
static const json_int_t most = INT64_C(1) << 30;

/** A number of the file; @p absent where it has none. */
static me_status read_number(const me_hf_reading *r, const char *key,
                             json_int_t absent, json_int_t *number_out)
{
    const json_t *value = json_object_get(r->root, key);
    if (value == NULL || json_is_null(value)) {
        *number_out = absent;
        return ME_OK;
    }
    if (!json_is_integer(value)) {
        return me_hf_fail_type(r, key, value, "a whole number from 0");
    }
    *number_out = json_integer_value(value);
    return *number_out >= 0 && *number_out <= most
               ? ME_OK
               : me_fail_at(r->diag, ME_ERR_CONFIG, r->where,
                            me_hf_line_of(r, key),
                            "%s %lld: must be a whole number from 0 to %lld",
                            key, (long long)*number_out, (long long)most);
}

static me_status set_number(const me_hf_reading *r, const char *option,
                            json_int_t number)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%lld", (long long)number);
    return me_config_set(r->config, option, text, r->diag);
}

/** The shortest pattern that is repeated to the end: its length. */
static int32_t period_of(const bool *is_moe, int32_t count)
{
    for (int32_t period = 1; period < count; period++) {
        bool repeats = count % period == 0;
        for (int32_t i = period; repeats && i < count; i++) {
            repeats = is_moe[i] == is_moe[i - period];
        }
        if (repeats) {
            return period;
        }
    }
    return count;
}

/** `[0]*3+[1]*58` */
static void append_runs(const bool *is_moe, int32_t count, me_str *text)
{
    for (int32_t i = 0; i < count;) {
        int32_t end = i;
        while (end < count && is_moe[end] == is_moe[i]) {
            end++;
        }
        me_str_printf(text, "%s[%d]*%d", i == 0 ? "" : "+", is_moe[i] ? 1 : 0,
                      (int)(end - i));
        i = end;
    }
}

/** moe.layer_freq, as Megatron-LM's flag would be written. */
static me_status set_layers(const me_hf_reading *r, const bool *is_moe,
                            int32_t count)
{
    enum {
        LAYER_FREQ_BYTES = sizeof r->config->moe.layer_freq
    };

    const int32_t period = period_of(is_moe, count);
    me_str text = {0};
    me_str_append(&text, "(");
    append_runs(is_moe, period, &text);
    me_str_append(&text, ")");
    if (period < count) {
        me_str_printf(&text, "*%d", (int)(count / period));
    }
    me_status status = me_str_status(&text);
    if (status != ME_OK) {
        (void)me_fail(r->diag, status, "no memory for a list of layers");
    } else if (period == 1 && is_moe[0]) {
        status = me_config_set(r->config, "moe.layer_freq", "1", r->diag);
    } else if (text.length >= LAYER_FREQ_BYTES) {
        status = me_fail_at(r->diag, ME_ERR_UNSUPPORTED, r->where, 0,
                            "layers with experts are in no order that "
                            "moe.layer_freq can say in %d bytes",
                            (int)LAYER_FREQ_BYTES - 1);
    } else {
        status = me_config_set(r->config, "moe.layer_freq", me_str_text(&text),
                               r->diag);
    }
    me_str_fini(&text);
    return status;
}

/** Sets flags of layers; all are false before. */
typedef me_status layers_fill(const me_hf_reading *r, bool *is_moe,
                              int32_t count);

/** A list of a word each, "dense" or "sparse". */
static me_status fill_words(const me_hf_reading *r, const json_t *words,
                            bool *is_moe, int32_t count)
{
    bool is_right = json_array_size(words) == (size_t)count;
    for (int32_t i = 0; i < count && is_right; i++) {
        const char *word = json_string_value(json_array_get(words, (size_t)i));
        is_moe[i] = word != NULL && strcmp(word, "sparse") == 0;
        is_right = is_moe[i] || (word != NULL && strcmp(word, "dense") == 0);
    }
    return is_right ? ME_OK
                    : me_fail_at(r->diag, ME_ERR_CONFIG, r->where,
                                 me_hf_line_of(r, "mlp_layer_types"),
                                 "mlp_layer_types: must be a list of %d words, "
                                 "dense or sparse",
                                 (int)count);
}

/** Nothing for a model without experts. */
static me_status derive_layers(const me_hf_reading *r, layers_fill *fill)
{
    const int32_t count = r->config->model.num_layers;
    if (r->config->moe.num_experts == 0) {
        return ME_OK;
    }
    bool *is_moe = me_alloc((size_t)count, sizeof *is_moe, "moe layers");
    if (is_moe == NULL) {
        return me_fail(r->diag, ME_ERR_NOMEM, "no memory for a list of layers");
    }
    const json_t *words = json_object_get(r->root, "mlp_layer_types");
    me_status status = words == NULL || json_is_null(words)
                           ? fill(r, is_moe, count)
                           : fill_words(r, words, is_moe, count);
    if (status == ME_OK) {
        status = set_layers(r, is_moe, count);
    }
    me_free(is_moe);
    return status;
}

/** The first k layers are dense, and of the others all but every freq-th. */
static me_status fill_deepseek(const me_hf_reading *r, bool *is_moe,
                               int32_t count)
{
    json_int_t first = 0;
    json_int_t period = 1;
    me_status status = read_number(r, "first_k_dense_replace", 0, &first);
    if (status == ME_OK) {
        status = read_number(r, "moe_layer_freq", 1, &period);
    }
    for (int32_t i = 0; status == ME_OK && i < count; i++) {
        is_moe[i] = i >= first && (period <= 1 || i % period == 0);
    }
    return status;
}

/** Groups of experts, of which some are chosen first; one group is none. */
static me_status set_groups(me_hf_reading *r)
{
    json_int_t groups = 0;
    json_int_t topk = 0;
    me_status status = read_number(r, "n_group", 1, &groups);
    if (status == ME_OK) {
        status = read_number(r, "topk_group", 1, &topk);
    }
    if (status == ME_OK && groups > 1) {
        status = set_number(r, "moe.router_num_groups", groups);
    }
    return status == ME_OK && groups > 1
               ? set_number(r, "moe.router_group_topk", topk)
               : status;
}

/** How the best experts are found: by scores, within groups, with biases. */
static me_status derive_routing(me_hf_reading *r)
{
    const json_t *value = json_object_get(r->root, "topk_method");
    const char *method = json_string_value(value);
    const bool is_greedy = method != NULL && strcmp(method, "greedy") == 0;
    me_status status = is_greedy ? ME_OK : set_groups(r);
    if (status == ME_OK && method != NULL) {
        status = me_config_set(
            r->config, "moe.router_enable_expert_bias",
            strcmp(method, "noaux_tc") == 0 ? "true" : "false", r->diag);
    }
    return status == ME_OK && json_is_true(json_object_get(r->root, "seq_aux"))
               ? me_config_set(r->config, "moe.router_load_balancing",
                               "seq_aux_loss", r->diag)
               : status;
}

/** Shared experts are as wide as so many routed ones. */
me_status me_hf_derive_deepseek_experts(me_hf_reading *r)
{
    json_int_t shared = 0;
    json_int_t width = 0;
    me_status status = derive_layers(r, fill_deepseek);
    if (status == ME_OK) {
        status = derive_routing(r);
    }
    if (status == ME_OK) {
        status = read_number(r, "n_shared_experts", 0, &shared);
    }
    if (status == ME_OK) {
        status = read_number(r, "moe_intermediate_size", 0, &width);
    }
    return status == ME_OK && r->config->moe.num_experts > 0 && shared > 0
               ? set_number(r, "moe.shared_expert_intermediate_size",
                            shared * width)
               : status;
}

/** Takes the layers of a list of indices; others are left as they are. */
static me_status mark_listed(const me_hf_reading *r, const char *key, bool mark,
                             bool *is_moe, int32_t count)
{
    const json_t *list = json_object_get(r->root, key);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        const json_int_t index =
            json_is_integer(item) ? json_integer_value(item) : -1;
        if (index < 0 || index >= count) {
            return me_fail_at(r->diag, ME_ERR_CONFIG, r->where,
                              me_hf_line_of(r, key),
                              "%s: must be a list of layers from 0 to %d", key,
                              (int)count - 1);
        }
        is_moe[index] = mark;
    }
    return ME_OK;
}

static me_status fill_qwen(const me_hf_reading *r, bool *is_moe, int32_t count)
{
    json_int_t step = 1;
    const me_status status = read_number(r, "decoder_sparse_step", 1, &step);
    for (int32_t i = 0; status == ME_OK && i < count; i++) {
        is_moe[i] = step > 0 && (i + 1) % step == 0;
    }
    return status == ME_OK
               ? mark_listed(r, "mlp_only_layers", false, is_moe, count)
               : status;
}

me_status me_hf_derive_qwen_experts(me_hf_reading *r)
{
    return derive_layers(r, fill_qwen);
}

static me_status fill_llama4(const me_hf_reading *r, bool *is_moe,
                             int32_t count)
{
    json_int_t step = 1;
    const me_status status =
        read_number(r, "interleave_moe_layer_step", 1, &step);
    if (status != ME_OK ||
        json_is_array(json_object_get(r->root, "moe_layers"))) {
        return status == ME_OK
                   ? mark_listed(r, "moe_layers", true, is_moe, count)
                   : status;
    }
    for (int32_t i = 0; i < count; i++) {
        is_moe[i] = step > 0 && (i + 1) % step == 0;
    }
    return ME_OK;
}

/** The shared expert is as wide as a routed one. */
me_status me_hf_derive_llama4_experts(me_hf_reading *r)
{
    json_int_t width = 0;
    me_status status = derive_layers(r, fill_llama4);
    if (status == ME_OK) {
        status = read_number(r, "intermediate_size", 0, &width);
    }
    return status == ME_OK && width > 0
               ? set_number(r, "moe.shared_expert_intermediate_size", width)
               : status;
}

static me_status fill_ernie(const me_hf_reading *r, bool *is_moe, int32_t count)
{
    const json_t *last = json_object_get(r->root, "moe_layer_end_index");
    json_int_t first = 0;
    json_int_t end = count - 1;
    json_int_t interval = 1;
    me_status status = read_number(r, "moe_layer_start_index", 1, &first);
    if (status == ME_OK && json_integer_value(last) > 0) {
        status = read_number(r, "moe_layer_end_index", end, &end);
    }
    if (status == ME_OK) {
        status = read_number(r, "moe_layer_interval", 1, &interval);
    }
    for (int32_t i = 0; status == ME_OK && i < count; i++) {
        is_moe[i] = i >= first && i <= end &&
                    (interval <= 1 || (i + 1) % interval == 0);
    }
    return status;
}

me_status me_hf_derive_ernie_experts(me_hf_reading *r)
{
    json_int_t shared = 0;
    json_int_t width = 0;
    me_status status = derive_layers(r, fill_ernie);
    if (status == ME_OK) {
        status = read_number(r, "moe_num_shared_experts", 2, &shared);
    }
    if (status == ME_OK) {
        status = read_number(r, "moe_intermediate_size", 0, &width);
    }
    return status == ME_OK && shared > 0
               ? set_number(r, "moe.shared_expert_intermediate_size",
                            shared * width)
               : status;
}

/** A part of each head turns. */
me_status me_hf_derive_minimax(me_hf_reading *r)
{
    json_int_t turned = 0;
    const uint64_t whole = r->config->model.kv_channels;
    const me_status status = read_number(r, "rotary_dim", 0, &turned);
    if (status != ME_OK || turned == 0 || whole == 0) {
        return status;
    }
    char text[32];
    (void)snprintf(text, sizeof text, "%.17g", (double)turned / (double)whole);
    return me_config_set(r->config, "model.rotary_percent", text, r->diag);
}

me_status me_hf_derive_chatglm(me_hf_reading *r)
{
    json_int_t groups = 0;
    if (!json_is_true(json_object_get(r->root, "multi_query_attention"))) {
        return ME_OK;
    }
    const me_status status =
        read_number(r, "multi_query_group_num", 1, &groups);
    return status == ME_OK ? set_number(r, "model.num_query_groups", groups)
                           : status;
}
