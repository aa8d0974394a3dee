/**
 * @file
 * A job's step under fixed durations of its actions, in place of predicted
 * times: what `memest compare --durations` compares.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_RUN_TICKS_STEP_H
#define MEMEST_RUN_TICKS_STEP_H

#include "parallel/timeline.h"
#include "plan/plan.h"
#include "time/pipeline_step.h"

/**
 * Run the pipeline's order. Durations are of a rank's whole share of the
 * layers: an action of one of its c chunks takes a c-th, so that schedules with
 * other chunks do the same work. Nothing but the pipeline is in the step. Local.
 *
 * @param step_out  a tick is ME_COMPARE_TICK_NS; to be given back with
 *                  me_step_time_destroy()
 * @return ME_OK; ME_ERR_CONFIG if ranks wait for each other for ever;
 *         ME_ERR_NOMEM
 */
me_status me_ticks_step_create(const me_plan *plan, const me_ticks *durations,
                               me_diag *diag,
                               me_step_time **step_out) ME_MUST_CHECK;

#endif /* MEMEST_RUN_TICKS_STEP_H */
