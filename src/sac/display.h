/**
 * @file
 * What SACEstimator's display_modulewise_sac_stats() prints: of every module its
 * operations, and what each step of the greedy order gives up and costs.
 *
 * A set of numbers is printed in Python's order. That of a set of names changes
 * in Python from run to run; here it is that of the operations.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SAC_DISPLAY_H
#define MEMEST_SAC_DISPLAY_H

#include "base/str.h"
#include "sac/greedy.h"

/**
 * Append what is printed of one module. Local.
 *
 * @param greedy     its order
 * @param tabulates  as the package tabulate prints, which has six digits; else
 *                   with tabulators
 * @return ME_OK; ME_ERR_CONFIG where PyTorch divides by zero
 *         (me_sac_tradeoff_check()); ME_ERR_NOMEM
 */
me_status me_sac_display_append(me_str *text, const me_sac_stats *stats,
                                const me_sac_greedy *greedy, bool tabulates,
                                me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_SAC_DISPLAY_H */
