/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/megatron/bookkeeping.h"

#include "base/size.h"
#include "parallel/user_buffers.h"
#include "tensor/launch.h"
#include "train/megatron/trainer.h"

enum {
    TIMER_BYTES = 4,       /**< of each rank: a float32 */
    LEVEL_TIMERS = 12,     /**< training_log()'s timers_to_log, of each level */
    STARTUP_TIMERS = 10,   /**< pretrain()'s startup_timers */
    DATALOADER_TIMERS = 2, /**< set-up of the model, and of the data */
    DATASET_FLAGS_BYTES = 24
};

enum {
    TEMPORARIES_RUN = 2,  /* the first completes what is pending */
    TEMPORARY_EVENTS = 3, /* a block is asked for, let go of and back */
};

me_tensor *me_keep_scalar(me_engine *e, const char *op, uint64_t bytes)
{
    const me_frame frame = me_enter(e);
    me_tensor *x = me_retain(me_scratch(e, op, bytes));
    me_leave(e, frame, NULL);
    return x;
}

static uint64_t world_size(const me_trainer *t)
{
    return (uint64_t)t->comm->size[ME_GROUP_WORLD];
}

static void world_collective(me_trainer *t, me_collective kind, me_dtype dtype,
                             uint64_t count)
{
    me_communicate(t->e, t->comm,
                   (me_call){ME_GROUP_WORLD, kind, dtype, count, -1, false});
}

/** A barrier all-reduces one byte, which lives until the next barrier's. */
static void barrier(me_trainer *t)
{
    me_tensor *byte = me_keep_scalar(t->e, "barrier", 1);
    world_collective(t, ME_COLLECTIVE_ALL_REDUCE, ME_DTYPE_UINT8, 1);
    me_release(t->e, t->barrier_byte);
    t->barrier_byte = byte;
    me_temporary(t->e, "barrier", 4);
}

void me_barriers(me_trainer *t, int n)
{
    for (int i = 0; i < n; i++) {
        barrier(t);
    }
}

void me_start_timers(me_trainer *t, int n)
{
    if (t->config->train.timing_log_level > 0 &&
        t->config->train.barrier_with_level_1_timing) {
        me_barriers(t, n);
    }
}

/** CommOverlapHelper::ub_allgather(): this rank's handle of a buffer and those of
 *  all neighbours on the card, where NCCL can reach them. */
static void share_handle(me_trainer *t)
{
    enum {
        HANDLE_BYTES = 64
    };

    me_engine *e = t->e;
    const uint64_t all = me_size_mul(
        (uint64_t)t->comm->size[ME_GROUP_USER_BUFFERS], HANDLE_BYTES);
    const me_frame frame = me_enter(e);
    me_tensor *handle = me_scratch(e, "ub_allgather", HANDLE_BYTES);
    me_tensor *handles = me_scratch(e, "ub_allgather", all);
    me_tensor *gathered = me_scratch(e, "all_gather", all);
    me_communicate(e, t->comm,
                   (me_call){ME_GROUP_USER_BUFFERS, ME_COLLECTIVE_ALL_GATHER,
                             ME_DTYPE_UINT8, HANDLE_BYTES, -1, false});
    me_drop(e, gathered);
    me_drop(e, handle);
    me_drop(e, handles);
    me_leave(e, frame, NULL);
}

/** CommOverlapHelper::ub_barrier(). */
static void wait_for(me_trainer *t, me_group_kind group)
{
    me_temporary(t->e, "barrier", 1);
    me_communicate(t->e, t->comm,
                   (me_call){group, ME_COLLECTIVE_ALL_REDUCE, ME_DTYPE_UINT8, 1,
                             -1, false});
}

void me_bootstrap_user_buffers(me_trainer *t)
{
    const me_tp_overlap_config *o = &t->config->tp_overlap;
    const int32_t neighbours = t->comm->size[ME_GROUP_USER_BUFFERS];
    if (!o->is_on || o->bootstrap != ME_BOOTSTRAP_NCCL) {
        return;
    }
    if (o->has_multicast && world_size(t) > (uint64_t)neighbours) {
        wait_for(t, ME_GROUP_USER_BUFFERS_WORLD);
    }
    const me_user_buffers buffers = me_user_buffers_of(t->config);
    const uint64_t count = me_user_buffers_count(&buffers);
    for (uint64_t i = 0; i <= count; i++) { // and the communicator's region
        if (!o->has_multicast) {
            share_handle(t);
            continue;
        }
        for (int32_t peer = 1; peer < neighbours; peer++) {
            wait_for(t, ME_GROUP_USER_BUFFERS);
        }
    }
}

void me_gather_timers(me_trainer *t, uint64_t count)
{
    me_temporary(t->e, "timers", world_size(t) * count * TIMER_BYTES);
    world_collective(t, ME_COLLECTIVE_ALL_GATHER, ME_DTYPE_FLOAT32, count);
}

void me_start_up(me_trainer *t)
{
    me_temporary(t->e, "start_time", 8);
    world_collective(t, ME_COLLECTIVE_ALL_REDUCE, ME_DTYPE_FLOAT64, 1);
    t->start_time = me_keep_scalar(t->e, "start_time", 8);
    me_barriers(t, 3);
    me_gather_timers(t, STARTUP_TIMERS);
    me_barriers(t, 2);
}

/** @p count temporaries, one after the other. Observers that skip echoes
 * (me_observer) are told of the first alone. */
static void repeat_temporary(me_trainer *t, const char *op, uint64_t bytes,
                             uint64_t count)
{
    const bool skips =
        !t->spec->runs_all_rounds && me_engine_skips_echoes(t->e);
    const uint64_t n_run = skips ? me_min_u64(count, TEMPORARIES_RUN) : count;
    for (uint64_t i = 0; i < n_run; i++) {
        me_temporary(t->e, op, bytes);
    }
    me_engine_count_events(t->e, TEMPORARY_EVENTS * (count - n_run));
}

/** torch.distributed.all_gather_object: sizes first, then objects, each made as
 * long as the longest. */
/** all_gather_object(). @param told  elements that the others are told of */
static void gather_object(me_trainer *t, me_group_kind group, uint64_t bytes,
                          uint64_t longest, uint64_t told)
{
    me_engine *e = t->e;
    const uint64_t ranks = (uint64_t)t->comm->size[group];
    const me_frame frame = me_enter(e);
    me_tensor *object = me_scratch(e, "all_gather_object", bytes);
    me_tensor *size = me_scratch(e, "all_gather_object", 8);
    me_tensor *sizes = me_scratch(e, "all_gather_object", 8 * ranks);
    me_tensor *gathered_sizes = me_scratch(e, "all_gather", 8 * ranks);
    me_communicate(e, t->comm,
                   (me_call){group, ME_COLLECTIVE_ALL_GATHER, ME_DTYPE_INT64, 1,
                             -1, false});
    me_drop(e, gathered_sizes);
    repeat_temporary(t, "max", 1, ranks - 1);
    if (longest > bytes) {
        object = me_rebind(e, object, me_scratch(e, "resize_", longest));
    }
    me_tensor *objects = me_scratch(e, "all_gather_object", longest * ranks);
    me_tensor *gathered = me_scratch(e, "all_gather", longest * ranks);
    me_communicate(e, t->comm,
                   (me_call){group, ME_COLLECTIVE_ALL_GATHER, ME_DTYPE_UINT8,
                             told, -1, false});
    me_drop(e, gathered);
    me_drop(e, object);
    me_drop(e, size);
    me_drop(e, objects);
    me_drop(e, sizes);
    me_leave(e, frame, NULL);
}

void me_gather_object_in(me_trainer *t, me_group_kind group, uint64_t bytes,
                         uint64_t longest)
{
    gather_object(t, group, bytes, longest, longest);
}

void me_gather_object(me_trainer *t, uint64_t bytes, uint64_t longest)
{
    me_gather_object_in(t, ME_GROUP_WORLD, bytes, longest);
}

void me_gather_own_object(me_trainer *t, uint64_t bytes)
{
    gather_object(t, ME_GROUP_WORLD, bytes, bytes, 1);
}

/** build_train_valid_test_data_loaders(), once for every chunk. */
static void share_dataset_flags(me_trainer *t)
{
    me_temporary(t->e, "dataset_flags", DATASET_FLAGS_BYTES);
    me_communicate(t->e, t->comm,
                   (me_call){ME_GROUP_WORLD, ME_COLLECTIVE_BROADCAST,
                             ME_DTYPE_INT64, 3, 0, false});
}

void me_before_training(me_trainer *t)
{
    me_barriers(t, 2);
    for (int32_t i = 0; i < t->spec->n_chunks; i++) {
        share_dataset_flags(t);
    }
    me_barriers(t, 2);
    me_gather_timers(t, DATALOADER_TIMERS);
    me_barriers(t, 2);
}

void me_validate_scalar(me_trainer *t, uint64_t bytes)
{
    me_engine *e = t->e;
    if (t->iteration <= 0) {
        return;
    }
    const me_frame frame = me_enter(e);
    me_temporary(e, "isnan", 1);
    me_tensor *magnitude = me_scratch(e, "abs", bytes);
    me_fill_resized(e, bytes);
    me_tensor *isinf = me_scratch(e, "isinf", 1);
    me_drop(e, magnitude);
    me_drop(e, isinf);
    for (int i = 0; i < 2; i++) { // is it NaN; is it infinite
        me_launch_kernel(e, ME_KERNEL_ELEMENTWISE, 1, bytes);
        me_launch_host_waits(e);
    }
    me_leave(e, frame, NULL);
}

bool me_has_last_stage(const me_trainer *t)
{
    for (int32_t i = 0; i < t->spec->n_chunks; i++) {
        if (t->spec->chunks[i].post_process) {
            return true;
        }
    }
    return false;
}

/** The mean over micro-batches, data-parallel ranks summed. */
static void average_losses(me_trainer *t)
{
    me_engine *e = t->e;
    const me_frame frame = me_enter(e);
    me_tensor *stack = me_scratch(e, "stack", 8 * (uint64_t)t->n_reports);
    me_tensor *sum = me_scratch(e, "sum", 8);
    me_drop(e, stack);
    me_communicate(e, t->comm,
                   (me_call){ME_GROUP_DATA_CONTEXT, ME_COLLECTIVE_ALL_REDUCE,
                             ME_DTYPE_FLOAT32, 2, -1, false});
    t->new_mean_loss = me_retain(me_scratch(e, "div", 4));
    for (int32_t i = t->n_reports; i > 0; i--) { // a list goes from its end
        me_clear(e, &t->reports[i - 1]);
    }
    t->n_reports = 0;
    me_drop(e, sum);
    me_leave(e, frame, NULL);
}

/** logical_and_across_model_parallel_group() and
 *  reduce_max_stat_across_model_parallel_group(). */
static void share_statistic(me_trainer *t)
{
    me_temporary(t->e, "reduce_across_model_parallel_group", 4);
    me_communicate(t->e, t->comm,
                   (me_call){ME_GROUP_MODEL, ME_COLLECTIVE_ALL_REDUCE,
                             ME_DTYPE_FLOAT32, 1, -1, false});
}

void me_reduce_losses(me_trainer *t)
{
    share_statistic(t); // was the step good
    share_statistic(t); // the gradient's norm
    me_clear(t->e, &t->grad_norm);
    if (t->config->optimizer.log_num_zeros_in_grad) {
        share_statistic(t);
    }
    if (me_has_last_stage(t)) {
        average_losses(t);
    }
}

/** The running total of losses since the last line that was logged. */
static void add_to_total(me_trainer *t)
{
    me_engine *e = t->e;
    if (!t->has_logged) {
        me_tensor *zero = me_keep_scalar(e, "zeros", 4);
        t->total_loss = me_keep_scalar(e, "add", 4);
        me_release(e, zero);
        t->has_logged = true;
        return;
    }
    me_temporary(e, "to", 4);
    me_tensor *total = me_keep_scalar(e, "add", 4);
    me_release(e, t->total_loss);
    t->total_loss = total;
}

/** MoEMetricsTracker._sync_metrics() of one loss: over the pipeline, which is why a
 *  stage whose routers told nothing has it as well; over the ranks that share
 *  the tokens, if one did; over all data. */
static void reduce_router_loss(me_trainer *t, int loss, uint64_t n)
{
    const bool has_recorded = t->moe.has_recorded[loss];
    const bool is_global = loss == ME_LOAD_BALANCING_GLOBAL_AUX_LOSS;
    const me_group_kind groups[] = {ME_GROUP_PIPELINE,
                                    is_global || loss == ME_ROUTER_Z_LOSS
                                        ? ME_GROUP_TENSOR_DATA_CONTEXT
                                        : ME_GROUP_TENSOR_CONTEXT,
                                    ME_GROUP_DATA_CONTEXT};
    const bool calls[] = {true, has_recorded, !is_global || !has_recorded};
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        if (calls[i]) {
            me_communicate(t->e, t->comm,
                           (me_call){groups[i], ME_COLLECTIVE_ALL_REDUCE,
                                     ME_DTYPE_FLOAT32, n, -1, false});
        }
    }
}

/** `values`, of a loss: its vector scaled, in place of the loss's before it. */
static me_tensor *scale_losses(me_engine *e, me_tensor *values, uint64_t n)
{
    me_tensor *scaled = me_scratch(e, "mul", 4 * n);
    return values == NULL ? scaled : me_rebind(e, values, scaled);
}

/** MoEMetricsTracker._log_per_layer(). */
static void log_each_layer(me_trainer *t, uint64_t n)
{
    me_engine *e = t->e;
    const me_frame frame = me_enter(e);
    me_tensor *values = NULL;
    for (int i = 0; i < ME_ROUTER_LOSSES; i++) {
        if (t->config->moe.tracks_loss[i]) {
            values = scale_losses(e, values, n);
        }
    }
    me_leave(e, frame, NULL);
}

/** MoEMetricsTracker._aggregate(): the mean of each loss over layers. */
static void aggregate_router_losses(me_trainer *t, uint64_t n,
                                    me_tensor *means_out[ME_ROUTER_LOSSES])
{
    me_engine *e = t->e;
    const me_frame frame = me_enter(e);
    me_tensor *values = NULL;
    for (int i = 0; i < ME_ROUTER_LOSSES; i++) {
        means_out[i] = NULL;
        if (!t->config->moe.tracks_loss[i]) {
            continue;
        }
        values = scale_losses(e, values, n);
        me_tensor *sum = me_scratch(e, "sum", 4);
        means_out[i] = me_retain(me_scratch(e, "div", 4));
        me_drop(e, sum);
    }
    if (values != NULL) {
        me_drop(e, values);
    }
    me_leave(e, frame, NULL);
}

/** MoEMetricsTracker.report(): the means in running totals. */
static void log_router_losses(me_trainer *t)
{
    me_engine *e = t->e;
    const me_model_config *m = &t->config->model;
    const me_moe_options *moe = &t->config->moe;
    const uint64_t n = (uint64_t)m->num_layers + (uint64_t)m->mtp_num_layers;
    for (int i = 0; i < ME_ROUTER_LOSSES; i++) {
        if (moe->tracks_loss[i] && t->moe.losses[i] == NULL) {
            t->moe.losses[i] = me_keep_scalar(e, "zeros", 4 * n);
        }
    }
    for (int i = 0; i < ME_ROUTER_LOSSES; i++) {
        if (moe->tracks_loss[i]) {
            reduce_router_loss(t, i, n);
        }
    }
    me_tensor *means[ME_ROUTER_LOSSES];
    aggregate_router_losses(t, n, means);
    if (moe->per_layer_logging) {
        log_each_layer(t, n);
    }
    for (int i = 0; i < ME_ROUTER_LOSSES; i++) {
        if (means[i] != NULL && t->total_router_losses[i] == NULL) {
            t->total_router_losses[i] = means[i];
        } else {
            me_release(e, means[i]); // added in place
        }
    }
}

/** What was logged begins at zero again. */
static void reset_total(me_trainer *t, me_tensor **total)
{
    me_tensor *zero = me_keep_scalar(t->e, "zeros", 4);
    me_release(t->e, *total);
    *total = zero;
}

void me_log_iteration(me_trainer *t, bool is_skipped)
{
    me_engine *e = t->e;
    const bool had_logged = t->has_logged;
    bool had_router_loss[ME_ROUTER_LOSSES];
    for (int i = 0; i < ME_ROUTER_LOSSES; i++) {
        had_router_loss[i] = t->total_router_losses[i] != NULL;
    }
    me_release(e, t->mean_loss);
    t->mean_loss = t->new_mean_loss;
    t->new_mean_loss = NULL;
    if (me_has_last_stage(t) && !is_skipped) {
        add_to_total(t);
    }
    me_temporary(e, "grad_norm", 4);
    if (is_skipped) {
        me_temporary(e, "loss_scale", 4);
    }
    log_router_losses(t);
    me_track_mtp_metrics(t);
    me_barriers(t, 2);
    if (me_has_last_stage(t) && !is_skipped && had_logged) {
        reset_total(t, &t->total_loss);
    }
    for (int i = 0; i < ME_ROUTER_LOSSES; i++) {
        if (had_router_loss[i]) {
            reset_total(t, &t->total_router_losses[i]);
        }
    }
    me_reset_mtp_totals(t);
    if (t->config->train.timing_log_level > 0) {
        me_gather_timers(t, LEVEL_TIMERS *
                                (uint64_t)t->config->train.timing_log_level);
    }
}
