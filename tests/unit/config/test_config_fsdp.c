/* SPDX-License-Identifier: BSD-3-Clause */
#include "job.h"

#define FSDP2                                                                  \
    "parallel.torch_fsdp2=true "                                               \
    "model.untie_embeddings_and_output_weights=true"

#define MEGATRON_FSDP                                                          \
    "parallel.megatron_fsdp=true optimizer.distributed=true "                  \
    "impl.transformer=transformer_engine "

#define FP8_PARAM "train.fp8=hybrid train.fp8_param=true "

/* What is set on JOB_TEXT and what the line must say; "" is a job that is right. */
static const char *const cases[][2] = {
    {FSDP2, ""},
    {FSDP2 " parallel.tensor=2 parallel.world_size=4", ""},
    {FSDP2 " parallel.pipeline=2", "needs parallel.pipeline = 1"},
    {FSDP2 " moe.num_experts=4 model.add_bias_linear=false "
           "parallel.expert=2 parallel.world_size=2 "
           "moe.token_dispatcher=alltoall",
     "needs parallel.expert = 1"},
    {FSDP2 " optimizer.distributed=true",
     "needs optimizer.distributed = false"},
    {FSDP2 " train.gradient_accumulation_fusion=true",
     "needs train.gradient_accumulation_fusion = false "
     "(--no-gradient-accumulation-fusion)"},
    {"parallel.torch_fsdp2=true",
     "parallel.torch_fsdp2 = true (--use-torch-fsdp2) needs "
     "model.untie_embeddings_and_output_weights = true"},
    {FSDP2 " train.params_dtype=float16",
     "does not go with train.params_dtype = float16"},
    {FSDP2 " train.params_dtype=float32", ""},
    {MEGATRON_FSDP, ""},
    {MEGATRON_FSDP "parallel.tensor=2 parallel.world_size=4", ""},
    {MEGATRON_FSDP "optimizer.distributed=false",
     "parallel.megatron_fsdp = true (--use-megatron-fsdp) needs "
     "optimizer.distributed = true"},
    {MEGATRON_FSDP "parallel.pipeline=2", "needs parallel.pipeline = 1"},
    {MEGATRON_FSDP "parallel.torch_fsdp2=true", "exclude each other"},
    {MEGATRON_FSDP "parallel.init_model_with_meta_device=true", ""},
    {MEGATRON_FSDP "parallel.init_model_with_meta_device=true "
                   "parallel.sharding_strategy=no_shard",
     "does not go with parallel.sharding_strategy = no_shard"},
    {MEGATRON_FSDP "parallel.fsdp_main_params_dtype=auto "
                   "parallel.fsdp_main_grads_dtype=fp32",
     "needs gradients of the parameters' type"},
    {MEGATRON_FSDP "parallel.fsdp_main_params_dtype=auto",
     "needs optimizer.clip_grad = 0 (--clip-grad 0): Megatron-LM stops"},
    {MEGATRON_FSDP "parallel.fsdp_main_params_dtype=bf16",
     "needs optimizer.clip_grad = 0 (--clip-grad 0): Megatron-LM stops"},
    {MEGATRON_FSDP "parallel.fsdp_main_params_dtype=bf16 "
                   "optimizer.clip_grad=0",
     ""},
    {MEGATRON_FSDP "parallel.fsdp_main_params_dtype=fp32", ""},
    {MEGATRON_FSDP "parallel.world_size=4 "
                   "optimizer.num_distributed_optimizer_instances=2 "
                   "parallel.outer_sharding_strategy=optim",
     ""},
    {MEGATRON_FSDP "parallel.world_size=4 "
                   "optimizer.num_distributed_optimizer_instances=2 "
                   "parallel.outer_sharding_strategy=optim "
                   "parallel.sharding_strategy=optim_grads",
     "needs parallel.sharding_strategy = optim_grads_params"},
    {MEGATRON_FSDP "parallel.world_size=4 parallel.context=2 "
                   "optimizer.num_distributed_optimizer_instances=2",
     ""},
    {MEGATRON_FSDP "parallel.world_size=4 moe.num_experts=4 "
                   "model.add_bias_linear=false parallel.expert=2 "
                   "optimizer.num_distributed_optimizer_instances=2",
     ""},
    {MEGATRON_FSDP "impl.optimizer=torch_foreach",
     "is modelled with impl.optimizer = fused"},
    {MEGATRON_FSDP "train.params_dtype=float32",
     "is modelled with train.params_dtype = bfloat16"},
    {MEGATRON_FSDP "optimizer.precision_aware=true impl.optimizer=fused",
     "with optimizer.precision_aware = true is not modelled"},
    {MEGATRON_FSDP FP8_PARAM "train.fp8_recipe=tensorwise", ""},
    {MEGATRON_FSDP FP8_PARAM "train.fp8_recipe=delayed",
     "is modelled with train.fp8_recipe = tensorwise"},
    {MEGATRON_FSDP FP8_PARAM "train.fp8_recipe=tensorwise "
                             "parallel.sharding_strategy=optim",
     "and parallel.sharding_strategy = optim_grads_params alone"},
};

static void test_fsdp__rules(void **state)
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

/* Main gradients are of the parameters' type, whatever DDP's would be. */
static void test_fsdp__grad_dtype(void **state)
{
    (void)state;
    me_config *config = job_with(MEGATRON_FSDP);
    assert_int_equal(me_config_finish(config, 1, NULL), ME_OK);
    assert_int_equal(config->train.grad_dtype, ME_DTYPE_BFLOAT16);
    me_config_destroy(config);
    config = job_with(MEGATRON_FSDP "parallel.fsdp_main_grads_dtype=fp32");
    assert_int_equal(me_config_finish(config, 1, NULL), ME_OK);
    assert_int_equal(config->train.grad_dtype, ME_DTYPE_FLOAT32);
    me_config_destroy(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fsdp__rules),
        cmocka_unit_test(test_fsdp__grad_dtype),
    };
    return cmocka_run_group_tests_name("config_fsdp", tests, NULL, NULL);
}
