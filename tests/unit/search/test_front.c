/* SPDX-License-Identifier: BSD-3-Clause */
/* What beats what, and the order of what nothing beats, of numbers made up. */
#include "base/alloc.h"
#include "search/front.h"
#include "support/test.h"

static void test_front__beats(void **state)
{
    (void)state;
    static const me_search_score base = {
        .step_ns = 100, .room_bytes = 50, .world = 8};
    static const me_search_score better[] = {
        {.step_ns = 99, .room_bytes = 50, .world = 8},
        {.step_ns = 100, .room_bytes = 51, .world = 8},
        {.step_ns = 100, .room_bytes = 50, .world = 7},
    };
    static const me_search_score other[] = {
        {.step_ns = 99, .room_bytes = 49, .world = 8},
        {.step_ns = 99, .room_bytes = 50, .world = 9},
        {.step_ns = 101, .room_bytes = 51, .world = 8},
        {.step_ns = 100, .room_bytes = 51, .world = 9},
        {.step_ns = 101, .room_bytes = 50, .world = 7},
        {.step_ns = 100, .room_bytes = 49, .world = 7},
    };
    assert_false(me_search_beats(&base, &base));
    for (size_t i = 0; i < sizeof better / sizeof better[0]; i++) {
        assert_true(me_search_beats(&better[i], &base));
        assert_false(me_search_beats(&base, &better[i]));
    }
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        assert_false(me_search_beats(&other[i], &base));
        assert_false(me_search_beats(&base, &other[i]));
    }
}

static me_candidate simulated(int64_t step_ns, uint64_t worst_bytes,
                              int32_t world)
{
    return (me_candidate){.end = ME_SEARCH_SIMULATED,
                          .world = world,
                          .result = {.fits = true,
                                     .step_ns = step_ns,
                                     .worst_bytes = worst_bytes,
                                     .capacity_bytes = 1000}};
}

/* By step time, then room, then GPUs, then as they came. The second takes 14 %
 * longer than the first, a tie, the third 15 %, none; the one whose step nobody
 * predicts comes last and has no place. */
static void test_front__order(void **state)
{
    (void)state;
    me_candidate items[] = {
        simulated(0, 100, 4),   simulated(115, 700, 8), simulated(114, 800, 8),
        simulated(100, 900, 8), simulated(114, 800, 8), simulated(115, 700, 9),
        simulated(50, 800, 8),
    };
    static const size_t order[] = {3, 2, 4, 1, 0};
    static const int32_t places[] = {1, 1, 1, 2, 0};
    static const bool ties[] = {true, true, true, false, false};
    static const bool equals[] = {false, true, true, false, false};
    const me_candidates c = {.items = items,
                             .count = sizeof items / sizeof items[0]};
    me_diag diag = {.status = ME_OK};
    me_front_row *rows = NULL;
    uint32_t n = 0;
    items[6].result.is_open = true; // else it would beat all
    assert_int_equal(me_front_create(&c, &diag, &rows, &n), ME_OK);
    assert_int_equal(n, sizeof order / sizeof order[0]);
    for (uint32_t i = 0; i < n; i++) {
        assert_ptr_equal(rows[i].candidate, &items[order[i]]);
        assert_int_equal(rows[i].place, places[i]);
        assert_int_equal(rows[i].is_tie, ties[i]);
        assert_int_equal(rows[i].is_equal, equals[i]);
    }
    me_free(rows);
}

/* A step that takes at least what is known of it comes behind the others, has no
 * place and is not equal to one that is known. It beats none, as the fifth does not
 * the fourth; others beat it, as the third does the last. */
static void test_front__bounds(void **state)
{
    (void)state;
    me_candidate items[] = {
        simulated(100, 900, 8), simulated(100, 900, 8), simulated(120, 800, 8),
        simulated(150, 700, 8), simulated(90, 700, 8),  simulated(130, 850, 8),
    };
    static const size_t order[] = {1, 2, 3, 4, 0};
    static const int32_t places[] = {1, 2, 3, 0, 0};
    const me_candidates c = {.items = items,
                             .count = sizeof items / sizeof items[0]};
    me_diag diag = {.status = ME_OK};
    me_front_row *rows = NULL;
    uint32_t n = 0;
    items[0].result.is_lower_step = true;
    items[4].result.is_lower_step = true;
    items[5].result.is_lower_step = true;
    assert_int_equal(me_front_create(&c, &diag, &rows, &n), ME_OK);
    assert_int_equal(n, sizeof order / sizeof order[0]);
    for (uint32_t i = 0; i < n; i++) {
        assert_ptr_equal(rows[i].candidate, &items[order[i]]);
        assert_int_equal(rows[i].place, places[i]);
        assert_false(rows[i].is_tie);
        assert_false(rows[i].is_equal);
    }
    me_free(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_front__beats),
        cmocka_unit_test(test_front__order),
        cmocka_unit_test(test_front__bounds),
    };
    return cmocka_run_group_tests_name("front", tests, NULL, NULL);
}
