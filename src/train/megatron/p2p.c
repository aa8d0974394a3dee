/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/megatron/trainer.h"

/** Room for what a neighbour sends: (s/t, b, h), late. */
static me_tensor *receive_buffer(me_trainer *t, const char *op,
                                 me_category category)
{
    me_engine *e = t->e;
    const me_transformer_config *c = &t->config->model;
    const uint64_t rows = c->sequence_parallel
                              ? me_over_tensor(&t->nn, c->seq_length)
                              : c->seq_length;
    const me_frame frame = me_enter(e);
    const me_category before = me_category_set(e, category);
    me_tensor *x = me_retain(
        me_empty(e, op, c->params_dtype,
                 ME_SHAPE(rows, c->micro_batch_size, c->hidden_size)));
    me_category_set(e, before);
    me_leave(e, frame, NULL);
    if (me_engine_is_ok(e)) {
        me_record_stream(x);
    }
    return x;
}

static void transfer(me_trainer *t, me_collective kind, me_tensor *x,
                     int32_t step)
{
    if (x == NULL || !me_engine_is_ok(t->e)) {
        return;
    }
    const int32_t ranks = t->config->pipeline.ranks;
    const int32_t peer = (t->config->pipeline.rank + step + ranks) % ranks;
    me_record_stream(x);
    me_communicate(
        t->e, t->comm,
        (me_call){ME_GROUP_PIPELINE, kind, x->dtype, me_numel(x), peer});
}

void me_exchange_run(me_trainer *t, const me_exchange *exchange,
                     me_tensor **from_previous_out, me_tensor **from_next_out)
{
    me_tensor *input = NULL;
    me_tensor *gradient = NULL;
    if (exchange->from_previous) {
        input = receive_buffer(t, "recv_forward", ME_CATEGORY_ACTIVATION);
        if (me_engine_is_ok(t->e)) {
            input->requires_grad = true;
        }
    }
    if (exchange->from_next) {
        gradient =
            receive_buffer(t, "recv_backward", ME_CATEGORY_COMMUNICATION);
    }
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
