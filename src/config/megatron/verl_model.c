/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/megatron/verl_model.h"

#include "config/config_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/** What the actor's model is given over its config.json. */
static const char model_config[] =
    "actor_rollout_ref.model.override_config.model_config.";

/** Its keys that are read: as which of Megatron-LM's flags, or of the model's
 *  options; with neither nothing that is estimated depends on them. */
typedef struct model_key {
    const char *key;
    const char *field;
    const char *option;
    bool is_inverse;
} model_key;

static const model_key model_keys[] = {
    {.key = "num_hidden_layers", .field = "num_layers"},
    {.key = "intermediate_size", .field = "ffn_hidden_size"},
    {.key = "hidden_size", .option = "model.hidden_size"},
    {.key = "num_attention_heads", .option = "model.num_attention_heads"},
    {.key = "num_key_value_heads", .option = "model.num_query_groups"},
    {.key = "head_dim", .option = "model.kv_channels"},
    {.key = "vocab_size", .option = "model.vocab_size"},
    {.key = "tie_word_embeddings",
     .option = "model.untie_embeddings_and_output_weights",
     .is_inverse = true},
    {.key = "max_position_embeddings"},
    {.key = "rope_theta"},
    {.key = "rope_scaling"},
    {.key = "rms_norm_eps"},
    {.key = "initializer_range"},
    {.key = "bos_token_id"},
    {.key = "eos_token_id"},
    {.key = "pad_token_id"},
};

/** NULL: the key is not read. Layers of experts and others in a pattern cannot be
 *  counted anew; of multi-latent attention heads are no matter of these keys. */
static const model_key *find_model_key(const me_config *config, const char *key)
{
    const size_t n = strcspn(key, ".");
    for (size_t i = 0; i < sizeof model_keys / sizeof *model_keys; i++) {
        const model_key *row = &model_keys[i];
        const bool is_of_heads = row->option != NULL &&
                                 (strstr(row->option, "query_groups") != NULL ||
                                  strstr(row->option, "kv_channels") != NULL);
        if (strlen(row->key) == n && strncmp(key, row->key, n) == 0) {
            return (i == 0 && strchr(config->moe.layer_freq, '[') != NULL) ||
                           (is_of_heads && config->model.multi_latent_attention)
                       ? NULL
                       : row;
        }
    }
    return NULL;
}

/** One key with a value that is read. */
static me_status set_model_key(const model_key *row, const me_yaml_leaf *leaf,
                               me_leaf_list *picked, const char *where,
                               me_config *config, me_diag *diag)
{
    bool value = false;
    if (row->field != NULL) {
        return me_leaf_list_add(picked, row->field, leaf->values,
                                leaf->n_values, where, diag);
    }
    if (row->option == NULL || me_yaml_is_null(leaf) || leaf->n_values != 1) {
        return ME_OK;
    }
    if (row->is_inverse && !me_yaml_bool(leaf, &value)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%.120s=%.40s: must be true or false", leaf->path,
                       leaf->values[0]);
    }
    return me_config_set(config, row->option,
                         !row->is_inverse ? leaf->values[0]
                         : value          ? "false"
                                          : "true",
                         diag);
}

/** Another width or number of heads, with the size of a head that the model has by
 *  its own, or that comes out of them. */
static me_status say_heads(me_config *config, uint64_t hidden, uint64_t heads,
                           me_diag *diag)
{
    const bool is_changed = config->model.hidden_size != hidden ||
                            config->model.num_attention_heads != heads;
    return is_changed && !config->model.multi_latent_attention
               ? me_config_assume(
                     config, diag,
                     config->model.kv_channels != 0
                         ? "a head has the size of the model's config.json, "
                           "whatever verl's overrides make of its width"
                         : "a head has hidden_size / num_attention_heads of "
                           "verl's overrides, as the model's config.json has no "
                           "head_dim")
               : ME_OK;
}

me_status me_verl_model_read(const me_leaf_list *all, me_leaf_list *picked,
                             const char *where, me_config *config,
                             me_diag *diag)
{
    const me_effect any = ME_EITHER(ANY);
    const size_t n = sizeof model_config - 1;
    const uint64_t hidden = config->model.hidden_size;
    const uint64_t heads = config->model.num_attention_heads;
    me_status status = ME_OK;
    for (size_t i = 0; status == ME_OK && i < all->yaml.count; i++) {
        const me_yaml_leaf *leaf = &all->yaml.leaves[i];
        if (strncmp(leaf->path, model_config, n) != 0) {
            continue;
        }
        const model_key *row = find_model_key(config, leaf->path + n);
        status = row == NULL
                     ? me_config_add_not_modelled(
                           config, leaf->path,
                           "another model than the config.json's, which is "
                           "estimated",
                           any, diag)
                     : set_model_key(row, leaf, picked, where, config, diag);
    }
    return status == ME_OK ? say_heads(config, hidden, heads, diag) : status;
}

me_status me_verl_model_keep_vocabulary(me_config *config, me_diag *diag)
{
    char text[24];
    if (config->model.vocab_size == 0 || config->model.padded_vocab_size != 0) {
        return ME_OK;
    }
    (void)snprintf(text, sizeof text, "%" PRIu64, config->model.vocab_size);
    return me_config_set(config, "model.padded_vocab_size", text, diag);
}
