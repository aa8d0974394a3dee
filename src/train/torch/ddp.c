/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/torch/ddp.h"

#include "base/alloc.h"
#include "base/size.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"

/** The wrapper of one model. */
typedef struct wrapper {
    me_loop *loop;
    me_parameter **ready; /**< in the order of the first backward; owned */
    uint32_t n_ready;
    uint32_t *bucket_end; /**< of each bucket, in `ready`; owned */
    me_tensor **buckets;  /**< owned */
    uint32_t n_buckets;
    me_tensor *old_bucket; /**< of all parameters; until the first gradient of
                                the second backward */
    uint32_t n_arrived;    /**< gradients of this backward */
    bool is_rebuilt;
} wrapper;

/** Bytes at which a bucket is full: the first one early, so that reducing can
 *  begin (kDefaultFirstBucketBytes, bucket_cap_mb = 25), and pieces in which
 *  parameters are broadcast. */
static const uint64_t FIRST_BUCKET_BYTES = UINT64_C(1) << 20;
static const uint64_t BUCKET_BYTES = UINT64_C(25) << 20;
static const uint64_t BROADCAST_BYTES = UINT64_C(250) << 20;

static void tell(me_loop *l, me_collective kind, me_dtype dtype, uint64_t count)
{
    me_communicate(l->e, l->comm,
                   (me_call){ME_GROUP_WORLD, kind, dtype, count,
                             kind == ME_COLLECTIVE_BROADCAST ? 0 : -1,
                             kind == ME_COLLECTIVE_ALL_REDUCE});
}

static uint64_t bytes_of(const me_parameter *parameter)
{
    return me_bytes(parameter->tensor);
}

/** _verify_param_shape_across_processes(): the number of parameters from every
 *  rank, then the shapes and strides of rank 0. */
static void verify_shapes(me_loop *l)
{
    me_engine *e = l->e;
    const uint64_t ranks = (uint64_t)l->comm->size[ME_GROUP_WORLD];
    uint64_t extents = 0;
    for (uint32_t i = 0; i < l->parameters.count; i++) {
        const me_shape *shape = &l->parameters.parameters[i]->shape;
        extents += 2 * (uint64_t)shape->ndim;
    }
    const me_frame frame = me_enter(e);
    me_empty(e, "param_size", ME_DTYPE_INT64, ME_SHAPE(1));
    for (uint64_t i = 0; i < ranks; i++) {
        me_empty(e, "param_sizes", ME_DTYPE_INT64, ME_SHAPE(1));
    }
    me_drop(e, me_empty(e, "all_gather", ME_DTYPE_INT64, ME_SHAPE(ranks)));
    tell(l, ME_COLLECTIVE_ALL_GATHER, ME_DTYPE_INT64, 1);
    me_drop(e, me_empty(e, "metadata", ME_DTYPE_INT64, ME_SHAPE(extents)));
    tell(l, ME_COLLECTIVE_BROADCAST, ME_DTYPE_INT64, extents);
    me_leave(e, frame, NULL);
}

/** Broadcasts that are under way together (broadcast_coalesced() of
 *  c10d/comm.cpp): the oldest ends before one more begins. */
enum {
    BROADCASTS_IN_FLIGHT = 2
};

/** _sync_module_states(): parameters of rank 0, flattened piece by piece. */
static void broadcast_parameters(me_loop *l)
{
    me_engine *e = l->e;
    const uint32_t n = l->parameters.count;
    me_tensor *in_flight[BROADCASTS_IN_FLIGHT] = {NULL};
    uint32_t oldest = 0;
    for (uint32_t i = 0; i < n && me_engine_is_ok(e);) {
        const me_dtype dtype =
            (me_dtype)l->parameters.parameters[i]->tensor->dtype;
        uint64_t bytes = 0;
        do {
            bytes = me_size_add(bytes, bytes_of(l->parameters.parameters[i]));
            i++;
        } while (i < n && bytes < BROADCAST_BYTES);
        me_clear(e, &in_flight[oldest]);
        const me_frame frame = me_enter(e);
        in_flight[oldest] =
            me_retain(me_scratch(e, "broadcast_coalesced", bytes));
        tell(l, ME_COLLECTIVE_BROADCAST, dtype, bytes / me_dtype_bytes(dtype));
        me_leave(e, frame, NULL);
        oldest = (oldest + 1) % BROADCASTS_IN_FLIGHT;
    }
    for (uint32_t i = 0; i < BROADCASTS_IN_FLIGHT; i++) {
        me_clear(e, &in_flight[(oldest + i) % BROADCASTS_IN_FLIGHT]);
    }
}

static me_tensor *bucket(me_loop *l, uint64_t bytes)
{
    return me_keep(l->e, "bucket", ME_CATEGORY_COMMUNICATION, ME_DTYPE_UINT8,
                   ME_SHAPE(bytes));
}

/** Reduce a bucket once all its gradients are there. */
static void reduce(const wrapper *ddp, uint32_t begin, uint32_t end)
{
    uint64_t count = 0;
    for (uint32_t i = begin; i < end; i++) {
        count = me_size_add(count, ddp->ready[i]->numel);
    }
    tell(ddp->loop, ME_COLLECTIVE_ALL_REDUCE,
         (me_dtype)ddp->ready[begin]->tensor->dtype, count);
}

/** autograd_hook(): gradients come in the same order every time. */
static void on_grad(void *self, me_engine *e, me_tensor *parameter)
{
    wrapper *ddp = self;
    me_launch_kernel(e, ME_KERNEL_COPY, 0, 2 * me_bytes(parameter));
    if (!ddp->is_rebuilt) {
        if (ddp->n_ready < ddp->loop->parameters.count) {
            ddp->ready[ddp->n_ready++] = parameter->parameter;
        }
        if (ddp->n_ready == ddp->loop->parameters.count) {
            reduce(ddp, 0, ddp->n_ready);
        }
        return;
    }
    me_clear(e, &ddp->old_bucket);
    ddp->n_arrived++;
    for (uint32_t b = 0; b < ddp->n_buckets; b++) {
        if (ddp->bucket_end[b] == ddp->n_arrived) {
            reduce(ddp, b == 0 ? 0 : ddp->bucket_end[b - 1], ddp->n_arrived);
        }
    }
}

static void *wrap(me_loop *l)
{
    const size_t n = (size_t)l->parameters.count + 1;
    wrapper *ddp = me_engine_alloc(l->e, 1, sizeof *ddp);
    if (ddp == NULL) {
        return NULL;
    }
    ddp->loop = l;
    ddp->ready = me_alloc(n, sizeof(me_parameter *), "ddp.ready");
    ddp->bucket_end = me_alloc(n, sizeof(uint32_t), "ddp.buckets");
    ddp->buckets = me_alloc(n, sizeof(me_tensor *), "ddp.buckets");
    if (ddp->ready == NULL || ddp->bucket_end == NULL || ddp->buckets == NULL) {
        me_engine_fail(l->e, ME_ERR_NOMEM, "no host memory for buckets");
        return ddp;
    }
    verify_shapes(l);
    broadcast_parameters(l);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < l->parameters.count; i++) {
        bytes = me_size_add(bytes, bytes_of(l->parameters.parameters[i]));
    }
    ddp->old_bucket = bucket(l, bytes);
    me_tape_on_grad(l->e, on_grad, ddp);
    return ddp;
}

/** compute_bucket_assignment_by_size(). @return bytes of the bucket */
static uint64_t fill_bucket(const wrapper *ddp, uint32_t begin, uint64_t limit,
                            uint32_t *end_out)
{
    uint64_t bytes = 0;
    uint32_t end = begin;
    while (end < ddp->n_ready && bytes < limit) {
        bytes = me_size_add(bytes, bytes_of(ddp->ready[end]));
        end++;
    }
    *end_out = end;
    return bytes;
}

/** The second time: buckets in the order in which gradients came. */
static void pre_forward(void *self)
{
    wrapper *ddp = self;
    me_loop *l = ddp->loop;
    me_engine *e = l->e;
    ddp->n_arrived = 0;
    me_launch_host(e, ME_HOST_DDP);
    if (ddp->is_rebuilt || ddp->n_ready == 0 || !me_engine_is_ok(e)) {
        return;
    }
    ddp->is_rebuilt = true;
    uint64_t bytes[2] = {0};
    for (uint32_t at = 0; at < ddp->n_ready;) {
        (void)fill_bucket(ddp, at, at == 0 ? FIRST_BUCKET_BYTES : BUCKET_BYTES,
                          &at);
        ddp->bucket_end[ddp->n_buckets++] = at;
    }
    /* sync_bucket_indices(): rank 0's assignment, as numbers. */
    bytes[0] = 4 * ((uint64_t)ddp->n_ready + 1);
    bytes[1] = 4 * (uint64_t)ddp->n_buckets;
    const me_frame frame = me_enter(e);
    me_tensor *indices = me_scratch(e, "bucket_indices", bytes[0]);
    tell(l, ME_COLLECTIVE_BROADCAST, ME_DTYPE_INT32, bytes[0] / 4);
    me_tensor *sizes = me_scratch(e, "bucket_sizes", bytes[1]);
    tell(l, ME_COLLECTIVE_BROADCAST, ME_DTYPE_INT32, bytes[1] / 4);
    me_drop(e, sizes);
    me_drop(e, indices);
    me_leave(e, frame, NULL);
    for (uint32_t b = 0; b < ddp->n_buckets; b++) {
        uint32_t end = 0;
        const uint32_t begin = b == 0 ? 0 : ddp->bucket_end[b - 1];
        ddp->buckets[b] = bucket(
            l, fill_bucket(ddp, begin,
                           b == 0 ? FIRST_BUCKET_BYTES : BUCKET_BYTES, &end));
    }
}

/** finalize_backward(): gradients come back out of the buckets. */
static void end_backward(void *self)
{
    const wrapper *ddp = self;
    me_engine *e = ddp->loop->e;
    const me_phase phase = me_phase_set(e, ME_PHASE_BACKWARD);
    me_launch_stream_waits(e);
    for (uint32_t i = 0; i < ddp->n_ready; i++) {
        me_launch_kernel(e, ME_KERNEL_COPY, 0, 2 * bytes_of(ddp->ready[i]));
    }
    me_phase_set(e, phase);
}

static void unwrap(void *self)
{
    wrapper *ddp = self;
    if (ddp == NULL) {
        return;
    }
    for (uint32_t b = 0; b < ddp->n_buckets; b++) {
        me_release(ddp->loop->e, ddp->buckets[b]);
    }
    me_release(ddp->loop->e, ddp->old_bucket);
    me_free(ddp->ready);
    me_free(ddp->bucket_end);
    me_free(ddp->buckets);
}

const me_wrapper me_ddp_wrapper_row = {
    .wrap = wrap,
    .pre_forward = pre_forward,
    .end_backward = end_backward,
    .unwrap = unwrap,
};
