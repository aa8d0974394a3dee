/* SPDX-License-Identifier: BSD-3-Clause */
#include "sac/int_set.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE = 8192,
    FIELDS = 5
};

static void add_list(me_int_set *set, const char *text)
{
    while (*text != '\0' && *text != '-') {
        char *end = NULL;
        me_int_set_add(set, (int32_t)strtol(text, &end, 10));
        text = *end == ',' ? end + 1 : end;
    }
}

static void expect_order(const me_int_set *set, const char *expected)
{
    char said[LINE] = "";
    size_t length = 0;
    uint32_t position = 0;
    int32_t value = 0;
    while (me_int_set_next(set, &position, &value)) {
        length += (size_t)snprintf(said + length, sizeof said - length,
                                   length == 0 ? "%d" : ",%d", (int)value);
    }
    assert_string_equal(length == 0 ? "-" : said, expected);
    assert_int_equal(me_int_set_status(set), ME_OK);
}

/** a, b, a, a - b and a | b in CPython's orders. */
static void check(char *fields[FIELDS])
{
    me_int_set a = {.slots = NULL};
    me_int_set b = {.slots = NULL};
    me_int_set both = {.slots = NULL};
    add_list(&a, fields[0]);
    add_list(&both, fields[0]);
    add_list(&b, fields[1]);
    expect_order(&a, fields[2]);
    me_int_set_subtract(&a, &b);
    expect_order(&a, fields[3]);
    me_int_set_update(&both, &b);
    expect_order(&both, fields[4]);
    me_int_set_fini(&a);
    me_int_set_fini(&b);
    me_int_set_fini(&both);
}

static void test_int_set__has_pythons_order(void **state)
{
    (void)state;
    FILE *file = fopen(GOLDEN_DIR "/python_sets.tsv", "r");
    assert_non_null(file);
    char line[LINE];
    int count = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        char *fields[FIELDS] = {NULL};
        char *rest = NULL;
        char *field = line[0] == '#' ? NULL : strtok_r(line, "\t\n", &rest);
        for (int i = 0; field != NULL && i < FIELDS; i++) {
            fields[i] = field;
            field = strtok_r(NULL, "\t\n", &rest);
        }
        if (fields[FIELDS - 1] != NULL) {
            check(fields);
            count++;
        }
    }
    assert_int_equal(fclose(file), 0);
    assert_int_equal(count, 50);
}

static void test_int_set__is_a_set(void **state)
{
    (void)state;
    me_int_set set = {.slots = NULL};
    const me_int_set empty = {.slots = NULL};
    assert_false(me_int_set_has(&set, 0));
    me_int_set_update(&set, &empty);
    me_int_set_subtract(&set, &empty);
    assert_int_equal(set.used, 0);
    me_int_set_add(&set, 3);
    me_int_set_add(&set, 3);
    me_int_set_add(&set, 11); /* the same slot of eight */
    assert_int_equal(set.used, 2);
    assert_true(me_int_set_has(&set, 11));
    assert_false(me_int_set_has(&set, 19));
    me_int_set_update(&set, &set);
    assert_int_equal(set.used, 2);
    me_int_set_fini(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_int_set__has_pythons_order),
        cmocka_unit_test(test_int_set__is_a_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
