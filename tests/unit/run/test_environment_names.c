/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/launch_command.h"
#include "run/environment_names.h"
#include "run/job_card.h"
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
        {"CUDA_DEVICE_MAX_CONNECTIONS", ME_VARIABLE_ASKED},
        {"NCCL_GRAPH_REGISTER", ME_VARIABLE_ASKED},
        {"TORCH_NEVER_SEEN", ME_VARIABLE_NOT_MODELLED},
        {"TORCH_NCCL_AVOID_RECORD_STREAMS", ME_VARIABLE_NO_EFFECT},
        {"TORCH_NCCL_NEVER_SEEN", ME_VARIABLE_NOT_MODELLED},
        {"PYTORCH_NO_CUDA_MEMORY_CACHING", ME_VARIABLE_NOT_MODELLED},
        {"NCCL_BUFFSIZE", ME_VARIABLE_NCCL},
        {"NVTE_FUSED_ATTN", ME_VARIABLE_NOT_MODELLED},
        {"NVTE_DEBUG", ME_VARIABLE_NO_EFFECT},
        {"NVTE_FRAMEWORK", ME_VARIABLE_NO_EFFECT},
        {"NVTE_BUILD_MAX_JOBS", ME_VARIABLE_NO_EFFECT},
        {"NVTE_NORM_FWD_USE_CUDNN", ME_VARIABLE_MODELLED},
        {"NVTE_FUSED_ATTN_BACKEND", ME_VARIABLE_NO_EFFECT},
        {"NVTE_FLASH_ATTN_V3", ME_VARIABLE_NO_EFFECT},
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

#define COUNT_OF(a) (sizeof(a) / sizeof(a)[0])

/** What Transformer Engine is told by @p variable in front of a command; its
 *  refusal's text into @p diag. @p n_out  what is not modelled */
static me_te_settings settings_of(const char *variable, const char *more,
                                  me_diag *diag, int32_t *n_out)
{
    const char *words[] = {variable,
                           "pretrain_gpt.py",
                           "--num-layers",
                           "1",
                           "--hidden-size",
                           "64",
                           "--num-attention-heads",
                           "1",
                           "--seq-length",
                           "8",
                           "--max-position-embeddings",
                           "8",
                           "--vocab-size",
                           "8",
                           "--micro-batch-size",
                           "1",
                           "--bf16",
                           more};
    me_config *config = me_config_create();
    me_job_card card;
    memset(&card, 0, sizeof card);
    assert_non_null(config);
    assert_int_equal(
        me_config_read_launch(
            config, (int)COUNT_OF(words) - (more == NULL ? 1 : 0), words, NULL),
        ME_OK);
    assert_int_equal(me_config_finish(config, 1, NULL), ME_OK);
    const me_status status = me_job_card_make(config, diag, &card);
    assert_int_equal(status, diag->status);
    *n_out = config->not_modelled.count;
    me_config_destroy(config);
    return card.te;
}

static void expect_settings(const me_te_settings *te,
                            const me_te_settings *wanted)
{
    assert_int_equal(te->forward_norm_margin, wanted->forward_norm_margin);
    assert_int_equal(te->backward_norm_margin, wanted->backward_norm_margin);
    assert_int_equal(te->inference_norm_margin, wanted->inference_norm_margin);
    assert_int_equal(te->is_deterministic, wanted->is_deterministic);
    assert_int_equal(te->has_torch_softmax, wanted->has_torch_softmax);
    assert_int_equal(te->is_op_by_op, wanted->is_op_by_op);
    assert_int_equal(te->batches_exchanges, wanted->batches_exchanges);
    assert_int_equal(te->has_cudnn_norm_forward,
                     wanted->has_cudnn_norm_forward);
    assert_int_equal(te->has_cudnn_norm_backward,
                     wanted->has_cudnn_norm_backward);
}

/** What a variable, and a flag or NULL, tell Transformer Engine. */
typedef struct told {
    const char *variable;
    const char *more;
    me_te_settings te;
    int32_t n_not_modelled;
} told;

static void expect_told(const told *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        me_diag diag = {.status = ME_OK};
        int32_t n = 0;
        const me_te_settings te =
            settings_of(cases[i].variable, cases[i].more, &diag, &n);
        assert_int_equal(diag.status, ME_OK);
        assert_int_equal(n, cases[i].n_not_modelled);
        expect_settings(&te, &cases[i].te);
    }
}

/* What was not measured of cuDNN's is an estimate, and not left out. */
static void test_environment_names__norms_are_cudnns(void **state)
{
    (void)state;
    static const told cases[] = {
        {"NVTE_NORM_FWD_USE_CUDNN=1",
         NULL,
         {.has_cudnn_norm_forward = true},
         0},
        {"NVTE_NORM_BWD_USE_CUDNN=0",
         NULL,
         {.has_cudnn_norm_backward = false},
         0},
        {"NVTE_NORM_BWD_USE_CUDNN=1",
         NULL,
         {.has_cudnn_norm_backward = true},
         0},
    };
    expect_told(cases, COUNT_OF(cases));
}

static void test_environment_names__te_is_told(void **state)
{
    (void)state;
    static const told cases[] = {
        {"A=1", NULL, {.is_deterministic = false}, 0},
        {"A=1", "--deterministic-mode", {.is_deterministic = true}, 0},
        {"NVTE_ALLOW_NONDETERMINISTIC_ALGO=0",
         NULL,
         {.is_deterministic = true},
         0},
        {"NVTE_ALLOW_NONDETERMINISTIC_ALGO=1",
         NULL,
         {.is_deterministic = false},
         0},
        {"NVTE_MASKED_SOFTMAX_FUSION=0", NULL, {.has_torch_softmax = true}, 0},
        {"NVTE_MASKED_SOFTMAX_FUSION=1", NULL, {.has_torch_softmax = false}, 0},
        {"NVTE_FWD_LAYERNORM_SM_MARGIN=2", NULL, {.forward_norm_margin = 2}, 0},
        {"NVTE_BWD_LAYERNORM_SM_MARGIN=3",
         NULL,
         {.backward_norm_margin = 3},
         0},
        {"NVTE_INF_LAYERNORM_SM_MARGIN=4",
         NULL,
         {.inference_norm_margin = 4},
         0},
        {"NVTE_TORCH_COMPILE=0", NULL, {.is_op_by_op = true}, 0},
        {"NVTE_TORCH_COMPILE=1", NULL, {.is_op_by_op = false}, 0},
        {"NVTE_BATCH_MHA_P2P_COMM=1", NULL, {.batches_exchanges = true}, 0},
        {"NVTE_BATCH_MHA_P2P_COMM=0", NULL, {.batches_exchanges = false}, 0},
        {"NVTE_BACKWARD_OVERRIDE=high_precision",
         NULL,
         {.is_deterministic = false},
         0},
        {"NVTE_BACKWARD_OVERRIDE=high_precision",
         "--fp8-format=hybrid",
         {.is_deterministic = false},
         1},
        {"NVTE_NEVER_SEEN=1", NULL, {.is_deterministic = false}, 1},
    };
    expect_told(cases, COUNT_OF(cases));
}

static void test_environment_names__te_is_told_nonsense(void **state)
{
    (void)state;
    static const char *const variables[] = {
        "NVTE_ALLOW_NONDETERMINISTIC_ALGO=no", "NVTE_MASKED_SOFTMAX_FUSION=x",
        "NVTE_BWD_LAYERNORM_SM_MARGIN=132", "NVTE_FWD_LAYERNORM_SM_MARGIN=-1"};
    for (size_t i = 0; i < COUNT_OF(variables); i++) {
        me_diag diag = {.status = ME_OK};
        int32_t n = 0;
        (void)settings_of(variables[i], NULL, &diag, &n);
        assert_int_equal(diag.status, ME_ERR_CONFIG);
        assert_non_null(strstr(diag.text, variables[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_environment_names__every_rule_has_a_reason),
        cmocka_unit_test(test_environment_names__nothing_is_passed_over),
        cmocka_unit_test(test_environment_names__attention_as_its_flag_says),
        cmocka_unit_test(test_environment_names__te_is_told),
        cmocka_unit_test(test_environment_names__norms_are_cudnns),
        cmocka_unit_test(test_environment_names__te_is_told_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
