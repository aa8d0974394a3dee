/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/flags.h"
#include "config/launch_command.h"
#include "job.h"

/* Walk over every flag of every table. */
static void test_flags__tables_are_sound(void **state)
{
    (void)state;
    size_t n_flags = 0;
    size_t n_of_forks = 0;
    size_t n_tables = 0;
    const me_flag_table *tables = me_flag_tables(&n_tables);
    for (size_t i = 0; i < n_tables; i++) {
        const me_flag_kind kind = tables[i].kind;
        const me_flag_rule *rule = tables[i].rules;
        for (; rule->flags != NULL; rule++) {
            const char *cursor = rule->flags;
            while (*cursor != '\0') {
                char name[96] = "";
                const size_t length = strcspn(cursor, ": ");
                assert_true(length < sizeof name);
                memcpy(name, cursor, length);
                me_flag flag;
                assert_true(me_flag_find(name, &flag));
                assert_ptr_equal(flag.rule, rule); /* so it is there once */
                n_flags++;
                n_of_forks += kind == ME_FLAG_REMOVED ||
                              tables[i].rules == me_flags_forks ||
                              tables[i].rules == me_flags_forks_no_effect ||
                              tables[i].rules == me_flags_forks_not_modelled;
                cursor += strcspn(cursor, " ");
                cursor += strspn(cursor, " ");
            }
            if (rule->option != NULL) {
                assert_non_null(me_option_find(rule->option));
            }
            if (kind == ME_FLAG_MODELLED) { /* each row says why */
                assert_true(rule->option != NULL || rule->note != NULL ||
                            rule->needs != NULL);
            } else {
                assert_non_null(rule->note);
            }
            if (kind == ME_FLAG_NOT_MODELLED) { /* somebody has thought of it */
                assert_int_not_equal(rule->effect.lower, ME_REACH_UNKNOWN);
                assert_int_not_equal(rule->effect.higher, ME_REACH_UNKNOWN);
            }
        }
    }
    assert_int_equal(n_flags - n_of_forks, 870); /* Megatron-LM's own */
    assert_true(n_of_forks > 100);
}

static void test_flags__find_the_nearest(void **state)
{
    (void)state;
    size_t length = 0;
    const char *found = me_flag_nearest("--num-layer", &length);
    assert_non_null(found);
    assert_int_equal(length, strlen("--num-layers"));
    assert_memory_equal(found, "--num-layers", length);
    assert_null(me_flag_nearest("--quite-another-thing", &length));
}

static void test_flags__words(void **state)
{
    (void)state;
    assert_true(me_words_have("a|bc|d", 6, "bc"));
    assert_true(me_words_have("a|bc|d", 6, "d"));
    assert_false(me_words_have("a|bc|d", 6, "b"));
    assert_false(me_words_have("a|bc|d", 6, ""));
    assert_false(me_words_have("a|bc|d", 4, "d"));
}

#define COMMAND                                                                \
    "pretrain_gpt.py --num-layers 4 --hidden-size 64 --num-attention-heads 4 " \
    "--seq-length 128 --max-position-embeddings 128 --micro-batch-size 1 "     \
    "--vocab-size 1000 "
#define EXPERTS COMMAND "--num-experts 4 "

/** Defaults, and flags whose own flag is missing: nothing is left out of the
 *  job. */
static const char *const idle[] = {
    COMMAND "--tensor-parallel-num-weight-shards 1",
    COMMAND "--tensor-model-parallel-size 2 "
            "--tensor-parallel-num-weight-shards 2",
    COMMAND "--beta-fast 32",
    COMMAND "--beta-slow 1",
    COMMAND "--rope-scaling-mscale 1.0",
    COMMAND "--mrope-section 16",
    COMMAND "--qk-l2-norm",
    COMMAND "--transformer-impl transformer_engine "
            "--position-embedding-type relative "
            "--relative-attention-num-buckets 64",
    COMMAND "--position-embedding-type rope --no-rope-freq 2",
    EXPERTS "--expert-tensor-parallel-num-weight-shards 1",
    EXPERTS "--tensor-model-parallel-size 2 "
            "--expert-tensor-parallel-num-weight-shards 2",
    EXPERTS "--tensor-model-parallel-size 2 --expert-tensor-parallel-size 1 "
            "--expert-tensor-parallel-num-weight-shards 1",
    EXPERTS "--moe-paged-stash-page-size 64",
    EXPERTS "--moe-paged-stash-buffer-size-factor-cuda 1.1",
    EXPERTS "--moe-paged-stash-buffer-size-factor-cpu 0.0",
    EXPERTS "--moe-upcycling-granularity 1",
    EXPERTS "--moe-upcycling-granularity 4",
    EXPERTS "--moe-router-quantile-balancing-ema 0.0",
    EXPERTS "--moe-hybridep-num-sms-preprocessing 108",
    EXPERTS "--moe-hybridep-num-sms-preprocessing 64",
    EXPERTS "--moe-flex-dispatcher-num-sms 20",
    EXPERTS "--moe-routing-trace-max-training-iters 4",
    EXPERTS "--moe-routing-trace-capture-logits",
};

/** And what is. */
static const char *const left_out[] = {
    COMMAND "--tensor-parallel-num-weight-shards 2",
    COMMAND "--tensor-model-parallel-size 2 "
            "--tensor-parallel-num-weight-shards 4",
    COMMAND "--rope-scaling-type yarn --beta-fast 32",
    EXPERTS "--tensor-model-parallel-size 2 "
            "--expert-tensor-parallel-num-weight-shards 4",
    EXPERTS "--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend "
            "ncclep --moe-expert-rank-capacity-factor 2 --moe-paged-stash "
            "--moe-paged-stash-page-size 128",
    EXPERTS "--moe-use-upcycling --moe-upcycling-granularity 4 "
            "--save x --save-interval 5",
    EXPERTS "--moe-routing-trace-path x",
};

/** Flags of earlier versions: no tensor of a job depends on them. */
static const char *const earlier_idle[] = {
    COMMAND "--log-batch-size-to-tensorboard",
    COMMAND "--enable-one-logger",
    COMMAND "--s3-cache-path x",
    COMMAND "--tokenizer-hf-include-special-tokens",
    COMMAND "--retro-return-doc-ids",
    COMMAND "--retro-no-verify-neighbor-count",
    COMMAND "--retriever-seq-length 256",
    COMMAND "--img-dim 224",
    COMMAND "--inference-max-batch-size 8",
    COMMAND "--disable-chunked-prefill",
    COMMAND "--inference-dynamic-batching-chunk-size 256",
    COMMAND "--inference-dynamic-batching-buffer-guaranteed-fraction 0.2",
    COMMAND "--inference-dynamic-batching-buffer-overflow-factor 1.1",
    COMMAND "--inference-dynamic-batching-max-requests-override 8",
    COMMAND "--inference-dynamic-batching-max-tokens-override 8",
    COMMAND "--inference-dynamic-batching-cuda-graph-max-tokens 16384",
    COMMAND "--encoder-tensor-model-parallel-size 0",
    COMMAND "--encoder-pipeline-model-parallel-size 0",
    COMMAND "--train-weighted-split-paths x y",
    COMMAND "--grpo-default-temperature 1.0 --grpo-default-top-p 0",
    COMMAND "--langrl-inference-server-type inplace_megatron",
    COMMAND "--no-langrl-external-server --rl-reset-cuda-graphs",
    COMMAND "--rl-remove-kv-cache-during-training",
    COMMAND "--rl-offload-kv-cache-during-training",
    COMMAND "--rl-sequence-packing-bin-size 8192",
    COMMAND "--rl-calculate-intra-group-similarity",
    COMMAND "--rl-parallel-generation-tasks 4 --rl-generation-batch-size 4",
    COMMAND "--rl-num-parallel-generations 4",
    COMMAND "--rl-num-parallel-generation-batches 4",
};

/** And those that one does, and what the message says of them. */
static const struct {
    const char *command;
    const char *says;
} earlier_refused[] = {
    {COMMAND "--fp8-hybrid", "use --fp8-format hybrid"},
    {COMMAND "--fp8-e4m3", "use --fp8-format e4m3"},
    {COMMAND "--use-custom-fsdp", "use --use-megatron-fsdp"},
    {COMMAND "--embedding-weights-in-fp32", "23.06 was the last"},
    {COMMAND "--encoder-tensor-model-parallel-size 2", "encoders and decoders"},
    {COMMAND "--encoder-pipeline-model-parallel-size 1",
     "encoders and decoders"},
};

static me_status read_command(const char *command, int32_t *count_out,
                              me_diag *diag)
{
    char text[1024];
    const char *words[64];
    int n = 0;
    me_config *config = me_config_create();
    assert_non_null(config);
    assert_true(strlen(command) < sizeof text);
    memcpy(text, command, strlen(command) + 1);
    for (char *at = text; at != NULL && *at != '\0';) {
        words[n++] = at;
        at = strchr(at, ' ');
        if (at != NULL) {
            *at++ = '\0';
        }
    }
    const me_status status = me_config_read_launch(config, n, words, diag);
    *count_out = (int32_t)config->not_modelled.count;
    me_config_destroy(config);
    return status;
}

static int32_t n_left_out(const char *command)
{
    int32_t count = 0;
    me_diag diag = {.status = ME_OK};
    if (read_command(command, &count, &diag) != ME_OK) {
        fail_msg("%s: %s", command, diag.text);
    }
    return count;
}

static void test_flags__idle_ones_leave_nothing_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof idle / sizeof idle[0]; i++) {
        if (n_left_out(idle[i]) != 0) {
            fail_msg("%s: something is not modelled", idle[i]);
        }
    }
    for (size_t i = 0; i < sizeof left_out / sizeof left_out[0]; i++) {
        if (n_left_out(left_out[i]) == 0) {
            fail_msg("%s: everything is modelled", left_out[i]);
        }
    }
}

static void test_flags__of_earlier_versions(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof earlier_idle / sizeof *earlier_idle; i++) {
        if (n_left_out(earlier_idle[i]) != 0) {
            fail_msg("%s: something is not modelled", earlier_idle[i]);
        }
    }
    assert_int_equal(
        n_left_out(COMMAND "--log-optimizer-states-to-tensorboard"), 1);
    for (size_t i = 0; i < sizeof earlier_refused / sizeof *earlier_refused;
         i++) {
        int32_t count = 0;
        me_diag diag = {.status = ME_OK};
        const char *command = earlier_refused[i].command;
        assert_int_equal(read_command(command, &count, &diag), ME_ERR_CONFIG);
        if (strstr(diag.text, earlier_refused[i].says) == NULL) {
            fail_msg("%s: %s", command, diag.text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flags__tables_are_sound),
        cmocka_unit_test(test_flags__find_the_nearest),
        cmocka_unit_test(test_flags__words),
        cmocka_unit_test(test_flags__idle_ones_leave_nothing_out),
        cmocka_unit_test(test_flags__of_earlier_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
