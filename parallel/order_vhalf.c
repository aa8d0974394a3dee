/* SPDX-License-Identifier: BSD-3-Clause */
// V-Half and V-Min (Qi et al., arXiv 2405.15362, "controllable memory"): two
// chunks in the shape of a V. A building block says at which of 6 slots each
// micro-batch's actions begin, so that a rank holds little; what the repeated
// block leaves free is then filled by moving actions forward.

#include "base/alloc.h"
#include "parallel/orders.h"

#include <stddef.h>

/** The order in which actions of one slot are taken. */
typedef enum kind {
    F0,
    F1,
    I1,
    I0,
    W,
    KINDS
} kind;

enum {
    PERIOD = 6 /**< slots from one micro-batch to the next */
};

/** Which action begins in which slot of each rank. An action of rank r is
 *  numbered kind x width + micro-batch; of weight gradients the number is that
 *  of the input gradient on the rank, in the order of slots. */
typedef struct grid {
    int32_t ranks;
    int32_t microbatches;
    int32_t width;   /**< numbers of a kind */
    int32_t slots;   /**< of a rank */
    int32_t *at;     /**< rank x slots: action + 1, 0: free */
    int32_t *slot;   /**< rank x kinds x width */
    int32_t *walked; /**< `at` when a walk began */
} grid;

static int32_t *slot_of(const grid *g, int32_t rank, int32_t action)
{
    return &g->slot[rank * KINDS * g->width + action];
}

static int32_t start_of(const grid *g, int32_t rank, kind k, int32_t i)
{
    return *slot_of(g, rank, (int32_t)k * g->width + i);
}

static int32_t *cell(const grid *g, int32_t rank, int32_t slot)
{
    return &g->at[rank * g->slots + slot];
}

static void place(grid *g, int32_t rank, int32_t action, int32_t slot)
{
    *cell(g, rank, slot) = action + 1;
    *slot_of(g, rank, action) = slot;
}

static void move(grid *g, int32_t rank, int32_t action, int32_t slot)
{
    *cell(g, rank, *slot_of(g, rank, action)) = 0;
    place(g, rank, action, slot);
}

static kind kind_of(const grid *g, int32_t action)
{
    return (kind)(action / g->width);
}

static bool is_gradient(kind k)
{
    return k == I0 || k == I1;
}

/** Each weight gradient into the first free slot after its input gradient. */
static void add_weights(grid *g)
{
    for (int32_t rank = 0; rank < g->ranks; rank++) {
        int32_t n = 0;
        for (int32_t s = 0; n < 2 * g->microbatches; s++) {
            const int32_t action = *cell(g, rank, s) - 1;
            if (action < 0 || !is_gradient(kind_of(g, action))) {
                continue;
            }
            int32_t free_slot = s + 1;
            while (*cell(g, rank, free_slot) != 0) {
                free_slot++;
            }
            place(g, rank, W * g->width + n++, free_slot);
        }
    }
}

static void drop_weights(grid *g)
{
    for (int32_t rank = 0; rank < g->ranks; rank++) {
        for (int32_t i = 0; i < 2 * g->microbatches; i++) {
            *cell(g, rank, start_of(g, rank, W, i)) = 0;
        }
    }
}

/** Most forwards whose weight gradient has not begun. Without weight
 *  gradients in the grid, they fill the free slots. */
static int32_t peak(const grid *g, int32_t rank, bool has_weights)
{
    int32_t held = 0;
    int32_t pending = 0;
    int32_t most = 0;
    for (int32_t s = 0; s < g->slots; s++) {
        const int32_t action = *cell(g, rank, s) - 1;
        const kind k = action < 0 ? KINDS : kind_of(g, action);
        if (k == F0 || k == F1) {
            held++;
        } else if (is_gradient(k)) {
            pending += has_weights ? 0 : 1;
        } else if (k == W) {
            held--;
        } else if (pending > 0) {
            pending--;
            held--;
        }
        most = held > most ? held : most;
    }
    return most;
}

/** The slot of the rank's @p n-th input gradient, and its action. */
static int32_t nth_gradient(const grid *g, int32_t rank, int32_t n,
                            int32_t *action_out)
{
    int32_t s = 0;
    for (;; s++) {
        const int32_t action = *cell(g, rank, s) - 1;
        if (action >= 0 && is_gradient(kind_of(g, action)) && n-- == 0) {
            *action_out = action;
            return s;
        }
    }
}

/** What an action waits for besides its micro-batch's order: the same kind on
 *  the rank it comes from; at the turn, the kind before on its own. */
static kind input_of(const grid *g, int32_t rank, kind k, int32_t *from_out)
{
    const bool goes_up = k == F0 || k == I1;
    const bool is_end = goes_up ? rank == 0 : rank == g->ranks - 1;
    *from_out = is_end ? rank : rank + (goes_up ? -1 : 1);
    return is_end ? (kind)(k - 1) : k; // F0 of rank 0 has none
}

/** The last slot of what an action waits for; −1: it waits for nothing. */
static int32_t last_input(const grid *g, int32_t rank, int32_t action)
{
    const kind k = kind_of(g, action);
    const int32_t i = action % g->width;
    int32_t other = 0;
    if (k == W) {
        return nth_gradient(g, rank, i, &other);
    }
    int32_t last = i > 0 ? start_of(g, rank, k, i - 1) : -1;
    if (k != F0) {
        const int32_t own = start_of(g, rank, (kind)(k - 1), i);
        last = own > last ? own : last;
    }
    int32_t from = 0;
    const kind input = input_of(g, rank, k, &from);
    if (k != F0 || rank != 0) {
        const int32_t theirs = start_of(g, from, input, i);
        last = theirs > last ? theirs : last;
    }
    return last;
}

/** To the first free slot in which the rank holds no more than the limit. */
static void move_forward(grid *g, int32_t rank, int32_t action,
                         bool has_weights, int32_t limit)
{
    const int32_t before = *slot_of(g, rank, action);
    for (int32_t s = last_input(g, rank, action) + 1; s < before; s++) {
        if (*cell(g, rank, s) != 0) {
            continue;
        }
        move(g, rank, action, s);
        if (peak(g, rank, has_weights) <= limit) {
            return;
        }
        move(g, rank, action, before);
    }
}

/**
 * Move what fills the pipeline and what drains it; between the first I0 of
 * rank 0 and the first forward of the last micro-batch blocks stay whole.
 */
static void walk(grid *g, bool has_weights, int32_t limit)
{
    for (int32_t i = 0; i < g->ranks * g->slots; i++) {
        g->walked[i] = g->at[i];
    }
    bool is_filling = true;
    bool is_draining = false;
    for (int32_t i = 0; i < g->ranks * g->slots; i++) {
        const int32_t rank = i % g->ranks;
        const int32_t action = g->walked[rank * g->slots + i / g->ranks] - 1;
        if (action < 0) {
            continue;
        }
        const kind k = kind_of(g, action);
        is_filling = is_filling && !(k == I0 && rank == 0);
        if (is_draining || (is_filling && has_weights)) {
            move_forward(g, rank, action, has_weights, limit);
        }
        is_draining = is_draining || (!is_filling && k == F0 &&
                                      action % g->width == g->microbatches - 1);
    }
}

/** Where a squeeze has come to on a rank. */
typedef struct cursor {
    int32_t slot; /**< next one to look at, of the old grid */
    int32_t n;    /**< weight gradients so far */
    int32_t end;  /**< when the rank is free */
} cursor;

/** When the inputs of an action end in the new times; −1: not known yet. */
static int32_t inputs_end(const grid *g, const int32_t *ends, int32_t rank,
                          int32_t action)
{
    const int32_t per_rank = KINDS * g->width;
    const kind k = kind_of(g, action);
    int32_t from = rank;
    int32_t input = 0;
    if (k == W) {
        (void)nth_gradient(g, rank, action % g->width, &input);
    } else if (k == F0 && rank == 0) {
        return 0;
    } else {
        const kind before = input_of(g, rank, k, &from);
        input = (int32_t)before * g->width + action % g->width;
    }
    const int32_t end = ends[from * per_rank + input];
    return end == 0 ? -1 : end;
}

/** Run a rank's actions as far as their inputs are there. */
static bool squeeze_rank(grid *g, cursor *c, int32_t *ends, int32_t rank)
{
    bool has_moved = false;
    for (; c->slot < g->slots; c->slot++) {
        const int32_t action = *cell(g, rank, c->slot) - 1;
        if (action < 0) {
            continue;
        }
        const int32_t ready = inputs_end(g, ends, rank, action);
        if (ready < 0) {
            return has_moved;
        }
        c->end = (ready > c->end ? ready : c->end) + 1;
        ends[rank * KINDS * g->width + action] = c->end;
        has_moved = true;
    }
    return has_moved;
}

/** Keep the order, begin everything as early as it can. */
static me_status squeeze(grid *g)
{
    const size_t actions = (size_t)g->ranks * KINDS * (size_t)g->width;
    int32_t *ends = me_alloc(actions, sizeof *ends, "vhalf.ends");
    cursor *cursors = me_alloc((size_t)g->ranks, sizeof *cursors, "vhalf");
    const bool has_room = ends != NULL && cursors != NULL;
    for (bool has_moved = has_room; has_moved;) {
        has_moved = false;
        for (int32_t rank = 0; rank < g->ranks; rank++) {
            has_moved |= squeeze_rank(g, &cursors[rank], ends, rank);
        }
    }
    for (int32_t i = 0; has_room && i < g->ranks * g->slots; i++) {
        g->at[i] = 0;
    }
    for (size_t i = 0; has_room && i < actions; i++) {
        if (ends[i] != 0) {
            const int32_t per_rank = KINDS * g->width;
            place(g, (int32_t)i / per_rank, (int32_t)i % per_rank, ends[i] - 1);
        }
    }
    me_free(ends);
    me_free(cursors);
    return has_room ? ME_OK : ME_ERR_NOMEM;
}

/** Weight gradients waiting on a rank, of each chunk. */
typedef struct waiting {
    int32_t made[2];
    int32_t done[2];
} waiting;

/** One that waits, chunk 1 first. @return was there one? */
static bool push_weight(waiting *w, me_actions *actions)
{
    for (int32_t chunk = 1; chunk >= 0; chunk--) {
        if (w->done[chunk] < w->made[chunk]) {
            me_order_push(actions, ME_ACTION_WEIGHT_GRADIENT, chunk,
                          w->done[chunk]++);
            return true;
        }
    }
    return false;
}

/** The order of a rank; weight gradients in every slot that is free. */
static void push_rank(const grid *g, int32_t rank, me_actions *actions)
{
    static const me_action_kind kinds[] = {ME_ACTION_FORWARD, ME_ACTION_FORWARD,
                                           ME_ACTION_INPUT_GRADIENT,
                                           ME_ACTION_INPUT_GRADIENT};
    waiting w = {.made = {0}};
    for (int32_t s = 0; s < g->slots; s++) {
        const int32_t action = *cell(g, rank, s) - 1;
        if (action < 0) {
            push_weight(&w, actions);
            continue;
        }
        const kind k = kind_of(g, action);
        const int32_t chunk = k == F1 || k == I1;
        me_order_push(actions, kinds[k], chunk, action % g->width);
        w.made[chunk] += is_gradient(k);
    }
    while (push_weight(&w, actions)) {
    }
    me_order_mark_phases(actions);
}

/** First slots of F0, F1, I1, I0 of a rank's micro-batch 0. */
typedef void block_function(int32_t p, int32_t rank, int32_t first[4]);

static void repeat_block(grid *g, block_function *block)
{
    for (int32_t rank = 0; rank < g->ranks; rank++) {
        int32_t first[4];
        block(g->ranks, rank, first);
        for (int32_t k = F0; k <= I0; k++) {
            for (int32_t i = 0; i < g->microbatches; i++) {
                place(g, rank, k * g->width + i, first[k] + PERIOD * i);
            }
        }
    }
}

static me_status fill_grid(grid *g, block_function *block)
{
    repeat_block(g, block);
    add_weights(g);
    int32_t limit = 0;
    for (int32_t rank = 0; rank < g->ranks; rank++) {
        const int32_t most = peak(g, rank, true);
        limit = most > limit ? most : limit;
    }
    walk(g, true, limit);
    me_status status = squeeze(g);
    drop_weights(g);
    walk(g, false, limit);
    add_weights(g);
    status = status == ME_OK ? squeeze(g) : status;
    drop_weights(g);
    return status;
}

static me_status list_block(const me_pipeline *pipeline, block_function *block,
                            me_actions *ranks)
{
    const int32_t p = pipeline->ranks;
    const int32_t m = pipeline->microbatches;
    grid g = {.ranks = p, .microbatches = m, .width = 2 * m};
    g.slots = (PERIOD + 2) * (m + p + 2);
    const size_t cells = (size_t)p * (size_t)g.slots;
    g.at = me_alloc(cells, sizeof *g.at, "vhalf.grid");
    g.walked = me_alloc(cells, sizeof *g.walked, "vhalf.grid");
    g.slot = me_alloc((size_t)p * KINDS * (size_t)g.width, sizeof *g.slot,
                      "vhalf.slots");
    me_status status = ME_ERR_NOMEM;
    if (g.at != NULL && g.walked != NULL && g.slot != NULL) {
        status = fill_grid(&g, block);
    }
    for (int32_t rank = 0; status == ME_OK && rank < p; rank++) {
        push_rank(&g, rank, &ranks[rank]);
    }
    me_free(g.at);
    me_free(g.walked);
    me_free(g.slot);
    return status;
}

enum {
    ME_V_CELLS = 1 << 24 /**< ranks x micro-batches that are searched at most */
};

static me_status check_v(const char *name, const me_pipeline *pipeline,
                         me_diag *diag)
{
    if (pipeline->ranks < 2) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "schedule %s needs at least 2 pipeline ranks, not %d",
                       name, pipeline->ranks);
    }
    if (pipeline->microbatches > ME_V_CELLS / pipeline->ranks) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "schedule %s is not searched for %d micro-batches on "
                       "%d pipeline ranks; their product may be %d at most",
                       name, pipeline->microbatches, pipeline->ranks,
                       ME_V_CELLS);
    }
    return me_order_check_chunks(name, pipeline, 2, diag);
}

static me_status check_half(const me_pipeline *pipeline, me_diag *diag)
{
    return check_v("vhalf", pipeline, diag);
}

static void half_block(int32_t p, int32_t rank, int32_t first[4])
{
    const int32_t g = p % 2 == 0 ? 3 : 0;
    first[F0] = 2 * rank;
    first[F1] = 3 * p - 2 - rank;
    first[I1] = 3 * p - 1 + g + 2 * rank;
    first[I0] = 6 * p - 2 + g - rank;
}

static me_status list_half(const me_pipeline *pipeline, me_actions *ranks)
{
    return list_block(pipeline, half_block, ranks);
}

/** Published: (p + 2) / 2 micro-batches of a whole rank. */
static int32_t in_flight_half(const me_pipeline *pipeline)
{
    return 2 * ((pipeline->ranks + 2) / 2);
}

const me_schedule me_order_vhalf = {
    .name = "vhalf",
    .summary = "two chunks in a V, half the memory of 1f1b",
    .placement = ME_PLACEMENT_V,
    .check = check_half,
    .list_all = list_half,
    .in_flight = in_flight_half,
    .is_bound = true,
};

static me_status check_min(const me_pipeline *pipeline, me_diag *diag)
{
    return check_v("vmin", pipeline, diag);
}

static void min_block(int32_t p, int32_t rank, int32_t first[4])
{
    const int32_t g = p % 3 == 0 ? 2 : 0;
    first[F0] = rank;
    first[F1] = 2 * p - 1 - rank;
    first[I1] = 2 * p + g + rank;
    first[I0] = 4 * p + g - 1 - rank;
}

static me_status list_min(const me_pipeline *pipeline, me_actions *ranks)
{
    return list_block(pipeline, min_block, ranks);
}

/** Published: (p + 4) / 3 micro-batches of a whole rank. */
static int32_t in_flight_min(const me_pipeline *pipeline)
{
    return 2 * ((pipeline->ranks + 4) / 3);
}

const me_schedule me_order_vmin = {
    .name = "vmin",
    .summary = "two chunks in a V, a third of the memory of 1f1b",
    .placement = ME_PLACEMENT_V,
    .check = check_min,
    .list_all = list_min,
    .in_flight = in_flight_min,
    .is_bound = true,
};
