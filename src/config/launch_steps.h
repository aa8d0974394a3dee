/**
 * @file
 * How many ranks the launchers of other batch systems than Slurm start: IBM's
 * jsrun, Flux's `flux run`, Cray's aprun, LSF's blaunch.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_LAUNCH_STEPS_H
#define MEMEST_CONFIG_LAUNCH_STEPS_H

#include "config/rank_counts.h"
#include "config/wrappers.h"

/** What their options say besides numbers of ranks and nodes; 0, NULL: nothing. */
typedef struct me_launch_steps {
    me_wrapper_kind kind;  /**< ME_WRAPPER_PLAIN: none of them is used */
    uint64_t sets;         /**< jsrun's resource sets */
    uint64_t per_set;      /**< tasks of a set */
    uint64_t sets_of_host; /**< of a node */
    const char *unread;    /**< an option that says ranks, and is not read,
                                borrowed */
} me_launch_steps;

/**
 * Settle the ranks of such a launcher; none that is known leaves the world open.
 * Local.
 *
 * @param counts  its numbers; set
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status me_launch_steps_settle(const me_launch_steps *steps,
                                 me_rank_counts *counts, me_config *config,
                                 me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_LAUNCH_STEPS_H */
