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

/** The three steps of me_config_finish(). */
typedef struct me_framework_rules {
    /** Beginnings of the names of options that it does not look at; they must
     *  not be given. Ends with NULL. */
    const char *const *foreign;
    me_status (*derive)(me_config *config, int32_t num_processes,
                        me_diag *diag);
    me_status (*validate)(const me_config *config, me_diag *diag);
    /** List what of the job is not modelled. */
    me_status (*note)(me_config *config, me_diag *diag);
} me_framework_rules;

/** The rules of a framework; static. */
const me_framework_rules *me_framework_rules_of(me_framework framework);

/** Is an option one that the framework does not look at? */
bool me_framework_is_foreign(me_framework framework, const char *option);

/** Refuse options that were given and that the job's framework does not look
 *  at. */
me_status me_framework_check_foreign(const me_config *config,
                                     me_diag *diag) ME_MUST_CHECK;

/** Megatron-LM's rules (framework.c) and plain PyTorch's (torch.c). */
extern const me_framework_rules me_megatron_rules;
extern const me_framework_rules me_torch_rules;

#endif /* MEMEST_CONFIG_FRAMEWORK_H */
