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

/* Two streams; only their addresses matter. */
static char stream_a_place, stream_b_place;
#define STREAM_A ((cudaStream_t)(void *)&stream_a_place)
#define STREAM_B ((cudaStream_t)(void *)&stream_b_place)

static void begin(fixture *f, int tp, int dp, int pp)
{
    *f = (fixture){.job = {.tp = tp, .dp = dp, .pp = pp}};
    for (int rank = 0; rank < job_size(&f->job); rank++) {
        job_begin_rank(&f->job, rank);
    }
    assert_int_equal(me_transport_local_create(&f->transport), ME_OK);
}

static void end(fixture *f)
{
    job_fini(&f->job);
    me_transport_destroy(f->transport);
}

static void expect(fixture *f, me_status expected, const char *text)
{
    const me_status status =
        job_check(f->transport, &f->job, &f->diag, &f->report);
    char seen[ME_DIAG_TEXT];
    memcpy(seen, f->diag.text, sizeof seen);
    end(f);
    assert_string_equal(seen, text);
    assert_int_equal(status, expected);
}

static void exchange(fixture *f, int rank, int peer, bool is_send_first)
{
    ncclComm_t comm = f->job.pipeline[rank];
    if (is_send_first) {
        (void)ncclSend(NULL, 8, ncclBfloat16, peer, comm, NULL);
    }
    (void)ncclRecv(NULL, 8, ncclBfloat16, peer, comm, NULL);
    if (!is_send_first) {
        (void)ncclSend(NULL, 8, ncclBfloat16, peer, comm, NULL);
    }
}

static void test_replay__two_receives_hang(void **state)
{
    (void)state;
    fixture f;
    begin(&f, 1, 1, 2);
    exchange(&f, 0, 1, false);
    exchange(&f, 1, 0, false);
    expect(&f, ME_ERR_MISMATCH,
           "NCCL would hang: rank 0 waits in ncclRecv of 8 bfloat16 from rank "
           "1 (pipeline group {0, 1}); rank 1 waits in ncclRecv of 8 bfloat16 "
           "from rank 0 (pipeline group {0, 1})");
}

static void test_replay__send_meets_receive(void **state)
{
    (void)state;
    fixture f;
    begin(&f, 1, 1, 2);
    exchange(&f, 0, 1, true);
    exchange(&f, 1, 0, false);
    expect(&f, ME_OK, "");
}

static void test_replay__grouped_exchange_progresses(void **state)
{
    (void)state;
    fixture f;
    begin(&f, 1, 1, 2);
    for (int rank = 0; rank < 2; rank++) {
        (void)ncclGroupStart();
        exchange(&f, rank, 1 - rank, true);
        (void)ncclGroupEnd();
    }
    expect(&f, ME_OK, "");
}

/* A ring of four in which all send first: NCCL's sends are not buffered. */
static void test_replay__ring_of_sends_hangs(void **state)
{
    (void)state;
    fixture f;
    begin(&f, 1, 1, 4);
    for (int rank = 0; rank < 4; rank++) {
        ncclComm_t comm = f.job.pipeline[rank];
        (void)ncclSend(NULL, 1, ncclInt8, (rank + 1) % 4, comm, NULL);
        (void)ncclRecv(NULL, 1, ncclInt8, (rank + 3) % 4, comm, NULL);
    }
    expect(&f, ME_ERR_MISMATCH,
           "NCCL would hang: rank 0 waits in ncclSend of 1 int8 to rank 1 "
           "(pipeline group {0, 1, 2, 3}); rank 1 waits in ncclSend of 1 int8 "
           "to rank 2 (pipeline group {0, 1, 2, 3}); rank 2 waits in ncclSend "
           "of 1 int8 to rank 3 (pipeline group {0, 1, 2, 3}); rank 3 waits in "
           "ncclSend of 1 int8 to rank 0 (pipeline group {0, 1, 2, 3})");
}

/* Rank 0 reduces over its tensor group first, rank 1 over its data group. */
static void cross_groups(fixture *f)
{
    begin(f, 2, 2, 1);
    for (int rank = 0; rank < 4; rank++) {
        const bool is_tensor_first = rank == 0 || rank == 3;
        for (int i = 0; i < 2; i++) {
            (void)ncclAllReduce(NULL, NULL, 4, ncclFloat32, ncclSum,
                                (i == 0) == is_tensor_first
                                    ? f->job.tensor[rank]
                                    : f->job.data[rank],
                                STREAM_A);
        }
    }
}

static void expect_crossed(fixture *f)
{
    expect(f, ME_ERR_MISMATCH,
           "NCCL would hang: rank 0 waits in ncclAllReduce of 4 float32 for "
           "rank 1 (tensor group {0, 1}); rank 1 waits in ncclAllReduce of 4 "
           "float32 for rank 3 (data group {1, 3}); rank 3 waits in "
           "ncclAllReduce of 4 float32 for rank 2 (tensor group {2, 3}); rank "
           "2 waits in ncclAllReduce of 4 float32 for rank 0 (data group {0, "
           "2})");
}

static void test_replay__crossed_groups_hang(void **state)
{
    (void)state;
    fixture f;
    cross_groups(&f);
    expect_crossed(&f);
}

/* A later collective of the tensor group on a free stream does not take the
 * place of the one that hangs: a communicator's calls begin in their order. */
static void test_replay__a_communicator_keeps_its_order(void **state)
{
    (void)state;
    fixture f;
    cross_groups(&f);
    for (int rank = 0; rank < 4; rank++) {
        (void)ncclAllReduce(NULL, NULL, 4, ncclFloat32, ncclSum,
                            f.job.tensor[rank], STREAM_B);
    }
    expect_crossed(&f);
}

static void cross_on_streams(fixture *f, bool is_waiting)
{
    begin(f, 2, 2, 1);
    for (int rank = 0; rank < 4; rank++) {
        const bool is_tensor_first = rank == 0 || rank == 3;
        for (int i = 0; i < 2; i++) {
            const bool is_tensor = (i == 0) == is_tensor_first;
            if (is_waiting && i == 1) {
                (void)me_call_log_wait(f->job.logs[rank],
                                       is_tensor ? STREAM_A : STREAM_B,
                                       is_tensor ? STREAM_B : STREAM_A);
            }
            (void)ncclAllReduce(NULL, NULL, 4, ncclFloat32, ncclSum,
                                is_tensor ? f->job.tensor[rank]
                                          : f->job.data[rank],
                                is_tensor ? STREAM_A : STREAM_B);
        }
    }
}

static void test_replay__streams_go_on_alone(void **state)
{
    (void)state;
    fixture f;
    cross_on_streams(&f, false);
    expect(&f, ME_OK, "");
}

static void test_replay__waiting_streams_hang(void **state)
{
    (void)state;
    fixture f;
    cross_on_streams(&f, true);
    const me_status status = job_check(f.transport, &f.job, &f.diag, NULL);
    const bool is_cycle =
        strstr(f.diag.text, "NCCL would hang: rank 0 waits in") != NULL;
    end(&f);
    assert_int_equal(status, ME_ERR_MISMATCH);
    assert_true(is_cycle);
}

static void test_replay__nothing_reduced_holds_nobody_up(void **state)
{
    (void)state;
    fixture f;
    begin(&f, 2, 2, 1);
    for (int rank = 0; rank < 4; rank++) {
        const bool is_tensor_first = rank == 0 || rank == 3;
        for (int i = 0; i < 2; i++) {
            (void)ncclAllReduce(NULL, NULL, 0, ncclFloat32, ncclSum,
                                (i == 0) == is_tensor_first ? f.job.tensor[rank]
                                                            : f.job.data[rank],
                                NULL);
        }
    }
    expect(&f, ME_OK, "");
}

/* Ranks that share a log, in a world of 16,384: tensor 8, data 128,
 * pipeline 16, as many calls as a step of Llama-3-405B makes. */
static void play_stage(job *j, int rank, int stage)
{
    const int n = 128;
    for (int i = 0; i < n; i++) {
        if (stage > 0) {
            (void)ncclRecv(NULL, 1 << 20, ncclBfloat16, stage - 1,
                           j->pipeline[rank], NULL);
        }
        for (int layer = 0; layer < 64; layer++) {
            (void)ncclAllGather(NULL, NULL, 1 << 20, ncclBfloat16,
                                j->tensor[rank], NULL);
        }
        if (stage < j->pp - 1) {
            (void)ncclSend(NULL, 1 << 20, ncclBfloat16, stage + 1,
                           j->pipeline[rank], NULL);
        }
    }
    (void)ncclReduceScatter(NULL, NULL, 1 << 20, ncclFloat32, ncclAvg,
                            j->data[rank], NULL);
}

static me_status check_shared(job *j, me_diag *diag, me_check_report *report)
{
    const int n = job_size(j);
    me_transport *transport = NULL;
    me_status status = me_transport_local_create(&transport);
    int *ranks = me_alloc((size_t)n, sizeof *ranks, "test");
    int *log_of = me_alloc((size_t)n, sizeof *log_of, "test");
    const me_call_log *logs[JOB_MOST];
    for (int i = 0; i < j->pp; i++) {
        logs[i] = j->logs[i];
    }
    for (int i = 0; i < n; i++) {
        ranks[i] = i;
        log_of[i] = i / (j->tp * j->dp);
    }
    const me_check_part part = {.world_size = n,
                                .logs = logs,
                                .n_logs = j->pp,
                                .ranks = ranks,
                                .log_of = log_of,
                                .n_ranks = n,
                                .group_of = job_group_of,
                                .self = j};
    if (status == ME_OK) {
        status = me_collectives_check(transport, &part, diag, report);
    }
    me_transport_destroy(transport);
    me_free(ranks);
    me_free(log_of);
    return status;
}

static void test_replay__shared_logs_of_a_large_world(void **state)
{
    (void)state;
    job j = {.tp = 8, .dp = 128, .pp = 16};
    for (int stage = 0; stage < j.pp; stage++) {
        me_comm_group group = {0};
        const int rank = stage * j.tp * j.dp;
        assert_int_equal(me_call_log_create(&j.logs[stage]), ME_OK);
        ncclComm_t *comms[3] = {&j.tensor[stage], &j.data[stage],
                                &j.pipeline[stage]};
        const me_group_kind kinds[3] = {ME_GROUP_TENSOR, ME_GROUP_DATA,
                                        ME_GROUP_PIPELINE};
        for (int i = 0; i < 3; i++) {
            const int index = job_group_of(&j, rank, kinds[i], &group);
            assert_int_equal(
                me_comm_create(j.logs[stage], &group, index, NULL, comms[i]),
                ME_OK);
        }
        play_stage(&j, stage, stage);
    }
    me_diag diag = {0};
    me_check_report report = {0};
    const me_status status = check_shared(&j, &diag, &report);
    job_fini(&j);
    assert_string_equal(diag.text, "");
    assert_int_equal(status, ME_OK);
    assert_int_equal(report.n_classes, 16);
    assert_true(report.is_replayed);
}

/* One log for two ranks whose partners differ: ranks 0 and 1 run the same
 * program, but one of two equal programs on the other side is reversed. */
static void test_replay__equal_programs_with_other_partners(void **state)
{
    (void)state;
    fixture f;
    begin(&f, 2, 1, 2);
    for (int rank = 0; rank < 4; rank++) {
        const int peer = rank < 2 ? 1 : 0;
        ncclComm_t comm = f.job.pipeline[rank];
        if (rank < 3) {
            exchange(&f, rank, peer, rank < 2);
        } else {
            (void)ncclSend(NULL, 8, ncclBfloat16, peer, comm, NULL);
            (void)ncclRecv(NULL, 8, ncclBfloat16, peer, comm, NULL);
        }
    }
    expect(&f, ME_ERR_MISMATCH,
           "NCCL would hang: rank 1 waits in ncclSend of 8 bfloat16 to rank 3 "
           "(pipeline group {1, 3}); rank 3 waits in ncclSend of 8 bfloat16 "
           "to rank 1 (pipeline group {1, 3})");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replay__two_receives_hang),
        cmocka_unit_test(test_replay__send_meets_receive),
        cmocka_unit_test(test_replay__grouped_exchange_progresses),
        cmocka_unit_test(test_replay__ring_of_sends_hangs),
        cmocka_unit_test(test_replay__crossed_groups_hang),
        cmocka_unit_test(test_replay__a_communicator_keeps_its_order),
        cmocka_unit_test(test_replay__streams_go_on_alone),
        cmocka_unit_test(test_replay__waiting_streams_hang),
        cmocka_unit_test(test_replay__nothing_reduced_holds_nobody_up),
        cmocka_unit_test(test_replay__shared_logs_of_a_large_world),
        cmocka_unit_test(test_replay__equal_programs_with_other_partners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
