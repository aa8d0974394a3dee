/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/size.h"
#include "support/test.h"

static void test_size__overflow_sticks(void **state)
{
    (void)state;
    const uint64_t lost = me_size_mul(UINT64_C(1) << 40, UINT64_C(1) << 40);
    assert_false(me_size_is_valid(lost));
    assert_false(me_size_is_valid(me_size_add(lost, 1)));
    assert_false(me_size_is_valid(me_size_mul(lost, 0)));
    assert_false(me_size_is_valid(me_round_up(lost, 512)));
    assert_false(me_size_is_valid(me_div_up(512, 0)));
}

static void test_size__rounds_up(void **state)
{
    (void)state;
    assert_int_equal(me_round_up(0, 512), 0);
    assert_int_equal(me_round_up(1, 512), 512);
    assert_int_equal(me_round_up(512, 512), 512);
    assert_int_equal(me_div_up(10, 3), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_size__overflow_sticks),
        cmocka_unit_test(test_size__rounds_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
