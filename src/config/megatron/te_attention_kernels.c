/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/megatron/te_attention_kernels.h"

#include <string.h>

me_te_heads me_te_heads_of(const me_config *config)
{
    const me_model_config *m = &config->model;
    return (me_te_heads){.query = m->query_head_size,
                         .value = m->multi_latent_attention ? m->v_head_dim
                                                            : m->kv_channels};
}

static bool is_deterministic(const me_config *config)
{
    const char *allows =
        me_config_variable(config, "NVTE_ALLOW_NONDETERMINISTIC_ALGO");
    return config->train.deterministic_mode ||
           (allows != NULL && strcmp(allows, "0") == 0);
}

bool me_te_returns_max_logit(const me_config *config)
{
    return config->model.qk_clip || config->model.log_max_attention_logit;
}

/** Of all cards; NULL: nothing. */
static const char *lacks_fused(const me_config *config, bool is_windowed)
{
    const me_te_heads h = me_te_heads_of(config);
    const me_model_config *m = &config->model;
    return config->train.params_dtype == ME_DTYPE_FLOAT32
               ? "train.params_dtype = float32"
           : h.query % 8 != 0 || h.value % 8 != 0
               ? "heads that are no multiple of 8 columns wide"
           : me_te_widest_head(h) > ME_TE_MOST_HEAD_SIZE
               ? "heads of more than 256 columns"
           : m->qk_clip ? "model.qk_clip = true (--qk-clip), whose largest "
                          "scores cuDNN gives from 9.21 on: PyTorch 2.11 has "
                          "9.19"
           : m->log_max_attention_logit
               ? "model.log_max_attention_logit = true "
                 "(--log-max-attention-logit), whose largest scores cuDNN "
                 "gives from 9.21 on: PyTorch 2.11 has 9.19"
           : is_windowed && m->attention_dropout > 0.0
               ? "model.attention_dropout over 0 with model.window_attention "
                 "= true"
               : NULL;
}

/** Of that card; NULL: nothing. */
static const char *lacks_fused_on(const me_config *config, uint64_t capability)
{
    const me_te_heads h = me_te_heads_of(config);
    const bool is_small = h.query <= 128 && h.value <= 128;
    const bool is_latent = h.query == 192 && h.value == 128;
    if (capability < ME_CAPABILITY_AMPERE) {
        return "a card before compute capability 8.0";
    }
    if (capability < ME_CAPABILITY_HOPPER) {
        return !is_small ? "heads of more than 128 columns on that card"
               : is_deterministic(config) ? "determinism on that card"
                                          : NULL;
    }
    if (capability < ME_CAPABILITY_BLACKWELL) {
        return is_latent || h.query == h.value || h.query < 128 || h.value < 128
                   ? NULL
                   : "values of another size than queries, both of 128 columns "
                     "or more, on that card";
    }
    const bool has_order = !is_deterministic(config) ||
                           (capability < ME_CAPABILITY_CONSUMER_BLACKWELL &&
                            config->model.attention_dropout <= 0.0);
    return !is_small && !is_latent
               ? "heads of more than 128 columns on that card"
           : has_order ? NULL
                       : "determinism on that card";
}

bool me_te_takes_fused(const me_config *config, bool is_windowed)
{
    return lacks_fused(config, is_windowed) == NULL;
}

bool me_te_takes_fused_on(const me_config *config, uint64_t capability)
{
    return lacks_fused_on(config, capability) == NULL;
}

bool me_te_refuses_fused(const me_config *config)
{
    return is_deterministic(config) &&
           config->model.softmax_type != ME_SOFTMAX_VANILLA;
}

const char *me_te_lacks_fused(const me_config *config, uint64_t capability)
{
    const char *of_job = lacks_fused(config, false);
    const char *of_card = lacks_fused_on(config, capability);
    return of_job != NULL    ? of_job
           : of_card != NULL ? of_card
           : me_te_refuses_fused(config)
               ? "determinism where model.softmax_type is not vanilla"
               : lacks_fused(config, config->model.window_attention);
}

uint64_t me_te_widest_head(me_te_heads heads)
{
    return heads.query > heads.value ? heads.query : heads.value;
}

/** Which packages are there. */
static const struct {
    bool has_2;
    bool has_3;
    bool has_4;
} installed[] = {
    [ME_FLASH_ATTN_NONE] = {false, false, false},
    [ME_FLASH_ATTN_2] = {true, false, false},
    [ME_FLASH_ATTN_3] = {false, true, false},
    [ME_FLASH_ATTN_2_AND_3] = {true, true, false},
    [ME_FLASH_ATTN_4] = {false, false, true},
    [ME_FLASH_ATTN_2_AND_4] = {true, false, true},
    [ME_FLASH_ATTN_2_TO_4] = {true, true, true},
};

/** What all versions of flash-attn need. */
static bool can_be_any_flash(const me_config *config)
{
    return config->train.params_dtype != ME_DTYPE_FLOAT32 &&
           config->model.softmax_type == ME_SOFTMAX_VANILLA &&
           !me_te_returns_max_logit(config);
}

bool me_te_takes_flash_2(const me_config *config, uint64_t capability)
{
    const uint64_t d = me_te_widest_head(me_te_heads_of(config));
    const bool takes_wide = capability == ME_CAPABILITY_AMPERE ||
                            capability == ME_CAPABILITY_HOPPER ||
                            capability == ME_CAPABILITY_BLACKWELL ||
                            capability == ME_CAPABILITY_CONSUMER_BLACKWELL;
    return installed[config->impl.flash_attn].has_2 &&
           can_be_any_flash(config) && capability >= ME_CAPABILITY_AMPERE &&
           d % 8 == 0 && d <= ME_TE_MOST_HEAD_SIZE && (d <= 192 || takes_wide);
}

/** _is_fa3_supported(). */
static bool takes_flash_3(me_te_heads h)
{
    const bool is_latent =
        h.query > 128 && h.query <= 192 && h.value > 96 && h.value <= 128;
    return h.query <= ME_TE_MOST_HEAD_SIZE &&
           (h.query == h.value || is_latent ||
            (h.query <= 64 && h.value <= 512));
}

bool me_te_takes_flash_3(const me_config *config, uint64_t capability)
{
    const me_te_heads h = me_te_heads_of(config);
    return installed[config->impl.flash_attn].has_3 &&
           can_be_any_flash(config) && capability == ME_CAPABILITY_HOPPER &&
           takes_flash_3(h) && config->model.attention_dropout <= 0.0 &&
           !(is_deterministic(config) &&
             me_te_widest_head(h) >= ME_TE_MOST_HEAD_SIZE);
}

/** _validate_head_dims() of 4.0.0b11, which knows Hopper and Blackwell. */
static bool takes_flash_4(me_te_heads h, uint64_t major)
{
    const bool is_even = h.query % 8 == 0 && h.value % 8 == 0;
    const bool is_small = h.query <= 128 && h.value <= 128;
    const bool is_listed = (h.query == 192 && h.value == 128) ||
                           (h.query == 64 && h.value == 512) ||
                           (h.query == 256 && h.value == 256);
    switch (major) {
    case 9:
        return is_even && h.query <= ME_TE_MOST_HEAD_SIZE &&
               h.value <= ME_TE_MOST_HEAD_SIZE;
    case 10:
    case 11: return is_even && (is_small || is_listed);
    default: return true;
    }
}

/** What get_attention_backend() keeps from its backward on Blackwell: pieces of
 *  gradients of values that do not fit those of keys. */
static bool is_misaligned(me_te_heads h, uint64_t major)
{
    const uint64_t keys = (h.query + 15) / 16 * 8;
    const uint64_t values = (h.value + 15) / 16 * 8;
    const uint64_t piece = keys % 32 == 0 ? 32 : keys % 16 == 0 ? 16 : 8;
    return (major == 10 || major == 11) && h.query != h.value &&
           h.query >= 128 && values % piece != 0;
}

bool me_te_takes_flash_4(const me_config *config, uint64_t capability)
{
    const me_te_heads h = me_te_heads_of(config);
    return installed[config->impl.flash_attn].has_4 &&
           can_be_any_flash(config) && capability >= ME_CAPABILITY_AMPERE &&
           takes_flash_4(h, capability / 10) &&
           !is_misaligned(h, capability / 10) &&
           config->model.attention_dropout <= 0.0 &&
           config->parallel.context == 1;
}

bool me_te_flash_4_stops(const me_config *config, uint64_t capability)
{
    const uint64_t major = capability / 10;
    const bool has_no_order =
        major == 12 ||
        (major == 10 && me_te_heads_of(config).query == ME_TE_MOST_HEAD_SIZE);
    return major < 9 || (has_no_order && is_deterministic(config));
}
