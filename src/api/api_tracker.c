/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/api_tracker.h"

#include "api/api_watch.h"
#include "base/alloc.h"

/** The public numbers are the internal ones. */
_Static_assert((int)MEMEST_TOOL_MEM == (int)ME_TOOL_MEM &&
                   (int)MEMEST_TOOL_FSDP2 == (int)ME_TOOL_FSDP2 &&
                   (int)MEMEST_TOOL_MOD == (int)ME_TOOL_MOD &&
                   (int)MEMEST_TOOL_MEMORY == (int)ME_TOOL_MEMORY &&
                   (int)MEMEST_TOOL_RUNTIME == (int)ME_TOOL_RUNTIME &&
                   (int)MEMEST_TOOL_SAC == (int)ME_TOOL_SAC &&
                   (int)MEMEST_TOOL_ILP == (int)ME_TOOL_ILP &&
                   (int)MEMEST_TOOL_COMM == (int)ME_TOOL_COMM &&
                   (int)MEMEST_PLACE_GPU == (int)ME_MEM_CUDA &&
                   (int)MEMEST_PLACE_HOST == (int)ME_MEM_CPU,
               "numbered alike");
_Static_assert((int)ME_MEM_MAX_CATEGORIES <= MEMEST_MAX_TRACKED_CATEGORIES,
               "a snapshot has room for all categories");

memest_status memest_tracker_create(const memest_tracker_options *options,
                                    memest_tracker **tracker_out,
                                    memest_error *error)
{
    me_diag *diag = me_api_diag(error);
    memest_tracker_options asked;
    if (!me_api_read(options, &asked, sizeof asked)) {
        return me_api_status(
            me_fail(diag, ME_ERR_CONFIG,
                    "struct_size of the options is too small: begin with "
                    "MEMEST_INIT(memest_tracker_options)"));
    }
    if ((unsigned)asked.tool > MEMEST_TOOL_COMM || asked.iteration < 0) {
        return me_api_status(
            me_fail(diag, ME_ERR_CONFIG,
                    "no such tool or iteration: %d, %d; both count from 0",
                    (int)asked.tool, (int)asked.iteration));
    }
    memest_tracker *t = me_alloc(1, sizeof *t, "api.tracker");
    if (t == NULL) {
        return me_api_status(
            me_fail(diag, ME_ERR_NOMEM, "no host memory for a tracker"));
    }
    t->tool.options = (me_tool_options){
        .kind = (me_tool_kind)asked.tool,
        .as_memtracker = asked.as_memtracker,
        .is_input_inside = asked.input_inside,
        .keeps_all = asked.keep_modules,
        .budget = asked.budget > 0 ? asked.budget : -1,
        .shards = asked.shards,
        .iteration = asked.iteration,
    };
    *tracker_out = t;
    return MEMEST_OK;
}

/** Forget the run before. */
static void clear(memest_tracker *t)
{
    me_api_series_fini(&t->series);
    t->has_series = false;
    me_tool_fini(&t->tool);
}

void memest_tracker_destroy(memest_tracker *tracker)
{
    if (tracker != NULL) {
        clear(tracker);
        me_free(tracker);
    }
}

static me_status check_job(const memest_tracker *t, const me_run *run,
                           int32_t rank, me_diag *diag)
{
    if (t->is_running) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "the tracker is running: a hook cannot start it again");
    }
    return rank < 0 ? me_fail(diag, ME_ERR_CONFIG,
                              "rank %d: ranks count from 0", (int)rank)
                    : me_tool_check(&t->tool.options, me_run_config(run), rank,
                                    diag);
}

static me_status run_tool(memest_tracker *t, const me_run *run, int32_t rank,
                          const memest_observer *const *observers,
                          size_t n_observers, me_diag *diag)
{
    clear(t);
    t->is_running = true;
    me_status status =
        me_api_watch(run, rank, &t->tool, observers, n_observers, diag);
    t->is_running = false;
    t->tool.engine = NULL;
    if (t->tool.memory != NULL) {
        const me_status shown = me_api_series_init(
            &t->series, me_memory_tracker_series(t->tool.memory),
            status == ME_OK ? diag : NULL);
        t->has_series = shown == ME_OK;
        status = status == ME_OK ? shown : status;
    }
    return status;
}

memest_status memest_track(const memest_job *job, int32_t rank,
                           memest_tracker *tracker,
                           const memest_observer *const *observers,
                           size_t n_observers, memest_error *error)
{
    const me_run_options options = {.strict = false};
    me_diag *diag = me_api_diag(error);
    const uint64_t lost = me_alloc_lost();
    me_api_run run = {.run = NULL};
    me_status status = me_api_plan(job, &options, diag, &run);
    if (status == ME_OK) {
        status = check_job(tracker, run.run, rank, diag);
    }
    if (status == ME_OK) {
        status = run_tool(tracker, run.run, rank, observers, n_observers, diag);
    }
    me_api_run_fini(&run);
    return me_api_status(me_alloc_check(lost, status, diag));
}

static bool is_place(memest_place place)
{
    return (unsigned)place < ME_MEM_DEVICES;
}

static bool keeps_snapshots(const memest_tracker *t)
{
    return t->tool.options.kind == ME_TOOL_MEM ||
           t->tool.options.kind == ME_TOOL_FSDP2;
}

memest_status memest_tracker_track_external(memest_tracker *tracker,
                                            memest_place place, uint64_t bytes,
                                            memest_error *error)
{
    if (!is_place(place) || !keeps_snapshots(tracker)) {
        return me_api_status(
            me_fail(me_api_diag(error), ME_ERR_CONFIG,
                    "external memory: MemTracker and FSDPMemTracker track it, "
                    "on the GPU or the host"));
    }
    uint64_t *external = &tracker->tool.options.external[place];
    const uint64_t more = me_mem_external_bytes((int)place, bytes);
    if (more < bytes || *external > UINT64_MAX / 2 || more > UINT64_MAX / 2) {
        return me_api_status(me_fail(me_api_diag(error), ME_ERR_OVERFLOW,
                                     "external memory exceeds 63 bits"));
    }
    *external += more;
    if (tracker->is_running) {
        me_mem_tracker_add_external(tracker->tool.mem, (int)place, more);
    }
    return MEMEST_OK;
}

memest_status memest_tracker_release_external(memest_tracker *tracker,
                                              memest_place place,
                                              uint64_t bytes,
                                              memest_error *error)
{
    const uint64_t less =
        is_place(place) ? me_mem_external_bytes((int)place, bytes) : 0;
    if (!is_place(place) || !keeps_snapshots(tracker) || less < bytes ||
        less > tracker->tool.options.external[place]) {
        return me_api_status(me_fail(me_api_diag(error), ME_ERR_CONFIG,
                                     "external memory: there are no %llu bytes "
                                     "of it to release",
                                     (unsigned long long)bytes));
    }
    tracker->tool.options.external[place] -= less;
    if (tracker->is_running) {
        me_mem_tracker_drop_external(tracker->tool.mem, (int)place, less);
    }
    return MEMEST_OK;
}

void memest_tracker_reset_modules(memest_tracker *tracker)
{
    if (tracker->tool.mem != NULL) {
        me_mem_tracker_reset_modules(tracker->tool.mem);
    }
}

const char *memest_tracker_parent(const memest_tracker *tracker, size_t index)
{
    return tracker->is_running && tracker->tool.mod != NULL &&
                   index < UINT32_MAX
               ? me_mod_tracker_parent(tracker->tool.mod, (uint32_t)index)
               : NULL;
}

const memest_series *memest_tracker_series(const memest_tracker *tracker)
{
    return tracker->has_series ? &tracker->series : NULL;
}

/** Is there anything to show? */
static bool has_run(const me_tool *tool)
{
    return tool->mem != NULL || tool->memory != NULL || tool->runtime != NULL ||
           tool->sac != NULL || tool->comm != NULL ||
           (tool->mod != NULL && tool->options.kind == ME_TOOL_MOD);
}

static me_status read_style(const memest_tracker *t,
                            const memest_track_style *style, me_diag *diag,
                            me_tool_format *format_out)
{
    static const char *const names[] = {
        [MEMEST_TRACK_TEXT] = "text",
        [MEMEST_TRACK_JSON] = "json",
        [MEMEST_TRACK_HTML] = "html",
    };
    memest_track_style asked;
    if (!me_api_read(style, &asked, sizeof asked)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "struct_size of the style is too small: begin with "
                       "MEMEST_INIT(memest_track_style)");
    }
    if ((unsigned)asked.format >= sizeof names / sizeof names[0]) {
        return me_fail(diag, ME_ERR_CONFIG, "no such format of a tracker: %d",
                       (int)asked.format);
    }
    *format_out = (me_tool_format){
        .name = names[asked.format],
        .mem.depth = asked.depth == 0 ? ME_TOOL_DEPTH : asked.depth,
        .mem.tabulates = asked.tabulate,
        .top = asked.top == 0 ? ME_TOOL_TOP : asked.top,
    };
    const me_status status =
        me_tool_check_format(t->tool.options.kind, names[asked.format], diag);
    return status == ME_OK
               ? me_mem_units_find(asked.units == NULL ? "B" : asked.units,
                                   diag, &format_out->mem)
               : status;
}

memest_status memest_tracker_text(const memest_tracker *tracker,
                                  const memest_track_style *style,
                                  char **text_out, memest_error *error)
{
    me_diag *diag = me_api_diag(error);
    const uint64_t lost = me_alloc_lost();
    me_tool_format format;
    me_str text = {0};
    me_status status = read_style(tracker, style, diag, &format);
    if (status == ME_OK && !has_run(&tracker->tool)) {
        status = me_fail(diag, ME_ERR_CONFIG,
                         "the tracker has not run: memest_track() runs it");
    }
    if (status == ME_OK) {
        status = me_tool_append(&tracker->tool, &format, diag, &text);
    }
    return me_api_text(me_alloc_check(lost, status, diag), &text, diag,
                       text_out, NULL);
}
