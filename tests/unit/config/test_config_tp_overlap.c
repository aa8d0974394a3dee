/* SPDX-License-Identifier: BSD-3-Clause */
#include "job.h"

#define FILES  SOURCE_DIR "/tests/unit/config/overlap/"
#define TENSOR "parallel.world_size=2 parallel.tensor=2 parallel.sequence=true "
#define ENGINE "impl.transformer=transformer_engine "
#define ON     TENSOR ENGINE "parallel.tp_comm_overlap=true "
#define FP8    "train.fp8=hybrid "

/* What is set on JOB_TEXT, and what the one line must say; "" is a job that is
 * right. Messages are those of Megatron-LM and Transformer Engine, or say what is
 * not modelled. */
static const char *const cases[][2] = {
    {ON, ""},
    {ENGINE "parallel.tp_comm_overlap=true",
     "parallel.tp_comm_overlap = true needs parallel.sequence = true and "
     "parallel.tensor over 1"},
    {ON "parallel.sequence=false", "needs parallel.sequence = true"},
    {ON "train.deterministic_mode=true",
     "does not go with train.deterministic_mode = true"},
    {ON "train.params_dtype=float16", "needs train.params_dtype = bfloat16"},
    {ON FP8, ""},
    {ON FP8 "train.fp8_recipe=tensorwise", ""},
    {ON FP8 "train.fp8_recipe=blockwise",
     "does not go with train.fp8_recipe = blockwise"},
    {ON FP8 "train.fp8_recipe=mxfp8",
     "with train.fp8_recipe = mxfp8 is not modelled"},
    {ON "train.te_op_fuser=true", ""},
    {ON "train.te_op_fuser=true parallel.tp_comm_fc1_dgrad=ring_exchange "
        "parallel.tp_comm_overlap_rs_dgrad=true",
     "parallel.tp_comm_fc1_dgrad = ring_exchange does not go with "
     "train.te_op_fuser = true"},
    {ON "train.te_op_fuser=true parallel.tp_comm_fc1_dgrad=pipeline "
        "parallel.tp_comm_overlap_rs_dgrad=true",
     ""},
    {ON "parallel.tp_comm_proj_fprop=bulk",
     "must be pipeline or ring_exchange"},
    {ON "parallel.tp_comm_qkv_dgrad=pipeline",
     "need parallel.tp_comm_overlap_rs_dgrad = true"},
    {ON "parallel.tp_comm_qkv_dgrad=pipeline "
        "parallel.tp_comm_overlap_rs_dgrad=true",
     ""},
    {ON FP8 "train.fp8_recipe=tensorwise train.first_last_layers_bf16=true "
            "parallel.tp_comm_qkv_dgrad=pipeline "
            "parallel.tp_comm_fc1_dgrad=pipeline "
            "parallel.tp_comm_overlap_rs_dgrad=true",
     "stops at the second set of buffers"},
    {ON FP8 "parallel.tp_comm_overlap_rs_dgrad=true",
     "is modelled with parallel.tp_comm_qkv_dgrad"},
};

static void test_tp_overlap__rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        me_config *config = job_with(cases[i][0]);
        me_diag diag = {0};
        const me_status status = me_config_finish(config, 1, &diag);
        if (strstr(diag.text, cases[i][1]) == NULL ||
            (status == ME_OK) != (cases[i][1][0] == '\0')) {
            fail_msg("%s: %s", cases[i][0], diag.text);
        }
        me_config_destroy(config);
    }
}

static me_status launch(const char *const *words, int n_words,
                        me_config **config_out, me_diag *diag)
{
    const char *argv[64] = {"pretrain_gpt.py", JOB_FLAGS,
                            "--tensor-model-parallel-size", "2",
                            "--sequence-parallel"};
    int argc = 0;
    while (argv[argc] != NULL) {
        argc++;
    }
    for (int i = 0; i < n_words; i++) {
        argv[argc++] = words[i];
    }
    *config_out = me_config_create();
    return me_config_read_launch(*config_out, argc, argv, diag);
}

static void test_tp_overlap__flags(void **state)
{
    (void)state;
    const char *const words[] = {
        "--tp-comm-overlap",           "--disable-tp-comm-overlap-ag",
        "--no-tp-comm-overlap-rs",     "--tp-comm-overlap-rs-dgrad",
        "--no-tp-comm-bulk-dgrad",     "--disable-tp-comm-bulk-wgrad",
        "--tp-comm-bootstrap-backend", "gloo",
        "--disable-tp-comm-split-ag"};
    me_config *config = NULL;
    me_diag diag = {0};
    assert_int_equal(launch(words, COUNT_OF(words), &config, &diag), ME_OK);
    const me_tp_overlap_config *o = &config->tp_overlap;
    assert_true(o->is_on && o->scatters_input_gradients);
    assert_false(o->gathers || o->scatters || o->bulk_dgrad || o->bulk_wgrad);
    assert_int_equal(o->bootstrap, ME_BOOTSTRAP_GLOO);
    assert_true(list_has(&config->no_effect, "--disable-tp-comm-split-ag"));
    me_config_destroy(config);
}

/* What is in FP8 in a buffer counts for jobs in FP8 alone. */
static void test_tp_overlap__file(void **state)
{
    (void)state;
    static const char ring[] = FILES "ring.yaml";
    const char *const words[] = {"--tp-comm-overlap", "--tp-comm-overlap-cfg",
                                 ring, "--fp8-format", "hybrid"};
    for (size_t n = COUNT_OF(words) - 2; n <= COUNT_OF(words); n += 2) {
        me_config *config = NULL;
        me_diag diag = {0};
        assert_int_equal(launch(words, (int)n, &config, &diag), ME_OK);
        const me_tp_overlap_config *o = &config->tp_overlap;
        assert_int_equal(o->qkv_dgrad, ME_OVERLAP_PIPELINE);
        assert_int_equal(o->fc1_dgrad, ME_OVERLAP_RING_EXCHANGE);
        assert_int_equal(o->proj_fprop, ME_OVERLAP_RING_EXCHANGE);
        assert_int_equal(o->fc2_fprop, ME_OVERLAP_PIPELINE);
        assert_int_equal(
            list_has(&config->not_modelled, "--tp-comm-overlap-cfg"),
            n == COUNT_OF(words));
        me_config_destroy(config);
    }
}

static void test_tp_overlap__wrong_files(void **state)
{
    (void)state;

    static const struct {
        const char *path;
        const char *text;
        int line;
    } files[] = {
        {FILES "wgrad.yaml",
         "qkv_wgrad.method = bulk: Transformer Engine takes no such entry", 4},
        {FILES "method.yaml",
         "proj_fprop.method = bulk: must be pipeline|ring_exchange", 3},
        {FILES "scatters.yaml", "fc1_dgrad.is_reduce_scatter = 1: must be 0",
         1},
        {FILES "atomic.yaml",
         "qkv_fprop.atomic_gemm = 1: Transformer Engine has such products in FP8 alone",
         3},
        {FILES "key.yaml",
         "qkv_fprop.num_sms = 1: Transformer Engine takes no such key", 1},
        {FILES "none.yaml", "cannot open", 0},
    };

    for (size_t i = 0; i < COUNT_OF(files); i++) {
        const char *const words[] = {"--tp-comm-overlap",
                                     "--tp-comm-overlap-cfg", files[i].path};
        me_config *config = NULL;
        me_diag diag = {0};
        assert_int_not_equal(launch(words, COUNT_OF(words), &config, &diag),
                             ME_OK);
        if (strstr(diag.text, files[i].text) == NULL ||
            diag.line != files[i].line) {
            fail_msg("%d: %s", diag.line, diag.text);
        }
        me_config_destroy(config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tp_overlap__rules),
        cmocka_unit_test(test_tp_overlap__flags),
        cmocka_unit_test(test_tp_overlap__file),
        cmocka_unit_test(test_tp_overlap__wrong_files),
    };
    return cmocka_run_group_tests_name("config_tp_overlap", tests, NULL, NULL);
}
