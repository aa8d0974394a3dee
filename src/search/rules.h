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

/** Of one kind of probe. */
typedef struct me_probe_rules {
    /** Does a candidate have one? NULL: none has. */
    bool (*has)(const me_config *job, const me_schedule_choice *choice,
                const me_variant *variant);
    /** Assignments that hold in all of them, whatever a candidate says; ends with
     *  NULL. */
    const char *const *sets;
    /** Make a job that is read, has the assignments and is not finished its own
     *  probe.
     *  @param n_layers  of a layer's; or what stands in its place */
    me_status (*set)(me_config *config, int32_t n_layers, me_diag *diag);
    /** Has a job layers beside those that a layer's probe is of? NULL: none has. */
    bool (*has_rest)(const me_config *job);
} me_probe_rules;

typedef struct me_search_rules {
    const me_space_axis_kind
        *axes; /**< in the order in which they are decided; ends
                                   with a name that is NULL */
    /** Lower bounds of a finished job; 0: none.
     *  @param probe  all zero: nothing is known */
    me_search_bound (*bound)(const me_config *config, const me_job_card *card,
                             const me_probe *probe);
    me_probe_rules probes[ME_PROBE_KINDS];
    /** Options that say no more than what its layers do, whose probe shows it; ends
     *  with NULL. */
    const char *const *like_options;
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

/** @name Layers beside those that a layer's probe is of: without experts, without a
 *        window; either
 *  @{ */
bool me_megatron_has_other_experts(const me_config *job);
bool me_megatron_has_other_windows(const me_config *job);
bool me_megatron_has_rest(const me_config *job);

/** @} */

/** Layers that a layer's probe is of. */
typedef struct me_megatron_alike {
    double of_stage; /**< that a stage has at least; where layers are not dealt
                          evenly, on the mean */
    double
        of_chunk; /**< that a chunk has at least; not dealt evenly: 0, as what
                          follows */
    double of_first; /**< of a chunk of the first stage */
    double of_last;  /**< of a chunk of the last one */
    bool is_last;    /**< the last of all is one */
} me_megatron_alike;

/** @param is_even  every stage has as many layers, in as many chunks */
me_megatron_alike me_megatron_count_alike(const me_config *config,
                                          bool is_even);
bool me_megatron_has_layer(const me_config *job,
                           const me_schedule_choice *choice,
                           const me_variant *variant);
me_status me_megatron_set_layer(me_config *config, int32_t n_layers,
                                me_diag *diag) ME_MUST_CHECK;
extern const char *const me_megatron_layer_sets[];
bool me_megatron_has_place(const me_config *job,
                           const me_schedule_choice *choice,
                           const me_variant *variant);
me_status me_megatron_set_place(me_config *config, int32_t n_layers,
                                me_diag *diag) ME_MUST_CHECK;
extern const char *const me_megatron_place_sets[];
extern const char *const me_megatron_like_options[];
/** @} */

#endif /* MEMEST_SEARCH_RULES_H */
