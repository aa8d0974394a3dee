/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/view.h"
#include "support/events.h"
#include "support/test.h"
#include "tensor/autograd.h"

#include <string.h>

/* Tensors are (4, 3) in bfloat16, 24 bytes, unless a test says otherwise. */

static me_tensor *leaf(me_engine *e)
{
    return me_test_leaf(e, ME_SHAPE(4, 3));
}

/** Backward from @p root with a gradient that the caller holds as well. */
static void backward(me_test_events *events, me_tensor *root)
{
    me_tensor *gradient = me_empty_like(events->e, "gradient", root);
    (void)me_test_events_take(events);
    me_backward(events->e, root, gradient);
}

static void test_autograd__nothing_is_recorded_without_need(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = leaf(e);
    me_tensor *plain = me_empty_like(e, "plain", x);
    assert_null(me_neg(e, plain)->grad_fn);
    const bool before = me_grad_enable(e, false);
    assert_true(before);
    assert_null(me_neg(e, x)->grad_fn);
    me_grad_enable(e, before);
    assert_non_null(me_neg(e, x)->grad_fn);
    me_leave(e, frame, NULL);
}

static void test_autograd__a_leaf_keeps_a_gradient_that_is_its_own(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = leaf(e);
    backward(events, me_neg(e, x));
    EXPECT_EVENTS(events, "+24"); /* made by the node, taken as it is */
    assert_non_null(x->grad);
    me_leave(e, frame, NULL);
    assert_int_equal(events->live, 0);
}

static void test_autograd__a_shared_gradient_is_cloned(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = leaf(e);
    me_tensor *y = leaf(e);
    backward(events, me_add(e, x, y)); /* hands its gradient on to both */
    EXPECT_EVENTS(events, "+24 +24");
    assert_ptr_not_equal(x->grad->storage, y->grad->storage);
    me_leave(e, frame, NULL);
}

/* A gradient in another order of memory does not fit a dense leaf. */
static void test_autograd__a_gradient_in_another_order_is_cloned(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = leaf(e);
    me_tensor *t = me_transpose(e, x, 0, 1); /* (3, 4), column-major */
    me_tensor *y = me_clone(e, t);
    me_tensor *gradient = me_empty(e, "g", ME_DTYPE_BFLOAT16, ME_SHAPE(3, 4));
    (void)me_test_events_take(events);
    me_backward(e, y, gradient);
    EXPECT_EVENTS(events, "+24");
    assert_int_equal(x->grad->strides[0], 3);
    me_leave(e, frame, NULL);
}

/* 24: gradient of the later neg, 24: of the earlier one, which is added into
 * the first and goes; then that of the shared one. */
static void test_autograd__second_gradients_are_added_in_place(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *a = me_neg(e, leaf(e));
    me_tensor *b = me_neg(e, a);
    me_tensor *c = me_neg(e, a);
    backward(events, me_add(e, b, c));
    EXPECT_EVENTS(events, "+24 +24 -24 +24 -24");
    me_leave(e, frame, NULL);
}

/* The caller holds the first gradient of a, so the sum is a new tensor:
 * neg's gradient, the sum, neg's goes; then the one of a, and the sum goes. */
static void test_autograd__a_held_gradient_is_not_written_to(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *a = me_neg(e, leaf(e));
    me_tensor *gradient = me_empty_like(e, "g", a);
    me_tensor *y = me_add(e, a, me_neg(e, a));
    (void)me_test_events_take(events);
    me_backward(e, y, gradient);
    EXPECT_EVENTS(events, "+24 +24 -24 +24 -24");
    assert_int_equal(gradient->storage->refs, 1);
    me_leave(e, frame, NULL);
}

/* The first gradient is a narrow view of the concatenation's: it is not
 * written to, so the sum is a new tensor. 48: gradient of the concatenation's
 * product, which its two views hold; 24: gradient of the other input, 24: the
 * sum, and both go; then the neg before. */
static void test_autograd__a_view_is_not_written_to(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *a = me_neg(e, leaf(e));
    me_tensor *b = me_neg(e, a);
    backward(events, me_neg(e, me_cat_last(e, a, b)));
    EXPECT_EVENTS(events, "+48 +24 +24 -48 -24 +24 -24");
    me_leave(e, frame, NULL);
}

static void test_autograd__gradients_are_summed_and_cast(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_neg(e, leaf(e));
    me_tensor *bias = me_test_leaf(e, ME_SHAPE(3));
    me_tensor *y = me_add(e, x, bias);
    backward(events, y);
    /* the bias's gradient (6) in the node; then neg's */
    EXPECT_EVENTS(events, "+6 +24");
    assert_int_equal(me_numel(bias->grad), 3);
    me_leave(e, frame, NULL);
}

static void keep_dtype(me_engine *e, me_node *node, me_tensor *const *gy,
                       me_tensor **gx)
{
    (void)e;
    (void)node;
    gx[0] = gy[0];
}

/* A custom function that hands a float32 gradient to a bfloat16 input. */
static void
test_autograd__the_engine_casts_what_a_function_did_not(void **state)
{
    static const me_op op = ME_NODE("Custom", keep_dtype);
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = leaf(e);
    me_node *node = me_record1(e, &op, x);
    me_tensor *y = me_empty(e, "y", ME_DTYPE_FLOAT32, ME_SHAPE(4, 3));
    backward(events, me_output(e, node, y));
    EXPECT_EVENTS(events, "+24");
    assert_int_equal(x->grad->dtype, ME_DTYPE_BFLOAT16);
    me_leave(e, frame, NULL);
}

/** A backward that frees nothing by itself and makes @p n bytes. */
static void saved_order(me_engine *e, me_node *node, me_tensor *const *gy,
                        me_tensor **gx)
{
    (void)gy;
    gx[0] = me_empty(e, "gx", ME_DTYPE_BFLOAT16, node->data.shape);
}

/* Incoming gradient first, then what was saved by rising index, whatever the
 * order in which it was saved. */
static void test_autograd__release_order_of_what_was_saved(void **state)
{
    static const me_op op = ME_NODE("Saver", saved_order);
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = leaf(e);
    me_node *node = me_record1(e, &op, x);
    node->data.shape = ME_SHAPE(4, 3);
    me_save(e, node, 2, me_scratch(e, "c", 3));
    me_save(e, node, 0, me_scratch(e, "a", 1));
    me_save(e, node, 1, me_scratch(e, "b", 2));
    const me_frame inner = me_enter(e);
    me_tensor *y = me_output(e, node, me_empty_like(e, "y", x));
    me_tensor *z = me_leave(e, inner, me_neg(e, y));
    me_leave(e, frame, z);
    EXPECT_EVENTS(events, "+24 +3 +1 +2 +24 +24 -24");
    const me_frame outer = me_enter(e);
    backward(events, z);
    EXPECT_EVENTS(events, "+24 +24 -24 -1 -2 -3");
    me_leave(e, outer, NULL);
    me_drop(e, z);
}

/* Later nodes run first, whichever input they belong to. */
static void for_nobody(me_engine *e, me_node *node, me_tensor *const *gy,
                       me_tensor **gx)
{
    (void)node;
    gx[0] = me_empty_like(e, "gradient", gy[0]);
    gx[1] = me_empty(e, "for_nobody", ME_DTYPE_UINT8, ME_SHAPE(7));
}

/* A function may return the gradient of an input that needs none: it goes when all
 * is over, after what was saved, which goes before it is handed on. */
static void test_autograd__a_gradient_for_nobody_dies_last(void **state)
{
    static const me_op op = ME_NODE("Generous", for_nobody);
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = leaf(e);
    me_tensor *plain = me_empty(e, "plain", ME_DTYPE_UINT8, ME_SHAPE(7));
    me_tensor *kept = me_empty(e, "kept", ME_DTYPE_UINT8, ME_SHAPE(5));
    me_node *node = me_record(e, &op, 2, (me_tensor *[]){x, plain});
    me_save(e, node, 0, kept);
    me_drop(e, kept);
    backward(events, me_output(e, node, me_empty_like(e, "y", x)));
    EXPECT_EVENTS(events, "+24 +7 -5 -7");
    me_leave(e, frame, NULL);
}

static void test_autograd__nodes_run_from_the_last_to_the_first(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_test_leaf(e, ME_SHAPE(1)); /* 2 bytes */
    me_tensor *y = me_test_leaf(e, ME_SHAPE(5)); /* 10 bytes */
    me_tensor *first = me_neg(e, y);
    me_tensor *second = me_neg(e, x);
    backward(events, me_cat_last(e, first, second));
    EXPECT_EVENTS(events, "+2 +10");
    me_leave(e, frame, NULL);
}

typedef struct order {
    char text[64];
} order;

static void note(void *self, me_engine *e, me_tensor *parameter)
{
    order *o = self;
    const size_t length = strlen(o->text);
    o->text[length] = (char)('a' + me_numel(parameter));
    o->text[length + 1] = '\0';
    me_clear(e, &parameter->grad);
}

static void same_to_all(me_engine *e, me_node *node, me_tensor *const *gy,
                        me_tensor **gx)
{
    (void)gy;
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        gx[i] = me_empty(e, "gx", ME_DTYPE_BFLOAT16,
                         node->edges[i].node->output_shape[0]);
    }
}

/* AccumulateGrad nodes are equal in the ready queue, and before all others.
 * They leave it as a std::priority_queue of libstdc++ gives equal elements:
 * pushed b, c, d, e they come out as b, d, c, e. */
static void test_autograd__ties_leave_the_heap_as_in_libstdcxx(void **state)
{
    static const me_op op = ME_NODE("Same", same_to_all);

    static const struct {
        uint32_t inputs;
        const char *left;
    } cases[] = {{1, "b"}, {2, "bc"}, {3, "bcd"}, {4, "bdce"}};

    me_test_events *events = *state;
    me_engine *e = events->e;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        order left = {""};
        me_tape_on_grad(e, note, &left);
        const me_frame frame = me_enter(e);
        me_tensor *inputs[ME_MAX_INPUTS] = {NULL};
        struct me_parameter *is_one = (void *)&left; /* only looked at */
        for (uint32_t k = 0; k < cases[i].inputs; k++) {
            inputs[k] = me_test_leaf(e, ME_SHAPE(k + 1));
            inputs[k]->parameter = is_one;
        }
        me_node *node = me_record(e, &op, cases[i].inputs, inputs);
        backward(events, me_output(e, node, me_scratch(e, "y", 1)));
        me_leave(e, frame, NULL);
        assert_string_equal(left.text, cases[i].left);
    }
    me_tape_on_grad(e, NULL, NULL);
}

/** Runs a backward of its own, as recomputation does. */
static void run_inside(me_engine *e, me_node *node, me_tensor *const *gy,
                       me_tensor **gx)
{
    me_tensor *x = me_detach(e, node->saved[0]);
    x->is_view = false;
    x->requires_grad = true;
    const bool grad = me_grad_enable(e, true);
    me_tensor *y = me_neg(e, x);
    me_grad_enable(e, grad);
    me_backward(e, y, gy[0]);
    gx[0] = x->grad;
}

static void test_autograd__a_node_may_run_a_backward(void **state)
{
    static const me_op op = ME_NODE("Reentrant", run_inside);
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = leaf(e);
    me_tensor *before = me_neg(e, x);
    me_node *node = me_record1(e, &op, before);
    me_save(e, node, 0, before);
    me_tensor *y = me_output(e, node, me_empty_like(e, "y", before));
    me_tensor *z = me_neg(e, y);
    backward(events, z);
    /* neg; y again, gradient of x inside, y goes; neg's goes; the first neg */
    EXPECT_EVENTS(events, "+24 +24 +24 -24 -24 +24 -24");
    assert_non_null(x->grad);
    me_leave(e, frame, NULL);
    assert_int_equal(events->live, 0);
}

/* A node keeps what it saved, not its output. */
static void test_autograd__a_graph_that_is_dropped_lets_go(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = leaf(e);
    me_tensor *a = me_neg(e, x);
    me_tensor *b = me_silu(e, a);
    me_tensor *c = me_neg(e, b);
    me_drop(e, a);
    EXPECT_EVENTS(events, "+24 +24 +24 +24"); /* silu saved a */
    me_drop(e, b);
    EXPECT_EVENTS(events, "-24"); /* nobody saved b */
    me_drop(e, c);
    EXPECT_EVENTS(events, "-24 -24"); /* c, and with its graph a */
    me_leave(e, frame, NULL);
    EXPECT_EVENTS(events, "-24");
}

/* As DDP's hooks do it: a held accumulator stands on the side stream, so
 * every gradient that reaches it is freed late. */
static void test_autograd__gradients_of_held_accumulators_are_late(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;
    order unused = {""};

    const me_frame frame = me_enter(e);
    me_tensor *weight = leaf(e);
    weight->parameter = (void *)&unused;
    me_node *held = me_accumulator_hold(e, weight);
    me_tape_on_grad(e, note, &unused);
    backward(events, me_neg(e, weight));
    EXPECT_EVENTS(events, "+24 ~24");
    assert_null(weight->grad);
    me_node_release(e, held);
    me_leave(e, frame, NULL);
}

static void count_side_stream(void *self, const me_event *event)
{
    uint64_t *bytes = self;
    if (event->kind == ME_EVENT_ALLOC && event->stream == ME_STREAM_SIDE) {
        *bytes += event->bytes;
    }
}

/* The first gradient is the caller's, so the sum is a new tensor, and the side
 * stream's, where the accumulator stands: its free is not late. */
static void test_autograd__sums_for_held_accumulators_are_theirs(void **state)
{
    static uint64_t side_bytes;
    me_test_events *events = *state;
    me_engine *e = events->e;
    order unused = {""};

    side_bytes = 0;
    me_engine_observe(
        e, (me_observer){.on_event = count_side_stream, .self = &side_bytes});
    const me_frame frame = me_enter(e);
    me_tensor *weight = leaf(e);
    weight->parameter = (void *)&unused;
    me_node *held = me_accumulator_hold(e, weight);
    me_tape_on_grad(e, note, &unused);
    me_tensor *gradient = me_empty_like(e, "g", weight);
    me_tensor *y = me_add(e, weight, me_neg(e, weight));
    (void)me_test_events_take(events);
    me_backward(e, y, gradient);
    /* neg's gradient, the sum; neg's goes, then the sum */
    EXPECT_EVENTS(events, "+24 +24 ~24 -24");
    assert_int_equal(side_bytes, 24);
    me_tape_on_grad(e, NULL, NULL);
    me_node_release(e, held);
    me_leave(e, frame, NULL);
}

static void test_autograd__scalar_loss_gives_an_expanded_gradient(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_neg(e, leaf(e));
    me_tensor *loss = me_sum(e, x);
    assert_int_equal(loss->shape.ndim, 0);
    backward(events, loss);
    /* the expanded gradient is a view of strides 0; neg's is dense */
    EXPECT_EVENTS(events, "+24");
    me_leave(e, frame, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(test_autograd__nothing_is_recorded_without_need),
        ENGINE_TEST(test_autograd__a_leaf_keeps_a_gradient_that_is_its_own),
        ENGINE_TEST(test_autograd__a_shared_gradient_is_cloned),
        ENGINE_TEST(test_autograd__a_gradient_in_another_order_is_cloned),
        ENGINE_TEST(test_autograd__second_gradients_are_added_in_place),
        ENGINE_TEST(test_autograd__a_held_gradient_is_not_written_to),
        ENGINE_TEST(test_autograd__a_view_is_not_written_to),
        ENGINE_TEST(test_autograd__gradients_are_summed_and_cast),
        ENGINE_TEST(test_autograd__the_engine_casts_what_a_function_did_not),
        ENGINE_TEST(test_autograd__release_order_of_what_was_saved),
        ENGINE_TEST(test_autograd__a_gradient_for_nobody_dies_last),
        ENGINE_TEST(test_autograd__nodes_run_from_the_last_to_the_first),
        ENGINE_TEST(test_autograd__ties_leave_the_heap_as_in_libstdcxx),
        ENGINE_TEST(test_autograd__a_node_may_run_a_backward),
        ENGINE_TEST(test_autograd__a_graph_that_is_dropped_lets_go),
        ENGINE_TEST(test_autograd__gradients_of_held_accumulators_are_late),
        ENGINE_TEST(test_autograd__sums_for_held_accumulators_are_theirs),
        ENGINE_TEST(test_autograd__scalar_loss_gives_an_expanded_gradient),
    };
    return cmocka_run_group_tests_name("autograd", tests, NULL, NULL);
}
