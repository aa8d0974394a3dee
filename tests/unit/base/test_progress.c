/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/progress.h"
#include "support/test.h"

static void check(uint32_t done, uint64_t passed_ms, const char *expected)
{
    me_progress progress = {.is_on = false};
    char line[80] = "";
    me_progress_begin(&progress, false, "programs", 40);
    const int length = me_progress_line(&progress, done, passed_ms, line);
    line[length] = '\0';
    assert_string_equal(line, expected);
}

static void test_progress__says_what_is_left(void **state)
{
    (void)state;
    check(10, 999, "");
    check(0, 5000, "");
    check(10, 1000, "  10 of 40 programs, 3 s left");
    check(39, 39000, "  39 of 40 programs, 1 s left");
    check(40, 40000, "  40 of 40 programs, 0 s left");
    check(41, 40000, "");
    me_progress progress = {
        .what = "candidates decided", .total = 40, .then = ""};
    char line[80] = "";
    line[me_progress_line(&progress, 10, 2500, line)] = '\0';
    assert_string_equal(line, "  10 of 40 candidates decided; 2 s so far");
    progress.what = "changes tried";
    progress.then = ", then others";
    line[me_progress_line(&progress, 10, 2500, line)] = '\0';
    assert_string_equal(line,
                        "  10 of 40 changes tried, then others; 2 s so far");
}

static void test_progress__shows_nothing_unasked(void **state)
{
    (void)state;
    me_progress progress = {.is_on = true};
    me_progress_begin(&progress, false, "programs", 2);
    assert_false(progress.is_on);
    me_progress_step(&progress);
    assert_int_equal(atomic_load(&progress.done), 0);
    me_progress_end(&progress);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_progress__says_what_is_left),
        cmocka_unit_test(test_progress__shows_nothing_unasked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
