/**
 * @file
 * The recorder of a simulated rank's times: where its groups lie on the nodes,
 * and what its data takes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_RUN_CLOCK_H
#define MEMEST_RUN_CLOCK_H

#include "plan/plan.h"
#include "run/job_card.h"
#include "time/recorder.h"

/**
 * A recorder for @p rank. Local.
 *
 * @param card          borrowed, as long as the recorder lives
 * @param recorder_out  owned by the caller; NULL if the card's rates are not
 *                      known
 * @return ME_OK or ME_ERR_NOMEM
 */
me_status me_clock_create(const me_plan *plan, const me_job_card *card,
                          int32_t rank, me_diag *diag,
                          me_time_recorder **recorder_out) ME_MUST_CHECK;

#endif /* MEMEST_RUN_CLOCK_H */
