/* SPDX-License-Identifier: BSD-3-Clause */
#include "alloc/replay_calls.h"

#include "alloc/id_map.h"
#include "base/alloc.h"

enum {
    MAX_CALLS = 1 << 20 /* some 100 MiB */
};

bool me_replay_is_call(const me_stream_event *event)
{
    return event->kind != ME_STREAM_POINT && event->kind != ME_STREAM_MARK &&
           event->kind != ME_STREAM_TAKE;
}

static me_status add(me_replay_calls *calls, me_id_map *ids,
                     const me_stream_event *event)
{
    me_replay_call call = {event->bytes, event->stream, event->line, 0,
                           event->kind};
    if (event->kind != ME_STREAM_EMPTY_CACHE) {
        bool is_new = false;
        me_id_value *value = NULL;
        const me_status status =
            me_id_map_add(ids, event->id, event->id_length, &is_new, &value);
        if (status != ME_OK) {
            return status;
        }
        if (is_new) {
            value->block = calls->n_ids++;
        }
        call.id = value->block;
    }
    me_replay_call *grown =
        me_grow(calls->calls, calls->n_calls, &calls->capacity, sizeof *grown,
                "alloc.calls");
    if (grown == NULL) {
        return ME_ERR_NOMEM;
    }
    calls->calls = grown;
    calls->n_allocs += event->kind == ME_STREAM_ALLOC ? 1 : 0;
    grown[calls->n_calls++] = call;
    return ME_OK;
}

me_status me_replay_calls_read(FILE *file, const char *name,
                               me_replay_calls *calls_out)
{
    *calls_out = (me_replay_calls){0};
    me_stream *stream = NULL;
    me_diag ignored = {0};
    me_id_map ids = {0};
    me_status status = me_stream_create(file, name, -1, &ignored, &stream);
    bool is_usable = status == ME_OK && !me_stream_is_snapshot(stream);
    bool is_too_long = false;
    me_stream_event event = {0};
    while (status == ME_OK && is_usable) {
        status = me_stream_next(stream, &ignored, &event);
        if (status != ME_OK || event.kind == ME_STREAM_END) {
            break;
        }
        is_too_long = calls_out->n_calls == MAX_CALLS;
        is_usable = !event.has_no_addresses && !is_too_long;
        if (is_usable && me_replay_is_call(&event)) {
            status = add(calls_out, &ids, &event);
        }
    }
    me_id_map_fini(&ids);
    me_stream_destroy(stream);
    is_usable = is_usable && calls_out->n_allocs > calls_out->n_ids;
    if (status == ME_ERR_NOMEM || !is_usable) {
        me_replay_calls_fini(calls_out);
    }
    calls_out->is_too_long = is_too_long;
    return status == ME_ERR_NOMEM ? status : ME_OK;
}

void me_replay_calls_fini(me_replay_calls *calls)
{
    me_free(calls->calls);
    *calls = (me_replay_calls){0};
}
