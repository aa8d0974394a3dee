/**
 * @file
 * Which layers of a planned job have experts, and how many tokens they get:
 * read, and held against the plan.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_PLAN_TOKEN_COUNTS_H
#define MEMEST_PLAN_TOKEN_COUNTS_H

#include "plan/plan.h"

/**
 * Fill in the plan's `is_moe_layer` and `routing`; nothing without experts.
 *
 * @param plan  has its grid and its split of layers
 * @return ME_OK; ME_ERR_CONFIG or ME_ERR_IO saying what is wrong; ME_ERR_NOMEM
 */
me_status me_plan_route(me_plan *plan, me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_PLAN_TOKEN_COUNTS_H */
