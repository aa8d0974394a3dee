/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/call_log_impl.h"
#include "collectives/rank_comms.h"
#include "support/job.h"
#include "support/test.h"

static void test_rank_comms__issues_every_collective(void **state)
{
    (void)state;
    const job j = {.tp = 2, .dp = 2, .pp = 2};
    me_call_log *log = NULL;
    me_rank_comms *comms = NULL;
    assert_int_equal(me_call_log_create(&log), ME_OK);
    assert_int_equal(me_rank_comms_create(log, 5, job_group_of, &j, &comms),
                     ME_OK);
    for (int i = 0; i < ME_COLLECTIVE_COUNT; i++) {
        assert_int_equal(
            me_rank_comms_call(comms, i < 6 ? ME_GROUP_DATA : ME_GROUP_PIPELINE,
                               (me_collective)i, ME_DTYPE_BOOL, 8, 0, NULL),
            ME_OK);
        assert_int_equal(log->calls[i].kind, i);
        assert_int_equal(log->calls[i].dtype, ncclUint8);
    }
    assert_int_equal(log->n_comms, 2);
    assert_int_equal(log->comms[1]->index, 1);
    me_rank_comms_destroy(comms);
    me_call_log_destroy(log);
}

static void test_rank_comms__says_what_nccl_says(void **state)
{
    (void)state;
    const job j = {.tp = 2, .dp = 2, .pp = 2};
    me_call_log *log = NULL;
    me_rank_comms *comms = NULL;
    me_diag diag = {0};
    assert_int_equal(me_call_log_create(&log), ME_OK);
    assert_int_equal(me_rank_comms_create(log, 0, job_group_of, &j, &comms),
                     ME_OK);
    assert_int_equal(me_rank_comms_call(comms, ME_GROUP_EXPERT,
                                        ME_COLLECTIVE_ALL_TO_ALL,
                                        ME_DTYPE_INT64, 1, -1, &diag),
                     ME_ERR_INTERNAL);
    assert_string_equal(diag.text, "rank 0 has no expert group to call on");
    assert_int_equal(me_rank_comms_call(comms, ME_GROUP_PIPELINE,
                                        ME_COLLECTIVE_SEND, ME_DTYPE_INT64, 1,
                                        2, &diag),
                     ME_ERR_INTERNAL);
    assert_string_equal(diag.text,
                        "NCCL: invalid argument: Send : invalid root 2 (root "
                        "should be in the 0..2 range)");
    assert_int_equal(me_rank_comms_group_call(comms, false, &diag),
                     ME_ERR_INTERNAL);
    assert_int_equal(me_rank_comms_group_call(comms, true, &diag), ME_OK);
    assert_int_equal(me_rank_comms_group_call(comms, false, &diag), ME_OK);
    me_rank_comms_destroy(comms);
    me_call_log_destroy(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rank_comms__issues_every_collective),
        cmocka_unit_test(test_rank_comms__says_what_nccl_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
