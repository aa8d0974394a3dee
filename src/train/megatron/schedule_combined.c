/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/megatron/combined_1f1b.h"
#include "train/megatron/interleaved.h"
#include "train/megatron/step.h"

/* The interleaved schedule whose steady steps run a forward and a backward in
 * turns (combined_1f1b_schedule_for_interleaved_pipelining()). */

static me_combined_forward prepare_forward(me_interleaved *l, int32_t k)
{
    const me_virtual_step step = me_interleaved_step(l->p, k, true);
    me_queue *inputs = &l->inputs[step.chunk];
    if (me_il_is_first_stage(l, step.chunk)) {
        me_il_push(inputs, NULL);
    }
    return (me_combined_forward){
        .chunk = step.chunk,
        .microbatch = step.microbatch,
        .input = inputs->items[l->outputs[step.chunk].tail],
    };
}

static me_combined_backward prepare_backward(me_interleaved *l, int32_t k)
{
    const me_virtual_step step = me_interleaved_step(l->p, k, false);
    if (me_il_is_last_stage(l, step.chunk)) {
        me_il_push(&l->output_grads[step.chunk], NULL);
    }
    l->t->is_last_microbatch = step.microbatch == l->p->microbatches - 1;
    return (me_combined_backward){
        .chunk = step.chunk,
        .microbatch = step.microbatch,
        .input = me_il_pop(&l->inputs[step.chunk]),
        .output = me_il_pop(&l->outputs[step.chunk]),
        .gradient = me_il_pop(&l->output_grads[step.chunk]),
    };
}

static void end_forward(me_interleaved *l, const me_combined_forward *f)
{
    me_il_push(&l->outputs[f->chunk], me_retain(f->output));
    me_release(l->t->e, f->num_tokens);
}

static void end_backward(me_interleaved *l, const me_combined_backward *b,
                         int32_t k)
{
    me_engine *e = l->t->e;
    me_il_start_reduction(l, k);
    me_release(e, b->input);
    me_release(e, b->output);
    me_release(e, b->gradient);
}

static const me_plan_hooks no_hooks = {.self = NULL};

void me_il_combined_forward(me_interleaved *l, int32_t k)
{
    me_combined_forward f = prepare_forward(l, k);
    me_combined_backward none = {.chunk = -1};
    me_combined_step(l->combined, &f, &none, &no_hooks);
    end_forward(l, &f);
    me_il_bind(l, &l->output, f.output);
}

me_tensor *me_il_combined_backward(me_interleaved *l, int32_t k)
{
    me_combined_forward none = {.chunk = -1};
    me_combined_backward b = prepare_backward(l, k);
    me_combined_step(l->combined, &none, &b, &no_hooks);
    end_backward(l, &b, k);
    return b.input_grad;
}

/** What the hooks of a steady step work on. */
typedef struct steady {
    me_interleaved *l;
    int32_t forward_k;
    int32_t backward_k;
    bool receives;
} steady;

static void pre_forward(void *self)
{
    const steady *s = self;
    me_il_deallocate(s->l);
}

static void pre_backward(void *self)
{
    const steady *s = self;
    me_release(s->l->t->e, me_il_wait_for_gradient(s->l, s->backward_k));
}

static void post_forward(void *self, me_tensor *output)
{
    const steady *s = self;
    me_interleaved *l = s->l;
    const int32_t chunk = me_interleaved_step(l->p, s->forward_k, true).chunk;
    me_tensor *sent = me_il_is_last_stage(l, chunk) ? NULL : output;
    me_il_arrive(l, &l->forward_slots, s->forward_k,
                 me_il_exchange_forward(l, s->forward_k, sent, s->receives));
}

static void post_backward(void *self, me_tensor *gradient)
{
    const steady *s = self;
    me_interleaved *l = s->l;
    const int32_t chunk = me_interleaved_step(l->p, s->backward_k, false).chunk;
    me_tensor *sent = me_il_is_first_stage(l, chunk) ? NULL : gradient;
    me_tensor *next = me_il_exchange_backward(l, s->backward_k, sent);
    me_il_bind(l, &l->send_handle, me_retain(sent)); // no name's but its own
    if (next != NULL) {
        me_il_push(&l->handles, me_retain(next));
    }
    me_il_arrive(l, &l->backward_slots, s->backward_k, next);
}

void me_il_combined_both(me_interleaved *l, int32_t forward_k,
                         int32_t backward_k, const me_plan_hooks *hooks)
{
    me_combined_forward f = prepare_forward(l, forward_k);
    me_combined_backward b = prepare_backward(l, backward_k);
    me_combined_step(l->combined, &f, &b, hooks == NULL ? &no_hooks : hooks);
    end_forward(l, &f);
    end_backward(l, &b, backward_k);
    me_il_bind(l, &l->output, f.output);
    me_il_bind(l, &l->input_grad, b.input_grad);
}

void me_il_combined_init(me_interleaved *l, int32_t warmup)
{
    // A round is a group of micro-batches through all chunks. The last whole one,
    // and what is left of a group, end otherwise.
    const int32_t group = l->p->group_size > 0 ? l->p->group_size : l->p->ranks;
    const int32_t steps = group * l->p->chunks;
    me_rounds_init(
        &l->rounds, l->t,
        &(me_round_loop){
            .steps = steps,
            .microbatches = group,
            .end = (l->p->microbatches / group - 1) * steps - warmup,
            .multiple = l->forward_slots.count * l->backward_slots.count,
        });
}

/** It goes on as many places behind. */
static void advance_queue(me_queue *q, int32_t places)
{
    for (int32_t i = q->tail; i > q->head; i--) {
        q->items[i - 1 + places] = q->items[i - 1];
    }
    q->head += places;
    q->tail += places;
}

int32_t me_il_combined_tell(me_interleaved *l, int32_t k)
{
    const int32_t told = me_rounds_tell(&l->rounds, k);
    const int32_t microbatches = told / l->p->chunks;
    for (int32_t c = 0; told > 0 && c < l->p->chunks; c++) {
        advance_queue(&l->inputs[c], microbatches);
        advance_queue(&l->outputs[c], microbatches);
        advance_queue(&l->output_grads[c], microbatches);
    }
    me_combined_advance(l->combined, microbatches);
    return told;
}

void me_il_combined_steady(me_interleaved *l, int32_t warmup, int32_t steps)
{
    for (int32_t k = 0; k < steps - warmup && me_engine_is_ok(l->t->e); k++) {
        k += me_il_combined_tell(l, k);
        steady s = {.l = l,
                    .forward_k = k + warmup,
                    .backward_k = k,
                    .receives = k + warmup < steps - 1};
        const me_plan_hooks hooks = {.self = &s,
                                     .pre_forward = pre_forward,
                                     .pre_backward = pre_backward,
                                     .post_forward = post_forward,
                                     .post_backward = post_backward};
        me_il_combined_both(l, k + warmup, k, &hooks);
    }
    me_il_deallocate(l);
}
