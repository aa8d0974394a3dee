/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/elementwise.h"
#include "ops/functional_linear.h"
#include "ops/reduce.h"
#include "support/events.h"
#include "support/test.h"
#include "tensor/parameter_groups.h"

/* y = x + gelu(x · aᵀ) · bᵀ + bias in bfloat16: x and y are (4, 3) of 24
 * bytes, the inner tensor (4, 5) of 40, the weights (5, 3) and (3, 5) of 30,
 * the bias of 6. */

enum {
    A,
    B,
    BIAS,
    WEIGHTS
};

typedef struct layer {
    me_test_events *events;
    me_engine *e;
    me_frame frame;
    me_tensor *x;
    me_tensor *weights[WEIGHTS];
    me_tensor *y;
    me_tensor *gradient;
} layer;

/** Forward; the products' workspaces exist afterwards on both threads. */
static layer make_layer(me_test_events *events)
{
    me_engine *e = events->e;
    layer l = {.events = events, .e = e, .frame = me_enter(e)};
    l.x = me_test_leaf(e, ME_SHAPE(4, 3));
    l.weights[A] = me_test_leaf(e, ME_SHAPE(5, 3));
    l.weights[B] = me_test_leaf(e, ME_SHAPE(3, 5));
    l.weights[BIAS] = me_test_leaf(e, ME_SHAPE(3));
    me_tensor *u = me_functional_linear(e, l.x, l.weights[A], NULL);
    me_tensor *g = me_gelu(e, u);
    me_drop(e, u);
    me_tensor *v = me_functional_linear(e, g, l.weights[B], l.weights[BIAS]);
    me_drop(e, g);
    l.y = me_add(e, l.x, v);
    me_drop(e, v);
    l.gradient = me_empty_like(e, "gradient", l.y);
    const int thread = me_thread_set(e, ME_THREAD_AUTOGRAD);
    me_tensor *warm = me_functional_linear(e, l.gradient, l.weights[A], NULL);
    me_thread_set(e, thread);
    me_drop(e, warm);
    (void)me_test_events_take(events);
    return l;
}

static void test_parameter_groups__halves_run_what_they_need(void **state)
{
    layer l = make_layer(*state);
    me_parameter_groups groups;
    me_backward_input(l.e, &(me_backward_way){l.y, l.gradient, l.x}, WEIGHTS,
                      l.weights, &groups);
    /* Gradients of g, of u, and of x, which cannot be added to the gradient
     * of y that the caller holds: a sum. That of g goes when gelu has run,
     * that of u stays for the weights. */
    EXPECT_EVENTS(l.events, "+40 +40 -40 +24 +24 -24");
    assert_int_equal(groups.count, 2);
    assert_int_equal(groups.groups[0].n_parameters, 1);
    assert_int_equal(groups.groups[1].n_parameters, 2);
    assert_ptr_equal(groups.groups[1].intermediates[0].gradient->storage,
                     l.gradient->storage);
    assert_non_null(l.x->grad);
    assert_null(l.weights[A]->grad);
    assert_null(l.y->grad_fn);

    me_backward_weight(l.e, l.weights, &groups);
    /* A copy of what was kept, and the gradient of a. Then, for b: its
     * gradient u's is let go of, the next copy, the first copy goes, gradients
     * of b and bias, and what the node kept of g; at the end u, for which
     * nobody ran, and the last copy. */
    EXPECT_EVENTS(l.events, "+40 +30 -40 +24 -40 +30 +6 -40 -40 -24");
    for (int i = 0; i < WEIGHTS; i++) {
        assert_non_null(l.weights[i]->grad);
    }
    me_leave(l.e, l.frame, NULL);
}

/* The second time gradients are added in place: new ones go when those of the
 * next group are there, the last ones at the end. */
static void test_parameter_groups__second_gradients_are_added(void **state)
{
    layer l = make_layer(*state);
    me_parameter_groups groups;
    me_backward_input(l.e, &(me_backward_way){l.y, l.gradient, l.x}, WEIGHTS,
                      l.weights, &groups);
    me_backward_weight(l.e, l.weights, &groups);
    me_leave(l.e, l.frame, NULL);

    layer again = make_layer(*state);
    for (int i = 0; i < WEIGHTS; i++) {
        again.weights[i]->grad =
            me_retain(me_empty_like(again.e, "grad", again.weights[i]));
    }
    me_backward_input(again.e,
                      &(me_backward_way){again.y, again.gradient, again.x},
                      WEIGHTS, again.weights, &groups);
    (void)me_test_events_take(again.events);
    me_backward_weight(again.e, again.weights, &groups);
    EXPECT_EVENTS(again.events,
                  "+40 +30 -40 +24 -40 +30 +6 -40 -30 -40 -24 -30 -6");
    me_leave(again.e, again.frame, NULL);
}

static void test_parameter_groups__a_half_can_be_left_out(void **state)
{
    layer l = make_layer(*state);
    me_parameter_groups groups;
    me_backward_input(l.e, &(me_backward_way){l.y, l.gradient, l.x}, WEIGHTS,
                      l.weights, &groups);
    me_parameter_groups_fini(l.e, &groups);
    assert_int_equal(groups.count, 0);
    me_leave(l.e, l.frame, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(test_parameter_groups__halves_run_what_they_need),
        ENGINE_TEST(test_parameter_groups__second_gradients_are_added),
        ENGINE_TEST(test_parameter_groups__a_half_can_be_left_out),
    };
    return cmocka_run_group_tests_name("parameter_groups", tests, NULL, NULL);
}
