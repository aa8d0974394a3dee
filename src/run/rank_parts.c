/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/rank_parts.h"

#include "base/size.h"
#include "config/framework.h"
#include "config/options.h"
#include "run/limit_end.h"
#include "run/pool_counters.h"
#include "run/rank_device.h"
#include "tensor/launch.h"

static uint64_t read_device(void *self)
{
    const me_rank_parts *p = self;
    return me_size_add(
        me_pool_current(me_pool_observer_pool(p->pool), ME_POOL_RESERVED_BYTES),
        me_device_memory_bytes(me_device_observer_memory(p->device)));
}

static int node_of(const me_rank_parts *p, int rank)
{
    return me_cluster_node(&p->simulation->card->layout, rank);
}

static bool is_remote(void *self, me_group_kind kind, int32_t peer)
{
    const me_rank_parts *p = self;
    const me_comm_group *group = &p->groups[kind];
    return group->count > 0 && node_of(p, me_comm_group_member(group, peer)) !=
                                   node_of(p, p->place_rank);
}

/** How many members of a group are on the rank's node. The ranks of a node follow
 *  each other unless they are dealt out, so of a pattern they are counted without
 *  asking each. */
static int count_local(const me_rank_parts *p, const me_comm_group *group)
{
    const me_cluster_layout *layout = &p->simulation->card->layout;
    int local = 0;
    if (group->count > 0 && group->members == NULL && !layout->is_cyclic) {
        const int begin = node_of(p, p->place_rank) * layout->gpus_per_node;
        const int before = begin - 1 - group->start;
        const int last = before + layout->gpus_per_node;
        const int first_index = before < 0 ? 0 : before / group->stride + 1;
        const int last_index = last < 0 ? -1 : last / group->stride;
        const int end =
            last_index + 1 < group->count ? last_index + 1 : group->count;
        return end > first_index ? end - first_index : 0;
    }
    for (int i = 0; i < group->count; i++) {
        local += node_of(p, me_comm_group_member(group, i)) ==
                 node_of(p, p->place_rank);
    }
    return local;
}

static me_status set_shape(me_rank_parts *p, me_group_kind kind, me_diag *diag,
                           me_device_place *place)
{
    me_comm_group *group = &p->groups[kind];
    *group = (me_comm_group){.count = 0};
    const int index = p->simulation->group_of(p->simulation->group_self,
                                              p->place_rank, kind, group);
    me_group_shape *shape = &place->shape[kind];
    *shape = (me_group_shape){.size = group->count};
    if (index == ME_GROUP_HAS_NO_LIST) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the groups");
    }
    shape->local = count_local(p, group);
    place->position[kind] = index < 0 ? 0 : index;
    return ME_OK;
}

static void tell_addresses(void *self, me_pool_taker taker, uint64_t bytes)
{
    me_rank_parts *p = self;
    me_pool_observer_take(p->pool, taker, bytes);
    me_late_frees_take(&p->late, taker, bytes);
    if (p->events != NULL) {
        me_event_log_take(p->events, me_pool_taker_name(taker), bytes);
    }
}

static me_status make_device(me_rank_parts *p, me_diag *diag)
{
    me_device_place place = {
        .world_offset = p->place_rank - p->rank,
        .exchange_bytes = me_rank_exchange_bytes(p->simulation->plan->config),
        .user_buffer_bytes =
            me_rank_user_buffer_bytes(p->simulation->plan->config),
        .is_remote = is_remote,
        .self = p};
    me_status status = ME_OK;
    for (int kind = 0; status == ME_OK && kind < ME_GROUP_COUNT; kind++) {
        status = set_shape(p, (me_group_kind)kind, diag, &place);
    }
    if (status != ME_OK) {
        return status;
    }
    const me_job_card *job = p->simulation->card;
    status =
        me_device_observer_create(&job->card, &job->nccl, &place, &p->device);
    if (status != ME_OK) {
        return me_fail(diag, status, "no host memory for device memory");
    }
    me_device_observer_on_take(p->device, tell_addresses, p);
    me_engine_observe(p->engine, me_device_observer_handle(p->device));
    return ME_OK;
}

/** Of a stage the lowest rank's times count alone, which is the first one that has
 *  its program. */
static bool has_times(const me_plan *plan, int32_t rank)
{
    const int32_t first = me_plan_representative(plan, plan->class_of[rank]);
    const int32_t stage = me_plan_coordinates(plan, first).at[ME_AXIS_PIPELINE];
    const me_coordinates lowest = {.at = {[ME_AXIS_PIPELINE] = stage}};
    return me_grid_rank(&plan->grid, ME_GRID_DENSE, &lowest) == first;
}

static me_status make_clock(me_rank_parts *p, me_diag *diag)
{
    const me_simulation *s = p->simulation;
    if (p->is_strand || !has_times(s->plan, p->rank)) {
        return ME_OK;
    }
    const me_status status =
        me_clock_create(s->plan, s->card, p->place_rank, diag, &p->clock);
    if (status == ME_OK && p->clock != NULL) {
        me_engine_listen(p->engine, me_time_recorder_listener(
                                        p->clock, ME_STEADY_ITERATION));
    }
    return status;
}

static me_status make_tracker(me_rank_parts *p, me_diag *diag)
{
    const me_pool_counters counters = me_pool_observer_counters(p->pool);
    const me_device_counter device = {.read_bytes = read_device, .self = p};
    p->tracker =
        me_tracker_create(me_engine_modules(p->engine), &counters, &device);
    if (p->tracker == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the tracker");
    }
    if (p->simulation->keeps_course) {
        me_tracker_keep_course(p->tracker);
    }
    if (p->simulation->keeps_totals) {
        me_tracker_keep_totals(p->tracker);
    }
    me_engine_observe(p->engine, me_tracker_observer(p->tracker));
    return ME_OK;
}

/** The pool, and beside it that of the twins who make batches otherwise. */
static me_status make_pool(me_rank_parts *p, const me_pool_options *options,
                           me_diag *diag)
{
    const me_simulation *s = p->simulation;
    me_status status = me_pool_observer_create(options, &p->pool);
    if (status == ME_OK && s->differs_from_twin != NULL) {
        const me_twin_batch batch = me_twin_batch_of(s->plan, p->rank);
        status =
            batch.token_bytes == 0
                ? ME_OK
                : me_pool_observer_follow_twin(p->pool, &s->alloc_conf, &batch);
    }
    return status == ME_OK
               ? status
               : me_fail(diag, status, "no host memory for the allocator");
}

/** The tracker reads the pool before the pool sees what is next. */
me_status me_rank_parts_observe(me_rank_parts *p, me_diag *diag)
{
    const me_simulation *s = p->simulation;
    const me_pool_options options = {.conf = s->alloc_conf,
                                     .counts_bytes_alone = true};
    me_status status = make_pool(p, &options, diag);
    if (status == ME_OK) {
        status = make_tracker(p, diag);
    }
    if (status == ME_OK) {
        status = make_clock(p, diag);
    }
    if (status == ME_OK) {
        status = make_device(p, diag);
    }
    if (status == ME_OK) {
        me_engine_observe(p->engine, me_pool_observer_handle(p->pool));
    }
    if (status == ME_OK && me_framework_traits_of(s->plan->config)
                               ->late_frees_matter(s->plan->config)) {
        const me_pool_options late = {.conf = s->alloc_conf};
        status = me_late_frees_init(&late, &p->late);
        if (status != ME_OK) {
            return me_fail(diag, status, "no host memory for the allocator");
        }
        me_engine_observe(p->engine, me_pool_observer_handle(p->late.pool));
    }
    if (status == ME_OK && s->events_path != NULL &&
        s->events_rank == p->rank) {
        status =
            me_event_log_create(s->events_path, me_engine_modules(p->engine),
                                s->events_iteration, diag, &p->events);
        if (status == ME_OK) {
            me_engine_observe(p->engine, me_event_log_observer(p->events));
        }
    }
    return status;
}

me_status me_rank_parts_add_strand(me_rank_parts *first, me_rank_parts *strand,
                                   me_diag *diag)
{
    const me_plan *plan = first->simulation->plan;
    me_rank_parts *p = strand;
    p->engine = first->engine;
    p->is_strand = true;
    if (me_program_add_strand(plan, p->rank, &first->program) != ME_OK) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the program");
    }
    first->strands[first->n_strands++] = p;
    me_strand_set(p->engine, first->n_strands);
    const me_status status = me_rank_parts_observe(p, diag);
    me_strand_set(p->engine, ME_STRANDS_ALL);
    p->watch = (me_twin_watch){.pool = p->pool, .tracker = p->tracker};
    return status;
}

me_status me_rank_parts_observe_traced(me_rank_parts *p, me_memory_trace *trace,
                                       me_diag *diag)
{
    const me_pool_options options = {.conf = p->simulation->alloc_conf,
                                     .on_trace = me_memory_trace_on_pool,
                                     .trace_self = trace};
    me_status status = me_pool_observer_create(&options, &p->pool);
    if (status != ME_OK) {
        return me_fail(diag, status, "no host memory for the allocator");
    }
    status = make_device(p, diag);
    if (status == ME_OK) {
        me_engine_observe(p->engine, me_memory_trace_observer(trace));
        me_engine_observe(p->engine, me_pool_observer_handle(p->pool));
    }
    return status;
}

static void tell_pool(void *self, uint64_t bytes, const me_event *event)
{
    me_pool_observer_set_outside(self, bytes, event);
}

/** A job that has died runs no further. */
static void stop(void *self)
{
    me_engine_fail(self, ME_ERR_CAPACITY, "no device memory");
}

me_status me_rank_parts_observe_limited(me_rank_parts *p, me_margin margin,
                                        me_diag *diag)
{
    const me_device_card *card = &p->simulation->card->card;
    const uint64_t limit = p->simulation->memory_limit_bytes;
    const uint64_t total =
        me_margin_apply(card->total_bytes, margin.card_bytes);
    const uint64_t left = total - me_min_u64(card->context_bytes, total);
    const me_pool_options endless = {.conf = p->simulation->alloc_conf,
                                     .counts_bytes_alone = true};
    const me_pool_options limited = {
        .conf = p->simulation->alloc_conf,
        .counts_bytes_alone = true,
        .device_index = 0, // of a result that ranks share: see oom_text.h
        .limit_bytes =
            limit == 0 ? 0 : me_margin_apply(limit, margin.limit_bytes),
        .device_total_bytes = total,
        .outside_bytes = card->context_bytes,
        .capacity_bytes = me_max_u64(left, 1),
    };
    const bool is_limited = margin.card_bytes != ME_MARGIN_ENDLESS;
    me_status status = make_pool(p, is_limited ? &limited : &endless, diag);
    if (status == ME_OK) {
        status = make_device(p, diag);
    }
    if (status == ME_OK && is_limited) {
        me_device_observer_on_growth(p->device, tell_pool, p->pool);
        me_pool_observer_on_end(p->pool, stop, p->engine);
    }
    if (status == ME_OK) {
        me_engine_observe(p->engine, me_pool_observer_handle(p->pool));
    }
    return status;
}

me_rank_parts me_rank_parts_begin(const me_simulation *simulation, int32_t rank)
{
    const me_plan *plan = simulation->plan;
    return (me_rank_parts){
        .simulation = simulation,
        .rank = rank,
        .place_rank = me_plan_representative(
            plan, me_plan_kin(plan, plan->class_of[rank])),
    };
}

me_status me_rank_parts_make_program(me_rank_parts *p, me_call_log *log,
                                     me_diag *diag)
{
    const me_simulation *s = p->simulation;
    const me_card kernels = me_job_card_kernels(s->card);
    me_status status = me_engine_create(&kernels, &p->engine);
    if (status == ME_OK) {
        status = me_program_init(s->plan, p->rank, &p->program);
    }
    if (status != ME_OK) {
        return me_fail(diag, status, "no host memory for the program");
    }
    if (log == NULL) {
        return ME_OK;
    }
    status = me_rank_comms_create(log, p->rank, s->group_of, s->group_self,
                                  &p->comms);
    if (status != ME_OK) {
        return me_fail(diag, status, "no host memory for communicators");
    }
    p->program.runs_all_rounds = s->runs_all_rounds;
    p->program.comm.call = me_rank_comms_call;
    p->program.comm.group_call = me_rank_comms_group_call;
    p->program.comm.exchange = me_rank_comms_exchange;
    p->program.comm.position = me_rank_comms_position;
    p->program.comm.repeat = me_rank_comms_repeat;
    p->program.comm.self = p->comms;
    return ME_OK;
}

me_footprint me_rank_parts_footprint(const me_rank_parts *p)
{
    return (me_footprint){
        .reserved_bytes = me_pool_current(me_pool_observer_pool(p->pool),
                                          ME_POOL_RESERVED_BYTES),
        .outside_bytes =
            me_device_memory_bytes(me_device_observer_memory(p->device)),
        .timing_bytes = me_compile_timing_bytes(p->engine),
    };
}

static me_status set_time(const me_rank_parts *p, me_diag *diag,
                          me_rank_result *result)
{
    me_time_program program;
    me_status status = me_time_recorder_finish(p->clock, diag, &program);
    if (status == ME_OK && me_rank_result_set_time(result, &program) != ME_OK) {
        status = me_fail(diag, ME_ERR_NOMEM, "no host memory for times");
    }
    return status;
}

/** An me_twin_listener.tell: a program's watch, and those of its strands. */
static void tell_watches(void *self, bool begins)
{
    me_rank_parts *p = self;
    me_strands_settle(p->engine);
    me_twin_watch_tell(&p->watch, begins);
    for (int32_t i = 0; i < p->n_strands; i++) {
        me_twin_watch_tell(&p->strands[i]->watch, begins);
    }
}

/** Could all who listened follow? */
static me_status check_observers(const me_rank_parts *p, me_diag *diag)
{
    me_status status = me_pool_observer_status(p->pool, diag);
    if (status == ME_OK && p->late.pool != NULL) {
        status = me_pool_observer_status(p->late.pool, diag);
    }
    return status == ME_OK ? me_device_observer_status(p->device, diag)
                           : status;
}

me_status me_rank_parts_run(me_rank_parts *p, me_diag *diag)
{
    p->watch = (me_twin_watch){.pool = p->pool, .tracker = p->tracker};
    p->program.twin_listener = (me_twin_listener){tell_watches, p};
    me_program_run(p->engine, &p->program);
    const bool is_dead = me_pool_observer_limit(p->pool).is_oom;
    me_status status = is_dead ? ME_OK : me_engine_status(p->engine, diag);
    if (status == ME_OK) {
        status = check_observers(p, diag);
    }
    for (int32_t i = 0; status == ME_OK && i < p->n_strands; i++) {
        status = check_observers(p->strands[i], diag);
    }
    return status;
}

/** Kernels that are timed where nothing says whether they are: a buffer at
 *  least. */
static uint64_t doubtful_timing_bytes(const me_rank_parts *p)
{
    return me_compile_timing_bytes(p->engine) == 0 ||
                   me_config_is_set(p->simulation->plan->config,
                                    "train.compile_cache_is_warm")
               ? 0
               : me_engine_card(p->engine)->l2_cache_bytes;
}

me_status me_rank_parts_collect_as(me_rank_parts *p,
                                   const me_shard_modules *shards,
                                   me_diag *diag, me_rank_result **result_out)
{
    me_rank_result *result = NULL;
    me_status status = me_tracker_finish_as(p->tracker, shards, diag, &result);
    if (status == ME_OK) {
        result->late = p->late.peaks;
        result->host = *me_engine_host(p->engine);
        result->timing_buffer_bytes = doubtful_timing_bytes(p);
        result->workspace_doubt_bytes = me_launch_doubt_bytes(p->engine);
        result->private_pool_bytes =
            me_pool_private_bytes(me_pool_observer_pool(p->pool));
        status =
            me_rank_device_set(me_device_observer_memory(p->device), result);
    }
    if (status == ME_OK) {
        status = me_limit_end_set(p->pool, p->engine, diag, result);
    }
    if (status != ME_OK) {
        me_rank_result_destroy(result);
        return status;
    }
    *result_out = result;
    return ME_OK;
}

me_status me_rank_parts_collect(me_rank_parts *p, me_diag *diag,
                                me_rank_result **result_out)
{
    me_rank_result *result = NULL;
    me_status status =
        p->events == NULL ? ME_OK : me_event_log_finish(p->events, diag);
    if (status == ME_OK) {
        status = me_rank_parts_collect_as(p, NULL, diag, &result);
    }
    if (status == ME_OK && p->clock != NULL) {
        status = set_time(p, diag, result);
    }
    if (status != ME_OK) {
        me_rank_result_destroy(result);
        return status;
    }
    *result_out = result;
    return ME_OK;
}

void me_rank_parts_fini(me_rank_parts *p)
{
    me_rank_comms_destroy(p->comms);
    me_time_recorder_destroy(p->clock);
    me_event_log_destroy(p->events);
    me_tracker_destroy(p->tracker);
    me_program_fini(&p->program);
    if (!p->is_strand) {
        me_engine_destroy(p->engine);
    }
    me_device_observer_destroy(p->device);
    me_pool_observer_destroy(p->pool);
    me_late_frees_fini(&p->late);
}
