/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/size.h"
#include "nn/megatron/te_state.h"
#include "ops/reduce.h"
#include "tensor/launch.h"
#include "train/megatron/megatron_fsdp.h"
#include "train/megatron/trainer.h"

static me_dtype grad_dtype(const me_megatron_fsdp *f)
{
    return f->t->config->train.grad_dtype;
}

/** Of what is reduced. */
static me_dtype comm_dtype(const me_megatron_fsdp *f)
{
    const int dtype = f->t->config->parallel.fsdp_grad_comm_dtype;
    return dtype < 0 ? grad_dtype(f) : (me_dtype)dtype;
}

static bool reduces_each_backward(const me_megatron_fsdp *f)
{
    const me_sharding_strategy s = f->t->config->parallel.sharding_strategy;
    return s == ME_SHARDING_OPTIM_GRADS || s == ME_SHARDING_OPTIM_GRADS_PARAMS;
}

/** is_last_microbatch, which only no_sync() sets, and overlap alone asks for it. */
static bool is_last_backward(const me_megatron_fsdp *f)
{
    return f->t->config->optimizer.overlap_grad_reduce &&
           f->t->is_last_microbatch;
}

static bool reduces_now(const me_megatron_fsdp *f)
{
    return reduces_each_backward(f) || is_last_backward(f);
}

/** No gradient of a bucket's parameters is there. */
static void forget_ready(me_megatron_fsdp *f, me_fsdp_group_buffers *b)
{
    b->n_ready = 0;
    for (uint32_t i = 0; i < b->layout->n_items; i++) {
        const uint32_t item = b->layout->first_item + i;
        f->is_ready[f->layout->items[item].param] = false;
    }
}

/** The oldest @p count reductions are done: their gradients go. */
static void finish_reductions(me_megatron_fsdp *f, uint32_t count)
{
    const bool persists =
        f->t->config->parallel.fsdp_db_use_persist_buf_on_alloc_fail;
    for (uint32_t i = 0; i < count; i++) {
        me_fsdp_group_buffers *b = &f->buckets[f->queue[i]];
        forget_ready(f, b);
        me_clear(f->t->e, &b->sent);
        if (b->is_pooled) {
            me_fsdp_pool_give(&f->gradient_pool, f->queue[i]);
        } else if (!persists) {
            me_clear(f->t->e, &b->gradients);
        }
    }
    for (uint32_t i = count; i < f->n_queued; i++) {
        f->queue[i - count] = f->queue[i];
    }
    f->n_queued -= count;
}

/** wait_for_previous_grad_reduce(): the oldest go, until no more than @p numel
 *  elements wait. */
static void await_reductions(me_megatron_fsdp *f, uint64_t numel)
{
    uint64_t waiting = 0;
    uint32_t done = 0;
    for (uint32_t i = 0; i < f->n_queued; i++) {
        waiting += f->buckets[f->queue[i]].numel;
    }
    while (done < f->n_queued && waiting > numel) {
        waiting -= f->buckets[f->queue[done++]].numel;
    }
    finish_reductions(f, done);
}

/** _enforce_double_buffer_limit(): with the unit of @p bucket no more than two
 *  have gradients. */
static void limit_units(me_megatron_fsdp *f, const me_fsdp_group_buffers *b)
{
    int32_t units[ME_FSDP_POOL_BUFFERS];
    int count = 0;
    uint32_t done = 0;
    if (b->is_pooled) {
        units[count++] = b->layout->unit;
    }
    for (uint32_t i = f->n_queued; i > 0 && done == 0; i--) {
        const int32_t unit = f->buckets[f->queue[i - 1]].layout->unit;
        int k = 0;
        while (k < count && units[k] != unit) {
            k++;
        }
        if (k == ME_FSDP_POOL_BUFFERS) {
            done = i; // it and all that are older
        } else if (k == count) {
            units[count++] = unit;
        }
    }
    finish_reductions(f, done);
}

/** fetch_bucket() of the gradients: where ranks own parts of them the whole
 *  bucket has memory from its first gradient on. */
static void fetch(me_megatron_fsdp *f, me_fsdp_group_buffers *b)
{
    if (f->t->config->parallel.fsdp_double_buffer) {
        limit_units(f, b);
    }
    if (b->is_pooled && me_megatron_fsdp_shards_gradients(f, b)) {
        (void)me_fsdp_pool_take(f, &f->gradient_pool,
                                (uint32_t)(b - f->buckets), comm_dtype(f),
                                true);
    } else if (me_megatron_fsdp_shards_gradients(f, b) &&
               b->gradients == NULL) {
        b->gradients = me_keep(f->t->e, "main_grad", ME_CATEGORY_GRADIENT,
                               comm_dtype(f), ME_SHAPE(b->numel));
    }
}

void me_megatron_fsdp_main_grad(void *self, const me_parameter *weight)
{
    me_megatron_fsdp *f = self;
    fetch(f, &f->buckets[f->bucket_of[weight->index]]);
}

/** Gradients are scaled, and reduced into this rank's part, in @p dtype. */
static void reduce_bucket(me_megatron_fsdp *f, const me_fsdp_group_buffers *b,
                          me_dtype dtype)
{
    me_trainer *t = f->t;
    const bool is_whole =
        t->config->parallel.sharding_strategy == ME_SHARDING_NO_SHARD;
    const uint64_t bytes = me_dtype_bytes(dtype);
    me_launch_kernel(t->e, ME_KERNEL_ELEMENTWISE, b->numel,
                     me_size_mul(2 * bytes, b->numel));
    me_communicate(t->e, t->comm,
                   (me_call){b->group,
                             is_whole ? ME_COLLECTIVE_ALL_REDUCE
                                      : ME_COLLECTIVE_REDUCE_SCATTER,
                             dtype, is_whole ? b->numel : b->numel / b->ranks,
                             -1, true});
}

/** The last backward's gradients go over the instances, each rank's part whole or
 *  cut once more. */
static void reduce_instances(me_megatron_fsdp *f, me_fsdp_group_buffers *b)
{
    me_trainer *t = f->t;
    const uint64_t numel = me_megatron_fsdp_shards_gradients(f, b)
                               ? b->numel / b->ranks
                               : b->numel;
    if (!me_megatron_fsdp_has_instances(f) || !is_last_backward(f)) {
        return;
    }
    if (comm_dtype(f) != grad_dtype(f) && b->sent == NULL) {
        b->sent = me_keep(t->e, "grad_comm", ME_CATEGORY_COMMUNICATION,
                          comm_dtype(f), ME_SHAPE(numel));
    }
    me_communicate(t->e, t->comm,
                   (me_call){ME_GROUP_INTER_INSTANCE,
                             b->instances > 1 ? ME_COLLECTIVE_REDUCE_SCATTER
                                              : ME_COLLECTIVE_ALL_REDUCE,
                             comm_dtype(f), numel / b->instances, -1, true});
}

/** Are all gradients of the buckets there that are reduced together? */
static bool is_ready(const me_megatron_fsdp *f, uint32_t first)
{
    for (uint32_t i = first; i < f->n_buckets; i++) {
        const me_fsdp_group_buffers *b = &f->buckets[i];
        if (b->first == first && b->n_ready < b->layout->n_items) {
            return false;
        }
    }
    return true;
}

/** A bucket is reduced. Where a gradient comes twice in a backward, as in layers
 *  that are used again and recomputed, it may be while it waits already. */
static void enqueue(me_megatron_fsdp *f, uint32_t bucket)
{
    if (f->n_queued == f->most_queued) {
        const uint32_t most = 2 * f->most_queued + 1;
        uint32_t *queue = me_engine_alloc(f->t->e, most, sizeof *queue);
        if (queue == NULL) {
            return;
        }
        for (uint32_t i = 0; i < f->n_queued; i++) {
            queue[i] = f->queue[i];
        }
        f->queue = queue;
        f->most_queued = most;
    }
    f->queue[f->n_queued++] = bucket;
}

/** _bucket_group_gradient_reduce(). */
static void reduce_group(me_megatron_fsdp *f, uint32_t first)
{
    const me_phase phase = me_phase_set(f->t->e, ME_PHASE_GRADIENT_REDUCTION);
    await_reductions(f, f->queue_numel);
    if (f->t->config->parallel.fsdp_double_buffer) {
        limit_units(f, &f->buckets[first]);
    }
    const uint8_t stream = me_stream_set(f->t->e, ME_STREAM_REDUCE);
    for (uint32_t i = first; i < f->n_buckets; i++) {
        me_fsdp_group_buffers *b = &f->buckets[i];
        if (b->first == first) {
            if (b->gradients == NULL && !b->is_pooled &&
                comm_dtype(f) != grad_dtype(f)) {
                b->gradients =
                    me_keep(f->t->e, "grad_comm", ME_CATEGORY_COMMUNICATION,
                            comm_dtype(f), ME_SHAPE(b->numel));
            }
            if (b->gradients == NULL && !b->is_pooled &&
                me_megatron_fsdp_shards_gradients(f, b)) {
                fetch(f, b); // its own reduction before was waited for just now
            }
            reduce_bucket(f, b, comm_dtype(f));
            reduce_instances(f, b);
            enqueue(f, i);
        }
    }
    me_stream_set(f->t->e, stream);
    me_phase_set(f->t->e, phase);
}

static void mark_ready(me_megatron_fsdp *f, const me_parameter *p)
{
    me_fsdp_group_buffers *b = &f->buckets[f->bucket_of[p->index]];
    f->is_awaited[p->index] = false;
    if (reduces_now(f)) {
        b->n_ready += f->is_ready[p->index] ? 0 : 1;
        f->is_ready[p->index] = true;
        if (is_ready(f, b->first)) {
            reduce_group(f, b->first);
        }
    }
}

/** `del param.grad`, in a hook that AccumulateGrad runs after it has handed the
 *  gradient over: nobody else has it, but views of the same memory. */
static void forget_gradient(me_engine *e, me_tensor *parameter)
{
    const me_tensor *gradient = parameter->grad;
    if (gradient->storage != NULL && gradient->storage->refs == 1) {
        me_storage_free(e, gradient);
    }
    me_clear(e, &parameter->grad);
}

/** _grad_acc(), of a gradient that the product has not added by itself: it is
 *  copied or added. */
void me_megatron_fsdp_on_grad(void *self, me_engine *e, me_tensor *tensor)
{
    me_trainer *t = self;
    me_megatron_fsdp *f = t->megatron_fsdp;
    const me_parameter *p = tensor->parameter;
    const bool is_added = me_te_is_dummy_wgrad(&t->nn, tensor->grad);
    if (!is_added) {
        me_megatron_fsdp_main_grad(f, p);
        me_launch_kernel(
            e, ME_KERNEL_ACCUMULATE, p->numel,
            me_size_add(
                me_bytes(tensor),
                me_size_mul(2 * p->numel, me_dtype_bytes(comm_dtype(f)))));
    }
    forget_gradient(e, tensor);
    mark_ready(f, p);
}

/** What got no gradient counts as zeros. */
void me_megatron_fsdp_end_backward(me_megatron_fsdp *f)
{
    for (uint32_t i = 0; i < f->t->parameters.count; i++) {
        const me_parameter *p = f->t->parameters.parameters[i];
        if (f->is_awaited[i] && reduces_each_backward(f)) {
            me_megatron_fsdp_main_grad(f, p);
        }
    }
    for (uint32_t i = 0; i < f->t->parameters.count; i++) {
        if (f->is_awaited[i]) {
            mark_ready(f, f->t->parameters.parameters[i]);
        }
    }
    if (reduces_now(f)) {
        await_reductions(f, 0);
    }
    f->microbatches++;
}

/** _check_nan_in_grad(). */
static void check_nan(me_megatron_fsdp *f, const me_fsdp_group_buffers *b)
{
    me_engine *e = f->t->e;
    const uint64_t bytes = me_dtype_bytes(grad_dtype(f));
    const uint64_t strides[ME_MAX_DIMS] = {1};
    const me_frame frame = me_enter(e);
    me_tensor *view = me_alias(e, f->gradients[0], ME_SHAPE(b->numel), strides);
    me_tensor *norm = me_vector_norm(e, view, grad_dtype(f));
    me_drop(e, view);
    me_temporary(e, "isnan", 1);
    me_tensor *magnitude = me_scratch(e, "abs", bytes);
    me_tensor *is_bounded = me_scratch(e, "ne", 1);
    me_tensor *is_number = me_scratch(e, "eq", 1);
    me_tensor *is_finite = me_scratch(e, "mul", 1);
    me_drop(e, is_number);
    me_drop(e, is_bounded);
    me_drop(e, magnitude);
    me_drop(e, is_finite);
    me_launch_host_waits(e);
    me_drop(e, norm);
    me_leave(e, frame, NULL);
}

/** reduce_scatter_gradients() or all_reduce_gradients(): nothing was reduced
 *  in the backward. */
static void reduce_all(me_megatron_fsdp *f)
{
    for (uint32_t i = 0; i < f->n_buckets; i++) {
        if (f->t->config->train.check_for_nan_in_loss_and_grad) {
            check_nan(f, &f->buckets[i]);
        }
        reduce_bucket(f, &f->buckets[i], grad_dtype(f));
    }
}

/** Where in the optimizer a parameter's part is. */
static me_shard_state *shard_of(const me_megatron_fsdp *f,
                                const me_parameter *p)
{
    const uint32_t i = f->shard_of[p->index];
    return i == UINT32_MAX ? NULL : &f->t->optimizers[0].shards[i];
}

static void find_shards(me_megatron_fsdp *f)
{
    const me_optimizer *o = &f->t->optimizers[0];
    for (uint32_t i = 0; i < f->t->parameters.count; i++) {
        f->shard_of[i] = UINT32_MAX;
    }
    for (uint32_t i = 0; i < o->count; i++) {
        f->shard_of[o->shards[i].parameter->index] = i;
    }
}

void me_megatron_fsdp_update_main_grads(me_megatron_fsdp *f)
{
    me_engine *e = f->t->e;
    find_shards(f);
    for (uint32_t i = 0; i < f->layout->n_items && me_engine_is_ok(e); i++) {
        const me_parameter *p =
            me_megatron_fsdp_parameter(f, &f->layout->items[i]);
        me_shard_state *s = shard_of(f, p);
        const me_fsdp_group_buffers *b = &f->buckets[f->bucket_of[p->index]];
        if (s == NULL || b->main == NULL ||
            me_step_grad_dtype(f->t) == grad_dtype(f)) {
            continue; // a view of the bucket's
        }
        me_module_switch(e, p->module);
        me_tensor *gradient =
            me_keep(e, "to", ME_CATEGORY_GRADIENT, me_step_grad_dtype(f->t),
                    ME_SHAPE(s->numel));
        me_launch_kernel(e, ME_KERNEL_CAST, 0, 6 * s->numel);
        me_assign(e, &s->gradient, gradient);
        me_release(e, gradient);
    }
    me_module_switch(e, ME_NO_MODULE);
}

void me_megatron_fsdp_finish_grad_sync(me_megatron_fsdp *f)
{
    if (!reduces_each_backward(f) &&
        !f->t->config->optimizer.overlap_grad_reduce) {
        reduce_all(f);
    }
    me_megatron_fsdp_update_main_grads(f);
    if (f->t->config->optimizer.overlap_param_gather ||
        f->t->config->parallel.sharding_strategy ==
            ME_SHARDING_OPTIM_GRADS_PARAMS) {
        me_megatron_fsdp_reset_gathers(f);
    }
    f->microbatches = 0;
}

void me_megatron_fsdp_zero_grad(me_megatron_fsdp *f)
{
    for (uint32_t i = 0;
         f->t->optimizers[0].shards != NULL && i < f->layout->n_items; i++) {
        me_shard_state *s =
            shard_of(f, me_megatron_fsdp_parameter(f, &f->layout->items[i]));
        if (s != NULL) {
            me_clear(f->t->e, &s->gradient);
        }
    }
    for (uint32_t i = 0; i < f->n_buckets; i++) {
        const me_fsdp_group_buffers *b = &f->buckets[i];
        const uint64_t numel = me_megatron_fsdp_shards_gradients(f, b)
                                   ? b->numel / b->ranks
                                   : b->numel;
        me_launch_kernel(f->t->e, ME_KERNEL_OPTIMIZER, 0,
                         me_size_mul(numel, me_dtype_bytes(grad_dtype(f))));
    }
}
