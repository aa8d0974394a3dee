/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/roster_wire.h"

#include "base/alloc.h"
#include "collectives/nccl_thread.h"

#include <stdlib.h>

enum {
    COMM_BYTES = 4 + 4 + 4 + 4 + 16,
    CHANNEL_BYTES = 4 + 4 + 4 + 4 + 16
};

static void put_digest(me_writer *writer, me_digest digest)
{
    me_writer_put(writer, digest.a, 8);
    me_writer_put(writer, digest.b, 8);
}

static me_digest get_digest(me_reader *reader)
{
    me_digest digest = {0};
    digest.a = me_reader_get(reader, 8);
    digest.b = me_reader_get(reader, 8);
    return digest;
}

static void put_log(me_writer *writer, const me_call_log *log)
{
    put_digest(writer, me_call_log_digest(log));
    me_writer_put(writer, log->n_calls, 4);
    me_writer_put(writer, log->n_comms, 4);
    for (uint32_t i = 0; i < log->n_comms; i++) {
        const struct ncclComm *comm = log->comms[i];
        me_writer_put(writer, (uint64_t)comm->group.kind, 4);
        me_writer_put_int(writer, comm->instance);
        me_writer_put_int(writer, comm->group.count);
        me_writer_put(writer, comm->calls, 4);
        put_digest(writer, comm->digest);
    }
    me_writer_put(writer, log->n_channels, 4);
    for (uint32_t i = 0; i < log->n_channels; i++) {
        const me_channel *channel = &log->channels[i];
        me_writer_put(writer, channel->comm, 4);
        me_writer_put(writer, channel->is_send, 4);
        me_writer_put_int(writer, channel->offset);
        me_writer_put(writer, channel->calls, 4);
        put_digest(writer, channel->digest);
    }
}

me_status me_part_write(me_writer *writer, const me_check_part *part,
                        me_diag *diag)
{
    if (me_nccl_section() != 0) {
        me_nccl_section_drop();
        return me_fail(diag, ME_ERR_INTERNAL,
                       "an ncclGroupStart has no ncclGroupEnd");
    }
    me_writer_put_int(writer, part->n_logs);
    for (int i = 0; i < part->n_logs; i++) {
        const me_status status = me_call_log_status(part->logs[i]);
        if (status != ME_OK) {
            return me_fail(diag, status, "the log of calls is incomplete: %s",
                           me_status_text(status));
        }
        put_log(writer, part->logs[i]);
    }
    me_writer_put_int(writer, part->n_ranks);
    for (int i = 0; i < part->n_ranks; i++) {
        me_writer_put_int(writer, part->ranks[i]);
        me_writer_put_int(writer, part->log_of[i]);
    }
    if (writer->status != ME_OK) {
        return me_fail(diag, writer->status,
                       "no host memory for the digests of %d logs",
                       part->n_logs);
    }
    return ME_OK;
}

static int compare_channels(const void *left, const void *right)
{
    const me_channel *a = left;
    const me_channel *b = right;
    if (a->comm != b->comm) {
        return a->comm < b->comm ? -1 : 1;
    }
    if (a->is_send != b->is_send) {
        return a->is_send ? 1 : -1;
    }
    return (a->offset > b->offset) - (a->offset < b->offset);
}

const me_channel *me_program_find_channel(const me_program *program, int comm,
                                          bool is_send, int32_t offset)
{
    const me_channel key = {
        .comm = (uint16_t)comm, .is_send = is_send, .offset = offset};
    return bsearch(&key, program->channels, program->n_channels, sizeof key,
                   compare_channels);
}

/** How many items of @p bytes follow; more than can follow is none. */
static uint32_t get_count(me_reader *reader, size_t bytes)
{
    const uint64_t count = me_reader_get(reader, 4);
    if (count > me_reader_rest(reader) / bytes) {
        reader->is_short = true;
        return 0;
    }
    return (uint32_t)count;
}

static void read_comm(me_reader *reader, me_comm_summary *comm)
{
    const uint64_t kind = me_reader_get(reader, 4);
    reader->is_short = reader->is_short || kind >= ME_GROUP_COUNT;
    comm->kind = reader->is_short ? ME_GROUP_WORLD : (me_group_kind)kind;
    comm->instance = me_reader_get_int(reader);
    comm->count = me_reader_get_int(reader);
    comm->calls = (uint32_t)me_reader_get(reader, 4);
    comm->digest = get_digest(reader);
}

static void read_channel(me_reader *reader, me_channel *channel)
{
    channel->comm = (uint16_t)me_reader_get(reader, 4);
    channel->is_send = me_reader_get(reader, 4) != 0;
    channel->offset = me_reader_get_int(reader);
    channel->calls = (uint32_t)me_reader_get(reader, 4);
    channel->digest = get_digest(reader);
}

me_status me_program_read(me_reader *reader, me_program *program)
{
    program->digest = get_digest(reader);
    program->n_calls = me_reader_get(reader, 4);
    program->n_comms = get_count(reader, COMM_BYTES);
    program->comms =
        me_alloc(program->n_comms, sizeof *program->comms, "roster.comms");
    for (uint32_t i = 0; program->comms != NULL && i < program->n_comms; i++) {
        read_comm(reader, &program->comms[i]);
    }
    if (program->comms == NULL) {
        return ME_ERR_NOMEM;
    }
    program->n_channels = get_count(reader, CHANNEL_BYTES);
    program->channels = me_alloc(program->n_channels, sizeof *program->channels,
                                 "roster.channels");
    if (program->channels == NULL || reader->is_short) {
        const bool is_full = program->channels == NULL;
        me_free(program->comms);
        me_free(program->channels);
        return is_full ? ME_ERR_NOMEM : ME_ERR_INTERNAL;
    }
    for (uint32_t i = 0; i < program->n_channels; i++) {
        read_channel(reader, &program->channels[i]);
    }
    qsort(program->channels, program->n_channels, sizeof *program->channels,
          compare_channels);
    return ME_OK;
}
