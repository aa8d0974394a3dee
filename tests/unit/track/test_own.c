/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/test.h"
#include "track/own.h"

static const me_own_peaks before = {100, 512, 200};
static const me_own_peaks after = {108, 1024, 200};

static me_own held(void)
{
    me_own own = {.has_peak = false};
    me_own_begin(&own, &before);
    me_own_end(&own, &after);
    return own;
}

/* More is live later in the span: another rank has that peak as well. */
static void test_own__is_none_where_more_comes(void **state)
{
    (void)state;
    me_own own = held();
    me_own_close_span(&own, &(me_own_peaks){109, 1536, 0});
    me_own_close_iteration(&own, 200);
    assert_false(own.has_peak);
    me_own_close_span(&own, &before); /* of a span without any */
    assert_false(own.has_peak);
}

static void test_own__is_one_where_nothing_comes(void **state)
{
    (void)state;
    me_own own = held();
    me_own_close_span(&own, &(me_own_peaks){108, 1536, 0});
    assert_true(own.has_peak);
    own = held();
    me_own_close_span(&own, &(me_own_peaks){109, 1024, 0});
    assert_true(own.has_peak);
}

/* It raises nothing, so the peak that was there already counts. */
static void test_own__is_none_below_a_peak(void **state)
{
    (void)state;
    me_own own = {.has_peak = false};
    me_own_begin(&own, &before);
    me_own_end(&own, &before);
    me_own_close_span(&own, &before);
    me_own_close_iteration(&own, before.iteration);
    assert_false(own.has_peak);
}

/* Twice in one span: the second time it stays below the first. */
static void test_own__is_one_of_several(void **state)
{
    (void)state;
    me_own own = held();
    me_own_begin(&own, &after);
    me_own_end(&own, &after);
    me_own_close_span(&own, &after);
    assert_true(own.has_peak);
}

static void test_own__may_be_of_the_iteration(void **state)
{
    (void)state;
    me_own own = {.has_peak = false};
    me_own_begin(&own, &(me_own_peaks){100, 512, 100});
    me_own_end(&own, &(me_own_peaks){108, 512, 108});
    me_own_close_span(&own, &(me_own_peaks){120, 512, 0});
    assert_false(own.has_peak);
    me_own_close_iteration(&own, 108);
    assert_true(own.has_peak);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own__is_none_where_more_comes),
        cmocka_unit_test(test_own__is_one_where_nothing_comes),
        cmocka_unit_test(test_own__is_none_below_a_peak),
        cmocka_unit_test(test_own__is_one_of_several),
        cmocka_unit_test(test_own__may_be_of_the_iteration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
