/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/private.h"

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

me_status me_config_assume_defaults(me_config *config, me_diag *diag)
{
    return assume_dtype(config, diag);
}
