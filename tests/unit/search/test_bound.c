/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a job has no lower bound. */
#include "config/file.h"
#include "search/bound.h"
#include "support/test.h"

static void test_bound__of_what_is_left_out(void **state)
{
    (void)state;

    static const struct {
        me_reach lower;
        bool is_bound;
    } cases[] = {
        {ME_REACH_UNKNOWN, false}, {ME_REACH_NONE, true},
        {ME_REACH_SMALL, true},    {ME_REACH_SOME, false},
        {ME_REACH_MUCH, false},    {ME_REACH_ANY, false},
    };

    me_diag diag = {.status = ME_OK};
    me_job_card card;
    me_config *job = me_config_create();
    assert_non_null(job);
    assert_int_equal(
        me_config_read_file(job, GOLDEN "/compare/tiny.cfg", &diag), ME_OK);
    assert_int_equal(me_config_finish(job, 1, &diag), ME_OK);
    assert_int_equal(me_job_card_make(job, &diag, &card), ME_OK);
    const me_flag_list own = job->not_modelled;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_flag_note notes[2] = {
            {.flag = "--a", .effect = ME_HIGHER(ANY)},
            {.flag = "--b", .effect = {.lower = cases[i].lower}}};
        job->not_modelled = (me_flag_list){.flags = notes, .count = 2};
        const me_search_bound bound = me_search_bound_of(job, &card, NULL);
        assert_int_equal(bound.bytes > 0, cases[i].is_bound);
    }
    job->not_modelled = own;
    me_config_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound__of_what_is_left_out),
    };
    return cmocka_run_group_tests_name("bound", tests, NULL, NULL);
}
