/* SPDX-License-Identifier: BSD-3-Clause */
#include "alloc/device_memory.h"

#include "alloc/device_addresses.h"
#include "base/size.h"
#include "model/effect.h"

static void once(me_device_memory *m, bool *has, uint64_t bytes)
{
    m->library_bytes += *has ? 0 : bytes;
    *has = true;
}

static void grow(me_device_memory *m, me_device_communicator *c, uint64_t bytes)
{
    c->bytes += bytes;
    m->communicator_bytes += bytes;
}

void me_device_memory_begin(me_device_memory *memory,
                            const me_device_card *card,
                            const me_nccl_setup *setup)
{
    *memory = (me_device_memory){
        .card = *card,
        .costs = {.card = card->nccl, .setup = *setup},
        .context_bytes = card->context_bytes,
    };
}

void me_device_memory_settle(me_device_memory *memory)
{
    if (memory->owes_kernel) {
        me_device_take_kernel(memory);
        memory->owes_kernel = false;
    }
    me_device_communicator *c = memory->batch;
    if (c == NULL) {
        return;
    }
    memory->batch = NULL;
    me_device_take_peers(memory, c);
    me_device_take_send_recv(memory);
    for (uint32_t i = 0; i < c->n_peers; i++) {
        c->peers[i].is_new_to_send = false;
        c->peers[i].is_new_to_receive = false;
    }
}

void me_device_memory_library(me_device_memory *memory, uint64_t bytes)
{
    memory->library_bytes += bytes;
}

void me_device_memory_user_buffers(me_device_memory *memory, uint64_t bytes)
{
    memory->user_buffer_bytes += bytes;
    me_device_memory_library(memory, bytes);
}

void me_device_memory_kernel(me_device_memory *memory)
{
    memory->owes_kernel |= !memory->has_kernel;
    once(memory, &memory->has_kernel, memory->card.first_kernel_bytes);
}

void me_device_memory_matmul(me_device_memory *memory, me_device_thread thread)
{
    const bool is_first = !memory->has_cublas[ME_DEVICE_TRAINING_THREAD] &&
                          !memory->has_cublas[ME_DEVICE_AUTOGRAD_THREAD];
    if (!memory->has_cublas[thread]) {
        me_device_take_cublas(memory, is_first);
    }
    once(memory, &memory->has_cublas[thread], memory->card.cublas_handle_bytes);
}

void me_device_memory_cudnn(me_device_memory *memory, me_device_thread thread)
{
    once(memory, &memory->has_cudnn[thread], memory->card.cudnn_handle_bytes);
}

/** What loads after NCCL's send/receive kernel fits into what that took. */
void me_device_memory_modules(me_device_memory *memory)
{
    const bool is_absorbed = memory->has_send_recv;
    once(memory, &memory->has_small_modules,
         is_absorbed ? 0 : memory->card.small_modules_bytes);
}

static bool is_send_recv(me_collective collective)
{
    return collective == ME_COLLECTIVE_SEND || collective == ME_COLLECTIVE_RECV;
}

static me_device_communicator *find(me_device_memory *m,
                                    const me_device_call *call, int32_t pair)
{
    for (size_t i = 0; i < m->n_communicators; i++) {
        me_device_communicator *c = &m->communicators[i];
        if (c->group == call->group && c->pair_peer == pair) {
            return c;
        }
    }
    if (m->n_communicators == ME_DEVICE_MAX_COMMUNICATORS) {
        return NULL;
    }
    if (m->n_communicators == 0) {
        m->library_bytes += m->card.nccl.first_communicator_bytes;
    }
    me_device_communicator *c = &m->communicators[m->n_communicators++];
    *c = (me_device_communicator){
        .group = call->group,
        .pair_peer = pair,
        .position = call->position,
        .shape = pair < 0 ? call->shape
                          : (me_group_shape){2, call->is_peer_remote ? 1 : 2},
        .has_ring = m->costs.setup.connects_at_init,
    };
    grow(m, c, me_nccl_base_bytes(&m->costs, c->shape));
    me_device_take_communicator(m, c);
    return c;
}

/** One pool of a communicator and direction serves all peers that are reached
 * over the network. */
static void connect_net(me_device_memory *m, me_device_communicator *c,
                        bool is_send)
{
    bool *has = is_send ? &c->has_net_send_pool : &c->has_net_recv_pool;
    if (!*has) {
        grow(m, c, me_nccl_net_pool_bytes(&m->costs));
        me_device_take_buffers(m, me_nccl_net_pool_bytes(&m->costs));
    }
    *has = true;
}

static me_status connect_peer(me_device_memory *m, me_device_communicator *c,
                              const me_device_call *call, me_diag *diag)
{
    const bool is_send = call->collective == ME_COLLECTIVE_SEND;
    if (call->is_peer_remote) {
        connect_net(m, c, is_send);
        return ME_OK;
    }
    uint32_t i = 0;
    while (i < c->n_peers && c->peers[i].rank != call->peer) {
        i++;
    }
    if (i == ME_DEVICE_MAX_PEERS) {
        return me_fail(diag, ME_ERR_UNSUPPORTED,
                       "device memory: more than %d peers in group %s",
                       ME_DEVICE_MAX_PEERS, me_group_kind_name(call->group));
    }
    if (i == c->n_peers) {
        c->peers[c->n_peers++] = (me_device_peer){.rank = call->peer};
    }
    bool *has =
        is_send ? &c->peers[i].is_sent_to : &c->peers[i].is_received_from;
    if (!*has && !c->is_all_to_all) {
        grow(m, c, me_nccl_peer_bytes(&m->costs, c->shape, is_send));
        c->peers[i].is_new_to_send |= is_send;
        c->peers[i].is_new_to_receive |= !is_send;
    }
    *has = true;
    return ME_OK;
}

/** Every peer both ways, less what is connected already. */
static void connect_all(me_device_memory *m, me_device_communicator *c)
{
    if (c->is_all_to_all) {
        return;
    }
    const uint64_t send = me_nccl_peer_bytes(&m->costs, c->shape, true);
    const uint64_t receive = me_nccl_peer_bytes(&m->costs, c->shape, false);
    uint64_t bytes = (uint64_t)(c->shape.local - 1) * (send + receive);
    for (uint32_t i = 0; i < c->n_peers; i++) {
        const uint64_t made = (c->peers[i].is_sent_to ? send : 0) +
                              (c->peers[i].is_received_from ? receive : 0);
        bytes -= me_min_u64(bytes, made);
    }
    c->is_all_to_all = true;
    grow(m, c, bytes);
    me_device_take_all_peers(m, c);
    if (c->shape.local < c->shape.size) {
        connect_net(m, c, true);
        connect_net(m, c, false);
    }
}

static void connect_ring(me_device_memory *m, me_device_communicator *c,
                         const me_device_call *call)
{
    if (!c->has_ring) {
        grow(m, c, me_nccl_ring_bytes(&m->costs, c->shape));
        me_device_take_ring(m, c);
        c->has_ring = true;
    }
    if (!m->has_collective) {
        me_device_take_collective(m);
    }
    once(m, &m->has_collective, m->card.nccl.first_collective_bytes);
    if (call->collective == ME_COLLECTIVE_BROADCAST) {
        if (!m->has_broadcast) {
            me_device_take_broadcast(m);
        }
        once(m, &m->has_broadcast, m->card.nccl.first_broadcast_bytes);
    }
    const uint64_t nvls = me_nccl_nvls_bytes(
        &m->costs, c->shape, call->collective == ME_COLLECTIVE_ALL_REDUCE,
        call->bytes);
    if (nvls > 0 && !c->has_nvls) {
        grow(m, c, nvls);
        me_device_take_buffers(m, nvls);
        c->has_nvls = true;
    }
}

/** Part of the batch that runs, or the first of one. */
static me_status call_peer(me_device_memory *m, me_device_communicator *c,
                           const me_device_call *call, me_diag *diag)
{
    m->batch = c;
    const me_status status = connect_peer(m, c, call, diag);
    if (status == ME_OK && call->is_lone) {
        me_device_memory_settle(m);
    }
    return status;
}

me_status me_device_memory_call(me_device_memory *memory,
                                const me_device_call *call, me_diag *diag)
{
    const bool is_peer_to_peer = is_send_recv(call->collective);
    const int32_t pair = is_peer_to_peer && call->is_lone ? call->peer : -1;
    if (!is_peer_to_peer || call->is_lone ||
        (memory->batch != NULL && memory->batch->group != call->group)) {
        me_device_memory_settle(memory);
    }
    me_device_communicator *c = find(memory, call, pair);
    if (c == NULL) {
        return me_fail(diag, ME_ERR_UNSUPPORTED,
                       "device memory: more than %d communicators",
                       ME_DEVICE_MAX_COMMUNICATORS);
    }
    if (c->shape.size == 1) {
        return ME_OK; // its collectives are copies
    }
    if (!is_peer_to_peer && call->collective != ME_COLLECTIVE_ALL_TO_ALL) {
        connect_ring(memory, c, call);
        return ME_OK;
    }
    const bool is_first = !memory->has_send_recv;
    once(memory, &memory->has_send_recv,
         memory->card.nccl.first_send_recv_bytes);
    if (is_peer_to_peer) {
        return call_peer(memory, c, call, diag);
    }
    connect_all(memory, c);
    if (is_first) {
        me_device_take_send_recv(memory);
    }
    return ME_OK;
}

void me_device_memory_exchange(me_device_memory *memory, me_group_kind group)
{
    if (memory->batch != NULL && memory->batch->group != group) {
        me_device_memory_settle(memory);
    }
    for (size_t i = 0; i < memory->n_communicators; i++) {
        me_device_communicator *c = &memory->communicators[i];
        if (c->group == group && c->pair_peer < 0) {
            memory->batch = c;
        }
    }
}

uint64_t me_device_memory_bytes(const me_device_memory *memory)
{
    return memory->context_bytes + memory->library_bytes +
           memory->communicator_bytes;
}

uint64_t me_device_memory_band_bytes(const me_device_memory *memory)
{
    const uint64_t measured = ME_MEASURED_DEVICE_BAND_BYTES;
    // The file of an own measurement gives all of them.
    return memory->card.like[0] == '\0'
               ? measured
               : measured + memory->context_bytes / 25 +
                     memory->library_bytes / 2;
}
