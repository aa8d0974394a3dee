/* SPDX-License-Identifier: BSD-3-Clause */
#include "track/event_log.h"

#include "base/alloc.h"
#include "base/outfile.h"
#include "base/parse.h"
#include "base/size.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
    NO_BLOCK = 0 /**< index in the list of held blocks: none */
};

/** A block that is held, at its number + 1; place 0 begins the list. */
typedef struct held_block {
    me_event alloc;
    uint32_t next; /**< allocated after it; NO_BLOCK: none */
    uint32_t prev;
    bool is_held;
} held_block;

struct me_event_log {
    me_outfile *file;
    FILE *stream; /**< of the file */
    const me_module_tree *tree;
    int32_t iteration;
    bool is_on;
    bool has_begun;
    bool is_empty;       /**< nothing after the first line */
    uint64_t head_bytes; /**< length of the first line */
    held_block *held;    /**< by number, in order of allocation */
    uint32_t n_held;     /**< places of `held` */
    me_str line;         /**< being written */
    me_status status;    /**< the first failure */
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
    log->is_empty = true;
    static const char head[] = "# action\trequested_bytes\tblock\tstream\t"
                               "category\tphase\tmodule\top\n";
    log->head_bytes = sizeof head - 1;
    (void)fwrite(head, 1, log->head_bytes, log->stream);
    *log_out = log;
    return ME_OK;
}

static void fail(me_event_log *log, me_status status, const char *why)
{
    if (log->status == ME_OK) {
        log->status = me_fail(&log->diag, status, "%s", why);
    }
}

/** Room for block number @p block. @return false without memory */
static bool make_place(me_event_log *log, uint32_t block)
{
    if (block + 1 < log->n_held) {
        return true;
    }
    const uint32_t count = (uint32_t)me_max_u64(2 * (uint64_t)block, 256);
    held_block *held =
        me_realloc(log->held, count, sizeof *held, "event_log.held");
    if (held == NULL) {
        fail(log, ME_ERR_NOMEM, "no memory for the blocks that are held");
        return false;
    }
    memset(held + log->n_held, 0, (count - log->n_held) * sizeof *held);
    log->held = held;
    log->n_held = count;
    return true;
}

static void hold(me_event_log *log, const me_event *event)
{
    if (!make_place(log, event->block)) {
        return;
    }
    const uint32_t at = event->block + 1;
    const uint32_t last = log->held[0].prev;
    log->held[at] = (held_block){
        .alloc = *event, .next = NO_BLOCK, .prev = last, .is_held = true};
    log->held[last].next = at;
    log->held[0].prev = at;
}

static void let_go(me_event_log *log, uint32_t block)
{
    const uint32_t at = block + 1;
    if (at >= log->n_held || !log->held[at].is_held) {
        return;
    }
    const held_block h = log->held[at];
    log->held[h.prev].next = h.next;
    log->held[h.next].prev = h.prev;
    log->held[at].is_held = false;
}

static const char *action_name(const me_event *event, bool is_held)
{
    if (is_held) {
        return "held";
    }
    return event->kind == ME_EVENT_ALLOC ? "alloc" : "free";
}

static void write_event(me_event_log *log, const me_event *event, bool is_held)
{
    const char *path = event->module < log->tree->count
                           ? log->tree->modules[event->module].path
                           : "?";
    log->is_empty = false;
    log->line.length = 0;
    me_str_printf(
        &log->line, "%s\t%" PRIu64 "\t%" PRIu32 "\t%u\t%s\t%s\t%s\t%s\n",
        action_name(event, is_held), event->bytes, event->block,
        (unsigned)event->stream, me_category_name((me_category)event->category),
        me_phase_name((me_phase)event->phase), path,
        event->op == NULL ? "" : event->op);
    (void)fwrite(me_str_text(&log->line), 1, log->line.length, log->stream);
}

static void begin(me_event_log *log)
{
    log->is_on = true;
    log->has_begun = true;
    for (uint32_t i = log->n_held == 0 ? NO_BLOCK : log->held[0].next;
         i != NO_BLOCK; i = log->held[i].next) {
        write_event(log, &log->held[i].alloc, true);
    }
}

static void on_point(me_event_log *log, const me_event *event)
{
    if (event->iteration != log->iteration || event->name == NULL ||
        strncmp(event->name, "iter", 4) != 0) {
        return;
    }
    if (me_ends_with(event->name, "_end")) {
        log->is_on = false;
        return;
    }
    if (!me_ends_with(event->name, "_begin")) {
        return;
    }
    if (!log->is_empty && log->status == ME_OK) {
        log->status =
            me_outfile_truncate(log->file, log->head_bytes, &log->diag);
        log->is_empty = true;
    }
    begin(log);
}

static void on_event(void *self, const me_event *event)
{
    me_event_log *log = self;
    if (event->kind == ME_EVENT_ITERATION) {
        log->is_on = false;
        if (event->iteration == log->iteration) {
            begin(log);
        }
        return;
    }
    if (event->kind == ME_EVENT_POINT) {
        on_point(log, event);
        return;
    }
    if (event->kind != ME_EVENT_ALLOC &&
        event->kind != ME_EVENT_FREE_REQUESTED) {
        return;
    }
    if (log->is_on) {
        write_event(log, event, false);
    }
    if (event->kind == ME_EVENT_ALLOC) {
        hold(log, event);
    } else {
        let_go(log, event->block);
    }
}

me_observer me_event_log_observer(me_event_log *log)
{
    return (me_observer){.on_event = on_event, .self = log};
}

me_status me_event_log_finish(me_event_log *log, me_diag *diag)
{
    if (log->status != ME_OK) {
        return me_fail(diag, log->status, "%s", log->diag.text);
    }
    if (me_str_status(&log->line) != ME_OK) {
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
    me_free(log->held);
    me_free(log);
}
