/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/parse.h"
#include "config/megatron/megatron_rules.h"

#include <string.h>

/* Which routing a job is worked out with: what moe.routing comes to. */

static const char skewed[] = "skewed:";
static const double most_skew = 16.0;

static const char *exponent_of(const me_moe_options *moe)
{
    const size_t length = sizeof skewed - 1;
    return strncmp(moe->routing, skewed, length) == 0 ? moe->routing + length
                                                      : NULL;
}

void me_config_derive_routing(me_moe_options *moe)
{
    const char *exponent = exponent_of(moe);
    moe->is_skewed = exponent != NULL &&
                     me_parse_double(exponent, &moe->skew) == ME_OK &&
                     moe->skew != 0.0; // which is a balanced one
}

static me_status check_word(const me_config *config, me_diag *diag)
{
    const me_moe_options *m = &config->moe;
    const char *exponent = exponent_of(m);
    double skew = -1.0;
    const bool is_even = exponent != NULL &&
                         me_parse_double(exponent, &skew) == ME_OK &&
                         skew == 0.0;
    const bool is_word = is_even || m->routing[0] == '\0' ||
                         strcmp(m->routing, "balanced") == 0 ||
                         strcmp(m->routing, "measured") == 0;
    if (is_word || (m->is_skewed && m->skew >= 0.0 && m->skew <= most_skew)) {
        return ME_OK;
    }
    return me_fail(
        diag, ME_ERR_CONFIG,
        "moe.routing = %s: must be balanced, measured or skewed:x, x "
        "from 0 to %g",
        m->routing, most_skew);
}

/** One source of counts, and only one. */
static me_status check_source(const me_config *config, me_diag *diag)
{
    const me_moe_options *m = &config->moe;
    const bool is_measured = strcmp(m->routing, "measured") == 0;
    const bool has_tokens = m->tokens[0] != '\0';
    if (is_measured && !has_tokens) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "moe.routing = measured needs a file of counts: give "
                       "moe.tokens");
    }
    if (m->routing[0] != '\0' && !is_measured && has_tokens) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "moe.routing = %s beside moe.tokens = %s: give one of "
                       "them",
                       m->routing, m->tokens);
    }
    if (m->routing[0] != '\0' && m->imbalance != 1.0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "moe.routing = %s beside moe.imbalance = %g: give one "
                       "of them",
                       m->routing, m->imbalance);
    }
    return ME_OK;
}

me_rule *const me_routing_rules[] = {check_word, check_source, NULL};

me_status me_config_assume_routing(me_config *config, me_diag *diag)
{
    const me_moe_options *m = &config->moe;
    if (m->num_experts == 0 || m->tokens[0] != '\0') {
        return ME_OK;
    }
    if (m->is_skewed) {
        return me_config_assume(
            config, diag,
            "experts get tokens after Zipf's law with exponent %g, in an order "
            "drawn for each layer from seed %llu, the same in every "
            "micro-batch",
            m->skew, (unsigned long long)m->routing_seed);
    }
    if (config->parallel.expert == 1) {
        return me_config_assume(
            config, diag,
            "a rank's experts get equal numbers of tokens; another routing "
            "moves the sizes of blocks, not their sum (moe.tokens gives one)");
    }
    return me_config_assume(
        config, diag,
        "every rank's experts get %g times the tokens of a balanced routing, "
        "in all layers and micro-batches; measured ranks got 0.4 to 1.7 times: "
        "try moe.routing or moe.imbalance, or give moe.tokens",
        m->imbalance);
}
