/**
 * @file
 * The step that an srun starts: what it asks for, of its words and of its job,
 * and the variables that Slurm sets for its first task. srun(1);
 * setup_env(), env_array_for_step().
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SCRIPT_SRUN_STEP_H
#define MEMEST_SCRIPT_SRUN_STEP_H

#include "script/batch.h"

#include <stdbool.h>

/** A step, of which words are read one by one; all zero: none was read. */
typedef struct me_step {
    me_batch said;    /**< by the words of the srun */
    bool says_gpus;   /**< GPUs among them */
    const char *name; /**< of the command that it starts, borrowed */
} me_step;

/** An option of the srun, by its whole name; @p value NULL: it has none. */
void me_step_take(me_step *step, const char *name, const char *value);

/**
 * Set the variables of the step, and, where the srun stands in no job, those of the
 * job that it makes for itself. What they were is kept for
 * me_step_variable_outside(). Numbers that nobody can tell stay as they are: who
 * reads the launch says what is wrong. Local.
 */
void me_step_set_variables(const me_step *step);

/** A job of its own begins, as of sbatch: nothing is outside of it. */
void me_step_forget(void);

/**
 * A variable of the environment, `NAME=VALUE`, as it was outside of all steps:
 * an srun's own words stand before the launch and say the rest.
 *
 * @return NULL: it was not there, or it is told under another name
 */
const char *me_step_variable_outside(const char *variable);

#endif /* MEMEST_SCRIPT_SRUN_STEP_H */
