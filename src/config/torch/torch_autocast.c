/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/torch/torch_autocast.h"

#include "config/config_private.h"
#include "config/framework.h"

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

me_status me_torch_check_autocast(const me_config *config, me_diag *diag)
{
    const char *what = config->torch.autocast < 0
                           ? NULL
                           : unmeasured_layer(&config->torch_job.tree->root);
    if (config->torch.autocast_backward &&
        (config->torch.autocast < 0 || config->parallel.pipeline == 1)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "torch.autocast_backward = true is modelled with "
                       "torch.autocast and parallel.pipeline over 1 alone");
    }
    return what == NULL
               ? ME_OK
               : me_fail(diag, ME_ERR_CONFIG,
                         "torch.autocast with %s is not modelled", what);
}

me_status me_torch_note_autocast(me_config *config, me_diag *diag)
{
    if (!config->torch.grad_scaler) {
        return ME_OK;
    }
    const me_status status = me_config_assume(
        config, diag,
        "all gradients are finite, so that the GradScaler skips no step; until "
        "the first that it does not skip there is no optimizer state");
    return status != ME_OK || config->parallel.pipeline == 1
               ? status
               : me_config_assume(
                     config, diag,
                     "the loss function scales what it returns, and ranks "
                     "without the last stage call "
                     "scaler._lazy_init_scale_growth_tracker(device) before "
                     "the first step, which PyTorch refuses otherwise");
}
