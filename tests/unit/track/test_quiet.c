/* SPDX-License-Identifier: BSD-3-Clause */
/* A tracker that is told actions again, and leaves out of them what it can,
 * says what one says that is told all. */
#include "base/alloc.h"
#include "support/random.h"
#include "support/stream.h"
#include "support/test.h"
#include "track/tracker.h"

#include <string.h>

enum {
    CASES = 200,
    IN_FLIGHT_MAX = 6, /**< blocks that outlive their actions */
    STEPS_MAX = 12,    /**< of an action */
    TEMPORARY = 1000,
    PENDING = 1001
};

/** What an action does beside its block. */
typedef struct step {
    me_event_kind kind;
    uint64_t bytes; /**< of a temporary that comes and goes */
} step;

/** Two kinds of actions: the one makes a block, the other frees the oldest. */
typedef struct loop {
    uint64_t bytes;
    uint64_t pending_bytes; /**< freed late, at the beginning of an action */
    bool is_recategorized;
    step steps[2][STEPS_MAX];
    uint32_t n_steps;
    uint32_t n_actions;
    bool frees[32]; /**< is the action of the second kind? */
} loop;

typedef struct told {
    const me_observer *observer;
    uint32_t kinds;
    int32_t microbatch;
} told;

static void tell(const told *t, me_event event)
{
    event.iteration = 1;
    event.microbatch = t->microbatch;
    event.op = "op";
    if ((t->kinds & ME_EVENT_BIT(event.kind)) != 0) {
        t->observer->on_event(t->observer->self, &event);
    }
}

static void tell_alloc(const told *t, uint32_t block, uint64_t bytes,
                       me_category category)
{
    tell(t, (me_event){.kind = ME_EVENT_ALLOC,
                       .block = block,
                       .bytes = bytes,
                       .category = (uint8_t)category,
                       .phase = ME_PHASE_FORWARD});
}

static void tell_free(const told *t, uint32_t block)
{
    tell(t, (me_event){.kind = ME_EVENT_FREE_REQUESTED, .block = block});
    tell(t, (me_event){.kind = ME_EVENT_FREE_COMPLETED, .block = block});
}

static void tell_category(const told *t, uint32_t block, me_category category)
{
    tell(t, (me_event){.kind = ME_EVENT_RECATEGORIZE,
                       .block = block,
                       .category = (uint8_t)category});
}

/** An event of an action: of a block that outlives it, or @p passes. */
static void tell_step(const told *t, const step *x, uint32_t number)
{
    static const me_phase phases[] = {ME_PHASE_FORWARD, ME_PHASE_BACKWARD};
    if (x->kind == ME_EVENT_PHASE) {
        tell(t, (me_event){.kind = ME_EVENT_PHASE,
                           .phase = (uint8_t)phases[number % 2]});
    } else if (x->kind == ME_EVENT_POINT) {
        tell(t, (me_event){.kind = ME_EVENT_POINT, .name = "fwd_end"});
    } else if ((t->kinds & ME_REPEATED_PASSING) != 0) {
        tell_alloc(t, TEMPORARY, x->bytes, ME_CATEGORY_TEMPORARY);
        tell_free(t, TEMPORARY);
    }
}

static void tell_action(const told *t, const loop *l, bool frees,
                        const uint32_t *block)
{
    if (l->pending_bytes > 0) {
        tell(t, (me_event){.kind = ME_EVENT_FREE_COMPLETED, .block = PENDING});
    }
    if (!frees) {
        tell_alloc(t, *block, l->bytes, ME_CATEGORY_TEMPORARY);
    } else if (l->is_recategorized) {
        tell_category(t, *block, ME_CATEGORY_ACTIVATION);
    }
    for (uint32_t i = 0; i < l->n_steps; i++) {
        tell_step(t, &l->steps[frees ? 1 : 0][i], i);
    }
    if (frees) {
        tell_free(t, *block);
    }
}

/** Marks of an action, by hand. @return how many */
static uint32_t make_marks(const loop *l, bool frees, me_repeat_mark *marks)
{
    int64_t level = frees ? 0 : (int64_t)l->bytes;
    int64_t peak = level;
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->n_steps; i++) {
        const step *x = &l->steps[frees ? 1 : 0][i];
        if (x->kind == ME_EVENT_ALLOC) {
            const int64_t there = level + (int64_t)x->bytes;
            peak = peak > there ? peak : there;
        } else {
            marks[n++] = (me_repeat_mark){level, peak, false};
            peak = level;
        }
    }
    level -= frees ? (int64_t)l->bytes : 0;
    marks[n++] = (me_repeat_mark){level, peak, false};
    return n;
}

static uint32_t begin_again(const me_observer *o, const loop *l, bool frees,
                            me_repeat_mark *marks)
{
    const me_repeated again = {
        .id = frees ? 1 : 0,
        .marks = marks,
        .n_marks = make_marks(l, frees, marks),
        .pending_bytes = l->pending_bytes,
        .entered_bytes = l->pending_bytes,
        .is_usual = true,
    };
    return o->on_repeated(o->self, &again);
}

/** All actions, told in full or again. */
static void run(const me_observer *o, const loop *l, bool tells_again)
{
    told t = {.observer = o, .kinds = UINT32_MAX};
    me_repeat_mark marks[STEPS_MAX + 1];
    uint32_t first = 0;
    uint32_t next = 0;
    tell(&t, (me_event){.kind = ME_EVENT_ITERATION});
    for (uint32_t i = 0; i < l->n_actions; i++) {
        const bool frees = l->frees[i] && first < next;
        const uint32_t block = frees ? first++ : next++;
        t.microbatch = (int32_t)block;
        if (l->pending_bytes > 0) {
            tell_alloc(&t, PENDING, l->pending_bytes, ME_CATEGORY_OTHER);
            tell(&t,
                 (me_event){.kind = ME_EVENT_FREE_REQUESTED, .block = PENDING});
        }
        if (tells_again) {
            t.kinds = begin_again(o, l, frees, marks);
        }
        tell_action(&t, l, frees, &block);
        if (tells_again) {
            o->on_repeated_end(o->self);
        }
        t.kinds = UINT32_MAX;
    }
    for (; first < next; first++) {
        tell_free(&t, first);
    }
    tell(&t, (me_event){.kind = ME_EVENT_POINT, .name = "iter1_end"});
}

/** The tracker's result as bytes, owned by the caller. */
static unsigned char *track(const loop *l, bool tells_again, size_t *size_out)
{
    me_tracker *tracker = me_tracker_create(&me_stream_tree, NULL, NULL);
    assert_non_null(tracker);
    const me_observer observer = me_tracker_observer(tracker);
    run(&observer, l, tells_again);
    me_rank_result *result = NULL;
    me_diag diag = {0};
    assert_int_equal(me_tracker_finish(tracker, &diag, &result), ME_OK);
    unsigned char *bytes = NULL;
    assert_int_equal(me_rank_result_encode(result, &bytes, size_out), ME_OK);
    me_rank_result_destroy(result);
    me_tracker_destroy(tracker);
    return bytes;
}

static loop make_loop(me_random *random)
{
    static const me_event_kind kinds[] = {ME_EVENT_PHASE, ME_EVENT_POINT,
                                          ME_EVENT_ALLOC};
    loop l = {
        .bytes = (uint64_t)me_random_in(random, 1, 60),
        .pending_bytes = (uint64_t)me_random_in(random, 0, 3) * 20,
        .is_recategorized = me_random_in(random, 0, 1) != 0,
        .n_steps = (uint32_t)me_random_in(random, 0, STEPS_MAX),
        .n_actions = (uint32_t)me_random_in(random, 1, 32),
    };
    for (uint32_t i = 0; i < 2 * l.n_steps; i++) {
        l.steps[i % 2][i / 2] = (step){kinds[me_random_in(random, 0, 2)],
                                       (uint64_t)me_random_in(random, 1, 200)};
    }
    uint32_t in_flight = 0;
    for (uint32_t i = 0; i < l.n_actions; i++) {
        l.frees[i] =
            in_flight == IN_FLIGHT_MAX || me_random_in(random, 0, 1) != 0;
        in_flight += l.frees[i] ? (in_flight > 0 ? UINT32_MAX : 1) : 1;
    }
    return l;
}

static const char *telling_again_changes_nothing(me_random *random)
{
    const loop l = make_loop(random);
    size_t size = 0;
    size_t again_size = 0;
    unsigned char *all = track(&l, false, &size);
    unsigned char *again = track(&l, true, &again_size);
    const bool is_same = size == again_size && memcmp(all, again, size) == 0;
    me_free(all);
    me_free(again);
    return is_same ? NULL : "the results differ";
}

static void test_quiet__changes_nothing(void **state)
{
    (void)state;
    me_property_run(telling_again_changes_nothing, CASES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quiet__changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
