/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/test.h"
#include "track/twin_span.h"

static const me_twin_peaks before = {100, 512, 200};
static const me_twin_peaks after = {108, 1024, 200};

static me_twin_span held(void)
{
    me_twin_span span = {.has_peak = false};
    me_twin_span_begin(&span, &before);
    me_twin_span_end(&span, &after);
    return span;
}

/* More is live later in the span: another rank has that peak as well. */
static void test_own__is_none_where_more_comes(void **state)
{
    (void)state;
    me_twin_span span = held();
    me_twin_span_close_span(&span, &(me_twin_peaks){109, 1536, 0});
    me_twin_span_close_iteration(&span, 200);
    assert_false(span.has_peak);
    me_twin_span_close_span(&span, &before); /* of a span without any */
    assert_false(span.has_peak);
}

static void test_own__is_one_where_nothing_comes(void **state)
{
    (void)state;
    me_twin_span span = held();
    me_twin_span_close_span(&span, &(me_twin_peaks){108, 1536, 0});
    assert_true(span.has_peak);
    span = held();
    me_twin_span_close_span(&span, &(me_twin_peaks){109, 1024, 0});
    assert_true(span.has_peak);
}

/* It raises nothing, so the peak that was there already counts. */
static void test_own__is_none_below_a_peak(void **state)
{
    (void)state;
    me_twin_span span = {.has_peak = false};
    me_twin_span_begin(&span, &before);
    me_twin_span_end(&span, &before);
    me_twin_span_close_span(&span, &before);
    me_twin_span_close_iteration(&span, before.iteration);
    assert_false(span.has_peak);
}

/* Twice in one span: the second time it stays below the first. */
static void test_own__is_one_of_several(void **state)
{
    (void)state;
    me_twin_span span = held();
    me_twin_span_begin(&span, &after);
    me_twin_span_end(&span, &after);
    me_twin_span_close_span(&span, &after);
    assert_true(span.has_peak);
}

static void test_own__may_be_of_the_iteration(void **state)
{
    (void)state;
    me_twin_span span = {.has_peak = false};
    me_twin_span_begin(&span, &(me_twin_peaks){100, 512, 100});
    me_twin_span_end(&span, &(me_twin_peaks){108, 512, 108});
    me_twin_span_close_span(&span, &(me_twin_peaks){120, 512, 0});
    assert_false(span.has_peak);
    me_twin_span_close_iteration(&span, 108);
    assert_true(span.has_peak);
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
