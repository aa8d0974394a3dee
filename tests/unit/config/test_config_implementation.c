/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes with Transformer Engine's and PyTorch's ways of running a job. */
#include "config/megatron/te_versions.h"
#include "job.h"

/* Options of a small job with local layers, and what its refusal says; nothing: it
 * is right. */
static const char *const rules[][2] = {
    {"train.defer_embedding_wgrad_compute=true",
     "needs parallel.pipeline over 1, not 1"},
    {"train.defer_embedding_wgrad_compute=true parallel.pipeline=2 "
     "train.gradient_accumulation_fusion=true",
     ""},
    {"train.defer_embedding_wgrad_compute=true parallel.pipeline=2 "
     "train.gradient_accumulation_fusion=false",
     "needs train.gradient_accumulation_fusion = true"},
    {"train.te_op_fuser=true impl.transformer=transformer_engine "
     "model.activation=squared_relu train.bias_gelu_fusion=false",
     "give gelu or swiglu"},
    {"train.use_te_activation_func=true train.bias_swiglu_fusion=false "
     "model.activation=swiglu",
     "does not go with impl.transformer = local and a gated model.activation"},
    {"train.use_te_activation_func=true train.bias_gelu_fusion=false", ""},
    {"train.use_te_activation_func=true impl.transformer=transformer_engine",
     "does not go with a fused activation"},
    {"train.use_te_activation_func=true impl.transformer=transformer_engine "
     "train.bias_gelu_fusion=false",
     ""},
    {"train.use_te_activation_func=true impl.transformer=transformer_engine "
     "train.bias_gelu_fusion=false train.te_op_fuser=true",
     "does not go with train.te_op_fuser = true"},
    {"train.use_te_activation_func=true impl.transformer=transformer_engine "
     "train.bias_gelu_fusion=false model.activation=squared_relu",
     "give gelu, swiglu or geglu"},
    {"train.deterministic_mode=true", ""},
    {"train.deterministic_mode=true train.cross_entropy_loss_fusion=true",
     "train.cross_entropy_loss_fusion = true does not go with "
     "train.deterministic_mode = true"},
    {"train.deterministic_mode=true impl.transformer=transformer_engine "
     "impl.core_attention=te_fused "
     "model.softmax_type=learnable",
     "train.deterministic_mode = true does not go with impl.core_attention = "
     "te_fused where model.softmax_type is not vanilla"},
    {"impl.te_version=banana",
     "impl.te_version = banana is no version of Transformer Engine: sizes are "
     "known of 2.17.1"},
    {"impl.te_version=2", "impl.te_version = 2 is no version"},
    {"impl.te_version=2.18.0.dev0", ""},
    {"impl.importable=none impl.transformer=transformer_engine",
     "impl.importable = none does not go with impl.transformer"},
    {"impl.importable=none impl.optimizer=fused",
     "impl.importable = none does not go with impl.optimizer = fused"},
    {"impl.importable=none model.position_embedding_type=rope "
     "train.apply_rope_fusion=true",
     "impl.importable = none does not go with train.apply_rope_fusion"},
    {"impl.importable=none train.gradient_accumulation_fusion=true",
     "does not go with train.gradient_accumulation_fusion = true"},
    {"impl.importable=none", ""},
    {"impl.importable=apex", ""},
    {"impl.importable=apex impl.optimizer=fused", ""},
    {"impl.importable=apex impl.transformer=transformer_engine",
     "impl.importable = apex does not go with impl.transformer"},
    {"impl.importable=apex train.gradient_accumulation_fusion=true",
     "impl.importable = apex does not go with train.gradient_accumulation_"},
};

static void test_implementation__rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        me_config *config = job_with(rules[i][0]);
        me_diag diag = {0};
        const me_status status = me_config_finish(config, 1, &diag);
        if (strstr(diag.text, rules[i][1]) == NULL) {
            fail_msg("%s: %s", rules[i][0], diag.text);
        }
        assert_int_equal(status,
                         rules[i][1][0] == '\0' ? ME_OK : ME_ERR_CONFIG);
        me_config_destroy(config);
    }
}

/* TEFusedMLPWithGroupedLinear, beside the op fuser alone; under tensor parallelism
 * it is TEFusedMLP. */
static void test_implementation__grouped_dense_mlp(void **state)
{
    (void)state;
#define GROUPED                                                                \
    "impl.transformer=transformer_engine train.grouped_dense_mlp=true "
#define FUSED GROUPED "train.te_op_fuser=true "

    static const struct {
        const char *options;
        me_status status;
        const char *text;
    } cases[] = {
        {GROUPED "model.activation=gelu", ME_OK, ""},
        {FUSED "model.activation=swiglu", ME_ERR_CONFIG,
         "needs model.activation = swiglu and model.add_bias_linear = false"},
        {FUSED "model.add_bias_linear=false", ME_ERR_CONFIG,
         "needs model.activation = swiglu and model.add_bias_linear = false"},
        {FUSED "model.activation=swiglu model.add_bias_linear=false",
         ME_ERR_UNSUPPORTED, "stops on a card below compute capability 10.0"},
        {FUSED "model.activation=swiglu model.add_bias_linear=false "
               "parallel.tensor=2 parallel.world_size=2",
         ME_OK, ""},
        {FUSED "moe.num_experts=4 model.add_bias_linear=false "
               "train.bias_gelu_fusion=false",
         ME_OK, ""},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_config *config = job_with(cases[i].options);
        me_diag diag = {0};
        const me_status status = me_config_finish(config, 1, &diag);
        if (status != cases[i].status ||
            strstr(diag.text, cases[i].text) == NULL) {
            fail_msg("%s: %s", cases[i].options, diag.text);
        }
        me_config_destroy(config);
    }
}

/* What PyTorch takes for on. */
static void test_implementation__compilation_is_turned_off(void **state)
{
    (void)state;

    static const struct {
        const char *variable;
        bool is_compiled;
        bool is_warm;
    } cases[] = {
        {"TORCH_COMPILE_DISABLE=1", false, true},
        {"TORCHDYNAMO_DISABLE=1", false, true},
        {"TORCH_COMPILE_DISABLE=0", true, true},
        {"TORCH_COMPILE_DISABLE=", true, true},
        {"TORCH_COMPILE_DISABLE=true", true, true},
        {"TORCHDYNAMO_DISABLE=True", true, true},
        {"TORCHINDUCTOR_FORCE_DISABLE_CACHES=1", true, false},
        {"TORCHINDUCTOR_FORCE_DISABLE_CACHES=0", true, true},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const words[] = {cases[i].variable, "pretrain_gpt.py",
                                     JOB_FLAGS};
        me_config *config = me_config_create();
        assert_int_equal(me_config_read_launch(config,
                                               sizeof words / sizeof words[0],
                                               words, NULL),
                         ME_OK);
        assert_int_equal(config->train.torch_compile, cases[i].is_compiled);
        assert_int_equal(config->train.compile_cache_is_warm, cases[i].is_warm);
        me_config_destroy(config);
    }
}

/* get_cublas_workspace_size_bytes() of v2.4 to v2.17.1. */
static void test_implementation__workspace_of_a_version(void **state)
{
    (void)state;

    static const struct {
        const char *version;
        uint64_t of_hopper;
    } cases[] = {
        {"2.17.1", 33555456},      {"2.8", 33555456}, {"2.8.0.post1", 33555456},
        {"2.18.0.dev0", 33555456}, {"2.7", 33554432}, {"2.4.0", 33554432},
        {"1.13", 33554432},        {"3.0", 33555456},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        me_config *config = me_config_create();
        assert_non_null(config);
        assert_int_equal(
            me_config_set(config, "impl.te_version", cases[i].version, NULL),
            ME_OK);
        assert_int_equal(me_te_version_workspace(config, 33555456),
                         cases[i].of_hopper);
        assert_int_equal(me_te_version_workspace(config, 4 << 20), 4 << 20);
        me_config_destroy(config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_implementation__rules),
        cmocka_unit_test(test_implementation__grouped_dense_mlp),
        cmocka_unit_test(test_implementation__compilation_is_turned_off),
        cmocka_unit_test(test_implementation__workspace_of_a_version),
    };
    return cmocka_run_group_tests_name("implementation", tests, NULL, NULL);
}
