/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the kernels that sort change their way, on both sides. */
#include "ops/sort.h"
#include "ops/view.h"
#include "support/backward.h"
#include "support/test.h"

#include <string.h>

/* A range of 8 bytes gives the places. Up to 4096 flags one block sorts a row;
 * above, there is the temporary of one pass: 2048, 1024 for each of two tiles of
 * 3456, 256 and 255. */
static void test_sort__flags(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *few = test_tensor(e, ME_DTYPE_BOOL, ME_SHAPE(4096));
    me_tensor *many = test_tensor(e, ME_DTYPE_BOOL, ME_SHAPE(4097));
    (void)me_test_events_take(events);
    me_argsort(e, few);
    EXPECT_EVENTS(events, "+4096 +32768 +32768 -32768 -4096");
    me_argsort(e, many);
    EXPECT_EVENTS(events, "+4097 +32776 +32776 +4607 -4607 -32776 -4097");
    me_leave(e, frame, NULL);
}

/* Keys of four bytes take four passes: 8192, 1024 for each of two tiles of 5376,
 * 22528 and 45056 of second buffers, 256 and 255. */
static void test_sort__numbers(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *few = test_tensor(e, ME_DTYPE_FLOAT32, ME_SHAPE(1536));
    me_tensor *many = test_tensor(e, ME_DTYPE_FLOAT32, ME_SHAPE(5632));
    (void)me_test_events_take(events);
    me_argsort(e, few);
    EXPECT_EVENTS(events, "+6144 +12288 +12288 -12288 -6144");
    me_argsort(e, many);
    EXPECT_EVENTS(events, "+22528 +45056 +45056 +78335 -78335 -45056 -22528");
    me_leave(e, frame, NULL);
}

/* Up to 2304 indices one block sorts the pairs; above, passes of eight bits of the
 * largest index: one for 256 rows, two for 257, and one bit of none. */
static void test_sort__accumulated_indices(void **state)
{
    static const struct {
        uint64_t n;
        uint64_t range;
        const char *expected;
    } cases[] = {
        {2304, 256, "+18432 +18432 -18432 +18432 +18432 +18432 +1 -1 "},
        /* 2048 + 1024 + 256 + 255 */
        {2305, 256, "+18440 +18440 -18440 +18440 +18440 +18440 +3583 -3583 "},
        {2305, 1, "+18440 +18440 -18440 +18440 +18440 +18440 +3583 -3583 "},
        /* 4096 + 1024 + 2 x 18688 + 256 + 255 */
        {2305, 257, "+18440 +18440 -18440 +18440 +18440 +18440 +43007 -43007 "},
    };

    me_test_events *events = *state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)me_test_events_take(events);
        const me_frame frame = me_enter(events->e);
        me_index_accumulate(events->e, cases[i].n, cases[i].range, NULL);
        me_leave(events->e, frame, NULL);
        const char *made = me_test_events_take(events);
        if (strncmp(made, cases[i].expected, strlen(cases[i].expected)) != 0) {
            fail_msg("%zu: %s", i, made);
        }
    }
}

/* `x[rows, columns] = values` of 8 pairs: each index's bounds, both made linear,
 * sorted with their positions. arange() fills what it resized. */
static void test_sort__deterministic_pairs(void **state)
{
    me_test_events *events = *state;
    me_deterministic_set(events->e, true);
    const me_frame frame = me_enter(events->e);
    me_index_put_pairs(events->e, 8, 16, false);
    EXPECT_EVENTS(events, "+8 +1 -1 -8 +8 +1 -1 -8 +64 +64 -64 "
                          "+8 +1 -1 -8 +8 +1 -1 -8 +64 +64 -64 -64 "
                          "+64 +64 +64 +8 -8 +1 -1 -64 -64 -64 -64");
    me_leave(events->e, frame, NULL);
}

/* Values with holes are copied between the indices and their sort. */
static void test_sort__accumulated_values(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;
    const me_frame frame = me_enter(e);
    me_tensor *values = me_empty(e, "values", ME_DTYPE_FLOAT32, ME_SHAPE(4, 8));
    me_tensor *turned = me_transpose(e, values, 0, 1);
    (void)me_test_events_take(events);
    me_index_accumulate(e, 8, 16, values);
    EXPECT_EVENTS(events, "+64 +64 -64 +64 +64 +64 +1 -1 -64 -64 -64 -64");
    me_index_accumulate(e, 8, 16, turned);
    EXPECT_EVENTS(events,
                  "+64 +64 -64 +128 +64 +64 +64 +1 -1 -64 -64 -64 -128 -64");
    me_leave(e, frame, NULL);
}

/* One block counts up to 4096 flags, more are counted in parts: 8 x 5 blocks of 132
 * multiprocessors, 21120 bytes, 21248 by 256, and 255. */
static void test_sort__places_of_what_is_not_zero(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;
    const me_frame frame = me_enter(e);
    me_drop(e, me_nonzero(e, 4096, 2));
    EXPECT_EVENTS(events, "+4 +1 -1 +32 +1023 -1023 -4 -32");
    me_drop(e, me_nonzero(e, 4097, 2));
    EXPECT_EVENTS(events, "+4 +21503 -21503 +32 +1023 -1023 -4 -32");
    me_leave(e, frame, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(test_sort__flags),
        ENGINE_TEST(test_sort__numbers),
        ENGINE_TEST(test_sort__accumulated_indices),
        ENGINE_TEST(test_sort__deterministic_pairs),
        ENGINE_TEST(test_sort__accumulated_values),
        ENGINE_TEST(test_sort__places_of_what_is_not_zero),
    };
    return cmocka_run_group_tests_name("sort", tests, NULL, NULL);
}
