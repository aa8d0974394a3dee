/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/test.h"
#include "track/fold.h"

static void test_fold__joins_numbers(void **state)
{
    (void)state;
    static const char *const paths[] = {"a.0.b.1", "a.0.b.2", "a.1.b.1",
                                        "a.3.b.2", "a.10.b.1"};
    me_str name = {0};
    assert_int_equal(me_path_fold(paths, 5, &name), ME_OK);
    assert_string_equal(me_str_text(&name), "a.0-1,3,10.b.1-2");
    me_str_fini(&name);
}

static void test_fold__leaves_one_alone(void **state)
{
    (void)state;
    static const char *const paths[] = {"", "decoder.layers.7"};
    for (size_t i = 0; i < 2; i++) {
        me_str name = {0};
        assert_int_equal(me_path_fold(&paths[i], 1, &name), ME_OK);
        assert_string_equal(me_str_text(&name), paths[i]);
        me_str_fini(&name);
    }
}

static void test_fold__knows_what_is_like(void **state)
{
    (void)state;
    assert_true(me_path_is_like("a.0.b", "a.17.b"));
    assert_true(me_path_is_like("", ""));
    assert_false(me_path_is_like("a.0.b", "a.0"));
    assert_false(me_path_is_like("a.0", "a.x"));
    assert_false(me_path_is_like("a1", "a2"));
}

static void test_fold__orders_by_number(void **state)
{
    (void)state;
    assert_true(me_path_compare("a.2.b", "a.10.b") < 0);
    assert_true(me_path_compare("a.10.b", "a.2.c") < 0);
    assert_true(me_path_compare("a", "a.0") < 0);
    assert_int_equal(me_path_compare("a.1", "a.1"), 0);
}

static void test_fold__stops_after_some_ranges(void **state)
{
    (void)state;
    static const uint32_t numbers[] = {0, 1, 1, 4, 6};
    me_str text = {0};
    me_ranges_append(&text, numbers, 5, 2);
    assert_string_equal(me_str_text(&text), "0-1,4,...");
    me_str_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fold__joins_numbers),
        cmocka_unit_test(test_fold__leaves_one_alone),
        cmocka_unit_test(test_fold__knows_what_is_like),
        cmocka_unit_test(test_fold__orders_by_number),
        cmocka_unit_test(test_fold__stops_after_some_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
