/**
 * @file
 * What the shell that memest runs in says of a job that would be launched from
 * it: variables that reach every process, and, inside of a job of Slurm's, the
 * allocation.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_APP_EXPORTED_H
#define MEMEST_APP_EXPORTED_H

#include "base/arena.h"
#include "base/status.h"
#include "config/config.h"

/**
 * In a step of Slurm's set SLURM_NTASKS and its like, in this process, to what
 * they are in the job that the step is of. A step of one task that is not told
 * how many the job has is left without: who counts on it says so. Local.
 */
void me_exported_restore_job(void);

/**
 * NAME=VALUE of all that can matter: variables of PyTorch, NCCL and Transformer
 * Engine, and Slurm's inside of a job. Local.
 *
 * @param of_srun        does the command start srun, which takes its options from
 *                       Slurm's variables outside of a job, too?
 * @param variables_out  of the arena, its texts borrowed from the environment
 * @return ME_OK or ME_ERR_NOMEM
 */
me_status me_exported_find(me_arena *arena, bool of_srun, me_diag *diag,
                           const char *const **variables_out,
                           int *count_out) ME_MUST_CHECK;

/**
 * Say of a job which of its variables are what this shell exports. Local.
 *
 * @param words   NAME=VALUE, @p count of them, that the job was read with
 * @return ME_OK or ME_ERR_NOMEM
 */
me_status me_exported_say(const char *const *words, int count,
                          me_config *config, me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_APP_EXPORTED_H */
