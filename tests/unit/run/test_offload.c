/* SPDX-License-Identifier: BSD-3-Clause */
/* What offloading takes on the host, at the bounds of its options. */
#include "support/launch_job.h"

#define BASE                                                                   \
    "pretrain_gpt.py --micro-batch-size 1 --bf16 --num-layers 5 "              \
    "--hidden-size 64 --ffn-hidden-size 128 --num-attention-heads 2 "          \
    "--seq-length 64 --max-position-embeddings 64 --vocab-size 1000 "          \
    "--tokenizer-type NullTokenizer --attention-dropout 0 "                    \
    "--hidden-dropout 0 --no-create-attention-mask-in-dataloader "             \
    "--disable-bias-linear --global-batch-size 4 --lr 1e-4 "
#define MODULES                                                                \
    "--fine-grained-activation-offloading --offload-modules qkv_linear "

/** Bytes of a job of one rank. */
static uint64_t on_host(const char *launch, me_host_use use)
{
    test_job job;
    me_diag diag = {.status = ME_OK};
    me_rank_result *result = NULL;
    test_job_of_launch(&job, launch, 1);
    if (test_job_run(&job, 0, &diag, &result) != ME_OK) {
        fail_msg("%s", diag.text);
    }
    const uint64_t bytes = result->host.bytes[use];
    me_rank_result_destroy(result);
    test_job_fini(&job);
    return bytes;
}

/* What the projection of queries, keys and values saves, twice 64 · 64
 * elements in bfloat16, of 5 layers: all of them in the first iteration. */
static void test_offload__just_large_enough(void **state)
{
    (void)state;
    assert_int_equal(on_host(BASE MODULES "--min-offloaded-tensor-size 4096",
                             ME_HOST_ACTIVATIONS),
                     2 * 5 * 8192);
    assert_int_equal(on_host(BASE MODULES "--min-offloaded-tensor-size 4097",
                             ME_HOST_ACTIVATIONS),
                     0);
}

/* A stage keeps so many bytes times its number: the first none. The second
 * keeps the first group of a chunk, at which Megatron-LM stops. */
static void test_offload__each_stage_keeps_more(void **state)
{
    (void)state;
    static const char launch[] =
        BASE MODULES "--min-offloaded-tensor-size 1 --num-layers 8 "
                     "--pipeline-model-parallel-size 2 "
                     "--delta-offload-bytes-across-pp-ranks 8192";
    test_job job;
    me_diag diag = {.status = ME_OK};
    me_rank_result *result = NULL;
    test_job_of_launch(&job, launch, 2);
    assert_int_equal(test_job_run(&job, 0, &diag, &result), ME_OK);
    me_rank_result_destroy(result);
    assert_int_equal(test_job_run(&job, 1, &diag, &result), ME_ERR_CONFIG);
    assert_non_null(strstr(diag.text, "Chunk mismatch"));
    test_job_fini(&job);
}

/* A fraction of 0 leaves all parameters on the card. */
static void test_offload__nothing_of_the_optimizer(void **state)
{
    (void)state;
    static const char optimizer[] =
        BASE "--use-distributed-optimizer --optimizer-cpu-offload "
             "--use-precision-aware-optimizer --optimizer-offload-fraction ";
    char launch[TEST_LAUNCH_TEXT];
    (void)snprintf(launch, sizeof launch, "%s0.0", optimizer);
    assert_int_equal(on_host(launch, ME_HOST_PARAMETERS), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_offload__just_large_enough),
        cmocka_unit_test(test_offload__each_stage_keeps_more),
        cmocka_unit_test(test_offload__nothing_of_the_optimizer),
    };
    return cmocka_run_group_tests_name("offload", tests, NULL, NULL);
}
