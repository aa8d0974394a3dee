/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "collectives/roster.h"
#include "collectives/wire.h"

#include <string.h>

/** A log whose calls were dropped, made anew. */
static me_status make_again(const me_check_part *part, int number,
                            me_diag *diag, me_call_log **log_out)
{
    me_call_log *again = NULL;
    me_status status = part->remake(part->remake_self, number, diag, &again);
    if (status == ME_OK && !me_call_log_is_same(part->logs[number], again)) {
        me_call_log_destroy(again);
        return me_fail(diag, ME_ERR_INTERNAL,
                       "a program makes other calls the second time");
    }
    *log_out = status == ME_OK ? again : NULL;
    return status;
}

/** A log as bytes. */
static me_status encode(const me_check_part *part, int number, me_diag *diag,
                        unsigned char **bytes_out, size_t *size_out)
{
    const me_call_log *log = part->logs[number];
    me_call_log *again = NULL;
    me_status status = ME_OK;
    if (!me_call_log_has_calls(log)) {
        status = make_again(part, number, diag, &again);
        log = again;
    }
    if (status == ME_OK) {
        status = me_call_log_encode(log, diag, bytes_out, size_out);
    }
    me_call_log_destroy(again);
    return status;
}

/** number 4, size 8, then the encoded log. */
static me_status write_wanted(me_writer *writer, const me_check_part *part,
                              const me_roster *roster, int process,
                              const bool *is_wanted, me_diag *diag)
{
    for (int i = 0; i < roster->n_programs; i++) {
        const me_program *program = &roster->programs[i];
        if (!is_wanted[i] || program->process != process) {
            continue;
        }
        unsigned char *bytes = NULL;
        size_t size = 0;
        const me_status status =
            encode(part, program->log, diag, &bytes, &size);
        if (status != ME_OK) {
            return status;
        }
        me_writer_put_int(writer, i);
        me_writer_put(writer, size, 8);
        me_writer_put_bytes(writer, bytes, size);
        me_free(bytes);
    }
    if (writer->status != ME_OK) {
        return me_fail(diag, writer->status, "no host memory to send calls");
    }
    return ME_OK;
}

static me_status read_logs(me_blob blob, me_diag *diag, me_roster_logs *to)
{
    me_reader reader = {.bytes = blob.bytes, .size = blob.size};
    while (me_reader_rest(&reader) > 0) {
        const int number = me_reader_get_int(&reader);
        const uint64_t size = me_reader_get(&reader, 8);
        if (reader.is_short || number < 0 || number >= to->count ||
            to->own[number] != NULL || size > me_reader_rest(&reader)) {
            return me_fail(diag, ME_ERR_INTERNAL,
                           "calls arrived damaged at byte %zu of %zu",
                           reader.at, reader.size);
        }
        const me_status status = me_call_log_decode(
            reader.bytes + reader.at, (size_t)size, diag, &to->own[number]);
        if (status != ME_OK) {
            return status;
        }
        to->logs[number] = to->own[number];
        reader.at += (size_t)size;
    }
    return ME_OK;
}

/** Room for a log of each program. */
static me_status begin_logs(const me_roster *roster, me_diag *diag,
                            me_roster_logs *logs)
{
    const size_t n = (size_t)roster->n_programs;
    logs->count = roster->n_programs;
    logs->logs = me_alloc(n, sizeof(const me_call_log *), "roster.logs");
    logs->own = me_alloc(n, sizeof(me_call_log *), "roster.logs");
    return logs->logs != NULL && logs->own != NULL
               ? ME_OK
               : me_fail(diag, ME_ERR_NOMEM, "no host memory for %d logs",
                         roster->n_programs);
}

/** Of the only process: its own. */
static me_status borrow_logs(const me_check_part *part, const me_roster *roster,
                             const bool *is_wanted, me_diag *diag,
                             me_roster_logs *logs)
{
    me_status status = begin_logs(roster, diag, logs);
    for (int i = 0; status == ME_OK && i < logs->count; i++) {
        const int number = roster->programs[i].log;
        if (!is_wanted[i]) {
            continue;
        }
        logs->logs[i] = part->logs[number];
        if (!me_call_log_has_calls(logs->logs[i])) {
            status = make_again(part, number, diag, &logs->own[i]);
            logs->logs[i] = logs->own[i];
        }
    }
    return status;
}

/** Of all processes, as bytes. */
static me_status gather_logs(me_transport *transport, const me_check_part *part,
                             const me_roster *roster, const bool *is_wanted,
                             me_diag *diag, me_roster_logs *logs)
{
    const int n_processes = me_transport_size(transport);
    me_writer writer = {0};
    me_blob *blobs = NULL;
    me_status status = write_wanted(
        &writer, part, roster, me_transport_rank(transport), is_wanted, diag);
    status = me_transport_agree(transport, status, diag);
    if (status == ME_OK) {
        status = me_transport_gather(transport, writer.bytes, writer.size, diag,
                                     &blobs);
    }
    me_writer_fini(&writer);
    if (status != ME_OK) {
        return status;
    }
    if (blobs != NULL) {
        status = begin_logs(roster, diag, logs);
    }
    for (int i = 0; blobs != NULL && status == ME_OK && i < n_processes; i++) {
        status = read_logs(blobs[i], diag, logs);
    }
    me_blobs_free(blobs, n_processes);
    return me_transport_agree(transport, status, diag);
}

me_status me_roster_fetch(me_transport *transport, const me_check_part *part,
                          const me_roster *roster, const bool *is_wanted,
                          me_diag *diag, me_roster_logs *logs_out)
{
    me_roster_logs logs = {.logs = NULL};
    const me_status status =
        me_transport_size(transport) == 1
            ? borrow_logs(part, roster, is_wanted, diag, &logs)
            : gather_logs(transport, part, roster, is_wanted, diag, &logs);
    if (status != ME_OK) {
        me_roster_logs_fini(&logs);
        return status;
    }
    *logs_out = logs;
    return ME_OK;
}

void me_roster_logs_fini(me_roster_logs *logs)
{
    for (int i = 0; logs->own != NULL && i < logs->count; i++) {
        me_call_log_destroy(logs->own[i]);
    }
    me_free(logs->own);
    me_free((void *)logs->logs);
    *logs = (me_roster_logs){.logs = NULL};
}
