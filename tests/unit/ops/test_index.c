/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows that are added up where operations are deterministic. */
#include "ops/elementwise.h"
#include "ops/index.h"
#include "support/backward.h"
#include "support/test.h"

/*
 * Sorting 5 indices of 8 bytes: their bounds (8 and a flag, twice), the indices
 * made linear by way of 40 bytes, sorted ones, positions and a range of 40 each,
 * of which the range is filled through one element, and a byte of temporary.
 */
#define BOUNDS "+8 +1 -1 -8 +8 +1 -1 -8 "
#define SORT   "+40 +40 -40 +40 +40 +40 +8 -8 +1 -1 -40 -40 -40 -40"

/* Five rows of eight bfloat16 become three: 80 and 48 bytes. Their multiple goes at
 * once, they themselves stay for the backward, in which they are as large again. */
static void test_index__rows_added_in_order(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;
    me_deterministic_set(e, true);
    const me_frame frame = me_enter(e);
    me_tensor *x = me_neg(e, me_test_leaf(e, ME_SHAPE(5, 8)));
    me_tensor *numbers = test_tensor(e, ME_DTYPE_INT64, ME_SHAPE(5));
    me_tensor *y = test_tensor(e, ME_DTYPE_BFLOAT16, ME_SHAPE(3, 8));
    (void)me_test_events_take(events);
    assert_ptr_equal(me_index_add_rows(e, y, numbers, x), y);
    EXPECT_EVENTS(events, "+80 " BOUNDS SORT " -80");
    me_drop(e, x);
    EXPECT_EVENTS(events, "");
    assert_string_equal(test_backward(events, y), "+80 +2 -2 -80 +80 -80");
    me_leave(e, frame, NULL);
}

/* A gradient of five rows added to three of zeros. */
static void test_index__gradient_of_rows_added_in_order(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;
    const me_frame frame = me_enter(e);
    me_tensor *x = me_test_leaf(e, ME_SHAPE(3, 8));
    me_tensor *numbers = test_tensor(e, ME_DTYPE_INT64, ME_SHAPE(5));
    me_tensor *y = me_index_select(e, x, numbers);
    assert_string_equal(test_backward(events, y), "+48");
    me_deterministic_set(e, true);
    me_tensor *z = me_index_select(e, x, numbers);
    assert_string_equal(test_backward(events, z),
                        "+48 +80 " BOUNDS SORT " -80 -48");
    me_leave(e, frame, NULL);
}

/* Two of four places in each of three rows: 6 pairs, 48 bytes of indices, of which
 * there are two, one number of a row for two pairs: copied to find its bounds. The
 * backward copies the three rows' numbers, 24 bytes that were
 * saved, for all six. */
static void test_index__pairs_put_in_order(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;
    me_deterministic_set(e, true);
    const me_frame frame = me_enter(e);
    me_tensor *values = me_neg(e, me_test_leaf(e, ME_SHAPE(3, 2)));
    me_tensor *rows = test_tensor(e, ME_DTYPE_INT64, ME_SHAPE(3));
    me_tensor *columns = test_tensor(e, ME_DTYPE_INT64, ME_SHAPE(3, 2));
    me_tensor *y = test_tensor(e, ME_DTYPE_BFLOAT16, ME_SHAPE(3, 4));
    (void)me_test_events_take(events);
    assert_ptr_equal(me_index_put(e, y, rows, columns, values), y);
    EXPECT_EVENTS(events,
                  "+8 +48 -48 +1 -1 -8 +8 +48 -48 +1 -1 -8 "
                  "+48 +48 -48 " BOUNDS
                  "+48 +48 -48 -48 +48 +48 +48 +8 -8 +1 -1 -48 -48 -48 -48");
    me_drop(e, rows);
    EXPECT_EVENTS(events, "");
    assert_string_equal(test_backward(events, y), "+48 +12 -48 -24 +12 -12");
    me_leave(e, frame, NULL);
}

/* The gradient of the largest two of four in three rows: 24 bytes of zeros, the
 * rows' numbers, and 6 pairs of indices. */
static void test_index__gradient_of_the_largest_put_in_order(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;
    me_deterministic_set(e, true);
    const me_frame frame = me_enter(e);
    me_tensor *indices = NULL;
    me_tensor *x = me_test_leaf(e, ME_SHAPE(3, 4));
    me_tensor *y = me_topk(e, x, 2, &indices);
    assert_string_equal(
        test_backward(events, y),
        "+24 +24 +8 -8 +8 +48 -48 +1 -1 -8 +8 +48 -48 +1 -1 -8 "
        "+48 +48 -48 " BOUNDS
        "+48 +48 -48 -48 +48 +48 +48 +8 -8 +1 -1 -48 -48 -48 -48 -24");
    me_leave(e, frame, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(test_index__rows_added_in_order),
        ENGINE_TEST(test_index__gradient_of_rows_added_in_order),
        ENGINE_TEST(test_index__pairs_put_in_order),
        ENGINE_TEST(test_index__gradient_of_the_largest_put_in_order),
    };
    return cmocka_run_group_tests_name("index", tests, NULL, NULL);
}
