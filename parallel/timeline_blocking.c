/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "parallel/timeline_private.h"

enum {
    SENDER,
    RECEIVER,
    SIDES
};

/** A run of all ranks. */
typedef struct course {
    const me_pipeline_order *order;
    const me_timeline_model *model;
    me_timeline *timeline;
    int64_t *posted;  /**< of each transfer's two sides, -1: not yet */
    int32_t *at;      /**< each rank's next action */
    int64_t *is_free; /**< when what it did so far ends */
} course;

/** One side of a transfer: a transfer is named by the stage that receives. */
typedef struct side {
    bool is_forward;
    int32_t side;
    int32_t from;
    int32_t to;
} side;

static side side_of(const me_pipeline_order *o, const me_action *a)
{
    const bool is_send =
        a->kind == ME_ACTION_SEND_FORWARD || a->kind == ME_ACTION_SEND_BACKWARD;
    const bool is_forward =
        a->kind == ME_ACTION_SEND_FORWARD || a->kind == ME_ACTION_RECV_FORWARD;
    const int32_t other =
        is_send == is_forward
            ? me_placement_next(o->placement, o->n_stages, a->stage)
            : me_placement_previous(o->placement, o->n_stages, a->stage);
    return (side){
        .is_forward = is_forward,
        .side = is_send ? SENDER : RECEIVER,
        .from = is_send ? a->stage : other,
        .to = is_send ? other : a->stage,
    };
}

static int64_t *posted(const course *c, const side *s, int32_t which,
                       int32_t microbatch)
{
    const me_pipeline_order *o = c->order;
    const size_t transfer =
        ((s->is_forward ? (size_t)o->n_stages : 0) + (size_t)s->to) *
            (size_t)o->n_microbatches +
        (size_t)microbatch;
    return &c->posted[transfer * SIDES + (size_t)which];
}

/** Actions of the batch that begins at a rank's next action. */
static int32_t batch_size(const me_actions *actions, int32_t begin)
{
    int32_t n = 1;
    while (actions->items[begin + n - 1].is_batched &&
           begin + n < actions->count) {
        n++;
    }
    return n;
}

/** When a transfer has arrived; -1: one side is not there yet. */
static int64_t arrival(const course *c, const me_action *a)
{
    const side s = side_of(c->order, a);
    const int64_t sent = *posted(c, &s, SENDER, a->microbatch);
    const int64_t awaited = *posted(c, &s, RECEIVER, a->microbatch);
    if (sent < 0 || awaited < 0) {
        return -1;
    }
    const me_action made = {
        .kind = s.is_forward ? ME_ACTION_FORWARD : ME_ACTION_BACKWARD,
        .stage = s.from,
        .microbatch = a->microbatch,
    };
    return c->model->arrive(c->model->self,
                            &(me_timeline_transfer){
                                .from_rank = c->order->rank_of_stage[s.from],
                                .to_rank = c->order->rank_of_stage[s.to],
                                .action = &made,
                                .made = sent > awaited ? sent : awaited,
                            });
}

/** A batch: each side says that it is there, and waits for all others. */
static bool run_batch(course *c, int32_t rank)
{
    const me_actions *actions = &c->order->ranks[rank];
    const int32_t begin = c->at[rank];
    const int32_t n = batch_size(actions, begin);
    const int64_t now = c->is_free[rank];
    for (int32_t i = begin; i < begin + n; i++) {
        const side s = side_of(c->order, &actions->items[i]);
        *posted(c, &s, s.side, actions->items[i].microbatch) = now;
    }
    int64_t end = now;
    for (int32_t i = begin; i < begin + n; i++) {
        const int64_t arrived = arrival(c, &actions->items[i]);
        if (arrived < 0) {
            return false;
        }
        end = arrived > end ? arrived : end;
    }
    for (int32_t i = begin; i < begin + n; i++) {
        c->timeline->ranks[rank].spans[i] = (me_span){now, end};
    }
    c->at[rank] += n;
    c->is_free[rank] = end;
    return true;
}

static void run_work(course *c, int32_t rank)
{
    const int32_t i = c->at[rank]++;
    me_span other = {0, 0};
    const me_span span =
        c->model->run(c->model->self,
                      &(me_timeline_work){
                          .rank = rank,
                          .action = &c->order->ranks[rank].items[i],
                          .ready = 0,
                          .is_free = c->is_free[rank],
                      },
                      &other);
    c->timeline->ranks[rank].spans[i] = span;
    c->is_free[rank] = span.end;
    me_timeline_note(&c->timeline->ranks[rank], span);
}

/** Run a rank as far as it can. @return did it go on? */
static bool advance(course *c, int32_t rank)
{
    const me_actions *actions = &c->order->ranks[rank];
    const int32_t before = c->at[rank];
    while (c->at[rank] < actions->count) {
        const me_action *a = &actions->items[c->at[rank]];
        if (me_action_computes((me_action_kind)a->kind)) {
            run_work(c, rank);
        } else if (!me_action_transfers((me_action_kind)a->kind)) {
            c->at[rank]++;
        } else if (!run_batch(c, rank)) {
            break;
        }
    }
    return c->at[rank] > before;
}

static me_status run_all(course *c, me_diag *diag)
{
    for (bool has_moved = true; has_moved;) {
        has_moved = false;
        for (int32_t rank = 0; rank < c->order->n_ranks; rank++) {
            has_moved |= advance(c, rank);
        }
    }
    for (int32_t rank = 0; rank < c->order->n_ranks; rank++) {
        const me_actions *actions = &c->order->ranks[rank];
        if (c->at[rank] < actions->count) {
            me_str text = {0};
            me_action_write(&actions->items[c->at[rank]], &text);
            me_fail(diag, ME_ERR_CONFIG,
                    "the order would never end: rank %d waits at %s for ever",
                    rank, me_str_text(&text));
            me_str_fini(&text);
            return ME_ERR_CONFIG;
        }
    }
    return ME_OK;
}

me_status me_timeline_create_blocking(const me_pipeline_order *order,
                                      const me_timeline_model *model,
                                      me_diag *diag, me_timeline **timeline_out)
{
    const size_t sides =
        (size_t)order->n_stages * 2 * (size_t)order->n_microbatches * SIDES;
    const size_t n = (size_t)order->n_ranks;
    course c = {.order = order, .model = model};
    c.timeline = me_timeline_new(order);
    c.posted = me_alloc(sides, sizeof *c.posted, "blocking.posted");
    c.at = me_alloc(n, sizeof *c.at, "blocking.at");
    c.is_free = me_alloc(n, sizeof *c.is_free, "blocking.free");
    me_status status = ME_ERR_NOMEM;
    if (c.timeline == NULL || c.posted == NULL || c.at == NULL ||
        c.is_free == NULL) {
        me_fail(diag, status, "no host memory for a timeline");
        goto out;
    }
    for (size_t i = 0; i < sides; i++) {
        c.posted[i] = -1;
    }
    status = run_all(&c, diag);
    if (status == ME_OK) {
        me_timeline_sum_up(c.timeline);
        *timeline_out = c.timeline;
        c.timeline = NULL;
    }
out:
    me_timeline_destroy(c.timeline);
    me_free(c.posted);
    me_free(c.at);
    me_free(c.is_free);
    return status;
}
