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

/** What autocast, a GradScaler or either does not go with; NULL: nothing. */
static const char *not_with(const me_config *config)
{
    const me_torch_options *t = &config->torch;
    const me_layer_tree *tree = config->torch_job.tree;
    if (config->parallel.pipeline > 1) {
        return "parallel.pipeline over 1";
    }
    if (t->grad_scaler && t->cpu_offload) {
        return "torch.cpu_offload";
    }
    if (t->grad_scaler && t->loss_parallel) {
        return "torch.loss_parallel";
    }
    if (t->autocast < 0) {
        return NULL;
    }
    if (tree->n_styles > 0) {
        return "a parallelize_plan";
    }
    return unmeasured_layer(&tree->root);
}

me_status me_torch_check_autocast(const me_config *config, me_diag *diag)
{
    const me_torch_options *t = &config->torch;
    const bool is_used = t->autocast >= 0 || t->grad_scaler;
    const char *what = is_used ? not_with(config) : NULL;
    return what == NULL
               ? ME_OK
               : me_fail(diag, ME_ERR_CONFIG, "%s with %s is not modelled",
                         t->grad_scaler ? "torch.grad_scaler"
                                        : "torch.autocast",
                         what);
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
