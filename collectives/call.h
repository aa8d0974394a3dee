/**
 * @file
 * One recorded call on a communicator.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_COLLECTIVES_CALL_H
#define MEMEST_COLLECTIVES_CALL_H

#include "base/str.h"
#include "collectives/nccl_stub.h"
#include "model/event.h"

#include <stdbool.h>
#include <stdint.h>

/** X(constant, value, NCCL's name): what a record can be. */
#define ME_CALL_LIST(X)                                                        \
    X(ME_CALL_ALL_REDUCE, ME_COLLECTIVE_ALL_REDUCE, "ncclAllReduce")           \
    X(ME_CALL_ALL_GATHER, ME_COLLECTIVE_ALL_GATHER, "ncclAllGather")           \
    X(ME_CALL_REDUCE_SCATTER, ME_COLLECTIVE_REDUCE_SCATTER,                    \
      "ncclReduceScatter")                                                     \
    X(ME_CALL_BROADCAST, ME_COLLECTIVE_BROADCAST, "ncclBroadcast")             \
    X(ME_CALL_REDUCE, ME_COLLECTIVE_REDUCE, "ncclReduce")                      \
    X(ME_CALL_ALL_TO_ALL, ME_COLLECTIVE_ALL_TO_ALL, "ncclAlltoAll")            \
    X(ME_CALL_SEND, ME_COLLECTIVE_SEND, "ncclSend")                            \
    X(ME_CALL_RECV, ME_COLLECTIVE_RECV, "ncclRecv")                            \
    X(ME_CALL_SPLIT, ME_COLLECTIVE_COUNT, "ncclCommSplit")                     \
    X(ME_CALL_WAIT, ME_COLLECTIVE_COUNT + 1, "cudaStreamWaitEvent")

typedef enum me_call_kind {
#define ME_CALL_ENUM(constant, value, name) constant = (int)(value),
    ME_CALL_LIST(ME_CALL_ENUM)
#undef ME_CALL_ENUM
    ME_CALL_COUNT
} me_call_kind;

/**
 * A call, 32 bytes. Peers are offsets within the group, (peer - own) modulo
 * its size, so that ranks with equal programs have equal records.
 */
typedef struct me_call {
    uint64_t count;   /**< elements, as the NCCL call was given them */
    uint32_t group;   /**< which ncclGroupStart section of the log; 0: none */
    int32_t peer;     /**< send, recv: offset; rooted collectives: root;
                           wait: the stream that is waited for; else 0 */
    uint32_t channel; /**< send, recv: index into the log's channels */
    uint32_t seq;     /**< which call it is of its channel, or which
                           collective of its communicator, from 0 */
    uint16_t comm;    /**< index into the log's communicators */
    uint8_t kind;     /**< me_call_kind */
    uint8_t dtype;    /**< ncclDataType_t */
    uint8_t op;       /**< ncclRedOp_t, 0 where there is none */
    uint8_t stream;   /**< index of the CUDA stream, in order of first use */
} me_call;

/** Is it a send or a receive? Local. */
static inline bool me_call_is_p2p(const me_call *call)
{
    return call->kind == ME_CALL_SEND || call->kind == ME_CALL_RECV;
}

/** Has it a root (Broadcast and Reduce)? Local. */
static inline bool me_call_has_root(const me_call *call)
{
    return call->kind == ME_CALL_BROADCAST || call->kind == ME_CALL_REDUCE;
}

/** Does it reduce, so that `op` means something? Local. */
static inline bool me_call_has_op(const me_call *call)
{
    return call->kind == ME_CALL_ALL_REDUCE || call->kind == ME_CALL_REDUCE ||
           call->kind == ME_CALL_REDUCE_SCATTER;
}

/** NCCL's name of @p kind, such as "ncclAllReduce"; static. Local. */
const char *me_call_kind_name(me_call_kind kind);

/**
 * Bytes that a member sends for the call, on average over the members of a
 * group of @p n, as NCCL's ring algorithm moves them: AllReduce 2(n-1)/n of
 * the buffer; AllGather, ReduceScatter and AlltoAll n-1 blocks; Broadcast and
 * Reduce (n-1)/n; Send all, Recv none. These are the factors of nccl-tests'
 * PERFORMANCE.md. Rounded up. Local.
 *
 * @return ME_SIZE_INVALID if it exceeds 64 bits
 */
uint64_t me_call_sent_bytes(const me_call *call, int n);

/** Append "ncclAllReduce of 1024 bfloat16 (avg)". Local. */
void me_call_print(const me_call *call, me_str *str);

#endif /* MEMEST_COLLECTIVES_CALL_H */
