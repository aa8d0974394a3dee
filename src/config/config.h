/**
 * @file
 * A job's life (its structs are model/job.h's): made once with defaults, filled
 * by the readers of this folder, derived and checked, and read-only for every
 * later stage.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_CONFIG_H
#define MEMEST_CONFIG_CONFIG_H

#include "base/status.h"
#include "model/job.h"

/**
 * A job with Megatron-LM's defaults and nothing else set. Local.
 *
 * @return the job, to be destroyed by the caller; NULL without memory
 */
me_config *me_config_create(void) ME_MUST_CHECK;

/** Give back a job and all its text; NULL is allowed. Local. */
void me_config_destroy(me_config *config);

/**
 * A copy to vary. Copy before me_config_finish(), because a finished job has
 * its derived values fixed. Local.
 *
 * @return the copy, owned by the caller; NULL without memory
 */
me_config *me_config_clone(const me_config *config) ME_MUST_CHECK;

/**
 * Fill in what is derived, as Megatron-LM does, and check the whole: the last
 * step, after which the job is read-only. Local.
 *
 * @param config         what was read and set; on failure only good for
 *                       me_config_destroy()
 * @param num_processes  MPI processes; they decide the world size when nothing
 *                       else does and there is more than one
 * @param diag           names options, values and the rule they break
 * @return ME_OK, ME_ERR_CONFIG or ME_ERR_NOMEM
 */
me_status me_config_finish(me_config *config, int32_t num_processes,
                           me_diag *diag) ME_MUST_CHECK;

/**
 * Add one sentence to the assumptions of a finished job, for what a later stage
 * decides. Local.
 *
 * @return ME_OK, or ME_ERR_NOMEM
 */
me_status me_config_assume(me_config *config, me_diag *diag, const char *format,
                           ...) ME_MUST_CHECK ME_PRINTF(3, 4);

/**
 * As me_config_assume(), for what is assumed since nobody gave some options: a
 * dump, which gives all of them, has the sentence with their values, and is read
 * with it as long as they stay. Once it is there it is not added again. Local.
 *
 * @param options  their names with single blanks between, the one that is assumed
 *                 first
 * @return ME_OK, or ME_ERR_NOMEM
 */
me_status me_config_assume_of(me_config *config, const char *options,
                              me_diag *diag, const char *format,
                              ...) ME_MUST_CHECK ME_PRINTF(4, 5);

/**
 * Add to what is not modelled of a job; the texts are copied. Local.
 *
 * @param name    of a flag, an option or an environment variable
 * @param note    one phrase, or NULL
 * @param effect  of a job that has it on the numbers
 * @return ME_OK, or ME_ERR_NOMEM
 */
me_status me_config_add_not_modelled(me_config *config, const char *name,
                                     const char *note, me_effect effect,
                                     me_diag *diag) ME_MUST_CHECK;

/** Value of a variable of the launch command's environment, borrowed; NULL if
 * it is not there or its value is not known. Local. */
const char *me_config_variable(const me_config *config, const char *name);

/**
 * For `--strict`: refuse a finished job of which something is not modelled that
 * is more than buffers and workspaces (ME_REACH_SMALL).
 * Local.
 *
 * @return ME_OK; ME_ERR_CONFIG with the names in @p diag
 */
me_status me_config_check_strict(const me_config *config,
                                 me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_CONFIG_H */
