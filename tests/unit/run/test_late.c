/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/late.h"
#include "support/test.h"

#define MIB (UINT64_C(1) << 20)

static void tell(const me_observer *pool, me_event_kind kind, uint32_t block,
                 uint64_t bytes)
{
    const me_event event = {
        .kind = kind, .block = block, .bytes = bytes, .is_late = true};
    pool->on_event(pool->self, &event);
}

static void end_iteration(const me_observer *pool, int32_t iteration)
{
    const me_event event = {.kind = ME_EVENT_POINT, .iteration = iteration};
    pool->on_event(pool->self, &event);
}

/* Requested and allocated bytes are those of the steady iteration, reserved
 * ones the most of all: the allocator keeps what it once had. */
static void test_late__keeps_peaks(void **state)
{
    (void)state;
    const me_pool_options options = {.conf = me_alloc_conf_default()};
    me_late_frees late;
    assert_int_equal(me_late_frees_init(&options, &late), ME_OK);
    const me_observer pool = me_pool_observer_handle(late.pool);

    tell(&pool, ME_EVENT_ALLOC, 0, 30 * MIB);
    tell(&pool, ME_EVENT_FREE_REQUESTED, 0, 30 * MIB);
    tell(&pool, ME_EVENT_FREE_COMPLETED, 0, 30 * MIB);
    tell(&pool, ME_EVENT_ALLOC, 1, 12 * MIB);
    end_iteration(&pool, 0);
    assert_false(late.peaks.is_known);
    assert_int_equal(late.peaks.requested_bytes, 0);
    assert_int_equal(late.peaks.reserved_bytes, 42 * MIB);

    tell(&pool, ME_EVENT_ALLOC, 2, 2 * MIB);
    end_iteration(&pool, ME_STEADY_ITERATION);
    assert_true(late.peaks.is_known);
    assert_int_equal(late.peaks.requested_bytes, 42 * MIB);
    assert_int_equal(late.peaks.reserved_bytes, 42 * MIB);
    me_late_frees_fini(&late);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_late__keeps_peaks),
    };
    return cmocka_run_group_tests_name("late", tests, NULL, NULL);
}
