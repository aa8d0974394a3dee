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

enum {
    MEMBERS = 4,
    OWN = 1,
    WIDTH = 10
};

static const uint64_t rows_sent[MEMBERS] = {7, 9, 0, 2}; // not its own 9
static const uint64_t rows_received[MEMBERS] = {1, 5, 3, 0};

static void call_of_rows(me_rank_comms *comms, me_collective kind,
                         uint64_t rows, int peer)
{
    if (rows > 0) {
        assert_int_equal(me_rank_comms_call(comms, ME_GROUP_DATA, kind,
                                            ME_DTYPE_BFLOAT16, WIDTH * rows,
                                            peer, NULL),
                         ME_OK);
    }
}

static void exchange_one_by_one(me_rank_comms *comms)
{
    for (int k = 1; k < MEMBERS; k++) {
        const int peer = (OWN + k) % MEMBERS;
        call_of_rows(comms, ME_COLLECTIVE_SEND, rows_sent[peer], peer);
        call_of_rows(comms, ME_COLLECTIVE_RECV, rows_received[peer], peer);
    }
}

static void exchange_at_once(me_rank_comms *comms)
{
    assert_int_equal(me_rank_comms_exchange(comms, ME_GROUP_DATA,
                                            ME_DTYPE_BFLOAT16, WIDTH, rows_sent,
                                            rows_received, NULL),
                     ME_OK);
}

/** The log of two exchanges. */
static me_call_log *log_of(void (*exchange)(me_rank_comms *comms))
{
    const job j = {.tp = 1, .dp = MEMBERS, .pp = 1};
    me_call_log *log = NULL;
    me_rank_comms *comms = NULL;
    assert_int_equal(me_call_log_create(&log), ME_OK);
    assert_int_equal(me_rank_comms_create(log, OWN, job_group_of, &j, &comms),
                     ME_OK);
    for (int times = 0; times < 2; times++) {
        assert_int_equal(me_rank_comms_group_call(comms, true, NULL), ME_OK);
        exchange(comms);
        assert_int_equal(me_rank_comms_group_call(comms, false, NULL), ME_OK);
    }
    me_rank_comms_destroy(comms);
    return log;
}

/* An exchange is what its sends and receives would be, one by one. */
static void test_rank_comms__exchanges_rows(void **state)
{
    (void)state;
    me_call_log *each = log_of(exchange_one_by_one);
    me_call_log *whole = log_of(exchange_at_once);
    assert_int_equal(each->n_calls, 8);
    assert_int_equal(each->n_channels, whole->n_channels);
    assert_true(me_call_log_is_same(each, whole));
    assert_memory_equal(each->calls, whole->calls, 8 * sizeof *each->calls);
    me_call_log_destroy(each);
    me_call_log_destroy(whole);
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
