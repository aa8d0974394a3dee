/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/events.h"
#include "support/test.h"

static me_tensor *bytes(me_engine *e, uint64_t n)
{
    return me_scratch(e, "bytes", n);
}

static void test_frames__variables_die_in_the_order_they_were_made(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    bytes(e, 1);
    bytes(e, 2);
    bytes(e, 3);
    EXPECT_EVENTS(events, "+1 +2 +3");
    me_leave(e, frame, NULL);
    EXPECT_EVENTS(events, "-1 -2 -3");
    assert_int_equal(events->live, 0);
}

static void test_frames__a_result_lives_on_in_the_caller(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame outer = me_enter(e);
    bytes(e, 10);
    const me_frame inner = me_enter(e);
    bytes(e, 1);
    me_tensor *result = bytes(e, 2);
    bytes(e, 3);
    assert_ptr_equal(me_leave(e, inner, result), result);
    EXPECT_EVENTS(events, "+10 +1 +2 +3 -1 -3");
    me_leave(e, outer, NULL);
    EXPECT_EVENTS(events, "-10 -2");
}

/* A function may return what it was given. */
static void test_frames__an_argument_may_be_the_result(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame outer = me_enter(e);
    me_tensor *x = bytes(e, 5);
    const me_frame inner = me_enter(e);
    bytes(e, 1);
    me_leave(e, inner, x);
    EXPECT_EVENTS(events, "+5 +1 -1");
    me_drop(e, x); /* one of two names for it */
    EXPECT_EVENTS(events, "");
    me_drop(e, x);
    EXPECT_EVENTS(events, "-5");
    me_leave(e, outer, NULL);
}

static void test_frames__several_results(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame outer = me_enter(e);
    const me_frame inner = me_enter(e);
    me_tensor *a = bytes(e, 1);
    bytes(e, 2);
    me_tensor *b = bytes(e, 3);
    me_leave_with(e, inner, 2, (me_tensor *[]){b, a});
    EXPECT_EVENTS(events, "+1 +2 +3 -2");
    me_leave(e, outer, NULL);
    EXPECT_EVENTS(events, "-3 -1"); /* in the order they were returned */
}

static void test_frames__drop_and_rebind(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = bytes(e, 1);
    bytes(e, 2);
    me_tensor *y = bytes(e, 3);
    x = me_rebind(e, x, y); /* x = f(x): the new one exists before */
    EXPECT_EVENTS(events, "+1 +2 +3 -1");
    me_drop(e, NULL);
    me_leave(e, frame, NULL);
    EXPECT_EVENTS(events, "-3 -2"); /* y stands where x stood */
}

static void test_frames__a_second_name_holds(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = bytes(e, 1);
    me_hold(e, x);
    me_drop(e, x);
    EXPECT_EVENTS(events, "+1");
    me_leave(e, frame, NULL);
    EXPECT_EVENTS(events, "-1");
}

/* Attributes and lists: the new value is bound before the old one goes. */
static void test_frames__other_holders(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *attribute = NULL;
    me_assign(e, &attribute, bytes(e, 1));
    me_assign(e, &attribute, bytes(e, 2));
    me_assign(e, &attribute, attribute);
    me_leave(e, frame, NULL);
    EXPECT_EVENTS(events, "+1 +2 -1");
    const me_frame other = me_enter(e);
    me_adopt(e, me_retain(attribute));
    me_clear(e, &attribute);
    EXPECT_EVENTS(events, "");
    assert_null(attribute);
    me_leave(e, other, NULL);
    EXPECT_EVENTS(events, "-2");
}

static void test_frames__views_share_the_storage(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_empty(e, "x", ME_DTYPE_FLOAT32, ME_SHAPE(4, 3));
    me_tensor *view = me_alias(e, x, ME_SHAPE(2, 3), (const uint64_t[]){6, 1});
    me_tensor *twin = me_detach(e, view);
    assert_int_equal(x->storage->refs, 3);
    assert_ptr_equal(view->storage, x->storage);
    assert_true(view->is_view && twin->is_view && !x->is_view);
    assert_int_equal(me_bytes(view), 24); /* its own, not the storage's */
    me_drop(e, x);
    me_drop(e, view);
    EXPECT_EVENTS(events, "+48");
    me_drop(e, twin);
    EXPECT_EVENTS(events, "-48");
    me_leave(e, frame, NULL);
}

/* x.data = y.data: a parameter moves into its buffer. */
static void test_frames__set_data_lets_go_of_the_old_storage(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_empty(e, "x", ME_DTYPE_FLOAT32, ME_SHAPE(6));
    me_tensor *y = me_empty(e, "y", ME_DTYPE_BFLOAT16, ME_SHAPE(2, 3));
    me_set_data(e, x, y);
    EXPECT_EVENTS(events, "+24 +12 -24");
    assert_int_equal(x->dtype, ME_DTYPE_BFLOAT16);
    assert_true(me_shape_equal(&x->shape, &ME_SHAPE(2, 3)));
    me_drop(e, y);
    EXPECT_EVENTS(events, "");
    me_set_data(e, x, x);
    EXPECT_EVENTS(events, "");
    me_leave(e, frame, NULL);
    EXPECT_EVENTS(events, "-12");
}

static void test_frames__new_tensors_keep_the_order_of_strides(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_empty(e, "x", ME_DTYPE_BFLOAT16, ME_SHAPE(4, 6));
    /* the first two columns, transposed */
    me_tensor *view = me_alias(e, x, ME_SHAPE(2, 4), (uint64_t[]){1, 6});
    me_tensor *like = me_empty_like_as(e, "y", view, ME_DTYPE_FLOAT32);
    assert_int_equal(like->strides[0], 1);
    assert_int_equal(like->strides[1], 2);
    EXPECT_EVENTS(events, "+48 +32");
    me_empty(e, "empty", ME_DTYPE_FLOAT32, ME_SHAPE(0, 5));
    EXPECT_EVENTS(events, ""); /* no bytes, no block */
    me_leave(e, frame, NULL);
}

/* Another stream still uses it: the free completes at the next allocation,
 * before that is counted. */
static void test_frames__late_frees(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = bytes(e, 24);
    me_tensor *y = bytes(e, 8);
    me_record_stream(x);
    me_drop(e, x);
    EXPECT_EVENTS(events, "+24 +8 ~24");
    assert_int_equal(events->live, 32);
    assert_int_equal(events->late, 24);
    me_drop(e, y); /* an ordinary free does not wait, nor end the waiting */
    EXPECT_EVENTS(events, "-8");
    bytes(e, 5);
    EXPECT_EVENTS(events, "-24 +5");
    assert_int_equal(events->live, 5);
    me_leave(e, frame, NULL);
}

static void test_frames__late_frees_complete_in_order(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    for (uint64_t n = 1; n <= 3; n++) {
        me_record_stream(bytes(e, n));
    }
    me_leave(e, frame, NULL);
    EXPECT_EVENTS(events, "+1 +2 +3 ~1 ~2 ~3");
    const me_frame other = me_enter(e);
    bytes(e, 4);
    EXPECT_EVENTS(events, "-1 -2 -3 +4");
    me_leave(e, other, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(test_frames__variables_die_in_the_order_they_were_made),
        ENGINE_TEST(test_frames__a_result_lives_on_in_the_caller),
        ENGINE_TEST(test_frames__an_argument_may_be_the_result),
        ENGINE_TEST(test_frames__several_results),
        ENGINE_TEST(test_frames__drop_and_rebind),
        ENGINE_TEST(test_frames__a_second_name_holds),
        ENGINE_TEST(test_frames__other_holders),
        ENGINE_TEST(test_frames__views_share_the_storage),
        ENGINE_TEST(test_frames__set_data_lets_go_of_the_old_storage),
        ENGINE_TEST(test_frames__new_tensors_keep_the_order_of_strides),
        ENGINE_TEST(test_frames__late_frees),
        ENGINE_TEST(test_frames__late_frees_complete_in_order),
    };
    return cmocka_run_group_tests_name("frames", tests, NULL, NULL);
}
