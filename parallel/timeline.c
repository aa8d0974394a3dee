/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/timeline.h"

#include "base/alloc.h"
#include "parallel/timeline_private.h"

enum {
    FORWARDS,
    BACKWARDS,
    DIRECTIONS
};

/** A result that somebody needs. */
typedef struct result {
    int32_t direction;
    int32_t stage;
    int32_t microbatch;
} result;

/** A run of all ranks. */
typedef struct course {
    const me_pipeline_order *order;
    const me_timeline_model *model;
    me_timeline *timeline;
    int64_t *ends;    /**< of each result, −1: not made yet */
    int32_t *at;      /**< each rank's next action */
    int64_t *is_free; /**< when each rank's work so far ends */
    int32_t *stack;   /**< ranks that may go on */
    int32_t n_stack;
} course;

static int64_t *end_of(const course *c, result r)
{
    const me_pipeline_order *o = c->order;
    return &c->ends[((size_t)r.direction * (size_t)o->n_stages +
                     (size_t)r.stage) *
                        (size_t)o->n_microbatches +
                    (size_t)r.microbatch];
}

/** The results that an action needs, at most two. */
static int inputs_of(const me_pipeline_order *order, const me_action *action,
                     result inputs[2])
{
    const int32_t s = action->stage;
    const int32_t m = action->microbatch;
    int n = 0;
    if (action->kind == ME_ACTION_FORWARD) {
        const int32_t before =
            me_placement_previous(order->placement, order->n_stages, s);
        if (before >= 0) {
            inputs[n++] = (result){FORWARDS, before, m};
        }
    } else if (action->kind == ME_ACTION_WEIGHT_GRADIENT) {
        inputs[n++] = (result){BACKWARDS, s, m};
    } else if (me_action_computes((me_action_kind)action->kind)) {
        const int32_t after =
            me_placement_next(order->placement, order->n_stages, s);
        inputs[n++] = (result){FORWARDS, s, m};
        if (after >= 0) {
            inputs[n++] = (result){BACKWARDS, after, m};
        }
    }
    return n;
}

/** When a result is there on a rank; −1: not made yet. */
static int64_t there_at(const course *c, result r, int32_t rank)
{
    const int64_t made = *end_of(c, r);
    const int32_t from = c->order->rank_of_stage[r.stage];
    if (made < 0 || from == rank) {
        return made;
    }
    const me_action action = {
        .kind = r.direction == FORWARDS ? ME_ACTION_FORWARD
                                        : ME_ACTION_INPUT_GRADIENT,
        .stage = r.stage,
        .microbatch = r.microbatch,
    };
    return c->model->arrive(c->model->self,
                            &(me_timeline_transfer){from, rank, &action, made});
}

/** When the inputs of an action are there; −1: one is not made yet, and then
 *  it is *missing_out. */
static int64_t ready_at(const course *c, const me_action *action, int32_t rank,
                        result *missing_out)
{
    result inputs[2];
    const int n = inputs_of(c->order, action, inputs);
    for (int i = 0; i < n; i++) {
        if (*end_of(c, inputs[i]) < 0) {
            *missing_out = inputs[i];
            return -1;
        }
    }
    int64_t ready = 0;
    for (int i = 0; i < n; i++) {
        const int64_t there = there_at(c, inputs[i], rank);
        ready = there > ready ? there : ready;
    }
    return ready;
}

/** The actions that run at one time from the rank's next on. */
static me_timeline_work next_work(const course *c, int32_t rank)
{
    const me_actions *actions = &c->order->ranks[rank];
    const me_action *action = &actions->items[c->at[rank]];
    const bool is_block = action->is_overlapped && !c->model->splits_blocks &&
                          c->at[rank] + 1 < actions->count;
    return (me_timeline_work){
        .rank = rank,
        .action = action,
        .other = is_block ? action + 1 : NULL,
        .is_free = c->is_free[rank],
    };
}

/** When all inputs of a work are there; −1 as ready_at(). */
static int64_t work_ready(const course *c, const me_timeline_work *work,
                          result *missing_out)
{
    const int64_t ready = ready_at(c, work->action, work->rank, missing_out);
    if (ready < 0 || work->other == NULL) {
        return ready;
    }
    const int64_t other = ready_at(c, work->other, work->rank, missing_out);
    return other < 0 ? other : other > ready ? other : ready;
}

/** Ranks that may have waited for what an action made. */
static void wake(course *c, const me_action *action)
{
    const me_pipeline_order *o = c->order;
    const int32_t to =
        action->kind == ME_ACTION_FORWARD
            ? me_placement_next(o->placement, o->n_stages, action->stage)
            : me_placement_previous(o->placement, o->n_stages, action->stage);
    if (to >= 0 && o->rank_of_stage[to] != o->rank_of_stage[action->stage]) {
        c->stack[c->n_stack++] = o->rank_of_stage[to];
    }
}

static void note_action(course *c, int32_t rank, const me_action *action,
                        me_span span)
{
    me_timeline_rank *r = &c->timeline->ranks[rank];
    r->spans[action - c->order->ranks[rank].items] = span;
    if (action->kind == ME_ACTION_FORWARD) {
        *end_of(c, (result){FORWARDS, action->stage, action->microbatch}) =
            span.end;
    } else if (action->kind != ME_ACTION_WEIGHT_GRADIENT) {
        *end_of(c, (result){BACKWARDS, action->stage, action->microbatch}) =
            span.end;
    }
}

void me_timeline_note(me_timeline_rank *rank, me_span span)
{
    if (rank->busy == 0 && rank->end == 0) {
        rank->first_start = span.start;
    }
    rank->busy += span.end - span.start;
    rank->end = span.end;
}

/** Give a work its time. */
static void run_work(course *c, const me_timeline_work *work)
{
    me_timeline_rank *r = &c->timeline->ranks[work->rank];
    me_span other = {0, 0};
    me_span span = c->model->run(c->model->self, work, &other);
    const me_span whole = {
        span.start,
        work->other != NULL && other.end > span.end ? other.end : span.end};
    me_timeline_note(r, whole);
    c->is_free[work->rank] = whole.end;
    note_action(c, work->rank, work->action, span);
    if (work->other != NULL) {
        note_action(c, work->rank, work->other, other);
    }
}

/** Run a rank as far as it can. Each neighbour is woken once at most. */
static void advance(course *c, int32_t rank)
{
    const me_actions *actions = &c->order->ranks[rank];
    while (c->at[rank] < actions->count) {
        me_timeline_work work = next_work(c, rank);
        if (!me_action_computes((me_action_kind)work.action->kind)) {
            c->at[rank]++;
            continue;
        }
        result missing;
        work.ready = work_ready(c, &work, &missing);
        if (work.ready < 0) {
            return;
        }
        run_work(c, &work);
        c->at[rank] += work.other == NULL ? 1 : 2;
        wake(c, work.action);
        if (work.other != NULL) {
            wake(c, work.other);
        }
    }
}

static void write_wait(const course *c, int32_t rank, result missing,
                       me_str *text)
{
    const me_action *action = next_work(c, rank).action;
    const me_action made = {
        .kind = missing.direction == FORWARDS ? ME_ACTION_FORWARD
                                              : ME_ACTION_BACKWARD,
        .stage = missing.stage,
        .microbatch = missing.microbatch,
    };
    me_str_printf(text, "rank %d before ", rank);
    me_action_write(action, text);
    me_str_append(text, " waits for ");
    me_action_write(&made, text);
    me_str_printf(text, " of rank %d",
                  (int)c->order->rank_of_stage[missing.stage]);
}

/** The rank that @p rank waits for, and for what. */
static int32_t waits_for(const course *c, int32_t rank, result *missing_out)
{
    const me_timeline_work work = next_work(c, rank);
    (void)work_ready(c, &work, missing_out);
    return c->order->rank_of_stage[missing_out->stage];
}

/** Every rank that has not ended waits for one that has not either: following
 *  them as often as there are ranks ends in the cycle. */
static me_status fail_cycle(const course *c, me_diag *diag)
{
    result missing = {0, 0, 0};
    int32_t rank = 0;
    while (c->at[rank] == c->order->ranks[rank].count) {
        rank++;
    }
    for (int32_t i = 0; i < c->order->n_ranks; i++) {
        rank = waits_for(c, rank, &missing);
    }
    me_str text = {0};
    const int32_t first = rank;
    do {
        const int32_t next = waits_for(c, rank, &missing);
        me_str_append(&text, rank == first ? "" : "; ");
        write_wait(c, rank, missing, &text);
        rank = next;
    } while (rank != first);
    const me_status status =
        me_fail(diag, ME_ERR_CONFIG, "the order would never end: %s",
                me_str_text(&text));
    me_str_fini(&text);
    return status;
}

static me_status run_all(course *c, me_diag *diag)
{
    for (int32_t rank = 0; rank < c->order->n_ranks; rank++) {
        c->stack[c->n_stack++] = rank;
        while (c->n_stack > 0) {
            advance(c, c->stack[--c->n_stack]);
        }
    }
    for (int32_t rank = 0; rank < c->order->n_ranks; rank++) {
        if (c->at[rank] < c->order->ranks[rank].count) {
            return fail_cycle(c, diag);
        }
    }
    return ME_OK;
}

void me_timeline_sum_up(me_timeline *t)
{
    int64_t busiest = 0;
    for (int32_t i = 0; i < t->n_ranks; i++) {
        const me_timeline_rank *r = &t->ranks[i];
        t->makespan = r->end > t->makespan ? r->end : t->makespan;
        busiest = r->busy > busiest ? r->busy : busiest;
    }
    t->bubble = t->makespan - busiest;
    for (int32_t i = 0; i < t->n_ranks; i++) {
        me_timeline_rank *r = &t->ranks[i];
        r->idle = t->makespan - r->busy;
        r->span_idle = r->end - r->first_start - r->busy;
        t->span_bubble =
            r->span_idle > t->span_bubble ? r->span_idle : t->span_bubble;
    }
}

me_timeline *me_timeline_new(const me_pipeline_order *order)
{
    me_timeline *t = me_alloc(1, sizeof *t, "timeline");
    if (t == NULL) {
        return NULL;
    }
    const size_t n = (size_t)order->n_ranks;
    t->ranks = me_alloc(n, sizeof *t->ranks, "timeline.ranks");
    t->n_ranks = t->ranks == NULL ? 0 : order->n_ranks;
    bool has_room = t->ranks != NULL;
    for (size_t i = 0; has_room && i < n; i++) {
        t->ranks[i].count = order->ranks[i].count;
        t->ranks[i].spans = me_alloc((size_t)order->ranks[i].count,
                                     sizeof(me_span), "timeline.spans");
        has_room = t->ranks[i].spans != NULL;
    }
    if (!has_room) {
        me_timeline_destroy(t);
        return NULL;
    }
    return t;
}

/** Room for the results and the ranks. */
static bool make_room(course *c, int64_t n_actions)
{
    const me_pipeline_order *o = c->order;
    const size_t n = (size_t)o->n_ranks;
    const size_t results =
        (size_t)DIRECTIONS * (size_t)o->n_stages * (size_t)o->n_microbatches;
    c->timeline = me_timeline_new(o);
    c->ends = me_alloc(results, sizeof *c->ends, "timeline.ends");
    c->at = me_alloc(n, sizeof *c->at, "timeline.at");
    c->is_free = me_alloc(n, sizeof *c->is_free, "timeline.free");
    c->stack =
        me_alloc((size_t)n_actions + n, sizeof *c->stack, "timeline.stack");
    for (size_t i = 0; c->ends != NULL && i < results; i++) {
        c->ends[i] = -1;
    }
    return c->timeline != NULL && c->ends != NULL && c->at != NULL &&
           c->is_free != NULL && c->stack != NULL;
}

me_status me_timeline_create(const me_pipeline_order *order,
                             const me_timeline_model *model, me_diag *diag,
                             me_timeline **timeline_out)
{
    course c = {.order = order, .model = model};
    int64_t n_actions = 0;
    for (int32_t i = 0; i < order->n_ranks; i++) {
        n_actions += order->ranks[i].count;
    }
    me_status status = ME_ERR_NOMEM;
    if (make_room(&c, n_actions)) {
        status = run_all(&c, diag);
    } else {
        me_fail(diag, status, "no host memory for a timeline");
    }
    if (status == ME_OK) {
        me_timeline_sum_up(c.timeline);
        *timeline_out = c.timeline;
        c.timeline = NULL;
    }
    me_timeline_destroy(c.timeline);
    me_free(c.ends);
    me_free(c.at);
    me_free(c.is_free);
    me_free(c.stack);
    return status;
}

void me_timeline_destroy(me_timeline *timeline)
{
    if (timeline == NULL) {
        return;
    }
    for (int32_t i = 0; i < timeline->n_ranks; i++) {
        me_free(timeline->ranks[i].spans);
    }
    me_free(timeline->ranks);
    me_free(timeline);
}
