/* SPDX-License-Identifier: BSD-3-Clause */
#include "command_job.h"

/** TransformerConfig.__post_init__() and core_transformer_config_from_args(): what
 *  is added to a job, and what its refusal says. */
static const struct {
    const char *added;
    const char *text;
} refused[] =
    {
        {"--heterogeneous-layers-config-path x --multi-latent-attention",
         "--heterogeneous-layers-config-path and --multi-latent-attention exclude"},
        {"--rope-type yarn", "--rope-type yarn needs --multi-latent-attention"},
        {"--fp8-format hybrid --fp8-recipe custom",
         "--fp8-recipe custom beside --fp8-format needs --fp8-quantizer-factory"},
        {"--fp8-output-proj", "--fp8-output-proj needs --fp8-format"},
        {"--fp8-format hybrid --fp8-output-proj",
         "--fp8-output-proj needs --fp8-recipe mxfp8"},
        {"--fp4-format e2m1 --fp4-recipe custom",
         "--fp4-recipe custom beside --fp4-format needs --fp4-quantizer-factory"},
        {"--moe-ffn-hidden-size 64",
         "--moe-ffn-hidden-size needs --num-experts"},
        {"--num-experts 8 --moe-router-topk 2 --moe-token-dispatcher-type alltoall --disable-bias-linear --moe-single-grouped-weight",
         "--moe-single-grouped-weight needs --moe-grouped-gemm"},
        {"--num-experts 8 --moe-router-topk 2 --moe-token-dispatcher-type alltoall --disable-bias-linear --moe-single-grouped-weight --moe-grouped-gemm",
         "--moe-single-grouped-weight needs --use-transformer-engine-op-fuser"},
        {"--num-experts 8 --moe-router-topk 2 --moe-token-dispatcher-type alltoall --disable-bias-linear --moe-single-grouped-weight --moe-grouped-gemm --use-transformer-engine-op-fuser --fp8-format hybrid",
         "--moe-single-grouped-weight beside --fp8-format needs --fp8-recipe mxfp8"},
        {"--num-experts 8 --moe-router-topk 2 --moe-token-dispatcher-type alltoall --disable-bias-linear --moe-single-grouped-bias --moe-grouped-gemm",
         "--moe-single-grouped-bias and --disable-bias-linear exclude"},
        {"--num-experts 8 --moe-router-topk 2 --moe-token-dispatcher-type alltoall --disable-bias-linear --moe-flex-dispatcher-backend ncclep",
         "--moe-flex-dispatcher-backend ncclep needs --moe-token-dispatcher-type flex"},
        {"--num-experts 8 --moe-router-topk 2 --moe-token-dispatcher-type alltoall --disable-bias-linear --moe-expert-rank-capacity-factor 1.5",
         "--moe-expert-rank-capacity-factor needs --moe-flex-dispatcher-backend hybridep|ncclep"},
        {"--num-experts 8 --moe-router-topk 2 --moe-token-dispatcher-type alltoall --disable-bias-linear --moe-paged-stash",
         "--moe-paged-stash needs --moe-expert-rank-capacity-factor"},
        {"--recompute-granularity selective --recompute-modules core_attn gdn_norm_out",
         "--recompute-modules gdn_norm_out beside --recompute-granularity selective needs --experimental-attention-variant gated_delta_net"},
        {"--recompute-granularity selective --recompute-modules moe_act",
         "recompute.moe_act = true (--recompute-modules moe_act) needs moe.grouped_gemm"},
        {"--num-experts 8 --moe-router-topk 2 --moe-token-dispatcher-type alltoall --disable-bias-linear --moe-layer-recompute --recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
         "--moe-layer-recompute and --recompute-granularity full exclude"},
        {"--swiglu --glu-linear-offset 1",
         "--glu-linear-offset beside --swiglu needs --no-bias-swiglu-fusion"},
        {"--glu-linear-offset 1",
         "--glu-linear-offset needs --no-bias-gelu-fusion"},
        {"--swiglu --use-te-activation-func",
         "--use-te-activation-func beside --swiglu needs --no-bias-swiglu-fusion"},
        {"--use-te-activation-func",
         "--use-te-activation-func needs --no-bias-gelu-fusion"},
        {"--use-te-activation-func --squared-relu --no-bias-gelu-fusion",
         "--use-te-activation-func and --squared-relu exclude"},
        {"--fused-residual-rmsnorm",
         "--fused-residual-rmsnorm needs --normalization RMSNorm"},
        {"--num-experts 8 --moe-router-topk 2 --moe-token-dispatcher-type alltoall --disable-bias-linear --overlap-dispatch-backward-with-experts-wgrad --delay-wgrad-compute",
         "--overlap-dispatch-backward-with-experts-wgrad and --delay-wgrad-compute exclude"},
        {"--experimental-attention-variant gated_delta_net",
         "--experimental-attention-variant gated_delta_net needs --linear-attention-freq"},
        {"--transformer-impl inference_optimized",
         "--transformer-impl inference_optimized needs --normalization RMSNorm"},
        {"--transformer-impl inference_optimized --normalization RMSNorm",
         "--transformer-impl inference_optimized needs --disable-bias-linear"},
        {"--inference-fuse-tp-communication",
         "--inference-fuse-tp-communication needs --transformer-impl inference_optimized"},
        {"--batch-invariant-mode",
         "--batch-invariant-mode needs --attention-backend flash"},
        {"--batch-invariant-mode --attention-backend flash",
         "--batch-invariant-mode needs --flash-attention-version 3|4"},
        {"--batch-invariant-mode --attention-backend flash --flash-attention-version 3 --context-parallel-size 2",
         "--batch-invariant-mode and --context-parallel-size over 1 exclude"},
        {"--batch-invariant-mode --attention-backend flash --flash-attention-version 3",
         "--batch-invariant-mode needs --attention-dropout 0|0.0"},
        {"--no-rope-freq 3 --position-embedding-type rope",
         "--no-rope-freq 3: must divide --num-layers 4"},
        {"--no-rope-freq [0,1,0] --position-embedding-type rope",
         "--no-rope-freq [0,1,0]: must be a period, or a list"},
        {"--context-parallel-size 2 --cp-comm-type p2p a2a",
         "parallel.cp_comm_layers (--cp-comm-type) has 2 words: must have one"},
        {"--moe-router-topk 1",
         "--moe-router-topk 1 needs --moe-router-pre-softmax"},
        {"--moe-router-group-topk -1",
         "--moe-router-group-topk under 0 needs --moe-router-num-groups"},
        {"--phase-transition-iterations x",
         "--phase-transition-iterations x: must be whole numbers with commas"},
        {"--moe-router-group-topk 2",
         "--moe-router-group-topk over 0 needs --moe-router-num-groups"},
        {"--moe-router-group-topk 2 --moe-router-num-groups 2",
         "--moe-router-group-topk over 0 needs --num-experts"},
        {"--moe-router-enable-expert-bias",
         "--moe-router-enable-expert-bias needs --moe-router-score-function sigmoid|sqrtsoftplus"},
        {"--moe-router-padding-for-quantization",
         "--moe-router-padding-for-quantization needs --fp8-format or --fp4-format"},
        {"--fp8-format hybrid --moe-router-padding-for-fp8",
         "--moe-router-padding-for-fp8 needs --moe-token-dispatcher-type alltoall|flex"},
        {"--moe-enable-deepep",
         "--moe-enable-deepep needs --moe-token-dispatcher-type flex"},
        {"--num-experts 8 --moe-router-topk 2 --moe-token-dispatcher-type alltoall --disable-bias-linear --moe-enable-deepep",
         "--moe-enable-deepep needs --moe-token-dispatcher-type flex"},
        {"--moe-enable-deepep --moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep",
         "--moe-enable-deepep and --moe-flex-dispatcher-backend hybridep exclude"},
        {"--moe-deepep-num-sms 10 --moe-hybridep-num-sms 20",
         "--moe-deepep-num-sms 10: must be equal to --moe-hybridep-num-sms, 20"},
        {"--moe-pad-expert-input-to-capacity",
         "--moe-pad-expert-input-to-capacity needs --moe-expert-capacity-factor"},
        {"--moe-pad-expert-input-to-capacity --moe-expert-capacity-factor -1",
         "--moe-pad-expert-input-to-capacity"},
        {"--moe-pad-expert-input-to-capacity --moe-expert-capacity-factor 1 --moe-token-dispatcher-type flex",
         "--moe-pad-expert-input-to-capacity with --moe-token-dispatcher-type flex needs"},
        {"--moe-shared-expert-intermediate-size 0",
         "--moe-shared-expert-intermediate-size 0: must be above 0"},
        {"--moe-shared-expert-intermediate-size -1",
         "--moe-shared-expert-intermediate-size -1: must be"},
        {"--moe-shared-expert-intermediate-size 64 --moe-shared-expert-overlap",
         "--moe-shared-expert-intermediate-size with --moe-shared-expert-overlap needs"},
        {"--recompute-granularity selective --recompute-modules shared_experts --moe-shared-expert-overlap --moe-shared-expert-intermediate-size 64 --moe-token-dispatcher-type alltoall",
         "--recompute-modules shared_experts and --moe-shared-expert-intermediate-size with --moe-shared-expert-overlap exclude"},
        {"--moe-router-load-balancing-type aux_loss seq_aux_loss --moe-aux-loss-coeff 0.1",
         "--moe-router-load-balancing-type has 2 kinds"},
        {"--moe-expert-capacity-factor 1 --moe-router-load-balancing-type sinkhorn",
         "--moe-expert-capacity-factor and --moe-router-load-balancing-type sinkhorn exclude"},
        {"--moe-ffn-hidden-size 64 --moe-layer-freq [1,1,1,1]",
         "--moe-ffn-hidden-size needs --num-experts"},
        {"--moe-layer-freq x",
         "--moe-layer-freq x: must be a whole number, or a list"},
        {"--tensor-parallel-num-weight-shards 0",
         "--tensor-parallel-num-weight-shards 0: must be a multiple of --tensor-model-parallel-size, 1"},
        {"--tensor-model-parallel-size 2 --tensor-parallel-num-weight-shards 3",
         "must be a multiple of --tensor-model-parallel-size, 2"},
        {"--tensor-model-parallel-size 2 --expert-tensor-parallel-num-weight-shards 1",
         "must be a multiple of --expert-tensor-parallel-size, 2"},
        {"-h", "-h: Megatron-LM refuses this flag"},
        {"--help", "--help: Megatron-LM refuses this flag"},
        {"--init-method-xavier-uniform",
         "--init-method-xavier-uniform: Megatron-LM refuses this flag"},
        {"--reuse-grad-buf-for-mxfp8-param-ag",
         "--reuse-grad-buf-for-mxfp8-param-ag needs --fp8-param-gather"},
        {"--non-persistent-ckpt-type in_memory",
         "--non-persistent-ckpt-type in_memory: must be one of global, local"},
        {"--window-size x",
         "--window-size x: must be whole numbers with commas"},
        {"--window-size 128,",
         "--window-size 128,: must be whole numbers with commas"},
        {"--window-attn-skip-freq 0.5",
         "--window-attn-skip-freq 0.5: must be a whole number, or a list"},
        {"--exit-signal 15", "--exit-signal 15: must be one of SIGABRT"},
        {"--lr nan", "--lr nan: must be at least --min-lr"},
        {"--lr 1e-4 --min-lr inf", "--min-lr inf: must be at most --lr"},
        {"--lr-warmup-samples -1", "--lr-warmup-samples under 0 exclude"},
        {"--no-rope-freq 2 --flash-decode",
         "--no-rope-freq and --flash-decode exclude"},
        {"--multi-latent-attention --position-embedding-type rope --cache-mla-latents",
         "needs --no-rope-fusion"},
        {"--attention-backend local --transformer-impl local",
         "--attention-backend local needs --spec local"},
        {"--multi-latent-attention --qk-l2-norm",
         "--qk-l2-norm and --multi-latent-attention exclude"},
        {"--verify-integrity --ckpt-format torch",
         "--verify-integrity and --ckpt-format torch exclude"},
        {"--use-distributed-optimizer --ddp-average-in-collective "
         "--ddp-reduce-scatter-with-fp32-accumulation",
         "--ddp-reduce-scatter-with-fp32-accumulation and "
         "--ddp-average-in-collective exclude each other beside "
         "--use-distributed-optimizer"},
        {"--use-mup --mup-base-hidden-size 0",
         "--mup-base-hidden-size 0: must be a whole number from 1"},
        {"--experimental-attention-variant dsa",
         "--experimental-attention-variant dsa needs --disable-bias-linear"},
        {"--num-experts 8 --moe-router-topk 2 --moe-token-dispatcher-type alltoall --disable-bias-linear --transformer-impl inference_optimized --normalization RMSNorm",
         "--transformer-impl inference_optimized and --num-experts exclude"},
        {"--cuda-graph-impl local --cuda-graph-modules moe_router",
         "train.cuda_graph_modules: moe, moe_router and moe_preprocess need experts"},
        {"--num-experts 8 --moe-router-topk 2 --moe-token-dispatcher-type alltoall --disable-bias-linear --cuda-graph-impl transformer_engine --cuda-graph-modules moe_preprocess",
         "train.cuda_graph_modules: moe_preprocess needs moe_router"},
        {"--num-experts 8 --moe-router-topk 2 --moe-token-dispatcher-type alltoall --disable-bias-linear --cuda-graph-impl transformer_engine --cuda-graph-modules moe moe_router",
         "must not name both moe and moe_router"},
        {"--num-experts 8 --moe-router-topk 2 --moe-token-dispatcher-type alltoall --disable-bias-linear --cuda-graph-impl transformer_engine --cuda-graph-modules attn mlp",
         "mlp is of dense layers"},
        {"--num-experts 8 --moe-router-topk 2 --moe-token-dispatcher-type alltoall --disable-bias-linear --cuda-graph-impl transformer_engine --cuda-graph-modules attn moe",
         "moe needs moe.pad_to_capacity"},
        {"--num-experts 8 --moe-router-topk 2 --moe-token-dispatcher-type alltoall --disable-bias-linear --cuda-graph-impl transformer_engine --cuda-graph-modules moe_router moe_preprocess --moe-expert-capacity-factor 1",
         "moe_preprocess with moe.capacity_factor needs moe.pad_to_capacity"},
        {"--cuda-graph-impl transformer_engine --cuda-graph-modules full_iteration",
         "full_iteration and full_iteration_inference do not go with"},
        {"--cuda-graph-impl local --cuda-graph-modules full_iteration",
         "full_iteration needs train.check_for_nan_in_loss_and_grad = false"},
        {"--num-experts 8 --moe-router-topk 2 --moe-token-dispatcher-type alltoall --disable-bias-linear --cuda-graph-impl transformer_engine --cuda-graph-modules moe_router --recompute-granularity selective --recompute-modules moe",
         "of moe_router does not go with --recompute-modules moe"},
        {"--num-experts 8 --moe-router-topk 2 --moe-token-dispatcher-type alltoall --disable-bias-linear --cuda-graph-impl transformer_engine --cuda-graph-modules moe_router --recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
         "recompute.granularity = full needs"},
        {"--cuda-graph-impl transformer_engine --recompute-granularity selective --attention-dropout 0.1",
         "needs model.attention_dropout = 0"},
        {"--cuda-graph-impl transformer_engine --recompute-granularity selective --recompute-modules mlp --disable-bias-linear --swiglu --hidden-dropout 0.1",
         "needs model.hidden_dropout = 0"},
};

static void test_transformer__refused(void **state)
{
    (void)state;

    me_diag diag = {0};
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        const me_status status = read_job(refused[i].added, "", "", &diag);
        if (status == ME_OK || strstr(diag.text, refused[i].text) == NULL) {
            fail_msg("%s: %s", refused[i].added,
                     status == ME_OK ? "not refused" : diag.text);
        }
    }
}

/** _parse_schedule() and _validate_schedule(); words are cut at commas as well. */
static void test_transformer__batch_steps(void **state)
{
    (void)state;

    static const struct {
        const char *steps;
        const char *text; /**< NULL: it is right */
    } schedules[] = {
        {"0:32,250B:64", NULL},
        {"1023:.064k", NULL},
        {"250B:64,0:32", NULL},
        {"0:\xd9\xa3\xd9\xa2,1_0K:64", NULL}, // as float() takes them
        {"0:3x", "must be THRESHOLD:SIZE"},
        {"384", "must be THRESHOLD:SIZE"},
        {"0:-4", "must be THRESHOLD:SIZE"},
        {":4", "must be THRESHOLD:SIZE"},
        {"0:0", "must be THRESHOLD:SIZE"},
        {"1024:384", "must begin with a threshold of 0"},
    };

    for (size_t i = 0; i < COUNT_OF(schedules); i++) {
        char added[80];
        me_diag diag = {0};
        (void)snprintf(added, sizeof added, "--step-batch-size-schedule %s",
                       schedules[i].steps);
        const me_status status =
            read_job(added, "", "--global-batch-size", &diag);
        if (schedules[i].text == NULL
                ? status != ME_OK
                : strstr(diag.text, schedules[i].text) == NULL) {
            fail_msg("%s: %s", added, diag.text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transformer__refused),
        cmocka_unit_test(test_transformer__batch_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
