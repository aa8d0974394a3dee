/* SPDX-License-Identifier: BSD-3-Clause */
#include "command_job.h"

#define EXPERTS                                                                \
    "--num-experts 8 --moe-grouped-gemm --moe-token-dispatcher-type alltoall " \
    "--expert-model-parallel-size 2 --disable-bias-linear "
#define TURNS EXPERTS "--overlap-moe-expert-parallel-comm "
#define FSDP                                                                   \
    "--use-megatron-fsdp --no-gradient-accumulation-fusion --ckpt-format "     \
    "fsdp_dtensor --use-distributed-optimizer "                                \
    "--untie-embeddings-and-output-weights "
#define SHARDED "--data-parallel-sharding-strategy optim_grads_params "
#define SAVES   "--save x --save-interval 1 "
#define ONE     "CUDA_DEVICE_MAX_CONNECTIONS=1"
#define HYBRID  "--hybrid-context-parallel --calculate-per-token-loss "
/* A layer's input has 63 x 65 numbers for each sample of a micro-batch. */
#define DISTRIBUTED                                                            \
    "--hidden-size 65 --kv-channels 32 --ffn-hidden-size 128 --seq-length 63 --recompute-granularity full --distribute-saved-activations "
#define REUSED                                                                 \
    "--fp8-format e4m3 --fp8-recipe mxfp8 --fp8-param-gather "                 \
    "--use-distributed-optimizer --reuse-grad-buf-for-mxfp8-param-ag "

#define ONE_BY_ONE "--num-experts 8 --moe-token-dispatcher-type alltoall "

/** Where core_v0.19.0 stops by its flags alone, once arguments and configurations
 *  are made: file and line, what is added to the base, what must be said. */
static const struct {
    const char *where;
    const char *added;
    const char *variable; /**< before the program's name; "": none */
    const char *text;
} refused[] = {
    {"core/transformer/transformer_layer.py:512",
     "--transformer-impl local --recompute-granularity selective "
     "--recompute-modules mlp",
     "", "with which Megatron-LM's backward never ends"},
    {"core/transformer/mlp.py:354", ONE_BY_ONE "--no-bias-gelu-fusion", "",
     "model.add_bias_linear = true with experts needs moe.grouped_gemm = true"},
    {"core/transformer/mlp.py:354",
     ONE_BY_ONE "--quick-geglu --no-bias-gelu-fusion", "",
     "model.add_bias_linear = true with experts needs moe.grouped_gemm = true"},
    {"core/distributed/distributed_data_parallel.py:180",
     "--calculate-per-token-loss --ddp-average-in-collective", "",
     "--calculate-per-token-loss and --ddp-average-in-collective exclude"},
    {"core/distributed/distributed_data_parallel.py:180",
     "--calculate-per-token-loss --ddp-average-in-collective "
     "--use-distributed-optimizer --optimizer muon",
     "", "--calculate-per-token-loss and --ddp-average-in-collective exclude"},
    {"core/distributed/fsdp/mcore_fsdp_adapter.py:169",
     TURNS FSDP SHARDED "--fsdp-double-buffer", "",
     "does not go with parallel.fsdp_double_buffer = true"},
    {"core/distributed/fsdp/mcore_fsdp_adapter.py:169",
     TURNS FSDP SHARDED "--megatron-fsdp-max-pool-double-buffer", "",
     "--overlap-moe-expert-parallel-comm and "
     "--megatron-fsdp-max-pool-double-buffer exclude each other beside "
     "--use-megatron-fsdp"},
    {"core/distributed/fsdp/mcore_fsdp_adapter.py:169",
     TURNS FSDP SHARDED "--use-nccl-ub", "",
     "--overlap-moe-expert-parallel-comm and --use-nccl-ub exclude"},
    {"core/distributed/fsdp/mcore_fsdp_adapter.py:173",
     TURNS FSDP SHARDED
     "--cuda-graph-impl transformer_engine --cuda-graph-modules attn",
     "", "needs train.cuda_graph_impl = none or full_iteration"},
    {"core/optimizer/clip_grads.py:174",
     FSDP "--megatron-fsdp-main-params-dtype auto", "",
     "needs optimizer.clip_grad = 0 (--clip-grad 0)"},
    {"core/optimizer/optimizer_config.py:424",
     REUSED "--overlap-grad-reduce --overlap-param-gather --ckpt-format torch "
            "--overlap-param-gather-with-optimizer-step "
            "--pipeline-model-parallel-size 2 "
            "--num-layers-per-virtual-pipeline-stage 1",
     "",
     "--reuse-grad-buf-for-mxfp8-param-ag and "
     "--overlap-param-gather-with-optimizer-step exclude each other"},
    {"core/tensor_parallel/layers.py:576",
     "--transformer-impl local --fp32-residual-connection --normalization "
     "RMSNorm --no-persist-layer-norm",
     "", "does not go with model.normalization = RMSNorm and"},
    {"core/parallel_state.py:785",
     "--use-sharp --sharp-enabled-group dp_replica", "",
     "--sharp-enabled-group dp_replica beside --use-sharp needs "
     "--num-distributed-optimizer-instances over 1"},
    {"core/parallel_state.py:789", "--sharp-enabled-group dp", "",
     "--sharp-enabled-group needs --use-sharp"},
    {"core/parallel_state.py:808",
     "--tensor-parallel-num-weight-shards 2 --use-distributed-optimizer "
     "--num-distributed-optimizer-instances 2",
     "",
     "--tensor-parallel-num-weight-shards and "
     "--num-distributed-optimizer-instances over 1 exclude each other"},
    {"core/parallel_state.py:1043",
     HYBRID "--tensor-model-parallel-size 8 --sequence-parallel", ONE,
     "needs an even number of ranks of data and context parallelism, not 1 x "
     "1"},
    {"core/parallel_state.py:1205",
     "--pipeline-model-parallel-comm-backend ucc", ONE,
     "--pipeline-model-parallel-comm-backend ucc does not go with "
     "CUDA_DEVICE_MAX_CONNECTIONS=1"},
    {"training/checkpointing.py:631",
     "--save x --save-interval 2 --non-persistent-save-interval 1", "",
     "--non-persistent-save-interval over 0 beside --save needs "
     "--non-persistent-ckpt-type"},
    {"core/tensor_parallel/random.py:637",
     DISTRIBUTED
     "--micro-batch-size 1 --tensor-model-parallel-size 2 --recompute-method uniform --recompute-num-layers 1",
     "",
     "parallel.tensor = 2 does not divide the 4095 numbers of a layer's input"},
    {"core/tensor_parallel/random.py:637",
     DISTRIBUTED
     "--micro-batch-size 2 --tensor-model-parallel-size 4 --recompute-method block --recompute-num-layers 1",
     "",
     "parallel.tensor = 4 does not divide the 8190 numbers of a layer's input"},
    {"training/checkpointing.py:709", "--async-save --ckpt-format torch " SAVES,
     "", "--async-save and --ckpt-format torch exclude each other beside"},
    {"training/training.py:3589", "--manual-gc --manual-gc-interval -1", "",
     "--manual-gc-interval -1: must be at least 0"},
    {"training/training.py:4389", "--validation-set-names a b", "",
     "--validation-set-names needs --multiple-validation-sets"},
};

static void test_stops__are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        me_diag diag = {0};
        const me_status status =
            read_job(refused[i].added, refused[i].variable, "", &diag);
        if (status != ME_ERR_CONFIG ||
            strstr(diag.text, refused[i].text) == NULL) {
            fail_msg("%s: %s: %s", refused[i].where, refused[i].added,
                     status == ME_OK ? "not refused" : diag.text);
        }
    }
}

/** The same flags where nothing speaks against them. */
static const struct {
    const char *added;
    const char *variable;
} right[] = {
    {"--calculate-per-token-loss", ""},
    {"--ddp-average-in-collective --use-distributed-optimizer", ""},
    {FSDP "--calculate-per-token-loss --ddp-average-in-collective", ""},
    {"--calculate-per-token-loss --ddp-average-in-collective --skip-train", ""},
    {FSDP "--megatron-fsdp-main-params-dtype auto --clip-grad 0", ""},
    {TURNS FSDP SHARDED, ""},
    {EXPERTS FSDP SHARDED "--fsdp-double-buffer", ""},
    {"--use-sharp --sharp-enabled-group dp", ""},
    {"--use-sharp --sharp-enabled-group dp_replica --use-distributed-optimizer "
     "--num-distributed-optimizer-instances 2",
     ""},
    {HYBRID "--tensor-model-parallel-size 4 --sequence-parallel", ONE},
    {"--pipeline-model-parallel-comm-backend ucc",
     "CUDA_DEVICE_MAX_CONNECTIONS=8"},
    {"--pipeline-model-parallel-comm-backend nccl", ONE},
    {DISTRIBUTED
     "--micro-batch-size 2 --tensor-model-parallel-size 2 --recompute-method uniform --recompute-num-layers 1",
     ""},
    {DISTRIBUTED
     "--micro-batch-size 1 --tensor-model-parallel-size 2 --recompute-method block --recompute-num-layers 0",
     ""},
    {"--async-save " SAVES, ""},
    {SAVES "--non-persistent-save-interval 1", ""},
    {"--non-persistent-save-interval 1", ""},
    {"--save x --save-interval 2 --non-persistent-save-interval 1 "
     "--non-persistent-ckpt-type global",
     ""},
    {"--async-save --ckpt-format torch", ""},
    {"--manual-gc --manual-gc-interval 0", ""},
    {"--manual-gc-interval -1", ""},
    {"--validation-set-names a b --eval-iters 0", ""},
    {ONE_BY_ONE "--no-bias-gelu-fusion --transformer-impl local", ""},
    {ONE_BY_ONE "--disable-bias-linear", ""},
    {ONE_BY_ONE "--no-bias-gelu-fusion --transformer-impl local "
                "--recompute-granularity selective --recompute-modules mlp",
     ""}, // transformer_layer.py:512: of layers without experts alone
    {ONE_BY_ONE "--moe-grouped-gemm --no-bias-gelu-fusion "
                "--no-bias-dropout-fusion",
     ""},
    {"--defer-embedding-wgrad-compute --pipeline-model-parallel-size 2 "
     "--untie-embeddings-and-output-weights --wgrad-deferral-limit 0",
     ""}, // all of them: model_parallel_config.py:415
};

static void test_stops__what_goes_together(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(right); i++) {
        me_diag diag = {0};
        if (read_job(right[i].added, right[i].variable, "", &diag) != ME_OK) {
            fail_msg("%s: %s", right[i].added, diag.text);
        }
    }
}

/** `if args.cpu_offloading_num_layers > 0` (validate_args()): below it there is
 *  none. */
static void test_stops__no_layers_on_the_host(void **state)
{
    (void)state;
    static const char *const none[] = {
        "--cpu-offloading-num-layers -1",
        "--cpu-offloading-num-layers 0",
        "--recompute-activations --cpu-offloading-num-layers=-1",
    };
    for (size_t i = 0; i < COUNT_OF(none); i++) {
        me_diag diag = {0};
        me_config *config = NULL;
        if (make_job(none[i], "", "", &diag, &config) != ME_OK) {
            fail_msg("%s: %s", none[i], diag.text);
        }
        assert_int_equal(config->offload.num_layers, 0);
        me_config_destroy(config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stops__are_refused),
        cmocka_unit_test(test_stops__what_goes_together),
        cmocka_unit_test(test_stops__no_layers_on_the_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
