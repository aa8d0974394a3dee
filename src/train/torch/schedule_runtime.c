/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensor/launch.h"
#include "train/torch/pipelining.h"

/* Each action is a function of its own, so that no variable outlives one. */

/** Stages of a rank that are whole at once (max_active_stages). */
enum {
    ACTIVE_STAGES = 3
};

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

static void forward(me_schedule_run *run, const me_action *a)
{
    me_stage *stage = stage_of(run, a);
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
};

static bool is_compute(const me_action *a)
{
    return a->kind == ME_ACTION_FORWARD || a->kind == ME_ACTION_BACKWARD ||
           a->kind == ME_ACTION_INPUT_GRADIENT ||
           a->kind == ME_ACTION_WEIGHT_GRADIENT;
}

/** The stages that the actions from @p at on compute on, each once, in their
 *  order. @return how many, at most ACTIVE_STAGES */
static int32_t list_next(const me_schedule_run *run, int32_t at,
                         me_stage *next_out[ACTIVE_STAGES])
{
    int32_t n = 0;
    for (int32_t i = at; i < run->actions->count && n < ACTIVE_STAGES; i++) {
        const me_action *a = &run->actions->items[i];
        bool is_listed = !is_compute(a);
        for (int32_t k = 0; k < n && !is_listed; k++) {
            is_listed = next_out[k] == stage_of(run, a);
        }
        if (!is_listed) {
            next_out[n++] = stage_of(run, a);
        }
    }
    return n;
}

/** _add_unshard_reshard(): the stages that are needed next are whole, others
 *  make room for them. */
static void activate(me_schedule_run *run, int32_t at)
{
    me_stage *next[ACTIVE_STAGES];
    const int32_t n = list_next(run, at, next);
    for (int32_t i = 0; i < run->n_stages; i++) {
        me_stage *stage = &run->stages[i];
        bool is_next = false;
        for (int32_t k = 0; k < n; k++) {
            is_next = is_next || next[k] == stage;
        }
        if (stage->is_whole && !is_next) {
            me_fsdp_reshard(stage->fsdp);
            stage->is_whole = false;
        }
    }
    for (int32_t k = 0; k < n; k++) {
        if (!next[k]->is_whole) {
            me_fsdp_unshard(next[k]->fsdp);
            next[k]->is_whole = true;
        }
    }
    me_fsdp_wait(next[0]->fsdp); // _assert_unsharded()
}

/** _add_reduce_grad(): REDUCE_GRAD follows a stage's last backward, and what it
 *  sends. @return the stage if that was the action @p a */
static me_stage *finished_by(const me_schedule_run *run, const me_action *a)
{
    if (a->kind != ME_ACTION_BACKWARD && a->kind != ME_ACTION_WEIGHT_GRADIENT) {
        return NULL;
    }
    me_stage *stage = stage_of(run, a);
    return ++stage->n_passed == stage->n_microbatches ? stage : NULL;
}

static bool is_send(const me_action *a)
{
    return a->kind == ME_ACTION_SEND_FORWARD ||
           a->kind == ME_ACTION_SEND_BACKWARD;
}

void me_schedule_runtime(me_schedule_run *run)
{
    me_engine *e = run->loop->e;
    me_stage *finished = NULL;
    for (int32_t i = 0; i < run->actions->count && me_engine_is_ok(e); i++) {
        const me_action *a = &run->actions->items[i];
        if (finished != NULL && !is_send(a)) {
            me_microbatch(e, ME_NO_MICROBATCH);
            me_stage_reduce(finished);
            finished = NULL;
        }
        me_microbatch(e, a->microbatch);
        if (is_compute(a) && run->loop->config->unshards_stages &&
            stage_of(run, a)->fsdp != NULL) {
            activate(run, i);
        }
        kinds[a->kind](run, a);
        finished = finished == NULL ? finished_by(run, a) : finished;
    }
    me_microbatch(e, ME_NO_MICROBATCH);
    if (finished != NULL) {
        me_stage_reduce(finished);
    }
    for (int32_t i = 0; i < run->n_stages; i++) {
        run->stages[i].is_whole = false; // RESHARD, of what is in shards
    }
}
