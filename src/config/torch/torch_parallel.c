/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/config_private.h"

/* What plain PyTorch's ranks may be to each other. */

/** PyTorch's own kernels, of which it has no rule for DTensors in a fused
 *  SGD. */
static me_status check_fused(const me_config *config, me_diag *diag)
{
    if (config->impl.optimizer == ME_OPTIMIZER_FUSED) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "impl.optimizer = \"fused\": Transformer Engine's "
                       "optimizers are Megatron-LM's; plain PyTorch has "
                       "torch_foreach, torch_fused and torch_for_loop");
    }
    const bool has_dtensors =
        config->torch.data_parallel == ME_DATA_PARALLEL_FULLY_SHARD ||
        (config->torch_job.tree->n_styles > 0 &&
         config->torch.data_parallel == ME_DATA_PARALLEL_NONE);
    return !has_dtensors || config->optimizer.kind != ME_OPTIMIZER_SGD ||
                   config->impl.optimizer != ME_OPTIMIZER_TORCH_FUSED
               ? ME_OK
               : me_fail(diag, ME_ERR_CONFIG,
                         "impl.optimizer = \"torch_fused\" with "
                         "optimizer.kind = \"sgd\": PyTorch has no such "
                         "operation for DTensors, which fully_shard and "
                         "parallelize_plan make");
}

/** Tensor-parallel ranks need a plan, and a plan ranks. */
static me_status check_plan(const me_config *config, me_diag *diag)
{
    const me_parallel_config *p = &config->parallel;
    const bool has_plan = config->torch_job.tree->n_styles > 0;
    if (has_plan != (p->tensor > 1)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       has_plan ? "module: parallelize_plan needs "
                                  "parallel.tensor over 1"
                                : "parallel.tensor = %d needs a "
                                  "parallelize_plan in `module` "
                                  "(docs/modules.md)",
                       (int)p->tensor);
    }
    if (has_plan && p->pipeline > 1 && !config->torch_job.tree->is_meta) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "module: parallelize_plan with parallel.pipeline over 1 "
                       "is modelled with device = \"meta\" alone");
    }
    if (config->torch.loss_parallel && !has_plan) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "torch.loss_parallel needs a parallelize_plan in "
                       "`module`: logits that tensor-parallel ranks share");
    }
    return ME_OK;
}

/** The first of DistributedDataParallel's arguments that is given; NULL: none. */
static const char *ddp_option(const me_torch_options *t)
{
    const struct {
        bool is_given;
        const char *name;
    } options[] = {
        {t->gradient_as_bucket_view, "torch.gradient_as_bucket_view = true"},
        {t->bucket_cap_mb > 0, "torch.bucket_cap_mb"},
        {t->replicate, "torch.replicate = true"},
        {t->find_unused_parameters, "torch.find_unused_parameters = true"},
        {t->static_graph, "torch.static_graph = true"},
        {!t->broadcast_buffers, "torch.broadcast_buffers = false"},
        {t->no_sync, "torch.no_sync = true"},
    };

    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (options[i].is_given) {
            return options[i].name;
        }
    }
    return NULL;
}

/** DistributedDataParallel's arguments where there is none, and what PyTorch
 *  or this program does not do with it. */
static me_status check_ddp(const me_config *config, me_diag *diag)
{
    const me_torch_options *t = &config->torch;
    const char *option = ddp_option(t);
    const bool is_ddp = t->data_parallel == ME_DATA_PARALLEL_DDP;
    const bool is_pipeline = config->parallel.pipeline > 1;
    const bool is_bare = !t->wrap_one_rank && config->parallel.data == 1;
    if (option != NULL && !is_ddp && !is_bare) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%s is DistributedDataParallel's: torch.data_parallel "
                       "must be \"ddp\"",
                       option);
    }
    if (t->replicate &&
        (is_pipeline || t->no_sync || t->static_graph ||
         t->find_unused_parameters || config->torch_job.tree->n_styles > 0)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "torch.replicate = true with a pipeline, a "
                       "parallelize_plan, torch.no_sync, torch.static_graph or "
                       "torch.find_unused_parameters is not modelled");
    }
    if (is_ddp && config->torch_job.tree->is_meta && !t->replicate) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "module: device = \"meta\" with torch.data_parallel = "
                       "\"ddp\", whose parameters are sent when it is made: "
                       "the model must be on the device");
    }
    if (is_ddp && t->no_sync && is_pipeline) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "torch.no_sync = true with parallel.pipeline = %d: a "
                       "stage runs in no_sync() until its last micro-batch's "
                       "backward anyway, leave it false",
                       (int)config->parallel.pipeline);
    }
    if (is_ddp && t->static_graph && (t->no_sync || is_pipeline)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "torch.static_graph = true with %s: PyTorch 2.11 fails, "
                       "since its first backward reduces though it runs in "
                       "no_sync(); leave it false",
                       t->no_sync ? "torch.no_sync = true"
                                  : "parallel.pipeline over 1");
    }
    if (!t->zero_grad_set_to_none &&
        (t->data_parallel == ME_DATA_PARALLEL_FULLY_SHARD ||
         config->torch_job.tree->n_styles > 0)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "torch.zero_grad_set_to_none = false with fully_shard "
                       "or a parallelize_plan is not modelled, true is");
    }
    return ME_OK;
}

/** Options of fully_shard() where there is none, and copies that do not divide
 *  the ranks. */
static me_status check_sharding(const me_config *config, me_diag *diag)
{
    const me_torch_options *t = &config->torch;
    const bool is_sharded = t->data_parallel == ME_DATA_PARALLEL_FULLY_SHARD;
    if (!is_sharded &&
        (t->data_parallel_replicate > 1 || t->data_parallel_shard > 0 ||
         t->cpu_offload || !t->requires_gradient_sync ||
         !t->requires_all_reduce)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "torch.data_parallel_replicate, data_parallel_shard, "
                       "torch.cpu_offload, torch.requires_gradient_sync and "
                       "torch.requires_all_reduce are fully_shard's: "
                       "torch.data_parallel must be \"fully_shard\"");
    }
    if (config->parallel.data % t->data_parallel_replicate != 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "torch.data_parallel_replicate = %d does not divide the "
                       "%d ranks of a batch",
                       (int)t->data_parallel_replicate,
                       (int)config->parallel.data);
    }
    if (t->data_parallel_shard > 0 &&
        (int64_t)t->data_parallel_shard * t->data_parallel_replicate !=
            config->parallel.data) {
        return me_fail(
            diag, ME_ERR_CONFIG,
            "torch.data_parallel_shard = %d in %d copies, and %d "
            "ranks of parallel.world_size = %d are of a batch",
            (int)t->data_parallel_shard, (int)t->data_parallel_replicate,
            (int)config->parallel.data, (int)config->parallel.world_size);
    }
    if (is_sharded && !t->wrap_one_rank && t->data_parallel_replicate > 1 &&
        config->parallel.data == t->data_parallel_replicate) {
        return me_fail(
            diag, ME_ERR_CONFIG,
            "torch.data_parallel_replicate = %d copies of one shard: "
            "torchtitan has DDP with buckets of 100 MB there, as with "
            "data_parallel_shard_degree = 1",
            (int)t->data_parallel_replicate);
    }
    if (!t->requires_all_reduce && t->data_parallel_replicate == 1) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "torch.requires_all_reduce = false needs copies: "
                       "torch.data_parallel_replicate over 1");
    }
    return ME_OK;
}

me_status me_torch_check_parallel(const me_config *config, me_diag *diag)
{
    const me_parallel_config *p = &config->parallel;
    const me_data_parallel wrapper = config->torch.data_parallel;
    if (p->context > 1 || p->expert > 1) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "framework = \"torch\": parallel.context and "
                       "parallel.expert are not modelled, leave them 1");
    }
    if (p->world_size != p->data * p->pipeline * p->tensor) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "parallel.tensor = %d x parallel.pipeline = %d does not "
                       "divide parallel.world_size = %d",
                       (int)p->tensor, (int)p->pipeline, (int)p->world_size);
    }
    me_status status = check_plan(config, diag);
    if (status == ME_OK) {
        status = check_fused(config, diag);
    }
    if (status != ME_OK) {
        return status;
    }
    if (wrapper == ME_DATA_PARALLEL_NONE && p->data > 1) {
        return me_fail(
            diag, ME_ERR_CONFIG,
            "%d ranks and parallel.pipeline = %d x parallel.tensor = "
            "%d leave %d copies of the model: torch.data_parallel "
            "must say what they are",
            (int)p->world_size, (int)p->pipeline, (int)p->tensor, (int)p->data);
    }
    const me_status ddp = check_ddp(config, diag);
    return ddp == ME_OK ? check_sharding(config, diag) : ddp;
}
