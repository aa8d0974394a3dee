/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/megatron/megatron_rules.h"

/* What validate_args() (megatron/training/arguments.py), TransformerConfig
 * and Transformer Engine's modules ask of a job with FP8, and what of it
 * memest does not model. */

static bool is_fp8(const me_config *config)
{
    return config->fp8.format != ME_FP8_NONE;
}

/** One thing that must not be, of FP8. */
typedef struct me_fp8_need {
    bool is_wrong;
    const char *what; /**< follows on the option */
} me_fp8_need;

static me_status check_needs(const me_fp8_need *needs, size_t count,
                             me_status status, const char *option,
                             me_diag *diag)
{
    for (size_t i = 0; i < count; i++) {
        if (needs[i].is_wrong) {
            return me_fail(diag, status, "%s %s", option, needs[i].what);
        }
    }
    return ME_OK;
}

#define CHECK(needs, status, option)                                           \
    check_needs(needs, sizeof(needs) / sizeof(needs)[0], status, option, diag)

/** validate_args(): "--fp8-param-gather only supported with distributed
 *  optimizer, …"; TransformerConfig: "fp8_param must be used together with fp8
 *  mode". */
static me_status check_param(const me_config *config, me_diag *diag)
{
    const bool is_on = config->fp8.param;
    const me_fp8_need needs[] = {
        {is_on && !is_fp8(config),
         "needs train.fp8 = e4m3 or hybrid (--fp8-format): Megatron-LM stops "
         "at FP8 parameters without FP8"},
        {is_on && !config->optimizer.distributed &&
             !config->parallel.torch_fsdp2,
         "needs optimizer.distributed = true (--use-distributed-optimizer) or "
         "FSDP: Megatron-LM supports it with nothing else"},
        {is_on && config->parallel.torch_fsdp2,
         "does not go with parallel.torch_fsdp2 = true (--use-torch-fsdp2), "
         "with which Megatron-LM turns --fp8-param-gather off"},
    };
    return CHECK(needs, ME_ERR_CONFIG, "train.fp8_param = true");
}

/** TransformerConfig: "Delayed scaling does not support first / last layer in
 *  BF16", and how many layers these may be. */
static me_status check_bf16_layers(const me_config *config, me_diag *diag)
{
    const me_fp8_config *f = &config->fp8;
    const int32_t most =
        (int32_t)config->model.num_layers / config->parallel.pipeline;
    if (!is_fp8(config) || !f->first_last_layers_bf16) {
        return ME_OK;
    }
    if (f->recipe == ME_FP8_DELAYED) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "train.first_last_layers_bf16 = true does not go with "
                       "train.fp8_recipe = delayed: delayed scaling does not "
                       "support first and last layers in bf16");
    }
    if (f->num_layers_at_start_in_bf16 > most ||
        f->num_layers_at_end_in_bf16 > most) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "train.num_layers_at_start_in_bf16 = %d and "
                       "train.num_layers_at_end_in_bf16 = %d must be at most "
                       "%d, the layers of a pipeline stage",
                       (int)f->num_layers_at_start_in_bf16,
                       (int)f->num_layers_at_end_in_bf16, (int)most);
    }
    return ME_OK;
}

/** Of MXFP8 all sizes are multiples of 32, of the others rows of 8 and columns of
 *  16 (assert_dim_for_fp8_exec()). */
static me_status check_sizes(const me_config *config, me_diag *diag)
{
    enum {
        ROWS = 8,
        COLUMNS = 16,
        BLOCK = 32
    };

    const me_parallel_config *p = &config->parallel;
    const me_model_config *m = &config->model;
    const bool is_block = config->fp8.recipe == ME_FP8_MXFP8;
    const uint64_t columns = is_block ? BLOCK : COLUMNS;
    const uint64_t ranks = (uint64_t)p->tensor;

    const struct {
        const char *name;
        uint64_t size;
        uint64_t multiple;
    } sizes[] = {
        {"rows of a micro-batch (train.micro_batch_size x model.seq_length "
         "over its ranks)",
         config->train.micro_batch_size *
             (m->seq_length / (uint64_t)p->context) / (p->sequence ? ranks : 1),
         is_block ? BLOCK : ROWS},
        {"model.hidden_size", m->hidden_size, columns},
        {"model.ffn_hidden_size over the tensor ranks",
         m->ffn_hidden_size / ranks, columns},
    };

    for (size_t i = 0; is_fp8(config) && i < sizeof sizes / sizeof sizes[0];
         i++) {
        if (sizes[i].size % sizes[i].multiple != 0) {
            return me_fail(diag, ME_ERR_CONFIG,
                           "train.fp8 needs %s = %llu to be a multiple of "
                           "%llu: Transformer Engine's products in FP8 do",
                           sizes[i].name, (unsigned long long)sizes[i].size,
                           (unsigned long long)sizes[i].multiple);
        }
    }
    return ME_OK;
}

/** TransformerConfig: "fp8/fp4 must be specified when
 *  moe_router_padding_for_quantization is True", and not by an allgather. */
static me_status check_padding(const me_config *config, me_diag *diag)
{
    const bool is_on = config->moe.router_padding_for_quantization &&
                       config->moe.num_experts > 0;
    const me_fp8_need needs[] = {
        {is_on && !is_fp8(config),
         "needs train.fp8 = e4m3 or hybrid (--fp8-format)"},
        {is_on && config->moe.token_dispatcher == ME_DISPATCHER_ALL_GATHER,
         "does not go with moe.token_dispatcher = allgather"},
        {is_on && config->moe.router_fusion &&
             config->moe.token_dispatcher == ME_DISPATCHER_ALL_TO_ALL,
         "does not go with moe.router_fusion = true "
         "(--moe-router-fusion): the map is padded in place, which the fused "
         "router has saved for its backward"},
    };
    return CHECK(needs, ME_ERR_CONFIG,
                 "moe.router_padding_for_quantization = true");
}

static me_status check_fp8(const me_config *config, me_diag *diag)
{
    const me_fp8_config *f = &config->fp8;
    const bool is_on = is_fp8(config);
    const bool is_recomputed =
        config->recompute.granularity == ME_RECOMPUTE_SELECTIVE &&
        (config->recompute.layernorm || config->recompute.moe_act);
    const me_fp8_need needs[] = {
        {is_on && config->impl.transformer != ME_TRANSFORMER_ENGINE,
         "needs impl.transformer = transformer_engine (--transformer-impl "
         "transformer_engine)"},
        {is_on && is_recomputed && f->recipe == ME_FP8_DELAYED,
         "with train.fp8_recipe = delayed does not go with "
         "recompute.layernorm or recompute.moe_act: delayed scaling does not "
         "support their recomputation"},
    };
    return CHECK(needs, ME_ERR_CONFIG, "train.fp8");
}

/** validate_args(): offloading an optimizer of FP8 parameters. */
static me_status check_offload(const me_config *config, me_diag *diag)
{
    return config->fp8.param && config->optimizer.cpu_offload &&
                   config->fp8.recipe != ME_FP8_DELAYED
               ? me_fail(diag, ME_ERR_CONFIG,
                         "optimizer.cpu_offload = true with train.fp8_param = "
                         "true needs train.fp8_recipe = delayed")
               : ME_OK;
}

/** use_precision_aware_optimizer_no_fp8_or_ds_fp8: FusedAdam is given parameters
 *  themselves. */
static bool gives_adam_parameters(const me_config *config)
{
    return config->fp8.param && config->optimizer.precision_aware &&
           !config->parallel.megatron_fsdp &&
           (config->fp8.recipe == ME_FP8_DELAYED ||
            config->optimizer.main_params_dtype != ME_DTYPE_FLOAT32);
}

/** Such jobs that end in the first step. Under delayed scaling FusedAdam keeps of
 *  a float32 main parameter the 16 bits that bfloat16 leaves out
 *  (store_param_remainders), and multi_tensor_adam_fp8_cuda() asks for float32.
 *  Of other recipes there are no shards (shard_model_param = None of
 *  distrib_optimizer.py), and copy_group_grads() asks for their size. */
static me_status check_precision_aware(const me_config *config, me_diag *diag)
{
    const bool is_given = gives_adam_parameters(config);
    const bool is_delayed = config->fp8.recipe == ME_FP8_DELAYED;
    const me_fp8_need needs[] = {
        {is_given && !is_delayed,
         "with optimizer.precision_aware = true and a train.fp8_recipe other "
         "than delayed needs optimizer.main_params_dtype = fp32: with 16-bit "
         "ones Megatron-LM ends in the first step, which has no shards of "
         "parameters in FP8"},
        {is_given && is_delayed && !config->optimizer.cpu_offload &&
             config->optimizer.main_params_dtype == ME_DTYPE_FLOAT32,
         "with optimizer.precision_aware = true does not go with "
         "train.fp8_recipe = delayed: Transformer Engine ends in the first "
         "step, whose kernel needs whole float32 main parameters, of which "
         "FusedAdam keeps 16 bits"},
    };
    return CHECK(needs, ME_ERR_CONFIG, "train.fp8_param = true");
}

/** What Megatron-LM has and memest has not. */
static me_status check_modelled(const me_config *config, me_diag *diag)
{
    const me_fp8_config *f = &config->fp8;
    const bool is_on = is_fp8(config);
    const me_fp8_need needs[] = {
        {is_on && f->recipe == ME_FP8_CUSTOM,
         "with train.fp8_recipe = custom is not modelled: its quantizers are "
         "the user's own"},
        {is_on && config->train.params_dtype != ME_DTYPE_BFLOAT16,
         "is modelled with train.params_dtype = bfloat16 (--bf16) alone"},
        {is_on && config->train.te_op_fuser,
         "with train.te_op_fuser = true is not modelled"},
        {is_on && !config->pipeline.is_own,
         "with an order of pipeline.schedule that is not Megatron-LM's own is "
         "not modelled"},
        {is_on && gives_adam_parameters(config),
         "with train.fp8_param = true, optimizer.precision_aware = true and "
         "train.fp8_recipe = delayed is not modelled"},
        {is_on && f->recipe == ME_FP8_MXFP8 && f->param,
         "with train.fp8_recipe = mxfp8 and train.fp8_param = true is not "
         "modelled"},
    };
    return CHECK(needs, ME_ERR_UNSUPPORTED, "train.fp8");
}

me_rule *const me_fp8_rules[] = {
    check_fp8,     check_param,           check_bf16_layers,
    check_offload, check_precision_aware, check_modelled,
    check_sizes,   check_padding,         NULL,
};
