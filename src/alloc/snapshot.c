/* SPDX-License-Identifier: BSD-3-Clause */
/* PyTorch's memory snapshot as JSON: `device_traces` is the recording, and
 * `segments`, the state at its end, says which blocks it does not begin with.
 * The text is read once, token by token; what is replayed of it goes to a
 * temporary file, so that only blocks that live at once are held. */
#include "alloc/id_map.h"
#include "alloc/snapshot_action.h"
#include "alloc/stream_internal.h"
#include "base/alloc.h"
#include "base/json_object.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    ID_TEXT = 24
};

/** A block that was there before the recording began, or is at its end. */
typedef struct block {
    uint64_t address;
    uint64_t bytes;
    uint64_t stream;
    uint64_t device;
} block;

/** A list of blocks; all zero is an empty one. */
typedef struct blocks {
    block *block;
    size_t count;
    size_t capacity;
} blocks;

/** An entry of the trace as the temporary file has it. */
typedef struct entry {
    uint64_t number; /**< in the trace, from 1 */
    uint64_t address;
    uint64_t bytes;
    uint64_t stream;
    me_stream_kind kind; /**< ME_STREAM_END: nothing that is replayed */
} entry;

struct snapshot {
    const char *name;
    int device;           /**< that was asked for, or -1 */
    uint64_t chosen;      /**< whose trace is taken */
    uint64_t n_devices;   /**< whose traces have been read */
    uint64_t n_filled;    /**< traces with entries */
    uint64_t n_entries;   /**< of the chosen trace */
    uint64_t offset;      /**< in the segment that is read */
    bool has_other;       /**< an entry of a trace that is not chosen */
    bool has_trace;       /**< of the chosen device */
    me_json_reader *json; /**< NULL once all is read */
    FILE *trace;          /**< temporary, of entries */
    me_id_map live;       /**< addresses that the trace knows */
    blocks at_end;        /**< in use in the segments */
    blocks early;         /**< by address */
    size_t at_early;
    char id[ID_TEXT];
};

static me_status not_a_snapshot(const snapshot *s, me_diag *diag,
                                const char *what)
{
    return me_fail_at(diag, ME_ERR_SYNTAX, s->name, 0,
                      "not a memory snapshot: %s", what);
}

static me_status no_memory(const snapshot *s, me_diag *diag)
{
    return me_fail(diag, ME_ERR_NOMEM, "no memory to read %s", s->name);
}

static me_status bad_entry(const snapshot *s, me_diag *diag, uint64_t number,
                           const char *what)
{
    return me_fail_at(diag, ME_ERR_SYNTAX, s->name, 0,
                      "device_traces entry %" PRIu64 ": %s", number - 1, what);
}

static me_status bad_segments(const snapshot *s, me_diag *diag)
{
    return me_fail_at(diag, ME_ERR_SYNTAX, s->name, 0,
                      "segments are not those of a memory snapshot");
}

static me_status bad_trace_file(const snapshot *s, me_diag *diag)
{
    return me_fail(diag, ME_ERR_IO,
                   "%s cannot be copied to a temporary file: %s", s->name,
                   strerror(errno));
}

static me_status append(blocks *list, const block *b)
{
    if (list->count == list->capacity) {
        const size_t capacity = list->capacity == 0 ? 64 : list->capacity * 2;
        block *grown =
            me_realloc(list->block, capacity, sizeof *grown, "alloc.snapshot");
        if (grown == NULL) {
            return ME_ERR_NOMEM;
        }
        list->block = grown;
        list->capacity = capacity;
    }
    list->block[list->count++] = *b;
    return ME_OK;
}

static me_status parse_entry(snapshot *s, me_diag *diag,
                             const me_json_token *token, entry *e)
{
    enum {
        ACTION,
        ADDRESS,
        SIZE,
        STREAM,
        N_FIELDS
    };

    me_json_field fields[N_FIELDS] = {[ACTION] = {.key = "action"},
                                      [ADDRESS] = {.key = "addr"},
                                      [SIZE] = {.key = "size"},
                                      [STREAM] = {.key = "stream"}};
    const me_status status =
        token->kind == ME_JSON_OBJECT
            ? me_json_read_object(s->json, diag, fields, N_FIELDS, s)
            : ME_OK;
    if (status != ME_OK) {
        return status;
    }
    if (fields[ACTION].word[0] == '\0') {
        return bad_entry(s, diag, e->number, "action is missing");
    }
    if (!me_snapshot_action(fields[ACTION].word, &e->kind)) {
        return bad_entry(s, diag, e->number, "action is unknown");
    }
    if (e->kind != ME_STREAM_END &&
        (!fields[ADDRESS].is_number || !fields[SIZE].is_number ||
         !fields[STREAM].is_number)) {
        return bad_entry(s, diag, e->number,
                         "addr, size and stream must be numbers of bytes");
    }
    e->address = fields[ADDRESS].number;
    e->bytes = fields[SIZE].number;
    e->stream = fields[STREAM].number;
    return ME_OK;
}

/** Keep an entry; what is freed without having been allocated was there. */
static me_status follow(snapshot *s, me_diag *diag, const entry *e)
{
    bool is_new = false;
    me_id_value *value = NULL;
    me_status status = me_id_map_add(&s->live, (const char *)&e->address,
                                     sizeof e->address, &is_new, &value);
    if (status == ME_OK && is_new && e->kind != ME_STREAM_ALLOC) {
        const block b = {e->address, e->bytes, e->stream, 0};
        status = append(&s->early, &b);
    }
    if (status != ME_OK) {
        return no_memory(s, diag);
    }
    if (e->kind == ME_STREAM_FREE_COMPLETED) {
        me_id_map_remove(&s->live, value);
    }
    return fwrite(e, sizeof *e, 1, s->trace) == 1 ? ME_OK
                                                  : bad_trace_file(s, diag);
}

static me_status read_entry(void *self, me_diag *diag,
                            const me_json_token *token)
{
    snapshot *s = self;
    entry e = {.number = ++s->n_entries};
    const me_status status = parse_entry(s, diag, token, &e);
    return status == ME_OK && e.kind != ME_STREAM_END ? follow(s, diag, &e)
                                                      : status;
}

/** Of more than one trace with entries only how many there are counts. */
static me_status count_entry(void *self, me_diag *diag,
                             const me_json_token *token)
{
    snapshot *s = self;
    s->has_other = true;
    return me_json_skip(s->json, diag, token);
}

/** The trace of a device: kept if it is the one that was asked for, or where
 * none was the first with entries. */
static me_status read_trace(void *self, me_diag *diag,
                            const me_json_token *token)
{
    snapshot *s = self;
    const uint64_t device = s->n_devices++;
    const bool is_asked_for = s->device >= 0 && device == (uint64_t)s->device;
    if (token->kind != ME_JSON_ARRAY || (s->device >= 0 && !is_asked_for)) {
        return me_json_skip(s->json, diag, token);
    }
    s->has_trace |= is_asked_for || device == 0;
    if (s->n_entries == 0) {
        const me_status status =
            me_json_read_list(s->json, diag, read_entry, s);
        if (s->n_entries > 0) {
            s->has_trace = true;
            s->chosen = device;
            s->n_filled = 1;
        }
        return status;
    }
    s->has_other = false;
    const me_status status = me_json_read_list(s->json, diag, count_entry, s);
    s->n_filled += s->has_other ? 1 : 0;
    return status;
}

static me_status read_traces(void *self, me_diag *diag,
                             const me_json_token *token)
{
    snapshot *s = self;
    return token->kind == ME_JSON_ARRAY
               ? me_json_read_list(s->json, diag, read_trace, s)
               : not_a_snapshot(s, diag, "device_traces is no list");
}

/** A block of a segment; where it lies in it, since the segment's address may
 * stand behind its blocks. */
static me_status read_block(void *self, me_diag *diag,
                            const me_json_token *token)
{
    snapshot *s = self;

    enum {
        SIZE,
        REQUESTED,
        STATE,
        N_FIELDS
    };

    me_json_field fields[N_FIELDS] = {[SIZE] = {.key = "size"},
                                      [REQUESTED] = {.key = "requested_size"},
                                      [STATE] = {.key = "state"}};
    me_status status =
        token->kind == ME_JSON_OBJECT
            ? me_json_read_object(s->json, diag, fields, N_FIELDS, s)
            : ME_OK;
    if (status != ME_OK) {
        return status;
    }
    bool is_live = false;
    if (!me_snapshot_state(fields[STATE].word, &is_live) ||
        !fields[SIZE].is_number ||
        fields[SIZE].number > (uint64_t)INT64_MAX - s->offset) {
        return bad_segments(s, diag);
    }
    const uint64_t size = fields[SIZE].number;
    const block b = {
        .address = s->offset,
        .bytes = fields[REQUESTED].is_number ? fields[REQUESTED].number : size};
    s->offset += size;
    if (is_live) {
        status = append(&s->at_end, &b);
    }
    return status == ME_OK ? ME_OK : no_memory(s, diag);
}

static me_status read_blocks(void *self, me_diag *diag,
                             const me_json_token *token)
{
    snapshot *s = self;
    s->offset = 0;
    return token->kind == ME_JSON_ARRAY
               ? me_json_read_list(s->json, diag, read_block, s)
               : bad_segments(s, diag);
}

static me_status read_segment(void *self, me_diag *diag,
                              const me_json_token *token)
{
    snapshot *s = self;

    enum {
        ADDRESS,
        STREAM,
        DEVICE,
        BLOCKS,
        N_FIELDS
    };

    me_json_field fields[N_FIELDS] = {
        [ADDRESS] = {.key = "address"},
        [STREAM] = {.key = "stream"},
        [DEVICE] = {.key = "device"},
        [BLOCKS] = {.key = "blocks", read_blocks}};
    const size_t first = s->at_end.count;
    const me_status status =
        token->kind == ME_JSON_OBJECT
            ? me_json_read_object(s->json, diag, fields, N_FIELDS, s)
            : ME_OK;
    if (status != ME_OK) {
        return status;
    }
    if (!fields[ADDRESS].is_number || !fields[STREAM].is_number) {
        return bad_segments(s, diag);
    }
    for (size_t i = first; i < s->at_end.count; i++) {
        block *b = &s->at_end.block[i];
        if (b->address > (uint64_t)INT64_MAX - fields[ADDRESS].number) {
            return bad_segments(s, diag);
        }
        b->address += fields[ADDRESS].number;
        b->stream = fields[STREAM].number;
        b->device = fields[DEVICE].number;
    }
    return ME_OK;
}

static me_status read_segments(void *self, me_diag *diag,
                               const me_json_token *token)
{
    snapshot *s = self;
    return token->kind == ME_JSON_ARRAY
               ? me_json_read_list(s->json, diag, read_segment, s)
               : bad_segments(s, diag);
}

static int compare_address(const void *a, const void *b)
{
    const uint64_t x = ((const block *)a)->address;
    const uint64_t y = ((const block *)b)->address;
    return (x > y) - (x < y);
}

/** Blocks in use at the end that the trace does not know were there, too. */
static me_status finish_early(snapshot *s, me_diag *diag)
{
    for (size_t i = 0; i < s->at_end.count; i++) {
        const block *b = &s->at_end.block[i];
        if (b->device != s->chosen ||
            me_id_map_find(&s->live, (const char *)&b->address,
                           sizeof b->address) != NULL) {
            continue;
        }
        if (append(&s->early, b) != ME_OK) {
            return no_memory(s, diag);
        }
    }
    if (s->early.count > 0) {
        qsort(s->early.block, s->early.count, sizeof *s->early.block,
              compare_address);
    }
    me_id_map_fini(&s->live);
    return ME_OK;
}

static me_status read_root(snapshot *s, me_diag *diag)
{
    me_json_field fields[] = {{.key = "segments", read_segments},
                              {.key = "device_traces", read_traces}};
    me_json_token token;
    me_status status = me_json_next(s->json, diag, &token);
    if (status == ME_OK && token.kind == ME_JSON_OBJECT) {
        status = me_json_read_object(s->json, diag, fields,
                                     sizeof fields / sizeof fields[0], s);
    }
    if (status == ME_OK && !fields[1].is_there) {
        return not_a_snapshot(s, diag, "device_traces is missing");
    }
    return status == ME_OK ? me_json_next(s->json, diag, &token) : status;
}

static me_status check_choice(const snapshot *s, me_diag *diag)
{
    if (s->device < 0 && s->n_filled > 1) {
        return me_fail_at(diag, ME_ERR_CONFIG, s->name, 0,
                          "%" PRIu64 " devices have a trace: choose one "
                          "(--device-index N)",
                          s->n_filled);
    }
    if (!s->has_trace) {
        return me_fail_at(diag, ME_ERR_CONFIG, s->name, 0,
                          "device %d has no trace",
                          s->device < 0 ? 0 : s->device);
    }
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
    s->device = device;
    s->chosen = device < 0 ? 0 : (uint64_t)device;
    s->json = me_json_reader_create(source.head, source.head_length,
                                    source.file, name);
    s->trace = tmpfile();
    if (s->json != NULL) {
        me_json_reader_watch(s->json, source.part);
    }
    me_status status = s->json == NULL    ? no_memory(s, diag)
                       : s->trace == NULL ? bad_trace_file(s, diag)
                                          : read_root(s, diag);
    if (status == ME_OK) {
        status = check_choice(s, diag);
    }
    if (status == ME_OK) {
        status = finish_early(s, diag);
    }
    if (status == ME_OK && fseek(s->trace, 0, SEEK_SET) != 0) {
        status = bad_trace_file(s, diag);
    }
    me_json_reader_destroy(s->json);
    s->json = NULL;
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
        if (s->trace != NULL) {
            (void)fclose(s->trace);
        }
        me_id_map_fini(&s->live);
        me_free(s->at_end.block);
        me_free(s->early.block);
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
    event->line = e->number;
}

me_status me_snapshot_next(snapshot *s, me_diag *diag,
                           me_stream_event *event_out)
{
    if (s->at_early < s->early.count) {
        const block *b = &s->early.block[s->at_early++];
        const entry e = {0, b->address, b->bytes, b->stream, ME_STREAM_ALLOC};
        show(s, &e, event_out);
        return ME_OK;
    }
    entry e;
    if (fread(&e, sizeof e, 1, s->trace) == 1) {
        show(s, &e, event_out);
    } else if (ferror(s->trace)) {
        return bad_trace_file(s, diag);
    }
    return ME_OK;
}

uint64_t me_snapshot_n_before(const snapshot *s)
{
    return s->early.count;
}
