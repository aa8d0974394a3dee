/* SPDX-License-Identifier: BSD-3-Clause */
#include "alloc/pool.h"
#include "base/alloc.h"
#include "support/test.h"

#include <stdbool.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)

static me_pool *make_pool(const char *conf, uint64_t limit, uint64_t capacity)
{
    me_pool_options options = {
        .limit_bytes = limit,
        .capacity_bytes = capacity,
        .device_total_bytes = 80 * 1024 * MIB,
        .outside_bytes = 512 * MIB,
        .device_index = 3,
    };
    assert_int_equal(me_alloc_conf_parse(conf, NULL, &options.conf), ME_OK);
    me_pool *pool = NULL;
    assert_int_equal(me_pool_create(&options, &pool), ME_OK);
    return pool;
}

static me_pool_block alloc(me_pool *pool, uint64_t bytes, uint64_t stream)
{
    me_pool_block block = ME_POOL_NO_BLOCK;
    assert_int_equal(me_pool_alloc(pool, bytes, stream, &block), ME_OK);
    return block;
}

static void check(const me_pool *pool)
{
    me_diag diag = {0};
    assert_int_equal(me_pool_check(pool, &diag), ME_OK);
}

static void test_pool__rounds_sizes(void **state)
{
    (void)state;
    me_alloc_conf conf = me_alloc_conf_default();
    assert_int_equal(me_pool_round(&conf, 1), 512);
    assert_int_equal(me_pool_round(&conf, 513), 1024);
    assert_int_equal(me_pool_segment_bytes(&conf, MIB), 2 * MIB);
    assert_int_equal(me_pool_segment_bytes(&conf, MIB + 512), 20 * MIB);
    assert_int_equal(me_pool_segment_bytes(&conf, 10 * MIB), 10 * MIB);
    assert_int_equal(me_pool_segment_bytes(&conf, 11 * MIB), 12 * MIB);
    assert_int_equal(
        me_alloc_conf_parse("roundup_power2_divisions:4", NULL, &conf), ME_OK);
    assert_int_equal(me_pool_round(&conf, 1200), 1536); /* below 4 * 512 */
    assert_int_equal(me_pool_round(&conf, 2049), 2560);
    assert_int_equal(me_pool_round(&conf, 4096), 4096);
    assert_int_equal(me_pool_round(&conf, 9 * MIB), 10 * MIB);
}

static void test_pool__no_bytes_no_block(void **state)
{
    (void)state;
    me_pool *pool = make_pool("", 0, 0);
    assert_int_equal(alloc(pool, 0, 0), ME_POOL_NO_BLOCK);
    me_pool_free(pool, ME_POOL_NO_BLOCK);
    assert_int_equal(me_pool_current(pool, ME_POOL_RESERVED_BYTES), 0);
    me_pool_destroy(pool);
    me_pool_destroy(NULL);
}

static void test_pool__late_free_is_active(void **state)
{
    (void)state;
    me_pool *pool = make_pool("", 0, 0);
    const me_pool_block a = alloc(pool, 30 * MIB, 0);
    const uint32_t epoch = me_pool_free_requested(pool, a);
    assert_int_equal(me_pool_current(pool, ME_POOL_ALLOCATED_BYTES), 0);
    assert_int_equal(me_pool_current(pool, ME_POOL_ACTIVE_BYTES), 30 * MIB);
    const me_pool_block b = alloc(pool, 30 * MIB, 0);
    assert_int_equal(me_pool_current(pool, ME_POOL_RESERVED_BYTES), 60 * MIB);
    me_pool_free_completed(pool, a, epoch);
    assert_int_equal(me_pool_current(pool, ME_POOL_ACTIVE_BYTES), 30 * MIB);
    (void)alloc(pool, 30 * MIB, 0);
    assert_int_equal(me_pool_current(pool, ME_POOL_RESERVED_BYTES), 60 * MIB);
    me_pool_free(pool, b);
    check(pool);
    me_pool_destroy(pool);
}

static void test_pool__flush_ends_waits(void **state)
{
    (void)state;
    me_pool *pool = make_pool("", 64 * MIB, 0);
    const me_pool_block a = alloc(pool, 40 * MIB, 0);
    const uint32_t epoch = me_pool_free_requested(pool, a);
    const me_pool_block b = alloc(pool, 50 * MIB, 0);
    assert_int_equal(me_pool_num_alloc_retries(pool), 1);
    assert_int_equal(me_pool_current(pool, ME_POOL_ACTIVE_BYTES), 50 * MIB);
    me_pool_free_completed(pool, a, epoch); /* over already */
    assert_int_equal(me_pool_current(pool, ME_POOL_ACTIVE_BYTES), 50 * MIB);
    me_pool_free(pool, b);
    check(pool);
    me_pool_destroy(pool);
}

static void test_pool__streams_do_not_share(void **state)
{
    (void)state;
    me_pool *pool = make_pool("", 0, 0);
    me_pool_free(pool, alloc(pool, 30 * MIB, 0));
    assert_int_equal(me_pool_largest_free(pool, 0), 30 * MIB);
    assert_int_equal(me_pool_largest_free(pool, UINT64_MAX), 0);
    (void)alloc(pool, 30 * MIB, UINT64_MAX);
    assert_int_equal(me_pool_current(pool, ME_POOL_RESERVED_BYTES), 60 * MIB);
    check(pool);
    me_pool_destroy(pool);
}

static void test_pool__says_what_pytorch_says(void **state)
{
    (void)state;
    me_pool *pool = make_pool("", 100 * MIB, 0);
    (void)alloc(pool, 60 * MIB, 0);
    (void)alloc(pool, 2 * MIB, 0);
    me_pool_block none = ME_POOL_NO_BLOCK;
    assert_int_equal(me_pool_alloc(pool, 50 * MIB, 0, &none), ME_ERR_CAPACITY);
    const me_pool_oom *oom = me_pool_last_oom(pool);
    assert_int_equal(oom->tried_bytes, 50 * MIB);
    assert_int_equal(oom->reserved_bytes, 80 * MIB);
    assert_int_equal(oom->num_alloc_retries, 1);
    me_str text = {0};
    me_pool_oom_text(pool, &text);
    static const char expected[] =
        "CUDA out of memory. Tried to allocate 50.00 MiB. GPU 3 has a total "
        "capacity of 80.00 GiB of which 79.42 GiB is free. Including "
        "non-PyTorch memory, this process has 592.00 MiB memory in use. "
        "100.00 MiB allowed; Of the allocated memory 62.00 MiB is allocated "
        "by PyTorch, and 18.00 MiB is reserved by PyTorch but unallocated. ";
    assert_memory_equal(me_str_text(&text), expected, sizeof expected - 1);
    me_str_fini(&text);
    assert_int_equal(me_pool_alloc(pool, UINT64_C(1) << 60U, 0, &none),
                     ME_ERR_CAPACITY);
    me_pool_oom_text(pool, &text);
    assert_string_equal(me_str_text(&text),
                        "CUDA out of memory. Tried to allocate more than 1EB "
                        "memory.");
    me_str_fini(&text);
    check(pool);
    me_pool_destroy(pool);
}

static void test_pool__capacity_is_the_drivers(void **state)
{
    (void)state;
    me_pool *pool = make_pool("expandable_segments:True", 0, 50 * MIB);
    const me_pool_block a = alloc(pool, 30 * MIB, 0);
    me_pool_block none = ME_POOL_NO_BLOCK;
    assert_int_equal(me_pool_alloc(pool, 30 * MIB, 0, &none), ME_ERR_CAPACITY);
    me_pool_free(pool, a);
    check(pool);
    (void)alloc(pool, 35 * MIB, 0);
    assert_int_equal(me_pool_current(pool, ME_POOL_RESERVED_BYTES), 40 * MIB);
    check(pool);
    me_pool_destroy(pool);
}

/* Others hold the card to the last byte, or more than it has: no byte is left,
 * which is not the same as a card whose size nobody knows. */
static void test_pool__full_card_gives_nothing(void **state)
{
    (void)state;
    const uint64_t total = 80 * 1024 * MIB;
    me_pool *pool = make_pool("", 0, 0);
    me_pool_block block = ME_POOL_NO_BLOCK;
    assert_true(me_pool_set_outside(pool, total));
    assert_int_equal(me_pool_alloc(pool, 1, 0, &block), ME_ERR_CAPACITY);
    assert_true(me_pool_set_outside(pool, total + 1));
    assert_int_equal(me_pool_alloc(pool, 1, 0, &block), ME_ERR_CAPACITY);
    assert_true(me_pool_set_outside(pool, total - 2 * MIB));
    assert_int_equal(me_pool_alloc(pool, 1, 0, &block), ME_OK);
    assert_true(me_pool_set_outside(pool, total - 2 * MIB));
    assert_false(me_pool_set_outside(pool, total - 2 * MIB + 1));
    me_pool_destroy(pool);
}

/* A segment of exactly max_split_size is one too large, as its block is. */
static void test_pool__counts_oversize_from_the_size_itself(void **state)
{
    (void)state;
    me_pool *pool = make_pool("max_split_size_mb:20", 0, 0);
    (void)alloc(pool, 18 * MIB, 0);
    me_pool_stats stats;
    me_pool_read(pool, &stats);
    assert_int_equal(stats.oversize_segments.current, 0);
    (void)alloc(pool, 20 * MIB, 0);
    me_pool_read(pool, &stats);
    assert_int_equal(stats.oversize_segments.current, 1);
    assert_int_equal(stats.oversize_allocations.current, 1);
    me_pool_destroy(pool);
}

static void test_pool__huge_requests_do_not_wrap(void **state)
{
    (void)state;
    static const char *const confs[] = {"", "expandable_segments:True",
                                        "roundup_power2_divisions:16"};
    for (size_t i = 0; i < sizeof confs / sizeof confs[0]; i++) {
        me_pool *pool = make_pool(confs[i], 0, 0);
        me_status status = ME_OK;
        for (int n = 0; n < 64 && status == ME_OK; n++) {
            me_pool_block block = ME_POOL_NO_BLOCK;
            status = me_pool_alloc(pool, (UINT64_C(1) << 60U) - 1, 0, &block);
        }
        assert_int_equal(status, ME_ERR_OVERFLOW);
        check(pool);
        me_pool_destroy(pool);
    }
}

static void test_pool__resets(void **state)
{
    (void)state;
    me_pool *pool = make_pool("", 0, 0);
    const me_pool_block a = alloc(pool, 4 * MIB, 0);
    me_pool_free(pool, alloc(pool, 8 * MIB, 0));
    assert_int_equal(me_pool_peak(pool, ME_POOL_ALLOCATED_BYTES), 12 * MIB);
    me_pool_reset_peaks(pool);
    assert_int_equal(me_pool_peak(pool, ME_POOL_ALLOCATED_BYTES), 4 * MIB);
    me_pool_stats stats;
    me_pool_read(pool, &stats);
    const me_pool_stat *s = &stats.stat[ME_POOL_ALLOCATED_BYTES][ME_POOL_ALL];
    assert_int_equal(s->allocated, 12 * MIB);
    assert_int_equal(s->freed, 8 * MIB);
    me_pool_free(pool, a);
    me_pool_read(pool, &stats);
    assert_int_equal(s->allocated, 12 * MIB);
    assert_int_equal(s->freed, 12 * MIB);
    me_pool_destroy(pool);
}

/* A captured graph has addresses of its private pool in it: the pool's segments
 * serve nobody else, on whatever stream, and outlive an emptying of caches and a
 * retry, which a request of the pool's own does not ask for. */
static void test_pool__private_pools_stay_apart(void **state)
{
    (void)state;
    me_pool *pool = make_pool("", 64 * MIB, 0);
    me_pool_block a = ME_POOL_NO_BLOCK;
    me_pool_block b = ME_POOL_NO_BLOCK;
    assert_int_equal(me_pool_alloc_private(pool, 12 * MIB, 3, 1, &a), ME_OK);
    assert_int_equal(me_pool_private_bytes(pool), 12 * MIB);
    me_pool_free(pool, a);
    assert_int_equal(me_pool_alloc_private(pool, 12 * MIB, 3, 1, &b), ME_OK);
    assert_int_equal(b, a);
    me_pool_free(pool, b);
    (void)alloc(pool, 12 * MIB, 3); // the stream's, in no private pool
    assert_int_equal(me_pool_current(pool, ME_POOL_RESERVED_BYTES), 24 * MIB);
    assert_int_equal(me_pool_alloc_private(pool, 12 * MIB, 3, 2, &b), ME_OK);
    me_pool_free(pool, b);
    assert_int_equal(me_pool_private_bytes(pool), 24 * MIB);
    assert_int_equal(me_pool_empty_cache(pool), ME_OK);
    assert_int_equal(me_pool_current(pool, ME_POOL_RESERVED_BYTES), 36 * MIB);
    me_pool_free(pool, alloc(pool, 20 * MIB, 0));
    assert_int_equal(me_pool_alloc_private(pool, 16 * MIB, 0, 1, &b),
                     ME_ERR_CAPACITY); // the 20 MiB are not given back
    assert_int_equal(me_pool_num_alloc_retries(pool), 0);
    assert_int_equal(alloc(pool, 24 * MIB, 0) == ME_POOL_NO_BLOCK, false);
    assert_int_equal(me_pool_private_bytes(pool), 24 * MIB);
    check(pool);
    me_pool_destroy(pool);
}

/* Listed as PyTorch shows them: a stream and a pool, each by itself. */
static void test_pool__private_pools_listed(void **state)
{
    (void)state;
    me_pool *pool = make_pool("", 0, 0);
    me_pool_block a = ME_POOL_NO_BLOCK;
    me_pool_listed *blocks = NULL;
    uint32_t n = 0;
    (void)alloc(pool, 12 * MIB, 3);
    assert_int_equal(me_pool_alloc_private(pool, 12 * MIB, 3, 1, &a), ME_OK);
    assert_int_equal(
        me_pool_alloc_private(pool, 12 * MIB, 4, ME_POOL_PRIVATE_MAX, &a),
        ME_OK);
    assert_int_equal(me_pool_list(pool, &blocks, &n), ME_OK);
    assert_int_equal(n, 3);

    static const struct {
        uint64_t stream;
        uint8_t mempool;
    } listed[] = {{3, 0}, {3, 1}, {4, ME_POOL_PRIVATE_MAX}};

    for (uint32_t i = 0; i < n; i++) {
        uint32_t found = 0;
        for (uint32_t k = 0; k < n; k++) {
            found += blocks[k].stream == listed[i].stream &&
                     blocks[k].mempool == listed[i].mempool;
        }
        assert_int_equal(found, 1);
    }
    me_free(blocks);
    me_pool_destroy(pool);
}

static void test_pool__private_pools_expand(void **state)
{
    (void)state;
    me_pool *pool = make_pool("expandable_segments:True", 0, 0);
    me_pool_block a = ME_POOL_NO_BLOCK;
    assert_int_equal(me_pool_alloc_private(pool, 30 * MIB, 0, 1, &a), ME_OK);
    me_pool_free(pool, a);
    const uint64_t mapped = me_pool_private_bytes(pool);
    assert_true(mapped >= 30 * MIB);
    me_pool_free(pool, alloc(pool, 30 * MIB, 0));
    assert_int_equal(me_pool_empty_cache(pool), ME_OK);
    assert_int_equal(me_pool_current(pool, ME_POOL_RESERVED_BYTES), mapped);
    check(pool);
    me_pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pool__rounds_sizes),
        cmocka_unit_test(test_pool__no_bytes_no_block),
        cmocka_unit_test(test_pool__late_free_is_active),
        cmocka_unit_test(test_pool__flush_ends_waits),
        cmocka_unit_test(test_pool__streams_do_not_share),
        cmocka_unit_test(test_pool__says_what_pytorch_says),
        cmocka_unit_test(test_pool__capacity_is_the_drivers),
        cmocka_unit_test(test_pool__full_card_gives_nothing),
        cmocka_unit_test(test_pool__counts_oversize_from_the_size_itself),
        cmocka_unit_test(test_pool__huge_requests_do_not_wrap),
        cmocka_unit_test(test_pool__resets),
        cmocka_unit_test(test_pool__private_pools_stay_apart),
        cmocka_unit_test(test_pool__private_pools_listed),
        cmocka_unit_test(test_pool__private_pools_expand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
