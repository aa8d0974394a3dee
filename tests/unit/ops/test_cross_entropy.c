/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "support/backward.h"
#include "support/test.h"

/* Two rows of three classes in bfloat16, 12 bytes; in float32 24. */
static void test_cross_entropy__forward_and_backward(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *logits = me_test_leaf(e, ME_SHAPE(1, 2, 3));
    me_tensor *target = test_tensor(e, ME_DTYPE_INT64, ME_SHAPE(1, 2));
    me_tensor *x = me_cast(e, logits, ME_DTYPE_FLOAT32);
    (void)me_test_events_take(events);
    me_tensor *loss = me_cross_entropy(e, x, target);
    /* log-softmax, which stays; the loss and the sum of the weights */
    EXPECT_EVENTS(events, "+24 +4 +4");
    me_drop(e, x);
    EXPECT_EVENTS(events, "-24");
    /* the loss's gradient, the sum of the weights goes; the softmax's, the
     * loss's goes and then the result; the cast's, the softmax's goes */
    assert_string_equal(test_backward(events, loss),
                        "+24 -4 +24 -24 -24 +12 -24");
    assert_non_null(logits->grad);
    me_leave(e, frame, NULL);
    assert_int_equal(events->live, 0);
}

static void test_cross_entropy__wants_a_target_a_row(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;
    me_diag diag = {0};

    const me_frame frame = me_enter(e);
    me_tensor *x = me_test_leaf(e, ME_SHAPE(2, 3));
    me_tensor *target = test_tensor(e, ME_DTYPE_INT64, ME_SHAPE(3));
    (void)me_cross_entropy(e, x, target);
    assert_int_equal(me_engine_status(e, &diag), ME_ERR_CONFIG);
    assert_string_equal(diag.text, "cross_entropy: 2 rows need as many int64 "
                                   "targets, not 3 of int64");
    me_leave(e, frame, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(test_cross_entropy__forward_and_backward),
        ENGINE_TEST(test_cross_entropy__wants_a_target_a_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
