/**
 * @file
 * The inside of a log, for the stubs, the codec and the checks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_COLLECTIVES_CALL_LOG_IMPL_H
#define MEMEST_COLLECTIVES_CALL_LOG_IMPL_H

#include "collectives/call.h"
#include "collectives/call_log.h"
#include "collectives/digest.h"

#include <stdbool.h>

enum {
    ME_MAX_COMMS = UINT16_MAX,
    ME_MAX_STREAMS = UINT8_MAX
};

/** A communicator; NCCL's tag, because ncclComm_t points to it. */
struct ncclComm {
    me_call_log *log;    /**< owner */
    me_comm_group group; /**< members are a copy, owned */
    int index;           /**< own place in the group */
    uint16_t id;         /**< index into the log's communicators */
    uint16_t instance;   /**< how many of the same kind were made before */
    bool is_destroyed;
    uint32_t calls;      /**< collectives so far */
    me_digest digest;    /**< of those collectives */
    uint32_t self_sends; /**< to itself in the open group section */
    uint32_t self_recvs;
    ncclComm_t next_in_section; /**< those with calls to themselves */
    uint32_t *channels; /**< of sends to each offset, then of receives, + 1; 0:
                             not looked up yet; owned; NULL: of none */
};

/** Sends to, or receives from, one peer of one communicator. */
typedef struct me_channel {
    uint16_t comm;
    bool is_send;
    int32_t offset; /**< (peer - own) modulo the group's size */
    uint32_t calls;
    me_digest digest;
} me_channel;

struct me_call_log {
    me_status status; /**< first failure to record */
    me_call *calls;
    uint32_t n_calls;
    uint32_t call_capacity;
    bool is_dropped;   /**< calls were, see me_call_log_drop_calls() */
    ncclComm_t *comms; /**< owned */
    uint32_t n_comms;
    uint32_t n_of_kind[ME_GROUP_COUNT]; /**< communicators of each kind */
    me_channel *channels;
    uint32_t n_channels;
    uint32_t channel_capacity;
    uint32_t *buckets; /**< open hash table of channel index + 1 */
    uint32_t n_buckets;
    cudaStream_t streams[ME_MAX_STREAMS]; /**< in order of first use */
    uint32_t n_streams;
    uint32_t n_groups;      /**< group sections that have calls */
    uint64_t seen_section;  /**< the thread's section of the last of them */
    me_digest digest;       /**< of all calls and waits */
    me_digest comms_digest; /**< of the communicators, in order */
    me_split_members split; /**< NULL: no splits */
    void *split_self;
};

/** Rows that a member of a communicator exchanges with the others. */
typedef struct me_row_exchange {
    uint64_t width;           /**< elements of a row */
    const uint64_t *sent;     /**< to each member; borrowed, as the next */
    const uint64_t *received; /**< from each member */
} me_row_exchange;

/**
 * What ncclSend() and ncclRecv() would record of an exchange within the open
 * section: to and from the next member first, none of no rows.
 *
 * @param rows  together no more bytes than 64 bits hold
 */
ncclResult_t me_nccl_exchange(ncclComm_t comm, ncclDataType_t type,
                              const me_row_exchange *rows);

/** Append the sends and receives of an exchange. @param like  their stream,
 *  section, dtype and communicator. @return as me_call_log_append() */
me_status me_call_log_append_exchange(me_call_log *log, me_call like,
                                      const me_row_exchange *rows);

/**
 * Append @p call and fill in its channel and seq. The caller has checked the
 * fields against the log. A failure sticks in the log's status.
 */
me_status me_call_log_append(me_call_log *log, me_call call);

/** Index of @p stream; ME_MAX_STREAMS and a sticky failure if too many. */
uint32_t me_call_log_stream(me_call_log *log, cudaStream_t stream);

/** The channel's index, or UINT32_MAX if there is none. */
uint32_t me_call_log_find_channel(const me_call_log *log, uint32_t comm,
                                  bool is_send, int32_t offset);

/** As me_comm_create(), for a group whose members need not be known. */
me_status me_comm_add(me_call_log *log, const me_comm_group *group, int index,
                      ncclComm_t *comm_out);

#endif /* MEMEST_COLLECTIVES_CALL_LOG_IMPL_H */
