/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/reduce.h"
#include "ops/rotary.h"
#include "support/backward.h"
#include "support/test.h"

/* b = 1, s = 4: queries of two heads of 2 are 16 elements, keys of one head 8.
 * In bfloat16 32 and 16 bytes, in float32 64 and 32. */
static void test_rotary__both_in_float32_and_back(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *q = me_test_leaf(e, ME_SHAPE(1, 4, 2, 2));
    me_tensor *k = me_test_leaf(e, ME_SHAPE(1, 4, 1, 2));
    me_tensor *out[2] = {NULL, NULL};
    (void)me_test_events_take(events);
    me_apply_rotary_emb(e, (me_tensor *[]){q, k}, out);
    /* casts, products, casts back; then what the function named: nothing of it
     * is saved, since freqs_cis needs no gradient */
    EXPECT_EVENTS(events, "+64 +32 +64 +32 +32 +16 -64 -32 -64 -32");
    /* the cast's gradient; freqs_cis made conjugate, one complex64 for each of
     * 4 positions and 1 pair: 4 · 8 = 32; the product's, and the cast's */
    assert_string_equal(test_backward(events, out[0]),
                        "+64 +32 +64 -32 -64 +32 -64");
    me_leave(e, frame, NULL);
    assert_int_equal(events->live, 0);
}

/* x · rsqrt(mean(x²) + eps) of (2, 4) in float32, 32 bytes and 8 a column:
 * what torchtitan's RMSNorm of 2024 is made of. */
static void test_rotary__mean_of_the_last_dimension(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_test_leaf(e, ME_SHAPE(2, 4)); /* 16 bytes */
    (void)me_test_events_take(events);
    me_tensor *mean = me_mean_last(e, x);
    EXPECT_EVENTS(events, "+4");
    assert_int_equal(mean->shape.ndim, 2);
    assert_int_equal(me_dim(mean, -1), 1);
    assert_string_equal(test_backward(events, mean), "+16");
    me_leave(e, frame, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(test_rotary__both_in_float32_and_back),
        ENGINE_TEST(test_rotary__mean_of_the_last_dimension),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
