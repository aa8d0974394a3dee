/* SPDX-License-Identifier: BSD-3-Clause */
/* One observer of the engine tells all of the caller's. */
#include "api/private.h"
#include "app/simulate.h"
#include "base/alloc.h"
#include "base/event.h"
#include "tensor/module.h"

/** All of the caller's observers of one rank. */
typedef struct watch {
    memest_observer *observers; /**< as large as ours are; owned */
    size_t n_observers;
    const me_module_tree *tree; /**< the engine's */
    const char **parents;       /**< paths, for one event; owned */
    size_t max_parents;
    me_status status; /**< after a failure nobody is told any more */
} watch;

static memest_moment moment_of(const me_event *event)
{
    return (memest_moment){
        .phase = (memest_phase)event->phase,
        .iteration = event->iteration,
        .microbatch = event->microbatch,
        .module = event->module,
    };
}

/** The paths of the modules around one, outermost first. */
static size_t find_parents(watch *w, uint32_t module)
{
    const me_module_info *m = &w->tree->modules[module];
    const size_t n = m->depth == 0 ? 0 : m->depth - 1;
    if (n > w->max_parents) {
        const char **more =
            me_realloc(w->parents, n, sizeof *more, "api.parents");
        if (more == NULL) {
            w->status = ME_ERR_NOMEM;
            return 0;
        }
        w->parents = more;
        w->max_parents = n;
    }
    for (size_t i = n; i > 0; i--) {
        m = &w->tree->modules[m->parent];
        w->parents[i - 1] = m->path;
    }
    return n;
}

typedef void module_hook(void *self, const memest_module_event *event);
typedef void block_hook(void *self, const memest_block_event *event);
typedef void mark_hook(void *self, const memest_mark_event *event);

static bool is_forward(const me_event *event)
{
    return event->phase == ME_PHASE_FORWARD ||
           event->phase == ME_PHASE_RECOMPUTE;
}

static module_hook *module_hook_of(const memest_observer *o,
                                   const me_event *event)
{
    const bool enters = event->kind == ME_EVENT_MODULE_ENTER;
    if (is_forward(event)) {
        return enters ? o->pre_forward : o->post_forward;
    }
    if (event->phase == ME_PHASE_BACKWARD) {
        return enters ? o->pre_backward : o->post_backward;
    }
    return NULL;
}

static void tell_module(watch *w, const me_event *event)
{
    const me_module_info *m = &w->tree->modules[event->module];
    const memest_module_event told = {
        .struct_size = sizeof told,
        .at = moment_of(event),
        .module = event->module,
        .name = m->name,
        .path = m->path,
        .n_parents = find_parents(w, event->module),
        .parents = w->parents,
        .is_backward = event->phase != ME_PHASE_FORWARD,
    };
    for (size_t i = 0; w->status == ME_OK && i < w->n_observers; i++) {
        module_hook *hook = module_hook_of(&w->observers[i], event);
        if (hook != NULL) {
            hook(w->observers[i].self, &told);
        }
    }
}

static block_hook *block_hook_of(const memest_observer *o, me_event_kind kind)
{
    return kind == ME_EVENT_ALLOC            ? o->alloc
           : kind == ME_EVENT_FREE_REQUESTED ? o->free_requested
           : kind == ME_EVENT_FREE_COMPLETED ? o->free_completed
                                             : o->category_changed;
}

static void tell_block(const watch *w, const me_event *event)
{
    const bool changes = event->kind == ME_EVENT_RECATEGORIZE;
    const memest_block_event told = {
        .struct_size = sizeof told,
        .at = moment_of(event),
        .block = event->block,
        .stream = event->stream,
        .bytes = event->bytes,
        .category = (memest_category)event->category,
        .category_before =
            (memest_category)(changes ? event->old_category : event->category),
        .op = event->op,
        .path = w->tree->modules[event->module].path,
    };
    for (size_t i = 0; i < w->n_observers; i++) {
        block_hook *hook = block_hook_of(&w->observers[i], event->kind);
        if (hook != NULL) {
            hook(w->observers[i].self, &told);
        }
    }
}

static mark_hook *mark_hook_of(const memest_observer *o, me_event_kind kind)
{
    return kind == ME_EVENT_ITERATION      ? o->iteration_begin
           : kind == ME_EVENT_PHASE        ? o->phase_changed
           : kind == ME_EVENT_POINT        ? o->point
           : kind == ME_EVENT_COLLECTIVE   ? o->collective
           : kind == ME_EVENT_ACTION_BEGIN ? o->action_begin
                                           : o->action_end;
}

static memest_mark_event mark_of(const me_event *event)
{
    memest_mark_event told = {
        .struct_size = sizeof told,
        .at = moment_of(event),
        .name = event->name,
        .peer = -1,
    };
    if (event->kind == ME_EVENT_COLLECTIVE) {
        const bool is_pair = event->collective == ME_COLLECTIVE_SEND ||
                             event->collective == ME_COLLECTIVE_RECV;
        told.name = me_collective_name((me_collective)event->collective);
        told.group = me_group_kind_name((me_group_kind)event->group);
        told.dtype = me_dtype_name((me_dtype)event->dtype);
        told.count = event->count;
        told.peer = is_pair ? event->peer : -1;
    } else if (event->kind == ME_EVENT_PHASE) {
        told.name = me_phase_name((me_phase)event->phase);
    } else if (event->kind == ME_EVENT_ACTION_BEGIN ||
               event->kind == ME_EVENT_ACTION_END) {
        told.chunk = event->chunk;
    }
    return told;
}

static void tell_mark(const watch *w, const me_event *event)
{
    const memest_mark_event told = mark_of(event);
    for (size_t i = 0; i < w->n_observers; i++) {
        mark_hook *hook = mark_hook_of(&w->observers[i], event->kind);
        if (hook != NULL) {
            hook(w->observers[i].self, &told);
        }
    }
}

static void on_event(void *self, const me_event *event)
{
    watch *w = self;
    if (w->status != ME_OK) {
        return;
    }
    switch (event->kind) {
    case ME_EVENT_MODULE_ENTER:
    case ME_EVENT_MODULE_LEAVE: tell_module(w, event); break;
    case ME_EVENT_ALLOC:
    case ME_EVENT_FREE_REQUESTED:
    case ME_EVENT_FREE_COMPLETED:
    case ME_EVENT_RECATEGORIZE: tell_block(w, event); break;
    case ME_EVENT_ACTION_BEGIN:
    case ME_EVENT_ACTION_END:
    case ME_EVENT_PHASE:
    case ME_EVENT_ITERATION:
    case ME_EVENT_COLLECTIVE:
    case ME_EVENT_POINT: tell_mark(w, event); break;
    }
}

static me_status begin_watch(void *self, me_engine *e, me_diag *diag)
{
    (void)diag;
    watch *w = self;
    w->tree = me_engine_modules(e);
    me_engine_observe(e, (me_observer){.on_event = on_event, .self = w});
    return ME_OK;
}

static me_status end_watch(void *self, me_diag *diag)
{
    const watch *w = self;
    return w->status == ME_OK
               ? ME_OK
               : me_fail(diag, w->status, "no host memory for an event");
}

static me_status run_rank(watch *w, const me_run *run, int32_t rank,
                          me_diag *diag)
{
    const int32_t world = me_run_config(run)->parallel.world_size;
    if (rank < 0 || rank >= world) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "rank %d: the job has ranks 0 to %d", rank, world - 1);
    }
    const me_watcher watcher = {
        .begin = begin_watch, .end = end_watch, .self = w};
    return me_simulate_watched(me_run_plan(run), me_run_card(run), rank,
                               &watcher, diag);
}

static me_status watch_init(watch *w, const memest_observer *const *observers,
                            size_t n_observers, me_diag *diag)
{
    *w = (watch){.n_observers = n_observers};
    w->observers = me_alloc(n_observers, sizeof *w->observers, "api.observers");
    if (w->observers == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for observers");
    }
    for (size_t i = 0; i < n_observers; i++) {
        if (!me_api_read(observers[i], &w->observers[i],
                         sizeof w->observers[i])) {
            return me_fail(diag, ME_ERR_CONFIG,
                           "struct_size of observer %zu is too small: begin "
                           "with MEMEST_INIT(memest_observer)",
                           i);
        }
    }
    return ME_OK;
}

memest_status memest_observe(const memest_job *job, int32_t rank,
                             const memest_observer *const *observers,
                             size_t n_observers, memest_error *error)
{
    const me_run_options options = {.strict = false};
    me_diag *diag = me_api_diag(error);
    watch w;
    me_api_run run = {.run = NULL};
    me_status status = watch_init(&w, observers, n_observers, diag);
    if (status == ME_OK) {
        status = me_api_plan(job, &options, diag, &run);
    }
    if (status == ME_OK) {
        status = run_rank(&w, run.run, rank, diag);
    }
    me_api_run_fini(&run);
    me_free(w.parents);
    me_free(w.observers);
    return me_api_status(status);
}
