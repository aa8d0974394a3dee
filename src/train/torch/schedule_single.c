/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensor/launch.h"
#include "train/torch/pipelining.h"

/*
 * Schedules of one stage a rank. Lists of sends name their tensors until the
 * next list takes their place, and so does the variable of the output.
 */

/** get_fwd_recv_ops(). */
static void receive_forward(me_stage *stage, int32_t m)
{
    me_schedule_receive(stage, stage->microbatches[m].input_buffer,
                        stage->previous_rank);
}

/** get_bwd_recv_ops(). */
static void receive_backward(me_stage *stage, int32_t m)
{
    me_schedule_receive(stage, stage->microbatches[m].gradient_buffer,
                        stage->next_rank);
}

/** get_fwd_send_ops(): a list, bound to its name. */
static void list_output(me_stage *stage, int32_t m, me_tensor **ops)
{
    me_assign(stage->loop->e, ops,
              stage->next_rank < 0 ? NULL : stage->microbatches[m].output);
}

/** get_bwd_send_ops(). */
static void list_gradient(me_stage *stage, int32_t m, me_tensor **ops)
{
    me_tensor *before = *ops;
    *ops = me_stage_pop_gradient(stage, m);
    me_release(stage->loop->e, before);
}

/** Kernels wait for what is received, and for what is sent beside it; for what
 *  is sent alone they wait at the end of the next action, when it has long
 *  arrived. */
static void tell(const me_stage *stage, bool to_next, bool to_previous,
                 int32_t forward_m, int32_t backward_m)
{
    const bool receives = forward_m >= 0 || backward_m >= 0;
    me_schedule_tell(
        stage,
        &(me_stage_exchange){
            .transfers = (to_next ? ME_TRANSFER_TO_NEXT : 0) |
                         (to_previous ? ME_TRANSFER_TO_PREVIOUS : 0) |
                         (forward_m >= 0 ? ME_TRANSFER_FROM_PREVIOUS : 0) |
                         (backward_m >= 0 ? ME_TRANSFER_FROM_NEXT : 0),
            .is_async = !receives,
        });
}

/** What is sent and what is received complete together. */
static void exchange(me_stage *stage, me_tensor *to_next,
                     me_tensor *to_previous, int32_t forward_m,
                     int32_t backward_m)
{
    me_engine *e = stage->loop->e;
    const me_communicators *comm = stage->loop->comm;
    tell(stage, to_next != NULL, to_previous != NULL, forward_m, backward_m);
    me_communicate_group(e, comm, true);
    me_schedule_send(stage, to_next, stage->next_rank);
    me_schedule_send(stage, to_previous, stage->previous_rank);
    if (forward_m >= 0) {
        receive_forward(stage, forward_m);
    }
    if (backward_m >= 0) {
        receive_backward(stage, backward_m);
    }
    me_communicate_group(e, comm, false);
}

static void backward(me_schedule_run *run, int32_t m)
{
    me_stage *stage = &run->stages[0];
    me_microbatch(run->loop->e, m);
    me_loop_begin_action(run->loop, ME_ACTION_BACKWARD, 0, m);
    me_stage_backward(stage, m, me_schedule_loss(run, stage, m), true);
    me_loop_end_action(run->loop);
}

/** A forward, whose output @p output names. */
static void forward(me_schedule_run *run, int32_t m, me_tensor **output)
{
    me_loop_begin_action(run->loop, ME_ACTION_FORWARD, 0, m);
    me_assign(run->loop->e, output,
              me_schedule_forward(run, &run->stages[0], m));
    me_loop_end_action(run->loop);
}

void me_schedule_gpipe(me_schedule_run *run)
{
    me_engine *e = run->loop->e;
    me_stage *stage = &run->stages[0];
    me_tensor *output = NULL;
    me_tensor *ops = NULL;
    for (int32_t m = 0; m < stage->n_microbatches; m++) {
        me_assign(e, &ops, NULL); // the list of receives
        exchange(stage, NULL, NULL, m, -1);
        forward(run, m, &output);
        list_output(stage, m, &ops);
        exchange(stage, ops, NULL, -1, -1);
        me_schedule_add_loss(run, stage, m);
    }
    for (int32_t m = 0; m < stage->n_microbatches; m++) {
        me_assign(e, &ops, NULL);
        exchange(stage, NULL, NULL, -1, m);
        backward(run, m);
        list_gradient(stage, m, &ops);
        exchange(stage, NULL, ops, -1, -1);
    }
    me_microbatch(e, ME_NO_MICROBATCH);
    me_stage_reduce(stage);
    me_release(e, output);
    me_release(e, ops);
}

void me_schedule_1f1b(me_schedule_run *run)
{
    me_engine *e = run->loop->e;
    me_stage *stage = &run->stages[0];
    const int32_t n = stage->n_microbatches;
    const int32_t ahead = stage->n_stages - stage->index;
    const int32_t warmup = ahead < n ? ahead : n;
    me_tensor *output = NULL;
    me_tensor *fwd_sends = NULL;
    me_tensor *bwd_sends = NULL;
    for (int32_t m = 0; m < warmup; m++) {
        exchange(stage, NULL, NULL, m, -1);
        forward(run, m, &output);
        list_output(stage, m, &fwd_sends);
        if (m != warmup - 1) {
            exchange(stage, fwd_sends, NULL, -1, -1);
        }
        me_schedule_add_loss(run, stage, m);
    }
    int32_t f = warmup;
    int32_t b = 0;
    for (;; f++) { // one backward, one forward
        exchange(stage, fwd_sends, NULL, -1, b);
        backward(run, b);
        list_gradient(stage, b++, &bwd_sends);
        if (f == n || !me_engine_is_ok(e)) {
            break;
        }
        exchange(stage, NULL, bwd_sends, f, -1);
        forward(run, f, &output);
        me_schedule_add_loss(run, stage, f);
        list_output(stage, f, &fwd_sends);
    }
    exchange(stage, NULL, bwd_sends, -1, -1);
    for (; b < n; b++) {
        exchange(stage, NULL, NULL, -1, b);
        backward(run, b);
        list_gradient(stage, b, &bwd_sends);
        exchange(stage, NULL, bwd_sends, -1, -1);
    }
    me_microbatch(e, ME_NO_MICROBATCH);
    me_stage_reduce(stage);
    me_release(e, output);
    me_release(e, fwd_sends);
    me_release(e, bwd_sends);
}
