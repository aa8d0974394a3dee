/* SPDX-License-Identifier: BSD-3-Clause */
#include "track/event_log.h"

#include "base/alloc.h"
#include "base/outfile.h"
#include "base/parse.h"
#include "base/str.h"
#include "track/tracker.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
    SINCE_BYTES = 1 << 20 /* of lines before a "begin" point */
};

/** Where the log is. */
typedef enum stage {
    EARLIER,   /**< before the iteration */
    MAYBE,     /**< in it, but its "begin" point may be still to come */
    ITERATION, /**< in it */
    OVER
} stage;

struct me_event_log {
    me_outfile *file;
    FILE *stream; /**< of the file */
    const me_module_tree *tree;
    int32_t iteration;
    stage stage;
    bool has_begun;
    uint64_t bytes;       /**< written */
    uint64_t begun_bytes; /**< written when the iteration began */
    me_str since;         /**< since then, as lines of before it */
    bool has_free;        /**< a free that may be late is not written yet */
    me_event free;
    me_str line;      /**< being written */
    me_status status; /**< the first failure */
    me_diag diag;
};

me_status me_event_log_create(const char *path, const me_module_tree *tree,
                              int32_t iteration, me_diag *diag,
                              me_event_log **log_out)
{
    me_event_log *log = me_alloc(1, sizeof *log, "event_log");
    if (log == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory to write %s", path);
    }
    const me_status status = me_outfile_create(path, diag, &log->file);
    if (status != ME_OK) {
        me_free(log);
        return status;
    }
    log->stream = me_outfile_stream(log->file);
    log->tree = tree;
    log->iteration = iteration;
    static const char head[] = "# action\trequested_bytes\tblock\tstream\t"
                               "category\tphase\tmodule\top\tlate\n";
    log->bytes = sizeof head - 1;
    (void)fwrite(head, 1, log->bytes, log->stream);
    *log_out = log;
    return ME_OK;
}

/** The line, and what it would be if the iteration had not begun. */
static void put(me_event_log *log, bool has_prefix)
{
    static const char prefix[] = "earlier_";
    if (log->stage == OVER) {
        return;
    }
    if (log->stage == EARLIER && has_prefix) {
        (void)fwrite(prefix, 1, sizeof prefix - 1, log->stream);
        log->bytes += sizeof prefix - 1;
    }
    (void)fwrite(me_str_text(&log->line), 1, log->line.length, log->stream);
    log->bytes += log->line.length;
    if (log->stage == MAYBE && log->since.length < SINCE_BYTES) {
        me_str_append(&log->since, has_prefix ? prefix : "");
        me_str_append_n(&log->since, me_str_text(&log->line), log->line.length);
    }
}

static void write_event(me_event_log *log, const me_event *event, bool is_late)
{
    const char *path = event->module < log->tree->count
                           ? log->tree->modules[event->module].path
                           : "?";
    char pool[8] = "";
    if (event->mempool > 0) {
        (void)snprintf(pool, sizeof pool, "%u:", (unsigned)event->mempool);
    }
    log->line.length = 0;
    me_str_printf(&log->line,
                  "%s\t%" PRIu64 "\t%" PRIu32 "\t%s%u\t%s\t%s\t%s\t%s%s\n",
                  event->kind == ME_EVENT_ALLOC ? "alloc" : "free",
                  event->bytes, event->block, pool, (unsigned)event->stream,
                  me_category_name((me_category)event->category),
                  me_phase_name((me_phase)event->phase), path,
                  event->op == NULL ? "" : event->op, is_late ? "\tlate" : "");
    put(log, true);
}

/** A free that was asked for: late unless @p next completes it. */
static void settle_free(me_event_log *log, const me_event *next)
{
    if (!log->has_free) {
        return;
    }
    const bool is_prompt = next != NULL &&
                           next->kind == ME_EVENT_FREE_COMPLETED &&
                           next->block == log->free.block;
    log->has_free = false;
    write_event(log, &log->free, !is_prompt);
}

static void write_completed(me_event_log *log, const me_event *event)
{
    log->line.length = 0;
    me_str_printf(&log->line, "free_completed\t%" PRIu32 "\n", event->block);
    put(log, false);
}

static void write_point(me_event_log *log, const char *name)
{
    log->line.length = 0;
    me_str_printf(&log->line, "%s\t%s\n",
                  me_point_keeps_peaks(name) ? "mark" : "point", name);
    put(log, false);
}

static void begin(me_event_log *log)
{
    log->stage = MAYBE;
    log->has_begun = true;
    log->begun_bytes = log->bytes;
    log->since.length = 0;
}

/** What was written since the iteration began was before it. */
static void begin_again(me_event_log *log)
{
    if (log->since.length == 0 || log->since.length >= SINCE_BYTES ||
        log->status != ME_OK) {
        return;
    }
    log->status = me_outfile_truncate(log->file, log->begun_bytes, &log->diag);
    (void)fwrite(me_str_text(&log->since), 1, log->since.length, log->stream);
    log->bytes = log->begun_bytes + log->since.length;
}

static void on_point(me_event_log *log, const me_event *event)
{
    const bool is_own = event->iteration == log->iteration &&
                        event->name != NULL &&
                        strncmp(event->name, "iter", 4) == 0;
    if (is_own && log->stage == MAYBE && me_ends_with(event->name, "_begin")) {
        begin_again(log);
        log->stage = ITERATION;
    }
    if (event->name != NULL) {
        write_point(log, event->name);
    }
    if (is_own && me_ends_with(event->name, "_end")) {
        log->stage = OVER;
    }
}

static void on_event(void *self, const me_event *event)
{
    me_event_log *log = self;
    const bool completes_free = log->has_free &&
                                event->kind == ME_EVENT_FREE_COMPLETED &&
                                event->block == log->free.block;
    settle_free(log, event);
    if (event->kind == ME_EVENT_ITERATION) {
        if (event->iteration == log->iteration) {
            begin(log);
        } else if (log->stage != EARLIER) {
            log->stage = OVER;
        }
    } else if (event->kind == ME_EVENT_POINT) {
        on_point(log, event);
    } else if (event->kind == ME_EVENT_EMPTY_CACHE) {
        log->line.length = 0;
        me_str_append(&log->line, "empty_cache\n");
        put(log, false);
    } else if (event->kind == ME_EVENT_ALLOC) {
        write_event(log, event, false);
    } else if (event->kind == ME_EVENT_FREE_REQUESTED) {
        log->has_free = true;
        log->free = *event;
    } else if (event->kind == ME_EVENT_FREE_COMPLETED && !completes_free) {
        write_completed(log, event);
    }
}

void me_event_log_take(me_event_log *log, const char *taker, uint64_t bytes)
{
    settle_free(log, NULL);
    log->line.length = 0;
    me_str_printf(&log->line, "take\t%s\t%" PRIu64 "\n", taker, bytes);
    put(log, false);
}

/** Every event is a line. */
static uint32_t on_repeated(void *self, const me_repeated *action)
{
    (void)self;
    (void)action;
    return UINT32_MAX;
}

me_observer me_event_log_observer(me_event_log *log)
{
    return (me_observer){
        .on_event = on_event, .self = log, .on_repeated = on_repeated};
}

me_status me_event_log_finish(me_event_log *log, me_diag *diag)
{
    settle_free(log, NULL);
    if (log->status != ME_OK) {
        return me_fail(diag, log->status, "%s", log->diag.text);
    }
    if (me_str_status(&log->line) != ME_OK ||
        me_str_status(&log->since) != ME_OK) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory for a line of events");
    }
    if (!log->has_begun) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "iteration %d was not simulated, so it has no events",
                       (int)log->iteration);
    }
    return me_outfile_commit(log->file, diag);
}

void me_event_log_destroy(me_event_log *log)
{
    if (log == NULL) {
        return;
    }
    me_outfile_destroy(log->file);
    me_str_fini(&log->line);
    me_str_fini(&log->since);
    me_free(log);
}
