/* SPDX-License-Identifier: BSD-3-Clause */
#include "time/step.h"

#include "base/alloc.h"
#include "base/event.h"
#include "tensor/launch.h"
#include "time/links.h"

#include <string.h>

/** A transfer that an action will wait for. */
typedef struct awaited {
    me_link_end end;
    uint32_t number;
    int32_t chunk;
    int32_t microbatch; /**< -1: whatever comes next */
    int64_t ns;
} awaited;

typedef struct meeting {
    int32_t arrived;
    int64_t latest;
} meeting;

/** Meetings of one kind of group, in order. */
typedef struct meetings {
    meeting *items;
    uint32_t count;
    uint32_t capacity;
    int32_t members;
} meetings;

/** A stage that runs. */
typedef struct runner {
    const me_time_program *program;
    uint32_t cursor;
    bool is_posted; /**< the item at the cursor has told the others */
    bool is_optimizing;
    int64_t optimizer_begin;
    int64_t clocks[ME_CLOCKS];
    uint32_t numbers[4]; /**< of the exchange's transfers, by bit */
    awaited *awaited;    /**< in the order in which they were asked for */
    uint32_t n_awaited;
    uint32_t awaited_capacity;
    uint32_t met[ME_GROUP_COUNT]; /**< of each group, so far */
    me_time_stage *stage;
    uint32_t spans_capacity;
    int64_t first_start;
    int64_t last_end;
} runner;

typedef struct simulation {
    int32_t n;
    runner *runners;
    me_links *links;
    meetings *meetings; /**< groups x the lowest stage of one */
    me_status status;
} simulation;

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t card_time(const runner *r)
{
    return later(r->clocks[ME_CLOCK_HOST], r->clocks[ME_CLOCK_COMPUTE]);
}

static int64_t all_time(const runner *r)
{
    return later(card_time(r), r->clocks[ME_CLOCK_COMMUNICATION]);
}

/** Room for one more; false without memory. */
static bool reserve(simulation *s, void **items, uint32_t count,
                    uint32_t *capacity, size_t size)
{
    if (count < *capacity) {
        return true;
    }
    const uint32_t wanted = *capacity == 0 ? 64 : *capacity * 2;
    void *larger = me_realloc(*items, wanted, size, "time.step");
    if (larger == NULL) {
        s->status = ME_ERR_NOMEM;
        return false;
    }
    *items = larger;
    *capacity = wanted;
    return true;
}

static int32_t stage_of(const simulation *s, const runner *r)
{
    return (int32_t)(r - s->runners);
}

/** What a bit of an exchange is of which link. */
static me_link_end end_of(const simulation *s, const runner *r,
                          const me_time_item *x, unsigned bit)
{
    const int32_t own = stage_of(s, r);
    switch (bit) {
    case ME_TRANSFER_TO_NEXT: return (me_link_end){own, x->next, false, true};
    case ME_TRANSFER_TO_PREVIOUS:
        return (me_link_end){own, x->previous, true, true};
    case ME_TRANSFER_FROM_PREVIOUS:
        return (me_link_end){x->previous, own, false, false};
    default: return (me_link_end){x->next, own, true, false};
    }
}

/** What comes is waited for by the action that needs it. */
static void await(simulation *s, runner *r, const me_time_item *x,
                  const me_link_end *end, uint32_t number)
{
    void *items = r->awaited;
    if (reserve(s, &items, r->n_awaited, &r->awaited_capacity,
                sizeof *r->awaited)) {
        r->awaited = items;
        r->awaited[r->n_awaited++] =
            (awaited){*end, number, x->chunk, x->microbatch, x->ns};
    }
}

static void post_all(simulation *s, runner *r, const me_time_item *x)
{
    for (int i = 0; i < 4; i++) {
        const unsigned bit = 1U << i;
        if ((x->transfers & bit) == 0) {
            continue;
        }
        const me_link_end end = end_of(s, r, x, bit);
        const int64_t at = !x->is_async  ? all_time(r)
                           : end.is_send ? card_time(r)
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

/** A batch: everybody waits until all of it is done, and so does the host. */
static bool run_exchange(simulation *s, runner *r, const me_time_item *x)
{
    if (!r->is_posted) {
        post_all(s, r, x);
    }
    if (x->is_async) {
        return true;
    }
    const int64_t before = all_time(r);
    int64_t done = before;
    for (int i = 0; i < 4; i++) {
        const unsigned bit = 1U << i;
        const me_link_end end = end_of(s, r, x, bit);
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
static awaited *find_awaited(const runner *r, const me_time_item *x)
{
    const bool is_gradient = x->part == ME_TIME_BACKWARD;
    for (uint32_t i = 0; i < r->n_awaited; i++) {
        awaited *a = &r->awaited[i];
        if (a->end.is_gradient == is_gradient &&
            (a->microbatch < 0 ||
             (a->microbatch == x->microbatch && a->chunk == x->chunk))) {
            return a;
        }
    }
    return NULL;
}

/** @return false: its input is still to be sent */
static bool wait_for_input(simulation *s, runner *r, const me_time_item *x)
{
    const bool has_input =
        x->part == ME_TIME_FORWARD || x->part == ME_TIME_BACKWARD;
    awaited *a = has_input ? find_awaited(r, x) : NULL;
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
    r->stage->transfer_ns += later(0, at - card_time(r));
    r->clocks[ME_CLOCK_COMPUTE] = later(r->clocks[ME_CLOCK_COMPUTE], at);
    return true;
}

static void add_span(simulation *s, runner *r, const me_time_item *x,
                     int64_t start)
{
    me_time_stage *stage = r->stage;
    void *items = stage->spans;
    const int64_t end = later(start, r->clocks[ME_CLOCK_COMPUTE]);
    if (!reserve(s, &items, stage->n_spans, &r->spans_capacity,
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

static bool run_stretch(simulation *s, runner *r, const me_time_item *x)
{
    const me_stretch *stretch = &r->program->stretches[x->stretch];
    if (!wait_for_input(s, r, x)) {
        return false;
    }
    const int64_t start = card_time(r);
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

/** Of the item's group. */
static meetings *meetings_of(const simulation *s, const me_time_item *x)
{
    return &s->meetings[x->group * s->n + x->first_stage];
}

/** The n-th collective of a kind of group is the same for all its members. */
static bool run_meeting(simulation *s, runner *r, const me_time_item *x)
{
    meetings *all = meetings_of(s, x);
    const uint32_t number = r->met[x->group];
    while (all->count <= number) {
        void *items = all->items;
        if (!reserve(s, &items, all->count, &all->capacity,
                     sizeof *all->items)) {
            return false;
        }
        all->items = items;
        all->items[all->count++] = (meeting){.latest = ME_TIME_NEVER};
    }
    meeting *m = &all->items[number];
    if (!r->is_posted) {
        m->arrived++;
        m->latest = later(m->latest, all_time(r));
        r->is_posted = true;
    }
    if (m->arrived < all->members) {
        return false;
    }
    const int64_t done = m->latest + x->ns;
    r->clocks[ME_CLOCK_COMMUNICATION] = done;
    r->clocks[ME_CLOCK_COMPUTE] = later(r->clocks[ME_CLOCK_COMPUTE], done);
    r->stage->card_busy_ns += x->ns;
    r->met[x->group]++;
    return true;
}

/** One item, if it can run. @return did it? */
static bool run_item(simulation *s, runner *r)
{
    const me_time_item *x = &r->program->items[r->cursor];
    bool has_run = true;
    switch ((me_time_item_kind)x->kind) {
    case ME_TIME_RUN: has_run = run_stretch(s, r, x); break;
    case ME_TIME_EXCHANGE: has_run = run_exchange(s, r, x); break;
    case ME_TIME_MEET: has_run = run_meeting(s, r, x); break;
    case ME_TIME_ITEM_KINDS: break;
    }
    if (has_run) {
        r->cursor++;
        r->is_posted = false;
    }
    return has_run;
}

static bool has_items(const runner *r)
{
    return r->cursor < r->program->n_items;
}

static me_status run_all(simulation *s, me_diag *diag)
{
    bool has_moved = true;
    while (has_moved && s->status == ME_OK) {
        has_moved = false;
        for (int32_t i = 0; i < s->n; i++) {
            runner *r = &s->runners[i];
            while (has_items(r) && s->status == ME_OK && run_item(s, r)) {
                has_moved = true;
            }
        }
    }
    for (int32_t i = 0; i < s->n && s->status == ME_OK; i++) {
        if (has_items(&s->runners[i])) {
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

/** Groups meet with as many stages as have such a group in their program. */
static void count_members(simulation *s)
{
    for (int32_t i = 0; i < s->n; i++) {
        const me_time_program *p = s->runners[i].program;
        bool is_in[ME_GROUP_COUNT] = {false};
        for (uint32_t k = 0; k < p->n_items; k++) {
            const me_time_item *x = &p->items[k];
            if (x->kind == ME_TIME_MEET && !is_in[x->group]) {
                is_in[x->group] = true;
                meetings_of(s, x)->members++;
            }
        }
    }
}

/** The host's part is what nothing else explains; collectives that the stretch
 *  alone would expose may in the whole lie behind other waits. */
static void balance(me_step_time *step, runner *r)
{
    me_time_stage *stage = r->stage;
    const int64_t begin = r->is_optimizing ? r->optimizer_begin : all_time(r);
    stage->optimizer_ns = step->step_ns - begin;
    int64_t rest = begin - stage->compute_ns;
    stage->transfer_ns =
        stage->transfer_ns < rest ? stage->transfer_ns : later(rest, 0);
    rest -= stage->transfer_ns;
    stage->exposed_ns =
        stage->exposed_ns < rest ? stage->exposed_ns : later(rest, 0);
    stage->host_ns = rest - stage->exposed_ns;
}

static void summarise(simulation *s, me_step_time *step)
{
    int64_t busiest = 0;
    for (int32_t i = 0; i < s->n; i++) {
        const runner *r = &s->runners[i];
        step->step_ns = later(step->step_ns, all_time(r));
        step->forward_backward_ns =
            later(step->forward_backward_ns, r->last_end);
        busiest = later(busiest, r->stage->busy_ns);
        step->span_bubble_ns =
            later(step->span_bubble_ns,
                  r->last_end - r->first_start - r->stage->busy_ns);
    }
    step->bubble_ns = step->forward_backward_ns - busiest;
    for (int32_t i = 0; i < s->n; i++) {
        runner *r = &s->runners[i];
        r->stage->idle_ns = step->forward_backward_ns - r->stage->busy_ns;
        balance(step, r);
    }
}

static void fini(simulation *s)
{
    for (int32_t i = 0; s->runners != NULL && i < s->n; i++) {
        me_free(s->runners[i].awaited);
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
    simulation s = {.n = n_stages};
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
        }
        count_members(&s);
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
