/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop: read a call, do it, and at each point show the counters. */
#include "alloc/replay_internal.h"
#include "base/input.h"
#include "base/size.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

enum {
    MAX_POINTS = 100000, /* of a report that somebody still reads */
    SHOWN_ID = 40,
    SEARCH_STEPS = 2000000 /* some seconds */
};

static me_status bad_call(const replay *r, const me_stream_event *event,
                          const char *what)
{
    const bool is_cut = event->id_length > SHOWN_ID;
    return me_fail_at(r->diag, ME_ERR_SYNTAX, r->name,
                      event->line > INT_MAX ? INT_MAX : (int)event->line,
                      "%s: '%.*s'%s", what,
                      is_cut ? SHOWN_ID : (int)event->id_length, event->id,
                      is_cut ? "…" : "");
}

static me_status do_alloc(replay *r, const me_stream_event *event)
{
    bool is_new = false;
    me_id_value *value = NULL;
    me_status status =
        me_id_map_add(&r->ids, event->id, event->id_length, &is_new, &value);
    if (status == ME_OK && !is_new) {
        return bad_call(r, event, "allocated while it is still in use");
    }
    if (status == ME_OK) {
        value->bytes = event->bytes;
    }
    if (status == ME_OK) {
        status =
            me_pool_alloc(r->pool, event->bytes, event->stream, &value->block);
    }
    if (status == ME_ERR_NOMEM) {
        return me_fail(r->diag, status, "no host memory for %zu live blocks",
                       r->ids.n_used);
    }
    if (status == ME_ERR_OVERFLOW) {
        return me_fail(r->diag, status,
                       "the device's address space has run out after %" PRIu64
                       " calls",
                       r->n_events);
    }
    return status;
}

static me_status do_free(replay *r, const me_stream_event *event)
{
    me_id_value *value = me_id_map_find(&r->ids, event->id, event->id_length);
    if (value == NULL) {
        return bad_call(r, event, "freed without being in use");
    }
    if (event->has_bytes && event->bytes != value->bytes) {
        return bad_call(r, event, "freed with other bytes than it has");
    }
    if (event->kind == ME_STREAM_FREE_REQUESTED) {
        if (value->is_pending) {
            return bad_call(r, event, "freed twice");
        }
        value->epoch = me_pool_free_requested(r->pool, value->block);
        value->is_pending = true;
        return ME_OK;
    }
    if (value->is_pending) {
        me_pool_free_completed(r->pool, value->block, value->epoch);
    } else {
        me_pool_free(r->pool, value->block);
    }
    me_id_map_remove(&r->ids, value);
    return ME_OK;
}

static void keep_peaks(replay *r)
{
    me_pool_stats stats;
    me_pool_read(r->pool, &stats);
    for (int kind = 0; kind < ME_POOL_STAT_COUNT; kind++) {
        for (int slot = 0; slot < ME_POOL_SLOTS; slot++) {
            uint64_t *peak = &r->peaks[kind][slot];
            *peak = me_max_u64(*peak, stats.stat[kind][slot].peak);
        }
    }
    r->oversize_peaks[0] =
        me_max_u64(r->oversize_peaks[0], stats.oversize_allocations.peak);
    r->oversize_peaks[1] =
        me_max_u64(r->oversize_peaks[1], stats.oversize_segments.peak);
}

static me_status do_point(replay *r, const me_stream_event *event)
{
    if (++r->n_points > MAX_POINTS) {
        return bad_call(r, event, "more than 100000 points, the last one");
    }
    keep_peaks(r);
    me_replay_point(r, event->id, event->id_length);
    if (event->kind == ME_STREAM_POINT) {
        me_pool_reset_peaks(r->pool);
    }
    r->point.length = 0;
    me_str_append_n(&r->point, event->id, event->id_length);
    return me_str_status(&r->point);
}

static me_status do_take(replay *r, const me_stream_event *event)
{
    const me_status status = me_pool_take(r->pool, event->taker, event->bytes);
    return status == ME_ERR_OVERFLOW
               ? me_fail(r->diag, status,
                         "the device's address space has run out after %" PRIu64
                         " calls",
                         r->n_events)
               : status;
}

/** What the search found to have happened by this call. */
static me_status follow(replay *r, const me_stream_event *event)
{
    const me_search_result *order = r->order;
    if (order == NULL || !me_replay_is_call(event)) {
        return ME_OK;
    }
    const uint32_t call = r->n_calls++;
    if (call == order->n_calls) {
        r->contradicted_line = event->line;
    }
    if (r->n_released == order->n_released ||
        order->released[r->n_released] != call) {
        return ME_OK;
    }
    r->released_lines[r->n_released++] = event->line;
    return me_pool_empty_cache(r->pool);
}

static me_status do_call(replay *r, const me_stream_event *event)
{
    const me_status status = follow(r, event);
    if (status != ME_OK) {
        return status;
    }
    switch (event->kind) {
    case ME_STREAM_ALLOC: return do_alloc(r, event);
    case ME_STREAM_FREE:
    case ME_STREAM_FREE_REQUESTED:
    case ME_STREAM_FREE_COMPLETED: return do_free(r, event);
    case ME_STREAM_TAKE: return do_take(r, event);
    case ME_STREAM_EMPTY_CACHE: return me_pool_empty_cache(r->pool);
    case ME_STREAM_POINT:
    case ME_STREAM_MARK: return do_point(r, event);
    case ME_STREAM_END: break;
    }
    return ME_OK;
}

static me_status replay_calls(replay *r)
{
    me_stream_event event;
    me_status status = ME_OK;
    do {
        status = me_stream_next(r->stream, r->diag, &event);
        if (status == ME_OK) {
            r->n_events += event.kind != ME_STREAM_END ? 1 : 0;
            status = do_call(r, &event);
        }
    } while (status == ME_OK && event.kind != ME_STREAM_END);
    if (status != ME_OK && status != ME_ERR_CAPACITY) {
        return status;
    }
    keep_peaks(r);
    me_replay_end(r, status == ME_ERR_CAPACITY ? &event : NULL);
    return status;
}

me_replay_options me_replay_options_default(void)
{
    return (me_replay_options){
        .pool = {.conf = me_alloc_conf_default()},
        .device = -1,
        .max_search_steps = SEARCH_STEPS,
    };
}

/** What the search chose; where it ended, the lowest address. */
static size_t choose(void *self, const uint64_t *addresses, size_t n)
{
    (void)addresses;
    replay *r = self;
    if (r->n_chosen >= r->order->n_chosen) {
        return 0;
    }
    const size_t chosen = r->order->chosen[r->n_chosen++];
    return chosen < n ? chosen : 0;
}

static me_status begin_pass(replay *r, FILE *file)
{
    me_pool_options options = r->options->pool;
    me_status status = me_stream_create(file, r->name, r->options->device,
                                        r->diag, &r->stream);
    if (status == ME_OK) {
        me_stream_watch(r->stream, r->options->part);
    }
    if (r->order != NULL) {
        options.choose = choose;
        options.choose_self = r;
    }
    return status == ME_OK ? me_pool_create(&options, &r->pool) : status;
}

/** Once through the recording. @p r has options, name, order and diag alone. */
static me_status replay_pass(replay r, FILE *file,
                             me_replay_summary *summary_out, me_str *report)
{
    me_str text = {0};
    r.report = &text;
    me_status status = begin_pass(&r, file);
    if (status == ME_OK) {
        me_replay_begin(&r);
        status = replay_calls(&r);
    }
    const bool is_oom = status == ME_ERR_CAPACITY;
    if (status == ME_OK || is_oom) {
        me_str_append_n(report, me_str_text(&text), text.length);
        status = me_str_status(&text) != ME_OK ? me_str_status(&text)
                                               : me_str_status(report);
    }
    if (status == ME_OK) {
        summary_out->reserved_peak_bytes =
            r.peaks[ME_POOL_RESERVED_BYTES][ME_POOL_ALL];
        summary_out->num_alloc_retries = me_pool_num_alloc_retries(r.pool);
        summary_out->is_oom = is_oom;
    }
    summary_out->n_events = r.n_events;
    me_str_fini(&text);
    me_str_fini(&r.point);
    me_id_map_fini(&r.ids);
    me_stream_destroy(r.stream);
    me_pool_destroy(r.pool);
    return status;
}

/** A copy that can be read again; NULL, with errno, if there can be none. */
static FILE *spool(FILE *file)
{
    FILE *copy = tmpfile();
    char buffer[BUFSIZ];
    size_t n = 0;
    bool is_whole = copy != NULL;
    while (is_whole && (n = fread(buffer, 1, sizeof buffer, file)) > 0) {
        is_whole = fwrite(buffer, 1, n, copy) == n;
    }
    if (copy != NULL && (!is_whole || ferror(file) || fflush(copy) != 0)) {
        const int reason = errno;
        (void)fclose(copy);
        errno = reason;
        copy = NULL;
    }
    return copy;
}

/** Search for the order of segments, then replay. */
static me_status replay_ordered(replay r, FILE *file,
                                me_replay_summary *summary, me_str *report)
{
    me_replay_calls calls = {0};
    me_search_result found = {0};
    me_status status = me_replay_calls_read(file, r.name, &calls);
    if (status == ME_OK && calls.is_too_long) {
        found.verdict = ME_SEARCH_GIVEN_UP;
        r.order = &found;
    }
    if (status == ME_OK && calls.n_calls > 0) {
        status = me_replay_search(&r.options->pool, &calls,
                                  r.options->max_search_steps, &found);
        r.order = &found;
    }
    me_replay_calls_fini(&calls);
    if (status == ME_OK) {
        rewind(file);
        status = replay_pass(r, file, summary, report);
    }
    me_search_result_fini(&found);
    return status;
}

/** Only a recording that is replayed as it was recorded tells its order. */
static bool can_be_ordered(const me_replay_options *options)
{
    const me_pool_options *p = &options->pool;
    return !options->is_order_modelled && !p->conf.expandable_segments &&
           p->limit_bytes == 0 && p->capacity_bytes == 0 && p->place == NULL &&
           p->choose == NULL && p->on_trace == NULL;
}

me_status me_replay_file(const me_replay_options *options, FILE *file,
                         const char *name, me_diag *diag,
                         me_replay_summary *summary_out, me_str *report)
{
    replay r = {.options = options, .name = name, .diag = diag};
    me_replay_summary summary = {0};
    FILE *copy = NULL;
    me_status status = ME_OK;
    if (can_be_ordered(options)) {
        if (fseek(file, 0, SEEK_SET) != 0) {
            copy = spool(file);
            if (copy == NULL) {
                return me_fail(diag, ME_ERR_IO,
                               "%s cannot be copied to a temporary file: "
                               "%s",
                               name, strerror(errno));
            }
            file = copy;
            rewind(file);
        }
        status = replay_ordered(r, file, &summary, report);
    } else {
        status = replay_pass(r, file, &summary, report);
    }
    if (status == ME_OK && summary.n_events == 0) {
        status = me_fail_at(diag, ME_ERR_SYNTAX, name, 0,
                            "records nothing: no allocation, free or point");
    }
    if (status == ME_ERR_NOMEM && diag != NULL && diag->status == ME_OK) {
        status = me_fail(diag, status, "no host memory to replay %s", name);
    }
    if (summary_out != NULL) {
        *summary_out = summary;
    }
    if (copy != NULL) {
        (void)fclose(copy);
    }
    return status;
}

me_status me_replay_run(const me_replay_options *options, const char *path,
                        me_diag *diag, me_replay_summary *summary_out,
                        me_str *report)
{
    if (strcmp(path, "-") == 0) {
        return me_replay_file(options, stdin, "standard input", diag,
                              summary_out, report);
    }
    FILE *file = NULL;
    me_status status = me_input_open(path, diag, &file);
    if (status != ME_OK) {
        return status;
    }
    status = me_replay_file(options, file, path, diag, summary_out, report);
    (void)fclose(file);
    return status;
}
