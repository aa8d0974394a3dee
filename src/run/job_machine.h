/**
 * @file
 * The machine of a job: how its ranks lie on nodes, and with `machine.file`
 * what joins their GPUs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_RUN_JOB_MACHINE_H
#define MEMEST_RUN_JOB_MACHINE_H

#include "run/job_card.h"

/**
 * Read the job's machine: a name of configs/machines, a file of one, or the XML
 * of hwloc. Where the job does not say its ranks or its memory of a node, the
 * machine does. Local.
 *
 * @param job  its rates are known by now; layout and machine are filled in
 * @return ME_OK; ME_ERR_CONFIG for a machine that nobody knows or that has too
 *         few GPUs or no network; failures of its file; ME_ERR_NOMEM
 */
me_status me_machine_choose(me_config *config, me_diag *diag,
                            me_job_card *job) ME_MUST_CHECK;

/**
 * Can the card's file and the machine's be read? Asked of a job before others are
 * made of it, so that what is wrong with them is not each one's. Local.
 *
 * @return as me_card_choose() and me_machine_choose()
 */
me_status me_job_files_check(const me_config *config,
                             me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_RUN_JOB_MACHINE_H */
