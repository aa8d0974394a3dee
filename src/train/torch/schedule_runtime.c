/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensor/launch.h"
#include "train/torch/pipelining.h"

/* Each action is a function of its own, so that no variable outlives one. Work
 * on parameters is for stages of fully_shard alone (FSDPModule). */

static me_stage *stage_of(const me_schedule_run *run, const me_action *action)
{
    return &run->stages[action->chunk];
}

/** The stage of an index that is on this rank. */
static me_stage *stage_at(const me_schedule_run *run, int32_t index)
{
    for (int32_t i = 0; i < run->n_stages; i++) {
        if (run->stages[i].index == index) {
            return &run->stages[i];
        }
    }
    return NULL;
}

/** Does the schedule gather the stage, ahead of its modules' hooks? */
static bool is_gathered(const me_schedule_run *run, const me_stage *stage)
{
    return stage->fsdp != NULL && run->loop->config->torch.unshard_stages;
}

/** _assert_unsharded(): what was issued is waited for. */
static void wait_for_parameters(const me_schedule_run *run, me_stage *stage)
{
    if (is_gathered(run, stage)) {
        me_fsdp_wait(stage->fsdp);
    }
}

static void forward(me_schedule_run *run, const me_action *a)
{
    me_stage *stage = stage_of(run, a);
    wait_for_parameters(run, stage);
    me_loop_begin_action(run->loop, a->kind, a->chunk, a->microbatch);
    me_tensor *output = me_schedule_forward(run, stage, a->microbatch);
    me_schedule_add_loss(run, stage, a->microbatch);
    me_loop_end_action(run->loop);
    if (stage->has_next_here) {
        me_stage_set_input(stage_at(run, stage->index + 1), a->microbatch,
                           output);
    }
}

/** Whole, or the half of the input. */
static void backward(me_schedule_run *run, const me_action *a)
{
    me_stage *stage = stage_of(run, a);
    wait_for_parameters(run, stage);
    me_loop_begin_action(run->loop, a->kind, a->chunk, a->microbatch);
    me_stage_backward(stage, a->microbatch,
                      me_schedule_loss(run, stage, a->microbatch),
                      a->kind == ME_ACTION_BACKWARD);
    me_loop_end_action(run->loop);
    if (stage->has_previous_here) {
        me_stage_take_gradient(stage_at(run, stage->index - 1), a->microbatch,
                               stage);
    }
}

static void backward_weight(me_schedule_run *run, const me_action *a)
{
    wait_for_parameters(run, stage_of(run, a));
    me_loop_begin_action(run->loop, a->kind, a->chunk, a->microbatch);
    me_stage_backward_weight(stage_of(run, a), a->microbatch);
    me_loop_end_action(run->loop);
}

/** A transfer on its own. What is received, the action that needs it waits
 *  for; for what is sent nothing does. */
static void tell(const me_stage *stage, const me_action *a, int transfer)
{
    me_schedule_tell(stage, &(me_stage_exchange){
                                .transfers = transfer,
                                .is_async = true,
                                .microbatch = a->microbatch,
                            });
}

static void send_forward(me_schedule_run *run, const me_action *a)
{
    me_stage *stage = stage_of(run, a);
    tell(stage, a, ME_TRANSFER_TO_NEXT);
    me_schedule_send(stage, stage->microbatches[a->microbatch].output,
                     stage->next_rank);
}

/** The gradient is named by the list of this call alone. */
static void send_backward(me_schedule_run *run, const me_action *a)
{
    me_stage *stage = stage_of(run, a);
    me_tensor *gradient = me_stage_pop_gradient(stage, a->microbatch);
    tell(stage, a, ME_TRANSFER_TO_PREVIOUS);
    me_schedule_send(stage, gradient, stage->previous_rank);
    me_release(stage->loop->e, gradient);
}

static void receive_forward(me_schedule_run *run, const me_action *a)
{
    me_stage *stage = stage_of(run, a);
    tell(stage, a, ME_TRANSFER_FROM_PREVIOUS);
    me_schedule_receive(stage, stage->microbatches[a->microbatch].input_buffer,
                        stage->previous_rank);
}

static void receive_backward(me_schedule_run *run, const me_action *a)
{
    me_stage *stage = stage_of(run, a);
    tell(stage, a, ME_TRANSFER_FROM_NEXT);
    me_schedule_receive(stage,
                        stage->microbatches[a->microbatch].gradient_buffer,
                        stage->next_rank);
}

static void unshard(me_schedule_run *run, const me_action *a)
{
    if (is_gathered(run, stage_of(run, a))) {
        me_fsdp_unshard(stage_of(run, a)->fsdp);
    }
}

static void reshard(me_schedule_run *run, const me_action *a)
{
    if (is_gathered(run, stage_of(run, a))) {
        me_fsdp_reshard(stage_of(run, a)->fsdp);
    }
}

static void reduce(me_schedule_run *run, const me_action *a)
{
    me_stage_reduce(stage_of(run, a));
}

/** One row a kind of action. */
static void (*const kinds[])(me_schedule_run *run, const me_action *a) = {
    [ME_ACTION_FORWARD] = forward,
    [ME_ACTION_BACKWARD] = backward,
    [ME_ACTION_INPUT_GRADIENT] = backward,
    [ME_ACTION_WEIGHT_GRADIENT] = backward_weight,
    [ME_ACTION_SEND_FORWARD] = send_forward,
    [ME_ACTION_RECV_FORWARD] = receive_forward,
    [ME_ACTION_SEND_BACKWARD] = send_backward,
    [ME_ACTION_RECV_BACKWARD] = receive_backward,
    [ME_ACTION_UNSHARD] = unshard,
    [ME_ACTION_RESHARD] = reshard,
    [ME_ACTION_REDUCE_GRAD] = reduce,
};

void me_schedule_runtime(me_schedule_run *run)
{
    me_engine *e = run->loop->e;
    for (int32_t i = 0; i < run->actions->count && me_engine_is_ok(e); i++) {
        const me_action *a = &run->actions->items[i];
        const bool is_of_all =
            me_action_is_of_parameters((me_action_kind)a->kind);
        me_microbatch(e, is_of_all ? ME_NO_MICROBATCH : a->microbatch);
        kinds[a->kind](run, a);
    }
    me_microbatch(e, ME_NO_MICROBATCH);
}
