/* SPDX-License-Identifier: BSD-3-Clause */
#include "alloc/id_map.h"
#include "alloc/replay.h"
#include "base/alloc.h"
#include "support/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

enum {
    MANY_ENTRIES = 60000,
    GROWTH_KIB = 16 << 10
};

static me_status replay(const char *text, const me_replay_options *options,
                        me_diag *diag, me_replay_summary *summary,
                        me_str *report)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    rewind(file);
    const me_status status =
        me_replay_file(options, file, "test", diag, summary, report);
    (void)fclose(file);
    return status;
}

static void expect(const char *text, const char *conf, uint64_t limit,
                   const char *const parts[])
{
    me_replay_options options = me_replay_options_default();
    options.format = ME_REPLAY_JSON;
    options.pool.limit_bytes = limit;
    options.conf_text = conf;
    assert_int_equal(me_alloc_conf_parse(conf, NULL, &options.pool.conf),
                     ME_OK);
    me_diag diag = {0};
    me_str report = {0};
    const me_status status = replay(text, &options, &diag, NULL, &report);
    if (status != ME_OK) {
        print_error("%s\n", diag.text);
    }
    assert_int_equal(status, ME_OK);
    for (size_t i = 0; parts[i] != NULL; i++) {
        if (strstr(me_str_text(&report), parts[i]) == NULL) {
            print_error("no %s in\n%s\n", parts[i], me_str_text(&report));
        }
        assert_non_null(strstr(me_str_text(&report), parts[i]));
    }
    me_str_fini(&report);
}

static void test_replay__recording(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "{\"name\": \"a \\\"b\\\"\", \"requested\": {\"current\": 1100, "
        "\"peak\": 1100}, \"allocated\": {\"current\": 1536, \"peak\": 1536}, "
        "\"active\": {\"current\": 1536, \"peak\": 1536}, \"reserved\": "
        "{\"current\": 2097152, \"peak\": 2097152}",
        "\"name\": \"late\", \"requested\": {\"current\": 1100, \"peak\": "
        "1100}, \"allocated\": {\"current\": 1024, \"peak\": 1536}, "
        "\"active\": {\"current\": 1536, \"peak\": 1536}",
        "\"events\": 9",
        "\"oom\": null",
        NULL,
    };
    expect("# a comment\n"
           "alloc\t100\tx\t0\r\n"
           "alloc\t1000\tan id that is longer than sixteen bytes\t0\n"
           "\n"
           "point\ta \"b\"\n"
           "free_requested\tx\n"
           "point\tlate\n"
           "free_completed\tx\n"
           "free_requested\tan id that is longer than sixteen bytes\n"
           "free_completed\tan id that is longer than sixteen bytes\n"
           "empty_cache\n",
           "", 0, parts);
}

static void test_replay__event_file(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "\"alloc_conf\": \"expandable_segments:True\"",
        "\"end\": {\"requested\": {\"current\": 7, \"peak\": 1048583}",
        "\"peak\": {\"requested\": 1048583, \"allocated\": 1049088", NULL};
    expect("alloc\t1048576\t0\t0\tactivation\tforward\tm\taten::mm\n"
           "alloc\t7\t1\t0\tactivation\tforward\tm\taten::mm\n"
           "free\t1048576\t0\t0\tactivation\tforward\tm\taten::mm\n",
           "expandable_segments:True", 0, parts);
}

static void test_replay__runs_out_of_memory(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "\"oom\": {\n    \"line\": 3, \"after_point\": \"start\", \"id\": "
        "\"b\"",
        "\"requested_bytes\": 20000000, \"tried_bytes\": 20971520, "
        "\"allocated_bytes\": 20971520",
        "\"num_alloc_retries\": 1", "Tried to allocate 20.00 MiB", NULL};
    expect("alloc\t20000000\ta\t0\npoint\tstart\nalloc\t20000000\tb\t0\n"
           "alloc\t1\tc\t0\n",
           "", 30000000, parts);
}

static void test_replay__refuses(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        const char *says;
        int line;
    } cases[] = {
        {"alloc\t1\ta\t0\nalloc\t1\ta\t0\n", "still in use: 'a'", 2},
        {"free_requested\tb\n", "without being in use: 'b'", 1},
        {"alloc\t1\ta\t0\nfree_requested\ta\nfree_requested\ta\n",
         "freed twice: 'a'", 3},
        {"alloc\tx\ta\t0\n", "not a number of bytes: 'x'", 1},
        {"alloc\t2\ta\t0\nfree\t1\ta\n",
         "freed with other bytes than it has: 'a'", 2},
        {"alloc\t2\ta\t0\nfree\tx\ta\n", "not a number of bytes: 'x'", 2},
        {"alloc\t18446744073709551616\ta\t0\n", "not a number of bytes", 1},
        {"alloc\t1\ta\t-1\n", "not a CUDA stream's number: '-1'", 1},
        {"alloc\t1\ta\n", "not a CUDA stream's number", 1},
        {"alloc\t1\n", "the id is missing", 1},
        {"alloc\t1\ta\t0\nalloc\t1\tb\t1", "the last line has no end", 2},
        {"alloc\t1\ta\t0\nfree\t1\ta", "the last line has no end", 2},
        {"\nfrobnicate\t1\n", "but got: 'frobnicate'", 2},
        {"point\n", "the id is missing", 1},
        {"take\tnobody\t1\n", "driver, mapped or local_memory", 1},
        {"take\tdriver\tx\n", "not a number of bytes", 1},
        {"{", "", 1},
        {"{}", "device_traces is missing", 0},
        {"{\"device_traces\": [[], [{}]]}", "entry 0: action is missing", 0},
        {"{\"device_traces\": [[{\"action\": \"x\"}]]}", "action is unknown",
         0},
        {"{\"device_traces\": [[{\"action\": \"oom\"}], [2]]}",
         "2 devices have a trace", 0},
        {"{\"device_traces\": 3}", "device_traces is no list", 0},
        {"{\"device_traces\": [[{\"action\": \"oom\", \"action\": 1}]]}",
         "an object has action twice", 0},
        {"{\"segments\": [{\"address\": 1}], \"device_traces\": [[]]}",
         "segments are not those", 0},
    };

    const me_replay_options options = me_replay_options_default();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_diag diag = {0};
        me_str report = {0};
        const me_status status =
            replay(cases[i].text, &options, &diag, NULL, &report);
        assert_true(status == ME_ERR_SYNTAX || status == ME_ERR_CONFIG);
        if (strstr(diag.text, cases[i].says) == NULL) {
            print_error("%s\n", diag.text);
        }
        assert_non_null(strstr(diag.text, cases[i].says));
        assert_int_equal(diag.line, cases[i].line);
        assert_int_equal(report.length, 0);
        me_str_fini(&report);
    }
}

static void test_replay__snapshot(void **state)
{
    (void)state;
    /* 1024 was there before and stays, 4096 was there and is freed */
    static const char *const parts[] = {
        "\"blocks_before_recording\": 2",
        "\"end\": {\"requested\": {\"current\": 1007, \"peak\": 1777}",
        "\"events\": 7", NULL};
    expect("{\"segments\": [{\"device\": 1, \"address\": 0, \"stream\": 0, "
           "\"blocks\": [{\"size\": 1024, \"state\": \"inactive\"}, "
           "{\"size\": 1024, \"requested_size\": 7, \"state\": "
           "\"active_allocated\"}, {\"size\": 1024, \"requested_size\": 1000, "
           "\"state\": \"active_allocated\"}]}], \"device_traces\": [[], ["
           "{\"action\": \"segment_alloc\", \"addr\": 0, \"size\": 1, "
           "\"stream\": 0},"
           "{\"action\": \"alloc\", \"addr\": 512, \"size\": 770, "
           "\"stream\": 0},"
           "{\"action\": \"free_requested\", \"addr\": 512, \"size\": 770, "
           "\"stream\": 0},"
           "{\"action\": \"free_completed\", \"addr\": 512, \"size\": 770, "
           "\"stream\": 0},"
           "{\"action\": \"free_completed\", \"addr\": 4096, \"size\": 1000, "
           "\"stream\": 0},"
           "{\"action\": \"alloc\", \"addr\": 2048, \"size\": 1000, "
           "\"stream\": 0}]]}",
           "", 0, parts);
}

/* By pool: 20 MiB of the large one of which 3 MiB are used, 2 MiB of the small one
 * of which 1024 are; peaks are of all points. */
static void test_replay__summary_by_pool(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "\"allocated_bytes\": {\"all\": {\"current\": 3146752, \"peak\": "
        "6292480, \"allocated\": 6292480, \"freed\": 3145728}, \"large_pool\": "
        "{\"current\": 3145728, \"peak\": 6291456, \"allocated\": 6291456, "
        "\"freed\": 3145728}, \"small_pool\": {\"current\": 1024, \"peak\": "
        "1024, \"allocated\": 1024, \"freed\": 0}}",
        "\"inactive_split_bytes\": {\"all\": {\"current\": 19921920, ",
        "\"segment\": {\"all\": {\"current\": 2, \"peak\": 2, ",
        "\"num_device_alloc\": 2", NULL};
    expect("alloc\t3145728\ta\t0\nalloc\t3145728\tb\t0\nalloc\t1000\tc\t0\n"
           "point\tp\nfree\t3145728\tb\t0\npoint\tq\n",
           "", 0, parts);
}

/* memest's own file: what was before counts, a late free is done later, a mark
 * leaves peaks alone, and what others take moves addresses alone. */
static void test_replay__own_file(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "\"requested\": {\"current\": 700, \"peak\": 1000}",
        "\"allocated\": {\"current\": 512, \"peak\": 1536}",
        "{\"name\": \"end\", \"requested\": {\"current\": 500, \"peak\": 1000}",
        "\"events\": 9",
        "\"segment_order\": \"modelled\"",
        NULL};
    expect("take\tdriver\t2097152\n"
           "earlier_alloc\t300\t1\t0\tparameter\tsetup\t\tempty\n"
           "earlier_alloc\t500\t2\t0\tparameter\tsetup\t\tempty\n"
           "alloc\t200\t3\t0\tactivation\tforward\t\tmm\n"
           "free\t200\t3\t0\tactivation\tforward\t\t\tlate\n"
           "free\t300\t1\t0\tparameter\tforward\t\t\n"
           "mark\tfwd0_begin\nfree_completed\t3\npoint\tend\n",
           "", 0, parts);
}

/* Keys sorted, as some writers have them: blocks come before the address of
 * their segment, and traces before segments. */
static void test_replay__snapshot_with_sorted_keys(void **state)
{
    (void)state;
    static const char *const parts[] = {"\"blocks_before_recording\": 1",
                                        "\"events\": 2", NULL};
    expect("{\"device_traces\": [[{\"action\": \"alloc\", \"addr\": 512, "
           "\"frames\": [{\"line\": 3}], \"size\": 9, \"stream\": 0}]], "
           "\"segments\": [{\"blocks\": [{\"requested_size\": 3, \"size\": "
           "512, \"state\": \"active_allocated\"}, {\"size\": 512, \"state\": "
           "\"active_allocated\"}], \"address\": 0, \"device\": 0, "
           "\"stream\": 0}]}",
           "", 0, parts);
}

static long peak_kib(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss;
}

/* A snapshot is never held: 30 MB of text, of which two blocks live at once,
 * must not show in the process. */
static void test_replay__snapshot_is_not_held(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    assert_non_null(file);
    (void)fputs("{\"device_traces\": [[", file);
    for (int i = 0; i < MANY_ENTRIES; i++) {
        (void)fprintf(file,
                      "%s{\"action\": \"%s\", \"addr\": %d, \"size\": 9, "
                      "\"stream\": 0, \"frames\": [",
                      i == 0 ? "" : ", ",
                      i % 2 == 0 ? "alloc" : "free_completed", i / 2 * 512);
        for (int frame = 0; frame < 8; frame++) {
            (void)fprintf(file,
                          "%s{\"name\": \"forward\", \"filename\": "
                          "\"layers.py\", \"line\": %d}",
                          frame == 0 ? "" : ", ", frame);
        }
        (void)fputs("]}", file);
    }
    (void)fputs("]]}", file);
    rewind(file);
    const me_replay_options options = me_replay_options_default();
    me_replay_summary summary = {0};
    me_str report = {0};
    const long before = peak_kib();
    assert_int_equal(
        me_replay_file(&options, file, "test", NULL, &summary, &report), ME_OK);
    assert_true(peak_kib() - before < GROWTH_KIB);
    assert_int_equal(summary.n_events, MANY_ENTRIES);
    assert_int_equal(summary.reserved_peak_bytes, 2 << 20);
    me_str_fini(&report);
    (void)fclose(file);
}

/* Two equal segments, the newer one below the older in the model. The ids say
 * that it was the other way: `a`, the older, was taken first again, and where
 * `b` came back shows it for the halves that nobody had seen before. */
static void test_replay__reads_order_off_the_recording(void **state)
{
    (void)state;
    static const char *const parts[] = {"\"segment_order\": \"recorded\"",
                                        "\"reserved\": 67108864", NULL};
    expect("alloc\t33554432\ta\t0\nalloc\t33554432\tb\t0\n"
           "free_requested\ta\nfree_completed\ta\n"
           "free_requested\tb\nfree_completed\tb\n"
           "alloc\t16777216\ta\t0\nalloc\t16777216\ta2\t0\n"
           "alloc\t33554432\tb\t0\n",
           "", 0, parts);
    static const char *const plain[] = {"\"segment_order\": \"modelled\"",
                                        "\"reserved\": 67108864", NULL};
    expect("alloc\t33554432\ta\t0\nalloc\t33554432\tb\t0\n"
           "free\t33554432\ta\t0\nfree\t33554432\tb\t0\n"
           "alloc\t16777216\ta\t0\nalloc\t16777216\ta2\t0\n"
           "alloc\t33554432\tb\t0\n",
           "", 0, plain);
}

static void fail_everywhere(const char *text)
{
    const me_replay_options options = me_replay_options_default();
    me_status status = ME_ERR_NOMEM;
    for (uint64_t n = 1; status == ME_ERR_NOMEM; n++) {
        me_diag diag = {0};
        me_str report = {0};
        me_alloc_fail_at(n);
        status = replay(text, &options, &diag, NULL, &report);
        me_alloc_fail_at(0);
        assert_true(status == ME_OK || status == ME_ERR_NOMEM);
        me_str_fini(&report);
    }
    assert_int_equal(status, ME_OK);
}

static void test_replay__survives_missing_memory(void **state)
{
    (void)state;
    fail_everywhere("alloc\t30000000\tan id that is quite long\t0\n"
                    "alloc\t3\tb\t0\npoint\tp\n");
    fail_everywhere(
        "{\"segments\": [{\"device\": 0, \"address\": 0, \"stream\": 0, "
        "\"blocks\": [{\"size\": 512, \"state\": \"active_allocated\"}]}], "
        "\"device_traces\": [[{\"action\": \"free_completed\", \"addr\": 512, "
        "\"size\": 9, \"stream\": 0}]]}");
}

static void test_id_map__holds_and_forgets(void **state)
{
    (void)state;
    me_id_map map = {0};
    char id[64];
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < 5000; i++) {
            const int n =
                snprintf(id, sizeof id, "%s%u",
                         i % 3 == 0 ? "a prefix of some length " : "", i);
            assert_null(me_id_map_find(&map, id, (size_t)n));
            bool is_new = false;
            me_id_value *value = NULL;
            assert_int_equal(
                me_id_map_add(&map, id, (size_t)n, &is_new, &value), ME_OK);
            assert_true(is_new);
            value->block = i + round;
            assert_int_equal(
                me_id_map_add(&map, id, (size_t)n, &is_new, &value), ME_OK);
            assert_false(is_new);
        }
        for (uint32_t i = 0; i < 5000; i++) {
            const uint32_t k = i * 7919 % 5000;
            const int n =
                snprintf(id, sizeof id, "%s%u",
                         k % 3 == 0 ? "a prefix of some length " : "", k);
            me_id_value *value = me_id_map_find(&map, id, (size_t)n);
            assert_non_null(value);
            assert_int_equal(value->block, k + round);
            me_id_map_remove(&map, value);
        }
        assert_int_equal(map.n_used, 0);
    }
    me_id_map_fini(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replay__recording),
        cmocka_unit_test(test_replay__event_file),
        cmocka_unit_test(test_replay__runs_out_of_memory),
        cmocka_unit_test(test_replay__refuses),
        cmocka_unit_test(test_replay__snapshot),
        cmocka_unit_test(test_replay__summary_by_pool),
        cmocka_unit_test(test_replay__own_file),
        cmocka_unit_test(test_replay__snapshot_with_sorted_keys),
        cmocka_unit_test(test_replay__snapshot_is_not_held),
        cmocka_unit_test(test_replay__reads_order_off_the_recording),
        cmocka_unit_test(test_replay__survives_missing_memory),
        cmocka_unit_test(test_id_map__holds_and_forgets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
