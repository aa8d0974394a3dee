/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/rates_example.h"
#include "support/test.h"

static me_launch product(uint64_t batch, uint64_t m, uint64_t n, uint64_t k)
{
    return (me_launch){.kind = ME_LAUNCH_KERNEL,
                       .kernel = ME_KERNEL_LINEAR,
                       .dtype = ME_DTYPE_BFLOAT16,
                       .batch = batch,
                       .m = m,
                       .n = n,
                       .k = k};
}

/* 11 x 12 tiles of 128 x 256 are one wave of 132 multiprocessors: all of
 * 2·1408·3072·1024 FLOPs at 1 PFLOP/s, and 3 us. */
static void test_product__one_full_wave(void **state)
{
    (void)state;
    const me_rates r = rates_example();
    const me_launch p = product(1, 1408, 3072, 1024);
    assert_int_equal(me_kernel_ns(&r, &p), 8858 + 3000);
    me_launch wide = p;
    wide.dtype = ME_DTYPE_FLOAT32;
    assert_int_equal(me_kernel_ns(&r, &wide), 88584 + 3000);
}

/* Operands of FP8 have twice that rate here, with a scale a block the same. */
static void test_product__of_fp8(void **state)
{
    (void)state;
    const me_rates r = rates_example();
    me_launch p = product(1, 1408, 3072, 1024);
    p.dtype = ME_DTYPE_UINT8;
    assert_int_equal(me_kernel_ns(&r, &p), 4429 + 3000);
    p.is_block_scaled = true;
    assert_int_equal(me_kernel_ns(&r, &p), 8858 + 3000);
}

/* One row of tiles more: 144 do not fit one wave. Split in eight along k, 1152
 * parts are 9 waves of an eighth of the length: 9/8 of the one above. */
static void test_product__a_second_wave(void **state)
{
    (void)state;
    const me_rates r = rates_example();
    const me_launch p = product(1, 1536, 3072, 1024);
    assert_int_equal(me_kernel_ns(&r, &p), 9966 + 3000);
}

/* Bytes bound it: (2·64 + 64·64) elements of 2 bytes at 0.85 TB/s. */
static void test_product__bound_by_memory(void **state)
{
    (void)state;
    const me_rates r = rates_example();
    me_launch p = product(1, 1, 1, 1);
    p.bytes = 8500000;
    assert_int_equal(me_kernel_ns(&r, &p), 10000 + 3000);
}

static void test_memory_kernel__bytes_over_rate(void **state)
{
    (void)state;
    const me_rates r = rates_example();
    const me_launch k = {.kernel = ME_KERNEL_COPY, .bytes = 1000000};
    assert_int_equal(me_kernel_ns(&r, &k), 2500 + 1000);
}

/* 66 blocks of 128 rows on 132 multiprocessors: half of the card. Behind six full
 * waves half a one does not matter. */
static void test_flash__a_wave_that_is_not_full(void **state)
{
    (void)state;
    me_rates r = rates_example();
    me_launch f = {.kernel = ME_KERNEL_FLASH,
                   .dtype = ME_DTYPE_BFLOAT16,
                   .flops = 1000000000,
                   .batch = 66,
                   .m = 128,
                   .k = 128};
    assert_int_equal(me_kernel_ns(&r, &f), 5000 + 4000);
    f.batch = 132 * 6;
    assert_int_equal(me_kernel_ns(&r, &f), 5000 + 2000);
    f.batch = 132 * 6 + 66;
    assert_int_equal(me_kernel_ns(&r, &f), 5000 + 2000);
    f.k = 64;
    f.kernel = ME_KERNEL_FLASH_BACKWARD;
    assert_int_equal(me_kernel_ns(&r, &f), 5000 + 5000);
    f.dtype = ME_DTYPE_FLOAT32; /* no faster than products */
    r.single_product = 1e11;
    assert_int_equal(me_kernel_ns(&r, &f), 5000 + 10000000);
}

/* cuDNN's kernels have rates of their own, by head size and direction. */
static void test_fused_attention__rates(void **state)
{
    (void)state;
    const me_rates r = rates_example();
    me_launch f = {.kernel = ME_KERNEL_FUSED_ATTENTION,
                   .dtype = ME_DTYPE_BFLOAT16,
                   .flops = 1000000000,
                   .batch = 132 * 6,
                   .m = 128,
                   .k = 128};
    assert_int_equal(me_kernel_ns(&r, &f), 5000 + 1000);
    f.kernel = ME_KERNEL_FUSED_ATTENTION_BACKWARD;
    assert_int_equal(me_kernel_ns(&r, &f), 5000 + 1250);
    f.k = 64;
    assert_int_equal(me_kernel_ns(&r, &f), 5000 + 2500);
}

/* An all-reduce crosses 2 (n - 1) / n times: 7/4 on 8 ranks where the rate was
 * measured with 3/2 on 4. */
static void test_collective__by_group(void **state)
{
    (void)state;
    const me_rates r = rates_example();
    const me_launch c = {.collective = ME_COLLECTIVE_ALL_REDUCE,
                         .bytes = 1000000};
    const me_time_group alone = {1, false};
    const me_time_group pair = {2, false};
    const me_time_group four = {4, false};
    const me_time_group eight = {8, false};
    const me_time_group far = {4, true};
    assert_int_equal(me_collective_ns(&r, &c, &alone), 2500);
    assert_int_equal(me_collective_ns(&r, &c, &pair), 10000 + 10000);
    assert_int_equal(me_collective_ns(&r, &c, &four), 20000 + 10000);
    assert_int_equal(me_collective_ns(&r, &c, &eight), 20000 + 11667);
    assert_int_equal(me_collective_ns(&r, &c, &far), 40000 + 100000);
    assert_int_equal(me_transfer_ns(&r, 1000000, false), 5000 + 20000);
    assert_int_equal(me_transfer_ns(&r, 1000000, true), 25000 + 200000);
}

static void test_host__by_phase_and_launch(void **state)
{
    (void)state;
    me_rates r = rates_example();
    me_launch k = {.kind = ME_LAUNCH_KERNEL, .kernel = ME_KERNEL_COPY};
    assert_int_equal(me_host_ns(&r, ME_HOST_OF_MEGATRON, &k), 17000);
    k.phase = ME_PHASE_BACKWARD;
    assert_int_equal(me_host_ns(&r, ME_HOST_OF_MEGATRON, &k), 24000);
    r.launch_s *= 2;
    assert_int_equal(me_host_ns(&r, ME_HOST_OF_MEGATRON, &k), 48000);
    const me_launch exchange = {.kind = ME_LAUNCH_EXCHANGE,
                                .transfers = ME_TRANSFER_TO_NEXT |
                                             ME_TRANSFER_FROM_NEXT};
    r.launch_s /= 2;
    assert_int_equal(me_host_ns(&r, ME_HOST_OF_MEGATRON, &exchange), 300000);
    r.launch_s = 15e-6; /* twice that of the host it was measured on */
    assert_int_equal(me_host_ns(&r, ME_HOST_OF_TORCH, &exchange), 246000);
    assert_int_equal(me_host_ns(&r, ME_HOST_OF_TORCH, &k), 34000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_product__one_full_wave),
        cmocka_unit_test(test_product__of_fp8),
        cmocka_unit_test(test_product__a_second_wave),
        cmocka_unit_test(test_product__bound_by_memory),
        cmocka_unit_test(test_memory_kernel__bytes_over_rate),
        cmocka_unit_test(test_flash__a_wave_that_is_not_full),
        cmocka_unit_test(test_fused_attention__rates),
        cmocka_unit_test(test_collective__by_group),
        cmocka_unit_test(test_host__by_phase_and_launch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
