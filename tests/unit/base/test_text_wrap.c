/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/text_wrap.h"
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

static void test_entry__stands_beside_its_name_or_below(void **state)
{
    (void)state;
    me_str text = {.columns = 40};
    me_text_entry("  --set KEY", 14, "one option of many that there are",
                  &text);
    me_text_entry("  --variant A=B,C=D", 14, "beside the job's", &text);
    me_text_entry("a.name.of.an.option  word   ", 30, "what it is", &text);
    assert_string_equal(me_str_text(&text),
                        "  --set KEY   one option of many that\n"
                        "              there are\n"
                        "  --variant A=B,C=D\n"
                        "              beside the job's\n"
                        "a.name.of.an.option  word\n"
                        "      what it is\n");
    me_str_fini(&text);
    me_text_entry("a", 4, "of no terminal, in one line however long", &text);
    assert_string_equal(me_str_text(&text),
                        "a   of no terminal, in one line however long\n");
    me_str_fini(&text);
}

static void test_shell__lines_go_on_with_a_backslash(void **state)
{
    (void)state;
    static const char line[] =
        "  --one-flag 1 --another-flag 2 --one-more 3 --last";
    me_str text = {.columns = 42};
    me_text_wrap_shell(line, sizeof line - 1, 4, &text);
    assert_string_equal(me_str_text(&text),
                        "  --one-flag 1 --another-flag 2 \\\n"
                        "    --one-more 3 --last\n");
    me_str_fini(&text);
    me_text_wrap_shell(line, sizeof line - 1, 4, &text);
    assert_string_equal(
        me_str_text(&text),
        "  --one-flag 1 --another-flag 2 --one-more 3 --last\n");
    me_str_fini(&text);
}

/* Also on the narrowest terminal nothing is left to break once more. */
static void test_shell__has_room_for_its_backslash(void **state)
{
    (void)state;
    static const char line[] =
        "      --set recompute.granularity=full --set recompute.method=uniform";
    me_str text = {.columns = 40};
    me_text_wrap_shell(line, sizeof line - 1, 6, &text);
    assert_string_equal(me_str_text(&text),
                        "      --set recompute.granularity=full \\\n"
                        "      --set recompute.method=uniform\n");
    assert_int_equal(me_text_lines(me_str_text(&text), 40), 2);
    me_str_fini(&text);
}

static void test_wrap__ends_no_line_in_blanks(void **state)
{
    (void)state;
    const me_terminal terminal = {.width = 40};
    me_str text = {0};
    me_text_wrap("  decoder.layers.0-8 x9      bias_dropout_add\n", &terminal,
                 &text);
    assert_string_equal(me_str_text(&text),
                        "  decoder.layers.0-8 x9\n      bias_dropout_add\n");
    me_str_fini(&text);
}

static void test_lines__are_counted_as_broken(void **state)
{
    (void)state;
    assert_int_equal(me_text_lines("a\nb\n", 0), 2);
    assert_int_equal(
        me_text_lines("a line that is longer than forty columns are\nb\n", 40),
        3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrap__leaves_what_is_no_terminal),
        cmocka_unit_test(test_wrap__breaks_at_blanks_and_indents),
        cmocka_unit_test(test_wrap__marks_titles_and_the_worst),
        cmocka_unit_test(test_entry__stands_beside_its_name_or_below),
        cmocka_unit_test(test_shell__lines_go_on_with_a_backslash),
        cmocka_unit_test(test_shell__has_room_for_its_backslash),
        cmocka_unit_test(test_wrap__ends_no_line_in_blanks),
        cmocka_unit_test(test_lines__are_counted_as_broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
