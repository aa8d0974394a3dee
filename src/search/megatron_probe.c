/* SPDX-License-Identifier: BSD-3-Clause */
/* Probes of a Megatron-LM job. Its layers: without pipeline, distributed optimizer
 * or overlap, two micro-batches of them; without FSDP2, which shards layers over
 * all ranks, on as few ranks as share them. Its place: a layer a stage, as few
 * micro-batches as there are, on all ranks. */
#include "config/options.h"
#include "search/rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Is one of the assignments @p text? */
static bool sets(const me_variant *variant, const char *text)
{
    for (int32_t i = 0; i < variant->n_sets; i++) {
        if (strcmp(variant->sets[i], text) == 0) {
            return true;
        }
    }
    return false;
}

/** Does one of them set an option? @param key  its name and "=" */
static bool sets_option(const me_variant *variant, const char *key)
{
    for (int32_t i = 0; i < variant->n_sets; i++) {
        if (strncmp(variant->sets[i], key, strlen(key)) == 0) {
            return true;
        }
    }
    return false;
}

/** Layers that are recomputed alike. */
bool me_megatron_has_layer(const me_config *job,
                           const me_schedule_choice *choice,
                           const me_variant *variant)
{
    (void)choice;
    return job->model.mtp_num_layers == 0 &&
           job->parallel.pipeline_layout[0] == '\0' &&
           job->parallel.decoder_first_pipeline_num_layers == 0 &&
           job->parallel.decoder_last_pipeline_num_layers == 0 &&
           !job->parallel.account_for_embedding_in_pipeline_split &&
           !job->parallel.account_for_loss_in_pipeline_split &&
           job->parallel.num_layers_per_virtual_pipeline_stage == 0 &&
           !job->fp8.first_last_layers_bf16 && job->moe.tokens[0] == '\0' &&
           job->model.no_rope_freq[0] == '\0' &&
           job->recompute.method == ME_RECOMPUTE_UNIFORM &&
           !sets(variant, "recompute.method=block") &&
           !sets_option(variant, "moe.layer_freq=") &&
           !sets_option(variant, "model.window_attention=") &&
           !sets_option(variant, "model.window_attn_skip_freq=") &&
           !sets_option(variant, "model.no_rope_freq=") &&
           !sets_option(variant, "moe.num_experts=");
}

static me_status set_number(me_config *config, const char *option,
                            uint64_t value, me_diag *diag)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    return me_config_set(config, option, text, diag);
}

/** Layers of all kinds but the one that the others are of: without experts and
 *  window, with experts alone, with a window alone. */
static const struct {
    const char *experts;
    const char *windows;
} rest = {.experts = "[0,1,0]", .windows = "[0,0,1]"};

enum {
    REST_LAYERS = 3
};

/** Of several kinds the one with experts and a window, unless the others are asked
 *  for. */
static me_status set_kind(me_config *config, int32_t n_layers, me_diag *diag)
{
    const bool is_rest = n_layers == ME_PROBE_REST;
    me_status status = ME_OK;
    if (me_megatron_has_other_experts(config)) {
        status = me_config_set(config, "moe.layer_freq",
                               is_rest ? rest.experts : "1", diag);
    }
    return status == ME_OK && me_megatron_has_other_windows(config)
               ? me_config_set(config, "model.window_attn_skip_freq",
                               is_rest ? rest.windows : "", diag)
               : status;
}

/** Ranks that a layer needs, and experts' ranks divide. */
static uint64_t ranks_of(const me_config *config)
{
    const me_parallel_config *p = &config->parallel;
    const uint64_t layer = (uint64_t)p->tensor * (uint64_t)p->context;
    const uint64_t of_experts =
        (uint64_t)p->expert *
        (uint64_t)(p->expert_tensor > 0 ? p->expert_tensor : p->tensor);
    uint64_t world = layer;
    while (world % of_experts != 0) {
        world += layer;
    }
    return world;
}

const char *const me_megatron_layer_sets[] = {
    "parallel.pipeline=1",
    "parallel.virtual_pipeline=1",
    "pipeline.schedule=",
    "pipeline.schedule_file=",
    "optimizer.distributed=false",
    "optimizer.overlap_grad_reduce=false",
    "optimizer.overlap_param_gather=false",
    "optimizer.overlap_param_gather_with_optimizer_step=false",
    "optimizer.num_distributed_optimizer_instances=1",
    "train.defer_embedding_wgrad_compute=false",
    NULL,
};

me_status me_megatron_set_layer(me_config *config, int32_t n_layers,
                                me_diag *diag)
{
    const uint64_t microbatches = 2;
    const bool is_sharded = config->parallel.torch_fsdp2;
    const uint64_t stages = n_layers == ME_PROBE_END ? 2 : 1;
    const uint64_t world =
        is_sharded ? (uint64_t)config->parallel.world_size : ranks_of(config);
    const me_parallel_config *p = &config->parallel;
    const uint64_t data = world / ((uint64_t)p->tensor * (uint64_t)p->context);
    const uint64_t layers = n_layers > 0                ? (uint64_t)n_layers
                            : n_layers == ME_PROBE_REST ? REST_LAYERS
                                                        : stages;
    me_status status =
        set_number(config, "parallel.world_size", stages * world, diag);
    if (status == ME_OK) {
        status = set_number(config, "parallel.pipeline", stages, diag);
    }
    if (status == ME_OK) {
        status = set_number(config, "model.num_layers", layers, diag);
    }
    if (status == ME_OK) {
        status = set_kind(config, n_layers, diag);
    }
    return status == ME_OK
               ? set_number(
                     config, "train.global_batch_size",
                     microbatches * data * config->train.micro_batch_size, diag)
               : status;
}

/** Ranks of a candidate's pipeline. */
static long pipeline_of(const me_config *job, const me_variant *variant)
{
    static const char key[] = "parallel.pipeline=";
    for (int32_t i = 0; i < variant->n_sets; i++) {
        if (strncmp(variant->sets[i], key, sizeof key - 1) == 0) {
            return strtol(variant->sets[i] + sizeof key - 1, NULL, 10);
        }
    }
    return job->parallel.pipeline;
}

/** Megatron-LM's own functions, of layers that the job does not deal out itself;
 *  every stage has some of those that the place's job has. */
bool me_megatron_has_place(const me_config *job,
                           const me_schedule_choice *choice,
                           const me_variant *variant)
{
    return choice->schedule == NULL && job->pipeline.name[0] == '\0' &&
           job->pipeline.file[0] == '\0' &&
           (!me_megatron_has_rest(job) || pipeline_of(job, variant) == 1) &&
           me_megatron_has_layer(job, choice, variant);
}

const char *const me_megatron_place_sets[] = {
    "parallel.virtual_pipeline=1",
    "train.micro_batch_size=1",
    "recompute.granularity=none",
    "recompute.method=uniform",
    "recompute.num_layers=1",
    "recompute.core_attn=false",
    "recompute.layernorm=false",
    "recompute.mla_up_proj=false",
    "recompute.mlp=false",
    "recompute.moe=false",
    "recompute.moe_act=false",
    "recompute.shared_experts=false",
    NULL,
};

me_status me_megatron_set_place(me_config *config, int32_t n_layers,
                                me_diag *diag)
{
    const me_parallel_config *p = &config->parallel;
    const uint64_t pipeline = (uint64_t)p->pipeline;
    const uint64_t data =
        (uint64_t)p->world_size /
        (pipeline * (uint64_t)p->tensor * (uint64_t)p->context);
    me_status status = set_number(config, "model.num_layers", pipeline, diag);
    if (status == ME_OK) {
        status = set_kind(config, n_layers, diag);
    }
    return status == ME_OK ? set_number(config, "train.global_batch_size",
                                        pipeline * data, diag)
                           : status;
}

/** Not how many layers are recomputed at a time: a probe has two of them. */
const char *const me_megatron_like_options[] = {
    "recompute.granularity",
    "recompute.core_attn",
    "recompute.layernorm",
    "recompute.mla_up_proj",
    "recompute.mlp",
    "recompute.moe",
    "recompute.moe_act",
    "recompute.shared_experts",
    NULL,
};
