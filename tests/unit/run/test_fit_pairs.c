/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/fit_internal.h"
#include "support/test.h"

/*
 * Of 100 bytes 50 are too many; the changes, by what they cost, save 10, 40, 40,
 * nothing and are refused. The first two are just enough, and so are the first and
 * the third; those come before the dearest pair, which saves more.
 */
static void test_fit_pairs__just_enough_is_promising(void **state)
{
    (void)state;
    me_fit_trial singles[] = {
        {.bytes = 90, .end = ME_FIT_OVER},   {.bytes = 60, .end = ME_FIT_OVER},
        {.bytes = 60, .end = ME_FIT_OVER},   {.bytes = 100, .end = ME_FIT_OVER},
        {.bytes = 1, .end = ME_FIT_REFUSED},
    };
    me_fit_run run = {.base_bytes = 100,
                      .excess_bytes = 50,
                      .singles = singles,
                      .n_singles = 5};
    me_fit_pair pairs[10];
    assert_int_equal(me_fit_pairs_make(&run, pairs), 3);
    const int32_t order[3][2] = {{0, 1}, {0, 2}, {1, 2}};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pairs[i].a, order[i][0]);
        assert_int_equal(pairs[i].b, order[i][1]);
        assert_true(pairs[i].is_promising);
    }
    run.excess_bytes = 51;
    assert_int_equal(me_fit_pairs_make(&run, pairs), 3);
    assert_int_equal(pairs[0].a, 1);
    assert_true(pairs[0].is_promising);
    assert_false(pairs[1].is_promising);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fit_pairs__just_enough_is_promising),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
