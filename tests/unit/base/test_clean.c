/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/clean.h"
#include "base/status.h"
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clean__foreign_text),
        cmocka_unit_test(test_clean__messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
