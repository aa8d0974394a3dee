/**
 * @file
 * How NCCL is set up and what that makes its parts cost on a card: channels,
 * buffers and connections, as NCCL 2.25 to 2.30 choose them, with the
 * environment variables that change them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_ALLOC_NCCL_SETUP_H
#define MEMEST_ALLOC_NCCL_SETUP_H

#include "alloc/card.h"

#include <stdbool.h>
#include <stdint.h>

/** What the environment sets; from me_nccl_setup_default(). */
typedef struct me_nccl_setup {
    uint64_t min_channels;
    uint64_t max_channels;
    uint64_t min_p2p_channels;
    uint64_t max_p2p_channels;
    uint64_t ll_bytes; /**< buffers of a connection, one a protocol */
    uint64_t ll128_bytes;
    uint64_t simple_bytes;
    uint64_t nvls_channels; /**< 0: the card's */
    uint64_t nvls_chunk_bytes;
    uint64_t chunk_bytes; /**< within a node; 0: as the links say */
    uint64_t net_chunk_bytes;
    uint64_t net_channels_per_peer;
    bool uses_nvls;
    bool has_cumem;
    bool connects_at_init; /**< rings, trees and the network's pool */
    bool is_p2p_off;
} me_nccl_setup;

/** NCCL's defaults, but for NVLS, which the measured jobs had off. Local. */
me_nccl_setup me_nccl_setup_default(void);

/**
 * Set one variable. Local.
 *
 * @param name   such as NCCL_BUFFSIZE
 * @param value  as in the environment
 * @return ME_OK; ME_ERR_UNSUPPORTED for a variable that is not modelled;
 *         ME_ERR_CONFIG for a value that NCCL would not take
 */
me_status me_nccl_setup_set(me_nccl_setup *setup, const char *name,
                            const char *value) ME_MUST_CHECK;

/** Add it to a statement (base/statement.h), by NCCL's variables. Local. */
void me_nccl_setup_state(const me_nccl_setup *setup, me_str *statement);

/** A group of ranks on the machine. */
typedef struct me_group_shape {
    int32_t size;
    int32_t local; /**< of them, on this rank's node */
} me_group_shape;

/** What a communicator costs on a card under a setup. */
typedef struct me_nccl_costs {
    me_card_nccl card;
    me_nccl_setup setup;
} me_nccl_costs;

/** From its creation on: NCCL's structures of each channel, the driver's own,
 * and what is connected at once. Local. */
uint64_t me_nccl_base_bytes(const me_nccl_costs *costs, me_group_shape shape);

/** The allocations of its creation, each of the card's granularity. Local. */
uint64_t me_nccl_base_allocations(const me_nccl_costs *costs,
                                  me_group_shape shape);

/** Channels of its ring that stay within the node. Local. */
uint64_t me_nccl_ring_channels(const me_nccl_costs *costs,
                               me_group_shape shape);

/** Channels to and from each peer. Local. */
uint64_t me_nccl_peer_channels(const me_nccl_costs *costs,
                               me_group_shape shape);

/** What one side of a channel's connection on the node takes; 0 where it lies
 * in host memory. Local. */
uint64_t me_nccl_connection_bytes(const me_nccl_costs *costs, bool is_send);

/** The ring, which the first collective makes unless it is made at once. */
uint64_t me_nccl_ring_bytes(const me_nccl_costs *costs, me_group_shape shape);

/** One direction to or from one peer of the node. Local. */
uint64_t me_nccl_peer_bytes(const me_nccl_costs *costs, me_group_shape shape,
                            bool is_send);

/** One direction to or from all peers on other nodes. Local. */
uint64_t me_nccl_net_pool_bytes(const me_nccl_costs *costs);

/**
 * Buffers of NVLS, which the first collective that picks it makes: on one node
 * an all-reduce of 8 ranks that is large enough. Local.
 */
uint64_t me_nccl_nvls_bytes(const me_nccl_costs *costs, me_group_shape shape,
                            bool is_all_reduce, uint64_t bytes);

#endif /* MEMEST_ALLOC_NCCL_SETUP_H */
