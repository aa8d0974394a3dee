/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/flash_attention.h"
#include "ops/sdpa.h"
#include "ops/view.h"
#include "support/backward.h"
#include "support/test.h"

static const me_card hopper = {.multiprocessors = 132,
                               .threads_per_multiprocessor = 2048};

/* N key blocks, B blocks of queries, M = 264 slots; efficiency of k pieces is
 * (B k / M) / ceil(B k / M), the smallest k within 0.85 of the best. */
static void test_attention__key_splits(void **state)
{
    (void)state;

    static const struct {
        uint64_t batch, heads, queries, keys, head_size;
        uint64_t splits;
    } cases[] = {
        /* B = 512 of 264 slots: full already */
        {1, 16, 2048, 2048, 64, 1},
        /* N = 1: nothing to split */
        {1, 2, 4, 4, 8, 1},
        /* B = 128, N = 8: k = 1 gives 0.48, 2 gives 0.97, the best */
        {1, 4, 2048, 2048, 64, 2},
        /* B = 64, N = 8: 1: .24, 2: .48, 3: .73, 4: .97 */
        {1, 2, 2048, 2048, 64, 4},
        /* B = 8, N = 2: .03, .06 */
        {1, 1, 512, 512, 64, 2},
        /* head of 128: N = 16 instead of 8, B = 32; 8 pieces: .97 */
        {1, 1, 2048, 2048, 128, 8},
        /* B = 212 is over 0.8 of 264 */
        {1, 53, 256, 4096, 64, 1},
        {1, 52, 256, 4096, 64, 6}, /* B = 208, 1 to 4: .79, 6: .95, 16: .97 */
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(me_flash_key_splits(&hopper, cases[i].batch,
                                             cases[i].heads, cases[i].queries,
                                             cases[i].keys, cases[i].head_size),
                         cases[i].splits);
    }
}

/** (b, heads, s, d) of a leaf (s, b, heads, d). */
static me_tensor *heads(me_engine *e, uint64_t s, uint64_t b, uint64_t n,
                        uint64_t d)
{
    return me_permute(e, me_test_leaf(e, ME_SHAPE(s, b, n, d)),
                      (const int32_t[]){1, 2, 0, 3});
}

/* s = 4, b = 1, a = g = 2, d = 8: tensors of 64 elements, 128 bytes; the
 * log-sum-exps 4 · 2 · 4 = 32. */
static void test_attention__flash(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *q = heads(e, 4, 1, 2, 8);
    me_tensor *k = heads(e, 4, 1, 2, 8);
    me_tensor *v = heads(e, 4, 1, 2, 8);
    (void)me_test_events_take(events);
    me_tensor *y = me_sdpa_flash(e, q, k, v, 0);
    EXPECT_EVENTS(events, "+128 +32 +16 +8");
    assert_int_equal(y->strides[2], 16); /* the query's order (s, b, a, d) */
    /* dq, dk, dv; row sums and the accumulator of rows rounded up to 128 and
     * heads to 32: 4 · 2 · 128 and 4 · 2 · 128 · 32; then what was saved */
    assert_string_equal(test_backward(events, y),
                        "+128 +128 +128 +1024 +32768 -32768 -1024 -32 -16 -8");
    me_leave(e, frame, NULL);
    assert_int_equal(events->live, 0);
}

static void test_attention__flash_with_dropout(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *q = heads(e, 4, 1, 2, 8);
    (void)me_test_events_take(events);
    me_sdpa_flash(e, q, q, q, 0.1);
    EXPECT_EVENTS(events, "+128 +32 +16 +8 +16 -16");
    me_leave(e, frame, NULL);
}

/* Off the tape log-sum-exps, generator state and the unused one go. */
static void test_attention__flash_off_the_tape(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *q = heads(e, 4, 1, 2, 8);
    (void)me_test_events_take(events);
    me_grad_enable(e, false);
    me_sdpa_flash(e, q, q, q, 0);
    EXPECT_EVENTS(events, "+128 +32 +16 +8 -32 -16 -8");
    me_grad_enable(e, true);
    me_leave(e, frame, NULL);
}

/* One head, s = 512, d = 64: two pieces of the keys, 4 · 2 · 512 and
 * 4 · 2 · 512 · 64; the small one goes first. */
static void test_attention__flash_splits_keys(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *q = heads(e, 512, 1, 1, 64);
    (void)me_test_events_take(events);
    me_sdpa_flash(e, q, q, q, 0);
    EXPECT_EVENTS(events, "+65536 +2048 +4096 +262144 +16 +8 -4096 -262144");
    me_sdpa_flash(e, q, q, q, 0.1); /* never with dropout */
    EXPECT_EVENTS(events, "+65536 +2048 +16 +8 +16 -16");
    me_leave(e, frame, NULL);
}

/* g = 1 of a = 2: gradients of key and value once per query head, 128 bytes
 * each, besides their own 64. */
static void test_attention__flash_with_grouped_queries(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *q = heads(e, 4, 1, 2, 8);
    me_tensor *k = heads(e, 4, 1, 1, 8);
    me_tensor *v = heads(e, 4, 1, 1, 8);
    me_tensor *y = me_sdpa_flash(e, q, k, v, 0);
    assert_string_equal(test_backward(events, y),
                        "+128 +64 +64 +1024 +32768 +128 +128 -128 -128 "
                        "-32768 -1024 -32 -16 -8");
    me_leave(e, frame, NULL);
}

/* b = 2: (s, b, a, d) is not the kernel's (b, s, a, d), so gradient and
 * output are copied first, 256 bytes each, and go last. */
static void test_attention__flash_copies_for_several_sequences(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *q = heads(e, 4, 2, 2, 8);
    me_tensor *k = heads(e, 4, 2, 2, 8);
    me_tensor *v = heads(e, 4, 2, 2, 8);
    me_tensor *y = me_sdpa_flash(e, q, k, v, 0);
    assert_string_equal(test_backward(events, y),
                        "+256 +256 +256 +256 +256 +2048 +65536 -65536 -2048 "
                        "-256 -256 -64 -16 -8");
    me_leave(e, frame, NULL);
}

static void test_attention__repeated_heads(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_test_leaf(e, ME_SHAPE(4, 1, 2, 8));
    me_tensor *y = me_repeat_heads(e, x, 3);
    EXPECT_EVENTS(events, "+128 +384");
    assert_true(me_shape_equal(&y->shape, &ME_SHAPE(4, 1, 6, 8)));
    assert_string_equal(test_backward(events, y), "+128");
    me_leave(e, frame, NULL);
}

/* (1, 2, 64, 8) in bfloat16 through cuDNN: 2,048 bytes; in float32 through the
 * memory-efficient kernel: 4,096. Log-sum-exps, 512 bytes, are made for a
 * backward alone. */
static void test_attention__log_sum_exps_of_a_forward_alone(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *q = heads(e, 64, 1, 2, 8);
    me_tensor *wide = test_tensor(e, ME_DTYPE_FLOAT32, ME_SHAPE(1, 2, 64, 8));
    wide->requires_grad = true;
    (void)me_test_events_take(events);
    me_sdpa(e, q, q, q);
    EXPECT_EVENTS(events, "+8 +8 +2048 +512 +256 -256");
    me_sdpa(e, wide, wide, wide);
    EXPECT_EVENTS(events, "+4096 +512");
    me_grad_enable(e, false);
    me_sdpa(e, q, q, q);
    EXPECT_EVENTS(events, "+8 +8 +2048 +256 -256 -8 -8");
    me_sdpa(e, wide, wide, wide);
    EXPECT_EVENTS(events, "+4096");
    me_grad_enable(e, true);
    me_leave(e, frame, NULL);
    assert_int_equal(events->live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attention__key_splits),
        ENGINE_TEST(test_attention__flash),
        ENGINE_TEST(test_attention__log_sum_exps_of_a_forward_alone),
        ENGINE_TEST(test_attention__flash_with_dropout),
        ENGINE_TEST(test_attention__flash_off_the_tape),
        ENGINE_TEST(test_attention__flash_splits_keys),
        ENGINE_TEST(test_attention__flash_with_grouped_queries),
        ENGINE_TEST(test_attention__flash_copies_for_several_sequences),
        ENGINE_TEST(test_attention__repeated_heads),
    };
    return cmocka_run_group_tests_name("attention_op", tests, NULL, NULL);
}
