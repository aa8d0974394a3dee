/* SPDX-License-Identifier: BSD-3-Clause */
/* A job of eight ranks, spread over the processes: whatever their number, all
 * of them get the same verdict in the same words. */
#include "base/alloc.h"
#include "support/job.h"
#include "support/mpi.h"
#include "support/test.h"

#include <string.h>

static me_transport *transport;

typedef void (*extra_calls)(job *j, int rank);

/* Play the job and what @p extra adds, check it, and compare the outcome. */
static void run_job(extra_calls extra, me_status expected, const char *text)
{
    const int size = me_transport_size(transport);
    job j = {.tp = 2, .dp = 1, .pp = 4};
    me_diag verdict = {0};
    me_diag diag = {0};
    me_check_report report = {0};
    for (int rank = me_transport_rank(transport); rank < 8; rank += size) {
        job_begin_rank(&j, rank);
        job_play_rank(&j, rank);
        extra(&j, rank);
    }
    const me_status status = job_check(transport, &j, &diag, &report);
    job_fini(&j);
    MPI_EXPECT(&verdict, status == expected);
    MPI_EXPECT(&verdict, strcmp(diag.text, text) == 0);
    MPI_EXPECT(&verdict, status != ME_OK || report.n_programs == 3);
    MPI_EXPECT(&verdict, status != ME_OK || report.n_classes == 4);
    MPI_EXPECT(&verdict, status != ME_OK || report.replayed_calls == 24);
    if (verdict.status != ME_OK) {
        (void)fprintf(stderr, "%s\n", diag.text);
    }
    assert_true(mpi_agree(transport, &verdict));
}

static void no_extra(job *j, int rank)
{
    (void)j;
    (void)rank;
}

static void test_mpi_check__sound_job(void **state)
{
    (void)state;
    run_job(no_extra, ME_OK, "");
}

static void swap_collectives(job *j, int rank)
{
    if (rank != 5) {
        (void)ncclAllReduce(NULL, NULL, 64, ncclFloat32, ncclMax,
                            j->tensor[rank], NULL);
    }
    (void)ncclAllGather(NULL, NULL, 32, ncclFloat32, j->tensor[rank], NULL);
    if (rank == 5) {
        (void)ncclAllReduce(NULL, NULL, 64, ncclFloat32, ncclMax,
                            j->tensor[rank], NULL);
    }
}

static void test_mpi_check__swapped_collectives(void **state)
{
    (void)state;
    run_job(swap_collectives, ME_ERR_MISMATCH,
            "ranks 4 and 5 of tensor group {4, 5} disagree on collective 3: "
            "rank 4 makes ncclAllReduce of 64 float32 (max), rank 5 makes "
            "ncclAllGather of 32 float32");
}

static void wrong_shape(job *j, int rank)
{
    (void)ncclReduceScatter(NULL, NULL, rank == 6 ? 12 : 16, ncclBfloat16,
                            ncclSum, j->tensor[rank], NULL);
}

static void test_mpi_check__wrong_shape(void **state)
{
    (void)state;
    run_job(wrong_shape, ME_ERR_MISMATCH,
            "ranks 6 and 7 of tensor group {6, 7} disagree on collective 3: "
            "rank 6 makes ncclReduceScatter of 12 bfloat16, rank 7 makes "
            "ncclReduceScatter of 16 bfloat16");
}

static void lone_send(job *j, int rank)
{
    if (rank == 7) {
        (void)ncclSend(NULL, 5, ncclInt64, 0, j->pipeline[rank], NULL);
    }
}

static void test_mpi_check__send_without_receive(void **state)
{
    (void)state;
    run_job(lone_send, ME_ERR_MISMATCH,
            "ranks 7 and 1 of pipeline group {1, 3, 5, 7} disagree on message "
            "1 from rank 7 to rank 1: rank 7 makes ncclSend of 5 int64, rank "
            "1 makes no ncclRecv");
}

/* Stages 1 and 2 exchange, and both receive first. */
static void deadlock(job *j, int rank)
{
    const int stage = rank / 2;
    if (stage == 1 || stage == 2) {
        (void)ncclRecv(NULL, 9, ncclBfloat16, 3 - stage, j->pipeline[rank],
                       NULL);
        (void)ncclSend(NULL, 9, ncclBfloat16, 3 - stage, j->pipeline[rank],
                       NULL);
    }
}

static void test_mpi_check__deadlock(void **state)
{
    (void)state;
    run_job(deadlock, ME_ERR_MISMATCH,
            "NCCL would hang: rank 2 waits in ncclRecv of 9 bfloat16 from rank "
            "4 (pipeline group {0, 2, 4, 6}); rank 4 waits in ncclRecv of 9 "
            "bfloat16 from rank 2 (pipeline group {0, 2, 4, 6})");
}

static void open_section(job *j, int rank)
{
    (void)j;
    if (rank == 3) {
        (void)ncclGroupStart();
    }
}

static void test_mpi_check__open_section(void **state)
{
    (void)state;
    run_job(open_section, ME_ERR_INTERNAL,
            "an ncclGroupStart has no ncclGroupEnd");
}

/* A request for memory fails on the last process, at every place in turn. */
static void test_mpi_check__fails_together(void **state)
{
    (void)state;
    const int size = me_transport_size(transport);
    const int own = me_transport_rank(transport);
    me_diag verdict = {0};
    job j = {.tp = 2, .dp = 1, .pp = 4};
    for (int rank = own; rank < 8; rank += size) {
        job_begin_rank(&j, rank);
        job_play_rank(&j, rank);
    }
    const uint64_t lost = me_alloc_lost();
    me_status status = ME_ERR_NOMEM;
    for (uint64_t nth = 1; status == ME_ERR_NOMEM && nth < 1000; nth++) {
        me_diag diag = {0};
        me_alloc_fail_at(own == size - 1 ? nth : 0);
        status = job_check(transport, &j, &diag, NULL);
        me_alloc_fail_at(0);
        me_alloc_set_lost(lost, NULL); /* the transport is used again */
    }
    job_fini(&j);
    MPI_EXPECT(&verdict, status == ME_OK);
    assert_true(mpi_agree(transport, &verdict));
}

int main(int argc, char **argv)
{
    me_diag diag = {0};
    if (me_transport_mpi_create(&argc, &argv, &diag, &transport) != ME_OK) {
        (void)fprintf(stderr, "%s\n", diag.text);
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mpi_check__sound_job),
        cmocka_unit_test(test_mpi_check__swapped_collectives),
        cmocka_unit_test(test_mpi_check__wrong_shape),
        cmocka_unit_test(test_mpi_check__send_without_receive),
        cmocka_unit_test(test_mpi_check__deadlock),
        cmocka_unit_test(test_mpi_check__open_section),
        cmocka_unit_test(test_mpi_check__fails_together),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    me_transport_destroy(transport);
    return failed;
}
