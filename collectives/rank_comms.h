/**
 * @file
 * All communicators of one simulated rank, made when they are first used, and
 * calls on them by group kind: what stands between the engine's collectives
 * and the stubs. All functions are Local.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_COLLECTIVES_RANK_COMMS_H
#define MEMEST_COLLECTIVES_RANK_COMMS_H

#include "collectives/call_log.h"
#include "collectives/group.h"
#include "model/dtype.h"

#include <stdbool.h>

typedef struct me_rank_comms me_rank_comms;

/**
 * The communicators of @p rank; none is made yet.
 *
 * @param log        where calls are recorded; borrowed, outlives the result
 * @param rank       global rank; of any of the ranks that share the log
 * @param group_of   who is in which group
 * @param self       first argument of @p group_of; borrowed
 * @param comms_out  owned by the caller
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status me_rank_comms_create(me_call_log *log, int rank,
                               me_comm_group_of group_of, const void *self,
                               me_rank_comms **comms_out);

/** Give back; the communicators stay with their log. NULL is allowed. */
void me_rank_comms_destroy(me_rank_comms *comms);

/**
 * Call the stub of @p collective.
 *
 * @param self   an me_rank_comms
 * @param count  elements, as NCCL counts them for this collective
 * @param peer   index in the group: the other side of Send and Recv, the root
 *               of Broadcast and Reduce; not looked at otherwise
 * @return ME_OK, ME_ERR_NOMEM, ME_ERR_INTERNAL with what NCCL would say
 */
me_status me_rank_comms_call(void *self, me_group_kind kind,
                             me_collective collective, me_dtype dtype,
                             uint64_t count, int32_t peer, me_diag *diag);

/**
 * What an exchange of rows calls for each other member: ncclSend and ncclRecv, to
 * the next one first, none of nothing. Within a group call.
 *
 * @param self      an me_rank_comms
 * @param width     elements of a row; all together do not exceed 64 bits of bytes
 * @param sent      rows to each member
 * @param received  rows from each member
 * @return as me_rank_comms_call()
 */
me_status me_rank_comms_exchange(void *self, me_group_kind kind, me_dtype dtype,
                                 uint64_t width, const uint64_t *sent,
                                 const uint64_t *received, me_diag *diag);

/** ncclGroupStart (true) or ncclGroupEnd. @param self an me_rank_comms */
me_status me_rank_comms_group_call(void *self, bool begin, me_diag *diag);

/** Calls in the log. @param self an me_rank_comms */
uint64_t me_rank_comms_position(void *self);

/** Record the calls since @p position @p times more. @param self as above */
me_status me_rank_comms_repeat(void *self, uint64_t begin, uint64_t end);

#endif /* MEMEST_COLLECTIVES_RANK_COMMS_H */
