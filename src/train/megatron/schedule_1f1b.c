/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "train/megatron/bookkeeping.h"
#include "train/megatron/finalize.h"
#include "train/megatron/forward_backward.h"
#include "train/megatron/p2p.h"
#include "train/megatron/step.h"
#include "train/megatron/trainer.h"

/*
 * forward_backward_pipelining_without_interleaving(). Tensors travel in lists
 * of one element, which names and queues share: that the backward of the last
 * stage replaces the element is what frees the loss there.
 */

/** A Python list of one tensor. */
typedef struct box {
    me_tensor *x;
    uint32_t refs;
} box;

/** The function's locals. */
typedef struct locals {
    me_trainer *t;
    box **inputs; /**< queues of micro-batches in flight */
    box **outputs;
    int32_t head;
    int32_t tail;
    box *input;
    box *output;
    me_tensor *output_grad;
    me_tensor *input_grad;
    me_tensor *num_tokens;
} locals;

/** Takes over the reference to @p x. */
static box *new_box(me_trainer *t, me_tensor *x)
{
    box *b = me_engine_alloc(t->e, 1, sizeof *b);
    if (b != NULL) {
        *b = (box){.x = x, .refs = 1};
    }
    return b;
}

/** What is in it; NULL without a box, which is what a failure leaves. */
static me_tensor *content(const box *b)
{
    return b == NULL ? NULL : b->x;
}

static box *hold(box *b)
{
    if (b != NULL) {
        b->refs++;
    }
    return b;
}

static void let_go(me_trainer *t, box *b)
{
    if (b != NULL && --b->refs == 0) {
        me_clear(t->e, &b->x);
    }
}

/** `name = b`, taking over the reference. */
static void bind(me_trainer *t, box **name, box *b)
{
    box *before = *name;
    *name = b;
    let_go(t, before);
}

static void bind_tensor(me_trainer *t, me_tensor **name, me_tensor *x)
{
    me_tensor *before = *name;
    *name = x;
    me_release(t->e, before);
}

static bool is_first(const me_trainer *t)
{
    return t->spec->pipeline.rank == 0;
}

static bool is_last(const me_trainer *t)
{
    return t->spec->pipeline.rank == t->spec->pipeline.ranks - 1;
}

static void receive_forward(locals *l)
{
    me_tensor *x = NULL;
    if (!is_first(l->t)) {
        me_exchange_run(l->t, &(me_exchange){.from_previous = true}, &x, NULL);
    }
    bind(l->t, &l->input, new_box(l->t, x));
}

static void forward(locals *l, int32_t microbatch)
{
    me_tensor *tokens = NULL;
    me_tensor *y =
        me_forward_step(l->t, 0, microbatch, content(l->input), &tokens);
    bind(l->t, &l->output, new_box(l->t, y));
    bind_tensor(l->t, &l->num_tokens, tokens);
}

/** Into the queues; then one element takes the place of the output's data. */
static void enqueue(locals *l)
{
    l->inputs[l->tail] = hold(l->input);
    l->outputs[l->tail] = hold(l->output);
    l->tail++;
    if (l->output != NULL && me_engine_is_ok(l->t->e)) {
        me_deallocate_output(l->t, l->output->x);
    }
}

static void dequeue(locals *l)
{
    bind(l->t, &l->input, l->inputs[l->head]);
    bind(l->t, &l->output, l->outputs[l->head]);
    l->head++;
}

static void backward(locals *l, int32_t microbatch)
{
    if (l->output == NULL || l->input == NULL) {
        return;
    }
    me_backward_step(l->t, 0, microbatch, &l->output->x, l->output_grad);
    me_tensor *x = l->input->x;
    bind_tensor(l->t, &l->input_grad, me_retain(x == NULL ? NULL : x->grad));
}

static void warm_up(locals *l, int32_t count)
{
    for (int32_t i = 0; i < count && me_engine_is_ok(l->t->e); i++) {
        receive_forward(l);
        forward(l, i);
        me_exchange_run(l->t, &(me_exchange){.to_next = content(l->output)},
                        NULL, NULL);
        enqueue(l);
    }
}

static void send_forward_receive_backward(locals *l)
{
    me_tensor *gradient = NULL;
    if (!is_last(l->t)) {
        me_exchange_run(
            l->t,
            &(me_exchange){.to_next = content(l->output), .from_next = true},
            NULL, &gradient);
    }
    bind_tensor(l->t, &l->output_grad, gradient);
}

static void send_backward(locals *l, bool receives)
{
    me_tensor *x = NULL;
    if (!is_first(l->t)) {
        me_exchange_run(l->t,
                        &(me_exchange){.to_previous = l->input_grad,
                                       .from_previous = receives},
                        &x, NULL);
    }
    bind(l->t, &l->input, receives ? new_box(l->t, x) : NULL);
}

static void steady(locals *l, int32_t begin, int32_t end)
{
    if (begin < end) {
        receive_forward(l);
    }
    for (int32_t i = begin; i < end && me_engine_is_ok(l->t->e); i++) {
        forward(l, i);
        send_forward_receive_backward(l);
        enqueue(l);
        dequeue(l);
        l->t->is_last_microbatch = i == end - 1 && begin == 0;
        backward(l, l->head - 1);
        send_backward(l, i < end - 1);
    }
}

static void cool_down(locals *l, int32_t count)
{
    for (int32_t i = 0; i < count && me_engine_is_ok(l->t->e); i++) {
        dequeue(l);
        me_tensor *gradient = NULL;
        me_exchange_run(l->t, &(me_exchange){.from_next = true}, NULL,
                        &gradient);
        bind_tensor(l->t, &l->output_grad, gradient);
        l->t->is_last_microbatch = i == count - 1;
        backward(l, l->head - 1);
        if (!is_first(l->t)) {
            me_exchange_run(l->t, &(me_exchange){.to_previous = l->input_grad},
                            NULL, NULL);
        }
    }
}

static void forget(locals *l, me_tensor *total_num_tokens)
{
    me_engine *e = l->t->e;
    me_release(e, total_num_tokens);
    bind(l->t, &l->input, NULL);
    bind(l->t, &l->output, NULL);
    bind_tensor(l->t, &l->num_tokens, NULL);
    bind_tensor(l->t, &l->output_grad, NULL);
    bind_tensor(l->t, &l->input_grad, NULL);
    for (int32_t i = l->head; i < l->tail; i++) { // after a failure
        let_go(l->t, l->inputs[i]);
        let_go(l->t, l->outputs[i]);
    }
}

void me_forward_backward_1f1b(me_trainer *t)
{
    const me_pipeline *p = &t->spec->pipeline;
    const int32_t count = p->microbatches;
    const int32_t ahead = p->ranks - p->rank - 1;
    const int32_t warmup = ahead < count ? ahead : count;
    locals l = {.t = t};
    l.inputs = me_alloc((size_t)count, sizeof(box *), "1f1b.inputs");
    l.outputs = me_alloc((size_t)count, sizeof(box *), "1f1b.outputs");
    if (l.inputs == NULL || l.outputs == NULL) {
        me_engine_fail(t->e, ME_ERR_NOMEM, "no host memory for the schedule");
    } else {
        me_tensor *total = me_keep_scalar(t->e, "total_num_tokens", 4);
        t->is_last_microbatch = false;
        warm_up(&l, warmup);
        steady(&l, warmup, count);
        cool_down(&l, warmup);
        if (t->config->optimizer.overlap_grad_reduce &&
            t->config->optimizer.align_grad_reduce && p->rank > 0) {
            me_start_grad_sync(t, 0);
        }
        me_finish_embedding_wgrad(t);
        me_finalize_model_grads(t);
        me_cuda_graphs_create(&t->nn);
        forget(&l, total);
    }
    me_free(l.inputs);
    me_free(l.outputs);
}
