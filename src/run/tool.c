/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/tool.h"

#include "config/framework.h"
#include "report/comm.h"
#include "report/op_series_report.h"
#include "run/tool_rows.h"

#include <string.h>

static const char *const kind_names[] = {
    [ME_MOD_PRE_FORWARD] = "pre_fw",
    [ME_MOD_POST_FORWARD] = "post_fw",
    [ME_MOD_PRE_BACKWARD] = "pre_bw",
    [ME_MOD_POST_BACKWARD] = "post_bw",
};

/** A line an event: what, of which module, and who runs then. */
static void on_module(void *self, const me_mod_event *event)
{
    me_tool *t = self;
    if (me_iteration_get(t->engine) != t->options.iteration) {
        return;
    }
    me_str_printf(&t->hooks, "%s\t%s\t%d\t%d\t", kind_names[event->kind],
                  event->fqn, event->is_parent, event->is_backward);
    const char *name = NULL;
    for (uint32_t i = 0; (name = me_mod_tracker_parent(t->mod, i)) != NULL;
         i++) {
        me_str_printf(&t->hooks, "%s%s", i == 0 ? "" : ",", name);
    }
    me_str_append(&t->hooks, "\n");
}

static me_status begin_mod(me_tool *t, const me_run *run, me_engine *e,
                           me_diag *diag)
{
    (void)run;
    (void)e;
    (void)diag;
    me_str_append(&t->hooks,
                  "event\tmodule\tis_parent\tis_backward\tparents\n");
    me_mod_tracker_observe(t->mod,
                           (me_mod_observer){.on_event = on_module, .self = t});
    return ME_OK;
}

static me_status begin_mem(me_tool *t, const me_run *run, me_engine *e,
                           me_diag *diag)
{
    (void)run;
    const me_mem_options options = {
        .is_fsdp = t->options.kind == ME_TOOL_FSDP2,
        .as_memtracker = t->options.as_memtracker,
        .is_input_inside = t->options.is_input_inside,
        .keeps_all = t->options.keeps_all,
        .iteration = t->options.iteration,
    };
    t->mem = me_mem_tracker_create(e, t->mod, &options);
    if (t->mem == NULL) {
        return me_fail(diag, ME_ERR_NOMEM,
                       "no host memory for the memory tracker");
    }
    for (int d = 0; d < ME_MEM_DEVICES; d++) {
        me_mem_tracker_add_external(t->mem, d, t->options.external[d]);
    }
    return ME_OK;
}

static void read_pool(void *self, me_op_memory *memory_out)
{
    const me_pool *pool = me_pool_observer_pool(self);
    *memory_out = (me_op_memory){
        .allocated = me_pool_current(pool, ME_POOL_ALLOCATED_BYTES),
        .active = me_pool_current(pool, ME_POOL_ACTIVE_BYTES),
        .reserved = me_pool_current(pool, ME_POOL_RESERVED_BYTES),
    };
}

static me_status begin_memory(me_tool *t, const me_run *run, me_engine *e,
                              me_diag *diag)
{
    me_pool_options options = {.limit_bytes = 0};
    me_status status =
        me_job_alloc_conf(me_run_config(run), diag, &options.conf);
    if (status != ME_OK) {
        return status;
    }
    status = me_pool_observer_create(&options, &t->pool);
    if (status != ME_OK) {
        return me_fail(diag, status, "no host memory for the allocator");
    }
    me_engine_observe(e, me_pool_observer_handle(t->pool));
    const me_op_counters counters = {.read = read_pool, .self = t->pool};
    t->memory = me_memory_tracker_create(e, ME_NO_MODULE, t->options.iteration,
                                         &counters, t->options.as_memtracker);
    return t->memory == NULL
               ? me_fail(diag, ME_ERR_NOMEM, "no host memory for MemoryTracker")
               : ME_OK;
}

static me_status begin_comm(me_tool *t, const me_run *run, me_engine *e,
                            me_diag *diag)
{
    (void)run;
    t->comm = me_comm_tracker_create(e, t->options.iteration);
    return t->comm == NULL
               ? me_fail(diag, ME_ERR_NOMEM, "no host memory for collectives")
               : ME_OK;
}

static void append_points(const me_tool *t, const me_mem_format *format,
                          me_str *text)
{
    uint32_t count = 0;
    const me_mem_point *points = me_mem_tracker_points(t->mem, &count);
    for (uint32_t i = 0; i < count; i++) {
        me_str_printf(text, "Point:  %s\n", points[i].name);
        me_mem_snapshot_append(text, t->mem, &points[i].snapshot, format);
        me_str_append(text, "\n");
    }
    me_str_append(text, "Peak\n");
    me_mem_snapshot_append(text, t->mem, me_mem_tracker_peak(t->mem), format);
    me_str_append(text, "\n");
}

/** Printing fails for want of memory alone, unless it has said why. */
static me_status say_memory(me_status status, me_diag *diag)
{
    return status == ME_ERR_NOMEM
               ? me_fail(diag, status, "no host memory for the text")
               : status;
}

static me_status append_series(const me_op_series *series,
                               const me_tool_format *format, me_diag *diag,
                               me_str *text)
{
    if (strcmp(format->name, "json") == 0) {
        return me_op_series_save(text, series);
    }
    return strcmp(format->name, "html") == 0
               ? me_op_series_html(text, series, format->top, diag)
               : me_op_series_summary(text, series, format->top);
}

me_status me_tool_append_series(const me_op_series *series,
                                const me_tool_format *format, me_diag *diag,
                                me_str *text)
{
    return say_memory(append_series(series, format, diag, text), diag);
}

static me_status append_mem(const me_tool *t, const me_tool_format *format,
                            me_diag *diag, me_str *text)
{
    (void)diag;
    if (strcmp(format->name, "json") == 0) {
        return me_mem_json_append(text, t->mem, format->mem.depth);
    }
    append_points(t, &format->mem, text);
    return me_mem_modules_append(text, t->mem, &format->mem);
}

static me_status append_memory(const me_tool *t, const me_tool_format *format,
                               me_diag *diag, me_str *text)
{
    const me_status status = me_pool_observer_status(t->pool, diag);
    return status == ME_OK ? append_series(me_memory_tracker_series(t->memory),
                                           format, diag, text)
                           : status;
}

static me_status append_mod(const me_tool *t, const me_tool_format *format,
                            me_diag *diag, me_str *text)
{
    (void)format;
    (void)diag;
    me_str_append(text, me_str_text(&t->hooks));
    return me_str_status(&t->hooks);
}

static me_status append_comm(const me_tool *t, const me_tool_format *format,
                             me_diag *diag, me_str *text)
{
    (void)diag;
    return strcmp(format->name, "json") == 0
               ? me_comm_json_append(text, t->comm)
               : me_comm_text_append(text, t->comm);
}

/** A tool of PyTorch's. */
typedef struct tool_row {
    const char *name;
    const char *formats; /**< with a space around each */
    me_status (*begin)(me_tool *t, const me_run *run, me_engine *e,
                       me_diag *diag);
    me_status (*append)(const me_tool *t, const me_tool_format *format,
                        me_diag *diag, me_str *text);
} tool_row;

static const tool_row tools[] = {
    [ME_TOOL_MEM] = {"mem", " text json ", begin_mem, append_mem},
    [ME_TOOL_FSDP2] = {"fsdp2", " text json ", begin_mem, append_mem},
    [ME_TOOL_MOD] = {"mod", " text ", begin_mod, append_mod},
    [ME_TOOL_MEMORY] = {"memory", " text json html ", begin_memory,
                        append_memory},
    [ME_TOOL_RUNTIME] = {"runtime", " text json ", me_tool_begin_runtime,
                         me_tool_append_runtime},
    [ME_TOOL_SAC] = {"sac", " text json ", me_tool_begin_sac,
                     me_tool_append_sac},
    [ME_TOOL_ILP] = {"ilp", " text json ", me_tool_begin_ilp,
                     me_tool_append_ilp},
    [ME_TOOL_COMM] = {"comm", " text json ", begin_comm, append_comm},
};

me_status me_tool_find(const char *name, me_diag *diag, me_tool_kind *kind_out)
{
    for (size_t i = 0; i < sizeof tools / sizeof tools[0]; i++) {
        if (strcmp(tools[i].name, name) == 0) {
            *kind_out = (me_tool_kind)i;
            return ME_OK;
        }
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "--tool %s: mem, fsdp2, mod, memory, runtime, sac, ilp and "
                   "comm are tools",
                   name);
}

me_status me_tool_check_format(me_tool_kind kind, const char *format,
                               me_diag *diag)
{
    const tool_row *tool = &tools[kind];
    return strchr(format, ' ') == NULL && strstr(tool->formats, format) != NULL
               ? ME_OK
               : me_fail(diag, ME_ERR_CONFIG,
                         "--format %s: --tool %s knows%.*s", format, tool->name,
                         (int)strlen(tool->formats) - 1, tool->formats);
}

/** An option with which it is not known what the tools say; NULL: none. */
static const char *unknown_option(const me_torch_options *t)
{
    return t->gradient_as_bucket_view  ? "torch.gradient_as_bucket_view"
           : !t->zero_grad_set_to_none ? "torch.zero_grad_set_to_none = false"
           : t->cpu_offload            ? "torch.cpu_offload"
                                       : NULL;
}

me_status me_tool_check(const me_tool_options *options, const me_config *config,
                        int32_t rank, me_diag *diag)
{
    if (!me_framework_traits_of(config)->has_module_hooks) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "memest track: the job must be one of framework = "
                       "\"torch\", whose modules PyTorch's tools see");
    }
    if (options->kind == ME_TOOL_FSDP2 &&
        config->torch.data_parallel != ME_DATA_PARALLEL_FULLY_SHARD) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--tool fsdp2: the job's torch.data_parallel must be "
                       "fully_shard");
    }
    if (options->kind == ME_TOOL_MEMORY && config->parallel.pipeline > 1) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--tool memory: it watches one module, and the ranks of "
                       "a pipeline have several");
    }
    const me_status status = me_tool_check_budget(options, diag);
    if (status != ME_OK) {
        return status;
    }
    const char *unknown =
        options->kind == ME_TOOL_COMM ? NULL : unknown_option(&config->torch);
    if (unknown != NULL) {
        return me_fail(diag, ME_ERR_UNSUPPORTED,
                       "track: what PyTorch's tools say of a job with %s is "
                       "not modelled",
                       unknown);
    }
    if (rank >= config->parallel.world_size) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--rank %d: the job has ranks 0 to %d", rank,
                       config->parallel.world_size - 1);
    }
    if (options->iteration >= config->train.iterations) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--iteration %d: the job has iterations 0 to %d",
                       options->iteration, config->train.iterations - 1);
    }
    return ME_OK;
}

me_status me_tool_begin(me_tool *t, const me_run *run, me_engine *e,
                        me_diag *diag)
{
    t->engine = e;
    if (t->options.kind != ME_TOOL_MEMORY && t->options.kind != ME_TOOL_COMM) {
        t->mod = me_mod_tracker_create(e);
        if (t->mod == NULL) {
            return me_fail(diag, ME_ERR_NOMEM, "no host memory for ModTracker");
        }
    }
    return tools[t->options.kind].begin(t, run, e, diag);
}

me_status me_tool_append(const me_tool *t, const me_tool_format *format,
                         me_diag *diag, me_str *text)
{
    return say_memory(tools[t->options.kind].append(t, format, diag, text),
                      diag);
}

void me_tool_fini(me_tool *t)
{
    me_mem_tracker_destroy(t->mem);
    me_mod_tracker_destroy(t->mod);
    me_memory_tracker_destroy(t->memory);
    me_runtime_estimator_destroy(t->runtime);
    me_sac_estimator_destroy(t->sac);
    me_comm_tracker_destroy(t->comm);
    me_pool_observer_destroy(t->pool);
    me_str_fini(&t->hooks);
    *t = (me_tool){.options = t->options};
}
