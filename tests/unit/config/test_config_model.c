/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/megatron/parameters.h"
#include "job.h"

/* What is set on JOB_TEXT and what the line must say; "" is a job that is right. */
static const char *const rule_cases[][2] = {
    {"model.norm_placement=post",
     "model.norm_placement = post needs model.add_bias_linear = false"},
    {"model.norm_placement=both model.add_bias_linear=false", ""},
    {"model.qk_layernorm_across_heads=true",
     "model.qk_layernorm_across_heads = true needs model.qk_layernorm = true"},
    {"model.qk_layernorm_across_heads=true model.qk_layernorm=true", ""},
    {"model.qk_l2_norm=true", ""},
    {"model.qk_l2_norm=true model.multi_latent_attention=true",
     "model.qk_l2_norm = true does not go with "},
    {"model.qk_l2_norm=true model.qk_layernorm=true "
     "model.qk_layernorm_across_heads=true",
     "model.qk_l2_norm = true does not go with "},
    {"model.no_rope_freq=1", ""},
    {"model.no_rope_freq=1000", "model.no_rope_freq = 1000 does not divide "},
    {"model.qk_layernorm_across_heads=true model.qk_layernorm=true "
     "parallel.tensor=2",
     "with parallel.tensor = 2 is not modelled: give 1"},
    {"model.activation=geglu", "model.activation = geglu: set it to false"},
    {"model.activation=geglu model.add_bias_linear=false", ""},
};

static void test_model__rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rule_cases); i++) {
        me_config *config = job_with(rule_cases[i][0]);
        me_diag diag = {0};
        const me_status status = me_config_finish(config, 1, &diag);
        if (strstr(diag.text, rule_cases[i][1]) == NULL) {
            fail_msg("%s: %s", rule_cases[i][0], diag.text);
        }
        assert_int_equal(status,
                         rule_cases[i][1][0] == '\0' ? ME_OK : ME_ERR_CONFIG);
        me_config_destroy(config);
    }
}

/* Parameters of JOB_TEXT with its layers, hidden size, heads and vocabulary made
 * small: h = 8, a = g = 2, d = 4, f = 32, v = 10, one layer, of the numbers: 10 h
 * words, 128 h positions; norms 2 h each, three; QKV 3 h h + 3 h, projection
 * h h + h; MLP 2 h f + f + h. */
#define SMALL                                                                  \
    "model.num_layers=1 model.hidden_size=8 model.num_attention_heads=2 "      \
    "model.vocab_size=10 "

enum {
    WORDS = 80,
    POSITIONS = 1024,
    NORM = 16,
    ATTENTION = 192 + 24 + 64 + 8,
    MLP = 256 + 32 + 256 + 8,
    GPT = WORDS + POSITIONS + 3 * NORM + ATTENTION + MLP
};

static const struct {
    const char *settings;
    uint64_t parameters;
} counts[] = {
    {SMALL, GPT},
    {SMALL "model.untie_embeddings_and_output_weights=true", GPT + WORDS},
    {SMALL "model.position_embedding_type=rope", GPT - POSITIONS},
    {SMALL "model.normalization=RMSNorm", GPT - 3 * 8},
    {SMALL "model.norm_placement=post", GPT},
    {SMALL "model.norm_placement=both", GPT + 2 * NORM},
    {SMALL "model.qk_layernorm=true", GPT + 2 * 2 * 4},
    {SMALL "model.qk_layernorm=true model.qk_layernorm_across_heads=true",
     GPT + 2 * NORM},
    {SMALL "model.activation=geglu", GPT + 256 + 32},
    {SMALL "model.add_bias_linear=false", GPT - 24 - 8 - 32 - 8},
    {SMALL "model.add_bias_linear=false model.add_qkv_bias=true",
     GPT - 8 - 32 - 8},
    {SMALL "model.softmax_type=learnable", GPT + 2},
    {SMALL "model.attention_output_gate=true", GPT + 8 * 8 + 8},
    {SMALL "moe.num_experts=4 moe.ffn_hidden_size=3",
     GPT - MLP + 4 * 8 + 4 + 4 * (2 * 8 * 3 + 3 + 8)},
    {SMALL "moe.num_experts=4 moe.layer_freq=[0]", GPT},
    {SMALL "moe.num_experts=1 moe.shared_expert_intermediate_size=32",
     GPT + 8 + 1 + MLP},
    {SMALL "moe.num_experts=1 moe.shared_expert_intermediate_size=32 "
           "moe.shared_expert_gate=true",
     GPT + 8 + 1 + MLP + 8},
    {SMALL "moe.num_experts=2 moe.ffn_hidden_size=3 moe.latent_size=5",
     GPT - MLP + 2 * 8 + 2 + 2 * (2 * 5 * 3 + 3 + 5) + 8 * 5 + 5 + 5 * 8 + 8},
    {SMALL "moe.num_experts=2 moe.ffn_hidden_size=3 model.mtp_num_layers=1",
     GPT - MLP + 3 * NORM + 2 * 8 * 8 + ATTENTION + 2 * NORM +
         2 * (2 * 8 + 2 + 2 * (2 * 8 * 3 + 3 + 8))},
    {"model.num_layers=100000 model.hidden_size=16777216 "
     "model.ffn_hidden_size=16777216",
     UINT64_MAX},
};

static void test_model__parameters(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        me_config *config = job_with(counts[i].settings);
        me_model_summary summary;
        assert_int_equal(me_model_summarize(config, NULL, &summary), ME_OK);
        if (summary.parameters != counts[i].parameters) {
            fail_msg("%s: %llu, not %llu", counts[i].settings,
                     (unsigned long long)summary.parameters,
                     (unsigned long long)counts[i].parameters);
        }
        me_config_destroy(config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model__rules),
        cmocka_unit_test(test_model__parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
