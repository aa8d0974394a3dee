/* SPDX-License-Identifier: BSD-3-Clause */
/* The small blocks of a rank that makes its batches in another order. */
#include "alloc/pool_observer.h"
#include "support/test.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)

enum {
    BATCH = 100 /* the ids of a micro-batch */
};

static me_pool_observer *start(const me_pool_options *options,
                               const me_twin_batch *batch)
{
    me_pool_observer *pool = NULL;
    assert_int_equal(me_pool_observer_create(options, &pool), ME_OK);
    assert_int_equal(me_pool_observer_follow_twin(pool, &options->conf, batch),
                     ME_OK);
    return pool;
}

static void tell(me_pool_observer *pool, const me_event *event)
{
    const me_observer handle = me_pool_observer_handle(pool);
    handle.on_event(handle.self, event);
}

static void take(me_pool_observer *pool, uint32_t id, uint64_t bytes)
{
    tell(pool,
         &(me_event){.kind = ME_EVENT_ALLOC, .block = id, .bytes = bytes});
}

static void take_input(me_pool_observer *pool, uint32_t id, uint64_t bytes)
{
    tell(pool, &(me_event){.kind = ME_EVENT_ALLOC,
                           .block = id,
                           .bytes = bytes,
                           .category = ME_CATEGORY_INPUT});
}

static void let_go(me_pool_observer *pool, uint32_t id)
{
    tell(pool, &(me_event){.kind = ME_EVENT_FREE_REQUESTED, .block = id});
    tell(pool, &(me_event){.kind = ME_EVENT_FREE_COMPLETED, .block = id});
}

/** As the first rank makes it. */
static void read_batch(me_pool_observer *pool, const me_twin_batch *batch)
{
    if (batch->mask_bytes > 0) {
        take_input(pool, BATCH, batch->mask_bytes);
    }
    take_input(pool, BATCH + 1, batch->token_bytes);     // labels
    take_input(pool, BATCH + 2, batch->token_bytes / 2); // loss_mask
    take_input(pool, BATCH + 3, batch->token_bytes);     // position_ids
    take_input(pool, BATCH + 4, batch->token_bytes);     // tokens
}

static bool end(me_pool_observer *pool)
{
    const bool differs = me_pool_observer_differs_from_twin(pool);
    me_pool_observer_destroy(pool);
    return differs;
}

static const me_twin_batch kibs = {.token_bytes = 64 * KIB};

static void test_twin_pool__is_alike_where_the_order_is_no_matter(void **state)
{
    (void)state;
    const me_pool_options options = {.conf = me_alloc_conf_default()};
    const me_twin_batch masked = {64 * KIB, 16 * MIB};
    const me_twin_batch *const batches[] = {&kibs, &masked};
    for (int i = 0; i < 2; i++) {
        me_pool_observer *pool = start(&options, batches[i]);
        take(pool, 0, 12 * MIB);
        read_batch(pool, batches[i]);
        let_go(pool, BATCH + 1);
        let_go(pool, BATCH + 2);
        take(pool, 1, 32 * KIB);
        take(pool, 2, 30 * MIB);
        tell(pool, &(me_event){.kind = ME_EVENT_POINT});
        assert_false(end(pool));
    }
}

/** A batch fills what is left of a segment, and its labels stay. They lie at its
 *  beginning on the first rank, which then has 160 KiB in one piece, and behind the
 *  tokens on the others, which have 64 and 96. */
static void fragment(me_pool_observer *pool)
{
    take(pool, 0, 1 * MIB);
    take(pool, 1, 800 * KIB); // 224 KiB are left, as much as a batch
    read_batch(pool, &kibs);
    let_go(pool, BATCH + 2);
    let_go(pool, BATCH + 3);
    let_go(pool, BATCH + 4);
}

static void test_twin_pool__differs_by_where_blocks_lie(void **state)
{
    (void)state;
    const me_pool_options options = {.conf = me_alloc_conf_default()};
    for (int looks = 0; looks < 2; looks++) {
        me_pool_observer *pool = start(&options, &kibs);
        fragment(pool);
        assert_false(me_pool_observer_differs_from_twin(pool));
        take(pool, 2, 128 * KIB); // the others take a segment
        if (looks) {
            tell(pool, &(me_event){.kind = ME_EVENT_PHASE});
        }
        take(pool, 3, 512 * KIB); // now the first rank does
        assert_int_equal(end(pool), looks);
    }
}

static void test_twin_pool__needs_room_of_its_own(void **state)
{
    (void)state;
    me_pool_options options = {.conf = me_alloc_conf_default(),
                               .capacity_bytes = 3 * MIB};
    me_pool_observer *pool = start(&options, &kibs);
    fragment(pool);
    take(pool, 2, 128 * KIB);
    let_go(pool, 2);
    assert_true(end(pool));
}

/* A small segment that the others take before a large one makes that lie elsewhere
 * where both come from what a chunk has left. */
static void test_twin_pool__differs_by_where_large_segments_lie(void **state)
{
    (void)state;
    const me_pool_options options = {.conf = me_alloc_conf_default()};
    me_pool_observer *pool = start(&options, &kibs);
    fragment(pool);
    take(pool, 2, 128 * KIB);
    for (uint32_t i = 0; i < 64; i++) {
        take(pool, 10 + i, 10 * MIB + 2 * MIB * (i % 8));
    }
    take(pool, 3, 512 * KIB);
    assert_true(end(pool));
}

static void test_twin_pool__follows_a_rank_that_dies(void **state)
{
    (void)state;
    const me_pool_options options = {.conf = me_alloc_conf_default(),
                                     .capacity_bytes = 40 * MIB};
    me_pool_observer *pool = start(&options, &kibs);
    take(pool, 0, 12 * MIB);
    read_batch(pool, &kibs);
    take(pool, 1, 12 * MIB);
    let_go(pool, 1);
    take(pool, 2, 30 * MIB); // is there no room, once 12 MiB went back
    assert_true(me_pool_observer_limit(pool).is_oom);
    assert_false(end(pool));

    pool = start(&options, &kibs);
    take(pool, 0, 12 * MIB);
    let_go(pool, 0);
    take(pool, 1, 30 * MIB); // there is, so nobody knows what went back
    assert_false(me_pool_observer_limit(pool).is_oom);
    assert_true(end(pool));
}

static void test_twin_pool__gives_up(void **state)
{
    (void)state;
    me_pool_options options = {.conf = me_alloc_conf_default()};
    me_pool_observer *pool = start(&options, &kibs);
    tell(pool, &(me_event){.kind = ME_EVENT_EMPTY_CACHE});
    assert_true(end(pool));

    pool = start(&options, &kibs); // a batch that is cut
    take_input(pool, BATCH, kibs.token_bytes);
    assert_true(end(pool));

    pool = start(&options, &kibs); // or has something else in between
    take_input(pool, BATCH, kibs.token_bytes);
    take(pool, 0, 512);
    assert_true(end(pool));

    pool = start(&options, &(me_twin_batch){2 * MIB, 0}); // of large blocks
    assert_true(end(pool));

    options.conf.expandable_segments = true;
    pool = start(&options, &kibs);
    assert_true(end(pool));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_twin_pool__is_alike_where_the_order_is_no_matter),
        cmocka_unit_test(test_twin_pool__differs_by_where_blocks_lie),
        cmocka_unit_test(test_twin_pool__needs_room_of_its_own),
        cmocka_unit_test(test_twin_pool__differs_by_where_large_segments_lie),
        cmocka_unit_test(test_twin_pool__follows_a_rank_that_dies),
        cmocka_unit_test(test_twin_pool__gives_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
