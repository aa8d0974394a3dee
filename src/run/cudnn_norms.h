/**
 * @file
 * What is said of norms that cuDNN runs: where their workspaces come from, and
 * whether those of a job's shapes were measured.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_RUN_CUDNN_NORMS_H
#define MEMEST_RUN_CUDNN_NORMS_H

#include "run/job_card.h"

/**
 * Say it of a job whose variables have been read (ops/te_cudnn_norm.h). Local.
 *
 * @return ME_OK; ME_ERR_CONFIG of columns that have no kernel; or ME_ERR_NOMEM
 */
me_status me_cudnn_norms_note(const me_job_card *job, me_config *config,
                              me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_RUN_CUDNN_NORMS_H */
