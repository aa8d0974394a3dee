/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/parse.h"
#include "support/test.h"

static void test_parse__u64(void **state)
{
    (void)state;
    uint64_t value = 7;
    assert_int_equal(me_parse_u64("0", &value), ME_OK);
    assert_int_equal(value, 0);
    assert_int_equal(me_parse_u64("18446744073709551615", &value), ME_OK);
    assert_true(value == UINT64_MAX);
    assert_int_equal(me_parse_u64("18446744073709551616", &value),
                     ME_ERR_OVERFLOW);
    assert_true(value == UINT64_MAX);
    const char *const wrong[] = {"",    "-1",  "+1",  " 1",    "1 ",
                                 "0x1", "1.0", "ten", "1e3",   "1_000",
                                 "\t4", "4\n", "१",   "12abc", "-"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(me_parse_u64(wrong[i], &value), ME_ERR_SYNTAX);
    }
}

static void test_parse__names(void **state)
{
    (void)state;
    assert_true(me_names_have("ntasks nodes", "nodes", 5));
    assert_true(me_names_have(" ntasks  nodes ", "ntasks=8", 6));
    assert_false(me_names_have("ntasks nodes", "node", 4));
    assert_false(me_names_have("ntasks", "ntasks nodes", 12));
    assert_false(me_names_have("", "", 0));
}

static void test_parse__bytes(void **state)
{
    (void)state;
    uint64_t bytes = 7;
    assert_int_equal(me_parse_bytes("512", &bytes), ME_OK);
    assert_int_equal(bytes, 512);
    assert_int_equal(me_parse_bytes("80GiB", &bytes), ME_OK);
    assert_true(bytes == UINT64_C(85899345920));
    assert_int_equal(me_parse_bytes("16777215TiB", &bytes), ME_OK);
    assert_int_equal(me_parse_bytes("16777216TiB", &bytes), ME_ERR_OVERFLOW);
    assert_int_equal(me_parse_bytes("99999999999999999999999GiB", &bytes),
                     ME_ERR_OVERFLOW);
    const char *const wrong[] = {"80GB", "80G",    "1.5GiB", "GiB", "",
                                 "-1",   "80 GiB", "80gib",  "10x", "8GiB "};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(me_parse_bytes(wrong[i], &bytes), ME_ERR_SYNTAX);
    }
}

static void test_parse__double(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        double value;
    } right[] = {
        {"0", 0.0},
        {"0.1", 0.1},
        {"1e-05", 1e-5},
        {"-2.5", -2.5},
        {".5", 0.5},
        {"5.", 5.0},
        {"1E3", 1000.0},
        {"+4", 4.0},
        {"0.01", 0.01},
        {"1e22", 1e22},
        {"1e-400", 0.0},
        {"0e999999", 0},
        {"0.0001", 1e-4},
        {"4294967296", 4294967296.0},
        {"100000000000000000000", 1e20},
        {"0.30000", 0.3},
    };

    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        double value = 7;
        assert_int_equal(me_parse_double(right[i].text, &value), ME_OK);
        assert_true(value == right[i].value);
    }
    const char *const wrong[] = {"",    ".",   "e1", "1e", "1e+", "nan",  "inf",
                                 "0x1", "1,5", " 1", "1 ", "--1", "1.2.3"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        double value = 7;
        assert_int_equal(me_parse_double(wrong[i], &value), ME_ERR_SYNTAX);
    }
    double value = 7;
    assert_int_equal(me_parse_double("1e400", &value), ME_ERR_OVERFLOW);
    assert_int_equal(me_parse_double("1e309", &value), ME_ERR_OVERFLOW);
}

static void test_parse__c_integer(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        me_status status;
        uint64_t value;
    } cases[] = {
        {"0", ME_OK, 0},          {"42", ME_OK, 42},
        {" +7", ME_OK, 7},        {"0x1F", ME_OK, 31},
        {"0XfF", ME_OK, 255},     {"010", ME_OK, 8},
        {"", ME_ERR_SYNTAX, 0},   {"-1", ME_ERR_SYNTAX, 0},
        {"0x", ME_ERR_SYNTAX, 0}, {"08", ME_ERR_SYNTAX, 0},
        {"4M", ME_ERR_SYNTAX, 0}, {"1 ", ME_ERR_SYNTAX, 0},
        {"1f", ME_ERR_SYNTAX, 0}, {"0x10000000000000000", ME_ERR_OVERFLOW, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t value = 0;
        assert_int_equal(me_parse_c_integer(cases[i].text, &value),
                         cases[i].status);
        assert_int_equal(value, cases[i].value);
    }
}

static void test_parse__lacking_unit(void **state)
{
    (void)state;
    assert_string_equal(me_lacking_unit("70"), "GiB");
    assert_string_equal(me_lacking_unit("1023"), "GiB");
    assert_string_equal(me_lacking_unit("1024"), "MiB");
    assert_string_equal(me_lacking_unit("81559"), "MiB"); /* nvidia-smi's */
    assert_string_equal(me_lacking_unit("1048575"), "MiB");
    assert_null(me_lacking_unit("1048576"));
    assert_null(me_lacking_unit("0"));
    assert_null(me_lacking_unit("70GiB"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse__c_integer),
        cmocka_unit_test(test_parse__lacking_unit),
        cmocka_unit_test(test_parse__u64),
        cmocka_unit_test(test_parse__names),
        cmocka_unit_test(test_parse__bytes),
        cmocka_unit_test(test_parse__double),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
