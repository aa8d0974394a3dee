/**
 * @file
 * What each framework derives from a job and asks of it: one row of functions
 * a framework, so that nobody else has to know which one a job is of.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_FRAMEWORK_H
#define MEMEST_CONFIG_FRAMEWORK_H

#include "config/config.h"
#include "parallel/pipeline_order.h"

/** What an option is about. It may be given all the same, since a file serves
 *  several jobs; where the job lacks it, a value other than the default is told
 *  to have no effect, so that nobody takes a number for what it is not. */
typedef struct me_option_need {
    const char *option; /**< or a group ("moe.", "a.b_"); the first that fits */
    bool (*holds)(const me_config *config);
    const char *needs; /**< the option, and its value, that the job lacks */
} me_option_need;

/** The three steps of me_config_finish(); every member is there. */
typedef struct me_framework_rules {
    /** The options that it looks at, names or groups ("device."); no other may
     *  be given. Ends with NULL. */
    const char *const *options;
    me_status (*derive)(me_config *config, int32_t num_processes,
                        me_diag *diag);
    me_status (*validate)(const me_config *config, me_diag *diag);
    /** List what of the job is not modelled. */
    me_status (*note)(me_config *config, me_diag *diag);
    const me_option_need *needs; /**< ends with an option of NULL */
} me_framework_rules;

/** What a framework answers about a finished job, to those who are no part of it
 *  and must not ask which framework it is; every member is there. */
typedef struct me_framework_traits {
    /** Does each rank of a batch step another part of the parameters? */
    bool (*shards_parameters)(const me_config *config);
    /** Does nothing but the norms of gradients tell the ranks of a tensor group
     *  apart, apart from what a stage's ends do? */
    bool (*has_twins)(const me_config *config);
    /** Why a step's time is not predicted; NULL: it is. */
    const char *(*untimed)(const me_config *config);
    /** Does a free that waits for the GPU move peaks (run/late.h)? */
    bool (*late_frees_matter)(const me_config *config);
    /** Does the host of a pipeline's rank wait for its sends and receives? */
    bool (*waits_for_transfers)(const me_config *config);
    /** What of the host's time no table has; static; NULL: nothing. */
    const char *(*host_lacks)(const me_config *config);
    /** Has it a function or loop for the job's pipeline that needs no order? */
    bool (*runs_without_order)(const me_config *config);
    /** Can it run @p order? @return ME_OK; ME_ERR_CONFIG, ME_ERR_UNSUPPORTED or
     *  ME_ERR_NOMEM */
    me_status (*check_order)(const me_config *config,
                             const me_pipeline_order *order, me_diag *diag);
    /** The order with all that it does between forwards and backwards.
     *  @return ME_OK, ME_ERR_NOMEM or what makes it impossible */
    me_status (*lower_order)(const me_pipeline_order *order, me_diag *diag,
                             me_pipeline_order **lowered_out);
    /** What it asks of the card that the job runs on, ten times its compute
     *  capability, and what is taken for granted of it.
     *  @return ME_OK, ME_ERR_CONFIG, ME_ERR_NOMEM */
    me_status (*check_card)(me_config *config, uint64_t compute_capability,
                            me_diag *diag);
    bool has_tokens; /**< a sample is tokens, as many as model.seq_length */
    bool has_module_hooks; /**< modules run hooks, on which PyTorch's own tools
                                stand */
} me_framework_traits;

/** The answers for a job; static. */
const me_framework_traits *me_framework_traits_of(const me_config *config);

/** The rules of a framework; static. */
const me_framework_rules *me_framework_rules_of(me_framework framework);

/** Is an option one that the framework does not look at? */
bool me_framework_is_foreign(me_framework framework, const char *option);

/** Refuse options that were given and that the job's framework does not look
 *  at. */
me_status me_framework_check_foreign(const me_config *config,
                                     me_diag *diag) ME_MUST_CHECK;

/** @name Rules and traits, in files of the framework's name
 *  @{ */
extern const me_framework_rules me_megatron_rules;
extern const me_framework_rules me_torch_rules;
extern const me_framework_traits me_megatron_traits;
extern const me_framework_traits me_torch_traits;
/** @} */

#endif /* MEMEST_CONFIG_FRAMEWORK_H */
