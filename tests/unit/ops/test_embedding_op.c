/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/embedding_lookup.h"
#include "ops/view.h"
#include "support/backward.h"
#include "support/test.h"

/* A table of 10 rows of 3 in bfloat16, 60 bytes. */

static me_tensor *table(me_engine *e)
{
    return me_test_leaf(e, ME_SHAPE(10, 3));
}

static void test_embedding__few_indices(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *indices = test_tensor(e, ME_DTYPE_INT64, ME_SHAPE(1, 4));
    me_tensor *weight = table(e);
    (void)me_test_events_take(events);
    me_tensor *y = me_embedding(e, indices, weight);
    assert_true(me_shape_equal(&y->shape, &ME_SHAPE(1, 4, 3)));
    me_drop(e, indices);
    EXPECT_EVENTS(events, "+24"); /* the indices are saved */
    assert_string_equal(test_backward(events, y), "+60 -32");
    me_leave(e, frame, NULL);
}

/* (b, s, h) transposed to (s, b, h): the incoming gradient is copied. */
static void test_embedding__gradient_in_another_order(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *indices = test_tensor(e, ME_DTYPE_INT64, ME_SHAPE(2, 4));
    me_tensor *y = me_embedding(e, indices, table(e)); /* (2, 4, 3), 48 */
    me_tensor *t = me_contiguous(e, me_transpose(e, y, 0, 1));
    assert_string_equal(test_backward(events, t), "+48 +60 -48");
    me_leave(e, frame, NULL);
}

static void test_embedding__last_number_of_indices_without_sorting(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *indices = test_tensor(e, ME_DTYPE_INT64, ME_SHAPE(1, 3072));
    me_tensor *y = me_embedding(e, indices, table(e));
    assert_string_equal(test_backward(events, y), "+60");
    me_leave(e, frame, NULL);
}

/* n = 4096: sorted, positions, range of 8n = 32768; the sort's temporary
 * 16n + 1024 + 16895 = 83455; weight gradient; segments 8n, 8, 8n; k = min(n,
 * 10) = 10: 80, 80; q = 409 + 10 = 419: 8q = 3352 and 4·q·3 = 5028. */
static void test_embedding__many_indices_are_sorted(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *indices = test_tensor(e, ME_DTYPE_INT64, ME_SHAPE(1, 4096));
    me_tensor *y = me_embedding(e, indices, table(e));
    me_drop(e, indices);
    assert_string_equal(
        test_backward(events, y),
        "+32768 +32768 +32768 +83455 -83455 -32768 +60 "
        "+32768 +8 +32768 +1279 -1279 -32768 +80 +80 +1279 -1279 +8 "
        "+3352 +5028 -5028 -3352 -8 -80 -80 -8 -32768 -32768 -32768 -32768");
    me_leave(e, frame, NULL);
    assert_int_equal(events->live, 0);
}

/* n = k = 16384: 8n = 131072; the scan of k has 19 tiles of 896, so 16 · 51
 * bytes rounded to 1024, and 511; q = 1638 + 16384 of one column. */
static void test_embedding__the_scan_grows_with_the_rows(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *indices = test_tensor(e, ME_DTYPE_INT64, ME_SHAPE(1, 16384));
    me_tensor *y =
        me_embedding(e, indices, me_test_leaf(e, ME_SHAPE(16384, 1)));
    assert_string_equal(
        test_backward(events, y),
        "+131072 +131072 +131072 +283135 -283135 -131072 +32768 "
        "+131072 +8 +131072 +1279 -1279 -131072 +131072 +131072 +1535 -1535 +8 "
        "+144176 +72088 -72088 -144176 -8 -131072 -131072 -8 -131072 -131072 "
        "-131072");
    me_leave(e, frame, NULL);
}

/* Rows of other tensor ranks are set to zero in place: the gradient is cloned,
 * then the mask goes. */
static void test_embedding__masked_write(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *indices = test_tensor(e, ME_DTYPE_INT64, ME_SHAPE(1, 4));
    me_tensor *mask = test_tensor(e, ME_DTYPE_BOOL, ME_SHAPE(1, 4));
    me_tensor *y = me_embedding(e, indices, table(e));
    (void)me_test_events_take(events);
    assert_ptr_equal(me_masked_write_zero(e, y, mask), y);
    me_drop(e, mask);
    EXPECT_EVENTS(events, "");
    assert_string_equal(test_backward(events, y), "+24 -4 +60 -24");
    me_leave(e, frame, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(test_embedding__few_indices),
        ENGINE_TEST(test_embedding__gradient_in_another_order),
        ENGINE_TEST(test_embedding__last_number_of_indices_without_sorting),
        ENGINE_TEST(test_embedding__many_indices_are_sorted),
        ENGINE_TEST(test_embedding__the_scan_grows_with_the_rows),
        ENGINE_TEST(test_embedding__masked_write),
    };
    return cmocka_run_group_tests_name("embedding_op", tests, NULL, NULL);
}
