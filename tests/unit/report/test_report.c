/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/format.h"
#include "report/job_report.h"
#include "report/page.h"
#include "support/faults.h"
#include "support/test.h"
#include "tiny.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    TEXT_MAX = 1 << 16
};

static const me_terminal no_terminal = {.width = 0};

static const json_int_t scale = 1 << 26;

static me_status gather(const me_config *config, bool is_folded,
                        me_report **report_out)
{
    me_transport *transport = NULL;
    me_status status = me_transport_local_create(&transport);
    if (status == ME_OK) {
        me_diag diag = {0};
        status =
            me_tiny_gather(transport, config, is_folded, &diag, report_out);
    }
    me_transport_destroy(transport);
    return status;
}

/** The printed report, borrowed until the next one. */
static char *print(const me_report *report, me_format format)
{
    char name[] = "/tmp/memest-test-XXXXXX";
    const int descriptor = mkstemp(name);
    assert_true(descriptor >= 0);
    (void)close(descriptor);
    assert_int_equal(me_report_write(report, format, name, &no_terminal, NULL),
                     ME_OK);
    static char text[TEXT_MAX];
    FILE *stream = fopen(name, "r");
    assert_non_null(stream);
    text[fread(text, 1, TEXT_MAX - 1, stream)] = '\0';
    (void)fclose(stream);
    (void)unlink(name);
    return text;
}

/** MEMEST_UPDATE_GOLDEN=1 writes the expectation anew. */
static void expect_file(const char *name, const char *text)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", ME_EXPECTED, name);
    const char *is_updating = getenv("MEMEST_UPDATE_GOLDEN");
    if (is_updating != NULL && strcmp(is_updating, "1") == 0) {
        FILE *stream = fopen(path, "w");
        assert_non_null(stream);
        (void)fputs(text, stream);
        (void)fclose(stream);
        return;
    }
    static char expected[TEXT_MAX];
    FILE *stream = fopen(path, "r");
    assert_non_null(stream);
    expected[fread(expected, 1, TEXT_MAX - 1, stream)] = '\0';
    (void)fclose(stream);
    assert_string_equal(text, expected);
}

static void test_report__prints_what_is_expected(void **state)
{
    (void)state;
    const me_config config = me_tiny_config();
    me_report *report = NULL;
    assert_int_equal(gather(&config, true, &report), ME_OK);
    expect_file("tiny.txt", print(report, ME_FORMAT_TEXT));
    expect_file("tiny.json", print(report, ME_FORMAT_JSON));
    expect_file("tiny.csv", print(report, ME_FORMAT_CSV));
    me_report_destroy(report);
}

/* One part a rank, in any order, or one a class: the same report. */
static void test_report__does_not_depend_on_folding(void **state)
{
    (void)state;
    const me_config config = me_tiny_config();
    me_report *report = NULL;
    assert_int_equal(gather(&config, false, &report), ME_OK);
    assert_int_equal(report->n_results, 2);
    expect_file("tiny.txt", print(report, ME_FORMAT_TEXT));
    expect_file("tiny.json", print(report, ME_FORMAT_JSON));
    me_report_destroy(report);
}

static json_int_t integer_at(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static void test_report__writes_the_agreed_json(void **state)
{
    (void)state;
    const me_config config = me_tiny_config();
    me_report *report = NULL;
    assert_int_equal(gather(&config, true, &report), ME_OK);
    json_t *root = json_loads(print(report, ME_FORMAT_JSON), 0, NULL);
    assert_non_null(root);
    assert_int_equal(integer_at(root, "world_size"), TINY_WORLD);
    assert_string_equal(json_string_value(json_array_get(
                            json_object_get(root, "not_modelled"), 0)),
                        "--fp8-format");
    const json_t *rank = json_array_get(json_object_get(root, "ranks"), 3);
    assert_int_equal(integer_at(rank, "rank"), 3);
    assert_int_equal(integer_at(rank, "pp"), 1);
    assert_int_equal(integer_at(rank, "parameter_bytes"), 50);
    const json_t *peak = json_object_get(rank, "peak");
    assert_int_equal(integer_at(peak, "requested_bytes"), 1700 * scale);
    assert_true(json_is_null(json_object_get(peak, "allocated_bytes")));
    const char *key = NULL;
    const json_t *value = NULL;
    json_int_t sum = 0;
    json_object_foreach(json_object_get(peak, "by_category"), key, value)
    {
        sum += json_integer_value(value);
    }
    assert_int_equal(sum, 1700 * scale);
    const json_t *first =
        json_array_get(json_object_get(rank, "iterations"), 0);
    assert_int_equal(integer_at(first, "iteration"), 0);
    assert_int_equal(integer_at(first, "requested_bytes"), 1620 * scale);
    assert_true(
        json_is_null(json_object_get(json_object_get(rank, "limit"), "oom")));
    const json_t *verdict = json_object_get(root, "verdict");
    assert_true(json_is_true(json_object_get(verdict, "fits")));
    assert_string_equal(json_string_value(json_object_get(verdict, "risk")),
                        "fits");
    assert_int_equal(integer_at(verdict, "worst_rank"), 2);
    json_decref(root);
    me_report_destroy(report);
}

/** Is @p rank in the ranges of a record? */
static bool speaks_for(const json_t *record, json_int_t rank)
{
    size_t i = 0;
    const json_t *range = NULL;
    json_array_foreach(json_object_get(record, "ranks"), i, range)
    {
        if (json_integer_value(json_array_get(range, 0)) <= rank &&
            rank <= json_integer_value(json_array_get(range, 1))) {
            return true;
        }
    }
    return false;
}

/* Each rank is in one record, which says what the rank's own would. */
static void test_report__writes_json_by_class(void **state)
{
    (void)state;
    const me_config config = me_tiny_config();
    me_report *report = NULL;
    assert_int_equal(gather(&config, true, &report), ME_OK);
    json_t *all = json_loads(print(report, ME_FORMAT_JSON), 0, NULL);
    json_t *root = json_loads(print(report, ME_FORMAT_JSON_CLASSES), 0, NULL);
    assert_non_null(all);
    assert_non_null(root);
    json_t *records = json_object_get(root, "ranks");
    assert_int_equal(json_array_size(records), 2);
    for (size_t rank = 0; rank < TINY_WORLD; rank++) {
        json_t *own = json_array_get(json_object_get(all, "ranks"), rank);
        const bool is_second =
            speaks_for(json_array_get(records, 1), (json_int_t)rank);
        json_t *shared = json_copy(json_array_get(records, is_second ? 1 : 0));
        assert_true(speaks_for(shared, (json_int_t)rank));
        static const char *const places[] = {"rank", "tp", "dp"};
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
            (void)json_object_del(own, places[i]);
            (void)json_object_del(shared, places[i]);
        }
        (void)json_object_del(shared, "ranks");
        assert_true(json_equal(own, shared));
        json_decref(shared);
    }
    assert_string_equal(json_string_value(json_object_get(root, "json_ranks")),
                        "classes");
    (void)json_object_del(root, "json_ranks");
    (void)json_object_del(root, "ranks");
    (void)json_object_del(all, "ranks");
    assert_true(json_equal(root, all));
    json_decref(all);
    json_decref(root);
    me_report_destroy(report);
}

static void gather_parts(const me_report_part *parts, uint32_t n_parts,
                         const char *expected)
{
    const me_config config = me_tiny_config();
    const me_report_input input = {
        .config = &config, .version = "0.1.0", .world_size = 2};
    me_transport *transport = NULL;
    assert_int_equal(me_transport_local_create(&transport), ME_OK);
    me_report *report = NULL;
    me_diag diag = {0};
    assert_int_equal(
        me_report_gather(transport, &input, parts, n_parts, &diag, &report),
        ME_ERR_INTERNAL);
    assert_null(report);
    assert_non_null(strstr(diag.text, expected));
    me_transport_destroy(transport);
}

static void test_report__misses_no_rank(void **state)
{
    (void)state;
    me_rank_result *result = me_rank_result_create();
    const me_rank_place places[] = {{.rank = 0}, {.rank = 1}, {.rank = 2}};
    me_rank_result *const lent[] = {NULL, result};
    for (int i = 0; i < 2; i++) {
        const me_report_part parts[] = {{result, &places[0], 1, lent[i]},
                                        {result, &places[0], 2, lent[i]},
                                        {result, places, 3, lent[i]}};
        gather_parts(&parts[0], 1, "no result of rank 1");
        gather_parts(&parts[0], 2, "two results of rank 0");
        gather_parts(&parts[2], 1, "rank 2 in a world of 2");
    }
    me_rank_result_destroy(result);
}

/** Ranks that took nothing and know nothing still make a report. */
static void test_report__prints_empty_results(void **state)
{
    (void)state;
    const me_config config = me_tiny_config();
    const me_report_input input = {
        .config = &config, .version = "0.1.0", .world_size = 1};
    me_rank_result *result = me_rank_result_create();
    const me_rank_place place = {0};
    const me_report_part part = {result, &place, 1, NULL};
    me_transport *transport = NULL;
    assert_int_equal(me_transport_local_create(&transport), ME_OK);
    me_report *report = NULL;
    assert_int_equal(
        me_report_gather(transport, &input, &part, 1, NULL, &report), ME_OK);
    assert_non_null(strstr(print(report, ME_FORMAT_TEXT), "no capacity"));
    json_t *root = json_loads(print(report, ME_FORMAT_JSON), 0, NULL);
    assert_non_null(root);
    json_decref(root);
    me_report_destroy(report);
    me_transport_destroy(transport);
    me_rank_result_destroy(result);
}

/* What is lent is not copied; equal results are one all the same, and what is
 * printed is what it is of copies. */
static void test_report__lends_results(void **state)
{
    (void)state;
    const me_config config = me_tiny_config();
    const me_report_input input = {
        .config = &config, .version = "0.1.0", .world_size = 4};
    static const me_rank_place places[] = {
        {.rank = 3, .dp = 3}, {.rank = 0}, {.rank = 1}, {.rank = 2, .dp = 2}};
    me_rank_result *results[3] = {NULL, NULL, NULL};
    me_report_part parts[3];
    me_transport *transport = NULL;
    me_report *lent = NULL;
    me_report *copied = NULL;
    assert_int_equal(me_transport_local_create(&transport), ME_OK);
    for (int i = 0; i < 3; i++) {
        results[i] = me_rank_result_create();
        results[i]->parameters = i == 1 ? 7 : 5; // the last is as the first
        parts[i] = (me_report_part){results[i], &places[i], i == 2 ? 2 : 1,
                                    results[i]};
    }
    assert_int_equal(me_report_gather(transport, &input, parts, 3, NULL, &lent),
                     ME_OK);
    parts[0].lent = NULL;
    assert_int_equal(
        me_report_gather(transport, &input, parts, 3, NULL, &copied), ME_OK);
    assert_int_equal(lent->n_results, 2);
    assert_ptr_equal(lent->results[0], results[1]);
    assert_ptr_equal(lent->results[1], results[2]);
    assert_int_equal(lent->ranks[3].result, 1);
    static char text[TEXT_MAX];
    (void)snprintf(text, sizeof text, "%s", print(lent, ME_FORMAT_JSON));
    assert_string_equal(print(copied, ME_FORMAT_JSON), text);
    me_report_destroy(lent);
    me_report_destroy(copied);
    for (int i = 0; i < 3; i++) {
        me_rank_result_destroy(results[i]);
    }
    me_transport_destroy(transport);
}

static me_status report_all(void *context)
{
    const me_config config = me_tiny_config();
    me_report *report = NULL;
    (void)context;
    me_status status = gather(&config, true, &report);
    for (int format = ME_FORMAT_TEXT; format < ME_FORMAT_CHECK; format++) {
        const bool is_there =
            format != ME_FORMAT_HTML || me_page_is_available();
        if (status == ME_OK && is_there) {
            status = me_report_write(report, (me_format)format, "/dev/null",
                                     &no_terminal, NULL);
        }
    }
    me_report_destroy(report);
    return status;
}

static void test_report__survives_failing_memory(void **state)
{
    (void)state;
    me_sweep_faults(report_all, NULL, 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_report__prints_what_is_expected),
        cmocka_unit_test(test_report__does_not_depend_on_folding),
        cmocka_unit_test(test_report__writes_the_agreed_json),
        cmocka_unit_test(test_report__writes_json_by_class),
        cmocka_unit_test(test_report__misses_no_rank),
        cmocka_unit_test(test_report__prints_empty_results),
        cmocka_unit_test(test_report__lends_results),
        cmocka_unit_test(test_report__survives_failing_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
