/**
 * @file
 * Device memory that PyTorch's allocator does not see: the CUDA context,
 * kernels and libraries as they load, and NCCL's communicators, each created
 * at its first use as PyTorch does.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_ALLOC_DEVICE_MEMORY_H
#define MEMEST_ALLOC_DEVICE_MEMORY_H

#include "alloc/card.h"
#include "alloc/nccl_setup.h"
#include "alloc/pool.h"
#include "model/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ME_DEVICE_MAX_COMMUNICATORS = 64,
    ME_DEVICE_MAX_PEERS = 64 /**< of one communicator that are told apart */
};

/** Host threads that have library handles of their own. */
typedef enum me_device_thread {
    ME_DEVICE_TRAINING_THREAD,
    ME_DEVICE_AUTOGRAD_THREAD,
    ME_DEVICE_THREADS
} me_device_thread;

/** A connection to a peer, by direction. */
typedef struct me_device_peer {
    int32_t rank;
    bool is_sent_to;
    bool is_received_from;
    bool is_new_to_send; /**< since the batch that runs */
    bool is_new_to_receive;
} me_device_peer;

/** A communicator of this rank. */
typedef struct me_device_communicator {
    me_group_kind group;
    int32_t pair_peer; /**< of a pair's own communicator; -1: the group's */
    int32_t position;  /**< this rank's place in it */
    me_group_shape shape;
    bool has_ring;
    bool has_nvls;
    bool is_all_to_all;     /**< connected with every peer, both ways */
    bool has_net_send_pool; /**< for the peers on other nodes */
    bool has_net_recv_pool;
    uint64_t bytes;
    uint32_t n_peers;
    me_device_peer peers[ME_DEVICE_MAX_PEERS];
} me_device_communicator;

/** Told of each piece of addresses as me_pool_take() wants it. */
typedef void me_device_on_take(void *self, me_pool_taker taker, uint64_t bytes);

/** A rank's device memory outside of the allocator; from
 * me_device_memory_begin(). */
typedef struct me_device_memory {
    me_device_card card;
    me_nccl_costs costs;
    uint64_t context_bytes;
    uint64_t library_bytes;      /**< kernels, cuBLAS, cuDNN, NCCL's one-offs */
    uint64_t user_buffer_bytes;  /**< of those, Transformer Engine's */
    uint64_t communicator_bytes; /**< sum over communicators */
    bool has_kernel;
    bool has_small_modules;
    bool has_cublas[ME_DEVICE_THREADS];
    bool has_cudnn[ME_DEVICE_THREADS];
    bool has_collective;
    bool has_broadcast;
    bool has_send_recv;
    size_t n_communicators;
    me_device_communicator communicators[ME_DEVICE_MAX_COMMUNICATORS];
    uint64_t local_bytes; /**< kernels' local memory that has addresses */
    bool owes_kernel;     /**< the kernel behind the first allocation */
    me_device_communicator *batch; /**< whose new connections have no
                                        addresses yet, or NULL */
    me_device_on_take *on_take;    /**< NULL: nobody wants to know */
    void *take_self;
} me_device_memory;

/** A call of NCCL. */
typedef struct me_device_call {
    me_group_kind group;
    me_group_shape shape; /**< of the group */
    me_collective collective;
    int32_t position; /**< this rank's place in the group */
    int32_t peer;     /**< the other side's; send, receive */
    bool is_lone; /**< a send or receive outside of a batch: PyTorch gives the
                     pair a communicator of its own */
    bool is_peer_remote; /**< on another node */
    uint64_t bytes;      /**< of a collective's message */
} me_device_call;

/** A process that has its CUDA context and nothing else. Local. */
void me_device_memory_begin(me_device_memory *memory,
                            const me_device_card *card,
                            const me_nccl_setup *setup);

/** What was called has run, and the program goes on: the addresses of a kernel
 * or a batch are taken. Local. */
void me_device_memory_settle(me_device_memory *memory);

/** An arithmetic kernel of PyTorch runs: the first makes CUDA take the local
 * memory of all its threads. Those that draw random numbers need none. Local. */
void me_device_memory_kernel(me_device_memory *memory);

/** A matrix product runs on a thread. Local. */
void me_device_memory_matmul(me_device_memory *memory, me_device_thread thread);

/** cuDNN's attention runs on a thread. Local. */
void me_device_memory_cudnn(me_device_memory *memory, me_device_thread thread);

/** A library allocates for itself. Local. */
void me_device_memory_library(me_device_memory *memory, uint64_t bytes);

/** Transformer Engine allocates its user buffers. Local. */
void me_device_memory_user_buffers(me_device_memory *memory, uint64_t bytes);

/** Something of a model's forward and backward that loads modules. Local. */
void me_device_memory_modules(me_device_memory *memory);

/**
 * A collective, a send or a receive. Local.
 *
 * @return ME_OK; ME_ERR_UNSUPPORTED beyond the fixed number of communicators
 *         or peers
 */
me_status me_device_memory_call(me_device_memory *memory,
                                const me_device_call *call,
                                me_diag *diag) ME_MUST_CHECK;

/** Sends to and receives from members of a group that are all connected. Local. */
void me_device_memory_exchange(me_device_memory *memory, me_group_kind group);

/** Context, libraries and communicators together. Local. */
uint64_t me_device_memory_bytes(const me_device_memory *memory);

/**
 * How far off the bytes may be. On a measured card 8 MiB: all measured jobs are
 * within 4, and the context moves by 1. On another card in addition what the
 * one report on another card differs by (nccl#2366, RTX 3090): its context by
 * 1/25, its once-a-process bytes by nearly half. Local.
 */
uint64_t me_device_memory_band_bytes(const me_device_memory *memory);

#endif /* MEMEST_ALLOC_DEVICE_MEMORY_H */
