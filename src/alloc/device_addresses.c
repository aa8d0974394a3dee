/* SPDX-License-Identifier: BSD-3-Clause */
/* Order and pieces were read off PyTorch 2.11 with NCCL 2.28.9 on two H100, whose
 * driver calls and the addresses that they gave were recorded (CUPTI): nearly
 * 4,000 pieces of three programs on two ranks lie where this and pool_driver.c
 * put them. A process of one rank follows up to its first backward, where some
 * 100 MiB more are taken that are not known. */
#include "alloc/device_addresses.h"

#define MIB    (UINT64_C(1) << 20)
#define PIECE  (2 * MIB)  /* of code and other small things */
#define BUFFER (64 * MIB) /* behind the first communicator's structures */

enum {
    COLLECTIVE_PIECES = 5, /* behind the first collective's local memory */
    SIZE1_PIECES = 16      /* behind a first communicator of one rank */
};

static void take(const me_device_memory *m, me_pool_taker taker, uint64_t bytes,
                 uint64_t n_pieces)
{
    for (uint64_t i = 0; i < n_pieces && m->on_take != NULL; i++) {
        m->on_take(m->take_self, taker, bytes);
    }
}

/** What does not make it larger takes no addresses. */
static void take_local_memory(me_device_memory *m, uint64_t bytes)
{
    const uint64_t all = m->card.first_kernel_bytes + bytes;
    if (all > m->local_bytes) {
        m->local_bytes = all;
        take(m, ME_POOL_TAKER_LOCAL_MEMORY, all, 1);
    }
}

void me_device_take_kernel(me_device_memory *memory)
{
    take(memory, ME_POOL_TAKER_DRIVER, PIECE, 1);
    take_local_memory(memory, 0);
    take(memory, ME_POOL_TAKER_DRIVER, PIECE, 1);
}

void me_device_take_cublas(const me_device_memory *memory, bool is_first)
{
    take(memory, ME_POOL_TAKER_DRIVER, PIECE, is_first ? 1 : 0);
    take(memory, ME_POOL_TAKER_DRIVER, memory->card.cublas_handle_bytes, 1);
}

void me_device_take_communicator(const me_device_memory *memory,
                                 const me_device_communicator *c)
{
    const size_t number = memory->n_communicators;
    const uint64_t once = memory->card.nccl.first_communicator_bytes;
    // The driver's bookkeeping goes in pieces that two communicators share.
    const uint64_t n_shared = number % 2 == 0 ? 1 : 0;
    if (number == 1 && once > BUFFER) {
        take(memory, ME_POOL_TAKER_DRIVER, PIECE, (once - BUFFER) / PIECE);
    }
    take(memory, ME_POOL_TAKER_DRIVER, PIECE, n_shared);
    take(memory, ME_POOL_TAKER_MAPPED, memory->card.nccl.granularity_bytes,
         me_nccl_base_allocations(&memory->costs, c->shape));
    take(memory, ME_POOL_TAKER_DRIVER, BUFFER, number == 1 ? 1 : 0);
    take(memory, ME_POOL_TAKER_DRIVER, PIECE, n_shared);
    if (number == 1 && c->shape.size == 1) {
        take(memory, ME_POOL_TAKER_DRIVER, PIECE, SIZE1_PIECES);
    }
    if (memory->costs.setup.connects_at_init) {
        me_device_take_ring(memory, c);
    }
}

/** A channel's buffer on the sending side is seen by the receiver and the other
 * way round, so each rank maps the other side's too, channel by channel. */
static void map_peers(const me_device_memory *m, uint64_t n_channels,
                      bool receives, bool sends)
{
    const uint64_t send = me_nccl_connection_bytes(&m->costs, true);
    const uint64_t receive = me_nccl_connection_bytes(&m->costs, false);
    for (uint64_t i = 0; i < n_channels; i++) {
        take(m, ME_POOL_TAKER_MAPPED, receive, sends ? 1 : 0);
        take(m, ME_POOL_TAKER_MAPPED, send, receives ? 1 : 0);
    }
}

void me_device_take_ring(const me_device_memory *memory,
                         const me_device_communicator *c)
{
    const uint64_t n = me_nccl_ring_channels(&memory->costs, c->shape);
    take(memory, ME_POOL_TAKER_MAPPED,
         me_nccl_connection_bytes(&memory->costs, false), n);
    take(memory, ME_POOL_TAKER_MAPPED,
         me_nccl_connection_bytes(&memory->costs, true), n);
    map_peers(memory, n, true, true);
}

void me_device_take_collective(me_device_memory *memory)
{
    take_local_memory(memory, memory->card.nccl.first_collective_bytes);
    take(memory, ME_POOL_TAKER_DRIVER, PIECE, COLLECTIVE_PIECES);
}

void me_device_take_broadcast(me_device_memory *memory)
{
    take_local_memory(memory, memory->card.nccl.first_collective_bytes +
                                  memory->card.nccl.first_broadcast_bytes);
}

/** ncclTransportP2pSetup(): at step i a rank receives from the rank i before it
 * and sends to the rank i behind it; all buffers first, then what is mapped. */
typedef struct step {
    bool receives;
    bool sends;
} step;

static void take_step(const me_device_memory *m, uint64_t n_channels, step s)
{
    take(m, ME_POOL_TAKER_MAPPED, me_nccl_connection_bytes(&m->costs, false),
         s.receives ? n_channels : 0);
    take(m, ME_POOL_TAKER_MAPPED, me_nccl_connection_bytes(&m->costs, true),
         s.sends ? n_channels : 0);
}

static step find_step(const me_device_communicator *c, int32_t distance)
{
    const bool is_pair = c->pair_peer >= 0;
    const int32_t size = c->shape.size;
    const int32_t from = (c->position + size - distance) % size;
    const int32_t to = (c->position + distance) % size;
    step s = {false, false};
    for (uint32_t i = 0; i < c->n_peers; i++) {
        const me_device_peer *peer = &c->peers[i];
        s.receives |=
            peer->is_new_to_receive && (is_pair || peer->rank == from);
        s.sends |= peer->is_new_to_send && (is_pair || peer->rank == to);
    }
    return s;
}

static bool has_new_peer(const me_device_communicator *c)
{
    bool has_new = false;
    for (uint32_t i = 0; i < c->n_peers; i++) {
        has_new |= c->peers[i].is_new_to_receive || c->peers[i].is_new_to_send;
    }
    return has_new;
}

void me_device_take_peers(const me_device_memory *memory,
                          const me_device_communicator *c)
{
    if (!has_new_peer(c)) {
        return;
    }
    const uint64_t n = me_nccl_peer_channels(&memory->costs, c->shape);
    for (int32_t i = 1; i < c->shape.size; i++) {
        take_step(memory, n, find_step(c, i));
    }
    for (int32_t i = 1; i < c->shape.size; i++) {
        const step s = find_step(c, i);
        map_peers(memory, n, s.receives, s.sends);
    }
}

void me_device_take_all_peers(const me_device_memory *memory,
                              const me_device_communicator *c)
{
    const uint64_t n = me_nccl_peer_channels(&memory->costs, c->shape);
    for (int32_t i = 1; i < c->shape.local; i++) {
        take_step(memory, n, (step){true, true});
    }
    for (int32_t i = 1; i < c->shape.local; i++) {
        map_peers(memory, n, true, true);
    }
}

void me_device_take_send_recv(me_device_memory *memory)
{
    take_local_memory(memory, memory->card.nccl.first_collective_bytes +
                                  memory->card.nccl.first_send_recv_bytes);
}

void me_device_take_buffers(const me_device_memory *memory, uint64_t bytes)
{
    take(memory, ME_POOL_TAKER_MAPPED, bytes, bytes > 0 ? 1 : 0);
}
