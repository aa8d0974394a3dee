/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/te_cudnn_norm.h"
#include "ops/te_fused_attention.h"
#include "ops/te_norm.h"
#include "support/test.h"

static const me_card h200 = {.multiprocessors = 132};

static uint64_t workspace(bool is_layer_norm, bool is_backward, me_dtype dtype,
                          uint64_t rows, uint64_t columns)
{
    const me_te_norm_call call = {.is_layer_norm = is_layer_norm,
                                  .is_backward = is_backward,
                                  .dtype = dtype,
                                  .rows = rows,
                                  .columns = columns};
    return me_te_norm_workspace_bytes(&h200, &call);
}

static uint64_t rms(uint64_t rows, uint64_t columns)
{
    return workspace(false, true, ME_DTYPE_BFLOAT16, rows, columns);
}

static uint64_t layer(uint64_t rows, uint64_t columns)
{
    return workspace(true, true, ME_DTYPE_BFLOAT16, rows, columns);
}

/** Float32 sums of each block's rows: of a tuned kernel's blocks on 132
 *  multiprocessors, or of a general one's, no more than there are rows. */
static void norms_ask_for_what_was_measured(void **state)
{
    (void)state;
    assert_int_equal(rms(2048, 1024), UINT64_C(4) * 1024 * 132 * 3);
    assert_int_equal(rms(2048, 896), UINT64_C(4) * 896 * 132 * 3);
    assert_int_equal(rms(2048, 2048), UINT64_C(4) * 2048 * 132 * 5);
    assert_int_equal(rms(2048, 4096), UINT64_C(4) * 4096 * 132 * 3);
    assert_int_equal(rms(32768, 64), UINT64_C(4) * 64 * 132 * 12);
    assert_int_equal(rms(8, 64), UINT64_C(4) * 64 * 2); /* of 4 rows each */
    assert_int_equal(layer(2048, 1024), UINT64_C(8) * 1024 * 132 * 2);
    assert_int_equal(layer(2048, 2048), UINT64_C(8) * 2048 * 132 * 4);
    /* 99 rows of 4 blocks, which exchange 16 bytes each and 8 a row */
    assert_int_equal(layer(2048, 12288), UINT64_C(8) * 12288 * 99 + 7136);
}

/* SMs that are left to others have no sums. */
static void norms_leave_a_margin(void **state)
{
    (void)state;
    me_te_norm_call call = {.is_backward = true,
                            .dtype = ME_DTYPE_BFLOAT16,
                            .rows = 2048,
                            .columns = 1024,
                            .margin = 16};
    assert_int_equal(me_te_norm_workspace_bytes(&h200, &call),
                     UINT64_C(4) * 1024 * 116 * 3);
}

static void a_forward_needs_none_unless_blocks_share_rows(void **state)
{
    (void)state;
    assert_int_equal(workspace(false, false, ME_DTYPE_BFLOAT16, 2048, 1024), 1);
    assert_int_equal(workspace(true, false, ME_DTYPE_FLOAT32, 2048, 1024), 1);
    assert_int_equal(workspace(true, false, ME_DTYPE_BFLOAT16, 2048, 12288),
                     10560);
}

static me_te_norm_call cudnn_call(bool is_layer_norm, bool is_backward,
                                  uint64_t rows, uint64_t columns)
{
    return (me_te_norm_call){.is_layer_norm = is_layer_norm,
                             .is_backward = is_backward,
                             .dtype = ME_DTYPE_BFLOAT16,
                             .rows = rows,
                             .columns = columns};
}

static void expect_cudnn(const me_te_norm_call *call, uint64_t bytes,
                         bool is_measured)
{
    me_card card = h200;
    card.te.has_cudnn_norm_forward = !call->is_backward;
    card.te.has_cudnn_norm_backward = call->is_backward;
    assert_int_equal(me_te_norm_workspace_bytes(&card, call), bytes);
    assert_int_equal(me_te_cudnn_norm_is_measured(&card, call), is_measured);
}

/* In jobs h16_cudnn_rms and h16_cudnn_ln1p: 3 sums an SM, or 2 of each of two;
 * heads of queries and keys in between two measured rows. Then what no job has:
 * columns that cuDNN has no kernel of its own for; shapes between, which have the
 * kernel of the next one. */
static void cudnn_asks_for_what_was_measured(void **state)
{
    (void)state;

    static const struct {
        bool is_layer_norm;
        bool is_backward;
        uint64_t rows;
        uint64_t columns;
        uint64_t bytes;
        bool is_measured;
    } cases[] = {
        {false, false, 2048, 1024, 32, true},
        {true, false, 32768, 64, 32, true},
        {false, false, 8192, 80, 1, true},
        {false, true, 2048, 1024, UINT64_C(4) * 1024 * 132 * 3 + 96, true},
        {false, true, 32768, 64, UINT64_C(4) * 64 * 132 * 6 + 64, true},
        {true, true, 2048, 1024, UINT64_C(4) * 1024 * 132 * 2 + 64, true},
        {true, true, 32768, 64, UINT64_C(4) * 64 * 132 * 16 + 112, true},
        {false, true, 8192, 80, UINT64_C(8) * 8192, true},
        {true, true, 2048, 80, UINT64_C(16) * 2048, true},
        {false, true, 65536, 80, UINT64_C(8) * 65536 + UINT64_C(4) * 80 * 7,
         true},
        {true, true, 131072, 2880,
         UINT64_C(16) * 131072 + UINT64_C(8) * 2880 * 14, true},
        {true, true, 1024, 1024, UINT64_C(4) * 1024 * 132 * 2 + 64, true},
        {false, true, 100, 4096, UINT64_C(4) * 4096 * 100 + 64, true},
        {false, true, 768, 1024, UINT64_C(4) * 1024 * 132 * 2 + 64, true},
        {false, true, 640, 1024, UINT64_C(4) * 1024 * 132 * 2 + 64, true},
        {false, true, 1280, 1024, UINT64_C(4) * 1024 * 132 * 2 + 64, true},
        {false, true, 700, 1024, UINT64_C(4) * 1024 * 132 * 2 + 64, false},
        {false, true, 8192, 8448, UINT64_C(4) * 8448 * 264 + 64, false},
        {false, true, 1, 1 << 20, UINT64_C(3) * (UINT64_C(1) << 22) + 96,
         false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const me_te_norm_call call =
            cudnn_call(cases[i].is_layer_norm, cases[i].is_backward,
                       cases[i].rows, cases[i].columns);
        expect_cudnn(&call, cases[i].bytes, cases[i].is_measured);
    }
}

/* Measured on an H200: 2 sums an SM, not 6; LayerNorm of columns that no kernel
 * takes in half precision, 32 sums an SM; RMSNorm of such has a general one. */
static void cudnn_has_other_kernels_of_float32(void **state)
{
    (void)state;
    me_te_norm_call call = cudnn_call(false, true, 8192, 3072);
    expect_cudnn(&call, UINT64_C(4) * 3072 * 132 * 6 + 64, true);
    call.dtype = ME_DTYPE_FLOAT32;
    expect_cudnn(&call, UINT64_C(4) * 3072 * 132 * 2 + 64, true);
    call = cudnn_call(true, true, 2048, 96);
    expect_cudnn(&call, UINT64_C(16) * 2048, true);
    call.dtype = ME_DTYPE_FLOAT32;
    expect_cudnn(&call, UINT64_C(4) * 96 * 132 * 32 + 112, true);
    call = cudnn_call(false, true, 2048, 96);
    call.dtype = ME_DTYPE_FLOAT32;
    expect_cudnn(&call, UINT64_C(8) * 2048, true);
    call = cudnn_call(false, true, 4096, 2048); // 3 sums of all SMs, or 2
    expect_cudnn(&call, UINT64_C(4) * 2048 * 132 * 2 + 64, true);
    call.dtype = ME_DTYPE_FLOAT16;
    expect_cudnn(&call, UINT64_C(4) * 2048 * 132 * 4 + 64, true);
}

/* 600 rows lie between 512, 3/4 sum a row, and 640, 2 an SM; 7,200 between
 * some of 4 an SM and of 6; around 96,000 all have 6. Of columns between 8,192 and
 * 9,216 both sides have 2 an SM. Another card may have what an H200 has for half or
 * twice as many rows. */
static void a_band_is_what_other_kernels_ask_for(void **state)
{
    (void)state;
    me_card card = h200;
    me_te_norm_call call = cudnn_call(false, true, 600, 1024);
    assert_int_equal(me_te_cudnn_norm_doubt_bytes(&card, &call),
                     UINT64_C(3) * 600 * 1024 + 96);
    call = cudnn_call(false, true, 7200, 1024);
    assert_int_equal(me_te_cudnn_norm_doubt_bytes(&card, &call),
                     UINT64_C(4) * 1024 * 132 * 6 + 64);
    call = cudnn_call(false, true, 96000, 1024);
    assert_int_equal(me_te_cudnn_norm_doubt_bytes(&card, &call), 0);
    assert_true(me_te_cudnn_norm_is_measured(&card, &call));
    call = cudnn_call(false, true, 8192, 8448);
    assert_int_equal(me_te_cudnn_norm_doubt_bytes(&card, &call), 0);
    call = cudnn_call(false, true, 1024, 1024);
    assert_int_equal(me_te_cudnn_norm_doubt_bytes(&card, &call), 0);
    card.multiprocessors = 108;
    assert_int_equal(me_te_cudnn_norm_doubt_bytes(&card, &call),
                     UINT64_C(3) * 1024 * 1024 + 96);
    assert_int_equal(me_te_cudnn_norm_workspace_bytes(&card, &call),
                     UINT64_C(4) * 1024 * 108 * 3 + 96);
    assert_false(me_te_cudnn_norm_is_measured(&card, &call));
    call.columns = 80; // by rows alone
    assert_int_equal(me_te_cudnn_norm_doubt_bytes(&card, &call), 0);
    assert_true(me_te_cudnn_norm_is_measured(&card, &call));
}

/* Measured with 4, 16, 24 and 54 SMs left on an H200: 2 or 3 sums of the others,
 * not 6 of all; of 80 and of 16,384 columns Transformer Engine stopped. */
static void cudnn_leaves_sms_to_others(void **state)
{
    (void)state;
    me_te_norm_call call = cudnn_call(false, true, 65536, 4096);
    call.margin = 24;
    expect_cudnn(&call, UINT64_C(4) * 4096 * 108 * 2 + 64, true);
    call.margin = 54;
    expect_cudnn(&call, UINT64_C(4) * 4096 * 78 * 2 + 64, true);
    call.columns = 1024;
    call.rows = 8192;
    expect_cudnn(&call, UINT64_C(4) * 1024 * 78 * 3 + 96, true);
    call = cudnn_call(true, true, 65536, 64);
    call.margin = 16;
    expect_cudnn(&call, UINT64_C(4) * 64 * 116 * 2 + 64, true);
    assert_false(me_te_cudnn_norm_stops(&call));
    call.columns = 80;
    assert_true(me_te_cudnn_norm_stops(&call));
    call.columns = 16384;
    assert_true(me_te_cudnn_norm_stops(&call));
    call.margin = 0;
    assert_false(me_te_cudnn_norm_stops(&call));
}

/** Llama of 16 heads of 64 in 4 groups, 2,048 tokens: 8 MiB of float32 sums of
 *  queries, 128 KiB of rows, and keys and values of all heads. */
static void attention_asks_for_what_was_measured(void **state)
{
    (void)state;
    me_te_attention_call call = {.batch = 1,
                                 .heads = 16,
                                 .groups = 4,
                                 .queries = 2048,
                                 .keys = 2048,
                                 .head_size = 64,
                                 .value_head_size = 64};
    assert_int_equal(me_te_attention_workspace_bytes(&call),
                     16908544); /* measured */
    call.groups = 16;
    assert_int_equal(me_te_attention_workspace_bytes(&call), 8519936);
    call.groups = 4;
    call.is_deterministic = true;
    assert_int_equal(me_te_attention_workspace_bytes(&call),
                     142737664); /* measured */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norms_ask_for_what_was_measured),
        cmocka_unit_test(norms_leave_a_margin),
        cmocka_unit_test(a_forward_needs_none_unless_blocks_share_rows),
        cmocka_unit_test(cudnn_asks_for_what_was_measured),
        cmocka_unit_test(cudnn_has_other_kernels_of_float32),
        cmocka_unit_test(a_band_is_what_other_kernels_ask_for),
        cmocka_unit_test(cudnn_leaves_sms_to_others),
        cmocka_unit_test(attention_asks_for_what_was_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
