/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/elementwise.h"
#include "ops/view.h"
#include "support/backward.h"
#include "support/test.h"

/* x is (4, 3) in bfloat16, 24 bytes. */

static me_tensor *leaf(me_engine *e)
{
    return me_test_leaf(e, ME_SHAPE(4, 3));
}

static void test_views__take_no_memory(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_test_leaf(e, ME_SHAPE(2, 3, 4, 5));
    (void)me_test_events_take(events);
    me_tensor *t = me_transpose(e, x, 1, -1);
    assert_true(me_shape_equal(&t->shape, &ME_SHAPE(2, 5, 4, 3)));
    me_tensor *p = me_permute(e, x, (const int32_t[]){1, 2, 0, 3});
    assert_true(me_shape_equal(&p->shape, &ME_SHAPE(3, 4, 2, 5)));
    assert_int_equal(p->strides[2], 60);
    me_tensor *v = me_view(e, x, ME_SHAPE(6, 20));
    me_tensor *s = me_slice(e, x, -1, 1, 3);
    assert_true(me_shape_equal(&s->shape, &ME_SHAPE(2, 3, 4, 2)));
    assert_true(t->is_view && p->is_view && v->is_view && s->is_view);
    assert_ptr_equal(s->storage, x->storage);
    EXPECT_EVENTS(events, "");
    me_leave(e, frame, NULL);
}

static void test_views__contiguous_copies_what_is_not(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = leaf(e);
    assert_ptr_equal(me_contiguous(e, x), x);
    me_tensor *y = me_contiguous(e, me_transpose(e, x, 0, 1));
    EXPECT_EVENTS(events, "+24 +24");
    assert_true(me_tensor_is_contiguous(y) && !y->is_view);
    me_leave(e, frame, NULL);
}

static void test_views__reshape(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = leaf(e);
    (void)me_test_events_take(events);
    assert_true(me_reshape(e, x, ME_SHAPE(12))->is_view);
    EXPECT_EVENTS(events, "");
    me_tensor *copy = me_reshape(e, me_transpose(e, x, 0, 1), ME_SHAPE(12));
    EXPECT_EVENTS(events, "+24");
    assert_false(copy->is_view);
    me_drop(e, copy);
    EXPECT_EVENTS(events, "-24"); /* the copy itself is no variable */
    me_leave(e, frame, NULL);
}

/* The gradient of the transposed copy is a view of the incoming one; its
 * order of memory is not the leaf's, so that is cloned. */
static void test_views__reshape_backward(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *y = me_reshape(e, me_transpose(e, leaf(e), 0, 1), ME_SHAPE(12));
    assert_string_equal(test_backward(events, y), "+24");
    me_leave(e, frame, NULL);
}

/* Pieces without a gradient are replaced by zeros, then all concatenated. */
static void test_views__split_backward(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *parts[2] = {NULL, NULL};
    me_split_last(e, me_test_leaf(e, ME_SHAPE(2, 6)), 2,
                  (const uint64_t[]){2, 4}, parts);
    me_tensor *y = me_neg(e, parts[1]); /* (2, 4), 16 bytes */
    EXPECT_EVENTS(events, "+24 +16");
    assert_string_equal(test_backward(events, y), "+16 +8 +24 -8 -16");
    me_leave(e, frame, NULL);
}

static void test_views__slice_backward(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = leaf(e);
    /* (4, 2): neg's 16 bytes, zeros of the whole, neg's gradient goes */
    assert_string_equal(
        test_backward(events, me_neg(e, me_slice(e, x, -1, 0, 2))),
        "+16 +24 -16");
    me_clear(e, &x->grad);
    /* the whole dimension: an alias */
    assert_string_equal(
        test_backward(events, me_neg(e, me_slice(e, x, -1, 0, 3))), "+24");
    me_leave(e, frame, NULL);
}

/* Narrow views of the incoming gradient; both leaves are dense, so clones. */
static void test_views__cat(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *a = me_test_leaf(e, ME_SHAPE(2, 2));
    me_tensor *b = me_test_leaf(e, ME_SHAPE(2, 1));
    me_tensor *y = me_cat_last(e, a, b);
    assert_true(me_shape_equal(&y->shape, &ME_SHAPE(2, 3)));
    EXPECT_EVENTS(events, "+8 +4 +12");
    assert_string_equal(test_backward(events, y), "+8 +4");
    me_leave(e, frame, NULL);
}

/* Rows: one node however many pieces, and its backward is a copy of all. */
static void test_views__chunks_of_rows(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = leaf(e);
    me_tensor *halves[2] = {NULL, NULL};
    me_chunk_first(e, x, 2, halves);
    assert_true(me_shape_equal(&halves[1]->shape, &ME_SHAPE(2, 3)));
    assert_string_equal(test_backward(events, me_neg(e, halves[1])),
                        "+12 +12 +24 -12 -12");
    me_clear(e, &x->grad);
    me_tensor *whole = NULL;
    me_chunk_first(e, x, 1, &whole);
    assert_string_equal(test_backward(events, me_neg(e, whole)), "+24 +24 -24");
    me_leave(e, frame, NULL);
}

/* Views of rows are dense: leaves keep them as they are. */
static void test_views__cat_of_rows(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *parts[3] = {leaf(e), leaf(e), me_test_leaf(e, ME_SHAPE(1, 3))};
    (void)me_test_events_take(events);
    me_tensor *y = me_cat_first(e, 3, parts);
    assert_true(me_shape_equal(&y->shape, &ME_SHAPE(9, 3)));
    EXPECT_EVENTS(events, "+54");
    assert_string_equal(test_backward(events, y), "");
    assert_true(me_shape_equal(&parts[2]->grad->shape, &ME_SHAPE(1, 3)));
    me_leave(e, frame, NULL);
}

/* Columns 0, 2 and 1: gradients of the whole, the second added to the first. */
static void test_views__every_second_column(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_neg(e, leaf(e));
    (void)me_test_events_take(events);
    me_tensor *even = me_every_second(e, x, 0);
    me_tensor *odd = me_every_second(e, x, 1);
    EXPECT_EVENTS(events, "");
    assert_true(me_shape_equal(&even->shape, &ME_SHAPE(4, 2)));
    assert_true(me_shape_equal(&odd->shape, &ME_SHAPE(4, 1)));
    assert_int_equal(odd->strides[1], 2);
    assert_string_equal(test_backward(events, me_cat_last(e, even, odd)),
                        "+24 +24 -24 +24 -24");
    me_leave(e, frame, NULL);
}

/* No memory; the gradient is summed over what was expanded, if anything was. */
static void test_views__expand(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_test_leaf(e, ME_SHAPE(4, 1, 3));
    (void)me_test_events_take(events);
    me_tensor *y = me_expand(e, x, ME_SHAPE(4, 5, 3));
    EXPECT_EVENTS(events, "");
    assert_true(me_shape_equal(&y->shape, &ME_SHAPE(4, 5, 3)));
    assert_string_equal(test_backward(events, me_neg(e, y)), "+120 +24 -120");
    me_tensor *same = me_expand(e, x, ME_SHAPE(4, 1, 3));
    assert_string_equal(test_backward(events, me_neg(e, same)), "+24 -24");
    me_leave(e, frame, NULL);
}

static void test_views__clone_keeps_the_strides(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *y = me_clone(e, me_transpose(e, leaf(e), 0, 1));
    EXPECT_EVENTS(events, "+24 +24");
    assert_int_equal(y->strides[0], 1);
    assert_int_equal(y->strides[1], 3);
    me_leave(e, frame, NULL);
}

/* One element in place of the view's data, then the data: +2 −2. */
static void test_views__make_viewless(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = leaf(e);
    assert_ptr_equal(me_make_viewless(e, x), x);
    me_tensor *y = me_make_viewless(e, me_transpose(e, x, 0, 1));
    EXPECT_EVENTS(events, "+24 +2 -2");
    assert_false(y->is_view);
    assert_ptr_equal(y->storage, x->storage);
    me_leave(e, frame, NULL);
}

/* x (4, 6) of a wider tensor (4, 9): 1/rms of 4 rows and y, dense; back comes one
 * gradient, behind which go what was kept and that of y. */
static void test_views__norm_of_a_part(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;
    const me_frame frame = me_enter(e);
    me_tensor *mixed = me_neg(e, me_test_leaf(e, ME_SHAPE(4, 9)));
    me_tensor *parts[2] = {NULL};
    me_split_last(e, mixed, 2, (uint64_t[]){6, 3}, parts);
    (void)me_test_events_take(events);
    me_tensor *y = me_fused_l2_norm(e, parts[0]);
    EXPECT_EVENTS(events, "+16 +48");
    me_drop(e, parts[0]);
    me_drop(e, parts[1]);
    me_drop(e, mixed);
    EXPECT_EVENTS(events, ""); /* it is kept */
    assert_string_equal(test_backward(events, y),
                        "+48 -72 -16 +24 +72 -24 -48 +72 -72");
    me_leave(e, frame, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(test_views__take_no_memory),
        ENGINE_TEST(test_views__contiguous_copies_what_is_not),
        ENGINE_TEST(test_views__reshape),
        ENGINE_TEST(test_views__reshape_backward),
        ENGINE_TEST(test_views__split_backward),
        ENGINE_TEST(test_views__slice_backward),
        ENGINE_TEST(test_views__cat),
        ENGINE_TEST(test_views__chunks_of_rows),
        ENGINE_TEST(test_views__cat_of_rows),
        ENGINE_TEST(test_views__every_second_column),
        ENGINE_TEST(test_views__expand),
        ENGINE_TEST(test_views__clone_keeps_the_strides),
        ENGINE_TEST(test_views__make_viewless),
        ENGINE_TEST(test_views__norm_of_a_part),
    };
    return cmocka_run_group_tests_name("views", tests, NULL, NULL);
}
