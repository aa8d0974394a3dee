/**
 * @file
 * Which operations of a module a selective checkpoint saves under a budget of
 * memory, so that the least time is spent on making the others again
 * (torch/distributed/_tools/sac_ilp.py,
 * get_optimal_checkpointing_policy_per_module). PyTorch lets its solver stop
 * within 5 % of the optimum; this is the optimum.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SAC_POLICY_H
#define MEMEST_SAC_POLICY_H

#include "sac/stats.h"

/**
 * Decide for every operation of @p stats. Local.
 *
 * What is view-like is not saved; random operations are all saved or none, under
 * stores_random all; an operation in place goes with the one it works on, or is
 * saved where there is none. What takes neither memory nor time is not saved
 * unless it must be.
 *
 * @param budget           part of the module's memory, 0 to 1; rounded up to
 *                         bytes
 * @param saves_out        n_ops answers; the caller's
 * @param is_feasible_out  false: no choice keeps to the rules and the budget,
 *                         for which PyTorch returns an empty list
 * @return ME_OK; ME_ERR_CONFIG for a budget outside of 0 to 1, for which PyTorch
 *         raises ValueError; ME_ERR_NOMEM
 */
me_status me_sac_policy(const me_sac_stats *stats, double budget,
                        bool *saves_out, bool *is_feasible_out,
                        me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_SAC_POLICY_H */
