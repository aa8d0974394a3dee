/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/nearest.h"
#include "job.h"

static void test_nearest__counts_edits(void **state)
{
    (void)state;

    static const struct {
        const char *a;
        const char *b;
        size_t edits;
    } cases[] = {
        {"", "", 0},
        {"", "abc", 3},
        {"kitten", "sitting", 3},
        {"tensor", "tensr", 1},
        {"tensor", "tesnor", 1},
        {"abc", "abc", 0},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(me_edit_distance(cases[i].a, cases[i].b),
                         cases[i].edits);
        assert_int_equal(me_edit_distance(cases[i].b, cases[i].a),
                         cases[i].edits);
    }
}

static void test_nearest__finds_options(void **state)
{
    (void)state;
    assert_string_equal(me_option_nearest("model.num_layer")->name,
                        "model.num_layers");
    assert_string_equal(me_option_nearest("num_attention_heads")->name,
                        "model.num_attention_heads");
    assert_string_equal(me_option_nearest("train.tensor")->name,
                        "parallel.tensor");
    assert_null(me_option_nearest("something.else_entirely"));
    assert_null(me_option_nearest(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nearest__counts_edits),
        cmocka_unit_test(test_nearest__finds_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
