/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/track.h"

#include "alloc/pool_observer.h"
#include "app/estimate.h"
#include "app/job.h"
#include "app/output.h"
#include "app/run.h"
#include "app/simulate.h"
#include "report/mem_text.h"
#include "report/op_series.h"
#include "track/mem_tracker.h"
#include "track/memory_tracker.h"

#include <string.h>

enum {
    DEFAULT_DEPTH = 2,
    DEFAULT_TOP = 20
};

typedef struct tool_row tool_row;

/** The command, and what it is made of. */
typedef struct command {
    const me_cli *cli;
    me_mem_format format;
    me_run *run;
    me_str text;
    me_engine *engine; /**< while it runs */
    me_mod_tracker *mod;
    me_mem_tracker *mem;
    me_memory_tracker *memory;
    me_pool_observer *pool;
    me_op_series loaded; /**< of --load */
} command;

static const tool_row *tool_of(const me_cli *cli);

static const char *const kind_names[] = {
    [ME_MOD_PRE_FORWARD] = "pre_fw",
    [ME_MOD_POST_FORWARD] = "post_fw",
    [ME_MOD_PRE_BACKWARD] = "pre_bw",
    [ME_MOD_POST_BACKWARD] = "post_bw",
};

static int32_t iteration_of(const me_cli *cli)
{
    return cli->iteration < 0 ? ME_STEADY_ITERATION : cli->iteration;
}

/** A line an event: what, of which module, and who runs then. */
static void on_module(void *self, const me_mod_event *event)
{
    command *c = self;
    if (me_iteration_get(c->engine) != iteration_of(c->cli)) {
        return;
    }
    me_str_printf(&c->text, "%s\t%s\t%d\t%d\t", kind_names[event->kind],
                  event->fqn, event->is_parent, event->is_backward);
    const char *name = NULL;
    for (uint32_t i = 0; (name = me_mod_tracker_parent(c->mod, i)) != NULL;
         i++) {
        me_str_printf(&c->text, "%s%s", i == 0 ? "" : ",", name);
    }
    me_str_append(&c->text, "\n");
}

static me_status begin_mod(command *c, me_engine *e, me_diag *diag)
{
    c->mod = me_mod_tracker_create(e);
    if (c->mod == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for ModTracker");
    }
    me_str_append(&c->text, "event\tmodule\tis_parent\tis_backward\tparents\n");
    me_mod_tracker_observe(c->mod,
                           (me_mod_observer){.on_event = on_module, .self = c});
    return ME_OK;
}

static me_status begin_snapshots(command *c, me_engine *e, bool is_fsdp,
                                 me_diag *diag)
{
    c->mod = me_mod_tracker_create(e);
    if (c->mod == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for ModTracker");
    }
    const me_mem_options options = {
        .is_fsdp = is_fsdp,
        .as_memtracker = c->cli->as_memtracker,
        .is_input_inside = c->cli->input_inside,
        .iteration = iteration_of(c->cli),
    };
    c->mem = me_mem_tracker_create(e, c->mod, &options);
    return c->mem == NULL ? me_fail(diag, ME_ERR_NOMEM,
                                    "no host memory for the memory tracker")
                          : ME_OK;
}

static me_status begin_mem(command *c, me_engine *e, me_diag *diag)
{
    return begin_snapshots(c, e, false, diag);
}

static me_status begin_fsdp(command *c, me_engine *e, me_diag *diag)
{
    return begin_snapshots(c, e, true, diag);
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

static me_status begin_memory(command *c, me_engine *e, me_diag *diag)
{
    me_pool_options options = {.limit_bytes = 0};
    me_status status = me_alloc_conf_parse(
        me_run_config(c->run)->device.alloc_conf, diag, &options.conf);
    if (status != ME_OK) {
        return status;
    }
    status = me_pool_observer_create(&options, &c->pool);
    if (status != ME_OK) {
        return me_fail(diag, status, "no host memory for the allocator");
    }
    me_engine_observe(e, me_pool_observer_handle(c->pool));
    const me_op_counters counters = {.read = read_pool, .self = c->pool};
    c->memory = me_memory_tracker_create(e, ME_NO_MODULE, iteration_of(c->cli),
                                         &counters, c->cli->as_memtracker);
    return c->memory == NULL
               ? me_fail(diag, ME_ERR_NOMEM, "no host memory for MemoryTracker")
               : ME_OK;
}

static void append_text(command *c)
{
    uint32_t count = 0;
    const me_mem_point *points = me_mem_tracker_points(c->mem, &count);
    for (uint32_t i = 0; i < count; i++) {
        me_str_printf(&c->text, "Point:  %s\n", points[i].name);
        me_mem_snapshot_append(&c->text, c->mem, &points[i].snapshot,
                               &c->format);
        me_str_append(&c->text, "\n");
    }
    me_str_append(&c->text, "Peak\n");
    me_mem_snapshot_append(&c->text, c->mem, me_mem_tracker_peak(c->mem),
                           &c->format);
    me_str_append(&c->text, "\n");
}

/** What --tool memory has to say, of a job or of a file. */
static me_status append_series(command *c, const me_op_series *series,
                               me_diag *diag)
{
    const uint32_t top = c->cli->top == 0 ? DEFAULT_TOP : (uint32_t)c->cli->top;
    if (strcmp(c->cli->format, "json") == 0) {
        return me_op_series_save(&c->text, series);
    }
    return strcmp(c->cli->format, "html") == 0
               ? me_op_series_html(&c->text, series, top, diag)
               : me_op_series_summary(&c->text, series, top);
}

static me_status end_snapshots(command *c, me_diag *diag)
{
    (void)diag;
    if (strcmp(c->cli->format, "json") == 0) {
        return me_mem_json_append(&c->text, c->mem, c->format.depth);
    }
    append_text(c);
    return me_mem_modules_append(&c->text, c->mem, &c->format);
}

static me_status end_memory(command *c, me_diag *diag)
{
    return append_series(c, me_memory_tracker_series(c->memory), diag);
}

static me_status end_mod(command *c, me_diag *diag)
{
    (void)c;
    (void)diag;
    return ME_OK; /* said as it went */
}

/** A tool of PyTorch's. */
struct tool_row {
    const char *name;
    const char *formats; /**< with a space around each */
    me_status (*begin)(command *c, me_engine *e, me_diag *diag);
    me_status (*end)(command *c, me_diag *diag);
};

static const tool_row tools[] = {
    {"mem", " text json ", begin_mem, end_snapshots},
    {"fsdp2", " text json ", begin_fsdp, end_snapshots},
    {"mod", " text ", begin_mod, end_mod},
    {"memory", " text json html ", begin_memory, end_memory},
};

static const tool_row *tool_of(const me_cli *cli)
{
    const char *name = cli->tool == NULL ? "mem" : cli->tool;
    for (size_t i = 0; i < sizeof tools / sizeof tools[0]; i++) {
        if (strcmp(tools[i].name, name) == 0) {
            return &tools[i];
        }
    }
    return NULL;
}

static me_status begin(void *self, me_engine *e, me_diag *diag)
{
    command *c = self;
    c->engine = e;
    return tool_of(c->cli)->begin(c, e, diag);
}

/** Printing fails for want of memory alone, unless it has said why. */
static me_status say_memory(me_status status, me_diag *diag)
{
    return status == ME_ERR_NOMEM
               ? me_fail(diag, status, "no host memory for the text")
               : status;
}

static me_status end(void *self, me_diag *diag)
{
    command *c = self;
    return say_memory(tool_of(c->cli)->end(c, diag), diag);
}

/** What the flags ask for that the command has not. */
static me_status check_flags(command *c, me_diag *diag)
{
    const me_cli *cli = c->cli;
    const tool_row *tool = tool_of(cli);
    c->format.depth = cli->depth == 0 ? DEFAULT_DEPTH : (uint32_t)cli->depth;
    c->format.tabulates = cli->tabulate;
    if (tool == NULL) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--tool %s: mem, fsdp2, mod and memory are tools",
                       cli->tool);
    }
    if (strchr(cli->format, ' ') != NULL ||
        strstr(tool->formats, cli->format) == NULL) {
        return me_fail(diag, ME_ERR_CONFIG, "--format %s: --tool %s knows%.*s",
                       cli->format, tool->name, (int)strlen(tool->formats) - 1,
                       tool->formats);
    }
    if (cli->load != NULL && tool->begin != begin_memory) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--load %s: --tool memory reads a series", cli->load);
    }
    return me_mem_units_find(cli->units == NULL ? "B" : cli->units, diag,
                             &c->format);
}

/** Jobs that the tools have nothing to say of. */
static me_status check_job(const command *c, me_diag *diag)
{
    const me_config *config = me_run_config(c->run);
    const int32_t rank = c->cli->rank < 0 ? 0 : c->cli->rank;
    if (config->framework != ME_FRAMEWORK_TORCH) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "memest track: the job must be one of framework = "
                       "\"torch\", whose modules PyTorch's tools see");
    }
    if (tool_of(c->cli)->begin == begin_fsdp &&
        config->torch.data_parallel != ME_DATA_PARALLEL_FULLY_SHARD) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--tool fsdp2: the job's torch.data_parallel must be "
                       "fully_shard");
    }
    if (tool_of(c->cli)->begin == begin_memory &&
        config->parallel.pipeline > 1) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--tool memory: it watches one module, and the ranks of "
                       "a pipeline have several");
    }
    if (config->torch.autocast >= 0 || config->torch.grad_scaler) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "track: what PyTorch's tools say of a job with %s is "
                       "not modelled",
                       config->torch.autocast >= 0 ? "torch.autocast"
                                                   : "torch.grad_scaler");
    }
    if (config->torch.cpu_offload) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "track: what PyTorch's tools say of a job with "
                       "torch.cpu_offload is not modelled");
    }
    if (rank >= config->parallel.world_size) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--rank %d: the job has ranks 0 to %d", rank,
                       config->parallel.world_size - 1);
    }
    if (iteration_of(c->cli) >= config->train.iterations) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--iteration %d: the job has iterations 0 to %d",
                       iteration_of(c->cli), config->train.iterations - 1);
    }
    return ME_OK;
}

static me_status read_job(command *c, me_transport *transport, me_diag *diag)
{
    me_status status = check_flags(c, diag);
    if (status != ME_OK) {
        return status;
    }
    me_config *config = me_config_create();
    if (config == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the job");
    }
    status = me_job_read(c->cli, me_transport_size(transport), config, diag);
    if (status != ME_OK) {
        me_config_destroy(config);
        return status == ME_ERR_IO ? ME_ERR_CONFIG : status;
    }
    const me_run_options options = {.strict = c->cli->strict};
    status = me_run_create(transport, config, &options, diag, &c->run);
    return status == ME_OK ? check_job(c, diag) : status;
}

static me_status simulate(command *c, me_diag *diag)
{
    const me_watcher watcher = {.begin = begin, .end = end, .self = c};
    me_status status = me_simulate_watched(
        me_run_plan(c->run), me_run_card(c->run),
        c->cli->rank < 0 ? 0 : c->cli->rank, &watcher, diag);
    if (status == ME_OK && me_str_status(&c->text) != ME_OK) {
        status = me_fail(diag, ME_ERR_NOMEM, "no host memory for the text");
    }
    return status == ME_OK ? me_print_text(&c->text, c->cli->output, diag)
                           : status;
}

/** A series that was saved: no job is needed. */
static me_status show_loaded(command *c, me_diag *diag)
{
    me_status status = check_flags(c, diag);
    if (status == ME_OK) {
        status = me_op_series_load(c->cli->load, diag, &c->loaded);
    }
    if (status == ME_OK) {
        status = say_memory(append_series(c, &c->loaded, diag), diag);
    }
    if (status == ME_ERR_IO) {
        return ME_ERR_CONFIG; /* there is no such file */
    }
    return status == ME_OK ? me_print_text(&c->text, c->cli->output, diag)
                           : status;
}

int me_track(me_transport *transport, const me_cli *cli, me_diag *diag)
{
    command c = {.cli = cli};
    me_status status = ME_OK;
    if (cli->load == NULL) {
        status =
            me_transport_agree(transport, read_job(&c, transport, diag), diag);
    }
    if (status == ME_OK && me_transport_rank(transport) == 0) {
        status = cli->load == NULL ? simulate(&c, diag) : show_loaded(&c, diag);
    }
    status = me_transport_agree(transport, status, diag);
    me_mem_tracker_destroy(c.mem);
    me_mod_tracker_destroy(c.mod);
    me_memory_tracker_destroy(c.memory);
    me_pool_observer_destroy(c.pool);
    me_op_series_fini(&c.loaded);
    me_str_fini(&c.text);
    me_run_destroy(c.run);
    return me_exit_code(status);
}
