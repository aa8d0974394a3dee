/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/megatron/megatron_rules.h"

/* What validate_args() and OptimizerConfig ask. */

/** Several instances of the distributed optimizer. */
static me_status check_instances(const me_config *config, me_diag *diag)
{
    const me_optimizer_config *o = &config->optimizer;
    const me_parallel_config *p = &config->parallel;
    if (o->num_instances > 1 && !o->distributed) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "optimizer.num_distributed_optimizer_instances = %d "
                       "needs optimizer.distributed = true",
                       (int)o->num_instances);
    }
    if (p->data % o->num_instances != 0) {
        return me_divides("optimizer.num_distributed_optimizer_instances",
                          (uint64_t)o->num_instances, "data parallel size",
                          (uint64_t)p->data, diag);
    }
    if (config->moe.num_experts == 0) {
        return ME_OK;
    }
    const int32_t of_experts =
        p->world_size / p->pipeline / p->expert / p->expert_tensor;
    return of_experts % o->num_instances == 0
               ? ME_OK
               : me_divides("optimizer.num_distributed_optimizer_instances",
                            (uint64_t)o->num_instances,
                            "expert data parallel size", (uint64_t)of_experts,
                            diag);
}

/** _ParamAndGradBucketGroup: sums in float32 are of one instance, and of groups
 *  of one bucket where they overlap. */
static me_status check_fp32_sums(const me_config *config, me_diag *diag)
{
    const me_optimizer_config *o = &config->optimizer;
    const bool has_one_group = config->parallel.virtual_pipeline > 1 ||
                               o->overlap_param_gather_with_optimizer_step;
    if (!o->ddp_reduce_scatter_with_fp32_accumulation ||
        config->parallel.megatron_fsdp) {
        return ME_OK;
    }
    if (o->num_instances > 1) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "optimizer.ddp_reduce_scatter_with_fp32_accumulation = "
                       "true does not go with "
                       "optimizer.num_distributed_optimizer_instances = %d",
                       (int)o->num_instances);
    }
    if (me_config_scatters_gradients(config) && o->overlap_grad_reduce &&
        config->fp8.param && has_one_group) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "optimizer.ddp_reduce_scatter_with_fp32_accumulation = "
                       "true with optimizer.overlap_grad_reduce = true and "
                       "train.fp8_param = true needs one chunk of layers a "
                       "stage: Megatron-LM stops at groups of two buckets");
    }
    return ME_OK;
}

static me_status check_optimizer(const me_config *config, me_diag *diag)
{
    const me_optimizer_config *o = &config->optimizer;
    if (o->distributed && o->kind == ME_OPTIMIZER_SGD) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "optimizer.distributed = true needs optimizer.kind = "
                       "adam, not sgd");
    }
    if (o->ddp_num_buckets != 0 && o->ddp_bucket_size != 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "optimizer.ddp_num_buckets and "
                       "optimizer.ddp_bucket_size exclude each other: give "
                       "one");
    }
    if (o->overlap_param_gather && !o->distributed) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "optimizer.overlap_param_gather = true needs "
                       "optimizer.distributed = true");
    }
    if (o->overlap_param_gather && !o->overlap_grad_reduce) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "optimizer.overlap_param_gather = true needs "
                       "optimizer.overlap_grad_reduce = true");
    }
    return ME_OK;
}

/** Types other than float32 are the precision-aware optimizer's alone. */
static me_status check_state_types(const me_config *config, me_diag *diag)
{
    const me_optimizer_config *o = &config->optimizer;

    const struct {
        const char *option;
        me_dtype dtype;
    } types[] = {
        {"optimizer.main_grads_dtype", o->main_grads_dtype},
        {"optimizer.main_params_dtype", o->main_params_dtype},
        {"optimizer.exp_avg_dtype", o->exp_avg_dtype},
        {"optimizer.exp_avg_sq_dtype", o->exp_avg_sq_dtype},
    };

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (!o->precision_aware && types[i].dtype != ME_DTYPE_FLOAT32) {
            return me_fail(diag, ME_ERR_CONFIG,
                           "%s other than fp32 needs optimizer.precision_aware "
                           "= true (--use-precision-aware-optimizer)",
                           types[i].option);
        }
    }
    if (o->main_grads_dtype != ME_DTYPE_FLOAT32 &&
        o->main_grads_dtype != ME_DTYPE_BFLOAT16) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "optimizer.main_grads_dtype must be fp32 or bf16");
    }
    if (o->main_params_dtype != ME_DTYPE_FLOAT32 &&
        o->main_params_dtype != ME_DTYPE_FLOAT16) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "optimizer.main_params_dtype must be fp32 or fp16");
    }
    return ME_OK;
}

static me_status check_precision_aware(const me_config *config, me_diag *diag)
{
    const me_optimizer_config *o = &config->optimizer;

    const struct {
        bool is_wrong;
        const char *what;
    } needs[] = {
        {o->kind != ME_OPTIMIZER_ADAM, "needs optimizer.kind = adam"},
        {!o->distributed, "needs optimizer.distributed = true "
                          "(--use-distributed-optimizer)"},
        {config->impl.optimizer != ME_OPTIMIZER_FUSED && !o->cpu_offload,
         "needs impl.optimizer = fused: it is Transformer Engine's"},
        {config->train.params_dtype == ME_DTYPE_FLOAT32,
         "with train.params_dtype = float32 is not modelled"},
        {config->train.accumulate_allreduce_grads_in_fp32 &&
             o->main_grads_dtype != ME_DTYPE_FLOAT32,
         "with train.accumulate_allreduce_grads_in_fp32 = true needs "
         "optimizer.main_grads_dtype = fp32"},
        {config->train.grad_dtype == ME_DTYPE_FLOAT16 && o->clip_grad > 0,
         "cannot clip float16 gradients, which Megatron-LM asserts: set "
         "train.accumulate_allreduce_grads_in_fp32 = true "
         "(--accumulate-allreduce-grads-in-fp32)"},
    };

    for (size_t i = 0; o->precision_aware && i < sizeof needs / sizeof needs[0];
         i++) {
        if (needs[i].is_wrong) {
            return me_fail(diag, ME_ERR_CONFIG,
                           "optimizer.precision_aware = true %s",
                           needs[i].what);
        }
    }
    return ME_OK;
}

/** HybridDeviceOptimizer steps main parameters of its own. */
static me_status check_cpu_offload(const me_config *config, me_diag *diag)
{
    const me_optimizer_config *o = &config->optimizer;
    return o->cpu_offload && !o->precision_aware
               ? me_fail(diag, ME_ERR_CONFIG,
                         "optimizer.cpu_offload = true needs "
                         "optimizer.precision_aware = true "
                         "(--use-precision-aware-optimizer)")
               : ME_OK;
}

/** validate_args(), _get_megatron_emerging_optimizer() and
 *  LayerWiseDistributedOptimizer ask it; what is not modelled comes last. */
static me_status check_emerging(const me_config *config, me_diag *diag)
{
    const me_optimizer_config *o = &config->optimizer;
    const bool is_on = me_is_emerging_optimizer(o->kind);
    const bool has_parts = is_on && o->distributed;

    const struct {
        bool is_wrong;
        const char *what;
    } needs[] = {
        {is_on && config->train.params_dtype == ME_DTYPE_FLOAT16,
         "does not go with train.params_dtype = float16 (--fp16)"},
        {is_on && config->parallel.torch_fsdp2,
         "does not go with parallel.torch_fsdp2 = true (--use-torch-fsdp2)"},
        {is_on && o->overlap_param_gather_with_optimizer_step && has_parts,
         "does not go with optimizer.overlap_param_gather_with_optimizer_step "
         "= true"},
        {has_parts && config->train.params_dtype == ME_DTYPE_FLOAT32,
         "with optimizer.distributed = true needs train.params_dtype = "
         "bfloat16 (--bf16): Megatron-LM stops at float32"},
        {has_parts && o->num_instances > 1,
         "does not go with optimizer.num_distributed_optimizer_instances over "
         "1"},
        {is_on && o->muon_fp32_matmul_prec == ME_MATMUL_LOW,
         "does not go with optimizer.muon_fp32_matmul_prec = low, which "
         "PyTorch does not know: give medium or high"},
        {is_on && config->fp8.param,
         "with train.fp8_param_gather = true is not modelled"},
        {has_parts && config->train.log_params_norm,
         "with optimizer.distributed = true and train.log_params_norm = true is "
         "not modelled"},
        {has_parts && o->saves_fully_reshardable,
         "with optimizer.saves_fully_reshardable = true is not modelled"},
    };

    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++) {
        if (needs[i].is_wrong) {
            return me_fail(
                diag, ME_ERR_CONFIG, "optimizer.kind = %s %s",
                me_choice_word(me_optimizer_kind_choices, (int)o->kind),
                needs[i].what);
        }
    }
    return ME_OK;
}

me_rule *const me_optimizer_rules[] = {
    check_optimizer,       check_instances,
    check_emerging,        check_state_types,
    check_precision_aware, check_cpu_offload,
    check_fp32_sums,       NULL,
};
