/* SPDX-License-Identifier: BSD-3-Clause */
/* Which communicators a job of Megatron-LM makes: one for each group that something
 * goes over, be it one number. In the order in which they are made. */
#include "support/launch_job.h"

#define BASE                                                                   \
    "pretrain_gpt.py --transformer-impl local --micro-batch-size 1 "           \
    "--no-masked-softmax-fusion --no-gradient-accumulation-fusion "            \
    "--no-rope-fusion --hidden-size 64 --num-attention-heads 2 "               \
    "--seq-length 64 --max-position-embeddings 64 --vocab-size 1000 "
#define ONE_LAYER BASE "--num-layers 1 --global-batch-size 1 "
#define EXPERTS                                                                \
    "--bf16 --swiglu --disable-bias-linear --num-experts 4 "                   \
    "--moe-router-topk 2 --moe-ffn-hidden-size 64 "                            \
    "--moe-token-dispatcher-type alltoall "

static void expect(const char *launch, int32_t world, int32_t rank,
                   const char *expected)
{
    test_job job;
    me_diag diag = {.status = ME_OK};
    me_rank_result *result = NULL;
    char text[512] = "";
    size_t length = 0;
    test_job_of_launch(&job, launch, world);
    if (test_job_run(&job, rank, &diag, &result) != ME_OK) {
        fail_msg("%s", diag.text);
    }
    for (uint32_t i = 0; i < result->device.n_communicators; i++) {
        const int n =
            snprintf(text + length, sizeof text - length, "%s%s",
                     i == 0 ? "" : " ", result->device.communicators[i].group);
        assert_true(n > 0 && (size_t)n < sizeof text - length);
        length += (size_t)n;
    }
    assert_string_equal(text, expected);
    me_rank_result_destroy(result);
    test_job_fini(&job);
}

/* found_inf goes where the gradients' norm goes, which is not reached while a
 * dynamic scale overflows. */
static void test_communicators__overflow(void **state)
{
    (void)state;
    expect(ONE_LAYER "--fp16 --tensor-model-parallel-size 2", 2, 0,
           "world tensor data_context model");
    expect(ONE_LAYER "--fp16 --tensor-model-parallel-size 2 "
                     "--use-distributed-optimizer",
           2, 0, "world tensor data_context optimizer_instance model");
}

/* With a fixed scale bfloat16 has a found_inf too. */
static void test_communicators__fixed_scale(void **state)
{
    (void)state;
    test_job job;
    test_job_of_launch(&job, ONE_LAYER "--bf16 --loss-scale 8", 1);
    assert_true(job.config->train.has_loss_scale);
    assert_false(job.config->train.has_dynamic_loss_scale);
    test_job_fini(&job);
    expect(ONE_LAYER "--bf16 --loss-scale 8 --use-distributed-optimizer "
                     "--tensor-model-parallel-size 2",
           2, 0, "world tensor data_context optimizer_instance model");
}

/* The experts' loss is logged for the name of the load balancing, which is a
 * default: without a coefficient no router tells one, and its tensor ranks have
 * nothing to add up; nor has a stage without experts. */
static void test_communicators__auxiliary_loss(void **state)
{
    (void)state;
    expect(ONE_LAYER EXPERTS, 1, 0, "world tensor data_context model pipeline");
    expect(ONE_LAYER EXPERTS "--moe-aux-loss-coeff 0.01", 1, 0,
           "world tensor data_context model pipeline tensor_context");
    expect(ONE_LAYER EXPERTS "--moe-router-load-balancing-type none", 1, 0,
           "world tensor data_context model");
    static const char stages[] = BASE EXPERTS
        "--num-layers 2 --global-batch-size 2 --pipeline-model-parallel-size 2 "
        "--moe-aux-loss-coeff 0.01 --moe-layer-freq [0,1] "
        "--untie-embeddings-and-output-weights";
    expect(stages, 2, 0, "world tensor pipeline data_context model");
    expect(stages, 2, 1,
           "world pipeline tensor data_context model tensor_context");
}

/* All ranks of a job whose experts are spread have an optimizer of experts, also
 * where a pipeline's rank has none: what it would reduce, it reduces with those
 * that have some. */
static void test_communicators__stage_without_experts(void **state)
{
    (void)state;
    static const char stages[] = BASE EXPERTS
        "--num-layers 2 --global-batch-size 4 --pipeline-model-parallel-size 2 "
        "--moe-layer-freq [1,0] --expert-model-parallel-size 2 "
        "--untie-embeddings-and-output-weights";
    expect(stages, 4, 0,
           "world tensor expert_tensor_expert expert pipeline data_context "
           "expert_data model expert_model");
    expect(stages, 4, 2,
           "world pipeline tensor data_context model expert_model");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_communicators__overflow),
        cmocka_unit_test(test_communicators__fixed_scale),
        cmocka_unit_test(test_communicators__auxiliary_loss),
        cmocka_unit_test(test_communicators__stage_without_experts),
    };
    return cmocka_run_group_tests_name("communicators", tests, NULL, NULL);
}
