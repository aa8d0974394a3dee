/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "collectives/call_log.h"
#include "collectives/call_log_impl.h"
#include "collectives/nccl_type.h"
#include "collectives/wire.h"

/** "MECL", then the version; all numbers are little endian.
 *
 *   header  magic 4, version 2, 0 2, communicators 4, calls 4
 *   comm    kind 1, 0 3, members 4
 *   call    count 8, group 4, peer 4, comm 2, kind 1, dtype 1, op 1, stream 1,
 *           0 2
 */
enum {
    VERSION = 1,
    COMM_BYTES = 8,
    CALL_BYTES = 24
};

static const uint32_t magic = UINT32_C(0x4c43454d);

static void put_call(me_writer *writer, const me_call *call)
{
    me_writer_put(writer, call->count, 8);
    me_writer_put(writer, call->group, 4);
    me_writer_put_int(writer, call->peer);
    me_writer_put(writer, call->comm, 2);
    me_writer_put(writer, call->kind, 1);
    me_writer_put(writer, call->dtype, 1);
    me_writer_put(writer, call->op, 1);
    me_writer_put(writer, call->stream, 1);
    me_writer_put(writer, 0, 2);
}

me_status me_call_log_encode(const me_call_log *log, me_diag *diag,
                             unsigned char **bytes_out, size_t *size_out)
{
    me_writer writer = {0};
    me_writer_put(&writer, magic, 4);
    me_writer_put(&writer, VERSION, 2);
    me_writer_put(&writer, 0, 2);
    me_writer_put(&writer, log->n_comms, 4);
    me_writer_put(&writer, log->n_calls, 4);
    for (uint32_t i = 0; i < log->n_comms; i++) {
        me_writer_put(&writer, (uint64_t)log->comms[i]->group.kind, 4);
        me_writer_put_int(&writer, log->comms[i]->group.count);
    }
    for (uint32_t i = 0; i < log->n_calls; i++) {
        put_call(&writer, &log->calls[i]);
    }
    if (writer.status != ME_OK) {
        me_writer_fini(&writer);
        return me_fail(diag, ME_ERR_NOMEM, "no host memory to send %u calls",
                       (unsigned)log->n_calls);
    }
    *bytes_out = writer.bytes;
    *size_out = writer.size;
    return ME_OK;
}

static me_call get_call(me_reader *reader)
{
    me_call call = {0};
    call.count = me_reader_get(reader, 8);
    call.group = (uint32_t)me_reader_get(reader, 4);
    call.peer = me_reader_get_int(reader);
    call.comm = (uint16_t)me_reader_get(reader, 2);
    call.kind = (uint8_t)me_reader_get(reader, 1);
    call.dtype = (uint8_t)me_reader_get(reader, 1);
    call.op = (uint8_t)me_reader_get(reader, 1);
    call.stream = (uint8_t)me_reader_get(reader, 1);
    if (me_reader_get(reader, 2) != 0) {
        call.kind = ME_CALL_COUNT;
    }
    return call;
}

/** Whether a stub or me_call_log_wait() could have made this record. */
static bool is_possible(const me_call_log *log, const me_call *call)
{
    if (call->kind == ME_CALL_WAIT) {
        return call->peer >= 0 && call->peer < ME_MAX_STREAMS &&
               call->stream != (uint32_t)call->peer && call->group == 0 &&
               call->comm == 0 && call->count == 0 && call->dtype == 0 &&
               call->op == 0 && call->stream < ME_MAX_STREAMS;
    }
    if (call->kind >= ME_CALL_COUNT || call->comm >= log->n_comms ||
        call->dtype >= ncclNumTypes || call->stream == ME_MAX_STREAMS) {
        return false;
    }
    const int size = log->comms[call->comm]->group.count;
    const bool has_peer = me_call_is_p2p(call) || me_call_has_root(call);
    const bool is_group_next = call->group == 0 ||
                               call->group == log->n_groups ||
                               call->group == log->n_groups + 1;
    return is_group_next && call->peer >= 0 &&
           call->peer < (has_peer ? size : 1) &&
           call->op < (me_call_has_op(call) ? ncclNumOps : 1) &&
           me_call_sent_bytes(call, size) != UINT64_MAX;
}

static me_status read_comms(me_reader *reader, me_call_log *log, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t kind = me_reader_get(reader, 4);
        const int members = me_reader_get_int(reader);
        if (kind >= ME_GROUP_COUNT || members < 1) {
            return ME_ERR_SYNTAX;
        }
        const me_comm_group group = {.kind = (me_group_kind)kind,
                                     .count = members};
        ncclComm_t comm = NULL;
        const me_status status = me_comm_add(log, &group, 0, &comm);
        if (status != ME_OK) {
            return status;
        }
    }
    return ME_OK;
}

static me_status read_calls(me_reader *reader, me_call_log *log, uint32_t count)
{
    me_status status = ME_OK;
    for (uint32_t i = 0; status == ME_OK && i < count; i++) {
        const me_call call = get_call(reader);
        if (!is_possible(log, &call)) {
            return ME_ERR_SYNTAX;
        }
        log->n_groups = call.group > log->n_groups ? call.group : log->n_groups;
        status = me_call_log_append(log, call);
    }
    return status;
}

static me_status read_log(me_reader *reader, me_call_log *log)
{
    const uint64_t found = me_reader_get(reader, 4);
    const uint64_t version = me_reader_get(reader, 2);
    const uint64_t zero = me_reader_get(reader, 2);
    const uint64_t n_comms = me_reader_get(reader, 4);
    const uint64_t n_calls = me_reader_get(reader, 4);
    const uint64_t rest = me_reader_rest(reader);
    if (reader->is_short || found != magic || version != VERSION || zero != 0 ||
        n_comms > ME_MAX_COMMS ||
        rest != n_comms * COMM_BYTES + n_calls * CALL_BYTES) {
        return ME_ERR_SYNTAX;
    }
    const me_status status = read_comms(reader, log, (uint32_t)n_comms);
    return status == ME_OK ? read_calls(reader, log, (uint32_t)n_calls)
                           : status;
}

me_status me_call_log_decode(const unsigned char *bytes, size_t size,
                             me_diag *diag, me_call_log **log_out)
{
    me_call_log *log = NULL;
    me_status status = me_call_log_create(&log);
    me_reader reader = {.bytes = bytes, .size = size};
    if (status == ME_OK) {
        status = read_log(&reader, log);
    }
    if (status != ME_OK) {
        me_call_log_destroy(log);
        return me_fail(diag, status,
                       "a log of calls breaks off or is damaged "
                       "at byte %zu of %zu",
                       reader.at, size);
    }
    *log_out = log;
    return ME_OK;
}
