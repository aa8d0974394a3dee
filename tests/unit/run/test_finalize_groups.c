/* SPDX-License-Identifier: BSD-3-Clause */
/* What finalize_model_grads() sends beside the gradients of data-parallel
 * ranks, and among which ranks: what a flag adds to a steady iteration, by
 * hand. */
#include "support/launch_job.h"

#define BASE                                                                   \
    "pretrain_gpt.py --transformer-impl local --micro-batch-size 1 --bf16 "    \
    "--no-masked-softmax-fusion --no-gradient-accumulation-fusion "            \
    "--no-rope-fusion --hidden-size 64 --num-attention-heads 2 "               \
    "--seq-length 64 --max-position-embeddings 64 --vocab-size 1000 "          \
    "--num-layers 2 --global-batch-size 4 --tensor-model-parallel-size 2 "
#define FSDP2                                                                  \
    "--use-torch-fsdp2 --ckpt-format torch_dist "                              \
    "--untie-embeddings-and-output-weights "
#define MEGATRON_FSDP                                                          \
    "--transformer-impl transformer_engine --use-megatron-fsdp "               \
    "--data-parallel-sharding-strategy optim --use-distributed-optimizer "     \
    "--ckpt-format fsdp_dtensor "
#define EXPERTS                                                                \
    "--sequence-parallel --swiglu --disable-bias-linear --num-experts 4 "      \
    "--moe-router-topk 2 --moe-ffn-hidden-size 64 "                            \
    "--moe-token-dispatcher-type alltoall "                                    \
    "--moe-router-score-function sigmoid "                                     \
    "--moe-router-load-balancing-type none "

/** A launch, flags more, and what they add. */
typedef struct row {
    const char *launch;
    const char *flags;
    int32_t world;
    int32_t rank;
    bool of_tensor_ranks; /**< what they alone exchange, else all */
    const char *expected;
} row;

static me_rank_result *run(const row *r, const char *more)
{
    char text[TEST_LAUNCH_TEXT];
    test_job job;
    me_diag diag = {.status = ME_OK};
    me_rank_result *result = NULL;
    (void)snprintf(text, sizeof text, "%s%s", r->launch, more);
    test_job_of_launch(&job, text, r->world);
    if (test_job_run(&job, r->rank, &diag, &result) != ME_OK) {
        fail_msg("%s", diag.text);
    }
    test_job_fini(&job);
    return result;
}

/** Of every group and collective: calls and bytes. */
static void expect_added(row r)
{
    char text[512] = "";
    size_t length = 0;
    me_rank_result *without = run(&r, "");
    me_rank_result *with = run(&r, r.flags);
    for (int g = 0; g < ME_GROUP_COUNT; g++) {
        for (int c = 0; c < ME_COLLECTIVE_COUNT; c++) {
            const me_volume_result *a = &without->volume[g][c];
            const me_volume_result *b = &with->volume[g][c];
            if ((r.of_tensor_ranks && g != ME_GROUP_TENSOR) ||
                (a->calls == b->calls && a->bytes == b->bytes)) {
                continue;
            }
            const int n = snprintf(text + length, sizeof text - length,
                                   "%s %s %lld:%lld, ",
                                   me_group_kind_name((me_group_kind)g),
                                   me_collective_name((me_collective)c),
                                   (long long)b->calls - (long long)a->calls,
                                   (long long)b->bytes - (long long)a->bytes);
            assert_true(n > 0 && (size_t)n < sizeof text - length);
            length += (size_t)n;
        }
    }
    assert_string_equal(text, r.expected);
    me_rank_result_destroy(with);
    me_rank_result_destroy(without);
}

/* How many tokens there were: the last stage tells its pipeline, and data-
 * parallel ranks add theirs up. An int32 each. */
static void test_finalize_groups__loss_per_token(void **state)
{
    (void)state;
    expect_added((row){BASE "--pipeline-model-parallel-size 2 ",
                       "--calculate-per-token-loss", 8, 0, false,
                       "pipeline Broadcast 1:4, data_context AllReduce 1:4, "});
}

/* Tokens of 4 experts in 2 layers, in bfloat16, of all ranks that have
 * tokens. */
static void test_finalize_groups__expert_bias(void **state)
{
    (void)state;
    expect_added((row){BASE EXPERTS, "--moe-router-enable-expert-bias", 4, 0,
                       false, "tensor_data_context AllReduce 1:16, "});
}

/* Weights and biases of two norms of 32 in 2 layers, in float32: each tensor
 * rank has the gradients of its own heads. */
static void test_finalize_groups__partial_gradients(void **state)
{
    (void)state;
    expect_added(
        (row){BASE, "--qk-layernorm", 4, 0, false,
              "tensor AllReduce 1:1024, data_context AllReduce 0:1024, "});
    expect_added((row){BASE FSDP2, "--qk-layernorm", 4, 0, true,
                       "tensor AllReduce 1:512, "});
    // The second data-parallel rank has all norms in its part.
    expect_added((row){BASE MEGATRON_FSDP, "--qk-layernorm", 4, 2, true,
                       "tensor AllReduce 1:1024, "});
}

/* Half of 1024 words of 64, in float32. */
static void test_finalize_groups__tied_embeddings(void **state)
{
    (void)state;
    expect_added((row){BASE "--pipeline-model-parallel-size 2 ",
                       "--untie-embeddings-and-output-weights", 4, 0, false,
                       "embedding AllReduce -1:-131072, "});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finalize_groups__loss_per_token),
        cmocka_unit_test(test_finalize_groups__expert_bias),
        cmocka_unit_test(test_finalize_groups__partial_gradients),
        cmocka_unit_test(test_finalize_groups__tied_embeddings),
    };
    return cmocka_run_group_tests_name("finalize_groups", tests, NULL, NULL);
}
