/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/margin.h"
#include "support/test.h"

/* Less than there is leaves at least a byte: 0 is no limit to those who are
 * told it. */
static void test_margin__leaves_a_byte(void **state)
{
    (void)state;
    assert_int_equal(me_margin_apply(5, 0), 5);
    assert_int_equal(me_margin_apply(5, 9), 14);
    assert_int_equal(me_margin_apply(5, -3), 2);
    assert_int_equal(me_margin_apply(5, -4), 1);
    assert_int_equal(me_margin_apply(5, -5), 1);
    assert_int_equal(me_margin_apply(5, -9), 1);
    assert_int_equal(me_margin_apply(UINT64_MAX, -9), UINT64_MAX);
    assert_int_equal(me_margin_apply(UINT64_MAX, 9), UINT64_MAX);
}

/* The allocator's limit is held against what it reserves, the card's memory
 * against that and what lies outside; each with its own margin, ends included. */
static void test_margin__changes_nothing(void **state)
{
    (void)state;
    me_job_card card = {.card = {.total_bytes = 100}};
    me_simulation s = {.card = &card, .memory_limit_bytes = 60};
    const me_margin none = {0, 0};
    s.alloc_conf = me_alloc_conf_default();
    assert_true(me_margin_fits(&s, &(me_footprint){60, 40, 0}, none));
    assert_false(me_margin_fits(&s, &(me_footprint){61, 0, 0}, none));
    assert_false(me_margin_fits(&s, &(me_footprint){60, 41, 0}, none));
    assert_true(
        me_margin_fits(&s, &(me_footprint){61, 39, 0}, (me_margin){1, 0}));
    assert_false(
        me_margin_fits(&s, &(me_footprint){60, 0, 0}, (me_margin){-1, 9}));
    assert_true(
        me_margin_fits(&s, &(me_footprint){60, 41, 0}, (me_margin){0, 1}));
    assert_false(
        me_margin_fits(&s, &(me_footprint){9, 91, 0}, (me_margin){9, -1}));
    s.memory_limit_bytes = 0;
    assert_true(me_margin_fits(&s, &(me_footprint){61, 39, 0}, none));
    s.alloc_conf.garbage_collection_threshold = 0.5;
    assert_false(me_margin_fits(&s, &(me_footprint){1, 1, 0}, none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_margin__leaves_a_byte),
        cmocka_unit_test(test_margin__changes_nothing),
    };
    return cmocka_run_group_tests_name("margin", tests, NULL, NULL);
}
