/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/call_log.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/size.h"
#include "collectives/call_log_impl.h"
#include "collectives/nccl_thread.h"

#include <string.h>

/** Room for one more item in an array that doubles. */
static bool grow(void **items, uint32_t count, uint32_t *capacity, size_t size,
                 const char *name)
{
    void *larger = me_grow(*items, count, capacity, size, name);
    *items = larger == NULL ? *items : larger;
    return larger != NULL;
}

static me_status stick(me_call_log *log, me_status status)
{
    if (log->status == ME_OK) {
        log->status = status;
    }
    return log->status;
}

static uint32_t hash_channel(uint32_t comm, bool is_send, int32_t offset)
{
    const uint64_t key =
        (uint64_t)comm << 33 | (uint64_t)is_send << 32 | (uint32_t)offset;
    return (uint32_t)me_digest_mix(key + 1);
}

/** The bucket that holds the channel, or the empty one where it would go. */
static uint32_t find_bucket(const me_call_log *log, uint32_t comm, bool is_send,
                            int32_t offset)
{
    const uint32_t mask = log->n_buckets - 1;
    uint32_t at = hash_channel(comm, is_send, offset) & mask;
    while (log->buckets[at] != 0) {
        const me_channel *channel = &log->channels[log->buckets[at] - 1];
        if (channel->comm == comm && channel->is_send == is_send &&
            channel->offset == offset) {
            break;
        }
        at = (at + 1) & mask;
    }
    return at;
}

uint32_t me_call_log_find_channel(const me_call_log *log, uint32_t comm,
                                  bool is_send, int32_t offset)
{
    if (log->n_buckets == 0) {
        return UINT32_MAX;
    }
    const uint32_t at = find_bucket(log, comm, is_send, offset);
    return log->buckets[at] == 0 ? UINT32_MAX : log->buckets[at] - 1;
}

static bool grow_buckets(me_call_log *log)
{
    if (log->n_channels < log->n_buckets / 2) {
        return true;
    }
    const uint32_t n = log->n_buckets == 0 ? 32 : log->n_buckets * 2;
    uint32_t *buckets = me_alloc(n, sizeof *buckets, "call_log.buckets");
    if (buckets == NULL) {
        return false;
    }
    me_free(log->buckets);
    log->buckets = buckets;
    log->n_buckets = n;
    for (uint32_t i = 0; i < log->n_channels; i++) {
        const me_channel *channel = &log->channels[i];
        buckets[find_bucket(log, channel->comm, channel->is_send,
                            channel->offset)] = i + 1;
    }
    return true;
}

/** The channel of @p call, made if it is the first; UINT32_MAX: no memory. */
static uint32_t open_channel(me_call_log *log, const me_call *call)
{
    const bool is_send = call->kind == ME_CALL_SEND;
    void *channels = log->channels;
    if (!grow_buckets(log) ||
        !grow(&channels, log->n_channels, &log->channel_capacity,
              sizeof *log->channels, "call_log.channels")) {
        return UINT32_MAX;
    }
    log->channels = channels;
    const uint32_t at = find_bucket(log, call->comm, is_send, call->peer);
    if (log->buckets[at] == 0) {
        log->channels[log->n_channels] = (me_channel){
            .comm = call->comm, .is_send = is_send, .offset = call->peer};
        log->buckets[at] = ++log->n_channels;
    }
    return log->buckets[at] - 1;
}

/** Everything that another rank's matching collective must share, in two
 *  words. */
static void digest_call(me_digest *digest, const me_call *call)
{
    me_digest_add(digest, call->kind | (uint64_t)call->dtype << 8 |
                              (uint64_t)call->op << 16 |
                              (uint64_t)(uint32_t)call->peer << 32);
    me_digest_add(digest, call->count);
}

/** One more call of a channel: what its other side must share of it. */
static void file_p2p(me_channel *channel, me_call *call)
{
    call->seq = channel->calls++;
    me_digest_add_three(&channel->digest, call->dtype, call->count, 0);
}

/** Channel, seq and the running digests of a call that is not a wait. */
static me_status file_call(me_call_log *log, me_call *call)
{
    ncclComm_t comm = log->comms[call->comm];
    if (me_call_is_p2p(call)) {
        call->channel = open_channel(log, call);
        if (call->channel == UINT32_MAX) {
            return stick(log, ME_ERR_NOMEM);
        }
        file_p2p(&log->channels[call->channel], call);
    } else {
        call->seq = comm->calls++;
        digest_call(&comm->digest, call);
    }
    return ME_OK;
}

/** Put a call that is filed into the log, which has room. */
static void put_call(me_call_log *log, const me_call *call)
{
    me_digest_add_three(
        &log->digest,
        call->kind | (uint64_t)call->dtype << 8 | (uint64_t)call->op << 16 |
            (uint64_t)call->stream << 24 | (uint64_t)(uint32_t)call->peer << 32,
        call->count, call->comm | (uint64_t)call->group << 32);
    if (!log->is_dropped) {
        log->calls[log->n_calls] = *call;
    }
    log->n_calls++;
}

static bool reserve_call(me_call_log *log)
{
    void *calls = log->calls;
    const bool has_room = grow(&calls, log->n_calls, &log->call_capacity,
                               sizeof *log->calls, "call_log.calls");
    log->calls = calls;
    return has_room;
}

me_status me_call_log_append(me_call_log *log, me_call call)
{
    if (log->status != ME_OK) {
        return log->status;
    }
    if (!reserve_call(log)) {
        return stick(log, ME_ERR_NOMEM);
    }
    if (call.kind != ME_CALL_WAIT && file_call(log, &call) != ME_OK) {
        return log->status;
    }
    put_call(log, &call);
    return ME_OK;
}

/** As me_call_log_append() of a send or receive. @param channel  where its channel
 *  is kept, see ncclComm.channels */
static me_status append_p2p(me_call_log *log, me_call *call, uint32_t *channel)
{
    if (*channel == 0) {
        *channel = open_channel(log, call) + 1;
    }
    if (*channel == 0 || !reserve_call(log)) {
        *channel = 0;
        return stick(log, ME_ERR_NOMEM);
    }
    call->channel = *channel - 1;
    file_p2p(&log->channels[call->channel], call);
    put_call(log, call);
    return ME_OK;
}

me_status me_call_log_append_exchange(me_call_log *log, me_call like,
                                      const me_row_exchange *rows)
{
    ncclComm_t comm = log->comms[like.comm];
    const int size = comm->group.count;
    if (comm->channels == NULL) {
        comm->channels = me_alloc(2 * (size_t)size, sizeof *comm->channels,
                                  "call_log.exchange");
    }
    if (comm->channels == NULL) {
        return stick(log, ME_ERR_NOMEM);
    }
    for (int i = 1; i < size && log->status == ME_OK; i++) {
        const int peer = (comm->index + i) % size;
        me_call call = like;
        call.peer = i;
        call.kind = ME_CALL_SEND;
        call.count = rows->sent[peer] * rows->width;
        if (rows->sent[peer] > 0) {
            (void)append_p2p(log, &call, &comm->channels[i]);
        }
        call.kind = ME_CALL_RECV;
        call.count = rows->received[peer] * rows->width;
        if (rows->received[peer] > 0 && log->status == ME_OK) {
            (void)append_p2p(log, &call, &comm->channels[size + i]);
        }
    }
    return log->status;
}

me_status me_call_log_repeat(me_call_log *log, uint64_t begin, uint64_t end)
{
    const uint32_t first_new = log->n_groups + 1;
    uint32_t first = 0; // section of those that are copied
    if (log->is_dropped && begin < end) {
        return stick(log, ME_ERR_INTERNAL);
    }
    for (uint64_t i = begin; i < end && log->status == ME_OK; i++) {
        me_call call = log->calls[i];
        if (call.group != 0) {
            first = first == 0 ? call.group : first;
            call.group = call.group - first + first_new;
            log->n_groups =
                log->n_groups < call.group ? call.group : log->n_groups;
        }
        (void)me_call_log_append(log, call);
    }
    return log->status;
}

uint32_t me_call_log_stream(me_call_log *log, cudaStream_t stream)
{
    for (uint32_t i = log->n_streams; i-- > 0;) {
        if (log->streams[i] == stream) {
            return i;
        }
    }
    if (log->n_streams == ME_MAX_STREAMS) {
        (void)stick(log, ME_ERR_UNSUPPORTED);
        return ME_MAX_STREAMS;
    }
    log->streams[log->n_streams] = stream;
    return log->n_streams++;
}

me_status me_call_log_wait(me_call_log *log, cudaStream_t waiter,
                           cudaStream_t awaited)
{
    const uint32_t stream = me_call_log_stream(log, waiter);
    const uint32_t peer = me_call_log_stream(log, awaited);
    if (stream == peer || log->status != ME_OK) {
        return log->status;
    }
    return me_call_log_append(log, (me_call){.kind = ME_CALL_WAIT,
                                             .stream = (uint8_t)stream,
                                             .peer = (int32_t)peer});
}

static void destroy_comm(ncclComm_t comm)
{
    if (comm != NULL) {
        union {
            const int *read_only;
            int *owned;
        } members = {.read_only = comm->group.members};

        me_free(members.owned);
        me_free(comm->channels);
        me_free(comm);
    }
}

/** A communicator that is not yet in the log; NULL without memory. */
static ncclComm_t make_comm(me_call_log *log, const me_comm_group *group,
                            int index)
{
    ncclComm_t comm = me_alloc(1, sizeof *comm, "call_log.comm");
    if (comm == NULL) {
        return NULL;
    }
    comm->log = log;
    comm->group = *group;
    comm->index = index;
    if (group->members != NULL) {
        const size_t count = (size_t)group->count;
        int *members = me_alloc(count, sizeof *members, "call_log.members");
        comm->group.members = members;
        if (members == NULL) {
            destroy_comm(comm);
            return NULL;
        }
        memcpy(members, group->members, count * sizeof *members);
    }
    return comm;
}

me_status me_comm_add(me_call_log *log, const me_comm_group *group, int index,
                      ncclComm_t *comm_out)
{
    if (log->n_comms == ME_MAX_COMMS) {
        return stick(log, ME_ERR_UNSUPPORTED);
    }
    ncclComm_t comm = make_comm(log, group, index);
    ncclComm_t *comms = me_realloc(log->comms, log->n_comms + 1,
                                   sizeof(ncclComm_t), "call_log.comms");
    if (comms != NULL) {
        log->comms = comms;
    }
    if (comm == NULL || comms == NULL) {
        destroy_comm(comm);
        return stick(log, ME_ERR_NOMEM);
    }
    comm->id = (uint16_t)log->n_comms;
    comm->instance = (uint16_t)log->n_of_kind[group->kind]++;
    log->comms[log->n_comms++] = comm;
    me_digest_add(&log->comms_digest, (uint64_t)group->kind << 32 |
                                          (uint64_t)(uint32_t)group->count);
    *comm_out = comm;
    return ME_OK;
}

me_status me_comm_create(me_call_log *log, const me_comm_group *group,
                         int index, me_diag *diag, ncclComm_t *comm_out)
{
    if (!me_comm_group_is_valid(group, INT32_MAX) || index < 0 ||
        index >= group->count) {
        return me_fail(diag, ME_ERR_INTERNAL,
                       "no communicator of %d members has a rank %d",
                       group->count, index);
    }
    const me_status status = me_comm_add(log, group, index, comm_out);
    if (status != ME_OK) {
        return me_fail(diag, status, "no room for a communicator of %d members",
                       group->count);
    }
    return ME_OK;
}

void me_call_log_set_split(me_call_log *log, me_split_members members,
                           void *self)
{
    log->split = members;
    log->split_self = self;
}

me_digest me_call_log_digest(const me_call_log *log)
{
    me_digest digest = log->comms_digest;
    me_digest_add(&digest, log->n_calls);
    me_digest_add(&digest, log->digest.a);
    me_digest_add(&digest, log->digest.b);
    return digest;
}

void me_call_log_drop_calls(me_call_log *log)
{
    me_free(log->calls);
    log->calls = NULL;
    log->call_capacity = 0;
    log->is_dropped = true;
}

bool me_call_log_has_calls(const me_call_log *log)
{
    return !log->is_dropped;
}

bool me_call_log_is_same(const me_call_log *a, const me_call_log *b)
{
    return a->status == ME_OK && b->status == ME_OK &&
           me_digest_is_equal(me_call_log_digest(a), me_call_log_digest(b));
}

uint64_t me_call_log_count(const me_call_log *log)
{
    return log->n_calls;
}

me_status me_call_log_status(const me_call_log *log)
{
    return log->status;
}

me_status me_call_log_create(me_call_log **log_out)
{
    *log_out = me_alloc(1, sizeof **log_out, "call_log");
    return *log_out == NULL ? ME_ERR_NOMEM : ME_OK;
}

void me_call_log_clear(me_call_log *log)
{
    for (uint32_t i = 0; i < log->n_comms; i++) {
        if (log->comms[i]->self_sends + log->comms[i]->self_recvs > 0) {
            me_nccl_section_drop(); // it is in the open section's list
        }
        destroy_comm(log->comms[i]);
    }
    me_free(log->comms);
    me_free(log->calls);
    me_free(log->channels);
    me_free(log->buckets);
    *log = (me_call_log){.n_calls = 0};
}

void me_call_log_destroy(me_call_log *log)
{
    if (log != NULL) {
        me_call_log_clear(log);
        me_free(log);
    }
}
