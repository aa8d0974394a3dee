/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/communicate.h"

#include "base/size.h"
#include "ops/view.h"
#include "tensor/autograd.h"
#include "tensor/hooks.h"
#include "tensor/launch.h"

/** Bytes of the whole buffer: gathered or not yet scattered. */
static uint64_t buffer_bytes(const me_communicators *comm, const me_call *call)
{
    const uint64_t bytes =
        me_size_mul(call->count, me_dtype_bytes(call->dtype));
    const bool is_part = call->kind == ME_COLLECTIVE_ALL_GATHER ||
                         call->kind == ME_COLLECTIVE_REDUCE_SCATTER;
    return is_part ? me_size_mul(bytes, (uint64_t)comm->size[call->group])
                   : bytes;
}

/** What a side stream gathers waits for no kernel; what it reduces does, for
 *  those that make it. */
static bool is_ahead(const me_engine *e, const me_call *call)
{
    return call->kind == ME_COLLECTIVE_ALL_GATHER &&
           me_context_now(e)->stream == ME_STREAM_GATHER;
}

/** Sends and receives are told as the exchange that they are part of. */
static void tell(me_engine *e, const me_communicators *comm,
                 const me_call *call)
{
    if (call->kind == ME_COLLECTIVE_SEND || call->kind == ME_COLLECTIVE_RECV) {
        return;
    }
    me_launch_tell(e, (me_launch){.kind = ME_LAUNCH_COLLECTIVE,
                                  .collective = (uint8_t)call->kind,
                                  .group = (uint8_t)call->group,
                                  .is_async = call->is_async,
                                  .is_ahead = is_ahead(e, call),
                                  .bytes = buffer_bytes(comm, call)});
}

static void communicate(me_engine *e, const me_communicators *comm,
                        me_call call, bool is_lone)
{
    if (!me_engine_is_ok(e)) {
        return;
    }
    me_emit(e, &(me_event){
                   .kind = ME_EVENT_COLLECTIVE,
                   .collective = (uint8_t)call.kind,
                   .group = (uint8_t)call.group,
                   .dtype = (uint8_t)call.dtype,
                   .is_lone = is_lone,
                   .peer = call.peer,
                   .count = call.count,
               });
    tell(e, comm, &call);
    if (comm->self == NULL) {
        return;
    }
    me_diag diag = {.status = ME_OK};
    const me_status status =
        comm->call(comm->self, call.group, call.kind, call.dtype, call.count,
                   call.peer, &diag);
    if (status != ME_OK) {
        me_engine_fail(e, status, "%s", diag.text);
    }
}

me_group_kind me_mesh_group(const me_communicators *comm, me_group_kind kind)
{
    return comm->size[kind] == comm->size[ME_GROUP_WORLD] ? ME_GROUP_WORLD
                                                          : kind;
}

uint64_t me_storage_bytes(const me_tensor *x)
{
    return x->storage == NULL ? 0 : x->storage->bytes;
}

void me_communicate_c10d(me_engine *e, const me_communicators *comm,
                         me_c10d_call call)
{
    if (!me_is_listened_to(e) || !me_engine_is_ok(e)) {
        return;
    }
    me_tell_collective(
        e, &(me_collective_op){
               .name = me_c10d_name(call.op),
               .group = call.group,
               .group_size = comm->size[call.group],
               .peer = call.peer,
               .has_bytes = me_c10d_size_of(call.op) != ME_C10D_EXCLUDED,
               .bytes =
                   me_c10d_bytes(call.op, call.input_bytes, call.output_bytes),
           });
}

void me_communicate(me_engine *e, const me_communicators *comm, me_call call)
{
    communicate(e, comm, call, false);
}

void me_communicate_lone(me_engine *e, const me_communicators *comm,
                         me_call call)
{
    communicate(e, comm, call, true);
}

void me_communicate_group(me_engine *e, const me_communicators *comm,
                          bool begin)
{
    // What was begun is ended after a failure too: the section belongs to the
    // thread and would outlive this rank.
    const bool is_ok = me_engine_is_ok(e);
    if ((!is_ok && begin) || comm->self == NULL) {
        return;
    }
    me_diag diag = {.status = ME_OK};
    const me_status status = comm->group_call(comm->self, begin, &diag);
    if (is_ok && status != ME_OK) {
        me_engine_fail(e, status, "%s", diag.text);
    }
}

/** Each call by itself. */
static void exchange_each(me_engine *e, const me_communicators *comm,
                          const me_uneven_exchange *x)
{
    const int32_t size = comm->size[x->group];
    for (int32_t i = 1; i < size; i++) {
        const int32_t peer = (comm->index[x->group] + i) % size;
        me_call call = {x->group, ME_COLLECTIVE_SEND,
                        x->dtype, me_size_mul(x->sent[peer], x->width),
                        peer,     false};
        if (x->sent[peer] > 0) {
            communicate(e, comm, call, false);
        }
        call.kind = ME_COLLECTIVE_RECV;
        call.count = me_size_mul(x->received[peer], x->width);
        if (x->received[peer] > 0) {
            communicate(e, comm, call, false);
        }
    }
}

/** Calls and elements of one direction. */
static me_exchange_sum sum_rows(const me_communicators *comm,
                                const me_uneven_exchange *x,
                                const uint64_t *rows)
{
    me_exchange_sum sum = {.calls = 0};
    uint64_t elements = 0;
    for (int32_t i = 0; i < comm->size[x->group]; i++) {
        const bool is_call = i != comm->index[x->group] && rows[i] > 0;
        sum.calls += is_call;
        elements = me_size_add(elements, is_call ? rows[i] : 0);
    }
    sum.count = me_size_mul(elements, x->width);
    return sum;
}

/** Is there room for all its bytes, and nobody who has to see each call? The
 *  first exchange of a group may connect its members: who does so sees each. */
static bool is_told_whole(const me_engine *e, const me_communicators *comm,
                          const me_uneven_exchange *x,
                          const me_exchange_event *event)
{
    const uint64_t elements =
        me_size_add(event->sent.count, event->received.count);
    return (comm->self == NULL || comm->exchange != NULL) &&
           me_size_is_valid(me_size_mul(elements, me_dtype_bytes(x->dtype))) &&
           me_engine_takes_exchange(e, x->group);
}

static void call_exchange(me_engine *e, const me_communicators *comm,
                          const me_uneven_exchange *x)
{
    if (comm->self == NULL) {
        return;
    }
    me_diag diag = {.status = ME_OK};
    const me_status status = comm->exchange(
        comm->self, x->group, x->dtype, x->width, x->sent, x->received, &diag);
    if (status != ME_OK) {
        me_engine_fail(e, status, "%s", diag.text);
    }
}

void me_communicate_exchange(me_engine *e, const me_communicators *comm,
                             const me_uneven_exchange *exchange)
{
    const me_uneven_exchange *x = exchange;
    if (!me_engine_is_ok(e)) {
        return;
    }
    me_exchange_event event = {.group = (uint8_t)x->group,
                               .dtype = (uint8_t)x->dtype};
    event.sent = sum_rows(comm, x, x->sent);
    event.received = sum_rows(comm, x, x->received);
    me_communicate_group(e, comm, true);
    if (is_told_whole(e, comm, x, &event)) {
        me_emit_exchange(e, &event);
        call_exchange(e, comm, x);
    } else {
        exchange_each(e, comm, x);
        const uint32_t others = (uint32_t)comm->size[x->group] - 1;
        if (event.sent.calls == others && event.received.calls == others) {
            me_engine_has_exchanged(e, x->group);
        }
    }
    me_communicate_group(e, comm, false);
}

bool me_communicate_can_repeat(const me_communicators *comm)
{
    return comm->self == NULL ||
           (comm->position != NULL && comm->repeat != NULL);
}

uint64_t me_communicate_position(const me_communicators *comm)
{
    return comm->self == NULL ? 0 : comm->position(comm->self);
}

void me_communicate_repeat(me_engine *e, const me_communicators *comm,
                           uint64_t begin, uint64_t end)
{
    if (!me_engine_is_ok(e) || comm->self == NULL) {
        return;
    }
    const me_status status = comm->repeat(comm->self, begin, end);
    if (status != ME_OK) {
        me_engine_fail(e, status, "no host memory for calls");
    }
}

void me_all_reduce(me_engine *e, const me_communicators *comm,
                   me_group_kind group, const me_tensor *x)
{
    me_communicate(e, comm,
                   (me_call){group, ME_COLLECTIVE_ALL_REDUCE, x->dtype,
                             me_numel(x), -1, false});
}

/** A new communication buffer like @p x with @p rows rows. */
static me_tensor *buffer_like(me_engine *e, const char *op, const me_tensor *x,
                              uint64_t rows)
{
    me_shape shape = x->shape;
    shape.dim[0] = rows;
    const me_category category = me_category_set(e, ME_CATEGORY_COMMUNICATION);
    me_tensor *y = me_empty(e, op, x->dtype, shape);
    me_category_set(e, category);
    return y;
}

static const me_op copy_kernel = {"contiguous",
                                  .cost = ME_COST(STRIDED, 0, 1, 1)};

/** `input_.contiguous()`, which is gone once the call is made. */
static void communicate_dense(me_engine *e, const me_communicators *comm,
                              const me_tensor *x, me_call call)
{
    me_tensor *dense = me_tensor_is_contiguous(x)
                           ? NULL
                           : me_kernel_dense(e, &copy_kernel, ME_TENSORS(x));
    me_communicate(e, comm, call);
    me_drop(e, dense);
}

me_tensor *me_all_gather_first(me_engine *e, const me_communicators *comm,
                               me_group_kind group, const me_tensor *x)
{
    const uint64_t size = (uint64_t)comm->size[group];
    me_tensor *y =
        buffer_like(e, "all_gather", x, me_size_mul(me_dim(x, 0), size));
    communicate_dense(e, comm, x,
                      (me_call){group, ME_COLLECTIVE_ALL_GATHER, x->dtype,
                                me_numel(x), -1, false});
    return y;
}

static me_tensor *reduce_scatter(me_engine *e, const me_communicators *comm,
                                 me_group_kind group, const me_tensor *x,
                                 bool is_async)
{
    const uint64_t size = (uint64_t)comm->size[group];
    me_tensor *y = buffer_like(e, "reduce_scatter", x, me_dim(x, 0) / size);
    communicate_dense(e, comm, x,
                      (me_call){group, ME_COLLECTIVE_REDUCE_SCATTER, x->dtype,
                                me_numel(y), -1, is_async});
    return y;
}

me_tensor *me_reduce_scatter_first(me_engine *e, const me_communicators *comm,
                                   me_group_kind group, const me_tensor *x)
{
    return reduce_scatter(e, comm, group, x, false);
}

me_tensor *me_reduce_scatter_first_async(me_engine *e,
                                         const me_communicators *comm,
                                         me_group_kind group,
                                         const me_tensor *x)
{
    return reduce_scatter(e, comm, group, x, true);
}

static const me_communicators *communicators_of(const me_node *node)
{
    return node->data.context;
}

static me_node *record_region(me_engine *e, const me_op *op,
                              const me_communicators *comm, me_tensor *x)
{
    me_node *node = me_record1(e, op, x);
    if (node != NULL) {
        node->data.context = comm;
    }
    return node;
}

static void copy_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                          me_tensor **gx)
{
    const me_communicators *comm = communicators_of(node);
    if (comm->size[ME_GROUP_TENSOR] > 1) {
        me_all_reduce(e, comm, ME_GROUP_TENSOR, gy[0]);
    }
    gx[0] = gy[0];
}

static const me_op copy_op =
    ME_NODE("_CopyToModelParallelRegionBackward", copy_backward);

me_tensor *me_copy_to_tensor_region(me_engine *e, const me_communicators *comm,
                                    me_tensor *x)
{
    me_node *node = record_region(e, &copy_op, comm, x);
    me_tensor *y = me_alias(e, x, x->shape, x->strides);
    y->is_view = x->is_view;
    return me_output(e, node, y);
}

static void reduce_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                            me_tensor **gx)
{
    (void)e;
    (void)node;
    gx[0] = gy[0];
}

static const me_op reduce_op = {.node =
                                    "_ReduceFromModelParallelRegionBackward",
                                .backward = reduce_backward};

me_tensor *me_reduce_from_tensor_region(me_engine *e,
                                        const me_communicators *comm,
                                        me_tensor *x)
{
    if (comm->size[ME_GROUP_TENSOR] > 1) {
        me_all_reduce(e, comm, ME_GROUP_TENSOR, x);
    }
    me_node *node = record_region(e, &reduce_op, comm, x);
    return me_output(e, node, x);
}

static void gather_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                            me_tensor **gx)
{
    gx[0] =
        me_all_gather_first(e, communicators_of(node), ME_GROUP_TENSOR, gy[0]);
}

static const me_op reduce_scatter_op =
    ME_NODE("_ReduceScatterToSequenceParallelRegionBackward", gather_backward);

me_tensor *me_reduce_scatter_to_sequence_region(me_engine *e,
                                                const me_communicators *comm,
                                                me_tensor *x)
{
    me_node *node = record_region(e, &reduce_scatter_op, comm, x);
    return me_output(e, node,
                     me_reduce_scatter_first(e, comm, ME_GROUP_TENSOR, x));
}

static void scatter_sum_backward(me_engine *e, me_node *node,
                                 me_tensor *const *gy, me_tensor **gx)
{
    gx[0] = me_reduce_scatter_first(e, communicators_of(node), ME_GROUP_TENSOR,
                                    gy[0]);
}

static const me_op gather_rows_op =
    ME_NODE("_GatherFromSequenceParallelRegionBackward", scatter_sum_backward);

me_tensor *me_gather_from_sequence_region(me_engine *e,
                                          const me_communicators *comm,
                                          me_tensor *x)
{
    me_node *node = record_region(e, &gather_rows_op, comm, x);
    return me_output(e, node, me_all_gather_first(e, comm, ME_GROUP_TENSOR, x));
}

static const me_op scatter_op = {.node =
                                     "_ScatterToSequenceParallelRegionBackward",
                                 .backward = gather_backward};

me_tensor *me_scatter_to_sequence_region(me_engine *e,
                                         const me_communicators *comm,
                                         me_tensor *x)
{
    me_node *node = record_region(e, &scatter_op, comm, x);
    me_shape shape = x->shape;
    shape.dim[0] /= (uint64_t)comm->size[ME_GROUP_TENSOR];
    me_tensor *rows = me_alias(e, x, shape, x->strides);
    me_tensor *dense = me_contiguous(e, rows);
    if (dense != rows) {
        me_drop(e, rows);
    }
    return me_output(e, node, dense);
}

/** @p x with its last dimension times @p factor over @p divisor, copied. */
static me_tensor *regroup_last(me_engine *e, const me_tensor *x,
                               uint64_t factor, uint64_t divisor)
{
    me_shape shape = x->shape;
    shape.dim[0] = me_size_mul(shape.dim[0], divisor) / factor;
    if (me_engine_is_ok(e)) {
        shape.dim[shape.ndim - 1] =
            me_size_mul(shape.dim[shape.ndim - 1], factor) / divisor;
    }
    me_launch_kernel(e, ME_KERNEL_STRIDED, 0, 2 * me_bytes(x));
    return me_empty(e, "cat", x->dtype, shape);
}

/** The last dimension's parts below each other, then reduce-scattered. */
static void gather_last_backward(me_engine *e, me_node *node,
                                 me_tensor *const *gy, me_tensor **gx)
{
    const me_communicators *comm = communicators_of(node);
    const uint64_t size = (uint64_t)comm->size[ME_GROUP_TENSOR];
    me_tensor *parts = regroup_last(e, gy[0], 1, size);
    gx[0] = me_reduce_scatter_first(e, comm, ME_GROUP_TENSOR, parts);
}

static const me_op gather_last_op =
    ME_NODE("_AllGatherFromTensorParallelRegionBackward", gather_last_backward);

/** This rank's columns, dense: copied unless there is one row. */
static void split_last_backward(me_engine *e, me_node *node,
                                me_tensor *const *gy, me_tensor **gx)
{
    const me_communicators *comm = communicators_of(node);
    const uint64_t columns =
        me_dim(gy[0], -1) / (uint64_t)comm->size[ME_GROUP_TENSOR];
    const uint64_t begin = (uint64_t)comm->index[ME_GROUP_TENSOR] * columns;
    gx[0] = me_contiguous(e, me_slice(e, gy[0], -1, begin, begin + columns));
}

static const me_op gather_op = {.node =
                                    "_GatherFromModelParallelRegionBackward",
                                .backward = split_last_backward};

/** _gather_along_last_dim(): rows of all ranks, then their columns beside each
 *  other. */
static me_tensor *gather_columns(me_engine *e, const me_communicators *comm,
                                 me_node *node, me_tensor *x)
{
    const uint64_t size = (uint64_t)comm->size[ME_GROUP_TENSOR];
    const me_frame frame = me_enter(e);
    me_tensor *rows = me_all_gather_first(e, comm, ME_GROUP_TENSOR, x);
    me_tensor *y = regroup_last(e, rows, size, 1);
    me_drop(e, rows);
    me_leave(e, frame, y);
    return me_output(e, node, y);
}

me_tensor *me_gather_from_tensor_region(me_engine *e,
                                        const me_communicators *comm,
                                        me_tensor *x)
{
    return gather_columns(e, comm, record_region(e, &gather_op, comm, x), x);
}

me_tensor *me_gather_last_from_tensor_region(me_engine *e,
                                             const me_communicators *comm,
                                             me_tensor *x)
{
    return gather_columns(e, comm, record_region(e, &gather_last_op, comm, x),
                          x);
}
