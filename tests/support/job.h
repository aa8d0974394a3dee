/**
 * @file
 * A small job for tests of the checks: ranks on a grid of tensor, pipeline
 * and data parallelism in Megatron's order (tensor fastest, then data, then
 * pipeline), one log a rank.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_SUPPORT_JOB_H
#define MEMEST_TESTS_SUPPORT_JOB_H

#include "collectives/check.h"

#include <stdio.h>

enum {
    JOB_MOST = 64
};

/** A job's grid, and the logs of the ranks that a test simulates. */
typedef struct job {
    int tp, dp, pp;
    bool drops_calls;    /**< logs hold digests; they are played anew */
    uint64_t most_calls; /**< that are replayed; 0: the check's own limit */
    me_call_log *logs[JOB_MOST];
    ncclComm_t tensor[JOB_MOST];
    ncclComm_t data[JOB_MOST];
    ncclComm_t pipeline[JOB_MOST];
} job;

static inline int job_group_of(const void *self, int rank, me_group_kind kind,
                               me_comm_group *group_out)
{
    const job *j = self;
    const int t = rank % j->tp;
    const int d = rank / j->tp % j->dp;
    const int p = rank / (j->tp * j->dp);
    me_comm_group group = {
        .kind = kind, .start = rank, .stride = 1, .count = 1};
    int index = -1;
    if (kind == ME_GROUP_TENSOR) {
        group.start = rank - t;
        group.count = j->tp;
        index = t;
    } else if (kind == ME_GROUP_DATA) {
        group.start = rank - d * j->tp;
        group.stride = j->tp;
        group.count = j->dp;
        index = d;
    } else if (kind == ME_GROUP_PIPELINE) {
        group.start = rank - p * j->tp * j->dp;
        group.stride = j->tp * j->dp;
        group.count = j->pp;
        index = p;
    }
    *group_out = group;
    return index;
}

static inline int job_size(const job *j)
{
    return j->tp * j->dp * j->pp;
}

static inline ncclComm_t job_comm(job *j, int rank, me_group_kind kind)
{
    me_comm_group group = {0};
    const int index = job_group_of(j, rank, kind, &group);
    ncclComm_t comm = NULL;
    return me_comm_create(j->logs[rank], &group, index, NULL, &comm) == ME_OK
               ? comm
               : NULL;
}

/** Make the log and the communicators of @p rank. */
static inline void job_begin_rank(job *j, int rank)
{
    if (me_call_log_create(&j->logs[rank]) == ME_OK) {
        j->tensor[rank] = job_comm(j, rank, ME_GROUP_TENSOR);
        j->data[rank] = job_comm(j, rank, ME_GROUP_DATA);
        j->pipeline[rank] = job_comm(j, rank, ME_GROUP_PIPELINE);
    }
}

static inline void job_fini(job *j)
{
    for (int i = 0; i < JOB_MOST; i++) {
        me_call_log_destroy(j->logs[i]);
        j->logs[i] = NULL;
    }
}

static inline void job_play_rank(job *j, int rank);

/** me_check_part.remake, of a job of which all ranks play in this process. */
static inline me_status job_remake(void *self, int log, me_diag *diag,
                                   me_call_log **log_out)
{
    (void)diag;
    const job *j = self;
    job again = {.tp = j->tp, .dp = j->dp, .pp = j->pp};
    job_begin_rank(&again, log);
    job_play_rank(&again, log);
    *log_out = again.logs[log];
    return ME_OK;
}

/** Check the job; this process has those ranks that have a log. */
static inline me_status job_check(me_transport *transport, const job *j,
                                  me_diag *diag, me_check_report *report)
{
    const me_call_log *logs[JOB_MOST];
    int ranks[JOB_MOST];
    int log_of[JOB_MOST];
    job copy = *j;
    int n = 0;
    for (int rank = 0; rank < job_size(j); rank++) {
        if (j->logs[rank] != NULL) {
            if (j->drops_calls) {
                me_call_log_drop_calls(j->logs[rank]);
            }
            logs[n] = j->logs[rank];
            ranks[n] = rank;
            log_of[n] = n;
            n++;
        }
    }
    const me_check_part part = {.world_size = job_size(j),
                                .logs = logs,
                                .n_logs = n,
                                .ranks = ranks,
                                .log_of = log_of,
                                .n_ranks = n,
                                .group_of = job_group_of,
                                .self = j,
                                .remake = job_remake,
                                .remake_self = &copy,
                                .max_replayed_calls = j->most_calls};
    return me_collectives_check(transport, &part, diag, report);
}

/** Two forward micro-batches of a pipeline with tensor parallelism, then the
 * reduction of gradients. */
static inline void job_play_rank(job *j, int rank)
{
    const int stage = rank / (j->tp * j->dp);
    for (int microbatch = 0; microbatch < 2; microbatch++) {
        if (stage > 0) {
            (void)ncclRecv(NULL, 4096, ncclBfloat16, stage - 1,
                           j->pipeline[rank], NULL);
        }
        (void)ncclAllReduce(NULL, NULL, 1024, ncclBfloat16, ncclSum,
                            j->tensor[rank], NULL);
        if (stage < j->pp - 1) {
            (void)ncclSend(NULL, 4096, ncclBfloat16, stage + 1,
                           j->pipeline[rank], NULL);
        }
    }
    (void)ncclReduceScatter(NULL, NULL, 1 << 20, ncclFloat32, ncclAvg,
                            j->data[rank], NULL);
}

#endif /* MEMEST_TESTS_SUPPORT_JOB_H */
