/* SPDX-License-Identifier: BSD-3-Clause */
#include "command_job.h"

#define EXPERTS                                                                \
    "--num-experts 8 --moe-grouped-gemm --moe-token-dispatcher-type alltoall " \
    "--expert-model-parallel-size 2 --disable-bias-linear "
#define TURNS  EXPERTS "--overlap-moe-expert-parallel-comm "
#define GRAPHS "--cuda-graph-impl transformer_engine --cuda-graph-modules "
#define OFFLOADS                                                               \
    "--fine-grained-activation-offloading --use-transformer-engine-op-fuser "  \
    "--offload-modules "
#define PATTERNS "--ddp-param-name-patterns-for-fp32-local-accumulation x "

/** What the configurations ask of flags that save memory, where no option says it
 *  (core/transformer/transformer_config.py, __post_init__(),
 *  core/distributed/distributed_data_parallel_config.py), and the rest of
 *  validate_args(): what is added to the base, what must be said. */
static const struct {
    const char *added;
    const char *text;
} cases[] = {
    {"--cuda-graph-impl local --inference-dynamic-batching-num-cuda-graphs 0",
     "--cuda-graph-impl local and "
     "--inference-dynamic-batching-num-cuda-graphs 0 exclude each other"},
    {TURNS "--delay-wgrad-compute --overlap-grad-reduce " GRAPHS
           "attn --no-gradient-accumulation-fusion",
     "--delay-wgrad-compute with --cuda-graph-modules attn and "
     "--no-gradient-accumulation-fusion exclude each other beside "
     "--overlap-grad-reduce: give one"},
    {TURNS "--delay-wgrad-compute --overlap-grad-reduce " GRAPHS
           "attn --add-qkv-bias",
     "--delay-wgrad-compute with --cuda-graph-modules attn and --add-qkv-bias "
     "exclude each other beside --overlap-grad-reduce: give one"},
    {TURNS "--delay-wgrad-compute --overlap-grad-reduce " GRAPHS
           "moe_router --moe-shared-expert-intermediate-size 64 "
           "--no-gradient-accumulation-fusion",
     "--delay-wgrad-compute with --cuda-graph-modules moe_router with "
     "--moe-shared-expert-intermediate-size and "
     "--no-gradient-accumulation-fusion exclude each other beside "
     "--overlap-grad-reduce: give one"},
    {EXPERTS "--moe-paged-stash --moe-expert-rank-capacity-factor 2 "
             "--moe-flex-dispatcher-backend hybridep "
             "--moe-token-dispatcher-type flex " OFFLOADS "moe_act",
     "--moe-paged-stash and --offload-modules moe_act exclude each other: "
     "give one"},
    {EXPERTS "--fine-grained-activation-offloading --offload-modules "
             "fused_group_mlp",
     "--fine-grained-activation-offloading with --offload-modules "
     "fused_group_mlp needs --use-transformer-engine-op-fuser"},
    {EXPERTS OFFLOADS "fused_group_mlp expert_fc1",
     "--fine-grained-activation-offloading with --offload-modules "
     "fused_group_mlp and --offload-modules expert_fc1|moe_act exclude each "
     "other: give one"},
    {EXPERTS GRAPHS "moe_router moe_preprocess --moe-router-padding-for-fp8 "
                    "--fp8-format e4m3 --fp8-recipe tensorwise",
     "--cuda-graph-modules moe_preprocess with --moe-router-padding-for-fp8 "
     "and --moe-token-dispatcher-type alltoall exclude each other beside "
     "--cuda-graph-impl transformer_engine: give one"},
    {EXPERTS "--cuda-graph-impl local --cuda-graph-modules moe_router "
             "--moe-router-padding-for-fp8 --fp8-format e4m3 --fp8-recipe "
             "tensorwise",
     "--cuda-graph-modules moe_router|moe_preprocess with "
     "--moe-router-padding-for-fp8 and --moe-token-dispatcher-type alltoall "
     "exclude each other beside --cuda-graph-impl local: give one"},
    {TURNS "--recompute-method uniform",
     "--overlap-moe-expert-parallel-comm and --recompute-method exclude each "
     "other: give one"},
    {TURNS "--recompute-num-layers 1",
     "--overlap-moe-expert-parallel-comm and --recompute-num-layers exclude "
     "each other: give one"},
    {TURNS "--recompute-modules moe",
     "--overlap-moe-expert-parallel-comm and --recompute-modules moe exclude "
     "each other: give one"},
    {TURNS "--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend "
           "ncclep " OFFLOADS "expert_fc1",
     "--overlap-moe-expert-parallel-comm with "
     "--fine-grained-activation-offloading and --offload-modules expert_fc1 "
     "exclude each other beside --moe-flex-dispatcher-backend ncclep: give "
     "one"},
    {"--experimental-attention-variant dsa --multi-latent-attention "
     "--disable-bias-linear --no-rope-fusion --context-parallel-size 2",
     "--experimental-attention-variant dsa beside --context-parallel-size over "
     "1 needs --cp-comm-type all_gather"},
    {PATTERNS,
     "--ddp-param-name-patterns-for-fp32-local-accumulation beside --bf16 needs "
     "--grad-reduce-in-bf16 or --main-grads-dtype bf16"},
};

static void test_memory_contradictions__are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        me_diag diag = {0};
        const me_status status = read_job(cases[i].added, "", "", &diag);
        if (status != ME_ERR_CONFIG ||
            strstr(diag.text, cases[i].text) == NULL) {
            fail_msg("%s: %s", cases[i].added,
                     status == ME_OK ? "not refused" : diag.text);
        }
    }
}

/** The same flags where nothing speaks against them. */
static void test_memory_contradictions__what_goes_together(void **state)
{
    (void)state;
    static const char *const right[] = {
        "--cuda-graph-impl local "
        "--inference-dynamic-batching-num-cuda-graphs -1",
        TURNS "--delay-wgrad-compute --overlap-grad-reduce "
              "--no-gradient-accumulation-fusion --add-qkv-bias",
        EXPERTS OFFLOADS "fused_group_mlp", // estimated without; said
        EXPERTS OFFLOADS "moe_act expert_fc1",
        EXPERTS GRAPHS "moe_router --moe-router-padding-for-fp8 --fp8-format "
                       "e4m3 --fp8-recipe tensorwise",
        TURNS "--recompute-granularity selective --recompute-modules moe_act",
        EXPERTS "--recompute-modules moe",
        PATTERNS "--grad-reduce-in-bf16",
        PATTERNS "--use-precision-aware-optimizer --main-grads-dtype bf16 "
                 "--use-distributed-optimizer",
    };
    for (size_t i = 0; i < COUNT_OF(right); i++) {
        me_diag diag = {0};
        if (read_job(right[i], "NVTE_CPU_OFFLOAD_V1=1", "", &diag) != ME_OK) {
            fail_msg("%s: %s", right[i], diag.text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_contradictions__are_refused),
        cmocka_unit_test(test_memory_contradictions__what_goes_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
