/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/megatron/p2p.h"

#include "base/size.h"
#include "tensor/launch.h"
#include "train/megatron/trainer.h"

/** Room for what a neighbour sends, late: (s/t, b, h), or @p pieces of them
 *  below each other. */
static me_tensor *receive_buffer(me_trainer *t, const char *op,
                                 me_category category, int32_t pieces)
{
    me_engine *e = t->e;
    const me_config *c = t->config;
    const uint64_t rows = c->parallel.sequence
                              ? me_over_tensor(&t->nn, c->model.rank_seq_length)
                              : c->model.rank_seq_length;
    me_tensor *x =
        me_keep(e, op, category, c->train.params_dtype,
                ME_SHAPE(me_size_mul(rows, (uint64_t)pieces),
                         c->train.micro_batch_size, c->model.hidden_size));
    if (me_engine_is_ok(e)) {
        me_record_stream(x);
    }
    return x;
}

/**
 * The group of a transfer. _p2p_ops(), which does not batch, gives two stages
 * a group for each direction, so that the one does not wait for the other:
 * what odd stages send goes over the world's.
 */
static me_group_kind group_of(const me_trainer *t, me_collective kind)
{
    const me_pipeline *p = &t->spec->pipeline;
    const bool is_sent_by_odd =
        (p->rank % 2 != 0) == (kind == ME_COLLECTIVE_SEND);
    return t->config->parallel.overlap_p2p_comm && p->ranks == 2 &&
                   is_sent_by_odd
               ? ME_GROUP_WORLD
               : ME_GROUP_PIPELINE;
}

/** @param stage  the pipeline rank at the other end */
static void transfer_with(me_trainer *t, me_collective kind, me_tensor *x,
                          int32_t stage)
{
    if (x == NULL || !me_engine_is_ok(t->e)) {
        return;
    }
    const me_pipeline *p = &t->spec->pipeline;
    const me_group_kind group = group_of(t, kind);
    const int32_t peer = group == ME_GROUP_PIPELINE
                             ? stage
                             : t->comm->index[ME_GROUP_WORLD] +
                                   (stage - p->rank) * t->comm->stage_stride;
    me_record_stream(x);
    const me_call call = {group, kind, x->dtype, me_numel(x), peer, false};
    if (t->config->parallel.overlap_p2p_comm) {
        me_communicate_lone(t->e, t->comm, call);
    } else {
        me_communicate(t->e, t->comm, call);
    }
}

static void transfer(me_trainer *t, me_collective kind, me_tensor *x,
                     int32_t step)
{
    const me_pipeline *p = &t->spec->pipeline;
    transfer_with(t, kind, x, (p->rank + step + p->ranks) % p->ranks);
}

static me_tensor *input_buffer(me_trainer *t, int32_t chunk)
{
    me_tensor *x = receive_buffer(t, "recv_forward", ME_CATEGORY_ACTIVATION,
                                  t->spec->chunks[chunk].pieces_in);
    if (me_engine_is_ok(t->e)) {
        x->requires_grad = true;
    }
    return x;
}

static me_tensor *gradient_buffer(me_trainer *t, int32_t chunk)
{
    return receive_buffer(t, "recv_backward", ME_CATEGORY_COMMUNICATION,
                          t->spec->chunks[chunk].pieces_out);
}

/** Bytes of what travels: (s/t, b, h). */
static uint64_t travelling_bytes(const me_trainer *t)
{
    const me_config *c = t->config;
    const uint64_t rows = c->parallel.sequence
                              ? me_over_tensor(&t->nn, c->model.rank_seq_length)
                              : c->model.rank_seq_length;
    return me_size_mul(me_size_mul(rows, c->train.micro_batch_size),
                       me_size_mul(c->model.hidden_size,
                                   me_dtype_bytes(c->train.params_dtype)));
}

void me_tell_transfer(me_trainer *t, int transfer, int32_t rank, int32_t chunk,
                      int32_t microbatch)
{
    me_launch_tell(t->e, (me_launch){.kind = ME_LAUNCH_EXCHANGE,
                                     .transfers = (uint8_t)transfer,
                                     .is_async = true,
                                     .chunk = chunk,
                                     .microbatch = microbatch,
                                     .next = rank,
                                     .previous = rank,
                                     .bytes = travelling_bytes(t)});
}

me_tensor *me_receive_from(me_trainer *t, bool is_forward, int32_t chunk,
                           int32_t rank)
{
    me_tensor *x =
        is_forward ? input_buffer(t, chunk) : gradient_buffer(t, chunk);
    transfer_with(t, ME_COLLECTIVE_RECV, x, rank);
    return x;
}

void me_send_to(me_trainer *t, me_tensor *x, int32_t rank)
{
    transfer_with(t, ME_COLLECTIVE_SEND, x, rank);
}

static void tell_exchange(me_trainer *t, const me_exchange *x)
{
    const me_pipeline *p = &t->spec->pipeline;
    const int transfers =
        (x->to_next != NULL ? ME_TRANSFER_TO_NEXT : 0) |
        (x->to_previous != NULL ? ME_TRANSFER_TO_PREVIOUS : 0) |
        (x->from_previous ? ME_TRANSFER_FROM_PREVIOUS : 0) |
        (x->from_next ? ME_TRANSFER_FROM_NEXT : 0);
    if (transfers == 0) {
        return;
    }
    me_launch_tell(t->e,
                   (me_launch){.kind = ME_LAUNCH_EXCHANGE,
                               .transfers = (uint8_t)transfers,
                               .is_async = t->config->parallel.overlap_p2p_comm,
                               .chunk = -1,
                               .microbatch = -1,
                               .next = (p->rank + 1) % p->ranks,
                               .previous = (p->rank + p->ranks - 1) % p->ranks,
                               .bytes = travelling_bytes(t)});
}

/** _communicate_shapes(): three numbers for each tensor that travels, and the
 *  host waits until they are there. */
static void exchange_shapes(me_trainer *t, const me_exchange *x)
{
    enum {
        DIMENSIONS = 3
    };

    me_engine *e = t->e;
    const bool travels[4] = {x->from_previous, x->from_next,
                             x->to_previous != NULL, x->to_next != NULL};
    me_tensor *shapes[4] = {NULL};
    const me_frame frame = me_enter(e);
    const me_category category = me_category_set(e, ME_CATEGORY_COMMUNICATION);
    for (int i = 0; i < 4; i++) {
        if (travels[i]) {
            shapes[i] =
                me_empty(e, "shape", ME_DTYPE_INT64, ME_SHAPE(DIMENSIONS));
        }
    }
    const me_pipeline *p = &t->spec->pipeline;

    const struct {
        me_collective kind;
        int32_t step;
        me_tensor *shape;
    } order[4] = {{ME_COLLECTIVE_SEND, -1, shapes[2]},
                  {ME_COLLECTIVE_RECV, -1, shapes[0]},
                  {ME_COLLECTIVE_SEND, 1, shapes[3]},
                  {ME_COLLECTIVE_RECV, 1, shapes[1]}};

    me_communicate_group(e, t->comm, true);
    for (int i = 0; i < 4; i++) {
        const int32_t peer = (p->rank + order[i].step + p->ranks) % p->ranks;
        if (order[i].shape != NULL && me_engine_is_ok(e)) {
            me_communicate(e, t->comm,
                           (me_call){ME_GROUP_PIPELINE, order[i].kind,
                                     ME_DTYPE_INT64, DIMENSIONS, peer, false});
        }
    }
    me_communicate_group(e, t->comm, false);
    me_launch_host_waits(e);
    me_category_set(e, category);
    me_leave(e, frame, NULL);
}

void me_exchange_run(me_trainer *t, const me_exchange *exchange,
                     me_tensor **from_previous_out, me_tensor **from_next_out)
{
    me_tensor *input = NULL;
    me_tensor *gradient = NULL;
    if (t->spec->exchanges_shapes) {
        exchange_shapes(t, exchange);
    }
    if (exchange->from_previous) {
        input = input_buffer(t, exchange->input_chunk);
    }
    if (exchange->from_next) {
        gradient = gradient_buffer(t, exchange->gradient_chunk);
    }
    tell_exchange(t, exchange);
    me_communicate_group(t->e, t->comm, true);
    transfer(t, ME_COLLECTIVE_SEND, exchange->to_previous, -1);
    transfer(t, ME_COLLECTIVE_RECV, input, -1);
    transfer(t, ME_COLLECTIVE_SEND, exchange->to_next, 1);
    transfer(t, ME_COLLECTIVE_RECV, gradient, 1);
    me_communicate_group(t->e, t->comm, false);
    if (from_previous_out != NULL) {
        *from_previous_out = input;
    }
    if (from_next_out != NULL) {
        *from_next_out = gradient;
    }
}
