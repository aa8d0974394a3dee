/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "model/event.h"
#include "tensor/launch.h"
#include "time/step_private.h"

#include <string.h>

static int32_t stage_of(const me_step_run *s, const me_step_runner *r)
{
    return (int32_t)(r - s->runners);
}

static void kernels_wait(me_step_runner *r, int64_t at)
{
    r->stage->transfer_ns += me_step_later(0, at - me_step_card_time(r));
    r->clocks[ME_CLOCK_COMPUTE] =
        me_step_later(r->clocks[ME_CLOCK_COMPUTE], at);
}

/** What comes is waited for by the action that needs it. */
static void await(me_step_run *s, me_step_runner *r, const me_time_item *x,
                  const me_link_end *end, uint32_t number)
{
    void *items = r->awaited;
    if (me_step_reserve(s, &items, r->n_awaited, &r->awaited_capacity,
                        sizeof *r->awaited)) {
        r->awaited = items;
        r->awaited[r->n_awaited++] =
            (me_awaited){*end, number, x->chunk, x->microbatch, x->ns};
    }
}

static void post_all(me_step_run *s, me_step_runner *r, const me_time_item *x)
{
    for (int i = 0; i < 4; i++) {
        const unsigned bit = 1U << i;
        if ((x->transfers & bit) == 0) {
            continue;
        }
        const me_link_end end = me_link_end_of(x, stage_of(s, r), bit);
        const int64_t at = !x->is_async  ? me_step_all_time(r)
                           : end.is_send ? me_step_card_time(r)
                                         : r->clocks[ME_CLOCK_HOST];
        const me_status status =
            me_links_post(s->links, &end, at, &r->numbers[i]);
        if (status != ME_OK) {
            s->status = status;
        } else if (x->is_async && !end.is_send) {
            await(s, r, x, &end, r->numbers[i]);
        }
    }
    r->is_posted = true;
}

/** Of those that run one after the other. @return can the rank go on? */
static bool run_queued(me_step_run *s, me_step_runner *r, const me_time_item *x)
{
    if (!r->is_posted) {
        s->status = me_transfers_add(&r->transfers, x, me_step_card_time(r));
        r->is_posted = true;
    }
    if (x->is_async || s->status != ME_OK) {
        return true;
    }
    const int64_t done = r->transfers.items[r->transfers.count - 1].done;
    if (done == ME_TIME_NEVER) {
        return false;
    }
    kernels_wait(r, done);
    return true;
}

/** A batch: everybody waits until all of it is done, and so does the host. */
static bool run_exchange(me_step_run *s, me_step_runner *r,
                         const me_time_item *x)
{
    if (x->is_queued) {
        return run_queued(s, r, x);
    }
    if (!r->is_posted) {
        post_all(s, r, x);
    }
    if (x->is_async) {
        return true;
    }
    const int64_t before = me_step_all_time(r);
    int64_t done = before;
    for (int i = 0; i < 4; i++) {
        const unsigned bit = 1U << i;
        const me_link_end end = me_link_end_of(x, stage_of(s, r), bit);
        if ((x->transfers & bit) != 0 &&
            !me_links_done(s->links, &end, r->numbers[i], x->ns, &done)) {
            return false;
        }
    }
    r->stage->transfer_ns += done - before;
    r->clocks[ME_CLOCK_COMPUTE] = done;
    r->clocks[ME_CLOCK_COMMUNICATION] = done;
    r->clocks[ME_CLOCK_HOST] = done + ME_SYNCHRONIZE_NS;
    return true;
}

/** The transfer that an action needs; NULL: none. */
static me_awaited *find_awaited(const me_step_runner *r, const me_time_item *x)
{
    const bool is_gradient = x->part == ME_TIME_BACKWARD;
    for (uint32_t i = 0; i < r->n_awaited; i++) {
        me_awaited *a = &r->awaited[i];
        if (a->end.is_gradient == is_gradient &&
            (a->microbatch < 0 ||
             (a->microbatch == x->microbatch && a->chunk == x->chunk))) {
            return a;
        }
    }
    return NULL;
}

/** @return false: its input is still to be sent */
static bool wait_for_input(me_step_run *s, me_step_runner *r,
                           const me_time_item *x)
{
    const bool has_input =
        x->part == ME_TIME_FORWARD || x->part == ME_TIME_BACKWARD;
    me_transfer *queued =
        has_input ? me_transfers_find(&r->transfers, x) : NULL;
    if (queued != NULL) {
        if (queued->done == ME_TIME_NEVER) {
            return false;
        }
        queued->is_taken = true;
        kernels_wait(r, queued->done);
        return true;
    }
    me_awaited *a = has_input ? find_awaited(r, x) : NULL;
    if (a == NULL) {
        return true;
    }
    int64_t at = ME_TIME_NEVER;
    if (!me_links_done(s->links, &a->end, a->number, a->ns, &at)) {
        return false;
    }
    const size_t after = r->n_awaited - (size_t)(a - r->awaited) - 1;
    memmove(a, a + 1, after * sizeof *a);
    r->n_awaited--;
    kernels_wait(r, at);
    return true;
}

static void add_span(me_step_run *s, me_step_runner *r, const me_time_item *x,
                     int64_t start)
{
    me_time_stage *stage = r->stage;
    void *items = stage->spans;
    const int64_t end = me_step_later(start, r->clocks[ME_CLOCK_COMPUTE]);
    if (!me_step_reserve(s, &items, stage->n_spans, &r->spans_capacity,
                         sizeof *stage->spans)) {
        return;
    }
    stage->spans = items;
    stage->spans[stage->n_spans++] = (me_time_span){
        .part = x->part,
        .chunk = x->chunk,
        .microbatch = x->microbatch,
        .start_ns = start,
        .end_ns = end,
    };
    if (stage->n_spans == 1) {
        r->first_start = start;
    }
    r->last_end = end;
    stage->busy_ns += end - start;
}

static bool run_stretch(me_step_run *s, me_step_runner *r,
                        const me_time_item *x)
{
    const me_stretch *stretch = &r->program->stretches[x->stretch];
    if (!wait_for_input(s, r, x)) {
        return false;
    }
    const int64_t start = me_step_card_time(r);
    const bool is_action = x->part == ME_TIME_FORWARD ||
                           x->part == ME_TIME_BACKWARD ||
                           x->part == ME_TIME_WEIGHTS;
    if (x->part == ME_TIME_OPTIMIZER && !r->is_optimizing) {
        r->is_optimizing = true;
        r->optimizer_begin = start;
    }
    me_stretch_run(stretch, r->clocks);
    r->stage->host_busy_ns += stretch->host_ns;
    r->stage->card_busy_ns += stretch->compute_ns + stretch->communication_ns;
    if (is_action) {
        r->stage->compute_ns += stretch->compute_ns;
        r->stage->exposed_ns += stretch->exposed_ns;
        add_span(s, r, x, start);
    }
    return true;
}

/** One item, if it can run. @return did it? */
static bool run_item(me_step_run *s, me_step_runner *r)
{
    const me_time_item *x = &r->program->items[r->cursor];
    bool has_run = true;
    switch ((me_time_item_kind)x->kind) {
    case ME_TIME_RUN: has_run = run_stretch(s, r, x); break;
    case ME_TIME_EXCHANGE: has_run = run_exchange(s, r, x); break;
    case ME_TIME_MEET: has_run = me_step_meet(s, r, x); break;
    case ME_TIME_ITEM_KINDS: break;
    }
    if (has_run) {
        r->cursor++;
        r->is_posted = false;
    }
    return has_run;
}

static bool has_items(const me_step_runner *r)
{
    return r->cursor < r->program->n_items;
}

/** Still to be done? */
static bool has_transfers(const me_step_runner *r)
{
    return r->transfers.n_done < r->transfers.count;
}

static me_status run_all(me_step_run *s, me_diag *diag)
{
    bool has_moved = true;
    while (has_moved && s->status == ME_OK) {
        has_moved = false;
        for (int32_t i = 0; i < s->n; i++) {
            me_step_runner *r = &s->runners[i];
            while (has_items(r) && s->status == ME_OK && run_item(s, r)) {
                has_moved = true;
            }
            if (s->status == ME_OK) {
                s->status =
                    me_transfers_run(&r->transfers, s->links, &has_moved);
            }
        }
    }
    for (int32_t i = 0; i < s->n && s->status == ME_OK; i++) {
        if (has_items(&s->runners[i]) || has_transfers(&s->runners[i])) {
            s->status = ME_ERR_MISMATCH;
            return me_fail(diag, s->status,
                           "stages wait for each other for ever: stage %d at "
                           "item %u of its program",
                           (int)i, (unsigned)s->runners[i].cursor);
        }
    }
    return s->status == ME_OK
               ? ME_OK
               : me_fail(diag, s->status, "no host memory for a step");
}

/** The host's part is what nothing else explains; collectives that the stretch
 *  alone would expose may in the whole lie behind other waits. */
static void balance(me_step_time *step, me_step_runner *r)
{
    me_time_stage *stage = r->stage;
    const int64_t begin =
        r->is_optimizing ? r->optimizer_begin : me_step_all_time(r);
    stage->optimizer_ns = step->step_ns - begin;
    int64_t rest = begin - stage->compute_ns;
    stage->transfer_ns =
        stage->transfer_ns < rest ? stage->transfer_ns : me_step_later(rest, 0);
    rest -= stage->transfer_ns;
    stage->exposed_ns =
        stage->exposed_ns < rest ? stage->exposed_ns : me_step_later(rest, 0);
    stage->host_ns = rest - stage->exposed_ns;
}

static void summarise(me_step_run *s, me_step_time *step)
{
    int64_t busiest = 0;
    for (int32_t i = 0; i < s->n; i++) {
        me_step_runner *r = &s->runners[i];
        r->clocks[ME_CLOCK_COMMUNICATION] = me_step_later(
            r->clocks[ME_CLOCK_COMMUNICATION], me_transfers_end(&r->transfers));
        step->step_ns = me_step_later(step->step_ns, me_step_all_time(r));
        step->forward_backward_ns =
            me_step_later(step->forward_backward_ns, r->last_end);
        busiest = me_step_later(busiest, r->stage->busy_ns);
        step->span_bubble_ns =
            me_step_later(step->span_bubble_ns,
                          r->last_end - r->first_start - r->stage->busy_ns);
    }
    step->bubble_ns = step->forward_backward_ns - busiest;
    for (int32_t i = 0; i < s->n; i++) {
        me_step_runner *r = &s->runners[i];
        r->stage->idle_ns = step->forward_backward_ns - r->stage->busy_ns;
        balance(step, r);
    }
}

static void fini(me_step_run *s)
{
    for (int32_t i = 0; s->runners != NULL && i < s->n; i++) {
        me_free(s->runners[i].awaited);
        me_transfers_fini(&s->runners[i].transfers);
    }
    for (int32_t i = 0; s->meetings != NULL && i < ME_GROUP_COUNT * s->n; i++) {
        me_free(s->meetings[i].items);
    }
    me_links_destroy(s->links);
    me_free(s->meetings);
    me_free(s->runners);
}

static me_step_time *new_step(int32_t n)
{
    me_step_time *step = me_alloc(1, sizeof *step, "time.step");
    if (step != NULL) {
        step->stages = me_alloc((size_t)n, sizeof *step->stages, "time.stages");
        step->n_stages = step->stages == NULL ? 0 : n;
    }
    return step;
}

me_status me_step_time_create(const me_time_program *programs, int32_t n_stages,
                              me_diag *diag, me_step_time **step_out)
{
    me_step_run s = {.n = n_stages};
    const size_t n = (size_t)n_stages;
    me_step_time *step = new_step(n_stages);
    s.runners = me_alloc(n, sizeof *s.runners, "time.runners");
    s.meetings =
        me_alloc(ME_GROUP_COUNT * n, sizeof *s.meetings, "time.groups");
    s.links = me_links_create(n_stages);
    me_status status = ME_ERR_NOMEM;
    if (step == NULL || step->n_stages == 0 || s.runners == NULL ||
        s.meetings == NULL || s.links == NULL) {
        (void)me_fail(diag, status, "no host memory for a step");
    } else {
        for (int32_t i = 0; i < n_stages; i++) {
            s.runners[i].program = &programs[i];
            s.runners[i].stage = &step->stages[i];
            s.runners[i].transfers.stage = i;
        }
        me_step_count_members(&s);
        status = run_all(&s, diag);
    }
    if (status == ME_OK) {
        summarise(&s, step);
        *step_out = step;
        step = NULL;
    }
    fini(&s);
    me_step_time_destroy(step);
    return status;
}

void me_step_time_destroy(me_step_time *step)
{
    if (step == NULL) {
        return;
    }
    for (int32_t i = 0; i < step->n_stages; i++) {
        me_free(step->stages[i].spans);
    }
    me_free(step->stages);
    me_free(step);
}
