/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs with experts under Megatron-FSDP. */
#include "support/launch_job.h"

#define BASE                                                                   \
    "pretrain_gpt.py --micro-batch-size 1 --bf16 --num-layers 4 "              \
    "--hidden-size 64 --ffn-hidden-size 256 --num-attention-heads 2 "          \
    "--seq-length 64 --max-position-embeddings 64 --vocab-size 1000 "          \
    "--tokenizer-type NullTokenizer --disable-bias-linear "                    \
    "--global-batch-size 4 --lr 1e-4 --normalization RMSNorm "                 \
    "--untie-embeddings-and-output-weights --num-experts 4 "                   \
    "--moe-ffn-hidden-size 256 --moe-router-topk 2 "                           \
    "--moe-token-dispatcher-type alltoall --use-megatron-fsdp "                \
    "--data-parallel-sharding-strategy optim_grads_params "                    \
    "--use-distributed-optimizer --no-gradient-accumulation-fusion "           \
    "--ckpt-format fsdp_dtensor --init-model-with-meta-device "                \
    "--overlap-grad-reduce --overlap-param-gather "

/** The first rank's; the caller's. */
static me_rank_result *run(const char *more, int32_t world)
{
    char launch[TEST_LAUNCH_TEXT];
    test_job job;
    me_diag diag = {.status = ME_OK};
    me_rank_result *result = NULL;
    (void)snprintf(launch, sizeof launch, "%s%s", BASE, more);
    test_job_of_launch(&job, launch, world);
    if (test_job_run(&job, 0, &diag, &result) != ME_OK) {
        fail_msg("%s", diag.text);
    }
    test_job_fini(&job);
    return result;
}

static uint64_t kept(const char *layers)
{
    char more[128];
    (void)snprintf(more, sizeof more,
                   "--fsdp-double-buffer --moe-layer-freq %s", layers);
    me_rank_result *result = run(more, 2);
    const uint64_t bytes = result->points[result->n_points - 1].requested_bytes;
    me_rank_result_destroy(result);
    return bytes;
}

/* --fsdp-double-buffer keeps two buffers of layers of the kind that most are
 * of, and of two as frequent ones that of the first layer. Four experts are
 * 131,072 elements, a dense MLP 32,768; what lies in buffers is there from
 * the first iteration to the end. Three layers of experts decide over one. */
static void test_megatron_fsdp__two_as_frequent(void **state)
{
    (void)state;
    assert_true(kept("[1,0,1,0]") > kept("[0,1,0,1]"));
    assert_true(kept("[0,1,1,1]") > kept("[0,1,0,1]"));
    assert_true(kept("[1,0,0,0]") < kept("[1,0,1,0]"));
}

/* Two micro-batches in turns are not modelled there, as is said: they run one
 * after the other. */
static void test_megatron_fsdp__no_turns(void **state)
{
    (void)state;
    static const char flags[] =
        "--moe-grouped-gemm --expert-model-parallel-size 2";
    char more[128];
    (void)snprintf(more, sizeof more, "%s --overlap-moe-expert-parallel-comm",
                   flags);
    me_rank_result *without = run(flags, 4);
    me_rank_result *with = run(more, 4);
    assert_int_equal(with->n_points, without->n_points);
    for (uint32_t i = 0; i < with->n_points; i++) {
        assert_string_equal(with->points[i].name, without->points[i].name);
        assert_int_equal(with->points[i].requested_peak_bytes,
                         without->points[i].requested_peak_bytes);
    }
    me_rank_result_destroy(with);
    me_rank_result_destroy(without);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_megatron_fsdp__two_as_frequent),
        cmocka_unit_test(test_megatron_fsdp__no_turns),
    };
    return cmocka_run_group_tests_name("megatron_fsdp_job", tests, NULL, NULL);
}
