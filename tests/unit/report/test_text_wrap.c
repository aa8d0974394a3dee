/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/text_wrap.h"
#include "support/test.h"

static void check(const char *lines, me_terminal terminal, const char *expected)
{
    me_str text = {0};
    me_text_wrap(lines, &terminal, &text);
    assert_int_equal(me_str_status(&text), ME_OK);
    assert_string_equal(me_str_text(&text), expected);
    me_str_fini(&text);
}

static void test_wrap__leaves_what_is_no_terminal(void **state)
{
    (void)state;
    const char *const lines = "a title\n  a line that is longer than forty "
                              "columns are, and more\n\nend";
    check(lines, (me_terminal){.width = 0}, lines);
    check("", (me_terminal){.width = 80, .is_colored = true}, "");
}

static void test_wrap__breaks_at_blanks_and_indents(void **state)
{
    (void)state;
    const me_terminal narrow = {.width = 40};
    check("  a line that is longer than forty columns are, and more words\n",
          narrow,
          "  a line that is longer than forty\n      columns are, and more "
          "words\n");
    // fits to the column
    check("  a line that is exactly forty columns x\n", narrow,
          "  a line that is exactly forty columns x\n");
    // no blank: left whole
    check("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n", narrow,
          "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n");
    // a character of two bytes and an escape sequence are one column and none
    check("\xc2\xb1\xc2\xb1\xc2\xb1\xc2\xb1\xc2\xb1\xc2\xb1\xc2\xb1\xc2\xb1 "
          "\033[1;31maaaaaaaaaaaaaaaaaaaaaaaaaaa\033[0m bbb\n",
          narrow,
          "\xc2\xb1\xc2\xb1\xc2\xb1\xc2\xb1\xc2\xb1\xc2\xb1\xc2\xb1\xc2\xb1 "
          "\033[1;31maaaaaaaaaaaaaaaaaaaaaaaaaaa\033[0m bbb\n");
}

static void test_wrap__marks_titles_and_the_worst(void **state)
{
    (void)state;
    check("memest\n\nTitle\n  *  worst\n     other\n",
          (me_terminal){.width = 80, .is_colored = true},
          "\033[1mmemest\033[0m\n\n\033[1mTitle\033[0m\n\033[1m  *  "
          "worst\033[0m\n     other\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrap__leaves_what_is_no_terminal),
        cmocka_unit_test(test_wrap__breaks_at_blanks_and_indents),
        cmocka_unit_test(test_wrap__marks_titles_and_the_worst),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
