/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/torch/torch_settings.h"

#include "config/config_private.h"

/** torch/optim/adamw.py */
static const double adamw_weight_decay = 0.01;

void me_torch_derive_optimizer(me_config *config)
{
    me_optimizer_config *o = &config->optimizer;
    if (!me_config_is_set(config, "optimizer.kind")) {
        o->kind = ME_OPTIMIZER_ADAMW;
    }
    if (!me_config_is_set(config, "optimizer.weight_decay")) {
        o->weight_decay =
            o->kind == ME_OPTIMIZER_ADAMW ? adamw_weight_decay : 0;
    }
    if (!me_config_is_set(config, "optimizer.sgd_momentum")) {
        o->sgd_momentum = 0;
    }
    if (!me_config_is_set(config, "optimizer.clip_grad")) {
        o->clip_grad = 0; // a loop of one's own has none
    }
}

static me_status check_optimizer(const me_config *config, me_diag *diag)
{
    const me_optimizer_config *o = &config->optimizer;
    if (me_is_emerging_optimizer(o->kind)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "optimizer.kind = \"%s\" is Megatron-LM's: plain "
                       "PyTorch has adam, adamw and sgd here",
                       me_choice_word(me_optimizer_kind_choices, (int)o->kind));
    }
    if (o->sgd_momentum > 0 && o->kind != ME_OPTIMIZER_SGD) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "optimizer.sgd_momentum = %g is of optimizer.kind = "
                       "\"sgd\" alone",
                       o->sgd_momentum);
    }
    if (o->kind == ME_OPTIMIZER_ADAM && o->weight_decay > 0 &&
        config->torch_job.tree->n_styles > 0 &&
        config->torch.data_parallel == ME_DATA_PARALLEL_NONE) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "optimizer.weight_decay = %g with optimizer.kind = "
                       "\"adam\" and parallelize_plan is not modelled; 0 is, "
                       "and \"adamw\"",
                       o->weight_decay);
    }
    return ME_OK;
}

/** The first module that fully_shard() is called for; NULL: none. */
// NOLINTNEXTLINE(misc-no-recursion): as deep as the tree
static const me_layer_spec *first_sharded(const me_layer_spec *layer)
{
    const me_layer_spec *first =
        layer->is_sharded || layer->keeps_unsharded ? layer : NULL;
    for (uint32_t i = 0; i < layer->n_children && first == NULL; i++) {
        first = first_sharded(&layer->children[i]);
    }
    return first;
}

/** What fully_shard() alone looks at. One rank whose model is not wrapped does
 *  not count: torchtitan leaves it as it is. */
static me_status check_sharding(const me_config *config, me_diag *diag)
{
    const me_torch_options *t = &config->torch;
    const bool is_bare = !t->wrap_one_rank && config->parallel.data == 1;
    if (t->data_parallel == ME_DATA_PARALLEL_FULLY_SHARD || is_bare) {
        return ME_OK;
    }
    const char *option = !t->reshard_after_forward
                             ? "torch.reshard_after_forward"
                         : t->param_dtype >= 0  ? "torch.param_dtype"
                         : t->reduce_dtype >= 0 ? "torch.reduce_dtype"
                                                : NULL;
    const me_layer_spec *layer = first_sharded(&config->torch_job.tree->root);
    if (option == NULL && layer == NULL) {
        return ME_OK;
    }
    if (option != NULL) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%s is fully_shard's: torch.data_parallel must be "
                       "\"fully_shard\"",
                       option);
    }
    return me_fail_at(diag, ME_ERR_CONFIG, layer->where, layer->line,
                      "module %s: %s: torch.data_parallel must be "
                      "\"fully_shard\"",
                      layer->name[0] == '\0' ? "(root)" : layer->name,
                      layer->is_sharded ? "fully_shard = true"
                                        : "reshard_after_forward = false");
}

/** Who does not call modules of a model. */
static me_status check_called(const me_config *config, me_diag *diag)
{
    const char *path = config->torch.called_module;
    if (path[0] == '\0') {
        return ME_OK;
    }
    if (config->parallel.pipeline > 1) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "torch.called_module = \"%s\" with parallel.pipeline = "
                       "%d: a pipeline's schedule calls whole stages; it is of "
                       "jobs without a pipeline",
                       path, (int)config->parallel.pipeline);
    }
    if (config->torch.data_parallel == ME_DATA_PARALLEL_DDP) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "torch.called_module = \"%s\" with torch.data_parallel "
                       "= \"ddp\": DistributedDataParallel reduces gradients "
                       "of its own forward alone; \"fully_shard\" does of a "
                       "module's",
                       path);
    }
    return ME_OK;
}

me_status me_torch_check_settings(const me_config *config, me_diag *diag)
{
    if (config->time.loader != ME_LOADER_NONE) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "time.loader = \"mock_gpt\": it is Megatron-LM's, and a "
                       "job of framework = \"torch\" has \"none\"");
    }
    if (!config->torch.pin_memory && !config->torch.cpu_offload) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "torch.pin_memory = false is CPUOffloadPolicy's: "
                       "torch.cpu_offload must be true");
    }
    if (config->torch.keeps_last_output &&
        (!config->torch.keeps_output || config->parallel.pipeline > 1)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "torch.keeps_last_output is of a loop that names the "
                       "model's output: torch.keeps_output must be true, and "
                       "parallel.pipeline 1");
    }
    me_status status = check_optimizer(config, diag);
    if (status == ME_OK) {
        status = check_called(config, diag);
    }
    return status == ME_OK ? check_sharding(config, diag) : status;
}
