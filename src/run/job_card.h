/**
 * @file
 * The card of a job, and how NCCL is set up on it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_RUN_JOB_CARD_H
#define MEMEST_RUN_JOB_CARD_H

#include "alloc/alloc_conf.h"
#include "alloc/card.h"
#include "alloc/nccl_setup.h"
#include "alloc/pool.h"
#include "config/config.h"
#include "plan/plan.h"
#include "tensor/engine.h"
#include "time/cluster.h"
#include "time/rates.h"

/** What every rank's simulation is told of the machine. */
typedef struct me_job_card {
    me_device_card card;
    me_nccl_setup nccl;
    me_te_settings te;
    me_rates rates; /**< is_known: its file has them */
    me_cluster_layout layout;
    bool has_machine;   /**< else links are the card's */
    me_cluster machine; /**< with the same layout */
} me_job_card;

/**
 * The card that @p name means: a name of configs/cards, a file, or "auto" for
 * the machine's own, and its rates if its file has them. Local.
 *
 * @return ME_OK; ME_ERR_CONFIG for a card that nobody knows; failures of its
 *         file
 */
me_status me_card_choose(const char *name, me_diag *diag,
                         me_device_card *card_out,
                         me_rates *rates_out) ME_MUST_CHECK;

/** What the engine's operations ask of the card. */
me_card me_job_card_kernels(const me_job_card *job);

/**
 * The card that a pool without a job takes from: what CUDA itself takes of it
 * is gone; what else lies outside of the allocator nobody knows. Local.
 *
 * @param pool  its bytes of the device are set
 * @return as me_card_choose()
 */
me_status me_card_pool(const char *name, me_diag *diag,
                       me_pool_options *pool) ME_MUST_CHECK;

/**
 * The card of a finished job, changed by what the launch command puts into the
 * environment. What is assumed and what is not modelled is added to the job.
 * Local.
 *
 * @return as me_card_choose(); ME_ERR_NOMEM
 */
me_status me_job_card_make(me_config *config, me_diag *diag,
                           me_job_card *card_out) ME_MUST_CHECK;

/**
 * Add to the job's assumptions if ranks with equal programs have different
 * places on the nodes. Local.
 *
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status me_job_card_note_places(const me_plan *plan, const me_job_card *card,
                                  me_config *config,
                                  me_diag *diag) ME_MUST_CHECK;

/** @name what the environment changes (environment.c)
 *  @{ */
/** Changes @p card by the launch command's environment; what is not modelled
 *  is added to the job. Local. */
me_status me_environment_apply(me_config *config, me_diag *diag,
                               me_job_card *card) ME_MUST_CHECK;

/** The allocator's settings; an error names the variable that gave them, or the
 *  option. @return as me_alloc_conf_parse(). Local. */
me_status me_job_alloc_conf(const me_config *config, me_diag *diag,
                            me_alloc_conf *conf_out) ME_MUST_CHECK;
/** @} */

#endif /* MEMEST_RUN_JOB_CARD_H */
