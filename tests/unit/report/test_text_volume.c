/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "report/text.h"
#include "support/test.h"

#include <string.h>

/* What is called is listed, bytes or not: experts that get no token exchange
 * nothing, and take part all the same. */
static void test_text_volume__lists_calls_without_bytes(void **state)
{
    (void)state;
    me_rank_result *result = me_alloc(1, sizeof *result, "result");
    me_report_rank rank = {.result = 0};
    me_report report = {
        .world_size = 1, .results = &result, .n_results = 1, .ranks = &rank};
    me_str text = {0};
    assert_non_null(result);
    assert_int_equal(me_text_volume(&report, &text), ME_OK);
    assert_int_equal(text.length, 0);
    result->volume[ME_GROUP_EXPERT][ME_COLLECTIVE_ALL_TO_ALL].calls = 3;
    assert_int_equal(me_text_volume(&report, &text), ME_OK);
    assert_non_null(strstr(me_str_text(&text), "expert"));
    me_str_fini(&text);
    me_free(result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_volume__lists_calls_without_bytes),
    };
    return cmocka_run_group_tests_name("text_volume", tests, NULL, NULL);
}
