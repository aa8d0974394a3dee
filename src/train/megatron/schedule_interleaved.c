/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/megatron/bookkeeping.h"
#include "train/megatron/combined_1f1b.h"
#include "train/megatron/finalize.h"
#include "train/megatron/forward_backward.h"
#include "train/megatron/interleaved.h"
#include "train/megatron/p2p.h"
#include "train/megatron/step.h"
#include "train/megatron/trainer.h"

/*
 * forward_backward_pipelining_with_interleaving(). Tensors travel bare. With
 * overlapped transfers each is sent and received on its own, and its handle
 * keeps its tensor for as long as the handle has a name; without, all that a
 * step sends and receives is one batch at its end. Where warm-up and flush
 * overlap as well (overlap_p2p_comm_warmup_flush), a rank that does not lead
 * the direction asks for what its next step needs before it works on this one.
 */

/** Forward of virtual step @p k: bound to the name and put in its queue. */
static void forward(me_interleaved *l, int32_t k)
{
    if (l->combined != NULL) {
        me_il_combined_forward(l, k);
        return;
    }
    const me_virtual_step step = me_interleaved_step(l->p, k, true);
    me_queue *inputs = &l->inputs[step.chunk];
    if (me_il_is_first_stage(l, step.chunk)) {
        me_il_push(inputs, NULL);
    }
    me_tensor *tokens = NULL;
    me_tensor *y =
        me_forward_step(l->t, step.chunk, step.microbatch,
                        inputs->items[l->outputs[step.chunk].tail], &tokens);
    me_il_push(&l->outputs[step.chunk], me_retain(y));
    me_release(l->t->e, tokens); // a local of forward_step_helper()
    if (l->t->nn.is_evaluating) {
        me_release(l->t->e, me_il_pop(inputs));
        me_release(l->t->e, me_il_pop(&l->outputs[step.chunk]));
    }
    me_il_bind(l, &l->output, y);
}

/** A loss is not sent: `output_tensor = None` on the last stage. */
static void forget_loss(me_interleaved *l, int32_t k)
{
    if (me_il_is_last_stage(l, me_interleaved_step(l->p, k, true).chunk)) {
        me_il_bind(l, &l->output, NULL);
    }
}

/** Send @p sent if there is one, and receive from the other side, if something
 *  is expected. @return what was received or NULL, owned by the caller */
static me_tensor *transfer(me_interleaved *l, bool is_forward, me_tensor *sent,
                           me_receive receive)
{
    me_tensor *input = NULL;
    me_tensor *gradient = NULL;
    me_exchange_run(l->t,
                    &(me_exchange){
                        .to_next = is_forward ? sent : NULL,
                        .to_previous = is_forward ? NULL : sent,
                        .from_previous = is_forward && receive.is_expected,
                        .from_next = !is_forward && receive.is_expected,
                        .input_chunk = receive.chunk,
                        .gradient_chunk = receive.chunk,
                    },
                    &input, &gradient);
    return is_forward ? input : gradient;
}

/**
 * Send the output of step @p k, and receive what is next for its rank.
 *
 * @return what was received or NULL, owned by the caller beside the queue
 */
me_tensor *me_il_exchange_forward(me_interleaved *l, int32_t k, me_tensor *sent,
                                  bool receives)
{
    me_receive next = me_interleaved_receive(l->p, k, true);
    next.is_expected = next.is_expected && receives;
    me_tensor *x = transfer(l, true, sent, next);
    if (x != NULL) {
        me_il_push(&l->inputs[next.chunk], me_retain(x));
    }
    return x;
}

/** As me_il_exchange_forward(), for the gradients of step @p k. */
me_tensor *me_il_exchange_backward(me_interleaved *l, int32_t k,
                                   me_tensor *input_grad)
{
    const me_receive next = me_interleaved_receive(l->p, k, false);
    me_tensor *gradient = transfer(l, false, input_grad, next);
    if (gradient != NULL) {
        me_il_push(&l->output_grads[next.chunk], me_retain(gradient));
    }
    return gradient;
}

/** Wait for a gradient: its handle leaves the queue, and lives on only if it
 *  is given a name. @return owned; NULL if step @p k has nothing to wait for */
me_tensor *me_il_wait_for_gradient(me_interleaved *l, int32_t k)
{
    const me_virtual_step step = me_interleaved_step(l->p, k, false);
    const bool waits = !me_il_is_last_stage(l, step.chunk) &&
                       l->handles.head < l->handles.tail;
    return waits ? me_il_pop(&l->handles) : NULL;
}

void me_il_start_reduction(me_interleaved *l, int32_t k)
{
    const int32_t chunk = me_interleaved_reduced_chunk(l->p, k);
    if (l->t->config->optimizer.overlap_grad_reduce &&
        l->t->config->optimizer.align_grad_reduce && chunk >= 0) {
        me_start_grad_sync(l->t, chunk);
    }
}

/** Backward of virtual step @p k. @return the input's gradient, owned. */
static me_tensor *backward(me_interleaved *l, int32_t k)
{
    if (l->combined != NULL) {
        return me_il_combined_backward(l, k);
    }
    me_engine *e = l->t->e;
    const me_virtual_step step = me_interleaved_step(l->p, k, false);
    if (me_il_is_last_stage(l, step.chunk)) {
        me_il_push(&l->output_grads[step.chunk], NULL);
    }
    me_tensor *x = me_il_pop(&l->inputs[step.chunk]);
    me_tensor *y = me_il_pop(&l->outputs[step.chunk]);
    me_tensor *gradient = me_il_pop(&l->output_grads[step.chunk]);
    l->t->is_last_microbatch = step.microbatch == l->p->microbatches - 1;
    me_tensor *output = me_retain(y); // backward_step's own list
    me_backward_step(l->t, step.chunk, step.microbatch, &output, gradient);
    me_release(e, output);
    me_tensor *input_grad = me_retain(x == NULL ? NULL : x->grad);
    me_il_start_reduction(l, k);
    me_release(e, x);
    me_release(e, y);
    me_release(e, gradient);
    return input_grad;
}

void me_il_deallocate(me_interleaved *l)
{
    if (l->output != NULL && me_engine_is_ok(l->t->e)) {
        me_deallocate_output(l->t, l->output);
    }
}

/** One batch: the output and the gradient of a step go, what is next comes.
 *  Negative steps: nothing of that direction is expected. */
static void exchange_both(me_interleaved *l, int32_t forward_k, bool receives,
                          int32_t backward_k, me_tensor *input_grad)
{
    const me_receive next = me_interleaved_receive(l->p, forward_k, true);
    const me_receive gradient = me_interleaved_receive(l->p, backward_k, false);
    me_tensor *x = NULL;
    me_tensor *g = NULL;
    me_exchange_run(l->t,
                    &(me_exchange){
                        .to_next = l->output,
                        .to_previous = input_grad,
                        .from_previous = receives && next.is_expected,
                        .from_next = gradient.is_expected,
                        .input_chunk = next.chunk,
                        .gradient_chunk = gradient.chunk,
                    },
                    &x, &g);
    if (x != NULL) {
        me_il_push(&l->inputs[next.chunk], me_retain(x));
    }
    if (g != NULL) {
        me_il_push(&l->output_grads[gradient.chunk], me_retain(g));
    }
    me_il_bind(l, &l->input, x);
    me_il_bind(l, &l->output_grad, g);
    me_il_deallocate(l);
}

static void receive_first_input(me_interleaved *l)
{
    const me_receive first = me_interleaved_receive(l->p, -1, true);
    if (first.is_expected) {
        me_il_push(&l->inputs[first.chunk], transfer(l, true, NULL, first));
    }
}

/** At the end of warm-up; where that was all forwards, at the begin of the
 *  flush, and nobody waits for it later. */
static void receive_first_gradient(me_interleaved *l, bool is_all_warmup)
{
    const me_receive first = me_interleaved_receive(l->p, -1, false);
    if (!first.is_expected || !me_engine_is_ok(l->t->e)) {
        return;
    }
    me_tensor *gradient = transfer(l, false, NULL, first);
    me_il_push(&l->output_grads[first.chunk], gradient);
    if (!is_all_warmup) {
        me_slots *s = &l->backward_slots;
        me_il_bind(l, &s->items[s->count - 1], me_retain(gradient));
        me_il_push(&l->handles, me_retain(gradient));
    }
}

/** Step @p k of an overlapped warm-up. */
static void warm_up_overlapped(me_interleaved *l, int32_t k)
{
    const int32_t chunk = me_interleaved_step(l->p, k, true).chunk;
    const me_receive next = me_interleaved_receive(l->p, k, true);
    if (k > 0 && !me_il_is_first_stage(l, chunk)) {
        me_tensor *x = l->inputs[chunk].items[l->outputs[chunk].tail];
        me_il_bind(l, &l->forward_handle, me_retain(x));
    }
    me_tensor *x = me_il_is_first(l) ? NULL : transfer(l, true, NULL, next);
    forward(l, k);
    forget_loss(l, k);
    if (me_il_is_first(l)) {
        x = transfer(l, true, l->output, next);
    } else {
        (void)transfer(l, true, l->output, (me_receive){false, 0});
    }
    me_il_deallocate(l);
    if (x != NULL) {
        me_il_push(&l->inputs[next.chunk], me_retain(x));
    }
    me_il_arrive(l, &l->forward_slots, k, x);
}

static void warm_up(me_interleaved *l, int32_t warmup, int32_t steps)
{
    const bool overlaps = l->t->config->parallel.overlap_p2p_comm;
    receive_first_input(l);
    for (int32_t k = 0; k < warmup && me_engine_is_ok(l->t->e); k++) {
        if (l->t->config->parallel.overlap_p2p_comm_warmup_flush) {
            warm_up_overlapped(l, k);
            continue;
        }
        forward(l, k);
        forget_loss(l, k);
        if (!overlaps && k == warmup - 1 && warmup < steps) {
            exchange_both(l, k, k < steps - 1, -1, NULL);
            return;
        }
        me_il_bind(l, &l->input,
                   me_il_exchange_forward(l, k, l->output, k < steps - 1));
        me_il_deallocate(l);
    }
    if (warmup < steps) {
        receive_first_gradient(l, false);
    }
}

static void steady_overlapped(me_interleaved *l, int32_t warmup, int32_t steps)
{
    if (l->combined != NULL) {
        me_il_combined_steady(l, warmup, steps);
        return;
    }
    for (int32_t k = 0; k < steps - warmup && me_engine_is_ok(l->t->e); k++) {
        me_il_deallocate(l);
        forward(l, k + warmup);
        forget_loss(l, k + warmup);
        const bool receives = k + warmup < steps - 1;
        me_il_arrive(
            l, &l->forward_slots, k + warmup,
            me_il_exchange_forward(l, k + warmup, l->output, receives));
        me_release(l->t->e, me_il_wait_for_gradient(l, k));
        me_tensor *input_grad = backward(l, k);
        me_tensor *gradient = me_il_exchange_backward(l, k, input_grad);
        if (gradient != NULL) {
            me_il_push(&l->handles, me_retain(gradient));
        }
        me_il_arrive(l, &l->backward_slots, k, gradient);
        if (k == steps - warmup - 1) {
            l->send_handle = me_retain(input_grad);
        }
        me_il_bind(l, &l->input_grad, input_grad);
    }
    me_il_deallocate(l);
}

static void steady_batched(me_interleaved *l, int32_t warmup, int32_t steps)
{
    for (int32_t k = 0; k < steps - warmup && me_engine_is_ok(l->t->e); k++) {
        if (l->combined != NULL) {
            k += me_il_combined_tell(l, k);
            me_il_combined_both(l, k + warmup, k, NULL);
        } else {
            forward(l, k + warmup);
            me_il_bind(l, &l->input_grad, backward(l, k));
        }
        forget_loss(l, k + warmup);
        exchange_both(l, k + warmup, k + warmup < steps - 1, k, l->input_grad);
    }
    me_il_deallocate(l);
}

/** What the steps did not reach is reduced before the finalisation. */
static void reduce_the_rest(me_interleaved *l)
{
    const bool starts = l->t->config->optimizer.overlap_grad_reduce &&
                        l->t->config->optimizer.align_grad_reduce;
    for (int32_t c = 0; starts && c < l->p->chunks; c++) {
        me_start_grad_sync(l->t, c);
    }
}

/** The rest of step @p k of an overlapped flush. The gradient that was sent
 *  before it is held by its handle until this one is on its way. */
static void cool_down_overlapped(me_interleaved *l, int32_t k)
{
    const me_receive next = me_interleaved_receive(l->p, k, false);
    me_tensor *gradient =
        me_il_is_last(l) ? NULL : transfer(l, false, NULL, next);
    me_il_bind(l, &l->input_grad, backward(l, k));
    if (me_il_is_last(l)) {
        gradient = transfer(l, false, l->input_grad, next);
    } else {
        (void)transfer(l, false, l->input_grad, (me_receive){false, 0});
    }
    me_il_bind(l, &l->send_handle, me_retain(l->input_grad));
    if (gradient != NULL) {
        me_il_push(&l->handles, me_retain(gradient));
        me_il_push(&l->output_grads[next.chunk], me_retain(gradient));
    }
    me_il_arrive(l, &l->backward_slots, k, gradient);
}

static void cool_down(me_interleaved *l, int32_t begin, int32_t steps)
{
    if (begin == 0) {
        receive_first_gradient(l, true);
    }
    for (int32_t k = begin; k < steps && me_engine_is_ok(l->t->e); k++) {
        me_tensor *handle = k == 0 ? NULL : me_il_wait_for_gradient(l, k);
        if (handle != NULL) {
            me_il_bind(l, &l->receive_handle, handle);
        }
        if (l->t->config->parallel.overlap_p2p_comm_warmup_flush) {
            cool_down_overlapped(l, k);
            continue;
        }
        me_il_bind(l, &l->input_grad, backward(l, k));
        me_il_bind(l, &l->output_grad,
                   me_il_exchange_backward(l, k, l->input_grad));
    }
    reduce_the_rest(l);
}

static void queue_fini(me_interleaved *l, me_queue *q)
{
    for (int32_t i = q->head; i < q->tail; i++) {
        me_release(l->t->e, q->items[i]);
    }
}

/** A list goes from its last item on. */
static void slots_fini(me_interleaved *l, me_slots *s)
{
    for (int32_t i = s->count; i > 0; i--) {
        me_clear(l->t->e, &s->items[i - 1]);
    }
}

static void forget(me_interleaved *l, me_tensor *total_num_tokens)
{
    me_il_bind(l, &l->forward_handle, NULL);
    me_il_bind(l, &l->input, NULL);
    me_il_bind(l, &l->output_grad, NULL);
    me_il_bind(l, &l->input_grad, NULL);
    me_il_bind(l, &l->receive_handle, NULL);
    slots_fini(l, &l->forward_slots);
    slots_fini(l, &l->backward_slots);
    me_il_bind(l, &l->output, NULL);
    me_il_bind(l, &l->send_handle, NULL);
    me_release(l->t->e, total_num_tokens);
    queue_fini(l, &l->handles);
    for (int32_t c = 0; c < l->p->chunks; c++) { // after a failure
        queue_fini(l, &l->inputs[c]);
        queue_fini(l, &l->outputs[c]);
        queue_fini(l, &l->output_grads[c]);
    }
}

/** Room for @p count tensors, for as long as the engine lives. */
static me_tensor **room_for(me_interleaved *l, size_t count)
{
    return me_engine_alloc(l->t->e, count, sizeof(me_tensor *));
}

/** One queue a chunk, each with room for all its micro-batches. */
static me_queue *make_queues(me_interleaved *l)
{
    const size_t chunks = (size_t)l->p->chunks;
    const size_t room = (size_t)l->p->microbatches + 1;
    me_queue *queues = me_engine_alloc(l->t->e, chunks, sizeof *queues);
    me_tensor **items = room_for(l, chunks * room);
    if (queues == NULL || items == NULL) {
        return NULL;
    }
    for (size_t c = 0; c < chunks; c++) {
        queues[c].items = items + c * room;
    }
    return queues;
}

/** The leading rank of a direction may be ahead by more than one tensor when
 *  groups of micro-batches are longer than the pipeline. */
static me_slots make_slots(me_interleaved *l, bool is_leading)
{
    const me_pipeline *p = l->p;
    const int32_t group = p->group_size > 0 ? p->group_size : p->ranks;
    const int32_t count = is_leading ? group - p->ranks + 1 : 1;
    return (me_slots){room_for(l, (size_t)count), count};
}

static bool make_locals(me_interleaved *l)
{
    const size_t steps = (size_t)me_interleaved_steps(l->p);
    l->inputs = make_queues(l);
    l->outputs = make_queues(l);
    l->output_grads = make_queues(l);
    l->handles.items = room_for(l, steps + 1);
    l->forward_slots = make_slots(l, me_il_is_first(l));
    l->backward_slots = make_slots(l, me_il_is_last(l));
    return me_engine_is_ok(l->t->e);
}

void me_forward_backward_interleaved(me_trainer *t)
{
    me_interleaved l = {.t = t, .p = &t->spec->pipeline};
    me_combined combined;
    if (!make_locals(&l) || !me_combined_init(t, &combined)) {
        return;
    }
    l.combined = me_is_combined(t) ? &combined : NULL;
    const int32_t steps = me_interleaved_steps(l.p);
    const int32_t warmup = me_interleaved_warmup(l.p);
    if (l.combined != NULL) {
        me_il_combined_init(&l, warmup);
    }
    me_tensor *total = me_keep_scalar(t->e, "total_num_tokens", 4);
    t->is_last_microbatch = false;
    warm_up(&l, warmup, steps);
    if (t->config->parallel.overlap_p2p_comm) {
        steady_overlapped(&l, warmup, steps);
    } else {
        steady_batched(&l, warmup, steps);
    }
    me_rounds_fini(&l.rounds);
    cool_down(&l, steps - warmup, steps);
    me_finish_embedding_wgrad(t);
    me_finalize_model_grads(t);
    me_cuda_graphs_create(&t->nn);
    forget(&l, total);
}

void me_forward_only_interleaved(me_trainer *t)
{
    me_interleaved l = {.t = t, .p = &t->spec->pipeline};
    if (!make_locals(&l)) {
        return;
    }
    const int32_t steps = me_interleaved_steps(l.p);
    me_tensor *total = me_keep_scalar(t->e, "total_num_tokens", 4);
    warm_up(&l, steps, steps);
    forget(&l, total);
}
