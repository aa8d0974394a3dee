/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/framework.h"

#include "config/config_private.h"

#include <string.h>

const me_framework_rules *me_framework_rules_of(me_framework framework)
{
    static const me_framework_rules *const rules[] = {
        [ME_FRAMEWORK_MEGATRON] = &me_megatron_rules,
        [ME_FRAMEWORK_TORCH] = &me_torch_rules,
    };
    return rules[framework];
}

const me_framework_traits *me_framework_traits_of(const me_config *config)
{
    static const me_framework_traits *const traits[] = {
        [ME_FRAMEWORK_MEGATRON] = &me_megatron_traits,
        [ME_FRAMEWORK_TORCH] = &me_torch_traits,
    };
    return traits[config->framework];
}

bool me_framework_is_foreign(me_framework framework, const char *option)
{
    const me_framework_rules *rules = me_framework_rules_of(framework);
    for (int i = 0; rules->options[i] != NULL; i++) {
        const char *known = rules->options[i];
        const size_t length = strlen(known);
        const bool is_group = known[length - 1] == '.';
        if (is_group ? strncmp(option, known, length) == 0
                     : strcmp(option, known) == 0) {
            return false;
        }
    }
    return true;
}

/** A value that nobody would look at must not be passed over. */
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
