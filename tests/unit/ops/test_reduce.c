/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/reduce.h"
#include "support/events.h"
#include "support/test.h"

#include <inttypes.h>

static const me_card hopper = {.multiprocessors = 132,
                               .threads_per_multiprocessor = 2048};

/* What PyTorch asked for on an H200, and small cases that need nothing. */
static void test_reduce__scratch_as_measured(void **state)
{
    (void)state;

    static const struct {
        const char *what;
        me_reduction reduction;
        uint64_t staging;
        uint64_t semaphores;
    } cases[] = {
        {"bias gradient of 1024 over 2048 rows",
         {2048, 1024, true, 2, 4, false, false},
         16777216,
         32},
        {"of 4096", {2048, 4096, true, 2, 4, false, false}, 67108864, 128},
        {"of QKV, 3072", {2048, 3072, true, 2, 4, false, false}, 50331648, 96},
        {"norm of 110,633,984",
         {110633984, 1, false, 4, 4, false, false},
         3380,
         4},
        {"norm of 32,768,000",
         {32768000, 1, false, 4, 4, false, false},
         2112,
         4},
        {"norm of 1,048,576", {1048576, 1, false, 4, 4, false, false}, 512, 4},
        {"1024 over an expanded scalar",
         {131072, 1024, true, 4, 4, true, false},
         4194304,
         128},
        {"norm of 1024", {1024, 1, false, 4, 4, false, false}, 0, 0},
        {"bias gradient of 3 over 4 rows",
         {4, 3, true, 2, 4, false, false},
         0,
         0},
        {"nothing", {0, 1, false, 4, 4, false, false}, 0, 0},
        {"nothing into nothing", {1, 0, false, 4, 4, false, false}, 0, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const me_reduction_scratch scratch =
            me_reduction_scratch_of(&hopper, &cases[i].reduction);
        if (scratch.staging_bytes != cases[i].staging ||
            scratch.semaphore_bytes != cases[i].semaphores) {
            fail_msg("%s: %" PRIu64 " and %" PRIu64, cases[i].what,
                     scratch.staging_bytes, scratch.semaphore_bytes);
        }
    }
}

/* The gradient of a convolution's bias, in float32 and in bfloat16, on an H200. */
static void test_reduce__scratch_of_a_convolutions_bias(void **state)
{
    (void)state;

    static const struct {
        uint64_t images;
        uint64_t channels;
        uint64_t points;
        uint64_t staging;
        uint64_t semaphores;
    } cases[] = {
        {16, 32, 15376, 2176, 128},   {16, 64, 3364, 0, 0},
        {16, 128, 729, 0, 0},         {16, 256, 625, 0, 0},
        {16, 64, 12544, 2304, 256},   {16, 64, 3136, 0, 0},
        {16, 128, 3136, 0, 0},        {16, 256, 196, 0, 0},
        {16, 64, 50176, 2304, 256},   {32, 32, 15376, 2176, 128},
        {32, 64, 3364, 0, 0},         {32, 128, 729, 0, 0},
        {32, 256, 625, 0, 0},         {32, 64, 12544, 2304, 256},
        {32, 64, 3136, 0, 0},         {32, 128, 3136, 0, 0},
        {32, 256, 196, 0, 0},         {32, 64, 50176, 3328, 256},
        {256, 32, 15376, 3968, 128},  {256, 64, 3364, 2304, 256},
        {256, 128, 729, 2560, 512},   {256, 256, 625, 3072, 1024},
        {256, 64, 12544, 6400, 256},  {256, 64, 3136, 2304, 256},
        {256, 128, 3136, 3584, 512},  {256, 256, 196, 0, 0},
        {256, 64, 50176, 25088, 256},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (uint64_t bytes = 2; bytes <= 4; bytes += 2) {
            const me_reduction reduction = {.inputs = cases[i].images *
                                                      cases[i].points,
                                            .outputs = cases[i].channels,
                                            .element_bytes = bytes,
                                            .accumulator_bytes = 4};
            const me_reduction_scratch scratch =
                me_reduction_scratch_of(&hopper, &reduction);
            assert_int_equal(scratch.staging_bytes, cases[i].staging);
            assert_int_equal(scratch.semaphore_bytes, cases[i].semaphores);
        }
    }
}

/* A bias gradient's buffer is 8 · outputs · 2048 bytes at 2048 rows. */
static void test_reduce__buffer_of_a_bias_gradient(void **state)
{
    (void)state;

    for (uint64_t n = 1024; n <= 8192; n += 1024) {
        const me_reduction reduction = {2048, n, true, 2, 4, false, false};
        assert_int_equal(
            me_reduction_scratch_of(&hopper, &reduction).staging_bytes,
            8 * n * 2048);
    }
}

/* Output, buffer, semaphores; semaphores and buffer go. */
static void test_reduce__order_of_events(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_empty(e, "x", ME_DTYPE_FLOAT32, ME_SHAPE(1048576));
    (void)me_test_events_take(events);
    me_vector_norm(e, x, ME_DTYPE_FLOAT32);
    EXPECT_EVENTS(events, "+4 +512 +4 -4 -512");
    me_leave(e, frame, NULL);
}

/* Beyond 2^31 bytes the input is taken in two halves: 2^29 + 2^20 floats are
 * more, their halves of 2^28 + 2^19 are not. */
static void test_reduce__halves_beyond_32_bits(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_empty(e, "x", ME_DTYPE_FLOAT32,
                            ME_SHAPE((UINT64_C(1) << 29) + (1 << 20)));
    (void)me_test_events_take(events);
    me_vector_norm(e, x, ME_DTYPE_FLOAT32);
    /* threads 512 of 32 by 16: each takes 2^28+2^19 over 512 or 525,312
     * values, over 256 each: 2052 blocks of 4 bytes */
    EXPECT_EVENTS(events, "+4 +8208 +4 -4 -8208 +8208 +4 -4 -8208");
    me_leave(e, frame, NULL);
}

/* Only of two numbers does an output not hold what the first half gave: 8 bytes of
 * an int64 it does. */
static void test_reduce__pairs_beyond_32_bits(void **state)
{
    me_test_events *events = *state;
    me_reduction reduction = {.inputs = (UINT64_C(1) << 28) + (1 << 19),
                              .outputs = 1,
                              .element_bytes = 8,
                              .accumulator_bytes = 8};

    (void)me_test_events_take(events);
    me_reduce(events->e, &reduction);
    EXPECT_EVENTS(events, "+8208 +4 -4 -8208 +8208 +4 -4 -8208");
    reduction.is_pair = true;
    me_reduce(events->e, &reduction);
    EXPECT_EVENTS(events, "+8 +8208 +4 -4 -8208 +8208 +4 -4 -8208 -8");
}

static void test_reduce__sum_to_shapes(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *x = me_empty(e, "x", ME_DTYPE_BFLOAT16, ME_SHAPE(4, 3));
    (void)me_test_events_take(events);
    me_sum_to(e, x, &ME_SHAPE(3));
    me_sum_to(e, x, &ME_SCALAR);
    me_sum_last_detached(e, x); /* float32 */
    EXPECT_EVENTS(events, "+6 +2 +16");
    me_leave(e, frame, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reduce__scratch_as_measured),
        cmocka_unit_test(test_reduce__scratch_of_a_convolutions_bias),
        cmocka_unit_test(test_reduce__buffer_of_a_bias_gradient),
        ENGINE_TEST(test_reduce__order_of_events),
        ENGINE_TEST(test_reduce__halves_beyond_32_bits),
        ENGINE_TEST(test_reduce__pairs_beyond_32_bits),
        ENGINE_TEST(test_reduce__sum_to_shapes),
    };
    return cmocka_run_group_tests_name("reduce", tests, NULL, NULL);
}
