/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/quantity.h"
#include "support/test.h"
#include "track/result.h"

static void expect(me_str *text, const char *expected)
{
    assert_string_equal(me_str_text(text), expected);
    me_str_fini(text);
}

static void test_units__writes_gib(void **state)
{
    (void)state;

    static const struct {
        uint64_t bytes;
        const char *expected;
    } cases[] = {
        {0, "0.000"},
        {UINT64_C(1) << 30, "1.000"},
        {(UINT64_C(1) << 30) - 1, "1.000"},
        {UINT64_C(536870), "0.000"},
        {UINT64_C(536871), "0.001"},
        {UINT64_C(85899345920), "80.000"},
        {UINT64_MAX - 1, "17179869184.000"},
        {ME_BYTES_UNKNOWN, "-"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        me_str text = {0};
        me_gib_append(&text, cases[i].bytes);
        expect(&text, cases[i].expected);
    }
}

static void test_units__groups_digits(void **state)
{
    (void)state;

    static const struct {
        uint64_t count;
        const char *expected;
    } cases[] = {
        {0, "0"},
        {999, "999"},
        {1000, "1,000"},
        {1002003, "1,002,003"},
        {UINT64_MAX - 1, "18,446,744,073,709,551,614"},
        {ME_BYTES_UNKNOWN, "-"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        me_str text = {0};
        me_count_append(&text, cases[i].count);
        expect(&text, cases[i].expected);
    }
}

static void test_units__writes_shares(void **state)
{
    (void)state;

    static const struct {
        uint64_t part;
        uint64_t whole;
        const char *percent;
        const char *bar;
    } cases[] = {
        {1, 3, "33.3 %", "###"},
        {2, 3, "66.7 %", "#######"},
        {3, 3, "100.0 %", "##########"},
        {0, 3, "0.0 %", ""},
        {0, 0, "-", ""},
        {UINT64_MAX / 2, UINT64_MAX - 1, "50.0 %", "#####"},
        {5, 2, "250.0 %", "##########"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        me_str text = {0};
        me_percent_append(&text, cases[i].part, cases[i].whole);
        expect(&text, cases[i].percent);
        me_bar_append(&text, cases[i].part, cases[i].whole, 10);
        expect(&text, cases[i].bar);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_units__writes_gib),
        cmocka_unit_test(test_units__groups_digits),
        cmocka_unit_test(test_units__writes_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
