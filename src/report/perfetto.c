/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/perfetto.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "report/perfetto_clock.h"

#include <inttypes.h>
#include <string.h>

/** Tracks of a rank; Perfetto shows them in this order. */
typedef enum track {
    PIPELINE = 1,
    PHASES,
    MODULES,
    COMMUNICATION
} track;

enum {
    MAX_OPEN = 256,  /* modules within each other */
    EVENT_BYTES = 94 /* on the average */
};

/** Bytes of a rank. */
typedef struct counters {
    uint64_t requested;
    uint64_t reserved;
} counters;

/** A slice that has begun and is not written yet. */
typedef struct opening {
    track tid;
    const me_event *event;
    uint32_t at;
} opening;

/** What is written, and what is open. */
typedef struct writing {
    const me_perfetto_rank *r;
    FILE *stream;
    me_perfetto_clock clock;
    int pid; /**< 0 is the idle process of a machine */
    bool has_action;
    bool has_phase;
    uint32_t open[MAX_OPEN]; /**< modules */
    uint32_t n_open;
    opening openings[MAX_OPEN + 2]; /**< all at one time, outer ones first */
    uint32_t n_openings;
    counters now;
} writing;

static void write_text(FILE *stream, const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        const unsigned char c = (unsigned char)*at;
        if (c < ' ' || c == '"' || c == '\\') {
            (void)fprintf(stream, "\\u%04x", (unsigned)c);
        } else {
            (void)fputc(c, stream);
        }
    }
}

/** Up to the name of an event, at a place of the iteration. */
static void begin_event(const writing *x, char kind, track tid, uint32_t at)
{
    const int64_t ns = me_perfetto_time(&x->clock, at);
    (void)fprintf(x->stream,
                  ",\n{\"ph\": \"%c\", \"pid\": %d, \"tid\": %d, \"ts\": "
                  "%" PRId64 ".%03d",
                  kind, x->pid, (int)tid, ns / 1000, (int)(ns % 1000));
}

static const char *path_of(const writing *x, uint32_t module)
{
    return module < x->r->tree->count ? x->r->tree->modules[module].path : "?";
}

static void write_opening(const writing *x, const opening *o)
{
    const me_event *e = o->event;
    const char *phase = me_phase_name((me_phase)e->phase);
    begin_event(x, 'B', o->tid, o->at);
    (void)fputs(", \"name\": \"", x->stream);
    if (o->tid == PIPELINE) {
        write_text(x->stream, e->name);
        (void)fprintf(x->stream,
                      "%d\", \"args\": {\"micro-batch\": %d, \"chunk\": %d}}",
                      (int)e->microbatch, (int)e->microbatch, (int)e->chunk);
    } else if (o->tid == MODULES) {
        write_text(x->stream, path_of(x, e->module));
        (void)fprintf(x->stream, "\", \"args\": {\"phase\": \"%s\"}}", phase);
    } else {
        (void)fprintf(x->stream, "%s\"}", phase);
    }
}

/** Writes what began before @p at. */
static void settle(writing *x, uint32_t at)
{
    if (x->n_openings > 0 && me_perfetto_time(&x->clock, x->openings[0].at) !=
                                 me_perfetto_time(&x->clock, at)) {
        for (uint32_t i = 0; i < x->n_openings; i++) {
            write_opening(x, &x->openings[i]);
        }
        x->n_openings = 0;
    }
}

static void open_slice(writing *x, track tid, const me_event *e, uint32_t at)
{
    ME_ASSERT(x->n_openings < MAX_OPEN + 2);
    x->openings[x->n_openings++] = (opening){tid, e, at};
}

/** A slice that ends where it began is left out: Perfetto takes the next one's
 *  begin, at the same time, to lie in it, and finds no end of it. */
static void close_slice(writing *x, track tid, uint32_t at)
{
    uint32_t i = x->n_openings;
    while (i > 0 && x->openings[i - 1].tid != tid) {
        i--;
    }
    if (i > 0) {
        memmove(&x->openings[i - 1], &x->openings[i],
                (x->n_openings - i) * sizeof *x->openings);
        x->n_openings--;
        return;
    }
    begin_event(x, 'E', tid, at);
    (void)fputs("}", x->stream);
}

static void write_action(writing *x, const me_event *e, uint32_t at)
{
    if (x->has_action) {
        close_slice(x, PIPELINE, at);
        x->has_action = false;
    }
    if (e->kind == ME_EVENT_ACTION_BEGIN) {
        open_slice(x, PIPELINE, e, at);
        x->has_action = true;
    }
}

static void write_phase(writing *x, const me_event *e, uint32_t at)
{
    if (x->has_phase) {
        close_slice(x, PHASES, at);
    }
    open_slice(x, PHASES, e, at);
    x->has_phase = true;
}

static void enter_module(writing *x, const me_event *e, uint32_t at)
{
    if (x->n_open < MAX_OPEN) {
        open_slice(x, MODULES, e, at);
        x->open[x->n_open++] = e->module;
    }
}

/** A module ends with those that are still open in it. */
static void leave_module(writing *x, const me_event *e, uint32_t at)
{
    uint32_t i = x->n_open;
    while (i > 0 && x->open[i - 1] != e->module) {
        i--;
    }
    while (i > 0 && x->n_open >= i) {
        close_slice(x, MODULES, at);
        x->n_open--;
    }
}

/** It lasts up to the next call: how long it takes is in the step's times. */
static void write_collective(const writing *x, const me_event *e, uint32_t at)
{
    const int64_t begin = me_perfetto_time(&x->clock, at);
    const int64_t ns = me_perfetto_time(&x->clock, at + 1) - begin;
    begin_event(x, 'X', COMMUNICATION, at);
    (void)fprintf(x->stream,
                  ", \"dur\": %" PRId64 ".%03d, \"name\": \"%s\", \"args\": "
                  "{\"group\": \"%s\", \"elements\": %" PRIu64
                  ", \"module\": \"",
                  ns / 1000, (int)(ns % 1000),
                  me_collective_name((me_collective)e->collective),
                  me_group_kind_name((me_group_kind)e->group), e->count);
    write_text(x->stream, path_of(x, e->module));
    (void)fputs("\"}}", x->stream);
}

static void write_point(const writing *x, const me_event *e, uint32_t at)
{
    begin_event(x, 'i', PHASES, at);
    (void)fputs(", \"s\": \"t\", \"name\": \"", x->stream);
    write_text(x->stream, e->name == NULL ? "" : e->name);
    (void)fputs("\"}", x->stream);
}

static void write_mark(writing *x, const me_event *e, uint32_t at)
{
    settle(x, at);
    if (e->kind == ME_EVENT_ACTION_BEGIN || e->kind == ME_EVENT_ACTION_END) {
        write_action(x, e, at);
    } else if (e->kind == ME_EVENT_PHASE) {
        write_phase(x, e, at);
    } else if (e->kind == ME_EVENT_MODULE_ENTER) {
        enter_module(x, e, at);
    } else if (e->kind == ME_EVENT_MODULE_LEAVE) {
        leave_module(x, e, at);
    } else if (e->kind == ME_EVENT_COLLECTIVE) {
        write_collective(x, e, at);
    } else if (e->kind == ME_EVENT_POINT) {
        write_point(x, e, at);
    }
}

/** What an entry does to the bytes. */
static void count_entry(writing *x, const me_pool_trace *e)
{
    switch (e->action) {
    case ME_POOL_TRACE_ALLOC: x->now.requested += e->bytes; break;
    case ME_POOL_TRACE_FREE_COMPLETED: x->now.requested -= e->bytes; break;
    case ME_POOL_TRACE_SEGMENT_ALLOC:
    case ME_POOL_TRACE_SEGMENT_MAP: x->now.reserved += e->bytes; break;
    case ME_POOL_TRACE_SEGMENT_FREE:
    case ME_POOL_TRACE_SEGMENT_UNMAP: x->now.reserved -= e->bytes; break;
    case ME_POOL_TRACE_FREE_REQUESTED:
    case ME_POOL_TRACE_OOM:
    case ME_POOL_ACTION_COUNT: break;
    }
}

static void write_counter(const writing *x, const char *name, uint64_t bytes,
                          uint32_t at)
{
    const int64_t ns = me_perfetto_time(&x->clock, at);
    (void)fprintf(x->stream,
                  ",\n{\"ph\": \"C\", \"pid\": %d, \"ts\": %" PRId64
                  ".%03d, \"name\": \"%s\", \"args\": {\"bytes\": %" PRIu64
                  "}}",
                  x->pid, ns / 1000, (int)(ns % 1000), name, bytes);
}

/** Those that have changed since, or all of them. */
static void write_counters(const writing *x, const counters *before,
                           bool is_all, uint32_t at)
{
    if (is_all || x->now.requested != before->requested) {
        write_counter(x, "requested", x->now.requested, at);
    }
    if (is_all || x->now.reserved != before->reserved) {
        write_counter(x, "reserved", x->now.reserved, at);
    }
}

/** Names of a process and of its threads. */
static void write_names(const writing *x)
{
    static const char *const names[] = {[PIPELINE] = "pipeline",
                                        [PHASES] = "phases",
                                        [MODULES] = "modules",
                                        [COMMUNICATION] = "communication"};

    const me_perfetto_rank *r = x->r;
    (void)fprintf(x->stream,
                  ",\n{\"ph\": \"M\", \"pid\": %d, \"name\": "
                  "\"process_name\", \"args\": {\"name\": \"rank %d",
                  x->pid, (int)r->rank);
    if (r->n_like > 0) {
        (void)fprintf(x->stream, " and %d like it", (int)r->n_like);
    }
    (void)fprintf(x->stream, ", stage %d\"}}", (int)r->stage);
    for (int tid = PIPELINE; tid <= COMMUNICATION; tid++) {
        (void)fprintf(x->stream,
                      ",\n{\"ph\": \"M\", \"pid\": %d, \"tid\": %d, \"name\": "
                      "\"thread_name\", \"args\": {\"name\": \"%s\"}}",
                      x->pid, tid, names[tid]);
    }
}

/** All that the iteration has, in its order. */
static void write_iteration(writing *x)
{
    uint32_t n_entries = 0;
    uint32_t n_marks = 0;
    uint32_t n_places = 0;
    uint32_t at = 0;
    uint32_t mark = 0;
    const me_trace_entry *entries =
        me_memory_trace_entries(x->r->trace, &n_entries);
    const me_trace_mark *marks = me_memory_trace_marks(x->r->trace, &n_marks);
    const me_trace_place *places =
        me_memory_trace_places(x->r->trace, &n_places);
    bool has_begun = false;
    for (uint32_t i = 0; i <= n_entries; i++) {
        for (; mark < n_marks && marks[mark].at <= i; mark++) {
            write_mark(x, &marks[mark].event, at++);
        }
        if (i == n_entries) {
            break;
        }
        const bool is_in =
            places[entries[i].place].iteration == x->r->iteration;
        const counters before = x->now;
        count_entry(x, &entries[i].trace);
        if (is_in) {
            write_counters(x, &before, !has_begun, at++);
        }
        has_begun |= is_in;
    }
    settle(x, at);
    for (; x->n_open > 0; x->n_open--) {
        close_slice(x, MODULES, at);
    }
    if (x->has_action) {
        close_slice(x, PIPELINE, at);
    }
    if (x->has_phase) {
        close_slice(x, PHASES, at);
    }
}

void me_perfetto_begin(FILE *stream)
{
    (void)fputs("{\"displayTimeUnit\": \"ms\", \"otherData\": {\"by\": "
                "\"memest\"}, \"traceEvents\": [\n{\"ph\": \"M\", \"pid\": 0, "
                "\"name\": \"process_name\", \"args\": {\"name\": \"memest\"}}",
                stream);
}

void me_perfetto_end(FILE *stream)
{
    (void)fputs("\n]}\n", stream);
}

uint64_t me_perfetto_bytes(const me_perfetto_rank *rank)
{
    uint32_t n_entries = 0;
    uint32_t n_places = 0;
    uint32_t n_marks = 0;
    uint64_t n = 0;
    const me_trace_entry *entries =
        me_memory_trace_entries(rank->trace, &n_entries);
    const me_trace_place *places =
        me_memory_trace_places(rank->trace, &n_places);
    (void)me_memory_trace_marks(rank->trace, &n_marks);
    for (uint32_t i = 0; i < n_entries; i++) {
        n += places[entries[i].place].iteration == rank->iteration &&
                     entries[i].trace.action != ME_POOL_TRACE_FREE_REQUESTED
                 ? 1
                 : 0;
    }
    return (n + n_marks) * EVENT_BYTES;
}

me_status me_perfetto_append(const me_perfetto_rank *rank, FILE *stream,
                             me_diag *diag)
{
    writing x = {.r = rank, .stream = stream, .pid = (int)rank->rank + 1};
    const me_time_stage *stage =
        rank->step == NULL ? NULL : &rank->step->stages[rank->stage];
    const me_status status =
        me_perfetto_clock_init(&x.clock, rank->trace, rank->iteration, stage,
                               rank->step == NULL ? 0 : rank->step->step_ns);
    if (status == ME_OK) {
        write_names(&x);
        write_iteration(&x);
    }
    me_perfetto_clock_fini(&x.clock);
    return status == ME_OK
               ? ME_OK
               : me_fail(diag, status, "no host memory for the timeline");
}
