/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/megatron/megatron_rules.h"

#include <string.h>

/* What validate_args() and both FSDPs ask, and what of them is not modelled. */

/** One thing that a job with FSDP must not have. */
typedef struct need {
    bool is_wrong;
    const char *what;
} need;

static me_status check(const need *needs, size_t count, me_status status,
                       const char *option, me_diag *diag)
{
    for (size_t i = 0; i < count; i++) {
        if (needs[i].is_wrong) {
            return me_fail(diag, status, "%s %s", option, needs[i].what);
        }
    }
    return ME_OK;
}

/** Both gather and compute at once. */
static bool has_one_connection(const me_config *config)
{
    const char *connections =
        me_config_variable(config, "CUDA_DEVICE_MAX_CONNECTIONS");
    return connections != NULL && strcmp(connections, "1") == 0;
}

/** torch_FSDP: what validate_args() asserts. */
static me_status check_fsdp2(const me_config *config, me_diag *diag)
{
    const me_parallel_config *p = &config->parallel;
    const bool is_on = p->torch_fsdp2;
    const need needs[] = {
        {is_on && p->megatron_fsdp,
         "and parallel.megatron_fsdp = true (--use-megatron-fsdp) exclude each "
         "other"},
        {is_on && p->pipeline > 1, "needs parallel.pipeline = 1"},
        {is_on && p->expert > 1, "needs parallel.expert = 1"},
        {is_on && config->optimizer.distributed,
         "needs optimizer.distributed = false"},
        {is_on && config->train.gradient_accumulation_fusion,
         "needs train.gradient_accumulation_fusion = false "
         "(--no-gradient-accumulation-fusion)"},
        {is_on && !config->model.untie_embeddings_and_output_weights,
         "needs model.untie_embeddings_and_output_weights = true "
         "(--untie-embeddings-and-output-weights)"},
        {is_on && config->train.params_dtype == ME_DTYPE_FLOAT16,
         "does not go with train.params_dtype = float16 (--fp16)"},
        {is_on && has_one_connection(config),
         "does not go with CUDA_DEVICE_MAX_CONNECTIONS=1: give more, or none"},
    };
    return check(needs, sizeof needs / sizeof needs[0], ME_ERR_CONFIG,
                 "parallel.torch_fsdp2 = true (--use-torch-fsdp2)", diag);
}

static const char *const megatron_fsdp =
    "parallel.megatron_fsdp = true (--use-megatron-fsdp)";

/** What validate_args() asserts, and at which assertions a job ends: the model's
 *  output is a view of its hooks, which deallocate_output_tensor() refuses. */
static me_status check_megatron_fsdp(const me_config *config, me_diag *diag)
{
    const me_parallel_config *p = &config->parallel;
    const bool is_on = p->megatron_fsdp;
    const need needs[] = {
        {is_on && config->optimizer.kind != ME_OPTIMIZER_ADAM,
         "needs optimizer.kind = adam: Megatron-LM stops at any other"},
        {is_on && !config->optimizer.distributed,
         "needs optimizer.distributed = true (--use-distributed-optimizer)"},
        {is_on && p->pipeline > 1,
         "needs parallel.pipeline = 1: Megatron-LM stops where a stage's "
         "output, a view that its hooks have made, is to be freed"},
        {is_on && p->init_model_with_meta_device &&
             p->sharding_strategy == ME_SHARDING_NO_SHARD,
         "with parallel.init_model_with_meta_device = true does not go with "
         "parallel.sharding_strategy = no_shard"},
        {is_on && config->optimizer.num_instances > 1 &&
             p->outer_sharding_strategy == ME_SHARDING_OPTIM &&
             p->sharding_strategy != ME_SHARDING_OPTIM_GRADS_PARAMS,
         "with parallel.outer_sharding_strategy = optim needs "
         "parallel.sharding_strategy = optim_grads_params"},
        {is_on && p->fsdp_main_params_dtype < 0 &&
             config->train.grad_dtype != config->train.params_dtype,
         "with parallel.fsdp_main_params_dtype = auto needs gradients of the "
         "parameters' type: parallel.fsdp_main_grads_dtype = auto"},
        {is_on && has_one_connection(config),
         "does not go with CUDA_DEVICE_MAX_CONNECTIONS=1: give more, or none"},
    };
    return check(needs, sizeof needs / sizeof needs[0], ME_ERR_CONFIG,
                 megatron_fsdp, diag);
}

/** clip_grad_by_total_norm_fp32() takes float32 gradients alone, and those that the
 *  optimizer is given are of the main parameters' type (update_main_grads()). */
static me_status check_clipping(const me_config *config, me_diag *diag)
{
    const me_parallel_config *p = &config->parallel;
    const me_dtype dtype = p->fsdp_main_params_dtype < 0
                               ? config->train.params_dtype
                               : (me_dtype)p->fsdp_main_params_dtype;
    const need needs[] = {
        {p->megatron_fsdp && dtype != ME_DTYPE_FLOAT32 &&
             config->optimizer.clip_grad > 0,
         "with parallel.fsdp_main_params_dtype other than fp32 "
         "(--megatron-fsdp-main-params-dtype) needs optimizer.clip_grad = 0 "
         "(--clip-grad 0): Megatron-LM stops where it clips gradients that are "
         "not float32"},
    };
    return check(needs, sizeof needs / sizeof needs[0], ME_ERR_CONFIG,
                 megatron_fsdp, diag);
}

/** What FullyShardedDataParallel (mcore_fsdp_adapter.py) asserts of two
 *  micro-batches in turns. */
static me_status check_turns(const me_config *config, me_diag *diag)
{
    const bool is_on =
        config->parallel.megatron_fsdp && config->moe.overlap_expert_comm;
    const me_cuda_graph graphs = config->train.cuda_graph_impl;
    const need needs[] = {
        {is_on && config->parallel.fsdp_double_buffer,
         "with moe.overlap_expert_comm = true "
         "(--overlap-moe-expert-parallel-comm) does not go with "
         "parallel.fsdp_double_buffer = true (--fsdp-double-buffer)"},
        {is_on && (graphs == ME_CUDA_GRAPH_LOCAL || graphs == ME_CUDA_GRAPH_TE),
         "with moe.overlap_expert_comm = true "
         "(--overlap-moe-expert-parallel-comm) needs train.cuda_graph_impl = "
         "none or full_iteration"},
    };
    return check(needs, sizeof needs / sizeof needs[0], ME_ERR_CONFIG,
                 megatron_fsdp, diag);
}

static me_status check_modelled(const me_config *config, me_diag *diag)
{
    const me_optimizer_config *o = &config->optimizer;
    const bool is_on = config->parallel.megatron_fsdp;
    const need needs[] = {
        {is_on && config->impl.optimizer != ME_OPTIMIZER_FUSED,
         "is modelled with impl.optimizer = fused (Transformer Engine's) alone"},
        {is_on && o->precision_aware,
         "with optimizer.precision_aware = true is not modelled"},
        {is_on && config->fp8.param &&
             (config->fp8.recipe != ME_FP8_TENSORWISE ||
              config->parallel.sharding_strategy !=
                  ME_SHARDING_OPTIM_GRADS_PARAMS),
         "with train.fp8_param = true (--fp8-param-gather) is modelled with "
         "train.fp8_recipe = tensorwise and parallel.sharding_strategy = "
         "optim_grads_params alone"},
        {is_on && config->train.params_dtype != ME_DTYPE_BFLOAT16,
         "is modelled with train.params_dtype = bfloat16 (--bf16) alone"},
    };
    return check(needs, sizeof needs / sizeof needs[0], ME_ERR_UNSUPPORTED,
                 megatron_fsdp, diag);
}

me_rule *const me_sharding_rules[] = {
    check_fsdp2,    check_megatron_fsdp, check_turns,
    check_modelled, check_clipping,      NULL,
};
