/**
 * @file
 * What the processes of a job have to have in common, as statements that
 * collectives/agreement.h compares.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_RUN_AGREE_H
#define MEMEST_RUN_AGREE_H

#include "collectives/transport.h"
#include "plan/plan.h"
#include "run/job_card.h"

/**
 * Agree on what came of reading some input, as me_transport_agree() does; where
 * it is at fault on some processes alone, these are named. Collective.
 *
 * @param what    was read, such as "the job"
 * @param status  what came of it here, with its reason in @p diag
 * @return the agreed status; ME_ERR_MISMATCH where the processes read
 *         different things
 */
me_status me_input_agree(me_transport *transport, const char *what,
                         me_status status, me_diag *diag) ME_MUST_CHECK;

/** Have all processes read the same job? Its options, whatever files and flags they
 *  came from. Collective. */
me_status me_config_agree(me_transport *transport, const me_config *config,
                          me_diag *diag) ME_MUST_CHECK;

/** And of a planned one: with the contents of all files that its options name:
 *  card, machine, counts of tokens, order of a pipeline. Collective. */
me_status me_plan_agree(me_transport *transport, const me_plan *plan,
                        const me_job_card *card, me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_RUN_AGREE_H */
