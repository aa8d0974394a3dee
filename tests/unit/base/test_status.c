/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/status.h"
#include "support/test.h"

/* What a failure is about goes with it, and not into the next one. */
static void test_status__flag_stays(void **state)
{
    (void)state;
    me_diag diag = {.status = ME_OK};
    const me_status status =
        me_fail_at(&diag, ME_ERR_CONFIG, "x.cfg", 3, "--lr x: must be one");

    assert_string_equal(diag.flag, "");
    assert_int_equal(me_fail_flag(&diag, status, "--lr"), ME_ERR_CONFIG);
    assert_int_equal(me_fail_missing(&diag, status), ME_ERR_CONFIG);
    assert_int_equal(me_fail_of(&diag, status, "LR=%s", "x"), ME_ERR_CONFIG);
    assert_int_equal(me_fail_behind(&diag, status, "line %d", 4),
                     ME_ERR_CONFIG);
    assert_string_equal(diag.text, "LR=x: --lr x: must be one (line 4)");
    assert_string_equal(diag.where, "x.cfg");
    assert_int_equal(diag.line, 3);
    assert_string_equal(diag.flag, "--lr");
    assert_true(diag.is_missing);

    assert_int_equal(me_fail(&diag, ME_ERR_IO, "cannot be read"), ME_ERR_IO);
    assert_string_equal(diag.flag, "");
    assert_false(diag.is_missing);
}

static void test_status__nobody_reads(void **state)
{
    (void)state;
    assert_int_equal(me_fail_flag(NULL, ME_ERR_IO, "--lr"), ME_ERR_IO);
    assert_int_equal(me_fail_missing(NULL, ME_ERR_IO), ME_ERR_IO);
    assert_int_equal(me_fail_of(NULL, ME_ERR_IO, "x"), ME_ERR_IO);
    assert_int_equal(me_fail_behind(NULL, ME_ERR_IO, "x"), ME_ERR_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status__flag_stays),
        cmocka_unit_test(test_status__nobody_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
