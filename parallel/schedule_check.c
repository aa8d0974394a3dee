/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/schedule_check.h"

#include "base/alloc.h"

/** Of a stage's micro-batch: what is there, or has left. */
enum {
    HAS_INPUT = 1,
    HAS_GRADIENT = 2,
    HAS_RUN_FORWARD = 4,
    HAS_RUN_BACKWARD = 8,
    HAS_SENT_FORWARD = 16,
    HAS_SENT_BACKWARD = 32
};

static uint8_t *has_of(const me_pipeline_order *order, uint8_t *has,
                       int32_t stage, int32_t microbatch)
{
    return &has[(size_t)stage * (size_t)order->n_microbatches +
                (size_t)microbatch];
}

static int32_t next_of(const me_pipeline_order *o, int32_t stage)
{
    return me_placement_next(o->placement, o->n_stages, stage);
}

static int32_t previous_of(const me_pipeline_order *o, int32_t stage)
{
    return me_placement_previous(o->placement, o->n_stages, stage);
}

/** The mark that an action leaves, of its own stage. */
static uint8_t mark(me_action_kind kind)
{
    static const uint8_t marks[ME_ACTION_COUNT] = {
        [ME_ACTION_FORWARD] = HAS_RUN_FORWARD,
        [ME_ACTION_BACKWARD] = HAS_RUN_BACKWARD,
        [ME_ACTION_INPUT_GRADIENT] = HAS_RUN_BACKWARD,
        [ME_ACTION_SEND_FORWARD] = HAS_SENT_FORWARD,
        [ME_ACTION_SEND_BACKWARD] = HAS_SENT_BACKWARD,
        [ME_ACTION_RECV_FORWARD] = HAS_INPUT,
        [ME_ACTION_RECV_BACKWARD] = HAS_GRADIENT,
    };

    return marks[kind];
}

/** What an action needs to be there. */
static uint8_t needs(const me_pipeline_order *o, const me_action *a)
{
    const me_action_kind kind = (me_action_kind)a->kind;
    if (kind == ME_ACTION_FORWARD) {
        return previous_of(o, a->stage) < 0 ? 0 : HAS_INPUT;
    }
    if (kind == ME_ACTION_BACKWARD || kind == ME_ACTION_INPUT_GRADIENT) {
        return next_of(o, a->stage) < 0 ? HAS_RUN_FORWARD
                                        : HAS_RUN_FORWARD | HAS_GRADIENT;
    }
    return kind == ME_ACTION_SEND_FORWARD ? HAS_RUN_FORWARD
           : kind == ME_ACTION_SEND_BACKWARD ||
                   kind == ME_ACTION_WEIGHT_GRADIENT
               ? HAS_RUN_BACKWARD
               : 0;
}

/** Does a tensor cross ranks between two neighbours of a chain? */
static bool crosses(const me_pipeline_order *o, int32_t stage, int32_t other)
{
    return other >= 0 && o->rank_of_stage[stage] != o->rank_of_stage[other];
}

/** Is an action's result for another stage of the same rank? Then it is there
 *  at once. */
static void hand_over(const me_pipeline_order *o, uint8_t *has,
                      const me_action *a)
{
    const bool is_forward = a->kind == ME_ACTION_FORWARD;
    if (mark((me_action_kind)a->kind) != HAS_RUN_BACKWARD && !is_forward) {
        return;
    }
    const int32_t to =
        is_forward ? next_of(o, a->stage) : previous_of(o, a->stage);
    if (to >= 0 && !crosses(o, a->stage, to)) {
        *has_of(o, has, to, a->microbatch) |=
            is_forward ? HAS_INPUT : HAS_GRADIENT;
    }
}

/** The marks that a stage's micro-batch has in the end. */
static uint8_t all_marks(const me_pipeline_order *o, int32_t stage)
{
    const int32_t previous = previous_of(o, stage);
    const int32_t next = next_of(o, stage);
    return (uint8_t)(HAS_RUN_FORWARD | HAS_RUN_BACKWARD |
                     (previous >= 0 ? HAS_INPUT : 0) |
                     (next >= 0 ? HAS_GRADIENT : 0) |
                     (crosses(o, stage, previous) ? HAS_SENT_BACKWARD : 0) |
                     (crosses(o, stage, next) ? HAS_SENT_FORWARD : 0));
}

/** Is it of the kinds that exchange with the stage after? */
static bool is_with_next(const me_action *a)
{
    return a->kind == ME_ACTION_SEND_FORWARD ||
           a->kind == ME_ACTION_RECV_BACKWARD;
}

/** The stage at the other end of a transfer. */
static int32_t other_end(const me_pipeline_order *o, const me_action *a)
{
    return is_with_next(a) ? next_of(o, a->stage) : previous_of(o, a->stage);
}

static me_status check_transfer(const me_pipeline_order *o, uint8_t *has,
                                const me_action *a, int32_t rank, me_diag *diag)
{
    const me_action_kind kind = (me_action_kind)a->kind;
    if (me_action_is_of_parameters(kind)) {
        return ME_OK;
    }
    uint8_t *seen = has_of(o, has, a->stage, a->microbatch);
    if (me_action_transfers(kind) && !crosses(o, a->stage, other_end(o, a))) {
        return me_action_fail(diag, rank, a,
                              "has no other rank to exchange with");
    }
    if ((*seen & mark(kind)) != 0) {
        return me_action_fail(diag, rank, a, "is there twice");
    }
    if ((*seen & needs(o, a)) != needs(o, a)) {
        return me_action_fail(diag, rank, a,
                              "comes before what it needs is received or made");
    }
    *seen |= mark(kind);
    hand_over(o, has, a);
    return ME_OK;
}

/** Each rank's list for itself, and whether a transfer is missing. */
static me_status check_each(const me_pipeline_order *order, uint8_t *has,
                            me_diag *diag)
{
    me_status status = ME_OK;
    for (int32_t rank = 0; rank < order->n_ranks; rank++) {
        const me_actions *actions = &order->ranks[rank];
        for (int32_t i = 0; status == ME_OK && i < actions->count; i++) {
            status = check_transfer(order, has, &actions->items[i], rank, diag);
        }
    }
    for (int32_t s = 0; status == ME_OK && s < order->n_stages; s++) {
        int32_t count = 0;
        const int32_t first = me_pipeline_order_microbatches(order, s, &count);
        for (int32_t m = first; status == ME_OK && m < first + count; m++) {
            if (*has_of(order, has, s, m) != all_marks(order, s)) {
                status = me_fail(diag, ME_ERR_CONFIG,
                                 "rank %d: a send or receive of stage %d, "
                                 "micro-batch %d, is missing",
                                 order->rank_of_stage[s], s, m);
            }
        }
    }
    return status;
}

/** The other side of a transfer. */
static me_action other_side(const me_pipeline_order *o, const me_action *a)
{
    static const uint8_t others[ME_ACTION_COUNT] = {
        [ME_ACTION_SEND_FORWARD] = ME_ACTION_RECV_FORWARD,
        [ME_ACTION_RECV_FORWARD] = ME_ACTION_SEND_FORWARD,
        [ME_ACTION_SEND_BACKWARD] = ME_ACTION_RECV_BACKWARD,
        [ME_ACTION_RECV_BACKWARD] = ME_ACTION_SEND_BACKWARD,
    };

    return (me_action){.kind = others[a->kind],
                       .stage = other_end(o, a),
                       .microbatch = a->microbatch};
}

static bool is_same(const me_action *a, const me_action *b)
{
    return a->kind == b->kind && a->stage == b->stage &&
           a->microbatch == b->microbatch;
}

static bool is_send(const me_action *a)
{
    return a->kind == ME_ACTION_SEND_FORWARD ||
           a->kind == ME_ACTION_SEND_BACKWARD;
}

/** All ranks, each at a transfer or at its end. */
typedef struct meeting {
    const me_pipeline_order *order;
    int32_t *at; /**< each rank's next action */
} meeting;

/** A rank's next transfer; NULL: there is none. */
static const me_action *next_transfer(meeting *m, int32_t rank)
{
    const me_actions *actions = &m->order->ranks[rank];
    int32_t *at = &m->at[rank];
    while (*at < actions->count &&
           !me_action_transfers((me_action_kind)actions->items[*at].kind)) {
        (*at)++;
    }
    return *at < actions->count ? &actions->items[*at] : NULL;
}

static int32_t peer_of(const meeting *m, const me_action *a)
{
    return m->order->rank_of_stage[other_end(m->order, a)];
}

/** A send meets a receive of something else. */
static me_status fail_pair(const meeting *m, const me_action *a,
                           const me_action *b, me_diag *diag)
{
    const me_action *send = is_send(a) ? a : b;
    const me_action *receive = is_send(a) ? b : a;
    me_str text = {0};
    me_str_printf(&text, "rank %d: ", m->order->rank_of_stage[send->stage]);
    me_action_write(send, &text);
    me_str_printf(&text, " would be received by ");
    me_action_write(receive, &text);
    me_str_printf(&text,
                  " of rank %d: receives must have the order of the sends",
                  m->order->rank_of_stage[receive->stage]);
    const me_status status =
        me_fail(diag, ME_ERR_CONFIG, "%s", me_str_text(&text));
    me_str_fini(&text);
    return status;
}

/** Pass a rank's next transfer if the other rank is at its other side. */
static me_status meet(meeting *m, int32_t rank, me_diag *diag, bool *has_met)
{
    const me_action *a = next_transfer(m, rank);
    const int32_t peer = a == NULL ? -1 : peer_of(m, a);
    const me_action *b = a == NULL ? NULL : next_transfer(m, peer);
    *has_met = false;
    if (b == NULL || peer_of(m, b) != rank || is_send(a) == is_send(b)) {
        return ME_OK;
    }
    const me_action wanted = other_side(m->order, a);
    if (!is_same(b, &wanted)) {
        return fail_pair(m, a, b, diag);
    }
    m->at[rank]++;
    m->at[peer]++;
    *has_met = true;
    return ME_OK;
}

/** Every rank that has not ended waits for one that has not either: following
 *  them as often as there are ranks ends in the cycle. */
static me_status fail_cycle(meeting *m, int32_t rank, me_diag *diag)
{
    for (int32_t i = 0; i < m->order->n_ranks; i++) {
        rank = peer_of(m, next_transfer(m, rank));
    }
    me_str text = {0};
    const int32_t first = rank;
    do {
        const me_action *a = next_transfer(m, rank);
        const me_action wanted = other_side(m->order, a);
        me_str_printf(&text, "%srank %d at ", rank == first ? "" : "; ", rank);
        me_action_write(a, &text);
        me_str_append(&text, " waits for ");
        me_action_write(&wanted, &text);
        rank = peer_of(m, a);
        me_str_printf(&text, " of rank %d", rank);
    } while (rank != first);
    const me_status status =
        me_fail(diag, ME_ERR_CONFIG, "the order would never end: %s",
                me_str_text(&text));
    me_str_fini(&text);
    return status;
}

/** Run the transfers, each of which waits for its other side. */
static me_status check_meetings(meeting *m, me_diag *diag)
{
    me_status status = ME_OK;
    for (bool has_moved = true; has_moved && status == ME_OK;) {
        has_moved = false;
        for (int32_t r = 0; r < m->order->n_ranks && status == ME_OK; r++) {
            bool has_met = true;
            while (has_met && status == ME_OK) {
                status = meet(m, r, diag, &has_met);
                has_moved |= has_met;
            }
        }
    }
    for (int32_t r = 0; r < m->order->n_ranks && status == ME_OK; r++) {
        if (next_transfer(m, r) != NULL) {
            status = fail_cycle(m, r, diag);
        }
    }
    return status;
}

static bool has_batches(const me_pipeline_order *order)
{
    for (int32_t rank = 0; rank < order->n_ranks; rank++) {
        for (int32_t i = 0; i < order->ranks[rank].count; i++) {
            if (order->ranks[rank].items[i].is_batched) {
                return true;
            }
        }
    }
    return false;
}

me_status me_pipeline_order_check_transfers(const me_pipeline_order *order,
                                            me_diag *diag)
{
    meeting m = {.order = order};
    me_status status = ME_ERR_NOMEM;
    uint8_t *has = me_alloc(
        (size_t)order->n_stages * (size_t)order->n_microbatches, 1, "check");
    m.at = me_alloc((size_t)order->n_ranks, sizeof *m.at, "check.at");
    if (has == NULL || m.at == NULL) {
        me_fail(diag, status, "no host memory for the check");
        goto out;
    }
    status = check_each(order, has, diag);
    if (status == ME_OK && !has_batches(order)) {
        status = check_meetings(&m, diag);
    }
out:
    me_free(m.at);
    me_free(has);
    return status;
}

/** What is seen of a stage's parameters. */
typedef struct shards {
    bool is_managed; /**< it has an UNSHARD or RESHARD */
    bool is_whole;
    bool is_used; /**< since it is whole */
    bool is_reduced;
    int32_t n_passed;         /**< weight gradients so far */
    const me_action *unshard; /**< the last one */
} shards;

/** @return what is wrong, or NULL */
static const char *check_action(const me_pipeline_order *o, shards *s,
                                const me_action *a)
{
    int32_t n = 0;
    (void)me_pipeline_order_microbatches(o, a->stage, &n);
    if (me_action_computes((me_action_kind)a->kind)) {
        s->n_passed += a->kind == ME_ACTION_BACKWARD ||
                       a->kind == ME_ACTION_WEIGHT_GRADIENT;
        s->is_used = true;
        return s->is_managed && !s->is_whole
                   ? "computes while its stage is in shards: no UNSHARD stands "
                     "before it"
                   : NULL;
    }
    const char *wrong = NULL;
    if (a->kind == ME_ACTION_UNSHARD) {
        wrong = s->is_whole ? "comes while its stage is whole: no RESHARD "
                              "stands before it"
                            : NULL;
        s->is_whole = true;
        s->is_used = false;
        s->unshard = a;
    } else if (a->kind == ME_ACTION_RESHARD) {
        wrong = !s->is_whole ? "comes while its stage is in shards: no UNSHARD "
                               "stands before it"
                : !s->is_used ? "comes before its stage has computed anything"
                              : NULL;
        s->is_whole = false;
    } else if (a->kind == ME_ACTION_REDUCE_GRAD) {
        wrong = s->is_reduced     ? "is there twice"
                : s->n_passed < n ? "comes before the last backward of its "
                                    "stage"
                                  : NULL;
        s->is_reduced = true;
    }
    return wrong;
}

static me_status check_rank(const me_pipeline_order *o, int32_t rank,
                            shards *stages, me_diag *diag)
{
    const me_actions *actions = &o->ranks[rank];
    for (int32_t i = 0; i < actions->count; i++) {
        const me_action *a = &actions->items[i];
        stages[a->stage].is_managed |=
            a->kind == ME_ACTION_UNSHARD || a->kind == ME_ACTION_RESHARD;
    }
    for (int32_t i = 0; i < actions->count; i++) {
        const me_action *a = &actions->items[i];
        const char *wrong = check_action(o, &stages[a->stage], a);
        if (wrong != NULL) {
            return me_action_fail(diag, rank, a, wrong);
        }
    }
    return ME_OK;
}

me_status me_pipeline_order_check_parameters(const me_pipeline_order *order,
                                             me_diag *diag)
{
    shards *stages =
        me_alloc((size_t)order->n_stages, sizeof *stages, "check.shards");
    if (stages == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the check");
    }
    me_status status = ME_OK;
    for (int32_t rank = 0; status == ME_OK && rank < order->n_ranks; rank++) {
        status = check_rank(order, rank, stages, diag);
    }
    for (int32_t s = 0; status == ME_OK && s < order->n_stages; s++) {
        if (stages[s].is_whole && !stages[s].is_used) {
            status =
                me_action_fail(diag, order->rank_of_stage[s], stages[s].unshard,
                               "gathers what nothing computes with");
        }
    }
    me_free(stages);
    return status;
}
