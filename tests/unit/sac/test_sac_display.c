/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/parse.h"
#include "cases.h"
#include "sac/display.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

static void append_file(const char *path, me_str *text)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char line[1024];
    while (fgets(line, sizeof line, file) != NULL) {
        me_str_append(text, line);
    }
    assert_int_equal(fclose(file), 0);
}

static void append_case(const me_sac_stats *stats, me_str *text)
{
    me_sac_greedy g = {.n_ops = 0};
    assert_int_equal(me_sac_greedy_init(&g, stats, NULL), ME_OK);
    assert_int_equal(me_sac_display_append(text, stats, &g, true, NULL), ME_OK);
    assert_int_equal(me_sac_display_append(text, stats, &g, false, NULL),
                     ME_OK);
    me_sac_greedy_fini(&g);
}

/* Its groups hold operations of one name, since the order of a set of names
 * depends on Python's hash of the day. */
static void test_display__is_pythons(void **state)
{
    (void)state;
    FILE *file = fopen(GOLDEN_DIR "/sac_display_cases.tsv", "r");
    assert_non_null(file);
    static sac_case c;
    me_str text = {0};
    me_str expected = {0};
    while (me_sac_case_read(file, &c)) {
        append_case(&c.stats, &text);
    }
    assert_int_equal(fclose(file), 0);
    append_file(GOLDEN_DIR "/sac_display_cases.txt", &expected);
    assert_string_equal(me_str_text(&text), me_str_text(&expected));
    me_str_fini(&text);
    me_str_fini(&expected);
}

/* The set of four names is written in the order of the operations; the recording
 * of the day has it in another. */
static void test_display__of_foo(void **state)
{
    (void)state;
    me_sac_op ops[] = {
        {.name = "t", .is_view_like = true, .in_place_of = -1},
        {.name = "addmm",
         .runtime_ms = 1.5890142226581659e-06,
         .is_saved = true,
         .in_place_of = -1},
        {.name = "relu_", .bytes = 512, .is_saved = true, .in_place_of = 1},
        {.name = "cos_", .bytes = 512, .is_saved = true, .in_place_of = 1},
        {.name = "sin_", .bytes = 512, .is_saved = true, .in_place_of = 1}};
    const me_sac_stats stats = {.fqn = "Foo", .ops = ops, .n_ops = 5};
    static const char ours[] = "{'addmm', 'relu_', 'cos_', 'sin_'}";
    static const char theirs[] = "{'addmm', 'sin_', 'relu_', 'cos_'}";
    me_str text = {0};
    me_str expected = {0};
    append_case(&stats, &text);
    append_file(GOLDEN_DIR "/sac_display.txt", &expected);
    int count = 0;
    for (char *at = expected.text; (at = strstr(at, theirs)) != NULL; count++) {
        memcpy(at, ours, strlen(ours));
    }
    assert_int_equal(count, 2);
    assert_string_equal(me_str_text(&text), me_str_text(&expected));
    me_str_fini(&text);
    me_str_fini(&expected);
}

/* What takes no time has 1.80e+308 bytes a millisecond, which tabulate takes for
 * a word: it is no double any more. */
static void test_display__of_no_time(void **state)
{
    (void)state;
    me_sac_op ops[] = {
        {.name = "arange", .bytes = 512, .in_place_of = -1},
        {.name = "mm", .runtime_ms = 1250, .bytes = 512, .in_place_of = -1}};
    const me_sac_stats stats = {.fqn = "m", .ops = ops, .n_ops = 2};
    me_str text = {0};
    append_case(&stats, &text);
    assert_non_null(strstr(me_str_text(&text), "0  1.80e+308  False"));
    assert_non_null(strstr(me_str_text(&text), "1250  4.10e-01   False"));
    assert_non_null(strstr(me_str_text(&text), "Runtime: 1250.0 ms"));
    me_str_fini(&text);
}

static void test_display__refuses_to_divide_by_zero(void **state)
{
    (void)state;
    me_sac_op op = {.name = "mm", .runtime_ms = 1, .in_place_of = -1};
    const me_sac_stats stats = {.fqn = "a.b", .ops = &op, .n_ops = 1};
    me_sac_greedy g = {.n_ops = 0};
    me_str text = {0};
    assert_int_equal(me_sac_greedy_init(&g, &stats, NULL), ME_OK);
    assert_int_equal(me_sac_display_append(&text, &stats, &g, true, NULL),
                     ME_ERR_CONFIG);
    assert_string_equal(me_str_text(&text), "");
    me_sac_greedy_fini(&g);
    assert_true(me_path_is_within(stats.fqn, 2));
    assert_false(me_path_is_within(stats.fqn, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_display__is_pythons),
        cmocka_unit_test(test_display__of_foo),
        cmocka_unit_test(test_display__of_no_time),
        cmocka_unit_test(test_display__refuses_to_divide_by_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
