/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/framework.h"

#include "config/private.h"

#include <string.h>

static const char *const foreign_to_megatron[] = {"torch.", NULL};

static me_status check_megatron(const me_config *config, me_diag *diag)
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
    return me_config_validate(config, diag);
}

const me_framework_rules me_megatron_rules = {
    .foreign = foreign_to_megatron,
    .derive = me_config_derive,
    .validate = check_megatron,
    .note = me_config_note,
};

const me_framework_rules *me_framework_rules_of(me_framework framework)
{
    static const me_framework_rules *const rules[] = {
        [ME_FRAMEWORK_MEGATRON] = &me_megatron_rules,
        [ME_FRAMEWORK_TORCH] = &me_torch_rules,
    };
    return rules[framework];
}

bool me_framework_is_foreign(me_framework framework, const char *option)
{
    const me_framework_rules *rules = me_framework_rules_of(framework);
    for (int i = 0; rules->foreign[i] != NULL; i++) {
        if (strncmp(option, rules->foreign[i], strlen(rules->foreign[i])) ==
            0) {
            return true;
        }
    }
    return false;
}

/* A value that nobody would look at must not be passed over. */
me_status me_framework_check_foreign(const me_config *config, me_diag *diag)
{
    size_t count = 0;
    const me_option *options = me_options(&count);
    for (size_t i = 0; i < count; i++) {
        if (me_option_is_set(&options[i], config) &&
            me_framework_is_foreign(config->framework, options[i].name)) {
            return me_fail(
                diag, ME_ERR_CONFIG,
                "%s: a job of framework = \"%s\" has no such option",
                options[i].name,
                me_choice_word(me_framework_choices, (int)config->framework));
        }
    }
    return ME_OK;
}
