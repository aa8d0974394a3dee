/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "support/job.h"
#include "support/test.h"

#include <string.h>

typedef struct fixture {
    job job;
    me_transport *transport;
    me_diag diag;
    me_check_report report;
} fixture;

static int set_up(void **state)
{
    static fixture f;
    f = (fixture){.job = {.tp = 2, .dp = 2, .pp = 2}};
    *state = &f;
    for (int rank = 0; rank < job_size(&f.job); rank++) {
        job_begin_rank(&f.job, rank);
    }
    return me_transport_local_create(&f.transport) == ME_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    job_fini(&f->job);
    me_transport_destroy(f->transport);
    return 0;
}

static void play_all(fixture *f)
{
    for (int rank = 0; rank < job_size(&f->job); rank++) {
        job_play_rank(&f->job, rank);
    }
}

static void assert_mismatch(fixture *f, const char *text)
{
    const me_status status =
        job_check(f->transport, &f->job, &f->diag, &f->report);
    assert_string_equal(f->diag.text, text);
    assert_int_equal(status, ME_ERR_MISMATCH);
}

static void test_check__accepts_a_sound_job(void **state)
{
    fixture *f = *state;
    play_all(f);
    const me_status status =
        job_check(f->transport, &f->job, &f->diag, &f->report);
    assert_string_equal(f->diag.text, "");
    assert_int_equal(status, ME_OK);
    assert_int_equal(f->report.n_programs, 2);
    assert_int_equal(f->report.n_classes, 2);
    assert_true(f->report.is_replayed);
    assert_int_equal(f->report.replayed_calls, 10);
}

/* What was not kept is made anew where it is looked at. */
static void test_check__replays_calls_that_were_dropped(void **state)
{
    fixture *f = *state;
    play_all(f);
    f->job.drops_calls = true;
    const me_status status =
        job_check(f->transport, &f->job, &f->diag, &f->report);
    assert_string_equal(f->diag.text, "");
    assert_int_equal(status, ME_OK);
    assert_true(f->report.is_replayed);
    assert_int_equal(f->report.replayed_calls, 10);
}

/* A program that is not the same the second time is a bug, and is told. */
static void test_check__names_calls_that_change(void **state)
{
    fixture *f = *state;
    play_all(f);
    for (int rank = 0; rank < 8; rank++) {
        (void)ncclAllReduce(NULL, NULL, 1024, ncclBfloat16, ncclSum,
                            f->job.tensor[rank], NULL);
    }
    f->job.drops_calls = true;
    assert_int_equal(job_check(f->transport, &f->job, &f->diag, &f->report),
                     ME_ERR_INTERNAL);
    assert_string_equal(f->diag.text,
                        "a program makes other calls the second time");
}

static void test_check__names_swapped_collectives(void **state)
{
    fixture *f = *state;
    play_all(f);
    for (int rank = 0; rank < 8; rank++) {
        const bool is_swapped = rank == 3;
        for (int i = 0; i < 2; i++) {
            if ((i == 0) == is_swapped) {
                (void)ncclAllGather(NULL, NULL, 512, ncclBfloat16,
                                    f->job.tensor[rank], NULL);
            } else {
                (void)ncclAllReduce(NULL, NULL, 1024, ncclBfloat16, ncclSum,
                                    f->job.tensor[rank], NULL);
            }
        }
    }
    assert_mismatch(f, "ranks 2 and 3 of tensor group {2, 3} disagree on "
                       "collective 3: rank 2 makes ncclAllReduce of 1024 "
                       "bfloat16, rank 3 makes ncclAllGather of 512 bfloat16");
}

static void test_check__names_a_wrong_shape(void **state)
{
    fixture *f = *state;
    play_all(f);
    for (int rank = 0; rank < 8; rank++) {
        (void)ncclReduceScatter(NULL, NULL, rank == 5 ? 100 : 104, ncclFloat32,
                                ncclAvg, f->job.data[rank], NULL);
    }
    assert_mismatch(f, "ranks 5 and 7 of data group {5, 7} disagree on "
                       "collective 2: rank 5 makes ncclReduceScatter of 100 "
                       "float32 (avg), rank 7 makes ncclReduceScatter of 104 "
                       "float32 (avg)");
}

static void test_check__names_a_missing_collective(void **state)
{
    fixture *f = *state;
    play_all(f);
    (void)ncclBroadcast(NULL, NULL, 8, ncclInt64, 1, f->job.tensor[7], NULL);
    assert_mismatch(f, "ranks 6 and 7 of tensor group {6, 7} disagree on "
                       "collective 3: rank 6 makes no more, rank 7 makes "
                       "ncclBroadcast of 8 int64 with root 1");
}

static void test_check__names_a_send_without_a_receive(void **state)
{
    fixture *f = *state;
    play_all(f);
    (void)ncclSend(NULL, 77, ncclBfloat16, 1, f->job.pipeline[1], NULL);
    assert_mismatch(f, "ranks 1 and 5 of pipeline group {1, 5} disagree on "
                       "message 3 from rank 1 to rank 5: rank 1 makes ncclSend "
                       "of 77 bfloat16, rank 5 makes no ncclRecv");
}

static void test_check__names_a_receive_of_another_shape(void **state)
{
    fixture *f = *state;
    play_all(f);
    for (int rank = 0; rank < 4; rank++) {
        (void)ncclRecv(NULL, 10, ncclFloat32, 1, f->job.pipeline[rank], NULL);
        (void)ncclSend(NULL, rank == 2 ? 11 : 10, ncclFloat32, 0,
                       f->job.pipeline[rank + 4], NULL);
    }
    assert_mismatch(f, "ranks 6 and 2 of pipeline group {2, 6} disagree on "
                       "message 1 from rank 6 to rank 2: rank 6 makes ncclSend "
                       "of 11 float32, rank 2 makes ncclRecv of 10 float32");
}

static void test_check__names_a_communicator_that_one_lacks(void **state)
{
    fixture *f = *state;
    play_all(f);
    ncclComm_t second = job_comm(&f->job, 4, ME_GROUP_TENSOR);
    (void)ncclAllReduce(NULL, NULL, 5, ncclInt32, ncclMax, second, NULL);
    assert_mismatch(f, "ranks 4 and 5 of tensor group {4, 5} (communicator 2) "
                       "disagree on collective 1: rank 4 makes ncclAllReduce "
                       "of 5 int32 (max), rank 5 makes no more");
}

/* A rank's message to itself is a pair of calls in one section, and answered. */
static void test_check__accepts_a_message_to_oneself(void **state)
{
    fixture *f = *state;
    play_all(f);
    (void)ncclGroupStart();
    (void)ncclSend(NULL, 33, ncclBfloat16, 1, f->job.pipeline[5], NULL);
    (void)ncclRecv(NULL, 33, ncclBfloat16, 1, f->job.pipeline[5], NULL);
    (void)ncclGroupEnd();
    const me_status status =
        job_check(f->transport, &f->job, &f->diag, &f->report);
    assert_string_equal(f->diag.text, "");
    assert_int_equal(status, ME_OK);
}

static void test_check__names_a_message_to_oneself(void **state)
{
    fixture *f = *state;
    play_all(f);
    (void)ncclGroupStart();
    (void)ncclSend(NULL, 33, ncclBfloat16, 1, f->job.pipeline[5], NULL);
    (void)ncclRecv(NULL, 34, ncclBfloat16, 1, f->job.pipeline[5], NULL);
    (void)ncclGroupEnd();
    assert_mismatch(f, "ranks 5 and 5 of pipeline group {1, 5} disagree on "
                       "message 1 from rank 5 to rank 5: rank 5 makes ncclSend "
                       "of 33 bfloat16, rank 5 makes ncclRecv of 34 bfloat16");
}

/* With one call more than may be replayed nothing is said of waits. */
static void test_check__says_what_it_did_not_replay(void **state)
{
    fixture *f = *state;
    play_all(f);
    for (uint64_t most = 9; most <= 10; most++) {
        f->job.most_calls = most;
        assert_int_equal(job_check(f->transport, &f->job, &f->diag, &f->report),
                         ME_OK);
        assert_int_equal(f->report.is_replayed, most == 10);
        assert_int_equal(f->report.replayed_calls, most == 10 ? 10 : 0);
        assert_int_equal(me_check_unchecked(&f->report) == NULL, most == 10);
    }
}

/* Up to eight ranks of a group are named, of more the first three and the last. */
static void test_check__names_the_ends_of_large_groups(void **state)
{
    (void)state;
    me_str text = {0};
    me_comm_group group = {
        .kind = ME_GROUP_DATA, .start = 1, .stride = 2, .count = 8};
    me_comm_group_print(&group, &text);
    assert_string_equal(me_str_text(&text),
                        "data group {1, 3, 5, 7, 9, 11, 13, 15}");
    me_str_fini(&text);
    group.count = 9;
    me_comm_group_print(&group, &text);
    assert_string_equal(me_str_text(&text), "data group {1, 3, 5, ..., 17}");
    me_str_fini(&text);
}

static void test_check__wants_every_rank_once(void **state)
{
    fixture *f = *state;
    play_all(f);
    me_call_log_destroy(f->job.logs[6]);
    f->job.logs[6] = NULL;
    assert_int_equal(job_check(f->transport, &f->job, &f->diag, NULL),
                     ME_ERR_INTERNAL);
    assert_string_equal(f->diag.text, "rank 6 of 8 is simulated by nobody");
}

static void test_check__wants_sections_closed(void **state)
{
    fixture *f = *state;
    play_all(f);
    (void)ncclGroupStart();
    assert_int_equal(job_check(f->transport, &f->job, &f->diag, NULL),
                     ME_ERR_INTERNAL);
    assert_string_equal(f->diag.text, "an ncclGroupStart has no ncclGroupEnd");
    assert_int_equal(ncclGroupEnd(), ncclInvalidUsage);
}

static void test_check__survives_any_failed_allocation(void **state)
{
    fixture *f = *state;
    play_all(f);
    uint64_t nth = 1;
    const uint64_t lost = me_alloc_lost();
    me_status status = ME_ERR_NOMEM;
    while (status != ME_OK) {
        assert_true(nth < 10000);
        me_alloc_fail_at(nth++);
        status = job_check(f->transport, &f->job, &f->diag, NULL);
        me_alloc_fail_at(0);
        me_alloc_set_lost(lost, NULL); /* the transport is used again */
        assert_true(status == ME_OK || status == ME_ERR_NOMEM);
    }
    (void)ncclSend(NULL, 77, ncclBfloat16, 1, f->job.pipeline[1], NULL);
    for (nth = 1; status != ME_ERR_MISMATCH; nth++) {
        assert_true(nth < 10000);
        me_alloc_fail_at(nth);
        status = job_check(f->transport, &f->job, &f->diag, NULL);
        me_alloc_fail_at(0);
        me_alloc_set_lost(lost, NULL); /* the transport is used again */
        assert_true(status == ME_ERR_MISMATCH || status == ME_ERR_NOMEM);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_check__accepts_a_sound_job),
        TEST(test_check__replays_calls_that_were_dropped),
        TEST(test_check__names_calls_that_change),
        TEST(test_check__names_swapped_collectives),
        TEST(test_check__names_a_wrong_shape),
        TEST(test_check__names_a_missing_collective),
        TEST(test_check__names_a_send_without_a_receive),
        TEST(test_check__names_a_receive_of_another_shape),
        TEST(test_check__names_a_communicator_that_one_lacks),
        TEST(test_check__accepts_a_message_to_oneself),
        TEST(test_check__names_a_message_to_oneself),
        TEST(test_check__says_what_it_did_not_replay),
        cmocka_unit_test(test_check__names_the_ends_of_large_groups),
        TEST(test_check__wants_every_rank_once),
        TEST(test_check__wants_sections_closed),
        TEST(test_check__survives_any_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
