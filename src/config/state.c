/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/statement.h"
#include "config/config_private.h"
#include "config/framework.h"
#include "config/torch/tree.h"

#include <stdio.h>
#include <string.h>

/** An option whose value is a file's name, which may differ between hosts. */
static bool is_of_file(const me_option *option)
{
    return me_option_names_file(option) ||
           strcmp(option->name, "device.name") == 0;
}

static void state_option(const me_option *option, const me_config *config,
                         me_str *statement)
{
    me_str value = {0};
    me_option_format(option, config, &value);
    me_statement_add(statement, option->name, "%s", me_str_text(&value));
    me_str_fini_piece(&value, statement);
}

/** The tree of modules, a fact a line of it. */
static void state_layers(const me_config *config, me_str *statement)
{
    me_str tree = {0};
    me_layers_dump(config->layers, &tree);
    int number = 0;
    for (const char *line = me_str_text(&tree); *line != '\0';) {
        char name[32];
        const size_t length = strcspn(line, "\n");
        (void)snprintf(name, sizeof name, "line %d of module", ++number);
        me_statement_add(statement, name, "%.*s", (int)length, line);
        line += length + (line[length] == '\n');
    }
    me_str_fini_piece(&tree, statement);
}

/** Names alone: the notes are memest's own. */
static void state_not_modelled(const me_config *config, me_str *statement)
{
    me_str names = {0};
    for (int32_t i = 0; i < config->not_modelled.count; i++) {
        me_str_printf(&names, "%s%s", i == 0 ? "" : " ",
                      config->not_modelled.flags[i].flag);
    }
    me_statement_add(statement, "what is not modelled", "%s",
                     me_str_text(&names));
    me_str_fini_piece(&names, statement);
}

void me_config_state(const me_config *config, me_str *statement)
{
    size_t count = 0;
    const me_option *options = me_options(&count);
    for (size_t i = 0; i < count; i++) {
        if (!me_framework_is_foreign(config->framework, options[i].name) &&
            !is_of_file(&options[i])) {
            state_option(&options[i], config, statement);
        }
    }
    if (config->layers != NULL) {
        state_layers(config, statement);
    }
    state_not_modelled(config, statement);
}
