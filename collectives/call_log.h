/**
 * @file
 * What one simulated rank asked of NCCL, in order. A rank has one log and
 * makes its communicators from it; ranks with equal programs share one. All
 * functions are Local.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_COLLECTIVES_CALL_LOG_H
#define MEMEST_COLLECTIVES_CALL_LOG_H

#include "base/status.h"
#include "collectives/digest.h"
#include "collectives/group.h"
#include "collectives/nccl_stub.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct me_call_log me_call_log;

/** An empty log. @param log_out  owned by the caller */
me_status me_call_log_create(me_call_log **log_out);

/** Give back the log and its communicators; NULL is allowed. */
void me_call_log_destroy(me_call_log *log);

/** Forget everything, communicators as well: the log is new. */
void me_call_log_clear(me_call_log *log);

/**
 * Make a communicator. Several of one kind are told apart by the order in
 * which they are made, which must be the same on all members.
 *
 * @param log       of the rank that makes it; owns the communicator
 * @param group     the members; copied
 * @param index     this rank's place among the members; of any of the ranks
 *                  that share the log
 * @param comm_out  borrowed: lives until the log is destroyed
 * @return ME_OK, ME_ERR_INTERNAL (no such group or index), ME_ERR_NOMEM
 */
me_status me_comm_create(me_call_log *log, const me_comm_group *group,
                         int index, me_diag *diag, ncclComm_t *comm_out);

/**
 * An id from which ncclCommInitRank() makes the communicator.
 *
 * @param group   borrowed, with its members, until the communicator is made
 * @param id_out  carries addresses: valid in this process only
 */
void me_comm_unique_id(me_call_log *log, const me_comm_group *group,
                       ncclUniqueId *id_out);

/** What ncclCommSplit() asks: this rank's index, or -1 if it is in no part. */
typedef int (*me_split_members)(void *self, const me_comm_group *parent,
                                int color, int key, me_comm_group *group_out);

/** Say who knows the parts of a split. @p self is borrowed. */
void me_call_log_set_split(me_call_log *log, me_split_members members,
                           void *self);

/**
 * Record that @p waiter does not go on before what is on @p awaited so far has
 * ended: cudaStreamWaitEvent on an event recorded there, or PyTorch's
 * Work.wait(). Streams that never wait for one another progress on their own.
 */
me_status me_call_log_wait(me_call_log *log, cudaStream_t waiter,
                           cudaStream_t awaited);

/**
 * Record the calls from @p begin to before @p end once more; group sections
 * that they began they have ended.
 *
 * @return ME_OK, or the log's failure
 */
me_status me_call_log_repeat(me_call_log *log, uint64_t begin, uint64_t end);

/** Calls that are recorded, waits included. */
uint64_t me_call_log_count(const me_call_log *log);

/** Keep digests of the calls alone, of those so far and of those to come, which
 *  cannot be repeated then: whoever wants to see them makes them anew
 *  (me_check_part.remake). */
void me_call_log_drop_calls(me_call_log *log);

/** Are the calls there? */
bool me_call_log_has_calls(const me_call_log *log);

/** The digest of everything: logs with equal ones are equal programs. */
me_digest me_call_log_digest(const me_call_log *log);

/** Do both hold the same calls, so that ranks may share one of them? */
bool me_call_log_is_same(const me_call_log *a, const me_call_log *b);

/** ME_OK, or the first failure to record (no memory, too many of a thing). */
me_status me_call_log_status(const me_call_log *log);

/**
 * A stub's result as a status.
 *
 * @return ME_OK; ME_ERR_NOMEM; ME_ERR_INTERNAL with NCCL's last error
 */
me_status me_nccl_status(ncclResult_t result, me_diag *diag);

/**
 * The log as bytes: fixed width, little endian, versioned.
 *
 * @param bytes_out  owned by the caller, to be given back with me_free()
 */
me_status me_call_log_encode(const me_call_log *log, me_diag *diag,
                             unsigned char **bytes_out, size_t *size_out);

/**
 * The log that was encoded. Communicators of the result know their size but
 * not their members. The bytes are not trusted.
 *
 * @param log_out  owned by the caller
 * @return ME_OK, ME_ERR_SYNTAX, ME_ERR_NOMEM
 */
me_status me_call_log_decode(const unsigned char *bytes, size_t size,
                             me_diag *diag, me_call_log **log_out);

#endif /* MEMEST_COLLECTIVES_CALL_LOG_H */
