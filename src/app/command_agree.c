/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/command_agree.h"

#include "app/cli_flag.h"
#include "app/operand_agree.h"
#include "base/statement.h"
#include "collectives/agreement.h"

#include <stdio.h>

#ifndef ME_VERSION
#    define ME_VERSION "unknown"
#endif

/** Flags of the job, which is compared itself, and of one process alone. */
static const char not_stated[] =
    " --model --set --world-size --memory-limit --alloc-conf --device "
    "--machine --threads --log-level --log-file ";

static void state_list(const char *name, const char *const *values,
                       int32_t count, me_str *statement)
{
    char numbered[64];
    for (int32_t i = 0; i < count; i++) {
        (void)snprintf(numbered, sizeof numbered, "%s number %d", name, i + 1);
        me_statement_add(statement, numbered, "%s", values[i]);
    }
}

static void state_text(const char *name, const char *text, me_str *statement)
{
    me_statement_add(statement, name, "%s", text == NULL ? "not given" : text);
}

static void state_flag(const me_cli *cli, const me_cli_flag *f,
                       me_str *statement)
{
    const void *at = (const char *)cli + f->offset;
    switch (f->kind) {
    case FLAG_TEXT:
    case FLAG_NAME:
    case FLAG_FORMAT:
        state_text(f->name, *(const char *const *)at, statement);
        break;
    case FLAG_NUMBER:
    case FLAG_COUNT:
        me_statement_add(statement, f->name, "%d", (int)*(const int32_t *)at);
        break;
    case FLAG_SWITCH:
        state_text(f->name, *(const bool *)at ? "given" : NULL, statement);
        break;
    case FLAG_SET: break;
    case FLAG_SCHEDULE:
        state_list(f->name, cli->schedules, cli->n_schedules, statement);
        break;
    case FLAG_VARIANT:
        state_list(f->name, cli->variants, cli->n_variants, statement);
        break;
    case FLAG_SPACE:
        state_list(f->name, cli->spaces, cli->n_spaces, statement);
        break;
    }
}

me_status me_cli_agree(me_transport *transport, const me_cli *cli,
                       me_diag *diag)
{
    me_str statement = {0};
    me_statement_add(&statement, "memest", "%s", ME_VERSION);
    me_statement_add(&statement, "the command", "%s", cli->command);
    state_text("the operand of the command", me_operand_word(cli), &statement);
    const me_cli_flag *f = NULL;
    for (int i = 0; (f = me_cli_flag_at(i)) != NULL; i++) {
        if (!me_cli_list_has(not_stated, f->name)) {
            state_flag(cli, f, &statement);
        }
    }
    const me_status status = me_statement_agree(transport, &statement, diag);
    me_str_fini(&statement);
    return status == ME_OK ? me_operand_files_agree(transport, cli, diag)
                           : status;
}
