/* SPDX-License-Identifier: BSD-3-Clause */
/* What Python 3 says of the same texts. */
#include "base/python_number.h"
#include "support/test.h"

static void expect(const char *text, const char *whole, const char *number)
{
    me_str normal = {0};
    assert_int_equal(me_python_int(text, &normal), whole != NULL);
    if (whole != NULL) {
        assert_string_equal(me_str_text(&normal), whole);
    }
    me_str_fini(&normal);
    assert_int_equal(me_python_float(text, &normal), number != NULL);
    if (number != NULL) {
        assert_string_equal(me_str_text(&normal), number);
    }
    me_str_fini(&normal);
}

static void test_python__numbers(void **state)
{
    (void)state;
    expect("1_000", "1000", "1000");
    expect("732_421_875", "732421875", "732421875");
    expect("+5", "5", "5");
    expect(" -7\n", "-7", "-7");
    expect("007", "7", "7");
    expect("0_0", "0", "0");
    expect("-0", "0", "-0");
    expect("1_0.0", NULL, "10.0");
    expect("1_0.0_5e1_0", NULL, "10.05e10");
    expect(".5", NULL, "0.5");
    expect("5.", NULL, "5.0");
    expect("-.5e-07", NULL, "-0.5e-7");
    expect("1e5", NULL, "1e5");
    expect("1E+5", NULL, "1e5");
}

static void test_python__no_numbers(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",   "_1",   "1_",    "1__0", "1_.0", "1._0", "e5",
        "1e", "1e_5", "1 0",   "- 5",  "+-5",  "0x10", "1,0",
        ".",  "-",    "1e5.0", "five", "1_e5", "inf",  "nan"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        expect(texts[i], NULL, NULL);
    }
}

/* Python 3.12's int() and float() of the same: Unicode's decimal digits. */
static void test_python__digits_of_any_script(void **state)
{
    (void)state;
    expect("\xef\xbc\x95\xef\xbc\x90\xef\xbc\x90", "500", "500"); /* U+FF15 */
    expect("\xd9\xa3", "3", "3");                                 /* U+0663 */
    expect("-\xd9\xa1_0", "-10", "-10");                          /* U+0661 */
    expect("\xe3\x80\x80\x35\xc2\xa0", "5", "5");         /* blanks around */
    expect("\xf0\x9d\x9f\x8e\xf0\x9d\x9f\x97", "9", "9"); /* U+1D7CE, 9 */
    expect("\xf0\x91\xbd\x99", "9", "9");                 /* U+11F59 */
    expect("\xef\xbc\x91.\xef\xbc\x95"
           "e\xd9\xa3",
           NULL, "1.5e3");
}

/* Signs and points of other scripts, digits that are no decimal ones, bytes that
 * are no UTF-8 or a form of it that is too long. */
static void test_python__no_digits_of_any_script(void **state)
{
    (void)state;
    static const char *const texts[] = {"\xef\xbc\x8d\x35",
                                        "1\xef\xbc\x8e\x35",
                                        "\xc2\xb2",
                                        "\xe2\x85\xa4",
                                        "\xe4\xb8\x80",
                                        "\xd9",
                                        "\xd9\x33",
                                        "\xef\xbc",
                                        "\xe0\x99\xa3",
                                        "\xc0\xb5",
                                        "\xff"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        expect(texts[i], NULL, NULL);
    }
}

static void expect_not_finite(const char *text, const char *normal)
{
    me_str number = {0};
    assert_int_equal(me_python_not_finite(text, &number), normal != NULL);
    assert_string_equal(me_str_text(&number), normal == NULL ? "" : normal);
    me_str_fini(&number);
}

static void test_python__not_finite(void **state)
{
    (void)state;
    expect_not_finite("inf", "inf");
    expect_not_finite(" +Infinity\n", "inf");
    expect_not_finite("-INF", "-inf");
    expect_not_finite("-NaN", "nan");
    expect_not_finite("infinit", NULL);
    expect_not_finite("in", NULL);
    expect_not_finite("nan1", NULL);
    expect_not_finite("--inf", NULL);
    expect_not_finite("1e5", NULL);
    expect_not_finite("1e400", "inf");
    expect_not_finite(" -1_0e3_99 ", "-inf");
    expect_not_finite("1e99999999999", "inf");
    expect_not_finite("1.7976931348623157e308", NULL);
    expect_not_finite("1e-400", NULL);
    expect_not_finite("\xe3\x80\x80inf", "inf");
    expect_not_finite("1e\xd9\xa4\xd9\xa0\xd9\xa0", "inf");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_python__numbers),
        cmocka_unit_test(test_python__no_numbers),
        cmocka_unit_test(test_python__digits_of_any_script),
        cmocka_unit_test(test_python__no_digits_of_any_script),
        cmocka_unit_test(test_python__not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
