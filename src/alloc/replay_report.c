/* SPDX-License-Identifier: BSD-3-Clause */
/* The report of a replay, as text, JSON and CSV. */
#include "alloc/replay_internal.h"

#include <inttypes.h>
#include <string.h>

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

/** Length of the UTF-8 character at @p text; 0: it is none. */
static size_t utf8_length(const unsigned char *text, size_t left)
{
    const unsigned char c = text[0];
    size_t n = 0;
    if (c < 0x80) {
        return 1;
    }
    if (c >= 0xC2 && c <= 0xDF) { // C2 80 to C2 9F control a terminal
        n = c == 0xC2 && left > 1 && text[1] < 0xA0 ? 0 : 2;
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

/** A string of JSON; bytes that are no text become U+FFFD. */
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
        } else if (*c < 0x20 || *c == 0x7F) {
            me_str_printf(out, "\\u%04x", *c);
        } else {
            me_str_append_n(out, text + i, n);
        }
        i += n == 0 ? 1 : n;
    }
    me_str_append(out, "\"");
}

bool me_replay_format_find(const char *name, me_replay_format *format_out)
{
#define FIND_FORMAT(constant, text)                                            \
    if (strcmp(name, text) == 0) {                                             \
        *format_out = constant;                                                \
        return true;                                                           \
    }
    ME_REPLAY_FORMAT_LIST(FIND_FORMAT)
#undef FIND_FORMAT
    return false;
}

static double in_mib(uint64_t bytes)
{
    return (double)bytes / 1048576.0;
}

/** Share of the reserved memory that no block uses, in percent. */
static double unused_percent(const me_pool *pool)
{
    const uint64_t reserved = me_pool_current(pool, ME_POOL_RESERVED_BYTES);
    const uint64_t active = me_pool_current(pool, ME_POOL_ACTIVE_BYTES);
    return reserved == 0
               ? 0.0
               : 100.0 * (double)(reserved - active) / (double)reserved;
}

static void append_text_head(replay *r)
{
    me_str_printf(r->report, "%-*s %12s %12s %12s %12s %12s %12s %7s %7s\n",
                  NAME_WIDTH, "MiB", "requested", "peak", "allocated", "peak",
                  "reserved", "peak", "unused", "retries");
}

static void append_json_head(replay *r)
{
    const char *conf =
        r->options->conf_text == NULL ? "" : r->options->conf_text;
    me_str_append(r->report, "{ \"alloc_conf\": ");
    append_json_string(r->report, conf, strlen(conf));
    me_str_append(r->report, ",\n  \"points\": [");
}

static void append_csv_head(replay *r)
{
    me_str_append(r->report, "point");
    for (int i = 0; i < N_SHOWN; i++) {
        me_str_printf(r->report, ",%s_bytes,%s_peak_bytes", shown[i].key,
                      shown[i].key);
    }
    me_str_append(r->report,
                  ",largest_free_bytes,num_alloc_retries,oom_tried_bytes\n");
}

void me_replay_begin(replay *r)
{
    switch (r->options->format) {
    case ME_REPLAY_TEXT: append_text_head(r); break;
    case ME_REPLAY_JSON: append_json_head(r); break;
    case ME_REPLAY_CSV: append_csv_head(r); break;
    }
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
    const size_t width = length > NAME_WIDTH ? NAME_WIDTH : length;
    me_str_append_clean(r->report, name, width);
    me_str_printf(r->report, "%*s", (int)(NAME_WIDTH - width), "");
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

/** A line of CSV; of the whole recording's peaks, with the request that found no
 * memory if one did. */
static void append_csv_line(const replay *r, const char *name, size_t length,
                            const uint64_t peaks[N_SHOWN], bool is_oom)
{
    me_str_append_csv(r->report, name, length);
    for (int i = 0; i < N_SHOWN; i++) {
        me_str_printf(r->report, ",%" PRIu64 ",%" PRIu64,
                      me_pool_current(r->pool, shown[i].kind), peaks[i]);
    }
    me_str_printf(r->report, ",%" PRIu64 ",%" PRIu64 ",",
                  me_pool_largest_free(r->pool, 0),
                  me_pool_num_alloc_retries(r->pool));
    if (is_oom) {
        me_str_printf(r->report, "%" PRIu64,
                      me_pool_last_oom(r->pool)->tried_bytes);
    }
    me_str_append(r->report, "\n");
}

static void append_json_point(const replay *r, const char *name, size_t length)
{
    me_str_append(r->report, r->n_points == 1 ? "\n    {\"name\": "
                                              : ",\n    {\"name\": ");
    append_json_string(r->report, name, length);
    me_str_append(r->report, ", ");
    append_json_counters(r);
    me_str_append(r->report, "}");
}

void me_replay_point(replay *r, const char *name, size_t length)
{
    uint64_t peaks[N_SHOWN];
    for (int i = 0; i < N_SHOWN; i++) {
        peaks[i] = me_pool_peak(r->pool, shown[i].kind);
    }
    switch (r->options->format) {
    case ME_REPLAY_TEXT: append_text_line(r, name, length, peaks); break;
    case ME_REPLAY_JSON: append_json_point(r, name, length); break;
    case ME_REPLAY_CSV: append_csv_line(r, name, length, peaks, false); break;
    }
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

static me_search_verdict verdict_of(const replay *r)
{
    return r->order == NULL ? ME_SEARCH_NOTHING : r->order->verdict;
}

/** Up to a line of the recording alone. */
static bool is_partial(const replay *r)
{
    return verdict_of(r) == ME_SEARCH_CONTRADICTS ||
           verdict_of(r) == ME_SEARCH_GIVEN_UP;
}

static void append_json_order(const replay *r)
{
    me_str_printf(r->report,
                  ",\n  \"segment_order\": \"%s\",\n  "
                  "\"segment_order_to_line\": ",
                  me_search_verdict_name(verdict_of(r)));
    if (is_partial(r)) {
        me_str_printf(r->report, "%" PRIu64, r->contradicted_line);
    } else {
        me_str_append(r->report, "null");
    }
    me_str_append(r->report, ",\n  \"empty_cache_inferred_by_lines\": [");
    for (uint32_t i = 0; i < r->n_released; i++) {
        me_str_printf(r->report, "%s%" PRIu64, i == 0 ? "" : ", ",
                      r->released_lines[i]);
    }
    me_str_append(r->report, "]");
}

static void append_text_order(const replay *r)
{
    static const char order[] = "which of equal blocks was used first is read "
                                "off the recording";
    if (verdict_of(r) != ME_SEARCH_NOTHING) {
        me_str_append(r->report, order);
    }
    if (is_partial(r)) {
        me_str_printf(r->report, " up to line %" PRIu64 ", where %s",
                      r->contradicted_line,
                      verdict_of(r) == ME_SEARCH_CONTRADICTS
                          ? "no order of segments agrees with its ids"
                          : "the search for one was given up");
    }
    me_str_append(r->report, verdict_of(r) == ME_SEARCH_NOTHING ? "" : "\n");
    for (uint32_t i = 0; i < r->n_released; i++) {
        me_str_printf(r->report,
                      i == 0
                          ? "cached segments went back, as by empty_cache(); "
                            "ids show it by line %" PRIu64
                          : ", %" PRIu64,
                      r->released_lines[i]);
    }
    me_str_append(r->report, r->n_released == 0 ? "" : "\n");
}

static void end_json(replay *r, const me_stream_event *oom)
{
    me_str_append(r->report, r->n_points == 0 ? "]" : "\n  ]");
    me_str_append(r->report, ",\n  \"end\": {");
    append_json_counters(r);
    me_str_append(r->report, "},\n  \"peak\": {");
    for (int i = 0; i < N_SHOWN; i++) {
        me_str_printf(r->report, "%s\"%s\": %" PRIu64, i == 0 ? "" : ", ",
                      shown[i].key, r->peaks[shown[i].kind][ME_POOL_ALL]);
    }
    me_str_append(r->report, "},\n  \"summary\": ");
    me_replay_summary_json(r);
    me_str_printf(r->report,
                  ",\n  \"events\": %" PRIu64
                  ",\n  \"blocks_before_recording\": %" PRIu64,
                  r->n_events, me_stream_n_before(r->stream));
    append_json_order(r);
    me_str_append(r->report, ",\n  \"oom\": ");
    if (oom == NULL) {
        me_str_append(r->report, "null }\n");
        return;
    }
    me_str_append(r->report, "{");
    append_json_oom(r, oom);
    me_str_append(r->report, "} }\n");
}

static void append_text_notes(const replay *r)
{
    const uint64_t n_before = me_stream_n_before(r->stream);
    if (n_before > 0) {
        me_str_printf(
            r->report,
            "%" PRIu64 " block%s there before the recording began, placed as "
            "if allocated in the order %s\n",
            n_before, n_before == 1 ? " was" : "s were",
            me_stream_is_snapshot(r->stream) ? "of their addresses"
                                             : "in which they stand there");
    }
    append_text_order(r);
}

static void end_text(replay *r, const uint64_t peaks[N_SHOWN],
                     const me_stream_event *oom)
{
    static const char last[] = "end, peak of all";
    append_text_line(r, last, sizeof last - 1, peaks);
    append_text_notes(r);
    me_replay_summary_text(r);
    if (oom == NULL) {
        return;
    }
    me_str_printf(r->report, "\nout of memory at line %" PRIu64 " (%s",
                  oom->line,
                  r->n_points == 0 ? "before the first point" : "after ");
    me_str_append_clean(r->report, me_str_text(&r->point),
                        r->n_points == 0 ? 0 : r->point.length);
    me_str_append(r->report, ")\n");
    me_pool_oom_text(r->pool, r->report);
    me_str_append(r->report, "\n");
}

void me_replay_end(replay *r, const me_stream_event *oom)
{
    uint64_t peaks[N_SHOWN];
    for (int i = 0; i < N_SHOWN; i++) {
        peaks[i] = r->peaks[shown[i].kind][ME_POOL_ALL];
    }
    switch (r->options->format) {
    case ME_REPLAY_TEXT: end_text(r, peaks, oom); break;
    case ME_REPLAY_JSON: end_json(r, oom); break;
    case ME_REPLAY_CSV: append_csv_line(r, "end", 3, peaks, oom != NULL); break;
    }
}
