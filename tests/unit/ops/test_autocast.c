/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/autocast_casts.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/functional_linear.h"
#include "ops/layer_norm.h"
#include "ops/reduce.h"
#include "support/backward.h"
#include "support/test.h"
#include "tensor/autocast.h"
#include "tensor/kind.h"
#include "tensor/region.h"

static const me_autocast_state bfloat16 = {.is_enabled = true,
                                           .dtype = ME_DTYPE_BFLOAT16};

/** A float32 leaf that needs a gradient. */
static me_tensor *leaf(me_engine *e, me_shape shape)
{
    me_tensor *x = me_empty(e, "leaf", ME_DTYPE_FLOAT32, shape);
    x->requires_grad = true;
    return x;
}

/** A leaf that is a parameter; nobody looks at what kind of. */
static me_tensor *parameter(me_engine *e, me_shape shape)
{
    static int what;
    me_tensor *x = leaf(e, shape);
    x->parameter = (void *)&what;
    return x;
}

/** Both threads' workspaces are there, so that they do not show. */
static void warm_up(me_engine *e)
{
    const me_frame frame = me_enter(e);
    me_tensor *x = me_test_leaf(e, ME_SHAPE(2, 2));
    me_tensor *y = me_functional_linear(e, x, me_test_leaf(e, ME_SHAPE(2, 2)),
                                        me_test_leaf(e, ME_SHAPE(2)));
    me_backward(e, y, me_empty_like(e, "gradient", y));
    me_leave(e, frame, NULL);
}

/** What a test runs in: an engine that is warm, and a frame on it. */
typedef struct setting {
    me_test_events *events;
    me_engine *e;
    me_frame frame;
} setting;

static int begin(void **state)
{
    static setting s;
    void *events = NULL;
    if (me_test_events_setup(&events) != 0) {
        return -1;
    }
    s = (setting){.events = events, .e = ((me_test_events *)events)->e};
    s.frame = me_enter(s.e);
    warm_up(s.e);
    *state = &s;
    return 0;
}

/** Nothing but the workspaces may be left. */
static int end(void **state)
{
    const setting *s = *state;
    void *events = s->events;
    me_leave(s->e, s->frame, NULL);
    assert_int_equal(s->events->live, 2 * TEST_WORKSPACE + (1 << 20));
    return me_test_events_teardown(&events);
}

#define AUTOCAST_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

/* Weight (3, 4): 48 bytes, its cast 24; bias 12 and 6; input (2, 4): 32 and
 * 16; output (2, 3): 12. */
static void test_autocast__linear_casts_from_the_last_to_the_first(void **state)
{
    const setting *s = *state;
    me_test_events *events = s->events;
    me_engine *e = s->e;
    me_tensor *weight = parameter(e, ME_SHAPE(3, 4));
    me_tensor *bias = parameter(e, ME_SHAPE(3));
    me_tensor *x = leaf(e, ME_SHAPE(2, 4));
    (void)me_test_events_take(events);

    const me_autocast_state outer = me_autocast_enter(e, bfloat16);
    me_tensor *y = me_functional_linear(e, x, weight, bias);
    EXPECT_EVENTS(events, "+6 +24 +16 +12");
    assert_int_equal(y->dtype, ME_DTYPE_BFLOAT16);
    /* nobody saved the bias */
    me_autocast_exit(e, outer);
    EXPECT_EVENTS(events, "-6");
    /* gradients of input, weight, bias in bfloat16; both saved casts go; then
     * each gradient is cast, the latest cast's first */
    assert_string_equal(test_backward(events, y),
                        "+16 +24 +6 -16 -24 +32 -16 +48 -24 +12 -6");
    assert_int_equal(weight->grad->dtype, ME_DTYPE_FLOAT32);
}

/** What something made that needs a gradient. */
static me_tensor *made(me_engine *e, me_shape shape)
{
    return me_add(e, leaf(e, shape), leaf(e, shape));
}

/* A parameter's cast is made once a context, what is no leaf is cast twice. */
static void test_autocast__keeps_casts_of_parameters(void **state)
{
    const setting *s = *state;
    me_test_events *events = s->events;
    me_engine *e = s->e;
    me_tensor *weight = parameter(e, ME_SHAPE(3, 4));
    me_tensor *x = made(e, ME_SHAPE(2, 4));
    (void)me_test_events_take(events);

    const me_autocast_state outer = me_autocast_enter(e, bfloat16);
    const me_autocast_state inner = me_autocast_enter(e, bfloat16);
    (void)me_functional_linear(e, x, weight, NULL);
    EXPECT_EVENTS(events, "+24 +16 +12");
    me_autocast_exit(e, inner); /* not the outermost */
    (void)me_functional_linear(e, x, weight, NULL);
    EXPECT_EVENTS(events, "+16 +12");
    me_autocast_exit(e, outer);
    EXPECT_EVENTS(events, ""); /* the products saved it */
    const me_autocast_state again = me_autocast_enter(e, bfloat16);
    (void)me_functional_linear(e, x, weight, NULL);
    EXPECT_EVENTS(events, "+24 +16 +12");
    me_autocast_exit(e, again);
    assert_false(me_autocast_now(e).is_enabled);
}

/* A leaf that is no parameter, as a re-entrant checkpoint hands in, is cast once
 * too; the same tensor is none to PyTorch where a checkpoint has unpacked it. */
static void test_autocast__keeps_casts_of_leaves(void **state)
{
    const setting *s = *state;
    me_test_events *events = s->events;
    me_engine *e = s->e;
    me_tensor *x = leaf(e, ME_SHAPE(2, 4));
    me_tensor *unpacked = leaf(e, ME_SHAPE(2, 4));
    me_tensor *constant = me_empty(e, "x", ME_DTYPE_FLOAT32, ME_SHAPE(2, 4));
    unpacked->is_inner = true;
    (void)me_test_events_take(events);

    const me_autocast_state outer = me_autocast_enter(e, bfloat16);
    assert_ptr_equal(me_autocast_lower(e, x), me_autocast_lower(e, x));
    EXPECT_EVENTS(events, "+16");
    (void)me_autocast_lower(e, unpacked);
    (void)me_autocast_lower(e, unpacked);
    (void)me_autocast_lower(e, constant);
    (void)me_autocast_lower(e, constant);
    EXPECT_EVENTS(events, "+16 +16 +16 +16");
    me_autocast_exit(e, outer);
}

/* Made where no gradient is recorded, it has one where it is taken again. */
static void test_autocast__kept_casts_have_a_history(void **state)
{
    const setting *s = *state;
    me_test_events *events = s->events;
    me_engine *e = s->e;
    me_tensor *weight = parameter(e, ME_SHAPE(3, 4));
    me_tensor *x = made(e, ME_SHAPE(2, 4));
    const me_autocast_state outer = me_autocast_enter(e, bfloat16);
    const bool grad = me_grad_enable(e, false);
    const me_tensor *kept = me_autocast_lower(e, weight);
    assert_false(me_autocast_lower(e, x)->requires_grad);
    assert_false(me_grad_enable(e, grad));
    assert_true(kept->requires_grad);
    assert_ptr_equal(me_autocast_lower(e, weight), kept);
    me_autocast_exit(e, outer);
    (void)me_test_events_take(events);
}

/* A cast lies as what is cast does. */
static void test_autocast__casts_of_dtensors(void **state)
{
    const setting *s = *state;
    me_test_events *events = s->events;
    me_engine *e = s->e;
    me_tensor *weight = parameter(e, ME_SHAPE(3, 4));
    const me_kind distributed = {.name = ME_KIND_DTENSOR};
    weight->kind = &distributed;
    const me_autocast_state outer = me_autocast_enter(e, bfloat16);
    const me_tensor *cast = me_autocast_lower(e, weight);
    assert_int_equal(cast->dtype, ME_DTYPE_BFLOAT16);
    assert_ptr_equal(cast->kind, &distributed);
    me_autocast_exit(e, outer);
    (void)me_test_events_take(events);
}

/* Outside of a context, and where it is off, nothing is cast. */
static void test_autocast__casts_nothing_by_itself(void **state)
{
    const setting *s = *state;
    me_engine *e = s->e;
    me_tensor *x = parameter(e, ME_SHAPE(2, 4));
    me_tensor *indices = test_tensor(e, ME_DTYPE_INT64, ME_SHAPE(4));
    assert_ptr_equal(me_autocast_lower(e, x), x);
    const me_autocast_state outer =
        me_autocast_enter(e, (me_autocast_state){.is_enabled = false});
    assert_ptr_equal(me_autocast_lower(e, x), x);
    me_autocast_exit(e, outer);
    const me_autocast_state on = me_autocast_enter(e, bfloat16);
    assert_ptr_equal(me_autocast_lower(e, indices), indices);
    assert_ptr_equal(me_autocast_float(e, indices), indices);
    assert_null(me_autocast_lower(e, NULL));
    me_autocast_exit(e, on);
}

/* Input (2, 4) in bfloat16, 16 bytes, in float32 32; statistics 8 each. */
static void test_autocast__layer_norm_runs_in_float32(void **state)
{
    const setting *s = *state;
    me_test_events *events = s->events;
    me_engine *e = s->e;
    me_tensor *weight = parameter(e, ME_SHAPE(4));
    me_tensor *bias = parameter(e, ME_SHAPE(4));
    me_tensor *x = me_test_leaf(e, ME_SHAPE(2, 4));
    (void)me_test_events_take(events);

    const me_autocast_state outer = me_autocast_enter(e, bfloat16);
    me_tensor *y = me_layer_norm(e, x, weight, bias);
    me_autocast_exit(e, outer);
    EXPECT_EVENTS(events, "+32 +32 +8 +8");
    assert_string_equal(test_backward(events, y),
                        "+32 +16 +16 -32 -8 -8 +16 -32");
}

/* No list has rms_norm: an input of another type than the weight's is computed
 * step by step. Rows of 2 and 4: 16 bytes, in float32 32, a mean 8. */
static void test_autocast__rms_norm_of_two_types(void **state)
{
    const setting *s = *state;
    me_test_events *events = s->events;
    me_engine *e = s->e;
    me_tensor *weight = parameter(e, ME_SHAPE(4));
    me_tensor *x = me_test_leaf(e, ME_SHAPE(2, 4));
    (void)me_test_events_take(events);

    me_tensor *y = me_rms_norm(e, x, weight);
    /* input, squares, means, their inverse roots; twice a product; the result */
    EXPECT_EVENTS(events, "+32 +32 +8 +8 -8 -32 +32 +32 +16 -32");
    assert_int_equal(y->dtype, ME_DTYPE_BFLOAT16);
    (void)test_backward(events, y);
    assert_int_equal(weight->grad->dtype, ME_DTYPE_FLOAT32);
    assert_int_equal(x->grad->dtype, ME_DTYPE_BFLOAT16);
}

/* The log-softmax is told its type, the loss is not: two rows of three. */
static void test_autocast__cross_entropy(void **state)
{
    const setting *s = *state;
    me_test_events *events = s->events;
    me_engine *e = s->e;
    me_tensor *x = me_test_leaf(e, ME_SHAPE(2, 3));
    me_tensor *target = test_tensor(e, ME_DTYPE_INT64, ME_SHAPE(2));
    (void)me_test_events_take(events);

    const me_autocast_state outer = me_autocast_enter(e, bfloat16);
    me_tensor *loss = me_cross_entropy(e, x, target);
    me_autocast_exit(e, outer);
    EXPECT_EVENTS(events, "+12 +24 +4 +4");
    assert_string_equal(test_backward(events, loss),
                        "+24 -24 -4 +12 -24 +12 -12 -12");
}

/* Squares are made in float32; a sum is told its type, and its gradient is
 * spread in bfloat16. */
static void test_autocast__squares_and_sums(void **state)
{
    const setting *s = *state;
    me_test_events *events = s->events;
    me_engine *e = s->e;
    me_tensor *x = me_test_leaf(e, ME_SHAPE(2, 3));
    (void)me_test_events_take(events);

    const me_autocast_state outer = me_autocast_enter(e, bfloat16);
    me_tensor *squares = me_square(e, x);
    EXPECT_EVENTS(events, "+24 +24");
    me_drop(e, squares);
    EXPECT_EVENTS(events, "-24 -24");
    me_tensor *sum = me_sum(e, x);
    EXPECT_EVENTS(events, "+4");
    me_autocast_exit(e, outer);
    assert_string_equal(test_backward(events, sum), "+12");
}

/* Two types of 16 and 32 bits: the wider; a number widens nothing. */
static void test_autocast__sums_of_two_types(void **state)
{
    const setting *s = *state;
    me_test_events *events = s->events;
    me_engine *e = s->e;
    me_tensor *half = me_test_leaf(e, ME_SHAPE(2, 3));
    me_tensor *whole = leaf(e, ME_SHAPE(2, 3));
    me_tensor *number = leaf(e, ME_SCALAR);
    (void)me_test_events_take(events);

    me_tensor *sum = me_add(e, half, whole);
    EXPECT_EVENTS(events, "+24");
    /* the first operand's gradient is cast, the second's is taken over, and
     * copied, for the caller holds it */
    assert_string_equal(test_backward(events, sum), "+12 +24");
    (void)me_mul(e, half, number);
    EXPECT_EVENTS(events, "+12");
}

/** Two products: (2, 4) to (2, 8) to (2, 4). */
typedef struct mlp {
    me_tensor *up;
    me_tensor *down;
} mlp;

static me_tensor *run(void *self, me_engine *e, me_tensor *x)
{
    const mlp *m = self;
    const me_frame frame = me_enter(e);
    me_tensor *h = me_functional_linear(e, x, m->up, NULL);
    me_tensor *a = me_silu(e, h);
    return me_leave(e, frame, me_functional_linear(e, a, m->down, NULL));
}

/* Weights of 64 bytes in bfloat16, 128 in float32; h and a are 32. What runs
 * again is cast again, under a context of its own, which ends with it. */
static void test_autocast__recomputation(void **state)
{
    const setting *s = *state;
    me_test_events *events = s->events;
    me_engine *e = s->e;
    mlp m = {parameter(e, ME_SHAPE(8, 4)), parameter(e, ME_SHAPE(4, 8))};
    me_tensor *x = me_test_leaf(e, ME_SHAPE(2, 4));
    const me_region_function function = {.run = run, .self = &m};
    (void)me_test_events_take(events);

    const me_autocast_state outer = me_autocast_enter(e, bfloat16);
    me_tensor *y = me_region_forward(e, &function, x);
    EXPECT_EVENTS(events, "+64 +32 +32 +64 +16 -32 -32");
    me_autocast_exit(e, outer);
    EXPECT_EVENTS(events, "-64 -64"); /* holders are all that was saved */
    assert_string_equal(
        test_backward(events, y),
        /* again, up to the second product's inputs; its gradients */
        "+64 +32 +32 +64 +64 +32 -32 -64 +128 -64 "
        /* silu's, the first product's */
        "+32 -32 -32 +64 +16 -64 -32 +128 -64");
    assert_false(me_autocast_now(e).is_enabled);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        AUTOCAST_TEST(test_autocast__linear_casts_from_the_last_to_the_first),
        AUTOCAST_TEST(test_autocast__keeps_casts_of_parameters),
        AUTOCAST_TEST(test_autocast__keeps_casts_of_leaves),
        AUTOCAST_TEST(test_autocast__kept_casts_have_a_history),
        AUTOCAST_TEST(test_autocast__casts_of_dtensors),
        AUTOCAST_TEST(test_autocast__casts_nothing_by_itself),
        AUTOCAST_TEST(test_autocast__layer_norm_runs_in_float32),
        AUTOCAST_TEST(test_autocast__rms_norm_of_two_types),
        AUTOCAST_TEST(test_autocast__cross_entropy),
        AUTOCAST_TEST(test_autocast__squares_and_sums),
        AUTOCAST_TEST(test_autocast__sums_of_two_types),
        AUTOCAST_TEST(test_autocast__recomputation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
