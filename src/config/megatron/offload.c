/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/config.h"
#include "config/megatron/megatron_rules.h"

#include <string.h>

/* What activations on the host ask of a job: TransformerConfig.__post_init__() and
 * validate_args() of core_v0.19.0. */

static const char VERSION_1[] = "NVTE_CPU_OFFLOAD_V1";

static bool is_recomputed(const me_config *config)
{
    return config->recompute.granularity != ME_RECOMPUTE_NONE;
}

/** Is it by --moe-layer-recompute alone, which TransformerConfig turns into
 *  selective recomputation behind its check of CPU offloading? */
static bool is_recomputed_unseen(const me_config *config)
{
    const me_flag_list *flags = &config->modelled;
    return me_flag_list_has(flags, "--moe-layer-recompute") &&
           !me_flag_list_has(flags, "--recompute-granularity") &&
           !me_flag_list_has(flags, "--recompute-activations");
}

static me_status check_layers(const me_config *config, me_diag *diag)
{
    const me_offload_config *o = &config->offload;
    const bool is_on = o->num_layers > 0;
    if (is_on && o->num_layers >= config->model.num_layers) {
        return me_fail(
            diag, ME_ERR_CONFIG,
            "offload.num_layers = %d must be less than "
            "model.num_layers = %d: the last layer's backward begins "
            "at once",
            o->num_layers, config->model.num_layers);
    }
    const me_contradiction list[] = {
        {is_on && config->parallel.pipeline > 1,
         "does not go with parallel.pipeline over 1: Megatron-LM has no "
         "pipeline with CPU offloading"},
        {is_on && is_recomputed(config) && !is_recomputed_unseen(config),
         "does not go with recompute.granularity: CPU offloading does not work "
         "when activations are recomputed"},
        {is_on && o->fine_grained,
         "does not go with offload.fine_grained = true"},
    };
    return ME_REFUSE_FIRST(list, ME_ERR_CONFIG, "offload.num_layers", diag);
}

static bool names_a_module(const me_offload_config *o)
{
    return o->attn_norm || o->qkv_linear || o->core_attn || o->attn_proj ||
           o->mlp_norm || o->expert_fc1 || o->moe_act;
}

static me_status check_fine_grained(const me_config *config, me_diag *diag)
{
    const me_offload_config *o = &config->offload;
    const bool is_on = o->fine_grained;
    const bool is_in_fp8 =
        config->moe.grouped_gemm && config->fp8.format != ME_FP8_NONE;
    const char *version = me_config_variable(config, VERSION_1);
    const me_contradiction list[] = {
        {is_on && config->impl.transformer != ME_TRANSFORMER_ENGINE,
         "needs impl.transformer = transformer_engine (--transformer-impl "
         "transformer_engine)"},
        {is_on && version != NULL && strcmp(version, "1") != 0,
         "needs NVTE_CPU_OFFLOAD_V1=1 in the environment, or Transformer Engine "
         "would offload weights"},
        {is_on && !names_a_module(o),
         "needs a module to offload (--offload-modules)"},
        {is_on && o->attn_proj && !o->core_attn,
         "with offload.attn_proj = true needs offload.core_attn = true: what the "
         "projection is given is what attention made, whose backward needs it"},
        {is_on && o->attn_proj && config->fp8.format != ME_FP8_NONE,
         "with offload.attn_proj = true and train.fp8: Transformer Engine itself "
         "stops at the product of what has come back"},
        {is_on && o->expert_fc1 && is_in_fp8 &&
             config->fp8.recipe == ME_FP8_DELAYED,
         "with offload.expert_fc1 = true does not go with train.fp8_recipe = "
         "delayed: Transformer Engine stops, since experts would keep their "
         "input as it is (save_original_input)"},
        {is_on && o->expert_fc1 && is_in_fp8 &&
             config->fp8.recipe != ME_FP8_MXFP8,
         "with offload.expert_fc1 = true and train.fp8: Transformer Engine "
         "itself stops at the product of what has come back"},
        {is_on && config->recompute.granularity == ME_RECOMPUTE_SELECTIVE &&
             config->recompute.moe && (o->expert_fc1 || o->moe_act),
         "with offload.expert_fc1 or offload.moe_act = true does not go with "
         "recompute.moe = true, which runs the whole layer of experts again"},
    };
    return ME_REFUSE_FIRST(list, ME_ERR_CONFIG, "offload.fine_grained = true",
                           diag);
}

/** What Megatron-LM has and memest has not. */
static me_status check_modelled(const me_config *config, me_diag *diag)
{
    const me_offload_config *o = &config->offload;
    const bool is_on = o->fine_grained;
    const me_contradiction list[] = {
        {is_on && !config->pipeline.is_own,
         "with an order of pipeline.schedule that is not Megatron-LM's own is not "
         "modelled"},
    };
    const me_contradiction older[] = {
        {o->num_layers > 0 && is_recomputed_unseen(config),
         "with --moe-layer-recompute is not modelled"},
        {o->num_layers > 0 && o->is_v1 && config->fp8.format != ME_FP8_NONE,
         "with NVTE_CPU_OFFLOAD_V1=1 and train.fp8 is not modelled"},
    };
    const me_status status = ME_REFUSE_FIRST(
        list, ME_ERR_UNSUPPORTED, "offload.fine_grained = true", diag);
    return status != ME_OK ? status
                           : ME_REFUSE_FIRST(older, ME_ERR_UNSUPPORTED,
                                             "offload.num_layers", diag);
}

me_rule *const me_offload_rules[] = {
    check_layers,
    check_fine_grained,
    check_modelled,
    NULL,
};

/** Does a graph have what is offloaded? */
static bool is_within_graphs(const me_config *config)
{
    const me_offload_config *o = &config->offload;
    return config->train.cuda_graph_impl == ME_CUDA_GRAPH_TE &&
           config->train.cuda_graph_attention &&
           (o->qkv_linear || o->core_attn || o->attn_proj);
}

me_status me_config_assume_offload(me_config *config, me_diag *diag)
{
    me_offload_config *o = &config->offload;
    const char *version = me_config_variable(config, VERSION_1);
    me_status status = ME_OK;
    if (o->fine_grained && version == NULL) {
        status =
            me_config_assume(config, diag,
                             "NVTE_CPU_OFFLOAD_V1=1 is set, without which "
                             "Megatron-LM stops at fine-grained offloading");
    }
    if (status == ME_OK && o->fine_grained && is_within_graphs(config)) {
        status = me_config_assume(config, diag,
                                  "once attention is captured, its graph keeps "
                                  "as much as one without offloading");
    }
    o->is_v1 = version != NULL && strcmp(version, "1") == 0;
    return status == ME_OK && o->num_layers > 0 && o->is_v1
               ? me_config_assume(
                     config, diag,
                     "NVTE_CPU_OFFLOAD_V1=1: layers go to the host by "
                     "Transformer Engine's older code path")
               : status;
}
