/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/user_buffers.h"
#include "support/test.h"

enum {
    MIB = 1 << 20,
    COMMUNICATOR =
        6 * MIB /* 3,223,808 bytes of a region in two pieces of 2 MiB, and
                              one of counters and flags */
};

/* Streams of 544 KiB: four gathering rings have 2 x 2 + 1 each, with four tensor
 * ranks 2 x 3 + 1, the other eight buffers 4: 52, or 60. */
enum {
    STREAMS = 28 * MIB
};

/* 2048 rows of 1024: 4 MiB in bfloat16. */
static const me_user_buffers SMALL = {
    .world = 2, .tensor = 2, .rows = 2048, .hidden = 1024, .is_bf16 = true};

static void test_user_buffers__in_bfloat16(void **state)
{
    (void)state;
    assert_int_equal(me_user_buffers_bytes(&SMALL),
                     COMMUNICATOR + STREAMS + 12 * 4 * MIB);
}

/* Eight are gathered, of a byte an element. */
static void test_user_buffers__in_fp8(void **state)
{
    (void)state;
    me_user_buffers s = SMALL;
    s.is_bf16 = false;
    s.is_fp8 = true;
    const uint64_t fp8 = 8 * 2 * MIB + 4 * 4 * MIB;
    assert_int_equal(me_user_buffers_bytes(&s), COMMUNICATOR + STREAMS + fp8);
    s.is_bf16 = true; // layers at the ends
    assert_int_equal(me_user_buffers_bytes(&s),
                     COMMUNICATOR + 56 * MIB + fp8 + 12 * 4 * MIB); // 55.25
}

/* Both gradients of inputs scattered: six of two bytes. In rings, of two ranks
 * three halves, of four seven quarters. */
static void test_user_buffers__scattered_in_rings(void **state)
{
    (void)state;
    me_user_buffers s = SMALL;
    s.is_bf16 = false;
    s.is_fp8 = true;
    s.dgrads = 2;
    assert_int_equal(me_user_buffers_bytes(&s),
                     COMMUNICATOR + STREAMS + 6 * 2 * MIB + 6 * 4 * MIB);
    s.rings = 4;
    assert_int_equal(me_user_buffers_bytes(&s),
                     COMMUNICATOR + 30 * MIB /* of 56 */ + 6 * 2 * MIB +
                         2 * 4 * MIB + 4 * 6 * MIB);
    s.tensor = 4; // 7 MiB take 8
    assert_int_equal(me_user_buffers_bytes(&s),
                     COMMUNICATOR + 40 * MIB /* of 72 */ + 6 * 2 * MIB +
                         2 * 4 * MIB + 4 * 8 * MIB);
}

/* Counters of 16384 ranks are 2,162,688 bytes beside 131,072 of flags. */
static void test_user_buffers__of_many_ranks(void **state)
{
    (void)state;
    me_user_buffers s = SMALL;
    s.world = 16384;
    assert_int_equal(me_user_buffers_bytes(&s),
                     COMMUNICATOR + 2 * MIB + STREAMS + 12 * 4 * MIB);
}

/* Of a job: a gradient that is reduced in any way but in bulk has a buffer that is
 * scattered; bfloat16 layers stand at either end of FP8's. */
static void test_user_buffers__of_a_job(void **state)
{
    (void)state;
    me_config config = {
        .parallel = {.world_size = 2, .tensor = 2, .context = 1}};
    config.tp_overlap.is_on = true;
    config.tp_overlap.qkv_dgrad = ME_OVERLAP_BULK;
    config.tp_overlap.fc1_dgrad = ME_OVERLAP_PIPELINE;
    me_user_buffers s = me_user_buffers_of(&config);
    assert_int_equal(s.dgrads, 1);
    assert_int_equal(s.rings, 0);
    assert_true(s.is_bf16);
    config.fp8.format = ME_FP8_HYBRID;
    assert_false(me_user_buffers_of(&config).is_bf16);
    config.fp8.num_layers_at_end_in_bf16 = 1;
    assert_false(me_user_buffers_of(&config).is_bf16);
    config.fp8.first_last_layers_bf16 = true;
    s = me_user_buffers_of(&config);
    assert_true(s.is_bf16);
    assert_true(s.is_fp8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_user_buffers__in_bfloat16),
        cmocka_unit_test(test_user_buffers__in_fp8),
        cmocka_unit_test(test_user_buffers__scattered_in_rings),
        cmocka_unit_test(test_user_buffers__of_many_ranks),
        cmocka_unit_test(test_user_buffers__of_a_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
