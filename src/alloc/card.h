/**
 * @file
 * What a card's memory loses to CUDA, its libraries and NCCL: the values of
 * one kind of card, from a file of `configs/cards/` that says where each comes
 * from.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_ALLOC_CARD_H
#define MEMEST_ALLOC_CARD_H

#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ME_CARD_TEXT = 96
};

/** NCCL on a card; bytes unless a name says channels or allocations. */
typedef struct me_card_nccl {
    uint64_t first_communicator_bytes; /**< once a process, as the next three */
    uint64_t first_collective_bytes;
    uint64_t first_broadcast_bytes;
    uint64_t first_send_recv_bytes;
    uint64_t bookkeeping_bytes; /**< the driver's own, a communicator */
    uint64_t granularity_bytes; /**< every allocation is a multiple of it */
    uint64_t allocations_per_channel;
    uint64_t fixed_allocations;
    uint64_t channels_size1; /**< of a communicator of one rank */
    uint64_t coll_channels;  /**< of rings that the search finds, doubled */
    uint64_t p2p_channels_per_peer; /**< at most; twice the links to it */
    uint64_t has_peer_access; /**< 1: buffers of a connection lie on the device;
                                   0: in host memory */
    uint64_t reads_from_peer; /**< 1: data is read from the sender's buffer */
    uint64_t nvls_channels;   /**< 0: the card has no multicast */
    uint64_t nvls_min_bytes;  /**< all-reduce of 8 ranks that picks NVLS */
    uint64_t chunk_bytes;     /**< of send and receive within a node */
    uint64_t nodes_channels;  /**< of a communicator over several nodes */
    uint64_t nodes_p2p_channels_per_peer;
} me_card_nccl;

/** A card. */
typedef struct me_device_card {
    char name[ME_CARD_TEXT];   /**< NVIDIA's */
    char source[ME_CARD_TEXT]; /**< of the values that the file gives */
    char like[ME_CARD_TEXT];   /**< whose values stand in for what was not
                                    measured on this one; "": none */
    uint64_t total_bytes;      /**< what cudaMemGetInfo calls total */
    uint64_t multiprocessors;
    uint64_t
        compute_capability; /**< ten times the major and the minor number */
    uint64_t threads_per_multiprocessor;
    uint64_t cublas_workspace_bytes; /**< of PyTorch's pool, for each thread */
    uint64_t te_workspace_bytes; /**< of Transformer Engine, one a process */
    uint64_t l2_cache_bytes;     /**< as CUDA's device properties say */
    uint64_t context_bytes;
    uint64_t first_kernel_bytes;
    uint64_t small_modules_bytes;
    uint64_t cublas_handle_bytes; /**< for each thread that multiplies */
    uint64_t cudnn_handle_bytes;  /**< for each thread with cuDNN operations */
    me_card_nccl nccl;
    uint64_t not_measured; /**< a bit for each value that was not measured on
                                such a card; me_device_card_not_measured() */
} me_device_card;

/**
 * Read a card's file. A value that it does not give follows from others, if it
 * has a rule, or is that of the card the file names as `like`, whose own is
 * NAME.cfg beside it; neither is measured. Local.
 *
 * @param path      a libconfig file
 * @param card_out  untouched on failure
 * @return ME_OK; ME_ERR_IO; ME_ERR_SYNTAX; ME_ERR_CONFIG for a value that is
 *         missing, negative or absurd, or a key that no card has
 */
me_status me_device_card_load(const char *path, me_diag *diag,
                              me_device_card *card_out) ME_MUST_CHECK;

/** What a machine says of a card itself; 0: it does not. */
typedef struct me_seen_card {
    const char *name;
    uint64_t total_bytes;
    uint64_t multiprocessors;
    uint64_t threads_per_multiprocessor;
} me_seen_card;

/**
 * A card that no file describes: all but what was seen of it, and the context
 * by its rule, is @p like's and was not measured. Local.
 */
me_device_card me_device_card_stand_in(const me_device_card *like,
                                       const me_seen_card *seen);

/** Add every value to a statement (base/statement.h): "card.context_kib". */
void me_device_card_state(const me_device_card *card, me_str *statement);

/** Append the names of values that were not measured: "first_kernel, …".
 * @return how many */
unsigned me_device_card_not_measured(const me_device_card *card, me_str *text);

/**
 * CUDA's context by the rule that holds on the cards it was measured on: 2 KiB
 * for each thread that can be resident. Local.
 */
uint64_t me_device_context_bytes(uint64_t multiprocessors,
                                 uint64_t threads_per_multiprocessor);

#endif /* MEMEST_ALLOC_CARD_H */
