/* SPDX-License-Identifier: BSD-3-Clause */
/* A tracker that is told rounds again says what one says that has seen every
 * round with blocks of its own. */
#include "base/alloc.h"
#include "support/random.h"
#include "support/stream.h"
#include "support/test.h"
#include "track/tracker.h"

#include <string.h>

enum {
    CASES = 200,
    DEPTH_MAX = 4,  /**< blocks in flight */
    STEPS_MAX = 12, /**< of a round */
    LASTING = 100,  /**< id of a block that is there all the time */
    TOP = 101       /**< of the one that makes the first peak */
};

/** What a round does beside its block in flight. */
typedef struct step {
    me_event_kind kind;
    uint64_t bytes; /**< of a temporary that comes and goes */
} step;

typedef struct loop {
    uint32_t depth; /**< a round frees what was made so many rounds before */
    uint32_t rounds;
    uint64_t top_bytes;
    bool keeps_top;           /**< until the loop is over */
    int32_t recategorize_age; /**< rounds after it was made; -1: never */
    bool touches_lasting;
    step steps[STEPS_MAX];
    uint32_t n_steps;
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

/** @param blocks  in flight, the oldest first; @p made comes new */
static void tell_round(const told *t, const loop *l, const uint32_t *blocks,
                       uint32_t made, uint32_t temporary)
{
    static const me_phase phases[] = {ME_PHASE_FORWARD, ME_PHASE_BACKWARD};
    tell(t, (me_event){.kind = ME_EVENT_PHASE, .phase = ME_PHASE_FORWARD});
    tell_alloc(t, made, 50, ME_CATEGORY_TEMPORARY);
    if (l->recategorize_age == 0) {
        tell_category(t, made, ME_CATEGORY_ACTIVATION);
    } else if (l->recategorize_age > 0) {
        tell_category(t, blocks[l->depth - (uint32_t)l->recategorize_age],
                      ME_CATEGORY_ACTIVATION);
    }
    if (l->touches_lasting) {
        tell_category(t, LASTING, ME_CATEGORY_GRADIENT);
    }
    for (uint32_t i = 0; i < l->n_steps; i++) {
        if (l->steps[i].kind == ME_EVENT_PHASE) {
            tell(t, (me_event){.kind = ME_EVENT_PHASE,
                               .phase = (uint8_t)phases[i % 2]});
        } else if (l->steps[i].kind == ME_EVENT_POINT) {
            tell(t, (me_event){.kind = ME_EVENT_POINT, .name = "fwd_end"});
        } else {
            tell_alloc(t, temporary, l->steps[i].bytes, ME_CATEGORY_TEMPORARY);
            tell_free(t, temporary);
        }
    }
    tell_free(t, blocks[0]);
}

static void begin(const told *t, const loop *l)
{
    tell(t, (me_event){.kind = ME_EVENT_ITERATION});
    tell_alloc(t, LASTING, 10, ME_CATEGORY_TEMPORARY);
    for (uint32_t i = 0; i < l->depth; i++) {
        tell_alloc(t, i, 50, ME_CATEGORY_TEMPORARY);
    }
    tell_alloc(t, TOP, l->top_bytes, ME_CATEGORY_TEMPORARY);
    if (!l->keeps_top) {
        tell_free(t, TOP);
    }
}

/** What is left goes, and turns out to be something else just before. */
static void end(const told *t, const loop *l, const uint32_t *blocks)
{
    for (uint32_t i = 0; i < l->depth; i++) {
        tell_category(t, blocks[i], ME_CATEGORY_ACTIVATION);
    }
    tell_alloc(t, 200, 60, ME_CATEGORY_TEMPORARY);
    for (uint32_t i = 0; i < l->depth; i++) {
        tell_free(t, blocks[i]);
    }
    tell(t, (me_event){.kind = ME_EVENT_POINT, .name = "iter1_end"});
}

/** Every round with blocks of its own. */
static void run_all(const me_observer *o, const loop *l)
{
    told t = {.observer = o, .kinds = UINT32_MAX};
    uint32_t blocks[DEPTH_MAX + 1] = {0, 1, 2, 3};
    begin(&t, l);
    for (uint32_t i = 0; i < l->rounds; i++) {
        const uint32_t made = 1000 + 2 * i;
        t.microbatch = (int32_t)i;
        tell_round(&t, l, blocks, made, made + 1);
        memmove(blocks, blocks + 1, sizeof blocks - sizeof blocks[0]);
        blocks[l->depth - 1] = made;
    }
    end(&t, l, blocks);
}

/** The first round, then the same again with blocks renamed. */
static void run_again(const me_observer *o, const loop *l)
{
    told t = {.observer = o, .kinds = UINT32_MAX};
    const uint32_t blocks[DEPTH_MAX] = {0, 1, 2, 3};
    const uint32_t made = 1000;
    me_rename renames[DEPTH_MAX + 2];
    uint32_t n = 0;
    renames[n++] = (me_rename){LASTING, LASTING};
    if (l->keeps_top) {
        renames[n++] = (me_rename){TOP, TOP};
    }
    for (uint32_t i = 0; i < l->depth; i++) { /* those after the round */
        renames[n++] = (me_rename){i + 1 < l->depth ? i + 1 : made, i};
    }
    begin(&t, l);
    for (uint32_t i = 0; i < l->rounds; i++) {
        t.microbatch = (int32_t)i;
        t.kinds = i == 0 ? UINT32_MAX : o->on_again(o->self, renames, n);
        tell_round(&t, l, blocks, made, made + 1);
    }
    if (l->rounds > 1) {
        o->on_again_end(o->self);
    }
    t.kinds = UINT32_MAX;
    uint32_t left[DEPTH_MAX + 1] = {1, 2, 3, 4};
    left[l->depth - 1] = made;
    end(&t, l, left);
}

/** The tracker's result as bytes, owned by the caller. */
static unsigned char *track(const loop *l, bool tells_again, size_t *size_out)
{
    me_tracker *tracker = me_tracker_create(&me_stream_tree, NULL, NULL);
    assert_non_null(tracker);
    const me_observer observer = me_tracker_observer(tracker);
    if (tells_again) {
        run_again(&observer, l);
    } else {
        run_all(&observer, l);
    }
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
    loop l = {
        .depth = (uint32_t)me_random_in(random, 1, DEPTH_MAX),
        .rounds = (uint32_t)me_random_in(random, 1, 12),
        .top_bytes = (uint64_t)me_random_in(random, 1, 200),
        .keeps_top = me_random_in(random, 0, 1) != 0,
        .touches_lasting = me_random_in(random, 0, 3) == 0,
        .n_steps = (uint32_t)me_random_in(random, 0, STEPS_MAX),
    };
    l.recategorize_age =
        (int32_t)me_random_in(random, 0, (int32_t)l.depth + 1) - 1;
    for (uint32_t i = 0; i < l.n_steps; i++) {
        static const me_event_kind kinds[] = {ME_EVENT_PHASE, ME_EVENT_POINT,
                                              ME_EVENT_ALLOC};
        l.steps[i] = (step){kinds[me_random_in(random, 0, 2)],
                            (uint64_t)me_random_in(random, 1, 200)};
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

static void test_rounds__change_nothing(void **state)
{
    (void)state;
    me_property_run(telling_again_changes_nothing, CASES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounds__change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
