/* SPDX-License-Identifier: BSD-3-Clause */
#include "alloc/alloc_conf.h"
#include "support/test.h"

#include <stdbool.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)

static me_alloc_conf parse(const char *text)
{
    me_alloc_conf conf = {0};
    me_diag diag = {0};
    const me_status status = me_alloc_conf_parse(text, &diag, &conf);
    if (status != ME_OK) {
        print_error("'%s': %s\n", text == NULL ? "" : text, diag.text);
    }
    assert_int_equal(status, ME_OK);
    return conf;
}

static void test_conf__empty_is_default(void **state)
{
    (void)state;
    const me_alloc_conf conf = parse("");
    assert_true(conf.max_split_bytes == ME_ALLOC_CONF_UNLIMITED);
    assert_int_equal(conf.max_non_split_rounding_bytes, 20 * MIB);
    assert_int_equal(conf.large_segment_bytes, 20 * MIB);
    assert_false(conf.expandable_segments);
    assert_true(conf.garbage_collection_threshold == 0.0);
    assert_true(conf.per_process_memory_fraction < 0.0);
    assert_int_equal(conf.roundup_power2_divisions[0], 0);
    (void)parse(NULL);
}

static void test_conf__reads_every_key(void **state)
{
    (void)state;
    const me_alloc_conf conf = parse(
        " backend:native, max_split_size_mb : 1 28,"
        "max_non_split_rounding_mb:64,large_segment_size_mb:32,"
        "garbage_collection_threshold:0.6,expandable_segments:True,"
        "per_process_memory_fraction:0.25,release_lock_on_cudamalloc:True,"
        "pinned_use_cuda_host_register:False,pinned_num_register_threads:8,"
        "pinned_use_background_threads:True,pinned_reserve_segment_size_mb:1,"
        "graph_capture_record_stream_reuse:False,"
        "throw_on_cudamalloc_oom:False,");
    assert_int_equal(conf.max_split_bytes, 128 * MIB);
    assert_int_equal(conf.max_non_split_rounding_bytes, 64 * MIB);
    assert_int_equal(conf.large_segment_bytes, 32 * MIB);
    assert_true(conf.garbage_collection_threshold == 0.6);
    assert_true(conf.per_process_memory_fraction == 0.25);
    assert_true(conf.expandable_segments);
    assert_true(
        parse("per_process_memory_fraction:0.0").per_process_memory_fraction ==
        0.0);
    assert_true(
        parse("per_process_memory_fraction:1.0").per_process_memory_fraction ==
        1.0);
    assert_int_equal(parse("large_segment_size_mb:12").large_segment_bytes,
                     12 * MIB);
}

static void test_conf__roundup_lists(void **state)
{
    (void)state;
    me_alloc_conf conf = parse("roundup_power2_divisions:4");
    assert_int_equal(conf.roundup_power2_divisions[0], 4);
    assert_int_equal(conf.roundup_power2_divisions[15], 4);
    conf = parse("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]");
    assert_int_equal(conf.roundup_power2_divisions[0], 1);
    assert_int_equal(conf.roundup_power2_divisions[8], 1);
    assert_int_equal(conf.roundup_power2_divisions[9], 2);
    /* `>` fills from the last interval that was named, over its own value */
    assert_int_equal(conf.roundup_power2_divisions[10], 8);
    assert_int_equal(conf.roundup_power2_divisions[15], 8);
    conf = parse("roundup_power2_divisions:[64:8,131072:0]");
    assert_int_equal(conf.roundup_power2_divisions[3], 8);
    assert_int_equal(conf.roundup_power2_divisions[7], 0);
    assert_int_equal(conf.roundup_power2_divisions[15], 0);
}

static void test_conf__refuses(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {"max_split:1", "Unrecognized key 'max_split'"},
        {"expandable_segments", "expected ':'"},
        {"expandable_segments:true", "expected 'True' or 'False'"},
        {"expandable_segments:True False", "got 'TrueFalse'"},
        {"max_split_size_mb:19", "below large_segment_size_mb"},
        {"max_split_size_mb:9", "must be >= 10"},
        {"max_split_size_mb:-1", "not a whole number"},
        {"max_split_size_mb:", "not a whole number"},
        {"max_split_size_mb:99999999999999999999", "not a whole number"},
        {"max_split_size_mb:64x", "not a whole number"},
        {"max_non_split_rounding_mb:19", "must be >= 20"},
        {"garbage_collection_threshold:1.0", "(0.0, 1.0)"},
        {"garbage_collection_threshold:nan", "(0.0, 1.0)"},
        {"garbage_collection_threshold:1e400", "'1e400' is out of the range"},
        {"per_process_memory_fraction:1e-400", "'1e-400' is out of the range"},
        {"garbage_collection_threshold:x", "not a number"},
        {"per_process_memory_fraction:1.5", "[0.0, 1.0]"},
        {"per_process_memory_fraction:-0.1", "[0.0, 1.0]"},
        {"roundup_power2_divisions:3", "not a power of 2"},
        {"roundup_power2_divisions:[100:2]", "interval 100"},
        {"roundup_power2_divisions:[128:3]", "divisions 3"},
        {"roundup_power2_divisions:[128:2", "expected ','"},
        {"roundup_power2_divisions:[128:2;256:4]", "not a whole number"},
        {"backend:hip", "options are native"},
        {"expandable_segments:True max_split_size_mb:64", "got '"},
        {"large_segment_size_mb:2097152", "larger than any card"},
        {"pinned_num_register_threads:3", "a power of 2 of at most 128"},
        {"pinned_num_register_threads:256", "a power of 2 of at most 128"},
        {"pinned_num_register_threads:0", "a power of 2 of at most 128"},
        {"pinned_reserve_segment_size_mb:0", "must be >= 1"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_diag diag = {0};
        me_alloc_conf conf = {.large_segment_bytes = 7};
        const me_status status =
            me_alloc_conf_parse(cases[i].text, &diag, &conf);
        const bool is_said = strstr(diag.text, cases[i].says) != NULL;
        if (status != ME_ERR_CONFIG || !is_said) {
            print_error("'%s': %d '%s'\n", cases[i].text, status, diag.text);
        }
        assert_int_equal(status, ME_ERR_CONFIG);
        assert_true(is_said);
        assert_int_equal(conf.large_segment_bytes, 7);
    }
    me_alloc_conf conf = {0};
    assert_int_equal(
        me_alloc_conf_parse("backend:cudaMallocAsync", NULL, &conf),
        ME_ERR_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conf__empty_is_default),
        cmocka_unit_test(test_conf__reads_every_key),
        cmocka_unit_test(test_conf__roundup_lists),
        cmocka_unit_test(test_conf__refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
