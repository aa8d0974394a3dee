/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/te_exchange.h"

#include "base/size.h"
#include "nn/megatron/te_context_corrections.h"
#include "nn/megatron/te_state.h"
#include "ops/compiled.h"
#include "tensor/launch.h"

/** reorder_seq_chunks_for_a2a_before_attn() or the way back, both compiled: chunks
 *  of @p x in another order. */
static me_tensor *reorder_chunks(me_nn *nn, const char *op,
                                 me_compiled_kernel kernel, const me_tensor *x,
                                 me_shape shape)
{
    me_engine *e = nn->e;
    me_tensor *y = me_empty(e, op, (me_dtype)x->dtype, shape);
    if (me_te_compiles(nn)) {
        me_compiled_run(e, kernel, x);
    }
    me_launch_kernel(e, ME_KERNEL_STRIDED, 0, 2 * me_bytes(x));
    return y;
}

/** A copy of @p x in another order. */
static me_tensor *copy(me_engine *e, const char *op, const me_tensor *x,
                       me_shape shape)
{
    me_tensor *y = me_empty(e, op, (me_dtype)x->dtype, shape);
    me_launch_kernel(e, ME_KERNEL_STRIDED, 0, 2 * me_bytes(x));
    return y;
}

/** all_to_all_single(): kernels run on until the stream waits. */
static me_tensor *send(me_nn *nn, me_group_kind group, const me_tensor *x)
{
    me_tensor *y = me_empty(nn->e, "empty_like", (me_dtype)x->dtype, x->shape);
    me_communicate(
        nn->e, nn->comm,
        (me_call){group, ME_COLLECTIVE_ALL_TO_ALL, (me_dtype)x->dtype,
                  me_numel(x) / (uint64_t)nn->comm->size[group], -1, true});
    return y;
}

static me_shape exchanged_shape(const me_tensor *x, me_te_exchange_way way,
                                uint64_t ranks)
{
    me_shape shape = x->shape;
    if (way == ME_TE_TO_HEADS) {
        shape.dim[0] = me_size_mul(shape.dim[0], ranks);
        shape.dim[2] /= ranks;
    } else {
        shape.dim[0] /= ranks;
        shape.dim[2] = me_size_mul(shape.dim[2], ranks);
    }
    return shape;
}

/** What has arrived, on the second stream: its chunks or its heads in order. */
static me_tensor *put_in_order(me_nn *nn, const me_tensor *arrived,
                               me_shape shape, bool is_to_heads)
{
    me_engine *e = nn->e;
    const uint8_t stream = me_stream_set(e, ME_STREAM_CONTEXT);
    me_launch_stream_waits(e);
    me_tensor *y =
        is_to_heads ? reorder_chunks(nn, "a2a_output",
                                     ME_COMPILED_CHUNKS_BEFORE, arrived, shape)
                    : copy(e, "a2a_output", arrived, shape);
    me_stream_set(e, stream);
    return y;
}

static void drop_last_first(me_engine *e, uint32_t count, me_tensor **x)
{
    for (uint32_t i = count; i > 0; i--) {
        me_drop(e, x[i - 1]);
    }
}

void me_te_exchange(me_nn *nn, me_group_kind group, me_te_exchange_way way,
                    uint32_t count, me_tensor **tensors)
{
    me_engine *e = nn->e;
    if (!me_engine_is_ok(e)) {
        return;
    }
    const uint64_t ranks = (uint64_t)nn->comm->size[group];
    const bool is_to_heads = way == ME_TE_TO_HEADS;
    me_te_chunk_ids(nn, is_to_heads, ranks);
    const me_frame frame = me_enter(e);
    me_tensor *sent[ME_TE_EXCHANGED] = {NULL};
    me_tensor *arrived[ME_TE_EXCHANGED] = {NULL};
    me_tensor *made[ME_TE_EXCHANGED] = {NULL};
    for (uint32_t i = 0; i < count + 2; i++) {
        if (i > 0 && i < count + 1) {
            arrived[i - 1] = send(nn, group, sent[i - 1]);
        }
        if (!is_to_heads && i < count) {
            sent[i] = reorder_chunks(nn, "a2a_input", ME_COMPILED_CHUNKS_AFTER,
                                     tensors[i], tensors[i]->shape);
        }
        if (i > 1) {
            made[i - 2] = put_in_order(
                nn, arrived[i - 2], exchanged_shape(tensors[i - 2], way, ranks),
                is_to_heads);
        }
        if (is_to_heads && i < count) {
            sent[i] = copy(e, "a2a_input", tensors[i], tensors[i]->shape);
        }
    }
    drop_last_first(e, count, sent);
    drop_last_first(e, count, arrived);
    me_leave_with(e, frame, count, made);
    for (uint32_t i = 0; i < count; i++) {
        tensors[i] = made[i];
    }
}
