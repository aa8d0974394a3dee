/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensor/engine.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/size.h"
#include "tensor/engine_private.h"
#include "tensor/region.h"
#include "tensor/strand_tape.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/** What one rank's engine may take of the host's memory. */
static const uint64_t ARENA_CEILING_BYTES = UINT64_C(16) << 30;

me_status me_engine_create(const me_card *card, me_engine **engine_out)
{
    me_engine *e = me_alloc(1, sizeof *e, "engine");
    if (e == NULL) {
        return ME_ERR_NOMEM;
    }
    e->card = *card;
    e->strand = ME_STRANDS_ALL;
    e->iteration = -1;
    e->microbatch = ME_NO_MICROBATCH;
    e->context.category = ME_CATEGORY_OTHER;
    e->context.is_recording = true;
    e->none.refs = 1;
    e->arena = me_arena_create(ARENA_CEILING_BYTES, "engine.arena");
    if (e->arena == NULL || !me_modules_init(e)) {
        me_engine_destroy(e);
        return ME_ERR_NOMEM;
    }
    *engine_out = e;
    return ME_OK;
}

void me_engine_destroy(me_engine *e)
{
    if (e == NULL) {
        return;
    }
    me_modules_fini(e);
    me_regions_fini(e);
    me_tape_fini(&e->tape);
    me_autocast_fini(&e->autocast);
    me_free(e->variables.tensors);
    me_free(e->pending.storages);
    me_free(e->blocks.freed);
    me_free(e->blocks.holders);
    me_free(e->recording.events);
    me_free(e->recording.slots);
    me_free(e->recording.entered);
    me_free(e->recording.keepings);
    me_strand_tape_destroy(e->strand_tape);
    me_arena_destroy(e->arena);
    me_free(e);
}

void me_engine_observe(me_engine *e, me_observer observer)
{
    if (e->n_observers == ME_MAX_OBSERVERS) {
        me_engine_fail(e, ME_ERR_INTERNAL, "more than %d observers",
                       ME_MAX_OBSERVERS);
        return;
    }
    if (observer.kinds == 0) {
        observer.kinds = UINT32_MAX;
    }
    ME_ASSERT(e->strand > 0 || e->n_first_observers == e->n_observers);
    e->strand_of[e->n_observers] = e->strand;
    e->n_first_observers += e->strand <= 0 ? 1 : 0;
    e->observers[e->n_observers++] = observer;
}

void me_engine_mute(me_engine *e)
{
    me_strand_tell(e);
    e->n_observers = 0;
    e->n_first_observers = 0;
}

me_status me_engine_status(const me_engine *e, me_diag *diag)
{
    if (e->status != ME_OK && diag != NULL) {
        *diag = e->diag;
    }
    return e->status;
}

void me_engine_fail(me_engine *e, me_status status, const char *format, ...)
{
    if (e->status != ME_OK) {
        return;
    }
    char text[ME_DIAG_TEXT] = "";
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    e->status = me_fail(&e->diag, status, "%s", text);
}

void me_engine_locate(me_engine *e)
{
    const me_module_info *module = &e->tree.modules[e->module];
    char text[ME_DIAG_TEXT] = "";
    if (e->status != ME_ERR_CONFIG || e->diag.where[0] != '\0' ||
        module->where == NULL) {
        return;
    }
    (void)snprintf(text, sizeof text, "%s", e->diag.text);
    const bool is_named = strncmp(text, "module", strlen("module")) == 0;
    (void)me_fail_at(&e->diag, e->status, module->where, module->line,
                     is_named ? "%s%s" : "module %s: %s",
                     is_named ? "" : me_module_shown(e), text);
}

void me_engine_locate_option(me_engine *e, const char *option)
{
    char text[ME_DIAG_TEXT] = "";
    if (e->status == ME_ERR_CONFIG && e->diag.where[0] == '\0') {
        (void)snprintf(text, sizeof text, "%s", e->diag.text);
        (void)me_fail_at(&e->diag, e->status, option, 0, "%s", text);
    }
}

bool me_engine_is_ok(const me_engine *e)
{
    return e->status == ME_OK && !e->is_stopped;
}

void *me_engine_alloc(me_engine *e, size_t count, size_t size)
{
    void *piece = me_arena_alloc(e->arena, count, size);
    if (piece == NULL) {
        me_engine_fail(e, ME_ERR_NOMEM, "no host memory for the model");
    }
    return piece;
}

void *me_engine_grow(me_engine *e, void *items, uint32_t count,
                     uint32_t *capacity, size_t size, const char *name)
{
    void *larger = me_grow(items, count, capacity, size, name);
    if (larger == NULL) {
        me_engine_fail(e, ME_ERR_NOMEM, "no host memory for a list of the job");
    }
    return larger;
}

const me_module_tree *me_engine_modules(const me_engine *e)
{
    return &e->tree;
}

me_work me_engine_work(const me_engine *e, me_phase phase)
{
    return e->work[phase];
}

me_tensor **me_engine_workspace(me_engine *e)
{
    return &e->workspaces[e->context.thread][e->context.stream];
}

me_tensor **me_engine_lt_workspace(me_engine *e)
{
    return &e->lt_workspaces[e->context.thread][e->context.stream];
}

me_tensor **me_engine_global_buffer(me_engine *e, me_dtype dtype)
{
    return &e->global_buffers[dtype];
}

me_compiled *me_engine_compiled(me_engine *e, uint32_t kernel)
{
    ME_ASSERT(kernel < ME_MAX_COMPILED);
    return &e->compiled[kernel];
}

const me_card *me_engine_card(const me_engine *e)
{
    return &e->card;
}

/** The power of two that holds @p bytes, as its exponent. */
static uint32_t pinned_class(uint64_t bytes)
{
    uint32_t exponent = 0;
    while (exponent < ME_PINNED_CLASSES - 1 &&
           (UINT64_C(1) << exponent) < bytes) {
        exponent++;
    }
    return exponent;
}

void me_host_hold(me_engine *e, me_host_use use, uint64_t bytes, bool is_pinned)
{
    me_host_memory *host = &e->host;
    me_host_live *live = &e->host_live;
    live->bytes[use] = me_size_add(live->bytes[use], bytes);
    host->bytes[use] = me_max_u64(host->bytes[use], live->bytes[use]);
    if (is_pinned && bytes > 0) {
        const uint32_t class = pinned_class(bytes);
        if (live->n_free[class] > 0) {
            live->n_free[class]--;
        } else {
            host->pinned_bytes =
                me_size_add(host->pinned_bytes, UINT64_C(1) << class);
        }
    } else {
        live->pageable_bytes = me_size_add(live->pageable_bytes, bytes);
    }
    host->peak_bytes =
        me_max_u64(host->peak_bytes,
                   me_size_add(live->pageable_bytes, host->pinned_bytes));
}

void me_host_release(me_engine *e, me_host_use use, uint64_t bytes,
                     bool is_pinned)
{
    me_host_live *live = &e->host_live;
    live->bytes[use] -= me_min_u64(bytes, live->bytes[use]);
    if (is_pinned && bytes > 0) {
        live->n_free[pinned_class(bytes)]++;
    } else {
        live->pageable_bytes -= me_min_u64(bytes, live->pageable_bytes);
    }
}

const me_host_memory *me_engine_host(const me_engine *e)
{
    return &e->host;
}

void me_collect_later(me_engine *e,
                      void (*collect)(void *self, me_engine *engine),
                      void *self)
{
    e->collect = collect;
    e->collect_self = self;
}

void me_collect(me_engine *e)
{
    void (*collect)(void *self, me_engine *engine) = e->collect;
    e->collect = NULL;
    if (collect != NULL) {
        collect(e->collect_self, e);
    }
}

uint64_t me_engine_events(const me_engine *e)
{
    return e->n_events;
}

bool me_engine_skips_echoes(const me_engine *e)
{
    for (uint32_t i = 0; i < e->n_observers; i++) {
        if (!e->observers[i].skips_echoes) {
            return false;
        }
    }
    return true;
}

void me_engine_count_events(me_engine *e, uint64_t count)
{
    e->n_events += count;
}

/** Is an observer told now, and not later (strand_tape.h)? */
static bool hears(const me_engine *e, uint32_t observer)
{
    return e->strand == ME_STRANDS_ALL
               ? observer < e->n_first_observers
               : e->strand_of[observer] == e->strand ||
                     e->strand_of[observer] == ME_STRANDS_ALL;
}

/** Tell observers an event that is complete. */
static void deliver(me_engine *e, const me_event *event)
{
    e->n_events++;
    for (uint32_t i = 0; i < e->n_observers; i++) {
        const me_observer *o = &e->observers[i];
        if ((o->kinds & ME_EVENT_BIT(event->kind)) != 0 && hears(e, i)) {
            o->on_event(o->self, event);
        }
    }
    me_strand_keep_event(e, event);
}

void me_emit(me_engine *e, me_event *event)
{
    event->phase = (uint8_t)e->context.phase;
    event->iteration = e->iteration;
    event->microbatch = e->microbatch;
    if (event->kind != ME_EVENT_MODULE_ENTER &&
        event->kind != ME_EVENT_MODULE_LEAVE) {
        event->module = e->module;
    }
    if (e->recording.is_on) {
        me_record_event(e, event);
    }
    deliver(e, event);
}

bool me_engine_takes_exchange(const me_engine *e, me_group_kind group)
{
    bool takes = e->has_exchanged[group] && !e->recording.is_on;
    for (uint32_t i = 0; i < e->n_observers; i++) {
        const me_observer *o = &e->observers[i];
        takes = takes && ((o->kinds & ME_EVENT_BIT(ME_EVENT_COLLECTIVE)) == 0 ||
                          o->on_exchange != NULL);
    }
    return takes;
}

void me_engine_has_exchanged(me_engine *e, me_group_kind group)
{
    e->has_exchanged[group] = true;
}

void me_emit_exchange(me_engine *e, me_exchange_event *exchange)
{
    exchange->iteration = e->iteration;
    e->n_events += exchange->sent.calls + exchange->received.calls;
    for (uint32_t i = 0; i < e->n_observers; i++) {
        const me_observer *o = &e->observers[i];
        if ((o->kinds & ME_EVENT_BIT(ME_EVENT_COLLECTIVE)) != 0 &&
            hears(e, i)) {
            o->on_exchange(o->self, exchange);
        }
    }
    me_strand_keep_exchange(e, exchange);
}

void me_point(me_engine *e, const char *name)
{
    if (me_engine_is_ok(e)) {
        me_emit(e, &(me_event){.kind = ME_EVENT_POINT, .name = name});
    }
}

void me_empty_cache(me_engine *e)
{
    if (me_engine_is_ok(e)) {
        me_complete_pending(e);
        me_emit(e, &(me_event){.kind = ME_EVENT_EMPTY_CACHE});
    }
}

void me_iteration(me_engine *e, int32_t iteration)
{
    e->iteration = iteration;
    me_emit(e, &(me_event){.kind = ME_EVENT_ITERATION});
}

int32_t me_iteration_get(const me_engine *e)
{
    return e->iteration;
}

int32_t me_microbatch_get(const me_engine *e)
{
    return e->microbatch;
}

uint8_t me_pass_get(const me_engine *e)
{
    return e->pass;
}

uint8_t me_pass_set(me_engine *e, uint8_t pass)
{
    const uint8_t before = e->pass;
    e->pass = pass;
    return before;
}

void me_microbatch(me_engine *e, int32_t microbatch)
{
    e->microbatch = microbatch;
}

void me_action_begin(me_engine *e, const char *name, int32_t chunk)
{
    me_emit(e, &(me_event){.kind = ME_EVENT_ACTION_BEGIN,
                           .chunk = chunk,
                           .name = name});
}

void me_action_end(me_engine *e)
{
    me_emit(e, &(me_event){.kind = ME_EVENT_ACTION_END});
}

me_phase me_phase_set(me_engine *e, me_phase phase)
{
    const me_phase before = e->context.phase;
    if (phase != before) {
        e->context.phase = phase;
        me_emit(e, &(me_event){.kind = ME_EVENT_PHASE});
    }
    return before;
}

me_category me_category_set(me_engine *e, me_category category)
{
    const me_category before = e->context.category;
    e->context.category = category;
    return before;
}

bool me_drawn_set(me_engine *e, bool is_drawn)
{
    const bool before = e->context.is_drawn;
    e->context.is_drawn = is_drawn;
    return before;
}

uint8_t me_stream_set(me_engine *e, uint8_t stream)
{
    const uint8_t before = e->context.stream;
    e->context.stream = stream;
    return before;
}

void me_deterministic_set(me_engine *e, bool is_deterministic)
{
    e->is_deterministic = is_deterministic;
}

void me_compile_cache_set(me_engine *e, bool is_warm)
{
    e->is_compile_cache_warm = is_warm;
}

bool me_compile_cache_is_warm(const me_engine *e)
{
    return e->is_compile_cache_warm;
}

void me_compile_timing_note(me_engine *e, uint64_t bytes)
{
    e->timing_bytes = me_size_add(e->timing_bytes, bytes);
}

uint64_t me_compile_timing_bytes(const me_engine *e)
{
    return e->timing_bytes;
}

bool me_is_deterministic(const me_engine *e)
{
    return e->is_deterministic;
}

uint8_t me_mempool_set(me_engine *e, uint8_t mempool)
{
    const uint8_t before = e->context.mempool;
    e->context.mempool = mempool;
    return before;
}

bool me_grad_enable(me_engine *e, bool enable)
{
    const bool before = e->context.is_recording;
    e->context.is_recording = enable;
    return before;
}

const me_context *me_context_now(const me_engine *e)
{
    return &e->context;
}

void me_context_restore(me_engine *e, me_context before)
{
    me_phase_set(e, before.phase);
    e->context = before;
}

me_context me_context_recompute(me_engine *e)
{
    const me_context before = e->context;
    me_phase_set(e, ME_PHASE_RECOMPUTE);
    e->context.category = ME_CATEGORY_TEMPORARY;
    e->context.is_recording = true;
    return before;
}
