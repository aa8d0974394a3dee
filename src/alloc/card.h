/**
 * @file
 * What a card's memory loses to CUDA, its libraries and NCCL: the values of
 * one kind of card, from a file of `configs/cards/` that says where each was
 * measured.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_ALLOC_CARD_H
#define MEMEST_ALLOC_CARD_H

#include "memest/status.h"

#include <stdint.h>

enum {
    ME_CARD_NAME = 64
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
    uint64_t coll_channels;
    uint64_t p2p_channels;
    uint64_t p2p_channels_per_peer;
    uint64_t send_connection_bytes; /**< a channel and peer */
    uint64_t recv_connection_bytes;
} me_card_nccl;

/** A card. */
typedef struct me_card {
    char name[ME_CARD_NAME];
    char source[ME_CARD_NAME]; /**< measured, or what an estimate rests on */
    uint64_t total_bytes;      /**< what cudaMemGetInfo calls total */
    uint64_t context_bytes;
    uint64_t first_kernel_bytes;
    uint64_t small_modules_bytes;
    uint64_t cublas_handle_bytes; /**< for each thread that multiplies */
    uint64_t cudnn_handle_bytes;  /**< for each thread with cuDNN attention */
    me_card_nccl nccl;
} me_card;

/**
 * Read a card's file. Local.
 *
 * @param path      a libconfig file; every value must be there
 * @param card_out  untouched on failure
 * @return ME_OK; ME_ERR_IO; ME_ERR_SYNTAX; ME_ERR_CONFIG for a value that is
 *         missing, negative or absurd
 */
me_status me_card_load(const char *path, me_diag *diag,
                       me_card *card_out) ME_MUST_CHECK;

#endif /* MEMEST_ALLOC_CARD_H */
