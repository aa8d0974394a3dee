/**
 * @file
 * Whether the ranks of a job would work together under NCCL: equal sequences
 * of collectives in every group, a receive for every send, and no wait that
 * never ends.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_COLLECTIVES_CHECK_H
#define MEMEST_COLLECTIVES_CHECK_H

#include "base/status.h"
#include "collectives/call_log.h"
#include "collectives/group.h"
#include "collectives/transport.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ME_CHECK_MAX_CALLS = 20000000 /**< that are replayed, of all classes */
};

/** What one process brings to the check; all borrowed. */
typedef struct me_check_part {
    int world_size; /**< the same on all processes */
    const me_call_log *const *logs;
    int n_logs;
    const int *ranks;  /**< ranks that this process answers for */
    const int *log_of; /**< for each of them, an index into `logs` */
    int n_ranks;
    me_comm_group_of group_of; /**< the same answers on all processes */
    const void *self;          /**< first argument of group_of */
    /** Make a log once more whose calls were dropped; NULL if none was.
     *  @param log_out  as it was, owned by the caller */
    me_status (*remake)(void *self, int log, me_diag *diag,
                        me_call_log **log_out);
    void *remake_self;
    uint64_t max_replayed_calls; /**< give up replaying beyond; 0:
                                       ME_CHECK_MAX_CALLS */
} me_check_part;

/** What was checked; the same on all processes. */
typedef struct me_check_report {
    int n_programs; /**< different logs */
    int n_classes;  /**< of ranks that NCCL cannot tell apart */
    uint64_t replayed_calls;
    bool is_replayed; /**< false: more calls than allowed; not checked for
                           waits that never end */
} me_check_report;

/** What was not checked, for a report; static; NULL: nothing. Local. */
const char *me_check_unchecked(const me_check_report *report);

/**
 * Check all ranks of the job. Collective.
 *
 * First digests are compared: of the collectives of every communicator among
 * its members, and of every direction of every pair. Calls are fetched only
 * to say where two differ. Then process 0 replays the job with NCCL's
 * blocking semantics, conservatively: a collective ends when all members have
 * arrived; a send and its receive end together, whatever their size (NCCL
 * may buffer small sends); what stands between ncclGroupStart and
 * ncclGroupEnd starts and ends together; calls on one stream and calls on one
 * communicator go one after the other; other streams go on.
 *
 * Ranks with equal logs whose groups and partners correspond are replayed
 * once. That skips nothing: such ranks are in the same state at every moment,
 * so that a class stalls exactly when its ranks do.
 *
 * @param report_out  may be NULL; filled in when the result is ME_OK
 * @return ME_OK; ME_ERR_MISMATCH with a line that names ranks, group and
 *         calls; ME_ERR_INTERNAL (ranks missing or given twice, an open
 *         ncclGroupStart, a communicator unlike its group); ME_ERR_NOMEM;
 *         ME_ERR_MPI
 */
me_status me_collectives_check(me_transport *transport,
                               const me_check_part *part, me_diag *diag,
                               me_check_report *report_out);

#endif /* MEMEST_COLLECTIVES_CHECK_H */
