/* SPDX-License-Identifier: BSD-3-Clause */
/* Flags that stop a job: unknown ones, those of earlier versions, and those that
 * Megatron-LM knows only to stop at them. */
#include "config/config_private.h"
#include "config/megatron/megatron_arguments.h"

static me_status fail_unknown(const me_flag_use *use, me_diag *diag)
{
    size_t length = 0;
    const char *nearest = me_flag_nearest(use->name, &length);
    return me_fail(diag, ME_ERR_CONFIG,
                   "%.80s: Megatron-LM core_v0.19.0 has no such flag%s%.*s%s; "
                   "--unknown warn goes on without it",
                   use->name, nearest == NULL ? "" : " (did you mean ",
                   (int)length, nearest == NULL ? "" : nearest,
                   nearest == NULL ? "" : "?)");
}

/** Is it a flag that Megatron-LM stops at, and no fork's beside it? */
static bool is_refused(const me_flag_uses *uses, const me_flag_use *use)
{
    const me_flag_rule *rule = use->flag.rule;
    return rule != NULL && use->flag.kind == ME_FLAG_REFUSED &&
           (rule->needs == NULL || !me_flag_needs_hold(uses, rule->needs));
}

me_status me_megatron_refuse_flags(const me_config *config,
                                   const me_flag_uses *uses, me_diag *diag)
{
    for (int i = 0; i < uses->count; i++) {
        const me_flag_use *use = &uses->uses[i];
        if (use->flag.rule == NULL && !config->own->takes_unknown) {
            return fail_unknown(use, diag);
        }
        if (use->flag.rule != NULL && use->flag.kind == ME_FLAG_REMOVED &&
            !me_flag_use_is_neutral(use) && !config->own->takes_unknown) {
            return me_fail(diag, ME_ERR_CONFIG,
                           "%s: Megatron-LM core_v0.19.0 has no such flag: %s; "
                           "--unknown warn goes on without it",
                           use->name, use->flag.rule->note);
        }
        if (is_refused(uses, use)) {
            return me_fail(diag, ME_ERR_CONFIG,
                           "%s: Megatron-LM refuses this flag: %s", use->name,
                           use->flag.rule->note);
        }
    }
    return ME_OK;
}
