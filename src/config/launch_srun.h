/**
 * @file
 * How many tasks srun starts: its options, those of the allocation that it runs
 * in, or what it makes of GPUs where it allocates by itself.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_LAUNCH_SRUN_H
#define MEMEST_CONFIG_LAUNCH_SRUN_H

#include "config/launch_ranks.h"

/** What an srun starts: its options, or the allocation's where it has none. The
 *  job's number of tasks counts unless srun has -n, or -N with a number of tasks
 *  of a node from anywhere (_opt_verify() of srun). Local. */
me_rank_counts me_srun_step(const me_launch_ranks *ranks);

/**
 * Settle the tasks of an srun that says GPUs. Where it says nothing else and
 * allocates by itself it starts one on each node, of which nobody knows how many
 * there are: that leaves the world open. Local.
 *
 * @return ME_OK; ME_ERR_CONFIG for numbers that Slurm refuses; ME_ERR_NOMEM
 */
me_status me_srun_settle(me_launch_ranks *ranks, me_config *config,
                         me_diag *diag) ME_MUST_CHECK;

/** Leave the world open where an srun has the job's number of tasks, and memest
 *  runs in a step of one task, which is not told that number. Local. */
me_status me_srun_settle_step(me_launch_ranks *ranks, me_config *config,
                              me_diag *diag) ME_MUST_CHECK;

/** Say where versions of Slurm start other numbers of tasks, where an option does
 *  not count, and where fewer tasks than GPUs are started. Local. */
me_status me_srun_say_tasks(me_launch_ranks *ranks, me_config *config,
                            me_diag *diag) ME_MUST_CHECK;

/**
 * Ranks of a node, by numbers of ranks and nodes alone. Slurm deals tasks out to
 * the nodes of a step in turn to see how many each one gets (its
 * _task_layout_block()), Flux as well; mpirun fills the slots that Slurm's tasks
 * are. Local.
 *
 * @return 0: nobody says so, or nodes have not as many each
 */
uint64_t me_shared_ranks(const me_launch_ranks *ranks);

#endif /* MEMEST_CONFIG_LAUNCH_SRUN_H */
