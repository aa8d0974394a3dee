/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/size.h"
#include "nn/megatron/te_context.h"
#include "nn/megatron/te_context_corrections.h"
#include "nn/megatron/te_exchange.h"
#include "nn/megatron/te_state.h"
#include "ops/te_fused_attention.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"
#include "tensor/saved_hooks.h"

enum {
    RING_SAVED_QUERY,
    RING_SAVED_KEY_VALUE, /**< of the last step, one after the other */
    RING_SAVED_OUTPUT,
    RING_SAVED_STATISTICS,
    RING_SAVED_RNG = ME_MAX_SAVED /**< of each step */
};

/** Whose keys and values a rank meets one after the other. */
typedef struct ring {
    me_nn *nn;
    me_group_kind group;
    me_group_kind
        heads; /**< that deals out heads before; ME_GROUP_COUNT: none */
    int32_t size;
    int32_t rank;
} ring;

static ring ring_of(me_nn *nn, bool is_hierarchical)
{
    const me_group_kind group =
        is_hierarchical ? ME_GROUP_CONTEXT_RING : ME_GROUP_CONTEXT;
    return (ring){
        .nn = nn,
        .group = group,
        .heads = is_hierarchical ? ME_GROUP_CONTEXT_HEADS : ME_GROUP_COUNT,
        .size = nn->comm->size[group],
        .rank = nn->comm->index[group],
    };
}

/** Which rows of queries and of keys a step is about. */
typedef enum section {
    SECTION_DIAGONAL, /**< the rank's own keys, masked */
    SECTION_LOWER,    /**< an earlier rank's: their first half is seen by all */
    SECTION_UPPER     /**< a later rank's: the second half sees all of them */
} section;

static section section_of(const ring *r, int32_t step)
{
    return step == 0         ? SECTION_DIAGONAL
           : step <= r->rank ? SECTION_LOWER
                             : SECTION_UPPER;
}

static me_te_mask mask_of(section s)
{
    return s == SECTION_DIAGONAL ? ME_TE_MASK_CAUSAL : ME_TE_MASK_NONE;
}

/** `batch_p2p_comm` of context_parallel.py. */
static bool is_batched(const ring *r)
{
    const me_card *card = me_engine_card(r->nn->e);
    return card->te.batches_exchanges ||
           (r->size == 2 && !card->has_lone_pairs);
}

/** One rank's send and receive of @p count elements; kernels run on meanwhile. It
 *  takes as long as one of the steps of a gather's ring. */
static void go_round(const ring *r, me_dtype dtype, uint64_t count,
                     bool is_back)
{
    me_engine *e = r->nn->e;
    const me_communicators *comm = r->nn->comm;
    const int32_t next = (r->rank + 1) % r->size;
    const int32_t previous = (r->rank + r->size - 1) % r->size;
    const me_call sides[2] = {
        {r->group, ME_COLLECTIVE_SEND, dtype, count, is_back ? previous : next,
         true},
        {r->group, ME_COLLECTIVE_RECV, dtype, count, is_back ? next : previous,
         true},
    };
    const int first = r->rank % 2;
    const bool at_once = is_batched(r);
    if (at_once) {
        me_communicate_group(e, comm, true);
    }
    for (int i = 0; i < 2; i++) {
        (at_once ? me_communicate
                 : me_communicate_lone)(e, comm, sides[(first + i) % 2]);
    }
    if (at_once) {
        me_communicate_group(e, comm, false);
    }
    const uint64_t bytes = me_size_mul(count, me_dtype_bytes(dtype));
    const uint64_t others = me_max_u64(1, (uint64_t)r->size - 1);
    me_launch_tell(e, (me_launch){.kind = ME_LAUNCH_COLLECTIVE,
                                  .collective = ME_COLLECTIVE_ALL_GATHER,
                                  .group = (uint8_t)r->group,
                                  .is_async = true,
                                  .bytes = me_size_add(bytes, bytes / others)});
}

/** The first rows of @p x, all or half of them. */
static me_tensor *rows_of(me_engine *e, const me_tensor *x, bool is_half)
{
    me_shape shape = x->shape;
    shape.dim[0] = is_half ? shape.dim[0] / 2 : shape.dim[0];
    return me_alias(e, x, shape, x->strides);
}

/** Part of a buffer of keys and values, as a tensor of @p shape. */
static me_tensor *part_of(me_engine *e, const me_tensor *buffer, me_shape shape)
{
    uint64_t strides[ME_MAX_DIMS];
    me_strides_contiguous(&shape, strides);
    return me_alias(e, buffer, shape, strides);
}

/** The rows that a section is about. */
static void parts_of(me_engine *e, const me_tensor *query,
                     const me_tensor *buffer, const me_shape shapes[2],
                     section s, me_tensor *parts_out[3])
{
    parts_out[0] = rows_of(e, query, s == SECTION_UPPER);
    for (int i = 0; i < 2; i++) {
        me_shape shape = shapes[i];
        shape.dim[0] = s == SECTION_LOWER ? shape.dim[0] / 2 : shape.dim[0];
        parts_out[1 + i] = part_of(e, buffer, shape);
    }
}

/** What the steps of a forward make. */
typedef struct steps {
    me_tensor **buffers; /**< keys and values, owned as a list */
    me_te_attention_made *made;
    me_tensor *statistics; /**< of all steps so far */
} steps;

/** Steps go to two streams in turn. */
static uint8_t stream_of(int32_t step)
{
    return step % 2 == 0 ? ME_STREAM_DEFAULT : ME_STREAM_CONTEXT;
}

static void forward_step(const ring *r, me_tensor *const qkv[3], int32_t step,
                         steps *s)
{
    me_engine *e = r->nn->e;
    const me_frame frame = me_enter(e);
    const uint8_t stream = me_stream_set(e, stream_of(step));
    me_tensor *buffer = s->buffers[step];
    me_te_attention_made *made = &s->made[step];
    me_tensor *parts[3] = {NULL, NULL, NULL};
    me_tensor *kept[4] = {NULL};
    uint32_t n = 0;
    me_launch_stream_waits(e);
    if (step + 1 < r->size) {
        s->buffers[step + 1] = kept[n++] =
            me_empty_like(e, "empty_like", buffer);
        go_round(r, (me_dtype)buffer->dtype, me_numel(buffer), false);
    }
    const section of = section_of(r, step);
    parts_of(e, qkv[0], buffer, (me_shape[]){qkv[1]->shape, qkv[2]->shape}, of,
             parts);
    me_te_context_kernel(r->nn, parts, mask_of(of), made);
    kept[n++] = made->output;
    kept[n++] = made->rng;
    kept[n++] = made->statistics;
    me_stream_set(e, stream);
    me_leave_with(e, frame, n, kept);
}

/** The statistics of @p step join the others', on its stream. */
static void correct_statistics(const ring *r, int32_t step, steps *s)
{
    me_engine *e = r->nn->e;
    const me_tensor *of_step = s->made[step].statistics;
    const uint8_t stream = me_stream_set(e, stream_of(step));
    if (step == 0) {
        s->statistics = me_empty_like(e, "clone", of_step);
    } else {
        me_te_correct_statistics(r->nn, s->statistics, of_step,
                                 section_of(r, step) == SECTION_UPPER);
    }
    me_stream_set(e, stream);
}

/** All steps; the statistics of one join the others' while the next one runs. */
static void run_steps(const ring *r, me_tensor *const qkv[3], steps *s)
{
    me_engine *e = r->nn->e;
    const uint64_t elements = me_size_add(me_numel(qkv[1]), me_numel(qkv[2]));
    s->buffers[0] =
        me_empty(e, "cat", (me_dtype)qkv[1]->dtype, ME_SHAPE(elements));
    me_launch_kernel(e, ME_KERNEL_COPY, 0, 2 * me_bytes(s->buffers[0]));
    for (int32_t i = 0; i < r->size; i++) {
        forward_step(r, qkv, i, s);
        if (i > 0) {
            correct_statistics(r, i - 1, s);
        }
    }
    correct_statistics(r, r->size - 1, s);
}

/** The sum of the steps' outputs. */
static me_tensor *correct_output(const ring *r, const steps *s)
{
    me_tensor *y = me_te_begin_output(r->nn, &s->made[0]);
    for (int32_t i = 1; i < r->size; i++) {
        me_te_correct_output(r->nn, y, &s->made[i],
                             section_of(r, i) == SECTION_UPPER);
    }
    return y;
}

/** Lists go, their last item first, but the buffers as their names do; with a
 *  hierarchy @p sum is no output. */
static void drop_steps(const ring *r, const steps *s, me_tensor *sum)
{
    me_engine *e = r->nn->e;
    for (int32_t i = r->size; i > 0; i--) {
        me_drop(e, s->made[i - 1].output);
    }
    for (int32_t i = r->size; i > 0; i--) {
        me_drop(e, s->made[i - 1].statistics);
    }
    for (int32_t i = 0; i + 1 < r->size; i++) {
        me_drop(e, s->buffers[i]);
    }
    // what a backward needs goes here where there will be none
    for (int32_t i = r->size; i > 0; i--) {
        me_drop(e, s->made[i - 1].rng);
    }
    me_drop(e, s->statistics);
    if (r->heads != ME_GROUP_COUNT) {
        me_drop(e, sum);
    }
    me_drop(e, s->buffers[r->size - 1]);
}

/** The backward's gradient of keys and values is as wide as these. */
static void keep_shapes(me_node *node, me_nn *nn, bool is_hierarchical,
                        me_tensor *const local[3])
{
    if (node != NULL) {
        node->data.context = nn;
        node->data.flag = is_hierarchical;
        node->data.shape = local[1]->shape;
        node->data.n[0] = me_dim(local[2], -1);
    }
}

static const me_op ring_op;

static me_tensor *run_ring(const ring *r, me_tensor *const qkv[3], steps *s)
{
    me_engine *e = r->nn->e;
    const me_frame frame = me_enter(e);
    me_node *node = me_record_saving(e, &ring_op, 3, qkv, (uint32_t)r->size);
    me_tensor *local[3] = {qkv[0], qkv[1], qkv[2]};
    if (r->heads != ME_GROUP_COUNT) {
        me_te_exchange(r->nn, r->heads, ME_TE_TO_HEADS, 3, local);
    }
    run_steps(r, local, s);
    me_tensor *sum = correct_output(r, s);
    me_tensor *y = sum;
    if (r->heads != ME_GROUP_COUNT) {
        me_te_exchange(r->nn, r->heads, ME_TE_TO_ROWS, 1, &y);
    }
    me_save(e, node, RING_SAVED_QUERY, local[0]);
    me_save(e, node, RING_SAVED_KEY_VALUE, s->buffers[r->size - 1]);
    me_save(e, node, RING_SAVED_OUTPUT, sum);
    me_save(e, node, RING_SAVED_STATISTICS, s->statistics);
    for (int32_t i = 0; i < r->size; i++) {
        me_save(e, node, RING_SAVED_RNG + (uint32_t)i, s->made[i].rng);
    }
    keep_shapes(node, r->nn, r->heads != ME_GROUP_COUNT, local);
    if (r->heads != ME_GROUP_COUNT) {
        me_drop(e, local[1]);
        me_drop(e, local[2]);
    }
    drop_steps(r, s, sum);
    return me_leave(e, frame, me_output(e, node, y));
}

static me_tensor *run(me_nn *nn, bool is_hierarchical, me_tensor *const qkv[3])
{
    const ring r = ring_of(nn, is_hierarchical);
    const size_t size = (size_t)r.size;
    steps s = {
        .buffers = me_alloc(size, sizeof(me_tensor *), "te.ring"),
        .made = me_alloc(size, sizeof(me_te_attention_made), "te.ring"),
    };
    me_te_context_cu_seqlens(nn, me_dim(qkv[0], 1),
                             me_size_mul(me_dim(qkv[0], 0), size));
    me_tensor *y = me_none(nn->e);
    if (s.buffers == NULL || s.made == NULL) {
        me_engine_fail(nn->e, ME_ERR_NOMEM, "no host memory for a ring");
    } else {
        y = run_ring(&r, qkv, &s);
    }
    me_free(s.buffers);
    me_free(s.made);
    return y;
}

me_tensor *me_te_context_ring(me_nn *nn, me_tensor *const qkv[3],
                              me_tensor *offset)
{
    (void)offset; // refused by config/megatron/context_parallel.c
    ME_ASSERT(offset == NULL);
    return run(nn, false, qkv);
}

me_tensor *me_te_context_hierarchy(me_nn *nn, me_tensor *const qkv[3],
                                   me_tensor *offset)
{
    (void)offset; // as of the ring
    ME_ASSERT(offset == NULL);
    return run(nn, true, qkv);
}

/** A backward: what it runs with and makes. */
typedef struct way_back {
    ring r;
    me_node *node;
    me_tensor *statistics; /**< of the second half of the rows, or NULL */
    me_tensor *dq;
    me_tensor *buffers[2]; /**< keys and values, and their gradients: (2, n) */
    me_tensor *dout;
    me_shape shapes[2]; /**< of keys and of values */
} way_back;

static void begin_back(way_back *w, me_tensor *const *gy)
{
    me_engine *e = w->r.nn->e;
    me_tensor *const *saved = w->node->saved;
    const me_tensor *kv = saved[RING_SAVED_KEY_VALUE];
    if (w->r.rank + 1 < w->r.size) {
        w->statistics = me_scratch(e, "contiguous",
                                   me_bytes(saved[RING_SAVED_STATISTICS]) / 2);
    }
    w->dq = me_empty_like(e, "empty_like", saved[RING_SAVED_QUERY]);
    for (int i = 0; i < 2; i++) {
        w->buffers[i] = me_empty(e, "empty", (me_dtype)kv->dtype,
                                 ME_SHAPE(2, me_numel(kv)));
    }
    me_launch_kernel(e, ME_KERNEL_COPY, 0, 2 * me_bytes(kv));
    if (me_saved_is_own(w->node)) { // its name is that of a part from here on
        me_clear(e, &w->node->saved[RING_SAVED_KEY_VALUE]);
    }
    w->dout = gy[0];
    if (w->r.heads != ME_GROUP_COUNT) {
        me_te_exchange(w->r.nn, w->r.heads, ME_TE_TO_HEADS, 1, &w->dout);
    }
}

/** Step @p i of the way back; the forward's last step comes first. */
static void step_back(const way_back *w, int32_t i, me_tensor *made_out[3])
{
    me_engine *e = w->r.nn->e;
    const me_frame frame = me_enter(e);
    const me_tensor *buffer = w->buffers[i % 2];
    const section of = section_of(&w->r, w->r.size - 1 - i);
    me_tensor *parts[3] = {NULL, NULL, NULL};
    const uint64_t elements = me_numel(buffer) / 2;
    const bool is_one = i == 0 || i + 1 == w->r.size;
    me_launch_stream_waits(e);
    go_round(&w->r, (me_dtype)buffer->dtype, is_one ? elements : 2 * elements,
             true);
    parts_of(e, w->node->saved[RING_SAVED_QUERY], buffer, w->shapes, of, parts);
    me_te_context_kernel_backward(w->r.nn, parts, NULL, mask_of(of), made_out);
    for (int k = 0; k < 3; k++) {
        me_launch_kernel(e, ME_KERNEL_ACCUMULATE, me_numel(made_out[k]),
                         3 * me_bytes(made_out[k]));
    }
    me_leave_with(e, frame, 3, made_out);
}

static void drop_all(me_engine *e, uint32_t count, me_tensor *const *x)
{
    for (uint32_t i = 0; i < count; i++) {
        me_drop(e, x[i]);
    }
}

/** Which names of the frame are the last to hold something, in their order. */
static void end_back(const way_back *w, me_tensor *const made[3],
                     me_tensor **gx)
{
    me_engine *e = w->r.nn->e;
    me_tensor *gradients = w->buffers[w->r.size % 2];
    gx[0] = w->dq;
    gx[1] = part_of(e, gradients, w->shapes[0]);
    gx[2] = part_of(e, gradients, w->shapes[1]);
    if (w->r.heads != ME_GROUP_COUNT) {
        me_tensor *const local[3] = {gx[0], gx[1], gx[2]};
        me_te_exchange(w->r.nn, w->r.heads, ME_TE_TO_ROWS, 3, gx);
        drop_all(e, 3, local);
    }
    drop_all(e, 3, made);
    const bool is_own = me_saved_is_own(w->node);
    for (int32_t i = w->r.size; is_own && i > 0; i--) {
        me_clear(e, &w->node->wide->saved[i - 1]);
    }
    me_drop(e, w->statistics);
    if (is_own) {
        me_clear(e, &w->node->saved[RING_SAVED_STATISTICS]);
        me_clear(e, &w->node->saved[RING_SAVED_OUTPUT]);
    }
    if (w->r.heads != ME_GROUP_COUNT) {
        me_drop(e, w->dout);
    }
    me_drop(e, w->buffers[(w->r.size + 1) % 2]);
    me_drop(e, gradients);
}

static void ring_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                          me_tensor **gx)
{
    me_nn nn = *(const me_nn *)node->data.context;
    way_back w = {.r = ring_of(&nn, node->data.flag), .node = node};
    w.shapes[0] = w.shapes[1] = node->data.shape;
    w.shapes[1].dim[w.shapes[1].ndim - 1] = node->data.n[0];
    begin_back(&w, gy);
    me_tensor *made[3] = {NULL, NULL, NULL};
    for (int32_t i = 0; i < w.r.size; i++) {
        drop_all(e, 3, made);
        step_back(&w, i, made);
    }
    end_back(&w, made, gx);
}

static const me_op ring_op = {.node = "AttnFuncWithCPAndKVP2PBackward",
                              .backward = ring_backward};
