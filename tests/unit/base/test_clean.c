/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/clean.h"
#include "base/status.h"
#include "base/str.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

static void test_clean__foreign_text(void **state)
{
    (void)state;

    static const char *const cases[][2] = {
        {"", ""},
        {"--seq-length 4096", "--seq-length 4096"},
        {"a\nb\r\tc\x7f", "a b  c "},
        {"\x1b[31mred", " [31mred"},
        {"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
         "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"\xff\xfe", "??"},
        {"cut \xe2\x82", "cut ??"},
        {"\xe2(\xa1", "?(?"},
        {"\xc0\xaf", "??"},           /* overlong */
        {"\xe0\x80\xaf", "???"},      /* overlong */
        {"\xed\xa0\x80", "???"},      /* a surrogate */
        {"\xf4\x90\x80\x80", "????"}, /* beyond Unicode */
        {"\xc2\x9b", "??"},           /* a control character of eight bits */
        {"\xc2\xa0", "\xc2\xa0"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "%s", cases[i][0]);
        assert_int_equal(me_text_is_clean(text),
                         strcmp(cases[i][0], cases[i][1]) == 0);
        me_text_clean(text);
        assert_string_equal(text, cases[i][1]);
        assert_true(me_text_is_clean(text));
    }
}

static void test_clean__messages(void **state)
{
    (void)state;
    me_diag diag = {0};
    (void)me_fail_at(&diag, ME_ERR_IO, "a\n\x1b.cfg", 3, "b\x01%s", "\xff");
    assert_string_equal(diag.where, "a  .cfg");
    assert_string_equal(diag.text, "b ?");
}

static void expect_csv(const char *field, size_t length, const char *expected)
{
    me_str text = {0};
    me_str_append(&text, "a,");
    me_str_append_csv(&text, field, length);
    assert_string_equal(me_str_text(&text) + 2, expected);
    me_str_fini(&text);
}

/* Names of points, variants and schedules are anybody's; numbers stay. */
static void test_clean__fields_of_csv(void **state)
{
    (void)state;
    expect_csv("plain", 5, "plain");
    expect_csv("", 0, "");
    expect_csv("a,\"b\"", 5, "\"a,\"\"b\"\"\"");
    expect_csv("=cmd()", 6, "'=cmd()");
    expect_csv("+cmd(),1", 8, "\"'+cmd(),1\"");
    expect_csv("-cmd()", 6, "'-cmd()");
    expect_csv("@SUM(A1)", 8, "'@SUM(A1)");
    expect_csv("--flag", 6, "'--flag");
    expect_csv("-", 1, "-");
    expect_csv("-1.5e3", 6, "-1.5e3");
    expect_csv("+2", 2, "+2");
    expect_csv("\033[31m\r\n\0x", 9, " [31m   x");
    expect_csv("\377\302\233\303\244", 5, "???\303\244");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clean__foreign_text),
        cmocka_unit_test(test_clean__messages),
        cmocka_unit_test(test_clean__fields_of_csv),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
