/* SPDX-License-Identifier: BSD-3-Clause */
/* One observer of the engine tells all of the caller's. */
#include "api/api_watch.h"

#include "base/alloc.h"
#include "config/framework.h"
#include "model/event.h"
#include "run/simulate.h"
#include "tensor/module.h"
#include "track/mod_tracker.h"

/** All of the caller's observers of one rank. */
typedef struct watch {
    memest_observer *observers; /**< as large as ours are; owned */
    size_t n_observers;
    const me_run *run;
    me_tool *tool;              /**< a tool that listens as well, or NULL */
    me_engine *engine;          /**< while it runs */
    const me_module_tree *tree; /**< the engine's */
    me_mod_tracker *own;        /**< of plain PyTorch, whose module hooks are
                              ModTracker's, unless the tool has one; owned */
    bool has_hooks;
    bool is_over;         /**< after a failure nobody is told any more */
    const char **parents; /**< paths, for one event; owned */
    size_t max_parents;
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
            w->is_over = true;
            me_engine_fail(w->engine, ME_ERR_NOMEM,
                           "no host memory for an event");
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

typedef int module_hook(void *self, const memest_module_event *event);
typedef int block_hook(void *self, const memest_block_event *event);
typedef int mark_hook(void *self, const memest_mark_event *event);

/** A hook has returned: the run goes on, or it ends here. */
static void heed(watch *w, size_t observer, const char *hook, int code,
                 const memest_moment *at)
{
    if (code == 0) {
        return;
    }
    const char *path = w->tree->modules[at->module].path;
    w->is_over = true;
    me_engine_fail(w->engine, ME_ERR_STOPPED,
                   "observer %zu stopped the run: its hook %s returned %d in "
                   "iteration %d, %s%s%s",
                   observer, hook, code, (int)at->iteration,
                   me_phase_name((me_phase)at->phase),
                   path[0] == '\0' ? "" : ", ", path);
}

static const char *const module_hooks[] = {
    [ME_MOD_PRE_FORWARD] = "pre_forward",
    [ME_MOD_POST_FORWARD] = "post_forward",
    [ME_MOD_PRE_BACKWARD] = "pre_backward",
    [ME_MOD_POST_BACKWARD] = "post_backward",
};

static const char *const event_hooks[] = {
    [ME_EVENT_ALLOC] = "alloc",
    [ME_EVENT_FREE_REQUESTED] = "free_requested",
    [ME_EVENT_FREE_COMPLETED] = "free_completed",
    [ME_EVENT_RECATEGORIZE] = "category_changed",
    [ME_EVENT_ITERATION] = "iteration_begin",
    [ME_EVENT_PHASE] = "phase_changed",
    [ME_EVENT_POINT] = "point",
    [ME_EVENT_COLLECTIVE] = "collective",
    [ME_EVENT_ACTION_BEGIN] = "action_begin",
    [ME_EVENT_ACTION_END] = "action_end",
};

static bool is_forward(const me_event *event)
{
    return event->phase == ME_PHASE_FORWARD ||
           event->phase == ME_PHASE_RECOMPUTE;
}

static module_hook *module_hook_of(const memest_observer *o,
                                   me_mod_event_kind kind)
{
    return kind == ME_MOD_PRE_FORWARD    ? o->pre_forward
           : kind == ME_MOD_POST_FORWARD ? o->post_forward
           : kind == ME_MOD_PRE_BACKWARD ? o->pre_backward
                                         : o->post_backward;
}

/** @param of  what ModTracker says; NULL: there is none */
static void tell_module(watch *w, me_mod_event_kind kind, memest_moment at,
                        bool is_backward, const me_mod_event *of)
{
    const me_module_info *m = &w->tree->modules[at.module];
    const size_t n_parents = find_parents(w, at.module); // may move them
    const memest_module_event told = {
        .struct_size = sizeof told,
        .at = at,
        .module = at.module,
        .name = m->name,
        .path = m->path,
        .n_parents = n_parents,
        .parents = w->parents,
        .is_backward = is_backward,
        .is_parent = of != NULL && of->is_parent,
        .fqn = of == NULL ? NULL : of->fqn,
    };
    for (size_t i = 0; !w->is_over && i < w->n_observers; i++) {
        module_hook *hook = module_hook_of(&w->observers[i], kind);
        if (hook != NULL) {
            heed(w, i, module_hooks[kind], hook(w->observers[i].self, &told),
                 &told.at);
        }
    }
}

/** A hook of PyTorch's has fired. */
static void on_module(void *self, const me_mod_event *event)
{
    watch *w = self;
    const memest_moment at = {
        .phase = (memest_phase)me_context_now(w->engine)->phase,
        .iteration = me_iteration_get(w->engine),
        .microbatch = me_microbatch_get(w->engine),
        .module = event->module,
    };
    if (!w->is_over) {
        tell_module(w, event->kind, at, event->is_backward, event);
    }
}

/** Operations of a module begin or end. */
static void tell_operations(watch *w, const me_event *event)
{
    const bool enters = event->kind == ME_EVENT_MODULE_ENTER;
    if (is_forward(event)) {
        tell_module(w, enters ? ME_MOD_PRE_FORWARD : ME_MOD_POST_FORWARD,
                    moment_of(event), event->phase != ME_PHASE_FORWARD, NULL);
    } else if (event->phase == ME_PHASE_BACKWARD) {
        tell_module(w, enters ? ME_MOD_PRE_BACKWARD : ME_MOD_POST_BACKWARD,
                    moment_of(event), true, NULL);
    }
}

static block_hook *block_hook_of(const memest_observer *o, me_event_kind kind)
{
    return kind == ME_EVENT_ALLOC            ? o->alloc
           : kind == ME_EVENT_FREE_REQUESTED ? o->free_requested
           : kind == ME_EVENT_FREE_COMPLETED ? o->free_completed
                                             : o->category_changed;
}

static void tell_block(watch *w, const me_event *event)
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
    for (size_t i = 0; !w->is_over && i < w->n_observers; i++) {
        block_hook *hook = block_hook_of(&w->observers[i], event->kind);
        if (hook != NULL) {
            heed(w, i, event_hooks[event->kind],
                 hook(w->observers[i].self, &told), &told.at);
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

static void tell_mark(watch *w, const me_event *event)
{
    const memest_mark_event told = mark_of(event);
    for (size_t i = 0; !w->is_over && i < w->n_observers; i++) {
        mark_hook *hook = mark_hook_of(&w->observers[i], event->kind);
        if (hook != NULL) {
            heed(w, i, event_hooks[event->kind],
                 hook(w->observers[i].self, &told), &told.at);
        }
    }
}

static void on_event(void *self, const me_event *event)
{
    watch *w = self;
    if (w->is_over) {
        return;
    }
    switch (event->kind) {
    case ME_EVENT_MODULE_ENTER:
    case ME_EVENT_MODULE_LEAVE:
        if (!w->has_hooks) {
            tell_operations(w, event);
        }
        break;
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
    case ME_EVENT_EMPTY_CACHE: break; // no hook is told of it
    }
}

/** The tool first, so that hooks see what it has seen. */
static me_status begin_watch(void *self, me_engine *e, me_diag *diag)
{
    watch *w = self;
    w->engine = e;
    w->tree = me_engine_modules(e);
    const me_status status =
        w->tool == NULL ? ME_OK : me_tool_begin(w->tool, w->run, e, diag);
    if (status != ME_OK || w->n_observers == 0) {
        return status;
    }
    me_engine_observe(e, (me_observer){.on_event = on_event, .self = w});
    if (!w->has_hooks) {
        return ME_OK;
    }
    me_mod_tracker *mod = w->tool == NULL ? NULL : w->tool->mod;
    if (mod == NULL) {
        mod = me_mod_tracker_create(e);
        w->own = mod;
    }
    if (mod == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for ModTracker");
    }
    me_mod_tracker_observe(mod,
                           (me_mod_observer){.on_event = on_module, .self = w});
    return ME_OK;
}

static me_status end_watch(void *self, me_diag *diag)
{
    (void)self;
    (void)diag;
    return ME_OK;
}

static me_status watch_init(watch *w, const memest_observer *const *observers,
                            size_t n_observers, me_diag *diag)
{
    w->n_observers = n_observers;
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

me_status me_api_watch(const me_run *run, int32_t rank, me_tool *tool,
                       const memest_observer *const *observers,
                       size_t n_observers, me_diag *diag)
{
    watch w = {
        .run = run,
        .tool = tool,
        .has_hooks =
            me_framework_traits_of(me_run_config(run))->has_module_hooks};
    me_status status = watch_init(&w, observers, n_observers, diag);
    if (status == ME_OK) {
        const me_watcher watcher = {
            .begin = begin_watch, .end = end_watch, .self = &w};
        status = me_simulate_watched(me_run_plan(run), me_run_card(run), rank,
                                     &watcher, diag);
    }
    me_mod_tracker_destroy(w.own);
    me_free(w.parents);
    me_free(w.observers);
    return status;
}
