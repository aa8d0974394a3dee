/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/elementwise.h"
#include "ops/op_by_op.h"
#include "support/backward.h"
#include "support/test.h"

#include <string.h>

/* What Python does with each expression, by hand: x is (4, 6) in bfloat16, 48
 * bytes, a half of it 24, in float32 48; weights are (4, 1). */

static void test_op_by_op__swiglu(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_test_leaf(e, ME_SHAPE(4, 6));
    me_tensor *y = me_op_by_op_swiglu(e, x, NULL);
    assert_true(me_shape_equal(&y->shape, &ME_SHAPE(4, 3)));
    EXPECT_EVENTS(events, "+48 +24 +24 -24"); /* silu, product */
    assert_string_equal(test_backward(events, y),
                        "+24 +24 -24 "                 /* sigmoid, g · it */
                        "+24 +24 -24 +24 -24 +24 -24 " /* 1 + y (1 - …) */
                        "+24 -24 -24 +24 -24 " /* their product, · y_2 */
                        "+24 +24 -24 "         /* g · silu */
                        "+48 -24 -24");        /* cat */
    me_leave(e, frame, NULL);
    assert_int_equal(events->live, 0);
}

/* The sum with the bias is made again in the backward. */
static void test_op_by_op__bias_swiglu(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_neg(e, me_test_leaf(e, ME_SHAPE(4, 6)));
    me_tensor *y = me_op_by_op_swiglu(e, x, me_test_leaf(e, ME_SHAPE(6)));
    me_drop(e, x);
    EXPECT_EVENTS(events, "+48 +48 +12 +48 +24 +24 -24 -48");
    assert_string_equal(test_backward(events, y),
                        "+48 +24 +24 -24 +24 +24 -24 +24 -24 +24 -24 "
                        "+24 -24 -24 +24 -24 +24 +24 -24 +48 -24 -24 -48 "
                        "+12 -48 +48 -48");
    me_leave(e, frame, NULL);
}

/* Float32 weights make float32 of all that they touch. */
static void test_op_by_op__weighted_swiglu(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_test_leaf(e, ME_SHAPE(4, 6));
    me_tensor *weights =
        me_cast(e, me_test_leaf(e, ME_SHAPE(4, 1)), ME_DTYPE_FLOAT32);
    (void)me_test_events_take(events);
    me_tensor *y = me_op_by_op_weighted_swiglu(e, x, weights);
    assert_int_equal(y->dtype, ME_DTYPE_BFLOAT16);
    EXPECT_EVENTS(events, "+24 +24 -24 +48 -24 +24 -48");
    const char *backward = test_backward(events, y);
    const char *right =
        "+48 "                                     /* g · weights */
        "+24 +48 -24 +24 +24 -24 +24 -24 +24 -24 " /* swiglu_back(), wide */
        "+48 -48 -24 +48 -48 +24 +48 -24 +96 -48 -48 "
        "-48 "
        "+24 +24 -24 +48 +48 -24 -48 +16 -48 " /* of the weights */
        "+48 -96";                             /* to bfloat16 */
    assert_int_equal(strncmp(backward, right, strlen(right)), 0);
    me_leave(e, frame, NULL);
}

static void test_op_by_op__bias_gelu(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_neg(e, me_test_leaf(e, ME_SHAPE(4, 3)));
    me_tensor *bias = me_test_leaf(e, ME_SHAPE(3));
    (void)me_test_events_take(events);
    me_tensor *y = me_op_by_op_bias_gelu(e, x, bias);
    me_drop(e, x);
    EXPECT_EVENTS(events, "+24 +24 "                     /* x, x · 0.5 */
                          "+24 +24 +24 -24 +24 -24 +24 " /* within tanh */
                          "-24 -24 +24 -24 +24 -24 "     /* tanh, 1 + */
                          "+24 -24 -24 -24");
    assert_string_equal(test_backward(events, y),
                        "+24 +24 +24 +24 -24 +24 -24 +24 -24 -24 +24 -24 "
                        "+24 +24 +24 -24 +24 +24 -24 +24 -24 "
                        "+24 -24 -24 +24 -24 -24 "
                        "+24 +24 -24 +24 -24 -24 "
                        "+24 -24 -24 -24 "
                        "+6 -24 +24 -24");
    me_leave(e, frame, NULL);
}

/* Both keep what PyTorch's own operations keep. */
static void test_op_by_op__activations(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_test_leaf(e, ME_SHAPE(4, 3));
    (void)me_test_events_take(events);
    me_tensor *y = me_op_by_op_squared_relu(e, x);
    EXPECT_EVENTS(events, "+24 +24");
    (void)test_backward(events, y);
    me_leave(e, frame, NULL);
    assert_int_equal(events->live, 0);

    const me_frame other = me_enter(e);
    x = me_test_leaf(e, ME_SHAPE(4, 3));
    (void)me_test_events_take(events);
    y = me_op_by_op_quick_gelu(e, x);
    EXPECT_EVENTS(events, "+24 +24 -24 +24"); /* scaled, sigmoid, product */
    (void)test_backward(events, y);
    me_leave(e, other, NULL);
    assert_int_equal(events->live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(test_op_by_op__swiglu),
        ENGINE_TEST(test_op_by_op__bias_swiglu),
        ENGINE_TEST(test_op_by_op__weighted_swiglu),
        ENGINE_TEST(test_op_by_op__bias_gelu),
        ENGINE_TEST(test_op_by_op__activations),
    };
    return cmocka_run_group_tests_name("op_by_op", tests, NULL, NULL);
}
