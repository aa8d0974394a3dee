/* SPDX-License-Identifier: BSD-3-Clause */
/* File and function names in comments are NCCL's, at v2.28.9-1. */
#include "alloc/nccl_setup.h"

#include "base/parse.h"
#include "base/size.h"
#include "base/statement.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)

enum {
    MAXCHANNELS = 64,
    MEM_BYTES = 4096,  /**< sendMem, recvMem: heads and tails */
    SHARED_STEPS = 16, /**< NCCL_SHARED_STEPS */
    STEPS = 8,         /**< NCCL_STEPS */
    NVLS_RANKS = 8     /**< of one node, from which the tuning picks it */
};

me_nccl_setup me_nccl_setup_default(void)
{
    return (me_nccl_setup){
        .min_channels = 1,
        .max_channels = MAXCHANNELS,
        .min_p2p_channels = 1,
        .max_p2p_channels = MAXCHANNELS,
        .ll_bytes = UINT64_C(8) * 512 * STEPS * 16,
        .ll128_bytes = UINT64_C(120) * 640 * STEPS * 8,
        .simple_bytes = 4 * MIB,
        .nvls_chunk_bytes = 128 * KIB,
        .net_chunk_bytes = 128 * KIB,
        .has_cumem = true,
    };
}

/** A variable that is a number. */
typedef struct variable {
    const char *name;
    size_t offset;
} variable;

#define NUMBER(name, member)                                                   \
    {                                                                          \
        name, offsetof(me_nccl_setup, member)                                  \
    }

static const variable numbers[] = {
    NUMBER("NCCL_MIN_NCHANNELS", min_channels),
    NUMBER("NCCL_MIN_CTAS", min_channels),
    NUMBER("NCCL_MAX_NCHANNELS", max_channels),
    NUMBER("NCCL_MAX_CTAS", max_channels),
    NUMBER("NCCL_MIN_P2P_NCHANNELS", min_p2p_channels),
    NUMBER("NCCL_MAX_P2P_NCHANNELS", max_p2p_channels),
    NUMBER("NCCL_BUFFSIZE", simple_bytes),
    NUMBER("NCCL_LL_BUFFSIZE", ll_bytes),
    NUMBER("NCCL_LL128_BUFFSIZE", ll128_bytes),
    NUMBER("NCCL_NVLS_NCHANNELS", nvls_channels),
    NUMBER("NCCL_NVLS_CHUNKSIZE", nvls_chunk_bytes),
    NUMBER("NCCL_P2P_NVL_CHUNKSIZE", chunk_bytes),
    NUMBER("NCCL_P2P_PCI_CHUNKSIZE", chunk_bytes),
    NUMBER("NCCL_P2P_NET_CHUNKSIZE", net_chunk_bytes),
    NUMBER("NCCL_NCHANNELS_PER_NET_PEER", net_channels_per_peer),
};

static me_status set_switch(const char *value, uint64_t on_from, bool *out)
{
    uint64_t number = 0;
    if (me_parse_c_integer(value, &number) != ME_OK || number > 2) {
        return ME_ERR_CONFIG;
    }
    *out = number >= on_from;
    return ME_OK;
}

static me_status set_number(const variable *v, const char *value,
                            me_nccl_setup *setup)
{
    const bool is_channels = strstr(v->name, "SIZE") == NULL;
    uint64_t number = 0;
    if (me_parse_c_integer(value, &number) != ME_OK || number == 0 ||
        number > (is_channels ? MAXCHANNELS : UINT64_C(1) << 32)) {
        return ME_ERR_CONFIG;
    }
    *(uint64_t *)(void *)((char *)setup + v->offset) = number;
    return ME_OK;
}

me_status me_nccl_setup_set(me_nccl_setup *setup, const char *name,
                            const char *value)
{
    bool is_on = false;
    me_status status = ME_ERR_UNSUPPORTED;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (strcmp(name, numbers[i].name) == 0) {
            return set_number(&numbers[i], value, setup);
        }
    }
    if (strcmp(name, "NCCL_NVLS_ENABLE") == 0) {
        status = set_switch(value, 1, &setup->uses_nvls);
    } else if (strcmp(name, "NCCL_P2P_DISABLE") == 0) {
        status = set_switch(value, 1, &setup->is_p2p_off);
    } else if (strcmp(name, "NCCL_CUMEM_ENABLE") == 0) {
        status = set_switch(value, 1, &setup->has_cumem);
        setup->connects_at_init |= status == ME_OK && !setup->has_cumem;
    } else if (strcmp(name, "NCCL_RUNTIME_CONNECT") == 0) {
        status = set_switch(value, 1, &is_on);
        setup->connects_at_init |= status == ME_OK && !is_on;
    }
    return status;
}

void me_nccl_setup_state(const me_nccl_setup *setup, me_str *statement)
{
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const uint64_t *number =
            (const uint64_t *)(const void *)((const char *)setup +
                                             numbers[i].offset);
        me_statement_add(statement, numbers[i].name, "%" PRIu64, *number);
    }
    me_statement_add(statement, "NCCL_NVLS_ENABLE", "%d", setup->uses_nvls);
    me_statement_add(statement, "NCCL_P2P_DISABLE", "%d", setup->is_p2p_off);
    me_statement_add(statement, "NCCL_CUMEM_ENABLE", "%d", setup->has_cumem);
    me_statement_add(statement, "NCCL_RUNTIME_CONNECT", "%d",
                     !setup->connects_at_init);
}

static uint64_t power_of_two_above(uint64_t n)
{
    uint64_t power = 1;
    while (power < n) {
        power *= 2;
    }
    return power;
}

static bool spans_nodes(me_group_shape shape)
{
    return shape.local < shape.size;
}

/** ncclTopoPostset(): what the search found, within the limits. */
static uint64_t coll_channels(const me_nccl_costs *c, me_group_shape shape)
{
    const uint64_t found =
        spans_nodes(shape) ? c->card.nodes_channels : c->card.coll_channels;
    return me_min_u64(me_max_u64(found, c->setup.min_channels),
                      c->setup.max_channels);
}

/** ncclTopoComputeP2pChannels(). */
static uint64_t p2p_channels(const me_nccl_costs *c, me_group_shape shape)
{
    return power_of_two_above(me_min_u64(
        me_max_u64(coll_channels(c, shape), c->setup.min_p2p_channels),
        c->setup.max_p2p_channels));
}

uint64_t me_nccl_peer_channels(const me_nccl_costs *costs, me_group_shape shape)
{
    const uint64_t net = costs->setup.net_channels_per_peer == 0
                             ? costs->card.nodes_p2p_channels_per_peer
                             : costs->setup.net_channels_per_peer;
    return me_min_u64(spans_nodes(shape) ? net
                                         : costs->card.p2p_channels_per_peer,
                      p2p_channels(costs, shape));
}

/** p2pSendSetup() and p2pRecvSetup(): one side of a connection of a channel;
 *  in shared host memory it costs the device nothing. */
uint64_t me_nccl_connection_bytes(const me_nccl_costs *costs, bool is_send)
{
    if (costs->card.has_peer_access == 0 || costs->setup.is_p2p_off) {
        return 0;
    }
    const bool has_simple = is_send == (costs->card.reads_from_peer != 0);
    uint64_t bytes = MEM_BYTES + (has_simple ? costs->setup.simple_bytes : 0);
    if (!is_send) {
        bytes += costs->setup.ll_bytes + costs->setup.ll128_bytes;
    }
    return me_round_up(bytes, 2 * MIB); // CUDA_IPC_MIN
}

/** One side of a connection over the network with GPUDirect RDMA. */
static uint64_t net_connection_bytes(const me_nccl_costs *c)
{
    return me_round_up(c->setup.ll128_bytes + c->setup.simple_bytes, 2 * MIB);
}

/** The pool that the proxy of a rank allocates even when no network is used,
 *  where connections are made at once. */
static uint64_t init_pool_bytes(const me_nccl_costs *c, me_group_shape shape)
{
    const uint64_t channels =
        shape.size == 1 ? c->card.channels_size1 : p2p_channels(c, shape);
    const uint64_t chunk =
        c->setup.chunk_bytes == 0 ? c->card.chunk_bytes : c->setup.chunk_bytes;
    return me_min_u64(channels, power_of_two_above(c->setup.max_channels)) *
           SHARED_STEPS * chunk;
}

static uint64_t nvls_channels(const me_nccl_costs *c, me_group_shape shape)
{
    if (!c->setup.uses_nvls || c->card.nvls_channels == 0 || shape.size == 1 ||
        spans_nodes(shape)) {
        return 0;
    }
    return c->setup.nvls_channels == 0 ? c->card.nvls_channels
                                       : c->setup.nvls_channels;
}

/** Tree links that the ring has not made: none between two ranks; on a chain
 *  of more, as public figures have it, half of a ring's on the average. */
static uint64_t tree_bytes(const me_nccl_costs *c, me_group_shape shape)
{
    return shape.size <= 2 ? 0 : me_nccl_ring_bytes(c, shape) / 2;
}

uint64_t me_nccl_base_allocations(const me_nccl_costs *costs,
                                  me_group_shape shape)
{
    const me_card_nccl *card = &costs->card;
    const uint64_t channels =
        shape.size == 1
            ? me_min_u64(card->channels_size1,
                         power_of_two_above(costs->setup.max_channels))
            : me_max_u64(coll_channels(costs, shape),
                         p2p_channels(costs, shape));
    uint64_t n_allocations =
        card->allocations_per_channel * channels + card->fixed_allocations;
    if (!costs->setup.has_cumem) { // small arrays share one block
        n_allocations = 1;
    }
    const uint64_t nvls = nvls_channels(costs, shape);
    return n_allocations + (nvls == 0 ? 0 : nvls + 1);
}

uint64_t me_nccl_base_bytes(const me_nccl_costs *costs, me_group_shape shape)
{
    uint64_t bytes =
        costs->card.granularity_bytes * me_nccl_base_allocations(costs, shape) +
        costs->card.bookkeeping_bytes;
    if (costs->setup.connects_at_init) {
        bytes += init_pool_bytes(costs, shape) +
                 me_nccl_ring_bytes(costs, shape) + tree_bytes(costs, shape);
    }
    return bytes;
}

/** Channels of its ring that enter and leave the node, each does once. */
static uint64_t net_ring_channels(const me_nccl_costs *c, me_group_shape shape)
{
    return spans_nodes(shape)
               ? me_div_up(coll_channels(c, shape), (uint64_t)shape.local)
               : 0;
}

uint64_t me_nccl_ring_channels(const me_nccl_costs *costs, me_group_shape shape)
{
    return shape.size == 1
               ? 0
               : coll_channels(costs, shape) - net_ring_channels(costs, shape);
}

uint64_t me_nccl_ring_bytes(const me_nccl_costs *costs, me_group_shape shape)
{
    return me_nccl_ring_channels(costs, shape) *
               (me_nccl_connection_bytes(costs, true) +
                me_nccl_connection_bytes(costs, false)) +
           net_ring_channels(costs, shape) * 2 * net_connection_bytes(costs);
}

uint64_t me_nccl_peer_bytes(const me_nccl_costs *costs, me_group_shape shape,
                            bool is_send)
{
    return me_nccl_peer_channels(costs, shape) *
           me_nccl_connection_bytes(costs, is_send);
}

uint64_t me_nccl_net_pool_bytes(const me_nccl_costs *costs)
{
    const me_group_shape any = {.size = 2, .local = 1};
    return p2p_channels(costs, any) * SHARED_STEPS *
           costs->setup.net_chunk_bytes;
}

uint64_t me_nccl_nvls_bytes(const me_nccl_costs *costs, me_group_shape shape,
                            bool is_all_reduce, uint64_t bytes)
{
    const bool is_picked = is_all_reduce && shape.size == NVLS_RANKS &&
                           bytes >= costs->card.nvls_min_bytes;
    return !is_picked
               ? 0
               : nvls_channels(costs, shape) * 2 * STEPS *
                     costs->setup.nvls_chunk_bytes * (uint64_t)shape.local;
}
