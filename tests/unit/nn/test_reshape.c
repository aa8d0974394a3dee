/* SPDX-License-Identifier: BSD-3-Clause */
/* Views and reshapes of a forward. */
#include "nn/torch/reshape.h"
#include "ops/view.h"
#include "support/events.h"
#include "support/test.h"

/* Nothing is allocated where strides show the same memory. */
static void test_reshape__copies_what_no_view_shows(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;
    const me_expression view = {
        .kind = ME_EXPRESSION_VIEW, .index = 2, .sizes = {-1, 2}};
    const me_expression reshape = {
        .kind = ME_EXPRESSION_RESHAPE, .index = 1, .sizes = {-1}};
    const me_frame frame = me_enter(e);
    me_tensor *x = me_test_leaf(e, ME_SHAPE(4, 6));
    me_tensor *turned = me_transpose(e, x, 0, 1);
    (void)me_test_events_take(events);
    const me_tensor *y = me_reshape_written(e, &view, x);
    assert_int_equal(me_dim(y, 0), 12);
    EXPECT_EVENTS(events, "");
    y = me_reshape_written(e, &reshape, turned);
    assert_int_equal(me_dim(y, 0), 24);
    EXPECT_EVENTS(events, "+48");
    me_leave(e, frame, NULL);
}

static void test_reshape__refuses_a_view_that_would_copy(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;
    me_diag diag = {.status = ME_OK};
    const me_expression view = {
        .kind = ME_EXPRESSION_VIEW, .index = 2, .sizes = {3, -1}};
    const me_frame frame = me_enter(e);
    me_tensor *turned = me_transpose(e, me_test_leaf(e, ME_SHAPE(4, 6)), 0, 1);
    (void)me_reshape_written(e, &view, turned);
    assert_int_equal(me_engine_status(e, &diag), ME_ERR_CONFIG);
    assert_string_equal(diag.text,
                        "(6, 4).view(3, -1): the strides allow no such view; "
                        "reshape() copies");
    me_leave(e, frame, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(test_reshape__copies_what_no_view_shows),
        ENGINE_TEST(test_reshape__refuses_a_view_that_would_copy),
    };
    return cmocka_run_group_tests_name("reshape", tests, NULL, NULL);
}
