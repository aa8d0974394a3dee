/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/environment_names.h"
#include "support/test.h"

#include <string.h>

static void test_environment_names__every_rule_has_a_reason(void **state)
{
    (void)state;
    size_t n = 0;
    const me_variable_rule *rules = me_variable_rules(&n);
    for (size_t i = 0; i < n; i++) {
        assert_non_null(rules[i].note);
        if (rules[i].kind == ME_VARIABLE_NOT_MODELLED) {
            assert_int_not_equal(rules[i].effect.lower, ME_REACH_UNKNOWN);
            assert_int_not_equal(rules[i].effect.higher, ME_REACH_UNKNOWN);
        }
        /* A name that is written out is found in its own rule: none before it
         * hides it. */
        for (const char *name = rules[i].names; *name != '\0';) {
            char one[64];
            const size_t length = strcspn(name, " ");
            assert_true(length < sizeof one);
            memcpy(one, name, length);
            one[length] = '\0';
            if (strchr(one, '*') == NULL) {
                assert_ptr_equal(me_variable_rule_find(one), &rules[i]);
            }
            name += length + strspn(name + length, " ");
        }
    }
}

/* Whatever one of the libraries reads is known in some way. */
static void test_environment_names__nothing_is_passed_over(void **state)
{
    (void)state;

    static const struct {
        const char *name;
        me_variable_kind kind;
    } cases[] = {
        {"TORCH_COMPILE_DISABLE", ME_VARIABLE_MODELLED},
        {"TORCHDYNAMO_DISABLE", ME_VARIABLE_MODELLED},
        {"TORCHDYNAMO_CACHE_SIZE_LIMIT", ME_VARIABLE_NOT_MODELLED},
        {"TORCHINDUCTOR_MAX_AUTOTUNE", ME_VARIABLE_NOT_MODELLED},
        {"TORCHINDUCTOR_CACHE_DIR", ME_VARIABLE_NO_EFFECT},
        {"TORCH_LOGS", ME_VARIABLE_NO_EFFECT},
        {"TORCH_NEVER_SEEN", ME_VARIABLE_NOT_MODELLED},
        {"TORCH_NCCL_AVOID_RECORD_STREAMS", ME_VARIABLE_NO_EFFECT},
        {"TORCH_NCCL_NEVER_SEEN", ME_VARIABLE_NOT_MODELLED},
        {"PYTORCH_NO_CUDA_MEMORY_CACHING", ME_VARIABLE_NOT_MODELLED},
        {"NCCL_BUFFSIZE", ME_VARIABLE_NCCL},
        {"NVTE_FUSED_ATTN", ME_VARIABLE_NOT_MODELLED},
        {"NVTE_DEBUG", ME_VARIABLE_NO_EFFECT},
        {"NVTE_FRAMEWORK", ME_VARIABLE_NO_EFFECT},
        {"NVTE_BUILD_MAX_JOBS", ME_VARIABLE_NO_EFFECT},
        {"NVTE_NORM_FWD_USE_CUDNN", ME_VARIABLE_NOT_MODELLED},
        {"NVTE_NEVER_SEEN", ME_VARIABLE_NOT_MODELLED},
        {"CUBLASLT_WORKSPACE_SIZE", ME_VARIABLE_NOT_MODELLED},
        {"CUDA_MODULE_LOADING", ME_VARIABLE_NOT_MODELLED},
        {"MEGATRON_NEVER_SEEN", ME_VARIABLE_NOT_MODELLED},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const me_variable_rule *rule = me_variable_rule_find(cases[i].name);
        assert_non_null(rule);
        assert_int_equal(rule->kind, cases[i].kind);
    }
    assert_null(me_variable_rule_find("OMP_NUM_THREADS"));
    assert_null(me_variable_rule_find("HOME"));
}

/* What Megatron-LM would set them to leaves nothing out. */
static void test_environment_names__attention_as_its_flag_says(void **state)
{
    (void)state;

    static const struct {
        me_attention_backend backend;
        const char *values[3]; /* flash, fused, unfused */
    } cases[] = {
        {ME_ATTENTION_BACKEND_AUTO, {"1", "1", "1"}},
        {ME_ATTENTION_BACKEND_FLASH, {"1", "0", "0"}},
        {ME_ATTENTION_BACKEND_FUSED, {"0", "1", "0"}},
        {ME_ATTENTION_BACKEND_UNFUSED, {"0", "0", "1"}},
        {ME_ATTENTION_BACKEND_LOCAL, {"0", "0", "0"}},
    };

    static const char *const names[3] = {"NVTE_FLASH_ATTN", "NVTE_FUSED_ATTN",
                                         "NVTE_UNFUSED_ATTN"};
    static me_config config;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        config.impl.attention_backend = cases[i].backend;
        for (int j = 0; j < 3; j++) {
            const me_variable_rule *rule = me_variable_rule_find(names[j]);
            const bool is_on = cases[i].values[j][0] == '1';
            assert_true(rule->is_said(&config, names[j], cases[i].values[j]));
            assert_false(rule->is_said(&config, names[j], is_on ? "0" : "1"));
            assert_false(rule->is_said(&config, names[j], ""));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_environment_names__every_rule_has_a_reason),
        cmocka_unit_test(test_environment_names__nothing_is_passed_over),
        cmocka_unit_test(test_environment_names__attention_as_its_flag_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
