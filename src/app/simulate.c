/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/simulate.h"

#include "alloc/pool_observer.h"
#include "app/program.h"
#include "base/log.h"
#include "collectives/rank_comms.h"
#include "track/event_log.h"
#include "track/tracker.h"

/** Kernels of Hopper cards (H100, H200, SXM): CUDA's deviceProp, and the
 *  workspace of PyTorch's getChosenWorkspaceSize() for compute capability 9.
 *  The L2 cache is the H200's; an H100 shows 50 MiB of it. */
static const me_card hopper = {
    .multiprocessors = 132,
    .threads_per_multiprocessor = 2048,
    .cublas_workspace_bytes = UINT64_C(32) << 20,
    .l2_cache_bytes = UINT64_C(60) << 20,
};

/** What one rank's simulation is made of; NULL until it is made. */
typedef struct parts {
    me_engine *engine;
    me_program program;
    me_pool_observer *pool;
    me_pool_observer *limited;
    me_tracker *tracker;
    me_event_log *events;
    me_rank_comms *comms;
} parts;

static void read_pool(void *self, me_pool_counter *allocated_out,
                      me_pool_counter *reserved_out)
{
    const me_pool *pool = me_pool_observer_pool(self);
    *allocated_out = (me_pool_counter){
        .current = me_pool_current(pool, ME_POOL_ALLOCATED_BYTES),
        .peak = me_pool_peak(pool, ME_POOL_ALLOCATED_BYTES),
    };
    *reserved_out = (me_pool_counter){
        .current = me_pool_current(pool, ME_POOL_RESERVED_BYTES),
        .peak = me_pool_peak(pool, ME_POOL_RESERVED_BYTES),
    };
}

static void reset_pool(void *self)
{
    me_pool_observer_reset_peaks(self);
}

/** The tracker reads the pool before the pool sees what is next. */
static me_status make_observers(const me_simulation *s, int32_t rank,
                                me_diag *diag, parts *p)
{
    me_engine *e = p->engine;
    me_pool_options options = {.conf = s->alloc_conf};
    me_status status = me_pool_observer_create(&options, &p->pool);
    if (status == ME_OK && s->memory_limit_bytes > 0) {
        options.limit_bytes = s->memory_limit_bytes;
        status = me_pool_observer_create(&options, &p->limited);
    }
    if (status != ME_OK) {
        return me_fail(diag, status, "no host memory for the allocator");
    }
    const me_pool_counters counters = {
        .read = read_pool, .reset_peaks = reset_pool, .self = p->pool};
    p->tracker = me_tracker_create(me_engine_modules(e), &counters, NULL);
    if (p->tracker == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the tracker");
    }
    me_engine_observe(e, me_tracker_observer(p->tracker));
    me_engine_observe(e, me_pool_observer_handle(p->pool));
    if (p->limited != NULL) {
        me_engine_observe(e, me_pool_observer_handle(p->limited));
    }
    if (s->events_path != NULL && s->events_rank == rank) {
        status = me_event_log_create(s->events_path, me_engine_modules(e),
                                     s->events_iteration, diag, &p->events);
        if (status == ME_OK) {
            me_engine_observe(e, me_event_log_observer(p->events));
        }
    }
    return status;
}

static me_status make_program(const me_simulation *s, int32_t rank,
                              me_call_log *log, me_diag *diag, parts *p)
{
    me_status status = me_program_init(s->plan, rank, &p->program);
    if (status != ME_OK) {
        return me_fail(diag, status, "no host memory for the program");
    }
    status =
        me_rank_comms_create(log, rank, s->group_of, s->group_self, &p->comms);
    if (status != ME_OK) {
        return me_fail(diag, status, "no host memory for communicators");
    }
    p->program.config.runs_all_rounds = s->runs_all_rounds;
    p->program.comm.call = me_rank_comms_call;
    p->program.comm.group_call = me_rank_comms_group_call;
    p->program.comm.position = me_rank_comms_position;
    p->program.comm.again = me_rank_comms_again;
    p->program.comm.self = p->comms;
    return ME_OK;
}

static const char *module_path(const parts *p, uint32_t module)
{
    return me_engine_modules(p->engine)->modules[module].path;
}

/** How the job ends under the limit, in the result's terms. */
static me_status set_limit(const parts *p, me_diag *diag,
                           me_rank_result *result)
{
    if (p->limited == NULL) {
        return ME_OK;
    }
    const me_status status = me_pool_observer_status(p->limited, diag);
    if (status != ME_OK) {
        return status;
    }
    const me_pool_limit end = me_pool_observer_limit(p->limited);
    return me_rank_result_set_limit(
        result, &(me_limit_result){
                    .is_known = true,
                    .oom = end.is_oom,
                    .iteration = end.is_oom ? end.iteration : 0,
                    .phase = end.is_oom ? me_phase_name(end.phase) : NULL,
                    .module = end.is_oom ? module_path(p, end.module) : NULL,
                    .op = end.is_oom ? end.op : NULL,
                    .tried_bytes = end.oom.tried_bytes,
                    .num_alloc_retries = end.num_alloc_retries,
                    .reserved_bytes = end.reserved_bytes,
                });
}

static me_status collect(parts *p, me_diag *diag, me_rank_result **result_out)
{
    me_rank_result *result = NULL;
    me_status status = me_engine_status(p->engine, diag);
    if (status == ME_OK) {
        status = me_pool_observer_status(p->pool, diag);
    }
    if (status == ME_OK && p->events != NULL) {
        status = me_event_log_finish(p->events, diag);
    }
    if (status == ME_OK) {
        status = me_tracker_finish(p->tracker, diag, &result);
    }
    if (status == ME_OK) {
        status = set_limit(p, diag, result);
    }
    if (status != ME_OK) {
        me_rank_result_destroy(result);
        return status;
    }
    *result_out = result;
    return ME_OK;
}

static void parts_fini(parts *p)
{
    me_rank_comms_destroy(p->comms);
    me_event_log_destroy(p->events);
    me_tracker_destroy(p->tracker);
    me_program_fini(&p->program);
    me_engine_destroy(p->engine);
    me_pool_observer_destroy(p->limited);
    me_pool_observer_destroy(p->pool);
}

me_status me_simulate_rank(const me_simulation *simulation, int32_t rank,
                           me_call_log *log, me_diag *diag,
                           me_rank_result **result_out)
{
    parts p = {.engine = NULL};
    me_status status = me_engine_create(&hopper, &p.engine);
    if (status != ME_OK) {
        return me_fail(diag, status, "no host memory for the engine");
    }
    status = make_program(simulation, rank, log, diag, &p);
    if (status == ME_OK) {
        status = make_observers(simulation, rank, diag, &p);
    }
    if (status == ME_OK) {
        (void)me_megatron_run(p.engine, &p.program.config, &p.program.comm);
        status = collect(&p, diag, result_out);
        if (simulation->n_events != NULL) {
            *simulation->n_events += me_engine_events(p.engine);
        }
        me_log(ME_LOG_DEBUG, "rank %d: %llu events, %llu calls", rank,
               (unsigned long long)me_engine_events(p.engine),
               (unsigned long long)me_call_log_count(log));
    }
    parts_fini(&p);
    return status;
}

me_status me_simulate_modules(const me_plan *plan, int32_t rank, me_diag *diag,
                              me_str *text)
{
    me_engine *engine = NULL;
    me_program program;
    me_status status = me_engine_create(&hopper, &engine);
    if (status == ME_OK) {
        status = me_program_init(plan, rank, &program);
    }
    if (status != ME_OK) {
        me_engine_destroy(engine);
        return me_fail(diag, status, "no host memory for the engine");
    }
    program.config.iterations = 0;
    (void)me_megatron_run(engine, &program.config, &program.comm);
    status = me_engine_status(engine, diag);
    const me_module_tree *tree = me_engine_modules(engine);
    for (uint32_t i = 1; status == ME_OK && i < tree->count; i++) {
        const me_module_info *m = &tree->modules[i];
        me_str_printf(text, "%s parameters %llu bytes %llu\n", m->path,
                      (unsigned long long)m->parameters,
                      (unsigned long long)m->parameter_bytes);
    }
    me_program_fini(&program);
    me_engine_destroy(engine);
    return status;
}
