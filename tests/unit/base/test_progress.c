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
    check(0, 999, "");
    check(0, 5000, "  0 of 40 programs; 5 s so far");
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

/** No escape sequences: a terminal need not know any (TERM=dumb). */
static void test_progress__writes_over_what_is_there(void **state)
{
    (void)state;
    char text[ME_PROGRESS_BYTES];
    assert_int_equal(me_progress_write("  1 of 2", 8, 12, text), 13);
    assert_string_equal(text, "\r  1 of 2    ");
    me_progress_write("  1 of 2", 8, 3, text);
    assert_string_equal(text, "\r  1 of 2");
    // cut where the terminal ends
    me_progress_write("  1 of 2", 5, 5, text);
    assert_string_equal(text, "\r  1 o");
    me_progress_write("", 0, 4, text);
    assert_string_equal(text, "\r    \r");
}

static void test_progress__goes_on_with_what_is_read(void **state)
{
    (void)state;
    me_progress progress = {.is_on = true};
    me_progress_part whole = {
        .progress = &progress, .bytes = 1000, .steps = 50};
    me_progress_part part = me_progress_share(&whole, 7, 300);
    assert_int_equal(part.steps, 35);
    me_progress_reach(&part, 8);
    assert_int_equal(atomic_load(&progress.done), 0);
    me_progress_reach(&part, 9);
    assert_int_equal(atomic_load(&progress.done), 1);
    me_progress_reach(&part, 150);
    assert_int_equal(atomic_load(&progress.done), 17);
    me_progress_reach(&part, 100); // read anew
    me_progress_reach(&part, UINT64_MAX);
    assert_int_equal(atomic_load(&progress.done), 35);
    part = me_progress_share(&whole, 3, 0); // nobody knows how long it is
    me_progress_reach(&part, 1000);
    part = me_progress_share(NULL, 3, 1000);
    me_progress_reach(&part, 1000);
    me_progress_reach(NULL, 1000);
    assert_int_equal(atomic_load(&progress.done), 35);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_progress__says_what_is_left),
        cmocka_unit_test(test_progress__shows_nothing_unasked),
        cmocka_unit_test(test_progress__writes_over_what_is_there),
        cmocka_unit_test(test_progress__goes_on_with_what_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
