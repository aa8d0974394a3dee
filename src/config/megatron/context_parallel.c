/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/parse.h"
#include "base/size.h"
#include "config/megatron/megatron_arguments.h"
#include "config/megatron/megatron_rules.h"

#include <string.h>

/* What context parallelism asks of a job, as Megatron-LM core_v0.19.0
 * (validate_args(), DotProductAttention) and Transformer Engine 2.17.1
 * (get_attention_backend(), attn_forward_func_with_cp()) check it. */

static bool is_on(const me_config *config)
{
    return config->parallel.context > 1;
}

static bool deals_heads(const me_config *config)
{
    return config->parallel.cp_comm_type == ME_CP_COMM_A2A ||
           config->parallel.cp_comm_type == ME_CP_COMM_A2A_P2P;
}

static const char *comm_type(const me_config *config)
{
    return me_choice_word(me_cp_comm_type_choices,
                          (int)config->parallel.cp_comm_type);
}

static me_status check_backend(const me_config *config, me_diag *diag)
{
    if (!is_on(config) ||
        config->impl.core_attention == ME_CORE_ATTENTION_TE_FUSED ||
        config->impl.core_attention == ME_CORE_ATTENTION_TE_FLASH) {
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
                   "attention refuses context parallelism; its fused one needs "
                   "train.params_dtype = bfloat16 or float16, heads of a "
                   "multiple of 8 columns up to 256, and "
                   "model.attention_dropout = 0 with model.window_attention",
                   (int)config->parallel.context);
}

/** What one rank's softmax sums beside the scores would be needed on all. */
static me_status check_softmax(const me_config *config, me_diag *diag)
{
    if (!is_on(config) || config->model.softmax_type == ME_SOFTMAX_VANILLA ||
        config->parallel.cp_comm_type == ME_CP_COMM_A2A) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "parallel.cp_comm_type = %s: Transformer Engine takes no "
                   "model.softmax_type but vanilla with it, only with a2a",
                   comm_type(config));
}

/** cuDNN has no dropout under a causal mask that is aligned with the last key. */
static me_status check_dropout(const me_config *config, me_diag *diag)
{
    if (!is_on(config) ||
        config->parallel.cp_comm_type != ME_CP_COMM_ALL_GATHER ||
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
    if (!is_on(config) || !config->model.window_attention ||
        config->parallel.cp_comm_type == ME_CP_COMM_A2A ||
        config->parallel.cp_comm_type == ME_CP_COMM_ALL_GATHER) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "parallel.cp_comm_type = %s: Transformer Engine takes no "
                   "model.window_attention = true with it, only with a2a or "
                   "all_gather",
                   comm_type(config));
}

static me_status check_hierarchy(const me_config *config, me_diag *diag)
{
    const me_parallel_config *p = &config->parallel;
    if (!is_on(config) || p->cp_comm_type != ME_CP_COMM_A2A_P2P) {
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

/** Each rank gets whole heads, of queries as of keys. */
static me_status check_heads(const me_config *config, me_diag *diag)
{
    const me_parallel_config *p = &config->parallel;
    const me_model_config *m = &config->model;
    if (!is_on(config) || !deals_heads(config)) {
        return ME_OK;
    }
    const bool is_flat = p->cp_comm_type == ME_CP_COMM_A2A;
    const uint64_t ranks = (uint64_t)(is_flat ? p->context : p->context_heads);
    const char *name = is_flat ? "parallel.context" : "parallel.context_heads";
    const uint64_t tensor = (uint64_t)p->tensor;
    const me_status status =
        me_divides(name, ranks, "model.num_attention_heads / parallel.tensor",
                   m->num_attention_heads / tensor, diag);
    if (status != ME_OK || m->multi_latent_attention) {
        return status;
    }
    return me_divides(name, ranks, "model.num_query_groups / parallel.tensor",
                      me_max_u64(m->num_query_groups / tensor, 1), diag);
}

me_rule *const me_context_rules[] = {
    check_backend,   check_softmax, check_dropout, check_window,
    check_hierarchy, check_heads,   NULL,
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
    if (config->parallel.cp_comm_type != ME_CP_COMM_A2A_P2P) {
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
