/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "parallel/fsdp_buckets.h"
#include "support/test.h"

/* Sizes of f_mfsdp_dp4_z3: h 1024, f 2816, 4 of 16 heads, 32000 tokens. */

enum {
    H = 1024,
    F = 2816,
    RANKS = 4
};

static const me_fsdp_bucket_param layer[] = {
    {.numel = H * H, .row_numel = H},               // attention's output
    {.numel = H, .row_numel = 1},                   // norm
    {.numel = 1536 * H, .row_numel = H},            // queries, keys, values
    {.numel = H, .row_numel = 1},                   // norm
    {.numel = UINT64_C(2) * F * H, .row_numel = H}, // fc1
    {.numel = (uint64_t)H * F, .row_numel = F},     // fc2
};

static me_fsdp_buckets *create(const me_fsdp_bucket_param *params,
                               uint32_t count, uint64_t bucket_numel)
{
    me_fsdp_buckets *buckets = NULL;
    me_diag diag = {0};
    assert_int_equal(
        me_fsdp_buckets_create(params, count, bucket_numel, &diag, &buckets),
        ME_OK);
    return buckets;
}

/**
 * Rows of 2816 and 1024 elements: chunks of lcm = 11264. fc2 (256 chunks) comes
 * first, since its rows are the longest. The output's 93 chunks and 1024
 * elements leave 10240 free: behind them the first later parameter ends that
 * has no whole chunks and fits, queries, keys and values with 139 and 7168; the
 * norms take what is left, 3072. fc1 has 512 chunks. In all 256 + 93 + 1 + 139 +
 * 512 = 1001 chunks, and 1004 are a multiple of four ranks: 22,618,112 bytes.
 */
static void test_fsdp_buckets__layer(void **state)
{
    (void)state;
    me_fsdp_buckets *b = create(layer, 6, 0);
    const uint64_t c = 11264;
    const uint64_t starts[6] = {
        0, 256 * c, (256 + 94) * c - 7168, (256 + 94 + 139) * c, 0, 0};
    const uint32_t order[6] = {5, 0, 2, 4, 1, 3};
    assert_int_equal(b->count, 1);
    assert_int_equal(b->buckets[0].chunk_factor, c);
    assert_int_equal(b->buckets[0].unpadded_numel, 1001 * c);
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(b->items[i].param, order[i]);
    }
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(b->items[i].start, starts[i]);
    }
    assert_int_equal(b->items[4].start, 256 * c + H * H);
    assert_int_equal(b->items[5].start, 256 * c + H * H + H);
    assert_int_equal(2 * me_fsdp_bucket_numel(&b->buckets[0], RANKS, true),
                     22618112);
    assert_int_equal(me_fsdp_bucket_numel(&b->buckets[0], RANKS, false),
                     1001 * c);
    me_fsdp_buckets_destroy(b);
}

/**
 * Rows of 4: chunks of 4. What remains of the first one's chunk is as large as the
 * rest of the second, which ends there, and as the small one, which then has no
 * place there and goes behind all.
 */
static void test_fsdp_buckets__rest_that_just_fits(void **state)
{
    (void)state;
    static const me_fsdp_bucket_param params[] = {
        {.numel = 10, .row_numel = 4},
        {.numel = 6, .row_numel = 4},
        {.numel = 2, .row_numel = 1},
    };
    me_fsdp_buckets *b = create(params, 3, 0);
    static const uint64_t starts[3] = {0, 10, 16};
    assert_int_equal(b->buckets[0].chunk_factor, 4);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(b->items[i].param, i);
        assert_int_equal(b->items[i].start, starts[i]);
    }
    assert_int_equal(b->buckets[0].unpadded_numel, 18);
    me_fsdp_buckets_destroy(b);
    b = create((const me_fsdp_bucket_param[]){params[0], params[2]}, 2, 0);
    assert_int_equal(b->items[1].start, 10); // it just fits
    assert_int_equal(b->buckets[0].unpadded_numel, 12);
    me_fsdp_buckets_destroy(b);
    b = create(
        (const me_fsdp_bucket_param[]){{.numel = 4, .row_numel = 4}, params[0]},
        2, 0);
    assert_int_equal(b->items[0].start, 0); // a whole chunk keeps its turn
    assert_int_equal(b->items[1].start, 4);
    me_fsdp_buckets_destroy(b);
}

/** Rank 0's part ends in fc2, and rank 1's begins there. */
static void test_fsdp_buckets__slices(void **state)
{
    (void)state;
    me_fsdp_buckets *b = create(layer, 6, 0);
    const uint64_t numel = me_fsdp_bucket_numel(&b->buckets[0], RANKS, true);
    const me_fsdp_item *fc2 = &b->items[0];
    const uint64_t part = numel / RANKS;
    assert_int_equal(part, 2827264);
    me_fsdp_slice s = me_fsdp_slice_of(fc2, numel, RANKS, 0);
    assert_int_equal(s.start, 0);
    assert_int_equal(s.numel, part);
    s = me_fsdp_slice_of(fc2, numel, RANKS, 1);
    assert_int_equal(s.start, part);
    assert_int_equal(s.numel, fc2->numel - part);
    s = me_fsdp_slice_of(fc2, numel, RANKS, 2);
    assert_int_equal(s.numel, 0);
    me_fsdp_buckets_destroy(b);
}

/** Outside of units a bucket closes once it is large enough; kinds and units do
 *  not mix, and their first parameters say which comes first. */
static void test_fsdp_buckets__groups(void **state)
{
    (void)state;
    static const me_fsdp_bucket_param params[] = {
        {.numel = 4000, .row_numel = 10, .unit = ME_NO_FSDP_UNIT},
        {.numel = 100, .row_numel = 10, .unit = 0},
        {.numel = 100, .row_numel = 10, .unit = 0, .kind = 1},
        {.numel = 200, .row_numel = 10, .unit = 1},
        {.numel = 10, .row_numel = 1, .unit = ME_NO_FSDP_UNIT},
        {.numel = 4000,
         .row_numel = 10,
         .unit = ME_NO_FSDP_UNIT,
         .is_shared_embedding = true},
        {.numel = 10, .row_numel = 1, .unit = ME_NO_FSDP_UNIT},
    };
    static const uint32_t firsts[] = {0, 4, 5, 6, 1, 2, 3};
    me_fsdp_buckets *b = create(params, 7, 4000);
    assert_int_equal(b->count, 7);
    for (uint32_t i = 0; i < 7; i++) {
        const me_fsdp_bucket *bucket = &b->buckets[i];
        assert_int_equal(b->items[bucket->first_item].param, firsts[i]);
        assert_int_equal(bucket->unit, params[firsts[i]].unit);
        assert_int_equal(bucket->kind, params[firsts[i]].kind);
    }
    me_fsdp_buckets_destroy(b);
    b = create(params, 7, 0);
    assert_int_equal(b->count, 6); // of the first, all but the shared one
    assert_int_equal(b->buckets[0].n_items, 2);
    me_fsdp_buckets_destroy(b);
}

static void test_fsdp_buckets__nothing(void **state)
{
    (void)state;
    me_fsdp_buckets *b = create(NULL, 0, 0);
    assert_int_equal(b->count, 0);
    me_fsdp_buckets_destroy(b);
    me_fsdp_buckets_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fsdp_buckets__layer),
        cmocka_unit_test(test_fsdp_buckets__rest_that_just_fits),
        cmocka_unit_test(test_fsdp_buckets__slices),
        cmocka_unit_test(test_fsdp_buckets__groups),
        cmocka_unit_test(test_fsdp_buckets__nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
