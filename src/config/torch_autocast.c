/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/torch_autocast.h"

#include "config/framework.h"
#include "config/private.h"

/** Layers whose kernels under autocast nobody has measured; NULL: none. */
// NOLINTNEXTLINE(misc-no-recursion): as deep as the tree
static const char *unmeasured_layer(const me_layer_spec *layer)
{
    const char *found =
        layer->kind == ME_LAYER_CONV2D || layer->kind == ME_LAYER_BATCH_NORM2D
            ? me_layer_kind_name(layer->kind)
            : NULL;
    for (uint32_t i = 0; i < layer->n_children && found == NULL; i++) {
        found = unmeasured_layer(&layer->children[i]);
    }
    return found;
}

/** What a GradScaler does not go with; NULL: nothing. */
static const char *scaler_not_with(const me_config *config)
{
    if (config->parallel.pipeline > 1) {
        return "parallel.pipeline over 1";
    }
    if (config->torch.cpu_offload) {
        return "torch.cpu_offload";
    }
    if (config->torch.loss_parallel) {
        return "torch.loss_parallel";
    }
    return config->torch_job.tree->n_styles > 0 &&
                   config->torch.data_parallel == ME_DATA_PARALLEL_DDP
               ? "a parallelize_plan in DistributedDataParallel"
               : NULL;
}

/** What autocast does not go with; NULL: nothing. */
static const char *autocast_not_with(const me_config *config)
{
    const me_torch_options *t = &config->torch;
    if (config->parallel.pipeline > 1 &&
        (t->data_parallel != ME_DATA_PARALLEL_NONE ||
         config->parallel.tensor > 1)) {
        return "fully_shard, DistributedDataParallel or a parallelize_plan in "
               "pipeline stages";
    }
    return unmeasured_layer(&config->torch_job.tree->root);
}

static me_status check(const char *option, const char *what, me_diag *diag)
{
    return what == NULL ? ME_OK
                        : me_fail(diag, ME_ERR_CONFIG,
                                  "%s with %s is not modelled", option, what);
}

me_status me_torch_check_autocast(const me_config *config, me_diag *diag)
{
    const me_torch_options *t = &config->torch;
    me_status status = ME_OK;
    if (t->grad_scaler) {
        status = check("torch.grad_scaler", scaler_not_with(config), diag);
    }
    if (status == ME_OK && t->autocast >= 0) {
        status = check("torch.autocast", autocast_not_with(config), diag);
    }
    return status;
}

me_status me_torch_note_autocast(me_config *config, me_diag *diag)
{
    return !config->torch.grad_scaler
               ? ME_OK
               : me_config_assume(
                     config, diag,
                     "all gradients are finite, so that the GradScaler skips "
                     "no step; until the first that it does not skip there is "
                     "no optimizer state");
}
