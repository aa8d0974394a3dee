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

bool me_te_takes_fused(const me_config *config, bool is_windowed)
{
    const me_te_heads h = me_te_heads_of(config);
    return config->train.params_dtype != ME_DTYPE_FLOAT32 && h.query % 8 == 0 &&
           h.value % 8 == 0 && h.query <= ME_TE_MOST_HEAD_SIZE &&
           h.value <= ME_TE_MOST_HEAD_SIZE &&
           !me_te_returns_max_logit(config) &&
           !(is_windowed && config->model.attention_dropout > 0.0);
}

bool me_te_takes_fused_on(const me_config *config, uint64_t capability)
{
    const me_te_heads h = me_te_heads_of(config);
    const bool is_small = h.query <= 128 && h.value <= 128;
    const bool is_latent = h.query == 192 && h.value == 128;
    if (capability < ME_CAPABILITY_AMPERE) {
        return false;
    }
    if (capability < ME_CAPABILITY_HOPPER) {
        return is_small && !is_deterministic(config);
    }
    if (capability < ME_CAPABILITY_BLACKWELL) {
        return is_latent || h.query == h.value || h.query < 128 ||
               h.value < 128;
    }
    return (is_small || is_latent) &&
           (!is_deterministic(config) ||
            (capability < ME_CAPABILITY_CONSUMER_BLACKWELL &&
             config->model.attention_dropout <= 0.0));
}

bool me_te_refuses_fused(const me_config *config)
{
    return is_deterministic(config) &&
           config->model.softmax_type != ME_SOFTMAX_VANILLA;
}

uint64_t me_te_widest_head(me_te_heads heads)
{
    return heads.query > heads.value ? heads.query : heads.value;
}

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
    return (config->impl.flash_attn == ME_FLASH_ATTN_2 ||
            config->impl.flash_attn == ME_FLASH_ATTN_2_AND_3) &&
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
    return (config->impl.flash_attn == ME_FLASH_ATTN_3 ||
            config->impl.flash_attn == ME_FLASH_ATTN_2_AND_3) &&
           can_be_any_flash(config) && capability == ME_CAPABILITY_HOPPER &&
           takes_flash_3(h) && config->model.attention_dropout <= 0.0 &&
           !(is_deterministic(config) &&
             me_te_widest_head(h) >= ME_TE_MOST_HEAD_SIZE);
}
