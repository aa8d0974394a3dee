/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/yaml_number.h"
#include "base/yaml_text.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** What yaml.load() of PyYAML makes of plain scalars; NULL: no whole number. */
static void test_yaml_number__as_pyyaml(void **state)
{
    (void)state;

    static const char *const cases[][2] = {
        {"010", "8"},
        {"0", "0"},
        {"-017", "-15"},
        {"-0", "0"},
        {"+12", "12"},
        {"1_000", "1000"},
        {"0x2", "2"},
        {"0xfF", "255"},
        {"0b101", "5"},
        {"1:10", "70"},
        {"1:1:5", "3665"},
        {"-1:30", "-90"},
        {"18446744073709551615", "18446744073709551615"},
        {"18446744073709551616", NULL},
        {"08", NULL},
        {"1:60", NULL},
        {"1:123", NULL},
        {"0:10", NULL},
        {"1:", NULL},
        {"1.0", NULL},
        {"1e5", NULL},
        {"", NULL},
        {"-", NULL},
        {"0x", NULL},
        {"x", NULL},
        {"_1", NULL},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char number[ME_YAML_NUMBER] = "";
        if (me_yaml_number(cases[i][0], number) != (cases[i][1] != NULL)) {
            fail_msg("%s is %s", cases[i][0], number);
        }
        if (cases[i][1] != NULL) {
            assert_string_equal(number, cases[i][1]);
        }
    }
}

static void test_yaml__not_finite(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {".inf", "inf"}, {"+.Inf", "inf"},    {"-.INF", "-inf"},
        {".NaN", "nan"}, {"-.nan", NULL},     {".iNF", NULL},
        {"inf", NULL},   {".infinity", NULL}, {"", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *said = me_yaml_not_finite(cases[i][0]);
        assert_int_equal(said == NULL, cases[i][1] == NULL);
        if (said != NULL) {
            assert_string_equal(said, cases[i][1]);
        }
    }
}

static me_status parse(const char *text, char value_out[64], me_diag *diag)
{
    me_yaml yaml = {.count = 0};
    me_arena *arena = me_arena_create(4 << 20, "test");
    assert_non_null(arena);
    const me_status status =
        me_yaml_parse("f", text, strlen(text), arena, diag, &yaml);
    if (status == ME_OK && yaml.count > 0) {
        const me_yaml_leaf *last = &yaml.leaves[yaml.count - 1];
        (void)snprintf(value_out, 64, "%s", last->values[last->n_values - 1]);
    }
    me_arena_destroy(arena);
    return status;
}

static void test_yaml_text__reads(void **state)
{
    (void)state;

    static const char *const cases[][2] = {
        {"a: 010", "8"},
        {"a: '010'", "010"},
        {"a: [1, 0x10]", "16"},
        {"---\na: 1\n...\n", "1"},
        {"a: \"x\ty\"", "?"}, // a tab that is a word's own
        {"a: 1 #\tb\nc: 2", "2"},
        {"# \xc3\xa4\tb\n\xc3\xa4: 3", "3"},
        {"# ]]]]\na: '[[[['", "[[[["},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char value[64] = "";
        me_diag diag = {.status = ME_OK};
        if (parse(cases[i][0], value, &diag) != ME_OK) {
            fail_msg("%s: %s", cases[i][0], diag.text);
        }
        assert_string_equal(value, cases[i][1]);
    }
}

static void test_yaml_text__refuses(void **state)
{
    (void)state;

    static const char *const cases[][2] = {
        {"a: 1\n---\nb: 2", "a second document"},
        {"a: 1\n---\n", "a second document"},
        {"a:\t1", "a tab between words"},
        {"a:\n  b:\t1", "a tab between words"},
        {"\xc3\xa4: 0\na: 1\t", "a tab between words"},
        {"a\t: 1", "a tab between words"},
        {"a: [1,\t2]", "a tab between words"},
        {"a: [1", "is no YAML"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char value[64] = "";
        me_diag diag = {.status = ME_OK};
        assert_int_equal(parse(cases[i][0], value, &diag), ME_ERR_SYNTAX);
        if (strstr(diag.text, cases[i][1]) == NULL) {
            fail_msg("%s: %s", cases[i][0], diag.text);
        }
    }
}

/** A million brackets, which libyaml would be hours over. */
static void test_yaml_text__many_brackets_end_soon(void **state)
{
    (void)state;

    enum {
        N = 1000000
    };

    char *text = malloc(N + 4);
    assert_non_null(text);
    memcpy(text, "a: ", 3);
    memset(text + 3, '[', N);
    text[N + 3] = '\0';
    char value[64] = "";
    me_diag diag = {.status = ME_OK};
    assert_int_equal(parse(text, value, &diag), ME_ERR_SYNTAX);
    assert_non_null(strstr(diag.text, "deeper than a job is"));
    free(text);
}

/** 1, 0, or ? where the word is none of truth. */
static char truth_of(const char *word)
{
    const me_yaml_leaf leaf = {
        .values = &word, .n_values = 1, .is_plain = true};
    bool is_true = false;
    if (!me_yaml_bool(&leaf, &is_true)) {
        return '?';
    }
    return is_true ? '1' : '0';
}

/** PyYAML's resolver takes words in three ways of writing, and no others. */
static void test_yaml_text__truth(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"yes Yes YES true True TRUE on On ON", "1"},
        {"no No NO false False FALSE off Off OFF", "0"},
        {"y n Y N t yES oN tRUE 1 0", "?"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (const char *at = cases[i][0]; *at != '\0';) {
            char word[8];
            const size_t n = strcspn(at, " ");
            (void)snprintf(word, sizeof word, "%.*s", (int)n, at);
            assert_int_equal(truth_of(word), *cases[i][1]);
            at += n + (at[n] == ' ');
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_yaml__not_finite),
        cmocka_unit_test(test_yaml_number__as_pyyaml),
        cmocka_unit_test(test_yaml_text__reads),
        cmocka_unit_test(test_yaml_text__refuses),
        cmocka_unit_test(test_yaml_text__truth),
        cmocka_unit_test(test_yaml_text__many_brackets_end_soon),
    };
    return cmocka_run_group_tests_name("yaml_text", tests, NULL, NULL);
}
