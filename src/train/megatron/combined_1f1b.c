/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/megatron/combined_1f1b.h"

#include "ops/elementwise.h"
#include "tensor/autograd.h"
#include "train/megatron/bookkeeping.h"
#include "train/megatron/finalize.h"
#include "train/megatron/forward_backward.h"
#include "train/megatron/rounds.h"
#include "train/megatron/step.h"
#include "train/megatron/trainer.h"

/** A micro-batch between its forward and its backward: what Megatron-LM hangs on
 *  the forward's output. */
typedef struct me_flight {
    me_chunk_plan *plan;
    me_schedule_node loss;
    struct me_flight *next;
} me_flight;

bool me_is_combined(const me_trainer *t)
{
    return t->config->moe.overlap_expert_comm &&
           !t->config->parallel.megatron_fsdp;
}

bool me_combined_init(me_trainer *t, me_combined *combined)
{
    const size_t chunks = (size_t)t->spec->n_chunks;
    *combined = (me_combined){
        .t = t,
        .first = me_engine_alloc(t->e, chunks, sizeof(me_flight *)),
        .last = me_engine_alloc(t->e, chunks, sizeof(me_flight *)),
        .unused = me_engine_alloc(t->e, chunks, sizeof(me_flight *)),
    };
    return me_engine_is_ok(t->e);
}

static me_flight *new_flight(me_combined *s, int32_t chunk)
{
    me_flight *flight = s->unused[chunk];
    if (flight != NULL) {
        s->unused[chunk] = flight->next;
        flight->next = NULL;
        return flight;
    }
    flight = me_engine_alloc(s->t->e, 1, sizeof *flight);
    if (flight != NULL) {
        flight->plan = me_chunk_plan_create(&s->t->chunks[chunk]);
    }
    return me_engine_is_ok(s->t->e) ? flight : NULL;
}

static void add(me_combined *s, int32_t chunk, me_flight *flight)
{
    if (s->first[chunk] == NULL) {
        s->first[chunk] = flight;
    } else {
        s->last[chunk]->next = flight;
    }
    s->last[chunk] = flight;
}

static me_flight *take(me_combined *s, int32_t chunk)
{
    me_flight *flight = s->first[chunk];
    s->first[chunk] = flight->next;
    flight->next = NULL;
    return flight;
}

/** forward_step_func(): a batch, and the plan of its forward. */
static me_flight *begin_forward(me_combined *s, const me_combined_forward *f)
{
    me_trainer *t = s->t;
    me_engine *e = t->e;
    me_flight *flight = new_flight(s, f->chunk);
    if (flight == NULL) {
        return NULL;
    }
    me_gpt *gpt = &t->chunks[f->chunk];
    me_gpt_set_input(e, gpt, f->input);
    me_forward_point(t, "begin");
    me_batch batch;
    const me_frame frame = me_enter(e);
    me_get_batch(t, &gpt->spec, &batch);
    me_chunk_plan_begin(flight->plan, &batch, f->microbatch);
    me_leave(e, frame, NULL);
    me_forward_point(t, "end");
    t->forwards++;
    return flight;
}

/** forward_step_calc_loss(): on the last stage the loss takes the output's
 *  place. */
static void end_forward(me_combined *s, me_flight *flight,
                        me_combined_forward *f)
{
    me_trainer *t = s->t;
    me_engine *e = t->e;
    me_gpt *gpt = flight->plan->gpt;
    if (gpt->spec.post_process && me_engine_is_ok(e)) {
        me_flow losses = {1, {f->output}};
        me_schedule_node_begin(&gpt->nn, &flight->loss, &losses);
        me_tensor *loss =
            me_calculate_loss(t, flight->loss.inputs.items[0],
                              flight->plan->batch.loss_mask, &f->num_tokens);
        me_flow y = me_schedule_node_end(
            &gpt->nn, &flight->loss, f->num_tokens == NULL ? 1 : 2,
            (me_tensor *[]){loss, f->num_tokens}, &losses, false);
        me_release(e, f->output);
        f->output = me_retain(y.items[0]);
        me_flow_release(e, &y);
    }
    const me_frame frame = me_enter(e);
    me_set_loss_scales(t);
    me_leave(e, frame, NULL);
    add(s, f->chunk, flight);
}

/** What the backward begins with on the last stage. */
typedef struct loss_state {
    me_tensor *scaled;
    me_flow inputs; /**< of the loss, whose block goes after the backward */
} loss_state;

/** Of the loss function. @return the gradient of its input, owned */
static me_tensor *backward_of_loss(me_combined *s, me_flight *flight,
                                   me_tensor *loss, loss_state *state)
{
    me_trainer *t = s->t;
    me_engine *e = t->e;
    const me_frame frame = me_enter(e);
    state->scaled = me_retain(me_scale_loss(t, loss));
    me_tensor *ones =
        me_pointwise(e, "ones_like", state->scaled, ME_DTYPE_FLOAT32);
    me_backward(e, state->scaled, ones);
    me_leave(e, frame, NULL);
    if (!me_engine_is_ok(e)) {
        return NULL;
    }
    me_tensor *gradient = me_retain(flight->loss.inputs.items[0]->grad);
    state->inputs = me_flow_hold(flight->loss.inputs);
    me_schedule_node_fini(e, &flight->loss);
    return gradient;
}

/** _release_tensor_storage(). */
static void release_loss(me_engine *e, loss_state *state)
{
    if (state->inputs.count > 0 && me_engine_is_ok(e)) {
        me_use_on_stream(e, state->inputs.items[0]);
        me_storage_free(e, state->inputs.items[0]);
    }
}

/** The step's own launch and place, forward or backward. */
static me_context begin_action(me_trainer *t, const me_combined_forward *f,
                               const me_combined_backward *b)
{
    me_engine *e = t->e;
    const bool is_forward = b->chunk < 0;
    const me_context before = *me_context_now(e);
    me_category_set(e, ME_CATEGORY_TEMPORARY);
    me_phase_set(e, is_forward ? ME_PHASE_FORWARD : ME_PHASE_BACKWARD);
    me_microbatch(e, is_forward ? f->microbatch : b->microbatch);
    me_action_begin(e, is_forward ? "F" : "B",
                    is_forward ? f->chunk : b->chunk);
    return before;
}

void me_combined_step(me_combined *s, me_combined_forward *f,
                      me_combined_backward *b, const me_plan_hooks *hooks)
{
    me_trainer *t = s->t;
    me_engine *e = t->e;
    if (!me_engine_is_ok(e)) {
        return;
    }
    const me_context before = begin_action(t, f, b);
    me_flight *new_one = f->chunk < 0 ? NULL : begin_forward(s, f);
    me_flight *old = b->chunk < 0 ? NULL : take(s, b->chunk);
    me_tensor *gradient = NULL;
    loss_state loss = {.scaled = NULL};
    if (old != NULL) {
        gradient = b->gradient != NULL
                       ? me_retain(b->gradient)
                       : backward_of_loss(s, old, b->output, &loss);
    }
    if (me_engine_is_ok(e)) {
        me_tensor *output =
            me_chunk_plans_run(new_one == NULL ? NULL : new_one->plan,
                               old == NULL ? NULL : old->plan, gradient, hooks);
        release_loss(e, &loss);
        f->output = output;
    }
    if (new_one != NULL && me_engine_is_ok(e)) {
        end_forward(s, new_one, f);
    }
    me_release(e, loss.scaled);
    me_release(e, gradient);
    if (old != NULL) {
        b->input_grad = me_retain(b->input == NULL ? NULL : b->input->grad);
        me_chunk_plan_release(old->plan);
        old->next = s->unused[b->chunk];
        s->unused[b->chunk] = old;
        me_end_backward(t);
    }
    me_flow_release(e, &loss.inputs);
    me_action_end(e);
    me_context_restore(e, before);
    me_microbatch(e, ME_NO_MICROBATCH);
}

void me_combined_advance(me_combined *s, int32_t microbatches)
{
    for (int32_t c = 0; c < s->t->spec->n_chunks; c++) {
        for (me_flight *f = s->first[c]; f != NULL; f = f->next) {
            f->plan->microbatch += microbatches;
        }
    }
}

/** combined_1f1b_schedule_for_no_pipelining(). */
void me_forward_backward_combined(me_trainer *t)
{
    me_engine *e = t->e;
    const int32_t count = t->spec->pipeline.microbatches;
    const me_plan_hooks none = {.self = NULL};
    me_combined combined;
    if (!me_combined_init(t, &combined)) {
        return;
    }
    const me_round_loop loop = {
        .steps = 1, .microbatches = 1, .end = count - 2, .multiple = 1};
    me_rounds rounds;
    me_rounds_init(&rounds, t, &loop);
    me_tensor *total = me_keep_scalar(e, "total_num_tokens", 4);
    me_combined_forward f = {.chunk = 0};
    me_combined_backward b = {.chunk = -1};
    me_combined_step(&combined, &f, &b, &none);
    for (int32_t i = 0; i < count && me_engine_is_ok(e); i++) {
        const int32_t told = me_rounds_tell(&rounds, i);
        me_combined_advance(&combined, told);
        i += told;
        me_tensor *output = f.output;
        me_tensor *tokens = f.num_tokens;
        t->is_last_microbatch = i == count - 1;
        f = (me_combined_forward){.chunk = i == count - 1 ? -1 : 0,
                                  .microbatch = i + 1};
        b = (me_combined_backward){.microbatch = i, .output = output};
        me_combined_step(&combined, &f, &b, &none);
        me_release(e, output);
        me_release(e, tokens);
    }
    me_rounds_fini(&rounds);
    me_finalize_model_grads(t);
    me_release(e, total);
}
