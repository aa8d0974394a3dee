/**
 * @file
 * From what routers chose to what experts get: counts of a rank's own tokens, as
 * lines after `routed` have them, to those of its experts' rows.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_PLAN_ROUTED_COUNTS_H
#define MEMEST_PLAN_ROUTED_COUNTS_H

#include "plan/plan.h"

/** Rows that a rank's router makes of the tokens of a micro-batch, `K·T`: each
 *  goes to `K` experts. Local. */
uint64_t me_routed_rows(const me_config *config);

/** Say that no line of moe.tokens is of the place. Local. @return ME_ERR_CONFIG */
me_status me_routed_refuse_missing(const me_plan *plan,
                                   const me_routing_place *at, me_diag *diag);

/**
 * Of plan->routing, whose rows have the counts of all experts: what is dropped
 * beyond a capacity and what is padded follow, what leaves each rank becomes
 * `sent`, and rows become what reaches the experts of their rank from all ranks
 * that share these. Ranks that were measured alone got from the others what they
 * sent themselves.
 *
 * @return ME_OK; ME_ERR_CONFIG naming the line whose counts cannot be, or the
 *         place that none is of; ME_ERR_NOMEM
 */
me_status me_plan_receive_routed(me_plan *plan, me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_PLAN_ROUTED_COUNTS_H */
