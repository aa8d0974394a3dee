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

/* An exchange is what its sends and receives would be, one by one. */
static void test_rank_comms__exchanges_rows(void **state)
{
    (void)state;
    const job j = {.tp = 1, .dp = 4, .pp = 1};
    const uint64_t sent[4] = {7, 9, 0, 2}; // rank 1's own are not looked at
    const uint64_t received[4] = {1, 5, 3, 0};
    me_call_log *logs[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        me_rank_comms *comms = NULL;
        assert_int_equal(me_call_log_create(&logs[i]), ME_OK);
        assert_int_equal(
            me_rank_comms_create(logs[i], 1, job_group_of, &j, &comms), ME_OK);
        for (int times = 0; times < 2; times++) {
            assert_int_equal(me_rank_comms_group_call(comms, true, NULL),
                             ME_OK);
            for (int k = 1; i == 0 && k < 4; k++) {
                const int peer = (1 + k) % 4;
                if (sent[peer] > 0) {
                    assert_int_equal(me_rank_comms_call(
                                         comms, ME_GROUP_DATA,
                                         ME_COLLECTIVE_SEND, ME_DTYPE_BFLOAT16,
                                         10 * sent[peer], peer, NULL),
                                     ME_OK);
                }
                if (received[peer] > 0) {
                    assert_int_equal(me_rank_comms_call(
                                         comms, ME_GROUP_DATA,
                                         ME_COLLECTIVE_RECV, ME_DTYPE_BFLOAT16,
                                         10 * received[peer], peer, NULL),
                                     ME_OK);
                }
            }
            if (i == 1) {
                assert_int_equal(me_rank_comms_exchange(comms, ME_GROUP_DATA,
                                                        ME_DTYPE_BFLOAT16, 10,
                                                        sent, received, NULL),
                                 ME_OK);
            }
            assert_int_equal(me_rank_comms_group_call(comms, false, NULL),
                             ME_OK);
        }
        me_rank_comms_destroy(comms);
    }
    assert_int_equal(logs[0]->n_calls, 8);
    assert_int_equal(logs[0]->n_channels, logs[1]->n_channels);
    assert_true(me_call_log_is_same(logs[0], logs[1]));
    assert_memory_equal(logs[0]->calls, logs[1]->calls,
                        8 * sizeof *logs[0]->calls);
    me_call_log_destroy(logs[0]);
    me_call_log_destroy(logs[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rank_comms__issues_every_collective),
        cmocka_unit_test(test_rank_comms__says_what_nccl_says),
        cmocka_unit_test(test_rank_comms__exchanges_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
