/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/megatron/megatron_rules.h"

/* What moves the numbers most, nothing gives and a report has to say. */

/** Type of training. Megatron-LM's own is float32, which a launch command means by
 *  silence; another is a default of a model's file. */
static me_status assume_dtype(me_config *config, me_diag *diag)
{
    const me_dtype dtype = config->train.params_dtype;
    if (me_config_is_set(config, "train.params_dtype") ||
        dtype == ME_DTYPE_FLOAT32) {
        return ME_OK;
    }
    return me_config_assume(
        config, diag,
        "parameters are %s, since nothing gives the type of training "
        "(train.params_dtype); the model's file says at most how its "
        "checkpoint is stored",
        me_choice_title(me_params_dtype_choices, (int)dtype));
}

/** A launch command means by silence what Megatron-LM takes; a file may leave it to
 *  the command that is not there. */
static me_status assume_implementation(me_config *config, me_diag *diag)
{
    if (config->own->has_launch ||
        me_config_is_set(config, "impl.transformer") ||
        me_config_is_set(config, "impl.core_attention")) {
        return ME_OK;
    }
    return me_config_assume(
        config, diag,
        "layers are Transformer Engine's with core attention %s, Megatron-LM's "
        "defaults, since nothing says otherwise (impl.transformer, "
        "impl.core_attention)",
        me_choice_title(me_core_attention_kind_choices,
                        (int)config->impl.core_attention));
}

/** Local layers' fused weight gradients hand autograd a dummy: that of
 *  Transformer Engine, kept, where it can be imported (HAVE_TE of
 *  tensor_parallel/layers.py). */
static me_status assume_dummy_gradients(me_config *config, me_diag *diag)
{
    if (!config->train.gradient_accumulation_fusion ||
        config->impl.transformer != ME_TRANSFORMER_LOCAL) {
        return ME_OK;
    }
    return me_config_assume(
        config, diag,
        "Apex and Transformer Engine are installed: weight gradients are fused, "
        "and one dummy of each weight's shape is kept "
        "(--no-gradient-accumulation-fusion: without)");
}

me_status me_config_assume_defaults(me_config *config, me_diag *diag)
{
    me_status status = assume_dtype(config, diag);
    if (status == ME_OK) {
        status = assume_implementation(config, diag);
    }
    return status == ME_OK ? assume_dummy_gradients(config, diag) : status;
}
