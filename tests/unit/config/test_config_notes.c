/* SPDX-License-Identifier: BSD-3-Clause */
/* What a job is told about its options: those that are not modelled, and those
 * that it lacks the part for. */
#include "job.h"

static void test_notes__name_what_is_not_modelled(void **state)
{
    (void)state;
    me_config *config = job_with("model.softmax_type=learnable "
                                 "model.fp32_residual_connection=true");
    assert_int_equal(me_config_finish(config, 1, NULL), ME_OK);
    assert_int_equal(config->not_modelled.count, 2);
    assert_true(list_has(&config->not_modelled, "model.softmax_type"));
    me_diag diag = {0};
    assert_int_equal(me_config_check_strict(config, &diag), ME_ERR_CONFIG);
    assert_string_equal(diag.text,
                        "--strict: not modelled: "
                        "model.fp32_residual_connection, model.softmax_type");
    me_config_destroy(config);
    config = job_with("impl.transformer=transformer_engine "
                      "impl.te_version=2.9.0");
    assert_int_equal(me_config_finish(config, 1, NULL), ME_OK);
    assert_true(list_has(&config->not_modelled, "impl.te_version"));
    me_config_destroy(config);
    config = job_with("model.kv_channels=63 impl.core_attention=sdpa_flash");
    assert_int_equal(me_config_finish(config, 1, NULL), ME_OK);
    assert_true(list_has(&config->not_modelled, "model.kv_channels"));
    me_config_destroy(config);
    config = job_with("train.masked_softmax_fusion=true "
                      "train.gradient_accumulation_fusion=true "
                      "train.apply_rope_fusion=true "
                      "model.position_embedding_type=rope");
    assert_int_equal(me_config_finish(config, 1, NULL), ME_OK);
    assert_int_equal(me_config_check_strict(config, &diag), ME_OK);
    me_config_destroy(config);
}

/* A value other than the default that is about what the job has not. */
static void test_notes__options_without_effect(void **state)
{
    (void)state;

    static const struct {
        const char *job;
        const char *says; /* NULL: nothing */
    } cases[] = {
        {"moe.tokens=routing.txt",
         "moe.tokens = routing.txt has no effect without moe.num_experts"},
        {"moe.ffn_hidden_size=7",
         "moe.ffn_hidden_size = 7 has no effect without moe.num_experts"},
        {"moe.router_topk=2", NULL},
        {"moe.router_topk=3 moe.num_experts=4 model.add_bias_linear=false",
         NULL},
        {"recompute.num_layers=2", "without recompute.granularity = full"},
        {"recompute.core_attn=false",
         "without recompute.granularity = selective"},
        {"optimizer.offload_fraction=0.5", "without optimizer.cpu_offload"},
        {"optimizer.offload_fraction=1.0", NULL},
        {"model.qk_head_dim=32", "without model.multi_latent_attention"},
        {"parallel.microbatch_group_size=4",
         "without parallel.virtual_pipeline over 1"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_config *config = job_with(cases[i].job);
        assert_int_equal(me_config_finish(config, 1, NULL), ME_OK);
        bool is_said = false;
        bool is_any = false;
        for (int32_t j = 0; j < config->assumptions.count; j++) {
            const char *note = config->assumptions.flags[j].note;
            is_any = is_any || strstr(note, "has no effect") != NULL;
            is_said = is_said || (cases[i].says != NULL &&
                                  strstr(note, cases[i].says) != NULL);
        }
        if (is_said != (cases[i].says != NULL) || is_any != is_said) {
            fail_msg("%s", cases[i].job);
        }
        me_config_destroy(config);
    }
}

/* What a dump writes of a job without them are defaults. */
static void test_notes__a_dump_says_no_more(void **state)
{
    (void)state;
    me_config *config = job_with("parallel.pipeline=2");
    assert_int_equal(me_config_finish(config, 1, NULL), ME_OK);
    me_str dump = {0};
    me_config_dump(config, &dump);
    me_config *again = job_from_text(me_str_text(&dump));
    assert_int_equal(me_config_finish(again, 1, NULL), ME_OK);
    for (int32_t i = 0; i < again->assumptions.count; i++) {
        assert_null(strstr(again->assumptions.flags[i].note, "has no effect"));
    }
    me_str_fini(&dump);
    me_config_destroy(config);
    me_config_destroy(again);
}

/* Each framework says what its options are about. */
static void test_notes__of_plain_pytorch(void **state)
{
    (void)state;
    me_config *config = job_from_text(
        "framework = \"torch\"; torch = { input_shape = \"(2, 4)\"; "
        "returns_outputs = false; }; pipeline = { memory_limit = 3; }; "
        "module = { class = \"Linear\"; in_features = 4; out_features = 4; };");
    assert_int_equal(me_config_finish(config, 1, NULL), ME_OK);
    int n = 0;
    for (int32_t i = 0; i < config->assumptions.count; i++) {
        const char *note = config->assumptions.flags[i].note;
        n += strstr(note, "has no effect without parallel.pipeline over 1") !=
             NULL;
    }
    assert_int_equal(n, 2);
    me_config_destroy(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_notes__name_what_is_not_modelled),
        cmocka_unit_test(test_notes__options_without_effect),
        cmocka_unit_test(test_notes__a_dump_says_no_more),
        cmocka_unit_test(test_notes__of_plain_pytorch),
    };
    return cmocka_run_group_tests_name("notes", tests, NULL, NULL);
}
