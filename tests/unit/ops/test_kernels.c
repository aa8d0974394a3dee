/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/elementwise.h"
#include "ops/layer_norm.h"
#include "ops/matmul.h"
#include "ops/softmax.h"
#include "ops/view.h"
#include "support/backward.h"
#include "support/test.h"

/* The workspace of each host thread, 1000 bytes here, is taken right after
 * the output of its first product and kept. */

/* (2, 3, 4) · (2, 4, 5): 48, 80 and 60 bytes. The gradient of the second
 * operand is made first. */
static void test_kernels__bmm(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *a = me_test_leaf(e, ME_SHAPE(2, 3, 4));
    me_tensor *b = me_test_leaf(e, ME_SHAPE(2, 4, 5));
    me_tensor *y = me_bmm(e, a, b);
    EXPECT_EVENTS(events, "+48 +80 +60 +1000");
    assert_true(me_shape_equal(&y->shape, &ME_SHAPE(2, 3, 5)));
    assert_int_equal(me_engine_work(e, ME_PHASE_SETUP).flops,
                     2 * 2 * 3 * 4 * 5);
    assert_string_equal(test_backward(events, y), "+80 +1000 +48");
    assert_int_equal(me_engine_work(e, ME_PHASE_BACKWARD).flops,
                     2 * 2 * 2 * 3 * 4 * 5);
    me_leave(e, frame, NULL);
    assert_int_equal(events->live, 2000);
}

/* An operand is kept for the other's gradient alone: of a product with what
 * needs none, the second goes as soon as nobody else holds it. */
static void test_kernels__bmm_keeps_what_is_needed(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *a = me_empty(e, "a", ME_DTYPE_BFLOAT16, ME_SHAPE(2, 3, 4));
    me_tensor *b = me_neg(e, me_test_leaf(e, ME_SHAPE(2, 4, 5)));
    me_tensor *y = me_bmm(e, a, b);
    (void)me_test_events_take(events);
    me_drop(e, b);
    EXPECT_EVENTS(events, "-80");
    me_drop(e, a);
    EXPECT_EVENTS(events, "");
    me_drop(e, y);
    me_leave(e, frame, NULL);
}

/* Each gradient is a product and then that times alpha; first operand's
 * gradient first. */
static void test_kernels__baddbmm(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *a = me_test_leaf(e, ME_SHAPE(2, 3, 4));
    me_tensor *b = me_test_leaf(e, ME_SHAPE(2, 4, 5));
    me_tensor *y = me_baddbmm(e, a, b);
    EXPECT_EVENTS(events, "+48 +80 +60 +1000");
    assert_string_equal(test_backward(events, y),
                        "+48 +1000 +48 -48 +80 +80 -80");
    me_leave(e, frame, NULL);
}

/* x (4, 3): output 24, mean and 1/std of 4 rows in float32, 16 each; weights
 * of 3 are 6 bytes. */
static void test_kernels__layer_norm(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_neg(e, me_test_leaf(e, ME_SHAPE(4, 3)));
    me_tensor *weight = me_test_leaf(e, ME_SHAPE(3));
    me_tensor *bias = me_test_leaf(e, ME_SHAPE(3));
    (void)me_test_events_take(events);
    me_tensor *y = me_layer_norm(e, x, weight, bias);
    EXPECT_EVENTS(events, "+24 +16 +16");
    me_drop(e, x);
    EXPECT_EVENTS(events, "");
    /* gradients of input, weight, bias; input, mean, 1/std go; neg's */
    assert_string_equal(test_backward(events, y),
                        "+24 +6 +6 -24 -16 -16 +24 -24");
    me_leave(e, frame, NULL);
}

static void test_kernels__rms_norm(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_test_leaf(e, ME_SHAPE(4, 3));
    me_tensor *weight = me_test_leaf(e, ME_SHAPE(3));
    me_tensor *y = me_rms_norm(e, x, weight);
    EXPECT_EVENTS(events, "+24 +6 +24 +16");
    assert_string_equal(test_backward(events, y), "+24 +6 -16");
    me_leave(e, frame, NULL);
}

static void test_kernels__norm_statistics_go_at_once_off_the_tape(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_test_leaf(e, ME_SHAPE(4, 3));
    me_tensor *w = me_test_leaf(e, ME_SHAPE(3));
    (void)me_test_events_take(events);
    me_grad_enable(e, false);
    me_layer_norm(e, x, w, w);
    EXPECT_EVENTS(events, "+24 +16 +16 -16 -16");
    me_rms_norm(e, x, w);
    EXPECT_EVENTS(events, "+24 +16 -16");
    me_grad_enable(e, true);
    me_leave(e, frame, NULL);
}

/* The key of mixed QKV is a view with holes: it is copied for the kernel, in
 * the forward and, from what was saved, again in the backward. */
static void test_kernels__norm_of_a_view_with_holes(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_slice(e, me_test_leaf(e, ME_SHAPE(4, 5)), -1, 0, 3);
    me_tensor *w = me_test_leaf(e, ME_SHAPE(3));
    (void)me_test_events_take(events);
    me_tensor *y = me_rms_norm(e, x, w);
    EXPECT_EVENTS(events, "+24 +24 +16 -24");
    /* copy, gradients, copy goes, 1/rms goes; the slice's gradient of 40 */
    assert_string_equal(test_backward(events, y), "+24 +24 +6 -24 -16 +40 -24");
    me_leave(e, frame, NULL);
}

/* So is an incoming gradient with holes, after the gradients are made: here
 * the narrow half of a concatenation's. */
static void test_kernels__norm_with_a_gradient_with_holes(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_test_leaf(e, ME_SHAPE(4, 3));
    me_tensor *w = me_test_leaf(e, ME_SHAPE(3));
    me_tensor *y = me_rms_norm(e, x, w);
    me_tensor *other = test_tensor(e, ME_DTYPE_BFLOAT16, ME_SHAPE(4, 2));
    assert_string_equal(test_backward(events, me_cat_last(e, y, other)),
                        "+24 +6 +24 -24 -16");
    me_leave(e, frame, NULL);
}

/* Above 65,536 rows the gradients of weight and bias go by way of blocks of 32
 * rows, 2049 of them here, whose sums take their places one after the other. */
static void test_kernels__norm_of_many_rows(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    for (uint64_t rows = 65536; rows <= 65537; rows++) {
        const me_frame frame = me_enter(e);
        me_tensor *x = test_tensor(e, ME_DTYPE_BFLOAT16, ME_SHAPE(rows, 1));
        me_tensor *w = me_test_leaf(e, ME_SHAPE(1));
        me_tensor *b = me_test_leaf(e, ME_SHAPE(1));
        me_tensor *y = me_layer_norm(e, x, w, b);
        const char *events_of_backward = test_backward(events, y);
        if (rows == 65536) {
            assert_string_equal(events_of_backward, "+2 +2 -262144 -262144");
        } else {
            assert_string_equal(events_of_backward,
                                "+2 +2 +4098 +4098 +2 -2 +2 -2 -4098 -4098 "
                                "-262148 -262148");
        }
        me_leave(e, frame, NULL);
    }
}

/* The gradient, then gradient · result, which goes at once, then the saved
 * result, which the caller still holds here. */
static void test_kernels__softmax(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_neg(e, me_test_leaf(e, ME_SHAPE(4, 3)));
    me_tensor *y = me_softmax(e, x);
    me_drop(e, x);
    EXPECT_EVENTS(events, "+24 +24 +24 -24"); /* the input is not saved */
    assert_string_equal(test_backward(events, y), "+24 +24 -24 +24 -24");
    me_leave(e, frame, NULL);
}

static void test_kernels__masked_fill(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_neg(e, me_test_leaf(e, ME_SHAPE(4, 3)));
    me_tensor *mask = test_tensor(e, ME_DTYPE_BOOL, ME_SHAPE(4, 3));
    (void)me_test_events_take(events);
    assert_ptr_equal(me_masked_fill_in_place(e, x, mask), x);
    me_drop(e, mask);
    EXPECT_EVENTS(events, ""); /* saved */
    assert_string_equal(test_backward(events, x), "+24 -12 +24 -24");
    me_leave(e, frame, NULL);
}

/* Into a view: view-regeneration gradient; copy of the base, clone of the
 * slice, fill's gradient, the two go, the regenerated one goes; the mask. */
static void test_kernels__masked_fill_of_a_view(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_neg(e, me_test_leaf(e, ME_SHAPE(4, 3)));
    me_tensor *view = me_view(e, x, ME_SHAPE(12));
    me_tensor *mask = test_tensor(e, ME_DTYPE_BOOL, ME_SHAPE(12));
    me_masked_fill_in_place(e, view, mask);
    me_drop(e, mask);
    assert_string_equal(test_backward(events, view),
                        "+24 +24 +24 +24 -24 -24 -24 -12 +24 -24");
    me_leave(e, frame, NULL);
}

/* The view's gradient made anew; copy of the base, clone of the slice, which is
 * that of what was added; the former goes; then each factor's. */
static void test_kernels__addition_into_a_view(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_neg(e, me_test_leaf(e, ME_SHAPE(4, 3)));
    me_tensor *view = me_view(e, x, ME_SHAPE(12));
    me_tensor *added = me_neg(e, me_test_leaf(e, ME_SHAPE(12)));
    (void)me_test_events_take(events);
    assert_ptr_equal(me_add_in_place(e, view, added), view);
    EXPECT_EVENTS(events, "");
    assert_string_equal(test_backward(events, view),
                        "+24 +24 +24 -24 +24 -24 +24 -24");
    me_leave(e, frame, NULL);
}

/* Not a view: both have the incoming gradient. */
static void test_kernels__addition_in_place(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_neg(e, me_test_leaf(e, ME_SHAPE(12)));
    me_tensor *added = me_neg(e, me_test_leaf(e, ME_SHAPE(12)));
    (void)me_test_events_take(events);
    me_add_in_place(e, x, added);
    EXPECT_EVENTS(events, "");
    assert_string_equal(test_backward(events, x), "+24 +24");
    me_leave(e, frame, NULL);
}

/* A backward runs on its forward's stream, and a gradient that another stream works
 * on next is freed late. */
static void test_kernels__streams_of_nodes(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_neg(e, me_test_leaf(e, ME_SHAPE(12)));
    const uint8_t stream = me_stream_set(e, ME_STREAM_SHARED_EXPERTS);
    me_tensor *y = me_neg(e, x);
    me_stream_set(e, stream);
    (void)me_test_events_take(events);
    assert_int_equal(y->grad_fn->stream, ME_STREAM_SHARED_EXPERTS);
    assert_string_equal(test_backward(events, y), "+24 +24 ~24");
    me_leave(e, frame, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(test_kernels__bmm),
        ENGINE_TEST(test_kernels__bmm_keeps_what_is_needed),
        ENGINE_TEST(test_kernels__baddbmm),
        ENGINE_TEST(test_kernels__layer_norm),
        ENGINE_TEST(test_kernels__rms_norm),
        ENGINE_TEST(test_kernels__norm_statistics_go_at_once_off_the_tape),
        ENGINE_TEST(test_kernels__norm_of_a_view_with_holes),
        ENGINE_TEST(test_kernels__norm_with_a_gradient_with_holes),
        ENGINE_TEST(test_kernels__norm_of_many_rows),
        ENGINE_TEST(test_kernels__softmax),
        ENGINE_TEST(test_kernels__masked_fill),
        ENGINE_TEST(test_kernels__masked_fill_of_a_view),
        ENGINE_TEST(test_kernels__addition_into_a_view),
        ENGINE_TEST(test_kernels__addition_in_place),
        ENGINE_TEST(test_kernels__streams_of_nodes),
    };
    return cmocka_run_group_tests_name("kernels", tests, NULL, NULL);
}
