/* SPDX-License-Identifier: BSD-3-Clause */
#include "track/tracker.h"

#include "base/alloc.h"
#include "base/parse.h"
#include "base/size.h"
#include "track/tracker_impl.h"

#include <string.h>

static const uint64_t no_iteration = UINT64_MAX;

static void refuse(me_tracker *t, me_status status)
{
    if (t->status == ME_OK) {
        t->status = status;
    }
}

static me_peaks no_peaks(const me_tracker *t)
{
    const uint64_t pool = t->pool.read == NULL ? ME_BYTES_UNKNOWN : 0;
    return (me_peaks){.allocated = pool, .reserved = pool};
}

static me_seen_iteration *open_iteration(me_tracker *t)
{
    return t->open_peak == no_iteration ? NULL
                                        : &t->iterations[t->n_iterations - 1];
}

/**
 * End the span of time in which nothing but memory changed: count its peaks
 * for the phase, the iteration and the next point.
 */
static void close_span(me_tracker *t)
{
    me_pool_counter allocated = {ME_BYTES_UNKNOWN, ME_BYTES_UNKNOWN};
    me_pool_counter reserved = allocated;
    if (t->pool.read != NULL) {
        t->pool.read(t->pool.self, &allocated, &reserved);
        if (t->pool.reset_peaks != NULL) {
            t->pool.reset_peaks(t->pool.self);
        }
    }
    const me_peaks span = {.requested = t->span_requested,
                           .allocated = allocated.peak,
                           .reserved = reserved.peak};
    const me_peaks unknown = {.requested = span.requested,
                              .allocated = ME_BYTES_UNKNOWN,
                              .reserved = ME_BYTES_UNKNOWN};
    me_peaks_raise(&t->since_point, &span);
    t->reserved_ever = me_max_u64(t->reserved_ever, span.reserved);
    me_seen_iteration *iteration = open_iteration(t);
    if (iteration != NULL) {
        me_peaks_raise(&iteration->peaks, &span);
        me_peaks_raise(&iteration->phases[t->phase],
                       t->pool.reset_peaks == NULL ? &unknown : &span);
        iteration->has_phase[t->phase] = true;
    }
    me_course_raise(&t->course, &span);
    me_twin_span_close_span(&t->twin_span,
                            &(me_twin_peaks){.requested = span.requested,
                                             .allocated = span.allocated});
    t->span_requested = t->live.requested;
    t->now = (me_peaks){.requested = t->live.requested,
                        .allocated = allocated.current,
                        .reserved = reserved.current};
}

/** The level it begins at is the first peak of an iteration. */
static void reset_iteration(me_tracker *t, me_seen_iteration *seen,
                            int32_t iteration)
{
    me_free(seen->parts);
    *seen = (me_seen_iteration){.iteration = iteration,
                                .device_bytes = ME_BYTES_UNKNOWN,
                                .peaks = no_peaks(t)};
    seen->cause =
        (me_peak_cause){.microbatch = ME_NO_MICROBATCH, .phase = t->phase};
    for (unsigned i = 0; i < ME_PHASE_COUNT; i++) {
        seen->phases[i] = no_peaks(t);
    }
    t->open_peak = t->live.requested;
    t->twin_span.raised.iteration = 0;
    me_live_mark_peak(&t->live);
    if (iteration == ME_STEADY_ITERATION && !t->is_steady_over &&
        !t->has_totals) {
        me_module_stats_begin(&t->modules);
        me_course_begin(&t->course, &t->now);
    }
}

static void begin_iteration(me_tracker *t, int32_t iteration)
{
    me_tracker_close_iteration(t);
    me_quiet_forget(&t->quiet);
    if (t->n_iterations == t->iterations_capacity) {
        me_seen_iteration *grown =
            me_grow(t->iterations, t->n_iterations, &t->iterations_capacity,
                    sizeof *grown, "tracker.iterations");
        if (grown == NULL) {
            refuse(t, ME_ERR_NOMEM);
            return;
        }
        t->iterations = grown;
    }
    me_seen_iteration *seen = &t->iterations[t->n_iterations++];
    seen->parts = NULL;
    reset_iteration(t, seen, iteration);
}

/** Write down what was live at the peak. */
static void keep_parts(me_tracker *t, me_seen_iteration *seen)
{
    seen->parts =
        me_alloc(t->live.n_kinds, sizeof *seen->parts, "tracker.parts");
    if (seen->parts == NULL) {
        refuse(t, ME_ERR_NOMEM);
        return;
    }
    for (uint32_t i = 0; i < t->live.n_kinds; i++) {
        const me_live_kind *kind = &t->live.kinds[i];
        const me_peak_part part = {
            .op = kind->op,
            .module = kind->module,
            .category = kind->category,
            .is_shard = kind->is_shard,
            .bytes = me_live_peak_bytes(&t->live, kind),
            .blocks = me_live_peak_blocks(&t->live, kind),
        };
        if (part.blocks > 0) {
            seen->parts[seen->n_parts++] = part;
        }
    }
}

/** What the process has on the card at its most: what is outside of the pool only
 *  grows, and emptied caches had been there. */
static uint64_t most_device_bytes(const me_tracker *t)
{
    if (t->device.read_bytes == NULL) {
        return ME_BYTES_UNKNOWN;
    }
    const uint64_t now = t->device.read_bytes(t->device.self);
    if (t->pool.read == NULL || t->reserved_ever == ME_BYTES_UNKNOWN) {
        return now;
    }
    me_pool_counter allocated = {0, 0};
    me_pool_counter reserved = {0, 0};
    t->pool.read(t->pool.self, &allocated, &reserved);
    return t->reserved_ever > reserved.current
               ? now + (t->reserved_ever - reserved.current)
               : now;
}

void me_tracker_close_iteration(me_tracker *tracker)
{
    close_span(tracker);
    me_seen_iteration *seen = open_iteration(tracker);
    if (seen == NULL) {
        return;
    }
    seen->peak_requested = tracker->open_peak;
    me_twin_span_close_iteration(&tracker->twin_span, tracker->open_peak);
    seen->reserved_ever = tracker->reserved_ever;
    seen->device_bytes = most_device_bytes(tracker);
    keep_parts(tracker, seen);
    if (seen->iteration == ME_STEADY_ITERATION && !tracker->is_steady_over) {
        me_module_stats_end(&tracker->modules);
        me_course_end(&tracker->course, &tracker->now);
        tracker->is_steady_over = true;
    }
    tracker->open_peak = no_iteration;
}

static void add_point(me_tracker *t, const char *name)
{
    if (t->n_points == t->points_capacity) {
        me_point_result *grown =
            me_grow(t->points, t->n_points, &t->points_capacity, sizeof *grown,
                    "tracker.points");
        if (grown == NULL) {
            refuse(t, ME_ERR_NOMEM);
            return;
        }
        t->points = grown;
    }
    me_pool_counter allocated = {ME_BYTES_UNKNOWN, 0};
    me_pool_counter reserved = {ME_BYTES_UNKNOWN, 0};
    if (t->pool.read != NULL) {
        t->pool.read(t->pool.self, &allocated, &reserved);
    }
    t->points[t->n_points++] = (me_point_result){
        .name = name,
        .requested_bytes = t->live.requested,
        .requested_peak_bytes = t->since_point.requested,
        .allocated_bytes = allocated.current,
        .allocated_peak_bytes = t->since_point.allocated,
        .reserved_bytes = reserved.current,
        .reserved_peak_bytes = t->since_point.reserved,
        .device_bytes = t->device.read_bytes == NULL
                            ? ME_BYTES_UNKNOWN
                            : t->device.read_bytes(t->device.self),
    };
}

bool me_point_keeps_peaks(const char *name)
{
    return strncmp(name, "fwd", 3) == 0;
}

/**
 * A named moment. An iteration runs from its own "begin" point, where there is
 * one, to its "end"; an evaluation is one more. Points inside a forward do not
 * reset the peaks.
 */
static void on_point(me_tracker *t, const me_event *event)
{
    const char *name = event->name == NULL ? "" : event->name;
    const bool is_iteration = strncmp(name, "iter", 4) == 0;
    const bool is_evaluation = strcmp(name, "evaluated") == 0;
    close_span(t);
    add_point(t, name);
    if (!me_point_keeps_peaks(name)) {
        t->since_point = no_peaks(t);
        me_quiet_forget(&t->quiet);
    }
    if (is_iteration && me_ends_with(name, "_begin")) {
        me_seen_iteration *seen = open_iteration(t);
        if (seen != NULL && seen->iteration == event->iteration) {
            reset_iteration(t, seen, event->iteration);
        } else {
            begin_iteration(t, event->iteration);
        }
    } else if ((is_iteration && me_ends_with(name, "_end")) || is_evaluation) {
        me_tracker_close_iteration(t);
    }
}

static void on_alloc(me_tracker *t, const me_event *event)
{
    me_live_alloc(&t->live, event);
    const uint64_t requested = t->live.requested;
    if (requested > t->span_requested) {
        t->span_requested = requested;
    }
    if (requested > t->open_peak) {
        t->open_peak = requested;
        me_live_mark_peak(&t->live);
        t->iterations[t->n_iterations - 1].cause = (me_peak_cause){
            .op = event->op,
            .module = event->module,
            .microbatch = event->microbatch,
            .phase = event->phase,
            .is_shard = event->is_shard,
        };
    }
    me_live_block *block = me_live_find(&t->live, event->block);
    if (t->modules.is_on && block != NULL) {
        me_module_stats_alloc(&t->modules, event, block, requested);
    }
}

static void on_free_requested(me_tracker *t, const me_event *event)
{
    me_live_block *block = me_live_find(&t->live, event->block);
    if (block != NULL && block->epoch != 0) {
        const me_live_kind *kind = &t->live.kinds[block->kind];
        me_module_stats_free(&t->modules, kind->module, kind->category, block);
    }
}

static void on_recategorize(me_tracker *t, const me_event *event)
{
    const me_live_block *block = me_live_find(&t->live, event->block);
    if (block != NULL && block->epoch != 0) {
        const me_live_kind *kind = &t->live.kinds[block->kind];
        me_module_stats_recategorize(&t->modules, kind->module, kind->category,
                                     event->category, block);
    }
    me_live_recategorize(&t->live, event);
}

static void on_phase(me_tracker *t, const me_event *event)
{
    if (event->phase == t->phase || event->phase >= ME_PHASE_COUNT) {
        return;
    }
    close_span(t);
    me_module_stats_phase(&t->modules);
    t->phase = event->phase;
    me_course_phase(&t->course, (me_phase)event->phase, &t->now);
}

static void on_action(me_tracker *t, const me_event *event)
{
    if (!t->course.is_on) {
        return;
    }
    close_span(t);
    if (event->kind == ME_EVENT_ACTION_BEGIN) {
        me_course_action_begin(&t->course, event, &t->now);
    } else {
        me_course_action_end(&t->course, &t->now);
    }
}

static bool has_failed(const me_tracker *t)
{
    return t->status != ME_OK || t->live.status != ME_OK ||
           t->modules.status != ME_OK || t->quiet.status != ME_OK ||
           t->course.status != ME_OK;
}

static void follow(me_tracker *t, const me_event *event)
{
    switch (event->kind) {
    case ME_EVENT_ALLOC: on_alloc(t, event); break;
    case ME_EVENT_FREE_REQUESTED: on_free_requested(t, event); break;
    case ME_EVENT_FREE_COMPLETED: (void)me_live_free(&t->live, event); break;
    case ME_EVENT_RECATEGORIZE: on_recategorize(t, event); break;
    case ME_EVENT_MODULE_ENTER:
        me_module_stats_enter(&t->modules, event, t->live.requested);
        break;
    case ME_EVENT_MODULE_LEAVE:
        me_module_stats_leave(&t->modules, event);
        break;
    case ME_EVENT_ACTION_BEGIN:
    case ME_EVENT_ACTION_END: on_action(t, event); break;
    case ME_EVENT_PHASE: on_phase(t, event); break;
    case ME_EVENT_ITERATION: begin_iteration(t, event->iteration); break;
    case ME_EVENT_POINT: on_point(t, event); break;
    case ME_EVENT_COLLECTIVE: me_tracker_count_call(t, event); break;
    case ME_EVENT_EMPTY_CACHE: break; // blocks are what they were
    }
}

/** Requested bytes alone. */
static void follow_totals(me_tracker *t, const me_event *event)
{
    if (event->kind == ME_EVENT_ALLOC) {
        t->live.requested = me_size_add(t->live.requested, event->bytes);
        me_tracker_raise(t, t->live.requested);
    } else if (event->kind == ME_EVENT_FREE_COMPLETED) {
        t->live.requested -= event->bytes;
    } else if (event->kind == ME_EVENT_PHASE || event->kind == ME_EVENT_POINT ||
               event->kind == ME_EVENT_ITERATION) {
        follow(t, event);
    }
}

static void on_exchange(void *self, const me_exchange_event *exchange)
{
    me_tracker *t = self;
    if (!has_failed(t) && !t->has_totals) {
        me_tracker_count_exchange(t, exchange);
    }
}

static void on_event(void *self, const me_event *event)
{
    me_tracker *t = self;
    if (has_failed(t)) {
        return;
    }
    const bool ends_span = me_event_ends_span(event);
    const bool is_module = event->kind == ME_EVENT_MODULE_ENTER ||
                           event->kind == ME_EVENT_MODULE_LEAVE;
    if (t->has_totals) {
        if (t->quiet.is_on && ends_span) {
            me_quiet_enter_mark(&t->quiet, t);
        }
        follow_totals(t, event);
    } else if (t->quiet.is_on && ends_span) {
        me_quiet_enter_mark(&t->quiet, t);
        follow(t, event);
        me_quiet_leave_mark(&t->quiet, t);
    } else if (!t->quiet.is_on || !is_module) {
        follow(t, event);
    }
}

static uint32_t on_repeated(void *self, const me_repeated *action)
{
    me_tracker *t = self;
    return has_failed(t) ? UINT32_MAX : me_quiet_begin(&t->quiet, t, action);
}

static void on_repeated_end(void *self)
{
    me_tracker *t = self;
    me_quiet_end(&t->quiet, t);
}

me_tracker *me_tracker_create(const me_module_tree *tree,
                              const me_pool_counters *pool,
                              const me_device_counter *device)
{
    me_tracker *t = me_alloc(1, sizeof *t, "tracker");
    if (t == NULL) {
        return NULL;
    }
    t->tree = tree;
    t->pool = pool == NULL ? (me_pool_counters){0} : *pool;
    t->device = device == NULL ? (me_device_counter){0} : *device;
    t->phase = ME_PHASE_SETUP;
    t->open_peak = no_iteration;
    t->since_point = no_peaks(t);
    me_module_stats_init(&t->modules, tree);
    begin_iteration(t, ME_SETUP_ITERATION);
    return t;
}

void me_tracker_destroy(me_tracker *tracker)
{
    if (tracker == NULL) {
        return;
    }
    for (uint32_t i = 0; i < tracker->n_iterations; i++) {
        me_free(tracker->iterations[i].parts);
    }
    me_free(tracker->iterations);
    me_free(tracker->points);
    me_free(tracker->places);
    me_result_common_release(tracker->common);
    me_quiet_fini(&tracker->quiet);
    me_course_fini(&tracker->course);
    me_live_fini(&tracker->live);
    me_module_stats_fini(&tracker->modules);
    me_free(tracker);
}

void me_tracker_keep_course(me_tracker *tracker)
{
    tracker->course.keeps = true;
    tracker->course.live = &tracker->live;
}

me_observer me_tracker_observer(me_tracker *tracker)
{
    return (me_observer){.on_event = on_event,
                         .self = tracker,
                         .on_repeated = on_repeated,
                         .on_repeated_end = on_repeated_end,
                         .on_exchange = on_exchange,
                         .skips_echoes = true};
}

void me_tracker_keep_totals(me_tracker *tracker)
{
    tracker->has_totals = true;
}

void me_tracker_raise(me_tracker *tracker, uint64_t requested)
{
    tracker->span_requested = me_max_u64(tracker->span_requested, requested);
    tracker->open_peak = me_max_u64(tracker->open_peak, requested);
}

static me_twin_peaks open_peaks(const me_tracker *t)
{
    me_pool_counter allocated = {0, 0};
    me_pool_counter reserved = {0, 0};
    if (t->pool.read != NULL) {
        t->pool.read(t->pool.self, &allocated, &reserved);
    }
    return (me_twin_peaks){.requested = t->span_requested,
                           .allocated = allocated.peak,
                           .iteration = t->open_peak};
}

void me_tracker_begin_twin_span(me_tracker *tracker)
{
    const me_twin_peaks peaks = open_peaks(tracker);
    me_twin_span_begin(&tracker->twin_span, &peaks);
    if (tracker->modules.is_on && tracker->modules.n_frames > 0) {
        tracker->twin_span.has_peak = true; // a module's, maybe
    }
}

void me_tracker_end_twin_span(me_tracker *tracker)
{
    const me_twin_peaks peaks = open_peaks(tracker);
    me_twin_span_end(&tracker->twin_span, &peaks);
}

bool me_tracker_differs_from_twin(const me_tracker *tracker)
{
    return tracker->twin_span.has_peak;
}
