/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/config_private.h"
#include "config/framework.h"

#include <string.h>

static bool is_of(const char *name, const char *row)
{
    const size_t n = strlen(row);
    return row[n - 1] == '.' || row[n - 1] == '_' ? strncmp(name, row, n) == 0
                                                  : strcmp(name, row) == 0;
}

/** What the option is about, if the job lacks it. */
static const char *missing_of(const me_config *config, const char *name)
{
    const me_option_need *row = me_framework_rules_of(config->framework)->needs;
    while (row->option != NULL && !is_of(name, row->option)) {
        row++;
    }
    return row->option == NULL || row->holds(config) ? NULL : row->needs;
}

static me_status tell(me_config *config, const me_option *option,
                      const char *needs, me_diag *diag)
{
    me_str value = {0};
    me_option_format(option, config, &value);
    me_status status = me_str_status(&value);
    if (status == ME_OK) {
        status = me_config_assume(config, diag,
                                  "%s = %.80s has no effect without %s",
                                  option->name, me_str_text(&value), needs);
    }
    me_str_fini(&value);
    return status;
}

me_status me_config_note_needless(me_config *config, me_diag *diag)
{
    size_t count = 0;
    const me_option *options = me_options(&count);
    me_status status = ME_OK;
    for (size_t i = 0; status == ME_OK && i < count; i++) {
        const char *needs = me_option_is_set(&options[i], config) &&
                                    !me_option_is_default(&options[i], config)
                                ? missing_of(config, options[i].name)
                                : NULL;
        if (needs != NULL) {
            status = tell(config, &options[i], needs, diag);
        }
    }
    return status;
}
