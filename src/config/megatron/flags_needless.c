/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/config_private.h"
#include "config/megatron/megatron_arguments.h"

#include <string.h>

/** At a value that is as if the flag were not there. */
static bool is_idle(const me_flag_use *use)
{
    return use->flag.rule->option != NULL && me_flag_use_is_neutral(use);
}

/** A flag that memest models and the job has no use for, since the flag that
 *  it is about is missing (or excludes it). */
static bool is_needless(const me_flag_uses *uses, const me_flag_use *use)
{
    return use->flag.rule != NULL && use->flag.kind == ME_FLAG_MODELLED &&
           !use->is_repeated && !is_idle(use) &&
           !me_flag_needs_hold(uses, use->flag.rule->needs);
}

static bool needs_the_same(const me_flag_uses *uses, int i, int j)
{
    return is_needless(uses, &uses->uses[j]) &&
           strcmp(uses->uses[i].flag.rule->needs,
                  uses->uses[j].flag.rule->needs) == 0;
}

static bool is_first(const me_flag_uses *uses, int i)
{
    for (int j = 0; j < i; j++) {
        if (needs_the_same(uses, i, j)) {
            return false;
        }
    }
    return true;
}

/** `--a --b` as "without --a or --b". */
static void append_need(me_str *text, const char *needs)
{
    const bool is_negated = needs[0] == '!';
    me_str_append(text, is_negated ? " with " : " without ");
    for (const char *c = needs + is_negated; *c != '\0'; c++) {
        if (*c == ' ') {
            me_str_append(text, " or ");
        } else {
            me_str_append_n(text, c, 1);
        }
    }
}

/** One line for all flags that lack the same. */
static me_status tell(me_config *config, const me_flag_uses *uses, int i,
                      me_diag *diag)
{
    me_str text = {0};
    int count = 0;
    for (int j = i; j < uses->count; j++) {
        if (needs_the_same(uses, i, j)) {
            me_str_append(&text, count == 0 ? "" : ", ");
            me_str_append(&text, uses->uses[j].name);
            count++;
        }
    }
    me_str_append(&text, count == 1 ? " has no effect" : " have no effect");
    append_need(&text, uses->uses[i].flag.rule->needs);
    me_status status = me_str_status(&text);
    if (status == ME_OK) {
        status = me_config_assume(config, diag, "%s", me_str_text(&text));
    }
    me_str_fini(&text);
    return status;
}

me_status me_megatron_note_needless(me_config *config, const me_flag_uses *uses,
                                    me_diag *diag)
{
    me_status status = ME_OK;
    for (int i = 0; status == ME_OK && i < uses->count; i++) {
        if (is_needless(uses, &uses->uses[i]) && is_first(uses, i)) {
            status = tell(config, uses, i, diag);
        }
    }
    return status;
}
