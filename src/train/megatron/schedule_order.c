/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/pipeline_order.h"
#include "tensor/launch.h"
#include "train/megatron/bookkeeping.h"
#include "train/megatron/finalize.h"
#include "train/megatron/forward_backward.h"
#include "train/megatron/p2p.h"
#include "train/megatron/step.h"
#include "train/megatron/trainer.h"

/*
 * Any order of forwards and backwards, with the lifetimes of Megatron-LM's own
 * functions (schedules.py) and, where backwards are split, of the zero-bubble
 * forks of it: what is received is kept until its micro-batch's backward; an
 * output is one element as soon as it is sent, a loss stays; a gradient goes
 * when it is sent; weight gradients wait with what they are made of. Sends and
 * receives stand where the order has them. A tensor for another chunk of the
 * same rank is handed over without the tape: it is its input, and its gradient
 * the other's output gradient.
 */

/** What the rank has of one chunk's micro-batch. */
typedef struct in_flight {
    me_tensor *input;
    me_tensor *output;
    me_tensor *output_grad;
    me_tensor *input_grad;
    me_weight_gradients weights;
} in_flight;

typedef struct locals {
    me_trainer *t;
    const me_pipeline_order *order;
    const me_actions *actions;
    in_flight *items;        /**< chunk x micro-batches */
    int32_t *chunk_of_stage; /**< of this rank's stages */
} locals;

static in_flight *item_of(const locals *l, int32_t chunk, int32_t microbatch)
{
    return &l->items[(size_t)chunk * (size_t)l->order->n_microbatches +
                     (size_t)microbatch];
}

static int32_t next_stage(const locals *l, const me_action *a)
{
    return me_placement_next(l->order->placement, l->order->n_stages, a->stage);
}

static int32_t previous_stage(const locals *l, const me_action *a)
{
    return me_placement_previous(l->order->placement, l->order->n_stages,
                                 a->stage);
}

/** Is a stage, if there is one, of this rank too? */
static bool is_here(const locals *l, int32_t stage)
{
    return stage >= 0 &&
           l->order->rank_of_stage[stage] == l->t->spec->pipeline.rank;
}

/** The output is the next chunk's input: the same storage, off the tape. */
static void hand_over_output(locals *l, const me_action *a, me_tensor *output)
{
    me_engine *e = l->t->e;
    const int32_t next = next_stage(l, a);
    if (!is_here(l, next) || !me_engine_is_ok(e)) {
        return;
    }
    const me_frame frame = me_enter(e);
    me_tensor *input = me_detach(e, output);
    if (me_engine_is_ok(e)) {
        input->requires_grad = true;
        item_of(l, l->chunk_of_stage[next], a->microbatch)->input =
            me_retain(input);
    }
    me_leave(e, frame, NULL);
}

static void forward(locals *l, const me_action *a)
{
    in_flight *i = item_of(l, a->chunk, a->microbatch);
    me_tensor *tokens = NULL;
    i->output =
        me_forward_step(l->t, a->chunk, a->microbatch, i->input, &tokens);
    me_release(l->t->e, tokens);
    hand_over_output(l, a, i->output);
}

/** Of the whole, or of the input alone. */
static void backward(locals *l, const me_action *a, bool is_split)
{
    me_trainer *t = l->t;
    me_engine *e = t->e;
    in_flight *i = item_of(l, a->chunk, a->microbatch);
    t->weights.is_split = is_split;
    me_backward_step(t, a->chunk, a->microbatch, &i->output, i->output_grad);
    i->weights = t->weights;
    t->weights = (me_weight_gradients){.items = NULL};
    me_tensor *gradient = me_retain(i->input == NULL ? NULL : i->input->grad);
    me_clear(e, &i->input);
    me_clear(e, &i->output);
    me_clear(e, &i->output_grad);
    const int32_t previous = previous_stage(l, a);
    if (is_here(l, previous)) {
        item_of(l, l->chunk_of_stage[previous], a->microbatch)->output_grad =
            gradient;
    } else {
        i->input_grad = gradient;
    }
}

static void make_weight_gradients(locals *l, const me_action *a)
{
    me_weight_step(l->t, a->chunk, a->microbatch,
                   &item_of(l, a->chunk, a->microbatch)->weights);
}

static void tell_transfer(locals *l, const me_action *a, int transfer)
{
    const bool is_next =
        transfer == ME_TRANSFER_TO_NEXT || transfer == ME_TRANSFER_FROM_NEXT;
    const int32_t stage = is_next ? next_stage(l, a) : previous_stage(l, a);
    me_tell_transfer(l->t, transfer, l->order->rank_of_stage[stage], a->chunk,
                     a->microbatch);
}

static void send_output(locals *l, const me_action *a)
{
    me_tensor *output = item_of(l, a->chunk, a->microbatch)->output;
    tell_transfer(l, a, ME_TRANSFER_TO_NEXT);
    me_send_to(l->t, output, l->order->rank_of_stage[next_stage(l, a)]);
    if (me_engine_is_ok(l->t->e)) {
        me_deallocate_output(l->t, output);
    }
}

static void send_gradient(locals *l, const me_action *a)
{
    in_flight *i = item_of(l, a->chunk, a->microbatch);
    tell_transfer(l, a, ME_TRANSFER_TO_PREVIOUS);
    me_send_to(l->t, i->input_grad,
               l->order->rank_of_stage[previous_stage(l, a)]);
    me_clear(l->t->e, &i->input_grad);
}

static void run_action(locals *l, const me_action *a)
{
    in_flight *i = item_of(l, a->chunk, a->microbatch);
    switch ((me_action_kind)a->kind) {
    case ME_ACTION_FORWARD: forward(l, a); break;
    case ME_ACTION_BACKWARD: backward(l, a, false); break;
    case ME_ACTION_INPUT_GRADIENT: backward(l, a, true); break;
    case ME_ACTION_WEIGHT_GRADIENT: make_weight_gradients(l, a); break;
    case ME_ACTION_SEND_FORWARD: send_output(l, a); break;
    case ME_ACTION_SEND_BACKWARD: send_gradient(l, a); break;
    case ME_ACTION_RECV_FORWARD:
        tell_transfer(l, a, ME_TRANSFER_FROM_PREVIOUS);
        i->input =
            me_receive_from(l->t, true, a->chunk,
                            l->order->rank_of_stage[previous_stage(l, a)]);
        break;
    case ME_ACTION_RECV_BACKWARD:
        tell_transfer(l, a, ME_TRANSFER_FROM_NEXT);
        i->output_grad = me_receive_from(
            l->t, false, a->chunk, l->order->rank_of_stage[next_stage(l, a)]);
        break;
    case ME_ACTION_UNSHARD:
    case ME_ACTION_RESHARD:
    case ME_ACTION_REDUCE_GRAD:
    case ME_ACTION_COUNT: break;
    }
}

static bool make_locals(locals *l)
{
    me_engine *e = l->t->e;
    const size_t chunks = (size_t)l->t->spec->n_chunks;
    l->items = me_engine_alloc(e, chunks * (size_t)l->order->n_microbatches,
                               sizeof *l->items);
    l->chunk_of_stage = me_engine_alloc(e, (size_t)l->order->n_stages,
                                        sizeof *l->chunk_of_stage);
    if (l->items == NULL || l->chunk_of_stage == NULL) {
        return false;
    }
    for (int32_t i = 0; i < l->actions->count; i++) {
        const me_action *a = &l->actions->items[i];
        l->chunk_of_stage[a->stage] = a->chunk;
    }
    return true;
}

/** After a failure something is left. */
static void forget(locals *l)
{
    me_engine *e = l->t->e;
    const int32_t count = l->t->spec->n_chunks * l->order->n_microbatches;
    for (int32_t k = 0; k < count; k++) {
        me_clear(e, &l->items[k].input);
        me_clear(e, &l->items[k].output);
        me_clear(e, &l->items[k].output_grad);
        me_clear(e, &l->items[k].input_grad);
        me_weight_gradients_fini(e, &l->items[k].weights);
    }
}

void me_forward_backward_order(me_trainer *t)
{
    const me_pipeline_order *order = t->spec->order;
    locals l = {
        .t = t,
        .order = order,
        .actions = &order->ranks[t->spec->pipeline.rank],
    };
    if (!make_locals(&l)) {
        return;
    }
    me_tensor *total = me_keep_scalar(t->e, "total_num_tokens", 4);
    t->is_last_microbatch = false;
    for (int32_t i = 0; i < l.actions->count && me_engine_is_ok(t->e); i++) {
        run_action(&l, &l.actions->items[i]);
    }
    me_finish_embedding_wgrad(t);
    me_finalize_model_grads(t);
    me_release(t->e, total);
    forget(&l);
}
