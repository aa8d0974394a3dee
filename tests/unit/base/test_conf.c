/* SPDX-License-Identifier: BSD-3-Clause */
/* libconfig is given no text that makes it leak, wrap, or take its time. */
#include "base/conf.h"
#include "support/test.h"

#include <string.h>

static me_status read_text(const char *text, size_t length, me_diag *diag,
                           config_t *conf)
{
    config_init(conf);
    return me_conf_read("a.cfg", "a test", text, length, diag, conf);
}

static void expect_refused(const char *text, int line, const char *says)
{
    config_t conf;
    me_diag diag = {.status = ME_OK};
    assert_int_not_equal(read_text(text, strlen(text), &diag, &conf), ME_OK);
    if (strstr(diag.text, says) == NULL || diag.line != line) {
        fail_msg("%d: '%s' does not say '%s'", diag.line, diag.text, says);
    }
    config_destroy(&conf);
}

static void test_conf__numbers_need_no_suffix(void **state)
{
    (void)state;
    static const char text[] =
        "\xEF\xBB\xBF"
        "# a comment\na = 17179869184; b = -17179869184;\n"
        "c = [17179869184, 1L]; d = .5e+3; e = \"x\" \"y\"; f = (\"z\", 1);\n";
    config_t conf;
    me_diag diag = {.status = ME_OK};
    if (read_text(text, sizeof text - 1, &diag, &conf) != ME_OK) {
        fail_msg("%d: %s", diag.line, diag.text);
    }
    long long value = 0;
    const char *words = NULL;
    double number = 0;
    assert_true(config_lookup_int64(&conf, "a", &value) == CONFIG_TRUE);
    assert_true(value == 17179869184);
    assert_true(config_lookup_int64(&conf, "b", &value) == CONFIG_TRUE);
    assert_true(value == -17179869184);
    assert_true(config_lookup_int64(&conf, "c.[0]", &value) == CONFIG_TRUE);
    assert_true(value == 17179869184);
    assert_true(me_conf_number(config_lookup(&conf, "d"), &number));
    assert_true(number == 500);
    assert_true(config_lookup_string(&conf, "e", &words) == CONFIG_TRUE);
    assert_string_equal(words, "xy");
    config_destroy(&conf);
}

static void test_conf__refuses(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        int line;
        const char *says;
    } cases[] = {
        {"@include \".\"\n", 1, "the file of a test stands for itself"},
        {"c = 1, \"x\";", 1, "must follow a '='"},
        {"c = [1, \"x\"] \"y\";", 1, "must follow a '='"},
        {"c = 3; \"x\"", 1, "must follow a '='"},
        {"c = { \"x\" };", 1, "must follow a '='"},
        {"c = 9999999999999999999;", 1, "more than 64 bits"},
        {"\nc = 3 % 4;", 2, "stray '%'"},
        {"\nc = \xE2\x80\x9Cx\xE2\x80\x9D;", 2, "stray byte 0xE2"},
        {"a = 1;\n# two lines\nb = = 2;\n", 3, "at or before 'b = = 2L;'"},
        {"c = { a = 1;\n\n", 3, "at the end: is the file whole?"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expect_refused(cases[i].text, cases[i].line, cases[i].says);
    }
}

/* Each of these took libconfig many seconds. */
static void test_conf__limits(void **state)
{
    (void)state;
    me_str text = {0};
    for (int i = 0; i < 40000; i++) {
        me_str_printf(&text, "g%d = {};\n", i);
    }
    expect_refused(me_str_text(&text), 4097, "too many names in one group");
    me_str_fini(&text);
    for (int i = 0; i < 400; i++) { /* many groups may have many */
        me_str_printf(&text, "g%d = { a = 1; b = { c = 2; d = 3; }; };\n", i);
    }
    config_t conf;
    assert_int_equal(read_text(me_str_text(&text), text.length, NULL, &conf),
                     ME_OK);
    config_destroy(&conf);
    me_str_fini(&text);
    me_str_append(&text, "a = ");
    for (int i = 0; i < 40000; i++) {
        me_str_append(&text, "\"xy\" ");
    }
    expect_refused(me_str_text(&text), 1, "text in quotes is over 64 KiB");
    me_str_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conf__numbers_need_no_suffix),
        cmocka_unit_test(test_conf__refuses),
        cmocka_unit_test(test_conf__limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
