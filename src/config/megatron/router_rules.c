/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/parse.h"
#include "base/python_number.h"
#include "config/megatron/megatron_rules.h"
#include "parallel/expert_buffers.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

/* What a router's options come to, and what they must keep to, as Megatron-LM
 * core_v0.19.0's TransformerConfig checks it. */

enum {
    WORD_BYTES = 32,
    QUANTILE = -1 /* a word that is known and not modelled */
};

static const char separators[] = " ,[]";

/** The next word of a list behind @p at; NULL: none is left. */
static const char *next_word(const char *at, char word[WORD_BYTES])
{
    at += strspn(at, separators);
    const size_t length = strcspn(at, separators);
    (void)snprintf(word, WORD_BYTES, "%.*s", (int)length, at);
    return length == 0 ? NULL : at + length;
}

static int count_words(const char *list)
{
    char word[WORD_BYTES];
    int count = 0;
    while ((list = next_word(list, word)) != NULL) {
        count++;
    }
    return count;
}

static bool find_balancing(const char *word, int *balancing_out)
{
    for (const me_choice *c = me_load_balancing_choices; c->word != NULL; c++) {
        if (strcmp(c->word, word) == 0) {
            *balancing_out = c->value;
            return true;
        }
    }
    *balancing_out = QUANTILE;
    return strcmp(word, "quantile_balancing") == 0;
}

static bool is_loss(int balancing)
{
    return balancing >= 0 && balancing < ME_ROUTER_Z_LOSS;
}

/** training_log() looks for each name in what is given: among the words of a
 *  list, within the only word, so that every kind of auxiliary loss has the
 *  plain one's log beside its own. */
static void track(me_moe_options *moe, int balancing, bool is_only)
{
    if (is_loss(balancing)) {
        moe->tracks_loss[balancing] = true;
        moe->tracks_loss[ME_LOAD_BALANCING_AUX_LOSS] =
            moe->tracks_loss[ME_LOAD_BALANCING_AUX_LOSS] || is_only;
    }
}

/** What Python's float() takes: there is a loss where it is above 0. */
static bool read_coefficient(const char *word, double *out)
{
    me_str text = {0};
    const bool is_number = me_parse_double(word, out) == ME_OK;
    const bool is_other = !is_number && me_python_not_finite(word, &text);
    if (is_other) {
        *out = strcmp(me_str_text(&text), "inf") == 0 ? DBL_MAX : 0.0;
    }
    me_str_fini(&text);
    return is_number || is_other;
}

void me_config_derive_router(me_moe_options *moe)
{
    char word[WORD_BYTES];
    char number[WORD_BYTES];
    const char *words = moe->load_balancing;
    const char *numbers = moe->aux_loss_coeffs;
    const bool is_only = count_words(words) == 1;
    memset(moe->has_loss, 0, sizeof moe->has_loss);
    memset(moe->tracks_loss, 0, sizeof moe->tracks_loss);
    moe->is_sinkhorn = false;
    while (moe->num_experts > 0 && (words = next_word(words, word)) != NULL) {
        int balancing = 0;
        double coefficient = is_only ? moe->aux_loss_coeff : 0.0;
        numbers = numbers == NULL ? NULL : next_word(numbers, number);
        if (numbers != NULL && !read_coefficient(number, &coefficient)) {
            coefficient = 0.0; // refused by check_coefficients()
        }
        (void)find_balancing(word, &balancing);
        track(moe, balancing, is_only);
        moe->is_sinkhorn =
            moe->is_sinkhorn || balancing == ME_LOAD_BALANCING_SINKHORN;
        if (is_loss(balancing)) {
            moe->has_loss[balancing] = coefficient > 0;
        }
    }
    moe->has_loss[ME_ROUTER_Z_LOSS] =
        moe->num_experts > 0 && moe->z_loss_coeff >= 0;
    moe->has_input_jitter = moe->input_jitter_eps >= 0;
    moe->has_capacity = moe->capacity_factor >= 0;
    moe->tracks_loss[ME_ROUTER_Z_LOSS] = moe->has_loss[ME_ROUTER_Z_LOSS];
}

bool me_config_has_quantile_balancing(const me_config *config)
{
    return config->moe.num_experts > 0 &&
           strstr(config->moe.load_balancing, "quantile_balancing") != NULL;
}

static me_status check_words(const me_config *config, me_diag *diag)
{
    char word[WORD_BYTES];
    int balancing = 0;
    const char *at = config->moe.load_balancing;
    while ((at = next_word(at, word)) != NULL) {
        if (!find_balancing(word, &balancing)) {
            return me_fail(diag, ME_ERR_CONFIG,
                           "moe.router_load_balancing = %s: '%s' must be one "
                           "of aux_loss, seq_aux_loss, global_aux_loss, "
                           "sinkhorn, none",
                           config->moe.load_balancing, word);
        }
    }
    return ME_OK;
}

static me_status check_coefficients(const me_config *config, me_diag *diag)
{
    const me_moe_options *m = &config->moe;
    char word[WORD_BYTES];
    double coefficient = 0.0;
    const int words = count_words(m->load_balancing);
    const int numbers = count_words(m->aux_loss_coeffs);
    const char *at = m->aux_loss_coeffs;
    while ((at = next_word(at, word)) != NULL) {
        if (!read_coefficient(word, &coefficient)) {
            return me_fail(diag, ME_ERR_CONFIG,
                           "moe.aux_loss_coeffs = %s: '%s' must be a number",
                           m->aux_loss_coeffs, word);
        }
    }
    if (words != (numbers == 0 ? 1 : numbers)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "moe.aux_loss_coeffs = %s: must be as many numbers as "
                       "moe.router_load_balancing = %s has words",
                       m->aux_loss_coeffs, m->load_balancing);
    }
    if (m->is_sinkhorn && (m->aux_loss_coeff > 0 || numbers > 0)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "moe.aux_loss_coeff = %g must be 0 with "
                       "moe.router_load_balancing = sinkhorn",
                       m->aux_loss_coeff);
    }
    return ME_OK;
}

static me_status check_groups(const me_config *config, me_diag *diag)
{
    const me_moe_options *m = &config->moe;
    const uint64_t groups = m->router_num_groups;
    const uint64_t topk = m->router_group_topk;
    if (topk == 0) {
        return ME_OK;
    }
    if (groups == 0 || m->num_experts % groups != 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "moe.router_num_groups = %llu must divide "
                       "moe.num_experts = %llu with moe.router_group_topk",
                       (unsigned long long)groups,
                       (unsigned long long)m->num_experts);
    }
    const uint64_t of_group = m->num_experts / groups;
    if (topk > groups || topk > m->router_topk ||
        m->router_topk / topk > of_group || topk * of_group < m->router_topk) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "moe.router_group_topk = %llu of %llu groups of %llu "
                       "experts cannot give moe.router_topk = %llu",
                       (unsigned long long)topk, (unsigned long long)groups,
                       (unsigned long long)of_group,
                       (unsigned long long)m->router_topk);
    }
    return ME_OK;
}

static me_status check_scores(const me_config *config, me_diag *diag)
{
    const me_moe_options *m = &config->moe;
    const bool is_softmax = m->router_score_function == ME_SCORE_SOFTMAX;
    if (m->router_enable_expert_bias && is_softmax) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "moe.router_enable_expert_bias = true needs "
                       "moe.router_score_function = sigmoid or sqrtsoftplus");
    }
    if (m->router_topk == 1 && is_softmax && !m->router_pre_softmax &&
        !m->is_sinkhorn) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "moe.router_topk = 1 needs moe.router_pre_softmax = "
                       "true (--moe-router-pre-softmax)");
    }
    return ME_OK;
}

static me_status check_fusion(const me_config *config, me_diag *diag)
{
    const me_moe_options *m = &config->moe;
    if (m->router_fusion && m->router_dtype == ME_ROUTER_DTYPE_FP64) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "moe.router_dtype = fp64 does not go with "
                       "moe.router_fusion = true: Transformer Engine has no "
                       "such kernel");
    }
    if (m->router_fusion && config->impl.transformer != ME_TRANSFORMER_ENGINE) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "moe.router_fusion = true needs impl.transformer = "
                       "transformer_engine");
    }
    return ME_OK;
}

static me_status check_capacity(const me_config *config, me_diag *diag)
{
    const me_moe_options *m = &config->moe;
    if (m->pad_to_capacity && !m->has_capacity) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "moe.pad_to_capacity = true needs "
                       "moe.capacity_factor (--moe-expert-capacity-factor)");
    }
    if (m->has_capacity && m->is_sinkhorn) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "moe.capacity_factor = %g does not go with "
                       "moe.router_load_balancing = %s",
                       m->capacity_factor, m->load_balancing);
    }
    return ME_OK;
}

/** DeepEP's numbers of ranks, and what Megatron-LM asks of it. */
static me_status check_flex(const me_config *config, me_diag *diag)
{
    const me_moe_options *m = &config->moe;
    const int32_t ranks =
        config->parallel.expert_tensor * config->parallel.expert;
    if (m->token_dispatcher != ME_DISPATCHER_FLEX ||
        m->flex_backend != ME_FLEX_DEEPEP) {
        return ME_OK;
    }
    if (!me_deepep_knows(ranks)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "moe.token_dispatcher = flex: DeepEP cannot exchange "
                       "tokens of parallel.expert_tensor x parallel.expert = "
                       "%d x %d ranks: 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, "
                       "144 or 160",
                       (int)config->parallel.expert_tensor,
                       (int)config->parallel.expert);
    }
    if (m->pad_to_capacity) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "moe.pad_to_capacity = true does not go with "
                       "moe.flex_backend = deepep");
    }
    return ME_OK;
}

me_rule *const me_router_rules[] = {
    check_words,  check_coefficients, check_groups, check_scores,
    check_fusion, check_capacity,     check_flex,   NULL,
};
