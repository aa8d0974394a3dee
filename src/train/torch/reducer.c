/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/torch/reducer.h"

#include "base/size.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"

#include <string.h>

/** Bytes at which a bucket is full where bucket_cap_mb is not given: the first
 *  one early, so that reducing can begin (kDefaultFirstBucketBytes). */
static const uint64_t FIRST_BUCKET_BYTES = UINT64_C(1) << 20;
static const uint64_t BUCKET_BYTES = UINT64_C(25) << 20;

static me_tensor *tensor_of(const me_reducer *r, uint32_t index)
{
    return r->variables[index];
}

static bool finds_unused(const me_reducer *r)
{
    return r->options->find_unused_parameters && !r->options->static_graph;
}

static bool is_first_of_static(const me_reducer *r)
{
    return r->options->static_graph && r->n_backwards == 1;
}

static bool should_rebuild(const me_reducer *r)
{
    return !finds_unused(r) && !r->is_rebuilt;
}

static void tell(const me_reducer *r, me_collective kind, me_dtype dtype,
                 uint64_t count)
{
    const bool is_broadcast = kind == ME_COLLECTIVE_BROADCAST;
    me_communicate_c10d(
        r->loop->e, r->loop->comm,
        (me_c10d_call){
            .op = is_broadcast ? ME_C10D_BROADCAST_ : ME_C10D_ALLREDUCE_,
            .group = r->group,
            .peer = is_broadcast ? 0 : -1,
            .input_bytes = me_size_mul(count, me_dtype_bytes(dtype))});
    me_communicate(r->loop->e, r->loop->comm,
                   (me_call){r->group, kind, dtype, count,
                             is_broadcast ? 0 : -1, !is_broadcast});
}

/** compute_bucket_assignment_by_size() of one dtype: a bucket is full once it
 *  has @p first_limit bytes, later ones @p limit. */
static void assign_buckets(me_reducer *r, uint64_t first_limit, uint64_t limit)
{
    r->n_buckets = 0;
    for (uint32_t at = 0; at < r->n;) {
        me_ddp_bucket *bucket = &r->buckets[r->n_buckets];
        const uint64_t full = r->n_buckets == 0 ? first_limit : limit;
        uint64_t bytes = 0;
        *bucket = (me_ddp_bucket){.begin = at};
        do {
            bytes = me_size_add(bytes, me_bytes(tensor_of(r, r->order[at++])));
        } while (at < r->n && bytes < full);
        bucket->end = at;
        r->n_buckets++;
    }
}

/** The first buckets: gradients come about as parameters go backwards, so that
 *  buckets are in reverse, and parameters in each are not. */
static void reverse_buckets(me_reducer *r)
{
    uint32_t *order = r->ready; // not in use yet
    uint32_t n = 0;
    for (uint32_t b = r->n_buckets; b > 0; b--) {
        const me_ddp_bucket *bucket = &r->buckets[b - 1];
        for (uint32_t i = bucket->begin; i < bucket->end; i++) {
            order[n++] = r->order[i];
        }
    }
    memcpy(r->order, order, n * sizeof *order);
    for (uint32_t b = 0; b < r->n_buckets / 2; b++) {
        const me_ddp_bucket other = r->buckets[r->n_buckets - 1 - b];
        r->buckets[r->n_buckets - 1 - b] = r->buckets[b];
        r->buckets[b] = other;
    }
    uint32_t at = 0;
    for (uint32_t b = 0; b < r->n_buckets; b++) {
        const uint32_t size = r->buckets[b].end - r->buckets[b].begin;
        r->buckets[b].begin = at;
        at += size;
        r->buckets[b].end = at;
    }
}

/** A gradient becomes a view of its bucket. */
static void point_into_bucket(me_reducer *r, uint32_t index)
{
    me_engine *e = r->loop->e;
    me_tensor *variable = tensor_of(r, index);
    const me_tensor *flat = r->buckets[r->bucket_of[index]].gradients;
    if (!r->options->gradient_as_bucket_view || !me_engine_is_ok(e) ||
        variable->grad == NULL || variable->grad->storage == flat->storage) {
        return;
    }
    const me_frame frame = me_enter(e);
    me_tensor *view =
        me_retain(me_alias(e, flat, variable->shape, variable->strides));
    me_tensor *before = variable->grad;
    variable->grad = view;
    me_release(e, before);
    me_leave(e, frame, NULL);
}

/** initialize_buckets(); gradients that exist move into them. */
static void make_buckets(me_reducer *r)
{
    me_engine *e = r->loop->e;
    const bool has_gradients = r->options->gradient_as_bucket_view;
    for (uint32_t b = 0; b < r->n_buckets && me_engine_is_ok(e); b++) {
        me_ddp_bucket *bucket = &r->buckets[b];
        uint64_t numel = 0;
        for (uint32_t i = bucket->begin; i < bucket->end; i++) {
            numel = me_size_add(numel, me_numel(tensor_of(r, r->order[i])));
            r->bucket_of[r->order[i]] = b;
        }
        bucket->gradients = me_keep(
            e, "bucket",
            has_gradients ? ME_CATEGORY_GRADIENT : ME_CATEGORY_COMMUNICATION,
            (me_dtype)tensor_of(r, 0)->dtype, ME_SHAPE(numel));
        for (uint32_t i = bucket->begin; i < bucket->end; i++) {
            point_into_bucket(r, r->order[i]);
        }
    }
}

static bool has_one_dtype(const me_reducer *r)
{
    for (uint32_t i = 1; i < r->n; i++) {
        if (tensor_of(r, i)->dtype != tensor_of(r, 0)->dtype) {
            me_engine_fail(r->loop->e, ME_ERR_CONFIG,
                           "torch.data_parallel = \"ddp\": parameters of %s "
                           "and %s in one model are not modelled, of one type "
                           "they are",
                           me_dtype_name((me_dtype)tensor_of(r, 0)->dtype),
                           me_dtype_name((me_dtype)tensor_of(r, i)->dtype));
            return false;
        }
    }
    return true;
}

/** The engine's memory for @p n numbers. */
static uint32_t *numbers(const me_reducer *r)
{
    return me_engine_alloc(r->loop->e, (size_t)r->n + 1, sizeof(uint32_t));
}

/** local_used_map_dev_, which a static graph makes again. */
static void make_used_map(me_reducer *r)
{
    me_tensor *before = r->used_map;
    r->used_map =
        me_keep(r->loop->e, "local_used_map", ME_CATEGORY_COMMUNICATION,
                ME_DTYPE_INT32, ME_SHAPE(r->n));
    me_release(r->loop->e, before);
}

/** sync_bucket_indices(): rank 0's assignment, as numbers. */
static void sync_indices(const me_reducer *r)
{
    me_engine *e = r->loop->e;
    const uint64_t n = (uint64_t)r->n + 1;
    const me_frame frame = me_enter(e);
    me_tensor *indices = me_scratch(e, "bucket_indices", 4 * n);
    tell(r, ME_COLLECTIVE_BROADCAST, ME_DTYPE_INT32, n);
    me_tensor *sizes =
        me_scratch(e, "bucket_sizes", 4 * (uint64_t)r->n_buckets);
    tell(r, ME_COLLECTIVE_BROADCAST, ME_DTYPE_INT32, r->n_buckets);
    me_drop(e, sizes);
    me_drop(e, indices);
    me_leave(e, frame, NULL);
}

/** A parameter that PyTorch raises about. */
static void fail_about(const me_reducer *r, uint32_t index, const char *what)
{
    me_engine *e = r->loop->e;
    const me_parameter *p = r->loop->parameters.parameters[r->first + index];
    me_module_switch(e, p->module);
    me_engine_fail(e, ME_ERR_CONFIG, "module %s: %s %s", me_module_shown(e),
                   p->name, what);
    me_engine_locate(e);
}

/** ensure_prior_reduction_finished(). */
static bool is_finished(const me_reducer *r)
{
    for (uint32_t i = 0; r->must_finalize && i < r->n; i++) {
        if (!r->is_marked[i]) {
            fail_about(r, i,
                       "got no gradient, which DistributedDataParallel refuses "
                       "at the next forward without "
                       "torch.find_unused_parameters = true");
            return false;
        }
    }
    return true;
}

void me_reducer_rebuild(me_reducer *r)
{
    me_engine *e = r->loop->e;
    if (!me_engine_is_ok(e) || !is_finished(r) || !should_rebuild(r) ||
        r->n_ready != r->n) {
        return;
    }
    const uint64_t given = r->options->bucket_bytes;
    // Until now they are in one bucket.
    me_tensor *old = r->buckets[0].gradients;
    memcpy(r->order, r->ready, r->n * sizeof *r->order);
    assign_buckets(r, given != 0 ? given : FIRST_BUCKET_BYTES,
                   given != 0 ? given : BUCKET_BYTES);
    sync_indices(r);
    r->is_rebuilt = true;
    r->shelf = old;
    make_buckets(r);
}

/** search_unused_parameters(): those whose AccumulateGrad is in no graph. */
static void search_unused(me_reducer *r)
{
    for (uint32_t i = 0; i < r->n; i++) {
        r->is_unused[i] = tensor_of(r, i)->accumulator == NULL;
    }
}

void me_reducer_prepare(me_reducer *r)
{
    if (!me_engine_is_ok(r->loop->e)) {
        return;
    }
    r->expects_hooks = true;
    r->next_bucket = 0;
    r->has_marked_unused = false;
    for (uint32_t b = 0; b < r->n_buckets; b++) {
        r->buckets[b].pending = r->buckets[b].end - r->buckets[b].begin;
    }
    memset(r->is_marked, 0, r->n * sizeof *r->is_marked);
    memcpy(r->hooks_left, r->hooks, r->n * sizeof *r->hooks);
    if (finds_unused(r)) {
        search_unused(r);
    }
}

/** What the watchdog has seen the end of goes as the next work is enqueued
 *  (ProcessGroupNCCL::workEnqueue()). */
static void reduce_bucket(const me_reducer *r, const me_ddp_bucket *bucket)
{
    tell(r, ME_COLLECTIVE_ALL_REDUCE, (me_dtype)bucket->gradients->dtype,
         me_numel(bucket->gradients));
    for (me_reducer *each = r->loop->reducers; each != NULL;
         each = each->next) {
        me_clear(r->loop->e, &each->shelf);
    }
}

static void reduce_used_map(const me_reducer *r)
{
    tell(r, ME_COLLECTIVE_ALL_REDUCE, ME_DTYPE_INT32, r->n);
}

/** mark_variable_ready_dense(): into the bucket. */
static void copy_to_bucket(me_reducer *r, uint32_t index)
{
    me_launch_kernel(r->loop->e, ME_KERNEL_COPY, 0,
                     2 * me_bytes(tensor_of(r, index)));
    point_into_bucket(r, index);
}

/** mark_variable_ready(): buckets are reduced in their order. */
static void mark_ready(me_reducer *r, uint32_t index)
{
    if (r->is_marked[index]) {
        fail_about(r, index,
                   "gets its gradient twice in a backward, which "
                   "DistributedDataParallel refuses without "
                   "torch.static_graph = true");
        return;
    }
    r->is_marked[index] = true;
    r->must_finalize = true;
    copy_to_bucket(r, index);
    r->buckets[r->bucket_of[index]].pending--;
    const bool was_open = r->next_bucket < r->n_buckets;
    while (r->next_bucket < r->n_buckets &&
           r->buckets[r->next_bucket].pending == 0) {
        reduce_bucket(r, &r->buckets[r->next_bucket++]);
    }
    if (was_open && r->next_bucket == r->n_buckets && finds_unused(r)) {
        reduce_used_map(r);
    }
}

static void mark_unused(me_reducer *r)
{
    r->has_marked_unused = true;
    for (uint32_t i = 0; i < r->n; i++) {
        if (r->is_unused[i]) {
            mark_ready(r, i);
        }
    }
}

static void push_ready(me_reducer *r, uint32_t index)
{
    if (should_rebuild(r) && r->n_ready < r->n) {
        r->ready[r->n_ready++] = index;
    }
}

/** autograd_hook() of a parameter whose gradient has come. */
static void on_gradient(me_reducer *r, uint32_t index)
{
    if (!r->has_begun) {
        r->has_begun = true;
        r->n_backwards++;
    }
    if (is_first_of_static(r)) {
        r->hooks[index]++;
        return;
    }
    if (!r->expects_hooks) {
        return;
    }
    if (!r->has_marked_unused) {
        mark_unused(r);
    }
    if (r->options->static_graph && r->hooks_left[index] > 0 &&
        --r->hooks_left[index] > 0) {
        return;
    }
    push_ready(r, index);
    mark_ready(r, index);
}

/** delay_all_reduce(): the first backward of a static graph shows what is used
 *  and reduces everything at its end. */
static void reduce_all(me_reducer *r)
{
    reduce_used_map(r);
    for (uint32_t i = 0; i < r->n; i++) {
        r->is_unused[i] = r->hooks[i] == 0;
        copy_to_bucket(r, i);
    }
    for (uint32_t b = 0; b < r->n_buckets; b++) {
        reduce_bucket(r, &r->buckets[b]);
    }
}

/** finalize_backward(): gradients come back out of the buckets, unless they are
 *  views of them. */
static void finalize(me_reducer *r)
{
    me_engine *e = r->loop->e;
    const me_phase phase = me_phase_set(e, ME_PHASE_BACKWARD);
    me_launch_stream_waits(e);
    for (uint32_t i = 0;
         i < r->n && !r->options->gradient_as_bucket_view && me_engine_is_ok(e);
         i++) {
        me_launch_kernel(e, ME_KERNEL_COPY, 0,
                         2 * me_bytes(tensor_of(r, r->order[i])));
    }
    me_phase_set(e, phase);
    r->expects_hooks = false;
    r->has_begun = false;
    r->must_finalize = false;
}

void me_reducer_end_backward(me_reducer *r)
{
    if (!me_engine_is_ok(r->loop->e) || !r->has_begun || !r->expects_hooks) {
        return;
    }
    if (is_first_of_static(r)) {
        reduce_all(r);
    } else if (r->next_bucket < r->n_buckets) {
        return; // a gradient never came: the next forward says so
    } else if (r->options->static_graph) {
        for (uint32_t i = 0; i < r->n; i++) {
            if (r->is_unused[i]) {
                push_ready(r, i);
            }
        }
    }
    finalize(r);
}

/** The hook of whichever reducer has the parameter. */
static void on_grad(void *self, me_engine *e, me_tensor *tensor)
{
    const me_loop *l = self;
    const uint32_t index = tensor->parameter->index;
    (void)e;
    for (me_reducer *r = l->reducers; r != NULL; r = r->next) {
        if (index >= r->first && index - r->first < r->n) {
            on_gradient(r, index - r->first);
        }
    }
}

me_reducer *me_reducer_create(me_loop *l, me_group_kind group, uint32_t first,
                              uint32_t n)
{
    me_engine *e = l->e;
    me_reducer *r = me_engine_alloc(e, 1, sizeof *r);
    if (r == NULL) {
        return NULL;
    }
    *r = (me_reducer){.loop = l,
                      .group = group,
                      .options = &l->config->torch,
                      .first = first,
                      .n = n};
    r->buckets = me_engine_alloc(e, (size_t)n + 1, sizeof *r->buckets);
    r->variables = me_engine_alloc(e, (size_t)n + 1, sizeof *r->variables);
    r->is_unused = me_engine_alloc(e, (size_t)n + 1, sizeof *r->is_unused);
    r->is_marked = me_engine_alloc(e, (size_t)n + 1, sizeof *r->is_marked);
    r->order = numbers(r);
    r->bucket_of = numbers(r);
    r->ready = numbers(r);
    r->hooks = numbers(r);
    r->hooks_left = numbers(r);
    for (uint32_t i = 0; i < n && me_engine_is_ok(e); i++) {
        r->variables[i] = l->parameters.parameters[first + i]->tensor;
        r->order[i] = i;
    }
    if (!me_engine_is_ok(e) || !has_one_dtype(r)) {
        return NULL;
    }
    const uint64_t given = r->options->bucket_bytes;
    if (finds_unused(r)) {
        assign_buckets(r, given != 0 ? given : FIRST_BUCKET_BYTES,
                       given != 0 ? given : BUCKET_BYTES);
    } else {
        assign_buckets(r, UINT64_MAX, UINT64_MAX);
    }
    reverse_buckets(r);
    make_buckets(r);
    if (r->options->find_unused_parameters) {
        make_used_map(r);
    }
    if (r->options->static_graph) {
        make_used_map(r);
    }
    r->next = l->reducers;
    l->reducers = r;
    me_tape_on_grad(e, on_grad, l);
    return r;
}

void me_reducer_fini(me_reducer *r)
{
    if (r == NULL) {
        return;
    }
    for (uint32_t b = 0; b < r->n_buckets; b++) {
        me_release(r->loop->e, r->buckets[b].gradients);
    }
    me_release(r->loop->e, r->shelf);
    me_release(r->loop->e, r->used_map);
}
