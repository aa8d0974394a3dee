/* SPDX-License-Identifier: BSD-3-Clause */
#include "memest/memest.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

enum {
    MIB = 1024 * 1024
};

static memest_pool_counters read_pool(const memest_pool *pool)
{
    memest_pool_counters counters = MEMEST_INIT(memest_pool_counters);
    assert_true(memest_pool_read(pool, &counters));
    return counters;
}

/* 3 MiB come out of a segment of 20 MiB; 1000 bytes are rounded to 1024. */
static void test_api_pool__counts(void **state)
{
    (void)state;
    memest_pool *pool = NULL;
    memest_block a = 0;
    memest_block b = 0;
    memest_block none = 1;
    assert_int_equal(memest_pool_create(NULL, &pool, NULL), MEMEST_OK);
    assert_int_equal(memest_pool_alloc(pool, 3 * MIB, 0, &a, NULL), MEMEST_OK);
    assert_int_equal(memest_pool_alloc(pool, 1000, 0, &b, NULL), MEMEST_OK);
    assert_int_equal(memest_pool_alloc(pool, 0, 0, &none, NULL), MEMEST_OK);
    assert_true(none == 0 && a != 0 && b != 0 && a != b);
    memest_pool_counters now = read_pool(pool);
    assert_int_equal(now.requested_bytes, 3 * MIB + 1000);
    assert_int_equal(now.allocated_bytes, 3 * MIB + 1024);
    assert_int_equal(now.reserved_bytes, 22 * MIB);
    assert_int_equal(now.allocations, 2);
    assert_int_equal(now.segments, 2);

    assert_int_equal(memest_pool_free(pool, a, NULL), MEMEST_OK);
    assert_int_equal(memest_pool_free(pool, none, NULL), MEMEST_OK);
    assert_int_equal(memest_pool_free_requested(pool, b, NULL), MEMEST_OK);
    now = read_pool(pool);
    assert_int_equal(now.allocated_bytes, 0);
    assert_int_equal(now.active_bytes, 1024);
    assert_int_equal(now.allocated_peak_bytes, 3 * MIB + 1024);
    memest_pool_reset_peaks(pool);
    assert_int_equal(memest_pool_free_completed(pool, b, NULL), MEMEST_OK);
    assert_int_equal(memest_pool_empty_cache(pool, NULL), MEMEST_OK);
    now = read_pool(pool);
    assert_int_equal(now.reserved_bytes, 0);
    assert_int_equal(now.allocated_peak_bytes, 0);
    memest_pool_destroy(pool);
    memest_pool_destroy(NULL);
}

/* Whatever a caller does with blocks, it is an error and not a crash. */
static void test_api_pool__refuses_stale_blocks(void **state)
{
    (void)state;
    memest_pool *pool = NULL;
    memest_block old = 0;
    memest_block block = 0;
    assert_int_equal(memest_pool_create(NULL, &pool, NULL), MEMEST_OK);
    assert_int_equal(memest_pool_alloc(pool, MIB, 0, &old, NULL), MEMEST_OK);
    assert_int_equal(memest_pool_free_completed(pool, old, NULL),
                     MEMEST_ERR_CONFIG);
    assert_int_equal(memest_pool_free(pool, old, NULL), MEMEST_OK);
    assert_int_equal(memest_pool_free(pool, old, NULL), MEMEST_ERR_CONFIG);
    assert_int_equal(memest_pool_free_requested(pool, old, NULL),
                     MEMEST_ERR_CONFIG);
    /* The number is used again, the old block is still gone. */
    assert_int_equal(memest_pool_alloc(pool, MIB, 0, &block, NULL), MEMEST_OK);
    assert_true(block != old);
    assert_int_equal(memest_pool_free(pool, old, NULL), MEMEST_ERR_CONFIG);
    assert_int_equal(memest_pool_free(pool, block, NULL), MEMEST_OK);
    assert_int_equal(memest_pool_free(pool, UINT64_MAX, NULL),
                     MEMEST_ERR_CONFIG);
    memest_pool_destroy(pool);
}

static void test_api_pool__runs_out(void **state)
{
    (void)state;
    memest_pool_options options = MEMEST_INIT(memest_pool_options);
    memest_error *error = memest_error_create();
    memest_pool *pool = NULL;
    memest_block block = 0;
    char *text = NULL;
    options.device = "h100-80gb";
    options.limit_bytes = 64 * (uint64_t)MIB;
    assert_int_equal(memest_pool_create(&options, &pool, error), MEMEST_OK);
    assert_int_equal(memest_pool_message(pool, &text, error), MEMEST_OK);
    assert_string_equal(text, "");
    memest_text_destroy(text);
    assert_int_equal(memest_pool_alloc(pool, 32 * MIB, 0, &block, error),
                     MEMEST_OK);
    assert_int_equal(memest_pool_alloc(pool, 64 * MIB, 0, &block, error),
                     MEMEST_ERR_CAPACITY);
    assert_non_null(
        strstr(memest_error_text(error), "Tried to allocate 64.00 MiB"));
    assert_int_equal(memest_pool_message(pool, &text, error), MEMEST_OK);
    assert_non_null(strstr(text, "Tried to allocate 64.00 MiB"));
    assert_int_equal(read_pool(pool).num_ooms, 1);
    memest_text_destroy(text);
    memest_pool_destroy(pool);

    options.alloc_conf = "no_such_key:1";
    assert_int_equal(memest_pool_create(&options, &pool, error),
                     MEMEST_ERR_CONFIG);
    options.alloc_conf = NULL;
    options.device = "no-such-card";
    assert_int_equal(memest_pool_create(&options, &pool, error),
                     MEMEST_ERR_CONFIG);
    memest_error_destroy(error);
}

static void test_api_pool__replays(void **state)
{
    (void)state;
    static const char path[] = "test_api_pool.tsv";
    memest_error *error = memest_error_create();
    char *text = NULL;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs("alloc\t1000\t1\t0\nfree\t1000\t1\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(memest_replay(NULL, path, MEMEST_REPLAY_CSV, &text, error),
                     MEMEST_OK);
    assert_non_null(strstr(text, "end"));
    memest_text_destroy(text);
    assert_int_equal(
        memest_replay(NULL, path, (memest_replay_format)9, &text, error),
        MEMEST_ERR_CONFIG);
    assert_int_equal(remove(path), 0);
    assert_int_equal(
        memest_replay(NULL, path, MEMEST_REPLAY_TEXT, &text, error),
        MEMEST_ERR_IO);
    memest_error_destroy(error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_api_pool__counts),
        cmocka_unit_test(test_api_pool__refuses_stale_blocks),
        cmocka_unit_test(test_api_pool__runs_out),
        cmocka_unit_test(test_api_pool__replays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
