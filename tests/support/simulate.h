/**
 * @file
 * A job through the library: configuration, plan, and the simulation of its
 * ranks, as `memest estimate` runs them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_SUPPORT_SIMULATE_H
#define MEMEST_TESTS_SUPPORT_SIMULATE_H

#include "config/launch_command.h"
#include "config/options.h"
#include "run/groups.h"
#include "run/simulate.h"

/** NULL: not made yet. All zero is none. It points into itself once it is
 *  planned: not to be moved. */
typedef struct test_job {
    me_config *config;
    me_plan *plan;
    me_groups *groups;
    me_job_card card;
    me_simulation simulation;
} test_job;

static inline void test_job_fini(test_job *job)
{
    me_groups_destroy(job->groups);
    me_plan_destroy(job->plan);
    me_config_destroy(job->config);
    *job = (test_job){.config = NULL};
}

/** Finish a configuration and plan it. */
static inline me_status test_job_plan(test_job *job, me_diag *diag)
{
    me_status status = me_config_finish(job->config, 1, diag);
    if (status == ME_OK) {
        status = me_job_card_make(job->config, diag, &job->card);
    }
    if (status == ME_OK) {
        status = me_plan_create(job->config, true, diag, &job->plan);
    }
    if (status == ME_OK) {
        status = me_groups_create(job->plan, &job->groups);
    }
    if (status != ME_OK) {
        return status;
    }
    job->simulation = (me_simulation){
        .plan = job->plan,
        .card = &job->card,
        .memory_limit_bytes = job->config->device.memory_limit_bytes,
        .group_of = me_groups_find,
        .group_self = job->groups,
        .events_iteration = ME_STEADY_ITERATION,
    };
    return me_alloc_conf_parse(job->config->device.alloc_conf, diag,
                               &job->simulation.alloc_conf);
}

/** Options as `--set` takes them, up to a NULL. */
static inline me_status test_job_set(test_job *job, const char *const *sets,
                                     me_diag *diag)
{
    me_status status = ME_OK;
    for (; status == ME_OK && *sets != NULL; sets++) {
        status = me_config_set_assignment(job->config, *sets, diag);
    }
    return status;
}

/** Simulate one rank; the result is the caller's. */
static inline me_status test_job_run(const test_job *job, int32_t rank,
                                     me_diag *diag, me_rank_result **result_out)
{
    me_call_log *log = NULL;
    me_status status = me_call_log_create(&log);
    if (status == ME_OK) {
        status =
            me_simulate_rank(&job->simulation, rank, log, diag, result_out);
    }
    me_call_log_destroy(log);
    return status;
}

#endif /* MEMEST_TESTS_SUPPORT_SIMULATE_H */
