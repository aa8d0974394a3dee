/**
 * @file
 * What the processes of a command have to have in common, as statements that
 * collectives/agreement.h compares.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_APP_STATEMENT_H
#define MEMEST_APP_STATEMENT_H

#include "app/card.h"
#include "app/cli.h"
#include "collectives/transport.h"
#include "plan/plan.h"

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

/**
 * Do all processes run the same command of the same version with the same
 * flags? Flags that say what a process alone does (where its messages go, its
 * threads), and those of the job, whose values count, are left out.
 * Collective.
 *
 * @return as me_statement_agree()
 */
me_status me_cli_agree(me_transport *transport, const me_cli *cli,
                       me_diag *diag) ME_MUST_CHECK;

/** The same of a job that is read: its options, whatever files and flags they
 *  came from. Collective. */
me_status me_config_agree(me_transport *transport, const me_config *config,
                          me_diag *diag) ME_MUST_CHECK;

/** And of a planned one: with the contents of all files that its options name:
 *  card, machine, counts of tokens, order of a pipeline. Collective. */
me_status me_plan_agree(me_transport *transport, const me_plan *plan,
                        const me_job_card *card, me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_APP_STATEMENT_H */
