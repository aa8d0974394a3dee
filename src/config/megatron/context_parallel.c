/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/parse.h"
#include "base/size.h"
#include "config/megatron/megatron_arguments.h"
#include "config/megatron/megatron_rules.h"
#include "config/megatron/te_attention_kernels.h"
#include "model/cp_comm.h"

#include <string.h>

/* What context parallelism asks of a job, as Megatron-LM core_v0.19.0
 * (validate_args(), DotProductAttention) and Transformer Engine 2.17.1
 * (get_attention_backend(), attn_forward_func_with_cp()) check it. */

static bool is_on(const me_config *config)
{
    return config->parallel.context > 1;
}

/** Is this the way of some layer? */
static bool has(const me_config *config, me_cp_comm_type type)
{
    return is_on(config) && me_cp_comm_has(&config->parallel, type);
}

/** The word of the ring that some layer has, or of the gather; NULL: of neither. */
static const char *word_of_ring(const me_config *config, bool or_gather)
{
    static const me_cp_comm_type ways[] = {ME_CP_COMM_P2P, ME_CP_COMM_A2A_P2P,
                                           ME_CP_COMM_ALL_GATHER};
    const int n = or_gather ? 3 : 2;
    for (int i = 0; i < n; i++) {
        if (has(config, ways[i])) {
            return me_choice_word(me_cp_comm_type_choices, (int)ways[i]);
        }
    }
    return NULL;
}

/** TransformerConfig.__post_init__(): a word for each layer. */
static me_status check_layers(const me_config *config, me_diag *diag)
{
    const char *at = config->parallel.cp_comm_layers;
    me_cp_comm_type type = config->parallel.cp_comm_type;
    int32_t n = 0;
    if (!is_on(config) || *at == '\0') {
        return ME_OK;
    }
    while (me_cp_comm_next(&at, &type)) {
        n++;
    }
    if (*at != '\0') {
        return me_fail(diag, ME_ERR_CONFIG,
                       "parallel.cp_comm_layers: '%.*s' must be one of p2p, "
                       "all_gather, a2a, a2a+p2p",
                       (int)strcspn(at, " ,"), at);
    }
    return n == config->model.num_layers
               ? ME_OK
               : me_fail(diag, ME_ERR_CONFIG,
                         "parallel.cp_comm_layers (--cp-comm-type) has %d "
                         "words: must have one for each of the %d layers",
                         (int)n, (int)config->model.num_layers);
}

/** What Transformer Engine has its unfused attention for. */
static const char *why_unfused(const me_config *config)
{
    if (me_config_is_set(config, "impl.core_attention")) {
        return "impl.core_attention = te_unfused";
    }
    if (config->impl.attention_backend == ME_ATTENTION_BACKEND_UNFUSED) {
        return "impl.attention_backend = unfused (--attention-backend)";
    }
    return me_te_lacks_fused(config, ME_CAPABILITY_HOPPER);
}

static me_status check_backend(const me_config *config, me_diag *diag)
{
    if (!is_on(config) ||
        config->impl.core_attention == ME_CORE_ATTENTION_TE_FUSED ||
        config->impl.core_attention == ME_CORE_ATTENTION_TE_FLASH ||
        config->impl.core_attention == ME_CORE_ATTENTION_TE_FLASH_3) {
        return ME_OK;
    }
    if (config->impl.transformer == ME_TRANSFORMER_LOCAL) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "parallel.context = %d: Megatron-LM's own attention "
                       "refuses context parallelism, which needs "
                       "impl.transformer = transformer_engine",
                       (int)config->parallel.context);
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "parallel.context = %d: Transformer Engine's unfused "
                   "attention refuses context parallelism, and its fused one "
                   "does not go with %s",
                   (int)config->parallel.context, why_unfused(config));
}

/** What one rank's softmax sums beside the scores would be needed on all. */
static me_status check_softmax(const me_config *config, me_diag *diag)
{
    const char *word = word_of_ring(config, true);
    if (word == NULL || config->model.softmax_type == ME_SOFTMAX_VANILLA) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "parallel.cp_comm_type = %s: Transformer Engine takes no "
                   "model.softmax_type but vanilla with it, only with a2a",
                   word);
}

/** cuDNN has no dropout under a causal mask that is aligned with the last key. */
static me_status check_dropout(const me_config *config, me_diag *diag)
{
    if (!has(config, ME_CP_COMM_ALL_GATHER) ||
        config->model.attention_dropout == 0) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "parallel.cp_comm_type = all_gather: cuDNN's attention "
                   "has no dropout with it; model.attention_dropout must be 0");
}

/** Transformer Engine's ring knows no window. */
static me_status check_window(const me_config *config, me_diag *diag)
{
    const char *word = word_of_ring(config, false);
    if (word == NULL || !config->model.window_attention) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "parallel.cp_comm_type = %s: Transformer Engine takes no "
                   "model.window_attention = true with it, only with a2a or "
                   "all_gather",
                   word);
}

static me_status check_hierarchy(const me_config *config, me_diag *diag)
{
    const me_parallel_config *p = &config->parallel;
    if (!has(config, ME_CP_COMM_A2A_P2P)) {
        return ME_OK;
    }
    if (p->context_heads == 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "parallel.cp_comm_type = a2a+p2p needs "
                       "parallel.context_heads "
                       "(--hierarchical-context-parallel-sizes)");
    }
    return me_divides("parallel.context_heads", (uint64_t)p->context_heads,
                      "parallel.context", (uint64_t)p->context, diag);
}

static me_status check_dealt(const me_config *config, const char *name,
                             int32_t n, me_diag *diag)
{
    const me_model_config *m = &config->model;
    const uint64_t ranks = (uint64_t)n;
    const uint64_t tensor = (uint64_t)config->parallel.tensor;
    const me_status status =
        me_divides(name, ranks, "model.num_attention_heads / parallel.tensor",
                   m->num_attention_heads / tensor, diag);
    if (status != ME_OK || m->multi_latent_attention) {
        return status;
    }
    return me_divides(name, ranks, "model.num_query_groups / parallel.tensor",
                      me_max_u64(m->num_query_groups / tensor, 1), diag);
}

/** Each rank gets whole heads, of queries as of keys. */
static me_status check_heads(const me_config *config, me_diag *diag)
{
    const me_parallel_config *p = &config->parallel;
    me_status status = ME_OK;
    if (has(config, ME_CP_COMM_A2A)) {
        status = check_dealt(config, "parallel.context", p->context, diag);
    }
    if (status == ME_OK && has(config, ME_CP_COMM_A2A_P2P)) {
        status = check_dealt(config, "parallel.context_heads", p->context_heads,
                             diag);
    }
    return status;
}

me_rule *const me_context_rules[] = {
    check_backend, check_layers,    check_softmax, check_dropout,
    check_window,  check_hierarchy, check_heads,   NULL,
};

/** The product of the sizes must be the context size, and Transformer Engine
 * takes two levels alone. */
static me_status settle_sizes(me_config *config, const me_flag_use *sizes,
                              me_diag *diag)
{
    uint64_t product = 1;
    for (int i = 0; i < sizes->n_values; i++) {
        uint64_t size = 0;
        if (me_parse_u64(sizes->values[i], &size) != ME_OK) {
            size = 0;
        }
        product = me_size_mul(product, size);
    }
    if (product != (uint64_t)config->parallel.context) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--hierarchical-context-parallel-sizes: the product of "
                       "the sizes is %llu and must be --context-parallel-size "
                       "= %d",
                       (unsigned long long)product,
                       (int)config->parallel.context);
    }
    if (!has(config, ME_CP_COMM_A2A_P2P)) {
        return ME_OK;
    }
    if (sizes->n_values != 2) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--hierarchical-context-parallel-sizes: Transformer "
                       "Engine needs two sizes for a2a+p2p, not %d",
                       sizes->n_values);
    }
    return me_config_set(config, "parallel.context_heads", sizes->values[0],
                         diag);
}

me_status me_megatron_settle_context(me_config *config,
                                     const me_flag_uses *uses, me_diag *diag)
{
    const me_flag_use *sizes =
        me_flag_use_find(uses, "--hierarchical-context-parallel-sizes");
    return sizes == NULL ? ME_OK : settle_sizes(config, sizes, diag);
}
