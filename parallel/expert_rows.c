/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/expert_rows.h"

#include "base/size.h"

uint64_t me_expert_capacity(const me_config *config, uint64_t n_tokens)
{
    const me_moe_options *m = &config->moe;
    if (!m->has_capacity) {
        return n_tokens;
    }
    const double exact = (double)me_size_mul(n_tokens, m->router_topk) /
                         (double)m->num_experts * m->capacity_factor;
    const uint64_t whole = (uint64_t)exact;
    return whole + ((double)whole < exact ? 1 : 0);
}

uint64_t me_quantization_multiple(const me_config *config)
{
    return config->fp8.recipe == ME_FP8_MXFP8 ? 32 : 16;
}

uint64_t me_expert_rows_sent(const me_config *config, uint64_t n_tokens,
                             uint64_t chosen)
{
    const uint64_t multiple = me_quantization_multiple(config);
    const uint64_t kept =
        me_min_u64(chosen, me_expert_capacity(config, n_tokens));
    return config->moe.router_padding_for_quantization
               ? me_min_u64(me_size_mul(me_div_up(kept, multiple), multiple),
                            n_tokens)
               : kept;
}
