/* SPDX-License-Identifier: BSD-3-Clause */
#include "search/bound.h"

#include "search/rules.h"

/** May what is left out of the job make it smaller than is simulated? */
static bool may_be_smaller(const me_config *config)
{
    for (int32_t i = 0; i < config->not_modelled.count; i++) {
        const me_reach lower = config->not_modelled.flags[i].effect.lower;
        if (lower != ME_REACH_NONE && lower != ME_REACH_SMALL) {
            return true;
        }
    }
    return false;
}

me_search_bound me_search_bound_of(const me_config *config,
                                   const me_job_card *card,
                                   const me_probe *probe)
{
    const me_probe nothing = {.forward_ns = 0};
    me_search_bound bound =
        me_search_rules_of(config->framework)
            ->bound(config, card, probe == NULL ? &nothing : probe);
    if (may_be_smaller(config)) {
        bound.bytes = 0;
    }
    if (!card->rates.is_known) {
        bound.step_ns = 0;
    }
    return bound;
}
