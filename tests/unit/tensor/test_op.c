/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/events.h"
#include "support/test.h"
#include "tensor/hooks.h"
#include "tensor/op.h"
#include "tensor/tensor.h"

/* Tensors are (4, 3), 24 bytes in bfloat16 and 48 in float32. */

/** What an operation has said. */
typedef struct heard {
    me_launch launch;
    const char *name;
    uint32_t queries;
} heard;

static void on_launch(void *self, const me_launch *launch)
{
    ((heard *)self)->launch = *launch;
}

static void on_operation(void *self, const me_operation *operation)
{
    ((heard *)self)->name = operation->name;
}

static void on_query(void *self, const me_tensor *x)
{
    (void)x;
    ((heard *)self)->queries++;
}

static void listen(me_engine *e, heard *h)
{
    me_engine_listen(e, (me_launch_listener){.on_launch = on_launch,
                                             .self = h,
                                             .iteration = -1});
    me_engine_hook(e, (me_hooks){.operation = on_operation,
                                 .device_query = on_query,
                                 .self = h});
}

static const me_op scale_op = {"scale", "scale.default", .cost = ME_POINTWISE};
static const me_op sum_op = {"sum", .cost = ME_COST(REDUCE, 1, 1, 0)};
static const me_op view_op = {.dispatcher = "view.default", .is_view = true};

static void test_op__one_call_allocates_launches_and_tells(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;
    heard h = {.name = NULL};
    listen(e, &h);
    const me_frame frame = me_enter(e);
    me_tensor *x = me_test_leaf(e, ME_SHAPE(4, 3));
    (void)me_test_events_take(events);
    (void)me_kernel_like(e, &scale_op, ME_TENSORS(x));
    EXPECT_EVENTS(events, "+24");
    assert_string_equal(h.name, "scale.default");
    assert_int_equal(h.launch.kernel, ME_KERNEL_ELEMENTWISE);
    assert_int_equal(h.launch.flops, 12);
    assert_int_equal(h.launch.bytes, 24 + 24);
    me_leave(e, frame, NULL);
    (void)me_test_events_take(events);
}

static void test_op__another_type_is_a_cast(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;
    heard h = {.name = NULL};
    listen(e, &h);
    const me_frame frame = me_enter(e);
    me_tensor *x = me_test_leaf(e, ME_SHAPE(4, 3));
    (void)me_test_events_take(events);
    (void)me_kernel_as(e, &scale_op, ME_TENSORS(x), ME_DTYPE_FLOAT32);
    EXPECT_EVENTS(events, "+48");
    assert_int_equal(h.launch.kernel, ME_KERNEL_CAST);
    assert_int_equal(h.launch.bytes, 24 + 48);
    me_leave(e, frame, NULL);
    (void)me_test_events_take(events);
}

/* Of a reduction the arguments count, and nobody is told without a name. */
static void test_op__reductions_count_what_they_read(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;
    heard h = {.name = NULL};
    listen(e, &h);
    const me_frame frame = me_enter(e);
    me_tensor *x = me_test_leaf(e, ME_SHAPE(4, 3));
    (void)me_kernel(e, &sum_op, ME_TENSORS(x), ME_DTYPE_BFLOAT16, ME_SCALAR);
    assert_null(h.name);
    assert_int_equal(h.launch.kernel, ME_KERNEL_REDUCE);
    assert_int_equal(h.launch.flops, 12);
    assert_int_equal(h.launch.bytes, 24);
    me_leave(e, frame, NULL);
    (void)me_test_events_take(events);
}

static void test_op__views_ask_for_the_device_of_their_base(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;
    heard h = {.name = NULL};
    listen(e, &h);
    const me_frame frame = me_enter(e);
    me_tensor *x = me_test_leaf(e, ME_SHAPE(4, 3));
    me_op_tell(e, &view_op, ME_TENSORS(x), ME_TENSORS(x));
    assert_string_equal(h.name, "view.default");
    assert_int_equal(h.queries, 1);
    assert_int_equal(h.launch.bytes, 0);
    me_leave(e, frame, NULL);
    (void)me_test_events_take(events);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(test_op__one_call_allocates_launches_and_tells),
        ENGINE_TEST(test_op__another_type_is_a_cast),
        ENGINE_TEST(test_op__reductions_count_what_they_read),
        ENGINE_TEST(test_op__views_ask_for_the_device_of_their_base),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
