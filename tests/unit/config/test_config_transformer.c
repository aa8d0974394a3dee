/* SPDX-License-Identifier: BSD-3-Clause */
#include "command_job.h"

/** TransformerConfig.__post_init__() and core_transformer_config_from_args(): what
 *  is added to a job, and what its refusal says. */
static const struct {
    const char *added;
    const char *text;
} refused[] = {
    {"--heterogeneous-layers-config-path x --multi-latent-attention",
     "--heterogeneous-layers-config-path and --multi-latent-attention exclude"},
    {"--rope-type yarn", "--rope-type yarn needs --multi-latent-attention"},
    {"--fp8-format hybrid --fp8-recipe custom",
     "--fp8-recipe custom needs --fp8-quantizer-factory"},
    {"--fp8-output-proj", "--fp8-output-proj needs --fp8-format"},
    {"--fp8-format hybrid --fp8-output-proj",
     "--fp8-output-proj needs --fp8-recipe mxfp8"},
    {"--fp4-format e2m1 --fp4-recipe custom",
     "--fp4-recipe custom needs --fp4-quantizer-factory"},
    {"--moe-ffn-hidden-size 64", "--moe-ffn-hidden-size needs --num-experts"},
    {"--num-experts 8 --moe-router-topk 2 --moe-token-dispatcher-type alltoall --disable-bias-linear --moe-single-grouped-weight",
     "--moe-single-grouped-weight needs --moe-grouped-gemm"},
    {"--num-experts 8 --moe-router-topk 2 --moe-token-dispatcher-type alltoall --disable-bias-linear --moe-single-grouped-weight --moe-grouped-gemm",
     "--moe-single-grouped-weight needs --use-transformer-engine-op-fuser"},
    {"--num-experts 8 --moe-router-topk 2 --moe-token-dispatcher-type alltoall --disable-bias-linear --moe-single-grouped-weight --moe-grouped-gemm --use-transformer-engine-op-fuser --fp8-format hybrid",
     "--moe-single-grouped-weight needs --fp8-recipe mxfp8"},
    {"--num-experts 8 --moe-router-topk 2 --moe-token-dispatcher-type alltoall --disable-bias-linear --moe-single-grouped-bias --moe-grouped-gemm",
     "--moe-single-grouped-bias and --disable-bias-linear exclude"},
    {"--num-experts 8 --moe-router-topk 2 --moe-token-dispatcher-type alltoall --disable-bias-linear --moe-flex-dispatcher-backend ncclep",
     "--moe-flex-dispatcher-backend ncclep needs --moe-token-dispatcher-type flex"},
    {"--num-experts 8 --moe-router-topk 2 --moe-token-dispatcher-type alltoall --disable-bias-linear --moe-expert-rank-capacity-factor 1.5",
     "--moe-expert-rank-capacity-factor needs --moe-flex-dispatcher-backend hybridep|ncclep"},
    {"--num-experts 8 --moe-router-topk 2 --moe-token-dispatcher-type alltoall --disable-bias-linear --moe-paged-stash",
     "--moe-paged-stash needs --moe-expert-rank-capacity-factor"},
    {"--recompute-granularity selective --recompute-modules core_attn gdn_norm_out",
     "--recompute-modules gdn_norm_out needs --experimental-attention-variant gated_delta_net"},
    {"--recompute-granularity selective --recompute-modules moe_act",
     "recompute.moe_act = true (--recompute-modules moe_act) needs moe.grouped_gemm"},
    {"--num-experts 8 --moe-router-topk 2 --moe-token-dispatcher-type alltoall --disable-bias-linear --moe-layer-recompute --recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
     "--moe-layer-recompute and --recompute-granularity full exclude"},
    {"--swiglu --glu-linear-offset 1",
     "--glu-linear-offset needs --no-bias-swiglu-fusion"},
    {"--glu-linear-offset 1",
     "--glu-linear-offset needs --no-bias-gelu-fusion"},
    {"--swiglu --use-te-activation-func",
     "--use-te-activation-func needs --no-bias-swiglu-fusion"},
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
     "--cp-comm-type has 2 words: must be one, or one for each of the 4 layers"},
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
