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

/* A job of which what lives at once is more than a band above the card, or above
 * the allocator's limit, ends whatever it caches: not one byte before that, and
 * what timings of kernels ask for counts as a band does. */
static void test_margin__is_hopeless(void **state)
{
    (void)state;
    const uint64_t gib = UINT64_C(1) << 30;
    me_config *config = me_config_create();
    assert_non_null(config);
    const me_plan plan = {.config = config};
    me_job_card card = {
        .card = {.total_bytes = 80 * gib, .context_bytes = gib / 2}};
    me_simulation s = {.card = &card, .plan = &plan};
    me_iteration_result iteration = {
        .peak = {.requested_bytes = 1, .reserved_bytes = 90 * gib}};
    const me_rank_result result = {.iterations = &iteration, .n_iterations = 1};
    const uint64_t timing = gib / 4;
    const me_footprint held = {90 * gib, gib, timing};
    const uint64_t band = (uint64_t)me_margin_more(config, &result).card_bytes;
    assert_true(band > 0);

    assert_false(me_margin_is_hopeless(&s, &held, &result));
    iteration.peak.requested_bytes = 80 * gib - gib / 2 + band + timing;
    assert_false(me_margin_is_hopeless(&s, &held, &result));
    iteration.peak.requested_bytes++;
    assert_true(me_margin_is_hopeless(&s, &held, &result));

    const uint64_t limit_band =
        (uint64_t)me_margin_more(config, &result).limit_bytes;
    s.memory_limit_bytes = 40 * gib;
    iteration.peak.requested_bytes = 40 * gib + limit_band + timing;
    assert_false(me_margin_is_hopeless(&s, &held, &result));
    iteration.peak.requested_bytes++;
    assert_true(me_margin_is_hopeless(&s, &held, &result));

    iteration.peak.requested_bytes = ME_BYTES_UNKNOWN;
    assert_false(me_margin_is_hopeless(&s, &held, &result));
    me_config_destroy(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_margin__leaves_a_byte),
        cmocka_unit_test(test_margin__changes_nothing),
        cmocka_unit_test(test_margin__is_hopeless),
    };
    return cmocka_run_group_tests_name("margin", tests, NULL, NULL);
}
