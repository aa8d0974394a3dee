/**
 * @file
 * How many ranks a script has that no launcher starts: what memest, or the script
 * around it, runs in says it. Megatron-LM itself reads WORLD_SIZE alone, which goes
 * before it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_LAUNCH_ALONE_H
#define MEMEST_CONFIG_LAUNCH_ALONE_H

#include "config/config.h"
#include "config/rank_counts.h"

#include <stdbool.h>
#include <stdint.h>

/** All zero: nothing is known. */
typedef struct me_launch_alone {
    bool is_in_slurm;         /**< a variable of Slurm's is set */
    bool is_empty;            /**< WORLD_SIZE is set, and says nothing */
    uint64_t mpi_tasks;       /**< of the mpirun around; 0: there is none */
    const char *mpi_variable; /**< which says so, static; NULL: none */
    const char *wrong;        /**< the first variable that must say a number and
                                   does not, borrowed; NULL: none */
    const char *wrong_value;  /**< of it, borrowed */
} me_launch_alone;

/** Is it one whose reader stops, or has no ranks, where it is set and empty? */
bool me_launch_needs_number(const char *name);

/** Take a variable that a starter of MPI's sets for its processes; note one of
 *  Slurm's. @return false: it says no number by itself */
bool me_launch_alone_variable(me_launch_alone *alone, const char *name,
                              const char *value);

/** Take a number that a variable says; one that is none is kept as wrong. An empty
 *  one says nothing. Local.
 *
 *  @param count_out  set where it is a number of at most ME_RANKS_MOST */
void me_launch_alone_count(me_launch_alone *alone, const char *name,
                           const char *value, uint64_t *count_out);

/** Leave the world open if a variable was wrong. Local.
 *
 *  @return ME_OK or ME_ERR_NOMEM */
me_status me_launch_alone_say_wrong(const me_launch_alone *alone,
                                    me_config *config,
                                    me_diag *diag) ME_MUST_CHECK;

/**
 * Say what the world is if nobody gives parallel.world_size. In a step the script
 * is started as often as the step has tasks. In a batch script it is started once,
 * whatever the job's tasks: the world is left open there. Local.
 *
 * @param step_tasks  of the step that memest runs in; 0: it runs in none
 * @param job         of Slurm's job or of another batch system's
 * @return ME_OK or ME_ERR_NOMEM
 */
me_status me_launch_alone_settle(const me_launch_alone *alone,
                                 uint64_t step_tasks, const me_rank_counts *job,
                                 me_config *config,
                                 me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_LAUNCH_ALONE_H */
