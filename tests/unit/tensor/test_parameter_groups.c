/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/elementwise.h"
#include "ops/functional_linear.h"
#include "ops/reduce.h"
#include "support/events.h"
#include "support/test.h"
#include "tensor/backward_groups.h"

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
    const me_context before = *me_context_now(e);
    me_context autograd = before;
    autograd.thread = ME_THREAD_AUTOGRAD;
    me_context_restore(e, autograd);
    me_tensor *warm = me_functional_linear(e, l.gradient, l.weights[A], NULL);
    me_context_restore(e, before);
    me_drop(e, warm);
    (void)me_test_events_take(events);
    return l;
}

static void test_parameter_groups__halves_run_what_they_need(void **state)
{
    layer l = make_layer(*state);
    me_parameter_groups groups;
    const me_stage_weights weights = {.count = WEIGHTS, .tensors = l.weights};
    me_backward_input(l.e, &(me_backward_way){l.y, l.gradient, l.x}, &weights,
                      &groups);
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

    me_backward_weight(l.e, &weights, &groups);
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
    const me_stage_weights weights = {.count = WEIGHTS, .tensors = l.weights};
    me_backward_input(l.e, &(me_backward_way){l.y, l.gradient, l.x}, &weights,
                      &groups);
    me_backward_weight(l.e, &weights, &groups);
    me_leave(l.e, l.frame, NULL);

    layer again = make_layer(*state);
    for (int i = 0; i < WEIGHTS; i++) {
        again.weights[i]->grad =
            me_retain(me_empty_like(again.e, "grad", again.weights[i]));
    }
    const me_stage_weights second = {.count = WEIGHTS,
                                     .tensors = again.weights};
    me_backward_input(again.e,
                      &(me_backward_way){again.y, again.gradient, again.x},
                      &second, &groups);
    (void)me_test_events_take(again.events);
    me_backward_weight(again.e, &second, &groups);
    EXPECT_EVENTS(again.events,
                  "+40 +30 -40 +24 -40 +30 +6 -40 -30 -40 -24 -30 -6");
    me_leave(again.e, again.frame, NULL);
}

static void count_run(void *self)
{
    int *runs = self;
    (*runs)++;
}

/* A run for the input, and one for each group. */
static void test_parameter_groups__tell_the_end_of_each_run(void **state)
{
    layer l = make_layer(*state);
    int runs = 0;
    const me_stage_weights weights = {
        .count = WEIGHTS, .tensors = l.weights, .after = {count_run, &runs}};
    me_parameter_groups groups;
    me_backward_input(l.e, &(me_backward_way){l.y, l.gradient, l.x}, &weights,
                      &groups);
    assert_int_equal(runs, 1);
    me_backward_weight(l.e, &weights, &groups);
    assert_int_equal(runs, 3);
    me_leave(l.e, l.frame, NULL);
}

/** What a hook of fully_shard does at the end of a run: it takes gradients. */
static void take_gradient(void *self)
{
    layer *l = self;
    me_clear(l->e, &l->weights[B]->grad);
}

/* weight_grads: the gradients that were there stay until the half is over. */
static void test_parameter_groups__hold_the_gradients_before(void **state)
{
    layer l = make_layer(*state);
    const me_frame frame = me_enter(l.e);
    l.weights[B]->grad = me_retain(me_empty_like(l.e, "grad", l.weights[B]));
    me_leave(l.e, frame, NULL);
    const me_stage_weights weights = {
        .count = WEIGHTS, .tensors = l.weights, .after = {take_gradient, &l}};
    me_parameter_groups groups;
    const me_stage_weights plain = {.count = WEIGHTS, .tensors = l.weights};
    me_backward_input(l.e, &(me_backward_way){l.y, l.gradient, l.x}, &plain,
                      &groups);
    (void)me_test_events_take(l.events);
    me_backward_weight(l.e, &weights, &groups);
    /* As in the first test; the old gradient of b, 30 bytes, is taken after the
     * first run and goes last. */
    EXPECT_EVENTS(l.events, "+40 +30 -40 +24 -40 +30 +6 -40 -40 -24 -30");
    me_leave(l.e, l.frame, NULL);
}

static void test_parameter_groups__a_half_can_be_left_out(void **state)
{
    layer l = make_layer(*state);
    me_parameter_groups groups;
    const me_stage_weights weights = {.count = WEIGHTS, .tensors = l.weights};
    me_backward_input(l.e, &(me_backward_way){l.y, l.gradient, l.x}, &weights,
                      &groups);
    me_parameter_groups_fini(l.e, &groups);
    assert_int_equal(groups.count, 0);
    me_leave(l.e, l.frame, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(test_parameter_groups__halves_run_what_they_need),
        ENGINE_TEST(test_parameter_groups__second_gradients_are_added),
        ENGINE_TEST(test_parameter_groups__tell_the_end_of_each_run),
        ENGINE_TEST(test_parameter_groups__hold_the_gradients_before),
        ENGINE_TEST(test_parameter_groups__a_half_can_be_left_out),
    };
    return cmocka_run_group_tests_name("parameter_groups", tests, NULL, NULL);
}
