/**
 * @file
 * What each framework answers a search: one row of a framework, so that nobody
 * else has to know which one a job is of.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SEARCH_RULES_H
#define MEMEST_SEARCH_RULES_H

#include "search/bound.h"
#include "search/probe.h"
#include "search/space.h"

typedef struct me_search_rules {
    const me_space_axis_kind
        *axes; /**< in the order in which they are decided; ends
                                   with a name that is NULL */
    /** Lower bounds of a finished job; 0: none.
     *  @param probe  all zero: nothing is known */
    me_search_bound (*bound)(const me_config *config, const me_job_card *card,
                             const me_probe *probe);
    /** Does a job of such layers show what they take (probe.h)? */
    bool (*has_probe)(const me_config *job, const me_variant *variant);
    /** The options that set_probe() sets whatever they are; ends with NULL. */
    const char *const *probe_options;
    /** Make a job that is read and not finished its own probe. */
    me_status (*set_probe)(me_config *config, int32_t n_layers, me_diag *diag);
    bool has_flags; /**< of a launch command */
} me_search_rules;

/** The row of a framework; static. */
const me_search_rules *me_search_rules_of(me_framework framework);

/** @name Rows, in files of the framework's name
 *  @{ */
extern const me_search_rules me_megatron_search;
extern const me_search_rules me_torch_search;
/** @} */

/** @name Parts of Megatron-LM's row
 *  @{ */
extern const me_space_axis_kind me_megatron_axes[];
me_search_bound me_megatron_bound(const me_config *config,
                                  const me_job_card *card,
                                  const me_probe *probe);
bool me_megatron_has_probe(const me_config *job, const me_variant *variant);
me_status me_megatron_set_probe(me_config *config, int32_t n_layers,
                                me_diag *diag) ME_MUST_CHECK;
extern const char *const me_megatron_probe_options[];
/** @} */

#endif /* MEMEST_SEARCH_RULES_H */
