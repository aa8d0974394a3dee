/* SPDX-License-Identifier: BSD-3-Clause */
/* PyTorch's memory snapshot as JSON: `device_traces` is the recording, and
 * `segments`, the state at its end, says which blocks it does not begin with. */
#include "alloc/id_map.h"
#include "alloc/stream_internal.h"
#include "base/alloc.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    ID_TEXT = 24
};

/** A block that was there before the recording began. */
typedef struct early_block {
    uint64_t address;
    uint64_t bytes;
    uint64_t stream;
} early_block;

struct snapshot {
    json_t *root;
    const json_t *trace; /**< of the device, borrowed from root */
    const char *name;
    early_block *early; /**< by address */
    size_t n_early;
    size_t n_early_capacity;
    size_t at_early;
    size_t at_trace;
    char id[ID_TEXT];
};

/** An entry of the trace, or a block of the segments. */
typedef struct entry {
    me_stream_kind kind; /**< ME_STREAM_END: nothing that is replayed */
    uint64_t address;
    uint64_t bytes;
    uint64_t stream;
} entry;

/** The file's beginning, then the file. */
static size_t read_source(void *buffer, size_t size, void *data)
{
    snapshot_source *s = data;
    if (s->head_length > 0) {
        const size_t n = s->head_length < size ? s->head_length : size;
        memcpy(buffer, s->head, n);
        s->head += n;
        s->head_length -= n;
        return n;
    }
    const size_t n = fread(buffer, 1, size, s->file);
    return n == 0 && ferror(s->file) ? (size_t)-1 : n;
}

static me_status bad_entry(const snapshot *s, me_diag *diag, size_t index,
                           const char *what)
{
    return me_fail_at(diag, ME_ERR_SYNTAX, s->name, 0,
                      "device_traces entry %zu: %s", index, what);
}

static bool read_field(const json_t *object, const char *key,
                       uint64_t *number_out)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return false;
    }
    *number_out = (uint64_t)json_integer_value(value);
    return true;
}

static bool is_ignored(const char *action)
{
    static const char *const ignored[] = {
        "segment_alloc", "segment_free", "segment_map",  "segment_unmap",
        "snapshot",      "oom",          "user_defined", "workspace_snapshot",
    };
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++) {
        if (strcmp(action, ignored[i]) == 0) {
            return true;
        }
    }
    return false;
}

static me_status read_entry(const snapshot *s, me_diag *diag, size_t index,
                            entry *entry_out)
{
    const json_t *object = json_array_get(s->trace, index);
    const char *action = json_string_value(json_object_get(object, "action"));
    *entry_out = (entry){.kind = ME_STREAM_END};
    if (action == NULL) {
        return bad_entry(s, diag, index, "action is missing");
    }
    if (is_ignored(action)) {
        return ME_OK;
    }
    if (strcmp(action, "alloc") == 0) {
        entry_out->kind = ME_STREAM_ALLOC;
    } else if (strcmp(action, "free_requested") == 0) {
        entry_out->kind = ME_STREAM_FREE_REQUESTED;
    } else if (strcmp(action, "free_completed") == 0) {
        entry_out->kind = ME_STREAM_FREE_COMPLETED;
    } else {
        return bad_entry(s, diag, index, "action is unknown");
    }
    if (!read_field(object, "addr", &entry_out->address) ||
        !read_field(object, "size", &entry_out->bytes) ||
        !read_field(object, "stream", &entry_out->stream)) {
        return bad_entry(s, diag, index,
                         "addr, size and stream must be numbers of bytes");
    }
    return ME_OK;
}

static me_status add_early(snapshot *s, const entry *e)
{
    if (s->n_early == s->n_early_capacity) {
        const size_t capacity =
            s->n_early_capacity == 0 ? 64 : s->n_early_capacity * 2;
        early_block *grown =
            me_realloc(s->early, capacity, sizeof *grown, "alloc.snapshot");
        if (grown == NULL) {
            return ME_ERR_NOMEM;
        }
        s->early = grown;
        s->n_early_capacity = capacity;
    }
    s->early[s->n_early++] = (early_block){e->address, e->bytes, e->stream};
    return ME_OK;
}

/* Follow the trace: what is freed without having been allocated was there. */
static me_status follow(snapshot *s, const entry *e, me_id_map *live)
{
    bool is_new = false;
    me_id_value *value = NULL;
    me_status status = me_id_map_add(live, (const char *)&e->address,
                                     sizeof e->address, &is_new, &value);
    if (status == ME_OK && is_new && e->kind != ME_STREAM_ALLOC) {
        status = add_early(s, e);
    }
    if (status == ME_OK && e->kind == ME_STREAM_FREE_COMPLETED) {
        me_id_map_remove(live, value);
    }
    return status;
}

/* Blocks in use at the end that the trace does not know were there, too. */
static me_status add_blocks(snapshot *s, const json_t *segment,
                            const me_id_map *live)
{
    entry e = {.kind = ME_STREAM_ALLOC};
    uint64_t address = 0;
    if (!read_field(segment, "address", &address) ||
        !read_field(segment, "stream", &e.stream)) {
        return ME_ERR_SYNTAX;
    }
    size_t i = 0;
    const json_t *block = NULL;
    json_array_foreach(json_object_get(segment, "blocks"), i, block)
    {
        const char *state = json_string_value(json_object_get(block, "state"));
        uint64_t size = 0;
        if (state == NULL || !read_field(block, "size", &size) ||
            size > (uint64_t)INT64_MAX - address) {
            return ME_ERR_SYNTAX;
        }
        e.address = address;
        address += size;
        if (strcmp(state, "inactive") == 0 ||
            me_id_map_find(live, (const char *)&e.address, sizeof e.address) !=
                NULL) {
            continue;
        }
        if (!read_field(block, "requested_size", &e.bytes)) {
            e.bytes = size;
        }
        const me_status status = add_early(s, &e);
        if (status != ME_OK) {
            return status;
        }
    }
    return ME_OK;
}

static int compare_early(const void *a, const void *b)
{
    const uint64_t x = ((const early_block *)a)->address;
    const uint64_t y = ((const early_block *)b)->address;
    return (x > y) - (x < y);
}

static me_status find_early(snapshot *s, uint64_t device, me_diag *diag)
{
    me_id_map live = {0};
    me_status status = ME_OK;
    for (size_t i = 0; i < json_array_size(s->trace) && status == ME_OK; i++) {
        entry e;
        status = read_entry(s, diag, i, &e);
        if (status == ME_OK && e.kind != ME_STREAM_END) {
            status = follow(s, &e, &live);
        }
    }
    size_t i = 0;
    const json_t *segment = NULL;
    json_array_foreach(json_object_get(s->root, "segments"), i, segment)
    {
        uint64_t of_device = 0;
        (void)read_field(segment, "device", &of_device);
        if (status == ME_OK && of_device == device) {
            status = add_blocks(s, segment, &live);
        }
    }
    if (status == ME_OK && s->n_early > 0) {
        qsort(s->early, s->n_early, sizeof *s->early, compare_early);
    }
    me_id_map_fini(&live);
    if (status == ME_ERR_NOMEM) {
        return me_fail(diag, status, "no memory to read %s", s->name);
    }
    if (status == ME_ERR_SYNTAX && (diag == NULL || diag->status == ME_OK)) {
        return me_fail_at(diag, status, s->name, 0,
                          "segments are not those of a memory snapshot");
    }
    return status;
}

/* The device that was asked for, or the only one with a trace. */
static me_status choose_device(snapshot *s, int device, me_diag *diag,
                               uint64_t *device_out)
{
    const json_t *traces = json_object_get(s->root, "device_traces");
    if (!json_is_array(traces)) {
        return me_fail_at(diag, ME_ERR_SYNTAX, s->name, 0,
                          "not a memory snapshot: device_traces is missing");
    }
    size_t chosen = device < 0 ? 0 : (size_t)device;
    size_t n_filled = 0;
    for (size_t i = 0; device < 0 && i < json_array_size(traces); i++) {
        if (json_array_size(json_array_get(traces, i)) > 0) {
            chosen = i;
            n_filled++;
        }
    }
    if (n_filled > 1) {
        return me_fail_at(diag, ME_ERR_CONFIG, s->name, 0,
                          "%zu devices have a trace: choose one", n_filled);
    }
    s->trace = json_array_get(traces, chosen);
    if (!json_is_array(s->trace)) {
        return me_fail_at(diag, ME_ERR_CONFIG, s->name, 0,
                          "device %zu has no trace", chosen);
    }
    *device_out = chosen;
    return ME_OK;
}

me_status me_snapshot_create(snapshot_source source, const char *name,
                             int device, me_diag *diag, snapshot **snapshot_out)
{
    snapshot *s = me_alloc(1, sizeof *s, "alloc.snapshot");
    if (s == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory to read %s", name);
    }
    s->name = name;
    json_error_t error;
    s->root = json_load_callback(read_source, &source, JSON_REJECT_DUPLICATES,
                                 &error);
    me_status status = ME_OK;
    if (s->root == NULL) {
        status =
            me_fail_at(diag, ME_ERR_SYNTAX, name, error.line, "%s", error.text);
    }
    uint64_t of_device = 0;
    if (status == ME_OK) {
        status = choose_device(s, device, diag, &of_device);
    }
    if (status == ME_OK) {
        status = find_early(s, of_device, diag);
    }
    if (status != ME_OK) {
        me_snapshot_destroy(s);
        return status;
    }
    *snapshot_out = s;
    return ME_OK;
}

void me_snapshot_destroy(snapshot *s)
{
    if (s != NULL) {
        json_decref(s->root);
        me_free(s->early);
        me_free(s);
    }
}

static void show(snapshot *s, const entry *e, me_stream_event *event)
{
    const int n = snprintf(s->id, sizeof s->id, "%" PRIu64, e->address);
    event->kind = e->kind;
    event->bytes = e->bytes;
    event->stream = e->stream;
    event->id = s->id;
    event->id_length = (size_t)n;
    event->line = s->at_trace;
}

me_status me_snapshot_next(snapshot *s, me_diag *diag,
                           me_stream_event *event_out)
{
    if (s->at_early < s->n_early) {
        const early_block *b = &s->early[s->at_early++];
        const entry e = {ME_STREAM_ALLOC, b->address, b->bytes, b->stream};
        show(s, &e, event_out);
        return ME_OK;
    }
    while (s->at_trace < json_array_size(s->trace)) {
        entry e;
        const me_status status = read_entry(s, diag, s->at_trace, &e);
        s->at_trace++;
        if (status != ME_OK) {
            return status;
        }
        if (e.kind != ME_STREAM_END) {
            show(s, &e, event_out);
            return ME_OK;
        }
    }
    return ME_OK;
}

uint64_t me_snapshot_n_before(const snapshot *s)
{
    return s->n_early;
}
