/* SPDX-License-Identifier: BSD-3-Clause */
/* The report of a replay, as text and as JSON. */
#include "alloc/replay_internal.h"

#include <inttypes.h>

/** A counter of the report. */
typedef struct shown_stat {
    const char *key;
    me_pool_stat_kind kind;
} shown_stat;

static const shown_stat shown[] = {
    {"requested", ME_POOL_REQUESTED_BYTES},
    {"allocated", ME_POOL_ALLOCATED_BYTES},
    {"active", ME_POOL_ACTIVE_BYTES},
    {"reserved", ME_POOL_RESERVED_BYTES},
    {"inactive_split", ME_POOL_INACTIVE_SPLIT_BYTES},
};

enum {
    N_SHOWN = sizeof shown / sizeof shown[0],
    NAME_WIDTH = 22
};

/* Length of the UTF-8 character at @p text; 0: it is none. */
static size_t utf8_length(const unsigned char *text, size_t left)
{
    const unsigned char c = text[0];
    size_t n = 0;
    if (c < 0x80) {
        return 1;
    }
    if (c >= 0xC2 && c <= 0xDF) {
        n = 2;
    } else if (c >= 0xE0 && c <= 0xEF) {
        n = 3;
    } else if (c >= 0xF0 && c <= 0xF4) {
        n = 4;
    }
    if (n == 0 || n > left) {
        return 0;
    }
    for (size_t i = 1; i < n; i++) {
        if ((text[i] & 0xC0U) != 0x80U) {
            return 0;
        }
    }
    const bool is_overlong =
        (c == 0xE0 && text[1] < 0xA0) || (c == 0xF0 && text[1] < 0x90);
    const bool is_no_scalar =
        (c == 0xED && text[1] > 0x9F) || (c == 0xF4 && text[1] > 0x8F);
    return is_overlong || is_no_scalar ? 0 : n;
}

/* A string of JSON; bytes that are no text become U+FFFD. */
static void append_json_string(me_str *out, const char *text, size_t length)
{
    me_str_append(out, "\"");
    for (size_t i = 0; i < length;) {
        const unsigned char *c = (const unsigned char *)text + i;
        const size_t n = utf8_length(c, length - i);
        if (n == 0) {
            me_str_append(out, "\\ufffd");
        } else if (*c == '"' || *c == '\\') {
            me_str_printf(out, "\\%c", *c);
        } else if (*c < 0x20) {
            me_str_printf(out, "\\u%04x", *c);
        } else {
            me_str_append_n(out, text + i, n);
        }
        i += n == 0 ? 1 : n;
    }
    me_str_append(out, "\"");
}

static double in_mib(uint64_t bytes)
{
    return (double)bytes / 1048576.0;
}

/* Share of the reserved memory that no block uses, in percent. */
static double unused_percent(const me_pool *pool)
{
    const uint64_t reserved = me_pool_current(pool, ME_POOL_RESERVED_BYTES);
    const uint64_t active = me_pool_current(pool, ME_POOL_ACTIVE_BYTES);
    return reserved == 0
               ? 0.0
               : 100.0 * (double)(reserved - active) / (double)reserved;
}

void me_replay_begin(replay *r)
{
    if (r->options->is_json) {
        me_str_append(r->report, "{ \"alloc_conf\": ");
        const char *conf =
            r->options->conf_text == NULL ? "" : r->options->conf_text;
        size_t length = 0;
        while (conf[length] != '\0') {
            length++;
        }
        append_json_string(r->report, conf, length);
        me_str_printf(r->report,
                      ",\n  \"blocks_before_recording\": %" PRIu64
                      ",\n  \"points\": [",
                      me_stream_n_before(r->stream));
        return;
    }
    if (me_stream_n_before(r->stream) > 0) {
        me_str_printf(r->report,
                      "%" PRIu64
                      " blocks were there before the recording began; they "
                      "are placed as if allocated in the order of their "
                      "addresses\n",
                      me_stream_n_before(r->stream));
    }
    me_str_printf(r->report, "%-*s %12s %12s %12s %12s %12s %12s %7s %7s\n",
                  NAME_WIDTH, "MiB", "requested", "peak", "allocated", "peak",
                  "reserved", "peak", "unused", "retries");
}

static void append_json_counters(const replay *r)
{
    for (int i = 0; i < N_SHOWN; i++) {
        me_str_printf(r->report,
                      "%s\"%s\": {\"current\": %" PRIu64 ", \"peak\": %" PRIu64
                      "}",
                      i == 0 ? "" : ", ", shown[i].key,
                      me_pool_current(r->pool, shown[i].kind),
                      me_pool_peak(r->pool, shown[i].kind));
    }
    me_str_printf(
        r->report,
        ", \"largest_free\": %" PRIu64 ", \"num_alloc_retries\": %" PRIu64,
        me_pool_largest_free(r->pool, 0), me_pool_num_alloc_retries(r->pool));
}

static void append_text_line(const replay *r, const char *name, size_t length,
                             const uint64_t peaks[N_SHOWN])
{
    const int width = length > NAME_WIDTH ? NAME_WIDTH : (int)length;
    me_str_printf(r->report, "%-*.*s", NAME_WIDTH, width, name);
    for (int i = 0; i < N_SHOWN; i++) {
        if (shown[i].kind == ME_POOL_ACTIVE_BYTES ||
            shown[i].kind == ME_POOL_INACTIVE_SPLIT_BYTES) {
            continue;
        }
        me_str_printf(r->report, " %12.3f %12.3f",
                      in_mib(me_pool_current(r->pool, shown[i].kind)),
                      in_mib(peaks[i]));
    }
    me_str_printf(r->report, " %6.1f%% %7" PRIu64 "\n", unused_percent(r->pool),
                  me_pool_num_alloc_retries(r->pool));
}

void me_replay_point(replay *r, const char *name, size_t length)
{
    if (r->options->is_json) {
        me_str_append(r->report, r->n_points == 1 ? "\n    {\"name\": "
                                                  : ",\n    {\"name\": ");
        append_json_string(r->report, name, length);
        me_str_append(r->report, ", ");
        append_json_counters(r);
        me_str_append(r->report, "}");
        return;
    }
    uint64_t peaks[N_SHOWN];
    for (int i = 0; i < N_SHOWN; i++) {
        peaks[i] = me_pool_peak(r->pool, shown[i].kind);
    }
    append_text_line(r, name, length, peaks);
}

static void append_json_oom(replay *r, const me_stream_event *event)
{
    const me_pool_oom *oom = me_pool_last_oom(r->pool);
    me_str_printf(r->report, "\n    \"line\": %" PRIu64 ", \"after_point\": ",
                  event->line);
    append_json_string(r->report, me_str_text(&r->point), r->point.length);
    me_str_append(r->report, ", \"id\": ");
    append_json_string(r->report, event->id, event->id_length);
    me_str_printf(
        r->report,
        ",\n    \"requested_bytes\": %" PRIu64 ", \"tried_bytes\": %" PRIu64
        ", \"allocated_bytes\": %" PRIu64 ", \"reserved_bytes\": %" PRIu64
        ", \"num_alloc_retries\": %" PRIu64 ",\n    \"message\": ",
        oom->requested_bytes, oom->tried_bytes, oom->allocated_bytes,
        oom->reserved_bytes, oom->num_alloc_retries);
    me_str text = {0};
    me_pool_oom_text(r->pool, &text);
    append_json_string(r->report, me_str_text(&text), text.length);
    me_str_fini(&text);
}

static bool is_order_recorded(const replay *r)
{
    return r->order != NULL && me_replay_order_is_used(r->order);
}

static void end_json(replay *r, const me_stream_event *oom)
{
    me_str_append(r->report, r->n_points == 0 ? "]" : "\n  ]");
    me_str_append(r->report, ",\n  \"end\": {");
    append_json_counters(r);
    me_str_append(r->report, "},\n  \"peak\": {");
    for (int i = 0; i < N_SHOWN; i++) {
        me_str_printf(r->report, "%s\"%s\": %" PRIu64, i == 0 ? "" : ", ",
                      shown[i].key, r->peaks[shown[i].kind]);
    }
    me_str_printf(r->report,
                  "},\n  \"events\": %" PRIu64
                  ",\n  \"segment_order\": \"%s\",\n  \"oom\": ",
                  r->n_events, is_order_recorded(r) ? "recorded" : "modelled");
    if (oom == NULL) {
        me_str_append(r->report, "null }\n");
        return;
    }
    me_str_append(r->report, "{");
    append_json_oom(r, oom);
    me_str_append(r->report, "} }\n");
}

void me_replay_end(replay *r, const me_stream_event *oom)
{
    if (r->options->is_json) {
        end_json(r, oom);
        return;
    }
    uint64_t peaks[N_SHOWN];
    for (int i = 0; i < N_SHOWN; i++) {
        peaks[i] = r->peaks[shown[i].kind];
    }
    static const char last[] = "end, peak of all";
    append_text_line(r, last, sizeof last - 1, peaks);
    if (is_order_recorded(r)) {
        me_str_append(r->report, "which of equal blocks was used first is "
                                 "read off the recording\n");
    }
    if (oom == NULL) {
        return;
    }
    me_str_printf(r->report, "\nout of memory at line %" PRIu64 " (%s%s)\n",
                  oom->line, r->n_points == 0 ? "" : "after ",
                  r->n_points == 0 ? "before the first point"
                                   : me_str_text(&r->point));
    me_pool_oom_text(r->pool, r->report);
    me_str_append(r->report, "\n");
}
