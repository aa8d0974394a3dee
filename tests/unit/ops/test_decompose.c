/* SPDX-License-Identifier: BSD-3-Clause */
/* Decompositions and what cuSOLVER asked for on an H200. */
#include "ops/decompose.h"
#include "support/backward.h"
#include "support/test.h"

static void test_decompose__workspaces(void **state)
{
    static const struct {
        uint64_t n;
        uint64_t bytes[ME_SOLVERS];
    } measured[] = {
        {1024, {17429388, 0, 6291584, 1639424}},
        {1536, {38661004, 0, 8388736, 2425856}},
        {2816, {128440204, 0, 13631616, 4391936}},
        {5632, {510503820, 0, 25165952, 8717312}},
        {512, {0, 1124416, 0, 0}},
        {480, {0, 992716, 4063360, 803840}},
        {352, {0, 548156, 3539072, 607232}},
        {320, {0, 457576, 3408000, 558080}},
        {256, {0, 301088, 3145856, 459776}},
        {240, {0, 269280, 3145856, 435200}},
        {128, {0, 86800, 3145856, 263168}},
        {64, {0, 29000, 3145856, 148480}},
        {48, {0, 21768, 3145856, 141312}},
        {24, {0, 0, 3145856, 134400}},
        {8, {0, 0, 3145856, 132352}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof measured / sizeof measured[0]; i++) {
        for (int k = 0; k < ME_SOLVERS; k++) {
            const uint64_t bytes = measured[i].bytes[k];
            if (bytes != 0) {
                assert_int_equal(me_solver_bytes((me_solver)k, measured[i].n),
                                 bytes);
            }
        }
    }
}

static void test_decompose__events(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;
    me_tensor *second = NULL;
    (void)me_test_events_take(events);
    const me_frame frame = me_enter(e);
    me_tensor *first = me_eigh(e, 1024, &second);
    me_drop(e, second);
    me_drop(e, first);
    EXPECT_EVENTS(events,
                  "+4194304 +4096 +4 +17429388 -17429388 +1 +1 -1 -1 -4 "
                  "-4096 -4194304");
    first = me_qr(e, 1024, &second);
    me_drop(e, second);
    me_drop(e, first);
    EXPECT_EVENTS(events, "+4194304 +4194304 +4096 +4 +6291584 -6291584 -4 +4 "
                          "+1639424 -1639424 -4 -4096 -4194304 -4194304");
    me_leave(e, frame, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decompose__workspaces),
        ENGINE_TEST(test_decompose__events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
