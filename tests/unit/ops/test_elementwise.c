/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "support/backward.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

/* x is (4, 3) in bfloat16: 12 elements, 24 bytes; a bias has 3, 6 bytes. The
 * gradient of a leaf is taken as it is, so it is no event of its own. */

static me_tensor *leaf(me_engine *e)
{
    return me_test_leaf(e, ME_SHAPE(4, 3));
}

/** One-argument operations: their output, and the gradient of the input. */
static void test_elementwise__unary(void **state)
{
    static const struct {
        const char *name;
        me_tensor *(*op)(me_engine *e, me_tensor *x);
        const char *backward;
    } cases[] = {
        {"add_number", me_add_number, "+24"}, /* the leaf's clone: g is held */
        {"mul_number", me_mul_number, "+24"},
        {"neg", me_neg, "+24"},
        {"silu", me_silu, "+24"},
        {"gelu", me_gelu, "+24"},
        {"squared_relu", me_squared_relu, "+24"},
    };

    me_test_events *events = *state;
    me_engine *e = events->e;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const me_frame frame = me_enter(e);
        me_tensor *x = leaf(e);
        (void)me_test_events_take(events);
        me_tensor *y = cases[i].op(e, x);
        EXPECT_EVENTS(events, "+24");
        assert_string_equal(test_backward(events, y), cases[i].backward);
        me_leave(e, frame, NULL);
        assert_int_equal(events->live, 0);
    }
}

/** Does the operation keep its input until its backward? */
static void test_elementwise__what_is_saved(void **state)
{
    static const struct {
        me_tensor *(*op)(me_engine *e, me_tensor *x);
        const char *dropped; /* the input's variable goes */
    } cases[] = {
        {me_add_number, "-24"}, {me_mul_number, "-24"}, {me_neg, "-24"},
        {me_silu, ""},          {me_gelu, ""},          {me_squared_relu, ""},
    };

    me_test_events *events = *state;
    me_engine *e = events->e;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const me_frame frame = me_enter(e);
        me_tensor *x = me_neg(e, leaf(e));
        cases[i].op(e, x);
        (void)me_test_events_take(events);
        me_drop(e, x);
        EXPECT_EVENTS(events, cases[i].dropped);
        me_leave(e, frame, NULL);
    }
}

/* Flags of 12 elements, a list for each end; the zero that stands for what was
 * outside is a number on the card. */
static void test_elementwise__clamp(void **state)
{
    static const struct {
        bool has_min;
        const char *backward;
    } cases[] = {
        {false, "+2 +12 +24 -12 -2"},
        {true, "+2 +12 +12 +24 -12 -12 -2"},
    };

    me_test_events *events = *state;
    me_engine *e = events->e;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const me_frame frame = me_enter(e);
        me_tensor *x = me_neg(e, leaf(e));
        (void)me_test_events_take(events);
        me_tensor *y = me_clamp(e, x, cases[i].has_min);
        EXPECT_EVENTS(events, "+24");
        me_drop(e, x);
        EXPECT_EVENTS(events, ""); /* it is kept */
        me_leave(e, frame, NULL);
        (void)y;
        (void)me_test_events_take(events);
        const me_frame again = me_enter(e);
        y = me_clamp(e, leaf(e), cases[i].has_min);
        (void)me_test_events_take(events);
        assert_string_equal(test_backward(events, y), cases[i].backward);
        me_leave(e, again, NULL);
    }
}

/* x (4, 4), weights (4, 1), and the offset, which the node keeps: y (4, 2); back
 * come gradients of x and of the weights. */
static void test_elementwise__weighted_quick_geglu(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;
    const me_frame frame = me_enter(e);
    me_tensor *x = me_test_leaf(e, ME_SHAPE(4, 4));
    me_tensor *weights = me_test_leaf(e, ME_SHAPE(4, 1));
    me_tensor *offset = me_empty(e, "tensor", ME_DTYPE_BFLOAT16, ME_SCALAR);
    (void)me_test_events_take(events);
    me_tensor *y = me_fused_weighted_quick_geglu(e, x, weights, offset);
    EXPECT_EVENTS(events, "+16");
    me_drop(e, offset);
    EXPECT_EVENTS(events, "");
    assert_string_equal(test_backward(events, y), "+32 +8 -2");
    me_leave(e, frame, NULL);
}

/* The gradient of the second factor is made first; the broadcast one is then
 * summed, and the wide one goes. */
static void test_elementwise__mul_with_broadcast(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = leaf(e);
    me_tensor *factor = me_test_leaf(e, ME_SHAPE(3));
    me_tensor *y = me_mul(e, x, factor);
    EXPECT_EVENTS(events, "+24 +6 +24");
    assert_string_equal(test_backward(events, y), "+24 +24 +6 -24");
    me_leave(e, frame, NULL);
}

/* A factor is saved for the gradient of the other one alone. */
static void test_elementwise__mul_saves_what_the_other_needs(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_neg(e, leaf(e));
    me_tensor *plain = test_tensor(e, ME_DTYPE_BFLOAT16, ME_SHAPE(4, 3));
    me_tensor *y = me_mul(e, x, plain);
    (void)me_test_events_take(events);
    me_drop(e, x);
    EXPECT_EVENTS(events, "-24"); /* plain needs no gradient */
    me_drop(e, plain);
    EXPECT_EVENTS(events, "");
    /* product's gradient; plain goes; neg's gradient; product's goes */
    assert_string_equal(test_backward(events, y), "+24 -24 +24 -24");
    me_leave(e, frame, NULL);
}

static void test_elementwise__add_broadcasts_either_way(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *bias = me_test_leaf(e, ME_SHAPE(3));
    me_tensor *x = leaf(e);
    (void)me_test_events_take(events);
    me_tensor *y = me_add(e, bias, x);
    EXPECT_EVENTS(events, "+24");
    /* the bias's sum; then x's clone of a gradient that is held */
    assert_string_equal(test_backward(events, y), "+6 +24");
    me_leave(e, frame, NULL);
}

static void test_elementwise__cast(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = leaf(e);
    assert_ptr_equal(me_cast(e, x, ME_DTYPE_BFLOAT16), x);
    me_tensor *y = me_cast(e, x, ME_DTYPE_FLOAT32);
    EXPECT_EVENTS(events, "+24 +48");
    assert_string_equal(test_backward(events, y), "+24");
    assert_int_equal(x->grad->dtype, ME_DTYPE_BFLOAT16);
    me_leave(e, frame, NULL);
}

static void test_elementwise__in_place_division(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_neg(e, leaf(e));
    me_tensor *divisor = test_tensor(e, ME_DTYPE_BFLOAT16, ME_SHAPE(1));
    (void)me_test_events_take(events);
    assert_ptr_equal(me_div_number_in_place(e, x), x);
    assert_ptr_equal(me_div_in_place(e, x, divisor), x);
    EXPECT_EVENTS(events, "");
    me_drop(e, divisor);
    EXPECT_EVENTS(events, ""); /* saved */
    /* one each; the divisor goes; the first's; the second's gradient goes;
     * neg's; the first's goes */
    assert_string_equal(test_backward(events, x), "+24 -2 +24 -24 +24 -24");
    me_leave(e, frame, NULL);
}

static void test_elementwise__bias_gelu(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_neg(e, leaf(e));
    me_tensor *y = me_bias_gelu(e, x, me_test_leaf(e, ME_SHAPE(3)));
    me_drop(e, x);
    EXPECT_EVENTS(events, "+24 +24 +6 +24"); /* x is saved */
    /* x's gradient, the bias's sum of it, x goes; neg's; x's gradient goes */
    assert_string_equal(test_backward(events, y), "+24 +6 -24 +24 -24");
    me_leave(e, frame, NULL);
}

static void
test_elementwise__fused_swiglu_halves_the_last_dimension(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_test_leaf(e, ME_SHAPE(4, 6));
    me_tensor *y = me_fused_swiglu(e, x, NULL);
    assert_true(me_shape_equal(&y->shape, &ME_SHAPE(4, 3)));
    EXPECT_EVENTS(events, "+48 +24");
    assert_string_equal(test_backward(events, y), "+48");
    me_leave(e, frame, NULL);
}

/* With a bias as with gelu: its gradient is the sum of the input's. */
static void test_elementwise__bias_swiglu(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_neg(e, me_test_leaf(e, ME_SHAPE(4, 6)));
    me_tensor *y = me_fused_swiglu(e, x, me_test_leaf(e, ME_SHAPE(6)));
    me_drop(e, x);
    EXPECT_EVENTS(events, "+48 +48 +12 +24");
    assert_string_equal(test_backward(events, y), "+48 +12 -48 +48 -48");
    me_leave(e, frame, NULL);
}

/* A mask of one byte an element; without dropout not even a node. */
static void test_elementwise__dropout(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = leaf(e);
    assert_ptr_equal(me_dropout(e, x, 0), x);
    me_tensor *y = me_dropout(e, x, 0.1);
    EXPECT_EVENTS(events, "+24 +12 +24");
    assert_string_equal(test_backward(events, y), "+24 -12");
    me_leave(e, frame, NULL);
}

static void test_elementwise__dropout_off_the_tape(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = leaf(e);
    me_grad_enable(e, false);
    me_dropout(e, x, 0.1);
    EXPECT_EVENTS(events, "+24 +12 +24 -12");
    me_grad_enable(e, true);
    me_leave(e, frame, NULL);
}

/* The compiled residual step: seed, mask, output; the seed goes. */
static void test_elementwise__fused_bias_dropout_add(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = leaf(e);
    me_tensor *bias = me_test_leaf(e, ME_SHAPE(3));
    me_tensor *residual = leaf(e);
    (void)me_test_events_take(events);
    me_tensor *y = me_fused_bias_dropout_add(e, x, bias, residual, 0.1);
    EXPECT_EVENTS(events, "+8 +12 +24 -8");
    /* x's gradient, the mask goes, the bias's; the residual gets the incoming
     * one, which is held, so it is cloned */
    assert_string_equal(test_backward(events, y), "+24 -12 +6 +24");
    me_leave(e, frame, NULL);
}

/* The residual's gradient alone needs no mask; no gradient needs none either. */
static void test_elementwise__fused_dropout_of_a_constant(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = test_tensor(e, ME_DTYPE_BFLOAT16, ME_SHAPE(4, 3));
    me_tensor *residual = leaf(e);
    (void)me_test_events_take(events);
    me_tensor *y = me_fused_bias_dropout_add(e, x, NULL, residual, 0.1);
    EXPECT_EVENTS(events, "+8 +24 -8");
    assert_string_equal(test_backward(events, y), "+24"); /* a clone */
    me_fused_bias_dropout_add(e, x, NULL, x, 0.1);
    EXPECT_EVENTS(events, "+8 +24 -8");
    me_leave(e, frame, NULL);
}

static void test_elementwise__fused_add_without_dropout(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = leaf(e);
    me_tensor *residual = leaf(e);
    (void)me_test_events_take(events);
    me_tensor *y = me_fused_bias_dropout_add(e, x, NULL, residual, 0);
    EXPECT_EVENTS(events, "+24");
    assert_string_equal(test_backward(events, y), "+24 +24"); /* two clones */
    me_leave(e, frame, NULL);
}

/* 300 rows: partial sums of 128 rows each, ceil(300 / 128) = 3 of 3 columns
 * in float32, 36 bytes. */
static void test_elementwise__compiled_bias_gradient_in_parts(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_test_leaf(e, ME_SHAPE(300, 3));
    me_tensor *bias = me_test_leaf(e, ME_SHAPE(3));
    me_tensor *plain = test_tensor(e, ME_DTYPE_BFLOAT16, ME_SHAPE(300, 3));
    me_tensor *y = me_fused_bias_dropout_add(e, x, bias, plain, 0.1);
    assert_string_equal(test_backward(events, y), "+1800 -900 +36 +6 -36");
    me_leave(e, frame, NULL);
}

/* (4, 1) and (1, 3): neither has the shape of the sum, (4, 3), and each gets its
 * own back. */
static void test_elementwise__both_operands_are_broadcast(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *a = me_test_leaf(e, ME_SHAPE(4, 1));
    me_tensor *b = me_test_leaf(e, ME_SHAPE(1, 3));
    (void)me_test_events_take(events);
    me_tensor *y = me_add(e, a, b);
    EXPECT_EVENTS(events, "+24");
    assert_true(me_shape_equal(&y->shape, &ME_SHAPE(4, 3)));
    assert_string_equal(test_backward(events, y), "+8 +6");
    assert_true(me_shape_equal(&a->grad->shape, &a->shape));
    assert_true(me_shape_equal(&b->grad->shape, &b->shape));
    me_leave(e, frame, NULL);
}

static void test_elementwise__shapes_that_do_not_broadcast(void **state)
{
    static me_tensor *(*const ops[])(me_engine *, me_tensor *,
                                     me_tensor *) = {me_add, me_sub, me_mul};
    static const char signs[] = "+-*";

    me_test_events *events = *state;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        me_test_events failing;
        me_test_events_init(&failing);
        me_engine *e = failing.e;
        const me_frame frame = me_enter(e);
        me_tensor *a = test_tensor(e, ME_DTYPE_BFLOAT16, ME_SHAPE(4, 3));
        me_tensor *b = test_tensor(e, ME_DTYPE_BFLOAT16, ME_SHAPE(4));
        assert_ptr_equal(ops[i](e, a, b), me_none(e));
        char part[64] = "";
        me_diag diag = {0};
        (void)snprintf(part, sizeof part, "(4, 3) %c (4,): these shapes",
                       signs[i]);
        assert_int_equal(me_engine_status(e, &diag), ME_ERR_CONFIG);
        assert_non_null(strstr(diag.text, part));
        me_leave(e, frame, NULL);
        me_test_events_fini(&failing);
    }
    assert_true(me_engine_is_ok(events->e));
}

/* As `(a + b).dtype` of PyTorch 2.11 says. */
static void test_elementwise__types_of_two_operands(void **state)
{
    static const struct {
        me_dtype a;
        me_dtype b;
        bool is_number; /* b has no dimension */
        me_dtype sum;
    } cases[] = {
        {ME_DTYPE_FLOAT16, ME_DTYPE_BFLOAT16, false, ME_DTYPE_FLOAT32},
        {ME_DTYPE_BFLOAT16, ME_DTYPE_FLOAT32, false, ME_DTYPE_FLOAT32},
        {ME_DTYPE_BFLOAT16, ME_DTYPE_FLOAT32, true, ME_DTYPE_BFLOAT16},
        {ME_DTYPE_INT64, ME_DTYPE_BFLOAT16, false, ME_DTYPE_BFLOAT16},
        {ME_DTYPE_BFLOAT16, ME_DTYPE_INT64, false, ME_DTYPE_BFLOAT16},
        {ME_DTYPE_INT64, ME_DTYPE_FLOAT32, true, ME_DTYPE_FLOAT32},
    };

    me_test_events *events = *state;
    me_engine *e = events->e;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const me_frame frame = me_enter(e);
        me_tensor *a = test_tensor(e, cases[i].a, ME_SHAPE(4, 3));
        me_tensor *b = test_tensor(
            e, cases[i].b, cases[i].is_number ? ME_SCALAR : ME_SHAPE(4, 3));
        assert_int_equal(me_add(e, a, b)->dtype, cases[i].sum);
        assert_int_equal(me_add(e, b, a)->dtype, cases[i].sum);
        me_leave(e, frame, NULL);
    }
}

/* gelu's backward reads h, which relu_() has changed; relu's own result it may
 * change, since its backward reads what it made. */
static void test_elementwise__in_place_on_what_is_saved(void **state)
{
    (void)state;
    for (int saves = 0; saves < 2; saves++) {
        me_test_events events;
        me_test_events_init(&events);
        me_engine *e = events.e;
        const me_frame frame = me_enter(e);
        me_tensor *h = me_mul_number(e, leaf(e));
        me_tensor *k = saves == 1 ? me_gelu(e, h) : me_neg(e, h);
        me_tensor *y = me_add(e, k, me_relu_in_place(e, h));
        (void)test_backward(&events, y);
        me_diag diag = {0};
        assert_int_equal(me_engine_status(e, &diag),
                         saves == 1 ? ME_ERR_CONFIG : ME_OK);
        assert_int_equal(saves == 1,
                         strstr(diag.text, "GeluBackward0") != NULL);
        me_leave(e, frame, NULL);
        me_test_events_fini(&events);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(test_elementwise__unary),
        ENGINE_TEST(test_elementwise__what_is_saved),
        ENGINE_TEST(test_elementwise__mul_with_broadcast),
        ENGINE_TEST(test_elementwise__mul_saves_what_the_other_needs),
        ENGINE_TEST(test_elementwise__add_broadcasts_either_way),
        ENGINE_TEST(test_elementwise__cast),
        ENGINE_TEST(test_elementwise__in_place_division),
        ENGINE_TEST(test_elementwise__bias_gelu),
        ENGINE_TEST(test_elementwise__bias_swiglu),
        ENGINE_TEST(test_elementwise__fused_swiglu_halves_the_last_dimension),
        ENGINE_TEST(test_elementwise__dropout),
        ENGINE_TEST(test_elementwise__dropout_off_the_tape),
        ENGINE_TEST(test_elementwise__fused_bias_dropout_add),
        ENGINE_TEST(test_elementwise__fused_dropout_of_a_constant),
        ENGINE_TEST(test_elementwise__fused_add_without_dropout),
        ENGINE_TEST(test_elementwise__compiled_bias_gradient_in_parts),
        ENGINE_TEST(test_elementwise__both_operands_are_broadcast),
        ENGINE_TEST(test_elementwise__shapes_that_do_not_broadcast),
        ENGINE_TEST(test_elementwise__types_of_two_operands),
        ENGINE_TEST(test_elementwise__in_place_on_what_is_saved),
        ENGINE_TEST(test_elementwise__clamp),
        ENGINE_TEST(test_elementwise__weighted_quick_geglu),
    };
    return cmocka_run_group_tests_name("elementwise", tests, NULL, NULL);
}
