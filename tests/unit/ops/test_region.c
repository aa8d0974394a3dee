/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/elementwise.h"
#include "ops/functional_linear.h"
#include "support/backward.h"
#include "support/test.h"
#include "tensor/backward_groups.h"
#include "tensor/region.h"

/** Two products with an activation between: (2, 4) to (2, 8) to (2, 4). */
typedef struct mlp {
    me_tensor *up;   /**< (8, 4), 64 bytes */
    me_tensor *down; /**< (4, 8), 64 bytes */
} mlp;

static me_tensor *run(void *self, me_engine *e, me_tensor *x)
{
    const mlp *m = self;
    const me_frame frame = me_enter(e);
    me_tensor *h = me_functional_linear(e, x, m->up, NULL);
    me_tensor *a = me_silu(e, h);
    return me_leave(e, frame, me_functional_linear(e, a, m->down, NULL));
}

/** Both threads' cuBLAS workspaces are there, so that they do not show. */
static mlp make(me_engine *e)
{
    mlp m = {me_test_leaf(e, ME_SHAPE(8, 4)), me_test_leaf(e, ME_SHAPE(4, 8))};
    const me_frame frame = me_enter(e);
    me_tensor *x = me_test_leaf(e, ME_SHAPE(2, 4));
    me_tensor *y = run(&m, e, x);
    me_backward(e, y, me_empty_like(e, "gradient", y));
    me_clear(e, &m.up->grad);
    me_clear(e, &m.down->grad);
    me_leave(e, frame, NULL);
    return m;
}

static const char *backward_of(me_test_events *events, mlp *m,
                               const me_region_function *function,
                               const char *forward)
{
    me_engine *e = events->e;
    me_tensor *x = me_test_leaf(e, ME_SHAPE(2, 4)); /* 16 bytes */
    (void)m;
    (void)me_test_events_take(events);
    me_tensor *y = me_region_forward(e, function, x);
    EXPECT_EVENTS(events, forward);
    return test_backward(events, y);
}

/* h and a are 32 bytes, y is 16. */
static void test_region__plain(void **state)
{
    me_test_events *events = *state;
    const me_frame frame = me_enter(events->e);
    mlp m = make(events->e);
    const me_region_function function = {.run = run, .self = &m};
    /* h and a again, and no second product: its input is there. h is given
     * up where silu has used it, a where the product has */
    assert_string_equal(
        backward_of(events, &m, &function, "+32 +32 +16 -32 -32"),
        "+32 +32 +64 +32 -32 +32 -32 -32 +64 +16 -32");
    me_leave(events->e, frame, NULL);
}

/* The first product's result stays, the second's is made again if at all. */
static void test_region__selective_keeps_every_other_product(void **state)
{
    me_test_events *events = *state;
    const me_frame frame = me_enter(events->e);
    mlp m = make(events->e);
    const me_region_function function = {
        .run = run, .self = &m, .is_selective = true};
    /* only a goes in the forward, and only a is made again */
    assert_string_equal(backward_of(events, &m, &function, "+32 +32 +16 -32"),
                        "+32 +64 +32 -32 +32 -32 -32 +64 +16 -32");
    me_leave(events->e, frame, NULL);
}

/* early_stop=False: the second product runs again, for nothing. */
static void test_region__to_its_end(void **state)
{
    me_test_events *events = *state;
    const me_frame frame = me_enter(events->e);
    mlp m = make(events->e);
    const me_region_function function = {
        .run = run, .self = &m, .runs_to_end = true};
    assert_string_equal(
        backward_of(events, &m, &function, "+32 +32 +16 -32 -32"),
        "+32 +32 +16 -16 +64 +32 -32 +32 -32 -32 +64 +16 -32");
    me_leave(events->e, frame, NULL);
}

/* A backward in two halves: the region runs again for the half of the input and
 * for each weight, and what a weight's run did not ask for stays with its
 * holders. */
static void test_region__runs_for_each_weight(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;
    const me_frame frame = me_enter(e);
    mlp m = make(e);
    me_tensor *weights[] = {m.up, m.down};
    const me_stage_weights both = {.count = 2, .tensors = weights};
    me_tensor *x = me_test_leaf(e, ME_SHAPE(2, 4));
    me_tensor *y =
        me_region_forward(e, &(me_region_function){.run = run, .self = &m}, x);
    me_tensor *gradient = me_empty_like(e, "gradient", y);
    (void)me_test_events_take(events);
    me_parameter_groups groups;
    me_backward_input(e, &(me_backward_way){y, gradient, x}, &both, &groups);
    /* h and a; the gradients of a, of h, which stays for up, and of x */
    EXPECT_EVENTS(events, "+32 +32 +32 -32 +32 -32 -32 +16");
    assert_int_equal(groups.count, 2);
    me_backward_weight(e, &both, &groups);
    /* Up: a copy of h's gradient, h and a, which nobody takes, and its own
     * gradient. Down: h's gradient goes, a copy of y's comes and the first copy
     * goes; h and a once more; its gradient; this a, and that of before. Then
     * the graph with both h, and the copy. */
    EXPECT_EVENTS(events, "+32 +32 +32 +64 -32 +16 -32 "
                          "+32 +32 +64 -32 -32 -32 -32 -16");
    me_leave(e, frame, NULL);
}

/* A region in another, whose operations before and after it save as well. */
static me_tensor *run_around(void *self, me_engine *e, me_tensor *x)
{
    const me_region_function inner = {.run = run, .self = self};
    const me_frame frame = me_enter(e);
    me_tensor *a = me_silu(e, x);
    me_tensor *b = me_region_forward(e, &inner, a);
    return me_leave(e, frame, me_silu(e, b));
}

/* a and b are 16 bytes, as x. */
static void test_region__nested(void **state)
{
    me_test_events *events = *state;
    const me_frame frame = me_enter(events->e);
    mlp m = make(events->e);
    const me_region_function function = {.run = run_around, .self = &m};
    assert_string_equal(
        backward_of(events, &m, &function,
                    "+16 +32 +32 +16 -32 -32 +16 -16 -16"),
        /* The last silu wants b: the outer region runs again, the inner one as
         * in a forward, until b is saved; a stays as well. */
        "+16 +32 +32 +16 -32 -32 "
        "+16 -16 "     /* the last silu's gradient, b has been used */
        "+32 +32 "     /* the second product wants its input: h and it again */
        "+64 +32 -32 " /* its gradients; the input has been used */
        "-16 "         /* gradient of b */
        "+32 -32 -32 " /* silu's: h, and what came in */
        "+64 +16 -16 " /* the first product's; a has been used */
        "-32 "
        "+16 -16"); /* the first silu's */
    me_leave(events->e, frame, NULL);
}

static me_tensor *negate(void *self, me_engine *e, me_tensor *x)
{
    (void)self;
    return me_neg(e, x);
}

static me_tensor *run_around_negation(void *self, me_engine *e, me_tensor *x)
{
    const me_region_function inner = {.run = negate, .self = self};
    const me_frame frame = me_enter(e);
    me_tensor *a = me_neg(e, x);
    me_tensor *b = me_region_forward(e, &inner, a);
    return me_leave(e, frame, me_silu(e, b));
}

/* The inner region saves nothing, so that its input, a, is nobody's. */
static void test_region__given_up_before_it_runs_again(void **state)
{
    me_test_events *events = *state;
    const me_frame frame = me_enter(events->e);
    mlp m = make(events->e);
    const me_region_function function = {.run = run_around_negation,
                                         .self = &m};
    /* a and b again, and a goes with the function; then a gradient each, for
     * which b and the gradient before go */
    assert_string_equal(
        backward_of(events, &m, &function, "+16 +16 +16 -16 -16"),
        "+16 +16 -16 +16 -16 +16 -16 +16 -16");
    me_leave(events->e, frame, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(test_region__plain),
        ENGINE_TEST(test_region__selective_keeps_every_other_product),
        ENGINE_TEST(test_region__to_its_end),
        ENGINE_TEST(test_region__runs_for_each_weight),
        ENGINE_TEST(test_region__nested),
        ENGINE_TEST(test_region__given_up_before_it_runs_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
