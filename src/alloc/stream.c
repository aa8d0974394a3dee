/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of a recording, out of a buffer of fixed size. */
#include "alloc/stream_internal.h"
#include "base/alloc.h"
#include "base/input.h"
#include "base/pickle.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>

enum {
    BUFFER_BYTES = 1 << 18, /* also the longest line */
    SHOWN_BYTES = 40,       /* of a bad line, in an error */
    STREAM_COLUMN = 3,      /* of a line of --events, behind the id */
    LATE_COLUMN = 8
};

struct me_stream {
    FILE *file;
    const char *name;
    uint64_t line;
    int device;         /**< of a snapshot, or -1: the only one */
    bool is_snapshot;   /**< else the file has lines */
    bool is_pickle;     /**< of the snapshot; else it is JSON */
    FILE *json;         /**< made of a pickle, or NULL */
    snapshot *snapshot; /**< NULL until the first call is asked for */
    uint64_t n_held;    /**< lines of blocks from before the recording */
    char *at;           /**< what has not been read yet */
    char *end;
    bool is_at_end;         /**< of the file */
    me_progress_part *part; /**< of it; NULL: nobody looks */
    uint64_t n_read;        /**< bytes of lines */
    char buffer[BUFFER_BYTES];
};

/** What is left of a line. */
typedef struct cursor {
    const char *at;
    const char *end;
} cursor;

/** A field of a line. */
typedef struct field {
    const char *text;
    size_t length;
} field;

static int shown_line(uint64_t line)
{
    return line > INT_MAX ? INT_MAX : (int)line;
}

static me_status bad_line(const me_stream *s, me_diag *diag, const char *what,
                          const field *f)
{
    const size_t n = f->length < SHOWN_BYTES ? f->length : SHOWN_BYTES;
    return me_fail_at(diag, ME_ERR_SYNTAX, s->name, shown_line(s->line),
                      "%s: '%.*s'%s", what, (int)n, f->text,
                      n < f->length ? "…" : "");
}

/** Move what is left to the front and read on. */
static me_status fill(me_stream *s, me_diag *diag)
{
    const size_t left = (size_t)(s->end - s->at);
    memmove(s->buffer, s->at, left);
    s->at = s->buffer;
    s->end = s->buffer + left;
    const size_t n = fread(s->end, 1, BUFFER_BYTES - left, s->file);
    s->end += n;
    s->n_read += n;
    me_progress_reach(s->is_snapshot ? NULL : s->part, s->n_read);
    if (n == 0) {
        s->is_at_end = true;
        if (ferror(s->file)) {
            return me_fail_at(diag, ME_ERR_IO, s->name, 0, "cannot be read");
        }
    }
    return ME_OK;
}

/** The next line without its end; at is NULL after the last. */
static me_status next_line(me_stream *s, me_diag *diag, cursor *line_out)
{
    char *newline = memchr(s->at, '\n', (size_t)(s->end - s->at));
    while (newline == NULL && !s->is_at_end) {
        if (s->at == s->buffer && s->end == s->buffer + BUFFER_BYTES) {
            return me_fail_at(diag, ME_ERR_SYNTAX, s->name,
                              shown_line(s->line + 1),
                              "line is longer than %d bytes", BUFFER_BYTES);
        }
        const size_t seen = (size_t)(s->end - s->at);
        const me_status status = fill(s, diag);
        if (status != ME_OK) {
            return status;
        }
        newline = memchr(s->at + seen, '\n', (size_t)(s->end - s->at) - seen);
    }
    if (newline == NULL && s->at == s->end) {
        *line_out = (cursor){0};
        return ME_OK;
    }
    if (newline == NULL) {
        return me_fail_at(diag, ME_ERR_SYNTAX, s->name, shown_line(s->line + 1),
                          "the last line has no end, so that more of it may "
                          "be missing: a recording ends with a newline");
    }
    const char *end = newline;
    *line_out = (cursor){s->at, end};
    if (end > s->at && end[-1] == '\r') {
        line_out->end--;
    }
    s->at = newline + 1;
    s->line++;
    return ME_OK;
}

static field next_field(cursor *c)
{
    const size_t left = (size_t)(c->end - c->at);
    const char *tab = memchr(c->at, '\t', left);
    const char *end = tab != NULL ? tab : c->end;
    const field f = {c->at, (size_t)(end - c->at)};
    c->at = tab != NULL ? tab + 1 : c->end;
    return f;
}

static bool field_is(const field *f, const char *text, size_t length)
{
    return f->length == length && memcmp(f->text, text, length) == 0;
}

/** Decimal digits and nothing else. */
static bool read_number(const field *f, uint64_t *number_out)
{
    uint64_t number = 0;
    for (size_t i = 0; i < f->length; i++) {
        const unsigned digit = (unsigned)(unsigned char)f->text[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(number, 10U, &number) ||
            __builtin_add_overflow(number, digit, &number)) {
            return false;
        }
    }
    *number_out = number;
    return f->length > 0;
}

static me_status read_id(const me_stream *s, me_diag *diag, cursor *c,
                         me_stream_event *event)
{
    const field f = next_field(c);
    event->id = f.text;
    event->id_length = f.length;
    return f.length > 0 ? ME_OK : bad_line(s, diag, "the id is missing", &f);
}

/** `STREAM`, or `POOL:STREAM` of a private pool. */
static bool read_stream(const field *f, me_stream_event *event)
{
    const char *colon = f->length == 0 ? NULL : memchr(f->text, ':', f->length);
    if (colon == NULL) {
        return read_number(f, &event->stream) && event->stream <= INT64_MAX;
    }
    const size_t before = (size_t)(colon - f->text);
    const field pool = {f->text, before};
    const field stream = {colon + 1, f->length - before - 1};
    uint64_t mempool = 0;
    if (!read_number(&pool, &mempool) || mempool == 0 ||
        mempool > ME_POOL_PRIVATE_MAX) {
        return false;
    }
    uint64_t number = 0;
    if (!read_number(&stream, &number) || number > UINT32_MAX) {
        return false;
    }
    event->stream = me_pool_private_stream(number, (uint8_t)mempool);
    return true;
}

static me_status read_alloc(const me_stream *s, me_diag *diag, cursor *c,
                            me_stream_event *event)
{
    event->kind = ME_STREAM_ALLOC;
    const field bytes = next_field(c);
    if (!read_number(&bytes, &event->bytes)) {
        return bad_line(s, diag, "not a number of bytes", &bytes);
    }
    const me_status status = read_id(s, diag, c, event);
    if (status != ME_OK) {
        return status;
    }
    const field stream = next_field(c);
    if (!read_stream(&stream, event)) {
        return bad_line(s, diag, "not a CUDA stream's number", &stream);
    }
    return ME_OK;
}

/** The line of a free that another stream delays ends with the word. */
static bool is_late(cursor c)
{
    field f = {0};
    for (int column = STREAM_COLUMN; column <= LATE_COLUMN; column++) {
        f = next_field(&c);
    }
    return field_is(&f, "late", 4);
}

static me_status read_own_free(const me_stream *s, me_diag *diag, cursor *c,
                               me_stream_event *event)
{
    const field bytes = next_field(c);
    event->has_bytes = read_number(&bytes, &event->bytes);
    if (!event->has_bytes) {
        return bad_line(s, diag, "not a number of bytes", &bytes);
    }
    const me_status status = read_id(s, diag, c, event);
    event->has_no_addresses = true;
    event->kind = is_late(*c) ? ME_STREAM_FREE_REQUESTED : ME_STREAM_FREE;
    return status;
}

static me_status read_take(const me_stream *s, me_diag *diag, cursor *c,
                           me_stream_event *event)
{
    event->kind = ME_STREAM_TAKE;
    event->has_no_addresses = true;
    const field name = next_field(c);
    int taker = 0;
    while (taker < ME_POOL_TAKER_COUNT) {
        const char *known = me_pool_taker_name((me_pool_taker)taker);
        if (field_is(&name, known, strlen(known))) {
            break;
        }
        taker++;
    }
    if (taker == ME_POOL_TAKER_COUNT) {
        return bad_line(
            s, diag, "expected driver, mapped or local_memory but got", &name);
    }
    event->taker = (me_pool_taker)taker;
    const field bytes = next_field(c);
    return read_number(&bytes, &event->bytes)
               ? ME_OK
               : bad_line(s, diag, "not a number of bytes", &bytes);
}

static me_status read_line(me_stream *s, me_diag *diag, cursor c,
                           me_stream_event *event)
{
    const field action = next_field(&c);
    const bool is_held = field_is(&action, "held", 4);
    const bool is_earlier = field_is(&action, "earlier_alloc", 13);
    if (field_is(&action, "alloc", 5) || is_held || is_earlier) {
        s->n_held += is_held ? 1 : 0;
        event->has_no_addresses = is_held || is_earlier;
        return read_alloc(s, diag, &c, event);
    }
    if (field_is(&action, "free", 4) || field_is(&action, "earlier_free", 12)) {
        return read_own_free(s, diag, &c, event);
    }
    if (field_is(&action, "take", 4)) {
        return read_take(s, diag, &c, event);
    }
    if (field_is(&action, "free_requested", 14)) {
        event->kind = ME_STREAM_FREE_REQUESTED;
    } else if (field_is(&action, "free_completed", 14)) {
        event->kind = ME_STREAM_FREE_COMPLETED;
    } else if (field_is(&action, "point", 5)) {
        event->kind = ME_STREAM_POINT;
    } else if (field_is(&action, "mark", 4)) {
        event->kind = ME_STREAM_MARK;
    } else if (field_is(&action, "empty_cache", 11)) {
        event->kind = ME_STREAM_EMPTY_CACHE;
        return ME_OK;
    } else {
        return bad_line(s, diag,
                        "expected alloc, free, free_requested, "
                        "free_completed, empty_cache, take, point or mark but "
                        "got",
                        &action);
    }
    return read_id(s, diag, &c, event);
}

me_status me_stream_create(FILE *file, const char *name, int device,
                           me_diag *diag, me_stream **stream_out)
{
    me_stream *s = me_alloc(1, sizeof *s, "alloc.stream");
    if (s == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory to read %s", name);
    }
    s->file = file;
    s->name = name;
    s->device = device;
    s->at = s->buffer;
    s->end = s->buffer;
    me_status status = fill(s, diag);
    if (status == ME_OK) {
        status =
            me_pickle_refuse_old(s->at, (size_t)(s->end - s->at), name, diag);
    }
    s->at += me_input_mark_bytes(s->at, (size_t)(s->end - s->at));
    const char *text = s->at;
    while (text < s->end && strchr(" \t\r\n", *text) != NULL) {
        text++;
    }
    s->is_pickle = s->at < s->end && me_pickle_begins(*s->at);
    s->is_snapshot =
        s->is_pickle || (text < s->end && (*text == '{' || *text == '['));
    if (status == ME_OK && device >= 0 && !s->is_snapshot) {
        status = me_fail_at(diag, ME_ERR_CONFIG, name, 0,
                            "is no memory snapshot: it has no device to "
                            "choose (--device-index %d)",
                            device);
    }
    if (status != ME_OK) {
        me_stream_destroy(s);
        return status;
    }
    *stream_out = s;
    return ME_OK;
}

void me_stream_watch(me_stream *stream, me_progress_part *part)
{
    stream->part = part;
}

void me_stream_destroy(me_stream *stream)
{
    if (stream != NULL) {
        me_snapshot_destroy(stream->snapshot);
        if (stream->json != NULL) {
            (void)fclose(stream->json);
        }
        me_free(stream);
    }
}

static me_status open_snapshot(me_stream *s, me_diag *diag)
{
    const size_t n_head = (size_t)(s->end - s->at);
    const uint64_t bytes = n_head + me_progress_bytes_of(s->file);
    me_progress_part part = me_progress_share(s->part, 10, bytes);
    snapshot_source source = {s->at, n_head, s->file, &part};
    if (s->is_pickle) {
        part = me_progress_share(s->part, ME_PICKLE_TENTHS, 2 * bytes);
        const me_status status =
            me_stream_unpickle(source, s->name, diag, &s->json);
        if (status != ME_OK) {
            return status;
        }
        part = me_progress_share(s->part, ME_PICKLE_JSON_TENTHS,
                                 me_progress_bytes_of(s->json));
        source = (snapshot_source){"", 0, s->json, &part};
    }
    return me_snapshot_create(source, s->name, s->device, diag, &s->snapshot);
}

static me_status next_of_snapshot(me_stream *s, me_diag *diag,
                                  me_stream_event *event_out)
{
    if (s->snapshot == NULL) {
        const me_status status = open_snapshot(s, diag);
        if (status != ME_OK) {
            return status;
        }
    }
    return me_snapshot_next(s->snapshot, diag, event_out);
}

me_status me_stream_next(me_stream *stream, me_diag *diag,
                         me_stream_event *event_out)
{
    *event_out = (me_stream_event){.kind = ME_STREAM_END};
    if (stream->is_snapshot) {
        return next_of_snapshot(stream, diag, event_out);
    }
    cursor line = {0};
    do {
        const me_status status = next_line(stream, diag, &line);
        if (status != ME_OK || line.at == NULL) {
            return status;
        }
    } while (line.at == line.end || *line.at == '#');
    event_out->line = stream->line;
    return read_line(stream, diag, line, event_out);
}

bool me_stream_is_snapshot(const me_stream *stream)
{
    return stream->is_snapshot;
}

uint64_t me_stream_n_before(const me_stream *stream)
{
    return stream->snapshot == NULL ? stream->n_held
                                    : me_snapshot_n_before(stream->snapshot);
}
