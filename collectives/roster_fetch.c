/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "collectives/roster.h"
#include "collectives/wire.h"

#include <string.h>

/** A log as bytes, of calls made anew if they were dropped. */
static me_status encode(const me_check_part *part, int number, me_diag *diag,
                        unsigned char **bytes_out, size_t *size_out)
{
    const me_call_log *log = part->logs[number];
    if (me_call_log_has_calls(log)) {
        return me_call_log_encode(log, diag, bytes_out, size_out);
    }
    me_call_log *again = NULL;
    me_status status = part->remake(part->remake_self, number, diag, &again);
    if (status == ME_OK && !me_call_log_is_same(log, again)) {
        status = me_fail(diag, ME_ERR_INTERNAL,
                         "a program makes other calls the second time");
    }
    if (status == ME_OK) {
        status = me_call_log_encode(again, diag, bytes_out, size_out);
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

static me_status read_logs(const me_roster *roster, me_blob blob,
                           me_call_log **logs, me_diag *diag)
{
    me_reader reader = {.bytes = blob.bytes, .size = blob.size};
    while (me_reader_rest(&reader) > 0) {
        const int number = me_reader_get_int(&reader);
        const uint64_t size = me_reader_get(&reader, 8);
        if (reader.is_short || number < 0 || number >= roster->n_programs ||
            logs[number] != NULL || size > me_reader_rest(&reader)) {
            return me_fail(diag, ME_ERR_INTERNAL,
                           "calls arrived damaged at byte %zu of %zu",
                           reader.at, reader.size);
        }
        const me_status status = me_call_log_decode(
            reader.bytes + reader.at, (size_t)size, diag, &logs[number]);
        if (status != ME_OK) {
            return status;
        }
        reader.at += (size_t)size;
    }
    return ME_OK;
}

static me_status read_blobs(const me_roster *roster, const me_blob *blobs,
                            int count, me_diag *diag, me_call_log ***logs_out)
{
    me_call_log **logs = me_alloc((size_t)roster->n_programs,
                                  sizeof(me_call_log *), "roster.logs");
    if (logs == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for %d logs",
                       roster->n_programs);
    }
    me_status status = ME_OK;
    for (int i = 0; status == ME_OK && i < count; i++) {
        status = read_logs(roster, blobs[i], logs, diag);
    }
    *logs_out = logs;
    return status;
}

me_status me_roster_fetch(me_transport *transport, const me_check_part *part,
                          const me_roster *roster, const bool *is_wanted,
                          me_diag *diag, me_call_log ***logs_out)
{
    *logs_out = NULL;
    me_writer writer = {0};
    me_blob *blobs = NULL;
    me_call_log **logs = NULL;
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
        status = read_blobs(roster, blobs, me_transport_size(transport), diag,
                            &logs);
    }
    me_blobs_free(blobs, me_transport_size(transport));
    status = me_transport_agree(transport, status, diag);
    if (status != ME_OK) {
        me_roster_free_logs(roster, logs);
        return status;
    }
    *logs_out = logs;
    return ME_OK;
}

void me_roster_free_logs(const me_roster *roster, me_call_log **logs)
{
    for (int i = 0; logs != NULL && i < roster->n_programs; i++) {
        me_call_log_destroy(logs[i]);
    }
    me_free(logs);
}
