/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank that makes the blocks of its batches in another order has the segments of
 * the one whose events are told, at the same addresses, wherever that is said. */
#include "alloc/pool_observer.h"
#include "support/random.h"
#include "support/test.h"

#include <string.h>

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)

enum {
    BLOCKS = 64, /* at once */
    STEPS = 400,
    SEGMENTS = 512,
    PARTS = 5,
    CASES = 300
};

/** An allocator, and the segments that it took. */
typedef struct rank {
    me_pool_observer *observer;
    me_pool_trace segments[SEGMENTS];
    uint32_t n_segments;
} rank;

static void note_segment(void *self, const me_pool_trace *entry)
{
    rank *r = self;
    if (entry->action == ME_POOL_TRACE_SEGMENT_ALLOC) {
        assert_true(r->n_segments < SEGMENTS);
        r->segments[r->n_segments++] = *entry;
    }
}

static void begin(rank *r, bool has_twin)
{
    const me_pool_options options = {.conf = me_alloc_conf_default(),
                                     .on_trace = note_segment,
                                     .trace_self = r};
    *r = (rank){.n_segments = 0};
    assert_int_equal(me_pool_observer_create(&options, &r->observer), ME_OK);
    if (has_twin) {
        assert_int_equal(me_pool_observer_add_twin(r->observer, &options),
                         ME_OK);
    }
}

static void tell(const rank *r, me_event event)
{
    const me_observer handle = me_pool_observer_handle(r->observer);
    handle.on_event(handle.self, &event);
}

static void ask(const rank *r, uint32_t block, uint64_t bytes, uint8_t place)
{
    tell(r, (me_event){.kind = ME_EVENT_ALLOC,
                       .block = block,
                       .bytes = bytes,
                       .batch_place = place});
}

static void let_go(const rank *r, uint32_t block)
{
    tell(r, (me_event){.kind = ME_EVENT_FREE_REQUESTED, .block = block});
    tell(r, (me_event){.kind = ME_EVENT_FREE_COMPLETED, .block = block});
}

/** Blocks of a batch by their place on ranks that receive it. */
static const uint64_t part_bytes[PARTS] = {32 * KIB, 32 * KIB, 16 * KIB,
                                           32 * KIB, 3 * MIB};
static const uint8_t loaders[PARTS] = {5, 2, 3, 4, 1};

/** A batch of blocks from @p first on, with or without a mask. */
static void make_batch(const rank ranks[2], uint32_t first, bool has_mask)
{
    for (uint32_t i = has_mask ? 0 : 1; i < PARTS; i++) {
        const uint8_t place = loaders[i];
        ask(&ranks[0], first + place, part_bytes[place - 1], place);
    }
    for (uint32_t i = 0; i < (has_mask ? PARTS : PARTS - 1); i++) {
        ask(&ranks[1], first + i + 1, part_bytes[i], (uint8_t)(i + 1));
    }
}

static void take(const rank ranks[2], uint32_t block, uint64_t bytes)
{
    ask(&ranks[0], block, bytes, 0);
    ask(&ranks[1], block, bytes, 0);
}

static void give(const rank ranks[2], uint32_t block)
{
    let_go(&ranks[0], block);
    let_go(&ranks[1], block);
}

/** A batch's blocks go, in an order of all ranks. */
static void give_batch(const rank ranks[2], uint32_t first, bool has_mask)
{
    for (uint32_t place = has_mask ? PARTS : PARTS - 1; place > 0; place--) {
        give(ranks, first + place);
    }
}

/** Blocks come and go, with batches in between of which parts stay for a while. */
static void run_steps(me_random *random, const rank ranks[2])
{
    static const uint64_t bytes[] = {512,       4 * KIB, 32 * KIB, 64 * KIB,
                                     160 * KIB, MIB,     3 * MIB,  12 * MIB};
    bool is_live[BLOCKS] = {false};
    const int32_t sizes = me_random_in(random, 2, 7);
    const bool has_mask = me_random_in(random, 0, 1) == 0;
    for (int i = 0; i < STEPS; i++) {
        const uint32_t block = (uint32_t)me_random_in(random, 0, BLOCKS - 9);
        const bool is_batch =
            block % 8 == 0; // its blocks come behind the others
        if (is_batch && is_live[block]) {
            give_batch(ranks, BLOCKS + block, has_mask);
        } else if (is_batch) {
            make_batch(ranks, BLOCKS + block, has_mask);
        } else if (is_live[block]) {
            give(ranks, block);
        } else {
            take(ranks, block, bytes[me_random_in(random, 0, sizes)]);
        }
        is_live[block] = !is_live[block];
    }
}

static bool has_same_segments(const rank ranks[2])
{
    bool is_same = ranks[0].n_segments == ranks[1].n_segments;
    for (uint32_t i = 0; is_same && i < ranks[0].n_segments; i++) {
        const me_pool_trace *a = &ranks[0].segments[i];
        const me_pool_trace *b = &ranks[1].segments[i];
        is_same = a->address == b->address && a->bytes == b->bytes;
    }
    return is_same;
}

static void end(rank ranks[2])
{
    me_pool_observer_destroy(ranks[0].observer);
    me_pool_observer_destroy(ranks[1].observer);
}

static void test_pool_twin__has_the_segments(void **state)
{
    (void)state;
    uint32_t n_like = 0;
    uint32_t n_unlike = 0;
    for (uint64_t seed = 1; seed <= CASES; seed++) {
        me_random random = {seed};
        rank ranks[2];
        begin(&ranks[0], true);
        begin(&ranks[1], false);
        run_steps(&random, ranks);
        if (me_pool_observer_has_like_twin(ranks[0].observer)) {
            assert_true(has_same_segments(ranks));
            n_like++;
        } else {
            n_unlike++;
        }
        end(ranks);
    }
    assert_true(n_like > CASES / 10 && n_unlike > CASES / 10);
}

/* Of whichever part it is. */
static void test_pool_twin__may_need_a_segment_within_a_batch(void **state)
{
    (void)state;
    rank ranks[2];
    begin(&ranks[0], true);
    begin(&ranks[1], false);
    make_batch(ranks, 0, false);
    assert_true(me_pool_observer_has_like_twin(ranks[0].observer));
    assert_int_equal(ranks[0].n_segments, 1);
    assert_true(has_same_segments(ranks));
    end(ranks);
}

/* The driver serves the mask before the small ones on one rank, and after them on
 * the other. */
static void
test_pool_twin__differs_where_the_order_of_segments_does(void **state)
{
    (void)state;
    rank ranks[2];
    begin(&ranks[0], true);
    begin(&ranks[1], false);
    make_batch(ranks, 0, true);
    assert_false(me_pool_observer_has_like_twin(ranks[0].observer));
    assert_false(has_same_segments(ranks));
    end(ranks);
}

/* What went back leaves gaps in which each rank's next segments may lie. */
static void test_pool_twin__differs_after_the_cache_is_emptied(void **state)
{
    (void)state;
    rank ranks[2];
    begin(&ranks[0], true);
    begin(&ranks[1], false);
    take(ranks, 0, MIB);
    assert_true(me_pool_observer_has_like_twin(ranks[0].observer));
    tell(&ranks[0], (me_event){.kind = ME_EVENT_EMPTY_CACHE});
    assert_false(me_pool_observer_has_like_twin(ranks[0].observer));
    assert_false(me_pool_observer_has_like_twin(ranks[1].observer));
    end(ranks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pool_twin__has_the_segments),
        cmocka_unit_test(test_pool_twin__may_need_a_segment_within_a_batch),
        cmocka_unit_test(
            test_pool_twin__differs_where_the_order_of_segments_does),
        cmocka_unit_test(test_pool_twin__differs_after_the_cache_is_emptied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
