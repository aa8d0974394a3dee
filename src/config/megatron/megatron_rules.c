/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/megatron/megatron_rules.h"

#include "config/framework.h"
#include "config/megatron/megatron_arguments.h"
#include "config/schedule_choice.h"
#include "parallel/schedule_lower.h"

#include <stdio.h>
#include <string.h>

static const char *const options[] = {
    "name",     "framework", "model.",    "moe.",   "recompute.",
    "offload.", "parallel.", "pipeline.", "train.", "optimizer.",
    "impl.",    "device.",   "machine.",  "time.",  NULL,
};

me_status me_refuse_first(const me_contradiction *list, size_t count,
                          me_status status, const char *option, me_diag *diag)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i].is_there) {
            return me_fail(diag, status, "%s %s", option, list[i].what);
        }
    }
    return ME_OK;
}

/** The first rule that fails speaks. */
static me_status check_rules(const me_config *config, me_diag *diag)
{
    me_rule *const *const lists[] = {
        me_size_rules,
        me_model_rules,
        me_optimizer_rules,
        me_sharding_rules,
        me_te_rules,
        me_attention_rules,
        me_fp8_rules,
        me_offload_rules,
        me_tp_overlap_rules,
        me_graph_rules,
        me_context_rules,
        me_group_rules,
        me_expert_grid_rules,
        config->moe.num_experts > 0 ? me_moe_rules : NULL,
        config->moe.num_experts > 0 ? me_router_rules : NULL,
        me_routing_rules,
        me_pipeline_rules,
    };
    me_status status = ME_OK;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        me_rule *const *rule = lists[i];
        for (; status == ME_OK && rule != NULL && *rule != NULL; rule++) {
            status = (*rule)(config, diag);
        }
    }
    return status;
}

static me_status validate(const me_config *config, me_diag *diag)
{
    if (config->layers != NULL) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "module: a tree of layers needs framework = \"torch\"");
    }
    if (config->impl.optimizer != ME_OPTIMIZER_TORCH_FOREACH &&
        config->impl.optimizer != ME_OPTIMIZER_FUSED) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "impl.optimizer: Megatron-LM takes Transformer Engine's "
                       "optimizers, fused, or PyTorch's as torch_foreach");
    }
    if (config->optimizer.kind == ME_OPTIMIZER_ADAMW) {
        return me_fail(
            diag, ME_ERR_CONFIG,
            "optimizer.kind = \"adamw\": Megatron-LM's name of it is "
            "\"adam\"");
    }
    return check_rules(config, diag);
}

const me_framework_rules me_megatron_rules = {
    .options = options,
    .derive = me_config_derive,
    .validate = validate,
    .note = me_config_note,
    .needs = me_megatron_needs,
};

static bool shards_parameters(const me_config *config)
{
    return config->optimizer.distributed || config->parallel.torch_fsdp2;
}

static const char *untimed(const me_config *config)
{
    return config->moe.overlap_expert_comm
               ? "two micro-batches in turns (moe.overlap_expert_comm) are not "
                 "timed"
               : NULL;
}

/** Experts stand in groups of their own. */
static bool has_twins(const me_config *config)
{
    return !config->parallel.torch_fsdp2 && !config->parallel.megatron_fsdp &&
           config->moe.num_experts == 0;
}

static bool late_frees_matter(const me_config *config)
{
    (void)config;
    return false;
}

/** Its own functions without overlapped transfers, so 1F1B, send and receive in
 *  batches for which the host waits; all others run ahead. */
static bool waits_for_transfers(const me_config *config)
{
    return config->parallel.pipeline > 1 && config->pipeline.is_own &&
           !config->parallel.overlap_p2p_comm;
}

static const char *host_lacks(const me_config *config)
{
    return config->parallel.torch_fsdp2     ? "FSDP2's hooks and DTensors"
           : config->parallel.megatron_fsdp ? "Megatron-FSDP's hooks"
           : config->optimizer.cpu_offload ||
                   config->optimizer.kind == ME_OPTIMIZER_SOAP
               ? "the optimizer's step"
           : config->offload.fine_grained || config->offload.num_layers > 0
               ? "copies of activations to the host and back"
               : NULL;
}

/** What no order of Megatron-LM's forks is known to do. */
static me_status check_order(const me_config *config,
                             const me_pipeline_order *order, me_diag *diag)
{
    const me_parallel_config *p = &config->parallel;
    const bool is_file = config->pipeline.file[0] != '\0';
    const char *what = NULL;
    if (order->placement == ME_PLACEMENT_TWO_WAYS && p->virtual_pipeline > 1) {
        what = "parallel.virtual_pipeline over 1 with two directions";
    } else if (config->moe.num_experts > 0) {
        what = "experts (moe.num_experts)";
    } else if (!me_pipeline_order_is_even(order)) {
        what = "ranks with different numbers of stages";
    } else if (config->optimizer.overlap_grad_reduce ||
               config->optimizer.overlap_param_gather) {
        what = "optimizer.overlap_grad_reduce and overlap_param_gather";
    } else if (config->model.mtp_num_layers > 0) {
        what = "multi-token prediction (model.mtp_num_layers), whose heads "
               "share a weight gradient";
    } else if (order->placement != ME_PLACEMENT_LOOP &&
               !config->model.untie_embeddings_and_output_weights) {
        what = "tied embeddings (model.untie_embeddings_and_output_weights = "
               "false) where stages do not stand in a loop";
    } else if (order->placement != ME_PLACEMENT_LOOP &&
               (p->decoder_first_pipeline_num_layers != 0 ||
                p->decoder_last_pipeline_num_layers != 0)) {
        what = "parallel.decoder_first/last_pipeline_num_layers where stages "
               "do not stand in a loop";
    }
    return what == NULL ? ME_OK
                        : me_fail(diag, ME_ERR_UNSUPPORTED,
                                  "pipeline.schedule%s%s: not modelled: %s",
                                  is_file ? "_file = " : " = ",
                                  is_file ? config->pipeline.file
                                          : config->pipeline.name,
                                  what);
}

bool me_megatron_validates(const me_config *config)
{
    return config->own != NULL && config->own->has_launch &&
           !config->own->has_leaves;
}

/** Cards before Blackwell run the launches of these jobs in the order that they
 *  are made in through one connection alone (validate_args()). */
static bool wants_one_connection(const me_config *config,
                                 uint64_t compute_capability)
{
    const uint64_t blackwell = 100;
    const me_parallel_config *p = &config->parallel;
    return (p->tensor > 1 || p->context > 1) &&
           compute_capability < blackwell && !p->torch_fsdp2 &&
           !p->megatron_fsdp && !config->moe.overlap_expert_comm;
}

static me_status check_card(me_config *config, uint64_t compute_capability,
                            me_diag *diag)
{
    const char *connections =
        me_config_variable(config, "CUDA_DEVICE_MAX_CONNECTIONS");
    const me_status status =
        me_config_settle_attention(config, compute_capability, diag);
    if (status != ME_OK) {
        return status;
    }
    if (!wants_one_connection(config, compute_capability) ||
        (connections != NULL && strcmp(connections, "1") == 0)) {
        return ME_OK;
    }
    if (connections != NULL) {
        char stops[200];
        (void)snprintf(stops, sizeof stops,
                       "CUDA_DEVICE_MAX_CONNECTIONS=%.20s must be 1 with "
                       "parallel.tensor or parallel.context over 1 on a card "
                       "before Blackwell: Megatron-LM stops at any other",
                       connections);
        return me_megatron_pass(config, stops, diag);
    }
    return me_megatron_validates(config)
               ? me_config_assume_of(
                     config, "parallel.tensor parallel.context device.name",
                     diag,
                     "CUDA_DEVICE_MAX_CONNECTIONS=1 is set, "
                     "without which Megatron-LM stops at tensor or "
                     "context ranks")
               : ME_OK;
}

const me_framework_traits me_megatron_traits = {
    .shards_parameters = shards_parameters,
    .has_twins = has_twins,
    .untimed = untimed,
    .late_frees_matter = late_frees_matter,
    .waits_for_transfers = waits_for_transfers,
    .host_lacks = host_lacks,
    .runs_without_order = me_config_has_own_schedule,
    .check_order = check_order,
    .lower_order = me_pipeline_order_lower,
    .check_card = check_card,
    .has_tokens = true,
};
