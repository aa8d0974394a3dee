/* SPDX-License-Identifier: BSD-3-Clause */
/* PyTorch's memory snapshots, memest's own among them: the trace, and what of
 * its stacks names a block. What lives at the peak is worked out behind it, in
 * snapshot_peak.c. */
#include "alloc/snapshot_action.h"
#include "base/alloc.h"
#include "base/json_object.h"
#include "base/pickle.h"
#include "base/str.h"
#include "diff/profile_read.h"
#include "diff/snapshot_frames.h"
#include "diff/snapshot_peak.h"

#include <inttypes.h>
#include <string.h>

enum {
    SHOWN_FRAMES = 2 /* of a stack, in the name of a block */
};

/** What is read of a snapshot. */
static const char *const keys[] = {
    "segments",      "device_traces", "action",  "addr",           "size",
    "blocks",        "state",         "address", "requested_size", "device",
    "user_metadata", "frames",        "name",    "filename",       "rank"};

/** The reading, and the stack that is read. */
typedef struct reading {
    me_trace_reading t;
    me_json_reader *json;
    uint32_t n_other;   /**< frames, of those in the label */
    uint32_t n_python;  /**< those in python */
    me_str python;      /**< a label of Python's frames alone */
    uint64_t n_entries; /**< of the trace */
    uint64_t traffic;   /**< bytes of all entries, within INT64_MAX */
    bool has_segments;  /**< a list of them */
    me_str metadata;
    me_str frame_name;
    me_str frame_file;
} reading;

static me_status not_a_snapshot(const reading *r, me_diag *diag,
                                const char *what)
{
    return me_fail_at(diag, ME_ERR_SYNTAX, r->t.profile->name, 0,
                      "not a memory snapshot: %s", what);
}

static me_status bad_segments(const reading *r, me_diag *diag)
{
    return me_fail_at(diag, ME_ERR_SYNTAX, r->t.profile->name, 0,
                      "segments are not those of a memory snapshot");
}

static me_status bad_entry(const reading *r, me_diag *diag, const char *what)
{
    return me_fail_at(diag, ME_ERR_SYNTAX, r->t.profile->name, 0,
                      "device_traces entry %" PRIu64 ": %s", r->n_entries,
                      what);
}

/** The fields of an object; anything else is passed over. */
static me_status read_fields(reading *r, me_diag *diag,
                             const me_json_token *token, me_json_field *fields,
                             size_t n_fields)
{
    return token->kind == ME_JSON_OBJECT
               ? me_json_read_object(r->json, diag, fields, n_fields, r)
               : me_json_skip(r->json, diag, token);
}

static me_status copy_text(reading *r, me_diag *diag,
                           const me_json_token *token, me_str *text_out)
{
    me_str_clear(text_out);
    if (token->kind == ME_JSON_STRING) {
        me_str_append_clean(text_out, token->text, strlen(token->text));
    }
    return me_json_skip(r->json, diag, token);
}

static me_status read_frame_name(void *self, me_diag *diag,
                                 const me_json_token *token)
{
    reading *r = self;
    return copy_text(r, diag, token, &r->frame_name);
}

static me_status read_frame_file(void *self, me_diag *diag,
                                 const me_json_token *token)
{
    reading *r = self;
    return copy_text(r, diag, token, &r->frame_file);
}

static me_status read_metadata(void *self, me_diag *diag,
                               const me_json_token *token)
{
    reading *r = self;
    return copy_text(r, diag, token, &r->metadata);
}

static const char *base_name(const me_str *path)
{
    const char *slash = strrchr(me_str_text(path), '/');
    return slash == NULL ? me_str_text(path) : slash + 1;
}

static void append_frame(const reading *r, me_str *label, uint32_t n_before)
{
    me_str_append(label, n_before == 0 ? "" : " < ");
    me_str_append(label, me_str_text(&r->frame_name));
    me_str_append(label, " (");
    me_str_append(label, base_name(&r->frame_file));
    me_str_append(label, ")");
}

static me_status read_frame(void *self, me_diag *diag,
                            const me_json_token *token)
{
    reading *r = self;
    me_json_field fields[] = {{.key = "name", read_frame_name},
                              {.key = "filename", read_frame_file}};
    if (token->kind != ME_JSON_OBJECT || r->n_python == SHOWN_FRAMES) {
        return me_json_skip(r->json, diag, token);
    }
    me_str_clear(&r->frame_name);
    me_str_clear(&r->frame_file);
    const me_status status = me_json_read_object(r->json, diag, fields, 2, r);
    if (status != ME_OK) {
        return status;
    }
    const uint8_t by_name = me_frame_class_of_name(me_str_text(&r->frame_name));
    const uint8_t by_file = me_frame_class_of_file(me_str_text(&r->frame_file));
    const uint8_t of = by_file < by_name ? by_file : by_name;
    if (of == ME_FRAME_PYTHON) {
        append_frame(r, &r->python, r->n_python++);
    } else if (of == ME_FRAME_OTHER && r->n_other < SHOWN_FRAMES) {
        if (r->n_other == 0) {
            r->t.category = me_trace_category(me_str_text(&r->frame_file));
        }
        append_frame(r, &r->t.label, r->n_other++);
    }
    return ME_OK;
}

static me_status read_frames(void *self, me_diag *diag,
                             const me_json_token *token)
{
    reading *r = self;
    r->n_other = 0;
    r->n_python = 0;
    me_str_clear(&r->t.label);
    me_str_clear(&r->python);
    r->t.category = -1;
    const me_status status =
        token->kind == ME_JSON_ARRAY
            ? me_json_read_list(r->json, diag, read_frame, r)
            : me_json_skip(r->json, diag, token);
    if (r->n_python > 0) {
        me_str_clear(&r->t.label);
        me_str_append(&r->t.label, me_str_text(&r->python));
    }
    return status;
}

static me_status no_memory(const reading *r, me_diag *diag)
{
    return me_fail(diag, ME_ERR_NOMEM, "no memory to read %s",
                   r->t.profile->name);
}

/** Does an entry say what it has to? Where it does not nothing is known of what
 *  lives behind it. */
static me_status check_entry(reading *r, me_diag *diag,
                             const me_json_field *action,
                             const me_json_field *address,
                             const me_json_field *size)
{
    me_stream_kind kind = ME_STREAM_END;
    if (action->word[0] == '\0') {
        return bad_entry(r, diag, "action is missing");
    }
    if (!me_snapshot_action(action->word, &kind)) {
        return bad_entry(r, diag, "action is unknown");
    }
    if (kind == ME_STREAM_END && strncmp(action->word, "segment_", 8) != 0) {
        return ME_OK;
    }
    if (!address->is_number || !size->is_number) {
        return bad_entry(r, diag, "addr and size must be numbers of bytes");
    }
    if (size->number > (uint64_t)INT64_MAX - r->traffic) {
        return bad_entry(r, diag, "no device has so many bytes");
    }
    r->traffic += size->number;
    return ME_OK;
}

static me_status read_entry(void *self, me_diag *diag,
                            const me_json_token *token)
{
    enum {
        ACTION,
        ADDRESS,
        SIZE,
        METADATA,
        FRAMES,
        N_FIELDS
    };

    reading *r = self;
    me_json_field fields[N_FIELDS] = {
        [ACTION] = {.key = "action"},
        [ADDRESS] = {.key = "addr"},
        [SIZE] = {.key = "size"},
        [METADATA] = {.key = "user_metadata", read_metadata},
        [FRAMES] = {.key = "frames", read_frames}};
    me_str_clear(&r->metadata);
    me_str_clear(&r->t.label);
    r->t.category = -1;
    me_status status = read_fields(r, diag, token, fields, N_FIELDS);
    if (status == ME_OK) {
        status = check_entry(r, diag, &fields[ACTION], &fields[ADDRESS],
                             &fields[SIZE]);
    }
    if (status != ME_OK) {
        return status;
    }
    const me_trace_call call = {
        .address = fields[ADDRESS].number,
        .bytes = fields[SIZE].number,
    };
    r->n_entries++;
    status = me_trace_add(&r->t, fields[ACTION].word, &call,
                          me_str_text(&r->metadata));
    return status == ME_OK ? ME_OK : no_memory(r, diag);
}

static me_status refuse_entry(void *self, me_diag *diag,
                              const me_json_token *token)
{
    const reading *r = self;
    (void)token;
    return me_fail_at(diag, ME_ERR_CONFIG, r->t.profile->name, 0,
                      "several devices have a trace: give a snapshot of one");
}

static me_status read_trace(void *self, me_diag *diag,
                            const me_json_token *token)
{
    reading *r = self;
    return token->kind == ME_JSON_ARRAY
               ? me_json_read_list(r->json, diag,
                                   r->n_entries > 0 ? refuse_entry : read_entry,
                                   r)
               : not_a_snapshot(r, diag, "device_traces has what is no list");
}

static me_status read_traces(void *self, me_diag *diag,
                             const me_json_token *token)
{
    reading *r = self;
    return token->kind == ME_JSON_ARRAY
               ? me_json_read_list(r->json, diag, read_trace, r)
               : not_a_snapshot(r, diag, "device_traces is no list");
}

static me_status read_block(void *self, me_diag *diag,
                            const me_json_token *token)
{
    enum {
        ADDRESS,
        SIZE,
        REQUESTED,
        STATE,
        FRAMES,
        N_FIELDS
    };

    reading *r = self;
    me_json_field fields[N_FIELDS] = {
        [ADDRESS] = {.key = "address"},
        [SIZE] = {.key = "size"},
        [REQUESTED] = {.key = "requested_size"},
        [STATE] = {.key = "state"},
        [FRAMES] = {.key = "frames", read_frames}};
    me_status status = read_fields(r, diag, token, fields, N_FIELDS);
    if (status != ME_OK) {
        return status;
    }
    const me_trace_call block = {
        .address = fields[ADDRESS].number,
        .bytes = fields[REQUESTED].is_number ? fields[REQUESTED].number
                                             : fields[SIZE].number,
    };
    bool is_live = false;
    if (!me_snapshot_state(fields[STATE].word, &is_live) ||
        !fields[SIZE].is_number ||
        fields[SIZE].number > (uint64_t)INT64_MAX - r->t.reserved_end) {
        return bad_segments(r, diag);
    }
    r->t.reserved_end += fields[SIZE].number;
    if (is_live) {
        r->t.allocated_end +=
            strcmp(fields[STATE].word, "active_allocated") == 0
                ? fields[SIZE].number
                : 0;
        status = me_trace_add_end(&r->t, &block);
    }
    return status == ME_OK ? ME_OK : no_memory(r, diag);
}

static me_status read_blocks(void *self, me_diag *diag,
                             const me_json_token *token)
{
    reading *r = self;
    return token->kind == ME_JSON_ARRAY
               ? me_json_read_list(r->json, diag, read_block, r)
               : bad_segments(r, diag);
}

static me_status read_segment(void *self, me_diag *diag,
                              const me_json_token *token)
{
    reading *r = self;
    me_json_field fields[] = {{.key = "blocks", read_blocks}};
    const me_status status = read_fields(r, diag, token, fields, 1);
    return status == ME_OK && !fields[0].is_there ? bad_segments(r, diag)
                                                  : status;
}

static me_status read_segments(void *self, me_diag *diag,
                               const me_json_token *token)
{
    reading *r = self;
    r->has_segments = token->kind == ME_JSON_ARRAY;
    return r->has_segments ? me_json_read_list(r->json, diag, read_segment, r)
                           : bad_segments(r, diag);
}

static me_status read_root(reading *r, me_diag *diag)
{
    enum {
        SEGMENTS,
        TRACES,
        RANK,
        N_FIELDS
    };

    me_json_field fields[N_FIELDS] = {
        [SEGMENTS] = {.key = "segments", read_segments},
        [TRACES] = {.key = "device_traces", read_traces},
        [RANK] = {.key = "rank"}}; // of memest's own
    me_json_token token;
    me_status status = me_json_next(r->json, diag, &token);
    if (status == ME_OK && token.kind == ME_JSON_OBJECT) {
        status = me_json_read_object(r->json, diag, fields, N_FIELDS, r);
    }
    if (fields[RANK].is_number && fields[RANK].number <= INT32_MAX) {
        r->t.rank = (int32_t)fields[RANK].number;
    }
    if (status == ME_OK && r->n_entries == 0) {
        return me_fail_at(diag, ME_ERR_SYNTAX, r->t.profile->name, 0,
                          "a memory snapshot without a trace: record one with "
                          "torch.cuda.memory._record_memory_history()");
    }
    if (status == ME_OK && !r->has_segments) {
        return not_a_snapshot(r, diag, "segments is missing");
    }
    return status;
}

static me_status read_json_part(me_profile *profile, FILE *file,
                                me_progress_part *part, me_diag *diag)
{
    reading r = {.t = {.profile = profile, .rank = -1}};
    r.json = me_json_reader_create("", 0, file, profile->name);
    me_status status = r.json == NULL ? no_memory(&r, diag) : ME_OK;
    if (status == ME_OK) {
        me_json_reader_watch(r.json, part);
        status = read_root(&r, diag);
    }
    if (status == ME_OK && me_trace_finish(&r.t) != ME_OK) {
        status = no_memory(&r, diag);
    }
    me_json_reader_destroy(r.json);
    me_str_fini(&r.metadata);
    me_str_fini(&r.python);
    me_str_fini(&r.frame_name);
    me_str_fini(&r.frame_file);
    me_trace_reading_fini(&r.t);
    return status;
}

static me_status read_json(me_profile *profile, FILE *file, me_diag *diag)
{
    return read_json_part(profile, file, profile->part, diag);
}

static me_status read_pickle(me_profile *profile, FILE *file, me_diag *diag)
{
    FILE *json = NULL;
    me_progress_part part = me_progress_share(profile->part, ME_PICKLE_TENTHS,
                                              2 * me_progress_bytes_of(file));
    const me_pickle_wanted wanted = {
        .keys = keys,
        .n_keys = sizeof keys / sizeof keys[0],
        .class_of = me_frame_class,
        .cut_items = SHOWN_FRAMES,
        .part = &part,
    };
    me_status status =
        me_pickle_to_json(file, profile->name, &wanted, diag, &json);
    if (status == ME_OK) {
        part = me_progress_share(profile->part, ME_PICKLE_JSON_TENTHS,
                                 me_progress_bytes_of(json));
        status = read_json_part(profile, json, &part, diag);
        (void)fclose(json);
    }
    return status;
}

static bool is_pickle(const char *head, size_t length)
{
    return length > 0 && me_pickle_begins(head[0]);
}

static bool is_json(const char *head, size_t length)
{
    return length > 0 && head[0] == '{';
}

const me_profile_reader me_pickle_reader_of_snapshots = {
    "PyTorch's memory snapshot", is_pickle, read_pickle};
const me_profile_reader me_json_reader_of_snapshots = {
    "PyTorch's memory snapshot", is_json, read_json};
