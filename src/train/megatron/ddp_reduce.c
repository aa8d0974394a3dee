/* SPDX-License-Identifier: BSD-3-Clause */
/* _ParamAndGradBucketGroup's start_grad_sync() and finish_grad_sync(). */
#include "base/size.h"
#include "ops/reduce.h"
#include "tensor/launch.h"
#include "train/megatron/bookkeeping.h"
#include "train/megatron/ddp_groups.h"
#include "train/megatron/trainer.h"

/** check_grads(): the norm of a bucket, looked at for NaN and infinity, or for its
 *  size. It takes the name of the bucket's before, which goes once the new one
 *  exists. */
static me_tensor *check_bucket(me_trainer *t, const me_ddp_buffer *buffer,
                               uint32_t bucket, me_tensor *before)
{
    me_engine *e = t->e;
    const me_bucket *b = &buffer->layout->buckets[bucket];
    const me_dtype dtype = t->config->train.grad_dtype;
    const uint64_t strides[ME_MAX_DIMS] = {1};
    me_tensor *view =
        me_alias(e, buffer->grad_buffer, ME_SHAPE(b->end - b->start), strides);
    me_tensor *norm = me_vector_norm(e, view, dtype);
    me_drop(e, view);
    me_drop(e, before);
    if (t->config->train.check_for_nan_in_loss_and_grad) {
        me_validate_scalar(t, me_dtype_bytes(dtype));
    }
    if (t->config->train.check_for_large_grads && t->iteration > 0) {
        me_launch_host_waits(e); // is_unexpectedly_large()
    }
    return norm;
}

/** Are sums those of reduce_scatter_with_fp32_accumulation()? */
static bool sums_in_fp32(const me_trainer *t)
{
    return me_config_scatters_gradients(t->config) &&
           t->config->optimizer.ddp_reduce_scatter_with_fp32_accumulation;
}

/** _ReduceScatterWithFP32AccumulationWorkHandle.wait(): what the bucket's ranks
 *  sent is summed in float32, copied to this rank's part, and let go of. */
static void sum_exchanged(me_trainer *t, const me_ddp_buffer *buffer,
                          uint32_t bucket)
{
    me_engine *e = t->e;
    me_tensor **exchanged = &buffer->exchanged[bucket];
    if (*exchanged == NULL) {
        return;
    }
    const uint64_t ranks = (uint64_t)t->comm->size[buffer->group];
    const uint64_t numel = me_numel(*exchanged) / ranks;
    const uint64_t bytes = me_dtype_bytes(t->config->train.grad_dtype);
    const me_frame frame = me_enter(e);
    if (t->config->optimizer.overlap_grad_reduce) {
        me_launch_stream_waits(e);
    }
    me_tensor *sum = me_empty(e, "sum", ME_DTYPE_FLOAT32, ME_SHAPE(numel));
    me_reduce(e, &(me_reduction){.inputs = ranks,
                                 .outputs = numel,
                                 .is_outer = true,
                                 .element_bytes = bytes,
                                 .accumulator_bytes = 4});
    me_launch_kernel(e, ME_KERNEL_ELEMENTWISE, numel,
                     me_size_mul(4 + bytes, numel));
    me_drop(e, sum);
    me_leave(e, frame, NULL);
    me_clear(e, exchanged);
}

/** reduce_scatter_with_fp32_accumulation(): every rank sends each its part of the
 *  bucket, (n) to (n). The sum is made at once, or when the work is waited for. */
static void exchange_bucket(me_trainer *t, const me_ddp_buffer *buffer,
                            uint32_t bucket)
{
    me_engine *e = t->e;
    const me_bucket *b = &buffer->layout->buckets[bucket];
    const uint64_t numel = b->end - b->start;
    const uint64_t ranks = (uint64_t)t->comm->size[buffer->group];
    const bool is_async = t->config->optimizer.overlap_grad_reduce;
    const me_frame frame = me_enter(e);
    buffer->exchanged[bucket] = me_retain(me_empty(
        e, "empty_like", t->config->train.grad_dtype, ME_SHAPE(numel)));
    me_communicate(e, t->comm,
                   (me_call){buffer->group, ME_COLLECTIVE_ALL_TO_ALL,
                             t->config->train.grad_dtype, numel / ranks, -1,
                             is_async});
    me_leave(e, frame, NULL);
    if (!is_async) {
        sum_exchanged(t, buffer, bucket);
    }
}

static void communicate_bucket(me_trainer *t, const me_ddp_buffer *buffer,
                               uint32_t bucket)
{
    const me_config *c = t->config;
    const me_bucket *b = &buffer->layout->buckets[bucket];
    const uint64_t numel = b->end - b->start;
    const uint64_t ranks = (uint64_t)t->comm->size[buffer->group];
    const bool scatters = me_config_scatters_gradients(c);
    const me_collective kind =
        scatters ? ME_COLLECTIVE_REDUCE_SCATTER : ME_COLLECTIVE_ALL_REDUCE;
    // gradient_scaling_factor: experts' too has all data-parallel ranks.
    if (t->comm->size[ME_GROUP_DATA_CONTEXT] > 1) {
        me_launch_kernel(
            t->e, ME_KERNEL_ELEMENTWISE, numel,
            me_size_mul(2 * me_dtype_bytes(c->train.grad_dtype), numel));
    }
    if (sums_in_fp32(t)) {
        exchange_bucket(t, buffer, bucket);
        return;
    }
    me_communicate(t->e, t->comm,
                   (me_call){buffer->group, kind, c->train.grad_dtype,
                             scatters ? numel / ranks : numel, -1,
                             c->optimizer.overlap_grad_reduce});
}

/** With several instances each sums its own gradients, and then ranks that hold
 *  the same shard add theirs up. */
static void communicate_instances(me_trainer *t, const me_ddp_buffer *buffer,
                                  uint32_t b)
{
    const uint64_t ranks = (uint64_t)t->comm->size[buffer->group];
    const me_bucket *bucket = &buffer->layout->buckets[b];
    me_communicate(t->e, t->comm,
                   (me_call){ME_GROUP_INTER_INSTANCE, ME_COLLECTIVE_ALL_REDUCE,
                             t->config->train.grad_dtype,
                             (bucket->end - bucket->start) / ranks, -1,
                             t->config->optimizer.overlap_grad_reduce});
}

/** @param self  the norm of the bucket before */
static void visit_check(me_trainer *t, const me_ddp_buffer *buffer,
                        uint32_t bucket, void *self)
{
    me_tensor **norm = self;
    *norm = check_bucket(t, buffer, bucket, *norm);
}

static void visit_communicate(me_trainer *t, const me_ddp_buffer *buffer,
                              uint32_t bucket, void *self)
{
    (void)self;
    communicate_bucket(t, buffer, bucket);
}

static void visit_instances(me_trainer *t, const me_ddp_buffer *buffer,
                            uint32_t bucket, void *self)
{
    (void)self;
    if (me_ddp_has_instances(t)) {
        communicate_instances(t, buffer, bucket);
    }
}

static void visit_sum(me_trainer *t, const me_ddp_buffer *buffer,
                      uint32_t bucket, void *self)
{
    (void)self;
    sum_exchanged(t, buffer, bucket);
}

void me_bucket_group_reduce(me_trainer *t, int32_t chunk, me_sharing sharing,
                            uint32_t group)
{
    const me_train_config *c = &t->config->train;
    const me_phase phase = me_phase_set(t->e, ME_PHASE_GRADIENT_REDUCTION);
    if (group > 0) {
        me_bucket_group_finish(t, chunk, sharing, group - 1);
    }
    const me_frame frame = me_enter(t->e);
    me_tensor *norm = NULL;
    if (c->check_for_nan_in_loss_and_grad || c->check_for_large_grads) {
        me_bucket_group_visit(t, chunk, sharing, group, visit_check, &norm);
    }
    me_leave(t->e, frame, NULL);
    me_bucket_group_visit(t, chunk, sharing, group, visit_communicate, NULL);
    me_bucket_group_visit(t, chunk, sharing, group, visit_instances, NULL);
    me_phase_set(t->e, phase);
}

void me_bucket_group_finish(me_trainer *t, int32_t chunk, me_sharing sharing,
                            uint32_t group)
{
    if (sums_in_fp32(t)) {
        me_bucket_group_visit(t, chunk, sharing, group, visit_sum, NULL);
    }
}
