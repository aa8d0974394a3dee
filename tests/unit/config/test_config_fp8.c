/* SPDX-License-Identifier: BSD-3-Clause */
#include "job.h"

#define ENGINE "impl.transformer=transformer_engine "
#define FP8    ENGINE "train.fp8=hybrid "
#define OTHER  FP8 "train.fp8_recipe=tensorwise "

/* What is set on JOB_TEXT (8 layers, 512 wide, 8 heads), and what the one line must
 * say; "" is a job that is right. Messages are those of validate_args() and
 * TransformerConfig, or say what is not modelled. */
static const char *const cases[][2] = {
    {FP8, ""},
    {OTHER, ""},
    {FP8 "train.fp8_recipe=blockwise", ""},
    {FP8 "train.fp8_recipe=mxfp8", ""},
    {"train.fp8=hybrid", "train.fp8 needs impl.transformer = "
                         "transformer_engine (--transformer-impl"},
    {ENGINE "train.fp8_param=true optimizer.distributed=true",
     "train.fp8_param = true needs train.fp8 = e4m3 or hybrid"},
    {FP8 "train.fp8_param=true",
     "train.fp8_param = true needs optimizer.distributed = true"},
    {FP8 "train.fp8_param=true optimizer.distributed=true", ""},
    {FP8 "train.first_last_layers_bf16=true",
     "delayed scaling does not support first and last layers in bf16"},
    {OTHER "train.first_last_layers_bf16=true", ""},
    {ENGINE "train.first_last_layers_bf16=true", ""},
    {OTHER "train.first_last_layers_bf16=true "
           "train.num_layers_at_end_in_bf16=9",
     "train.num_layers_at_end_in_bf16 = 9 must be at most 8, the layers of a "
     "pipeline stage"},
    {OTHER "train.first_last_layers_bf16=true parallel.pipeline=4 "
           "train.num_layers_at_start_in_bf16=3",
     "train.num_layers_at_start_in_bf16 = 3 and "},
    {FP8 "recompute.granularity=selective recompute.layernorm=true",
     "delayed scaling does not support their recomputation"},
    {FP8 "recompute.granularity=selective recompute.moe_act=true "
         "moe.num_experts=4 moe.grouped_gemm=true",
     "delayed scaling does not support their recomputation"},
    {OTHER "moe.num_experts=4 moe.grouped_gemm=true "
           "moe.token_dispatcher=alltoall "
           "moe.router_padding_for_quantization=true moe.router_fusion=true",
     "the map is padded in place"},
    {OTHER "recompute.granularity=selective recompute.layernorm=true", ""},
    {FP8 "train.fp8_recipe=custom", "its quantizers are the user's own"},
    {FP8 "train.params_dtype=float16", "is modelled with train.params_dtype = "
                                       "bfloat16 (--bf16) alone"},
    {FP8 "train.te_op_fuser=true", "train.te_op_fuser = true is not modelled"},
    {FP8 "model.attention_output_gate=true train.torch_compile=false",
     "train.torch_compile = false is not modelled"},
    {FP8 "model.qk_l2_norm=true train.torch_compile=false",
     "train.torch_compile = false is not modelled"},
    {FP8 "parallel.pipeline=2 pipeline.schedule=zbh1",
     "an order of pipeline.schedule"},
    {FP8 "parallel.torch_fsdp2=true train.gradient_accumulation_fusion=false "
         "model.untie_embeddings_and_output_weights=true",
     ""},
    {FP8 "parallel.torch_fsdp2=true train.gradient_accumulation_fusion=false "
         "train.fp8_param=true "
         "model.untie_embeddings_and_output_weights=true",
     "with which Megatron-LM turns --fp8-param-gather off"},
    {OTHER "optimizer.precision_aware=true optimizer.distributed=true", ""},
    {OTHER "optimizer.precision_aware=true optimizer.distributed=true "
           "optimizer.cpu_offload=true",
     ""},
    {FP8 "optimizer.precision_aware=true optimizer.distributed=true", ""},
    {OTHER "optimizer.precision_aware=true optimizer.distributed=true "
           "train.fp8_param=true",
     ""},
    {OTHER "optimizer.precision_aware=true optimizer.distributed=true "
           "train.fp8_param=true optimizer.main_params_dtype=fp16",
     "needs optimizer.main_params_dtype = fp32: with 16-bit ones Megatron-LM "
     "ends in the first step"},
    {FP8 "optimizer.precision_aware=true optimizer.distributed=true "
         "train.fp8_param=true",
     "does not go with train.fp8_recipe = delayed: Transformer Engine ends in "
     "the first step"},
    {FP8 "optimizer.precision_aware=true optimizer.distributed=true "
         "train.fp8_param=true optimizer.main_params_dtype=fp16",
     "train.fp8_recipe = delayed is not modelled"},
    {FP8 "optimizer.precision_aware=true optimizer.distributed=true "
         "train.fp8_param=true optimizer.cpu_offload=true",
     "train.fp8_recipe = delayed is not modelled"},
    {FP8 "moe.num_experts=8 model.add_bias_linear=false", ""},
    {ENGINE "moe.num_experts=8 moe.router_padding_for_quantization=true "
            "model.add_bias_linear=false",
     "moe.router_padding_for_quantization = true needs train.fp8"},
    {FP8 "train.fp8_recipe=mxfp8 train.fp8_param=true "
         "optimizer.distributed=true",
     "mxfp8 and train.fp8_param = true is not modelled"},
    {FP8 "model.seq_length=100", "= 100 to be a multiple of 8"},
    {FP8 "model.seq_length=104 parallel.sequence=true parallel.tensor=2",
     "= 52 to be a multiple of 8"},
    {FP8 "model.seq_length=104 train.fp8_recipe=mxfp8",
     "= 104 to be a multiple of 32"},
    {FP8 "model.ffn_hidden_size=1000 parallel.tensor=2",
     "model.ffn_hidden_size over the tensor ranks = 500 to be a multiple of "
     "16"},
};

static void test_fp8__rules(void **state)
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

/* `--fp8-recipe` is delayed where nothing says it, and keeps one step. */
static void test_fp8__defaults(void **state)
{
    (void)state;
    me_config *config = job_with(FP8);
    assert_int_equal(me_config_finish(config, 1, NULL), ME_OK);
    assert_int_equal(config->fp8.recipe, ME_FP8_DELAYED);
    assert_int_equal(config->fp8.amax_history_len, 1);
    assert_int_equal(config->fp8.num_layers_at_start_in_bf16, 1);
    me_config_destroy(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fp8__rules),
        cmocka_unit_test(test_fp8__defaults),
    };
    return cmocka_run_group_tests_name("config_fp8", tests, NULL, NULL);
}
