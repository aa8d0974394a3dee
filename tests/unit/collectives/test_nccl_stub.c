/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/call_log.h"
#include "collectives/call_log_impl.h"
#include "collectives/nccl_type.h"
#include "support/test.h"

typedef struct fixture {
    me_call_log *log;
    ncclComm_t comm;
} fixture;

static int set_up(void **state)
{
    static fixture f;
    const me_group pair = {
        .kind = ME_GROUP_PIPELINE, .start = 0, .stride = 4, .count = 2};
    f = (fixture){0};
    *state = &f;
    return me_call_log_create(&f.log) == ME_OK &&
                   me_comm_create(f.log, &pair, 0, NULL, &f.comm) == ME_OK
               ? 0
               : -1;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    me_call_log_destroy(f->log);
    return 0;
}

static void assert_refused(ncclResult_t result, ncclResult_t expected,
                           const char *text)
{
    assert_int_equal(result, expected);
    assert_string_equal(ncclGetLastError(NULL), text);
}

static void test_nccl_stub__refuses_what_nccl_refuses(void **state)
{
    const fixture *f = *state;
    assert_refused(
        ncclAllReduce(NULL, NULL, 1, ncclFloat32, ncclSum, NULL, NULL),
        ncclInvalidArgument, "AllReduce : comm argument is NULL");
    assert_refused(ncclSend(NULL, 1, ncclFloat32, 2, f->comm, NULL),
                   ncclInvalidArgument,
                   "Send : invalid root 2 (root should be in the 0..2 range)");
    assert_refused(ncclBroadcast(NULL, NULL, 1, ncclInt8, -1, f->comm, NULL),
                   ncclInvalidArgument,
                   "Broadcast : invalid root -1 (root should be in the 0..2 "
                   "range)");
    assert_refused(ncclAllGather(NULL, NULL, 1, ncclNumTypes, f->comm, NULL),
                   ncclInvalidArgument, "AllGather : invalid type 12");
    assert_refused(
        ncclReduceScatter(NULL, NULL, 1, ncclInt8, ncclNumOps, f->comm, NULL),
        ncclInvalidArgument, "ReduceScatter : invalid reduction operation 5");
    assert_refused(ncclAlltoAll(NULL, NULL, SIZE_MAX, ncclInt64, f->comm, NULL),
                   ncclInvalidArgument,
                   "AlltoAll : 18446744073709551615 elements exceed 64 bits "
                   "of bytes");
    assert_int_equal(me_call_log_count(f->log), 0);
}

static void test_nccl_stub__end_needs_a_start(void **state)
{
    (void)state;
    assert_refused(ncclGroupEnd(), ncclInvalidUsage,
                   "ncclGroupEnd: not in a group call.");
}

static void test_nccl_stub__section_returns_its_first_failure(void **state)
{
    const fixture *f = *state;
    assert_int_equal(ncclGroupStart(), ncclSuccess);
    assert_int_equal(ncclGroupStart(), ncclSuccess);
    assert_int_equal(ncclSend(NULL, 1, ncclInt8, 7, f->comm, NULL),
                     ncclInvalidArgument);
    assert_int_equal(ncclGroupEnd(), ncclSuccess);
    assert_int_equal(ncclGroupEnd(), ncclInvalidArgument);
    assert_int_equal(ncclGroupStart(), ncclSuccess);
    assert_int_equal(ncclGroupEnd(), ncclSuccess);
}

static void test_nccl_stub__self_needs_a_pair(void **state)
{
    const fixture *f = *state;
    assert_refused(ncclSend(NULL, 1, ncclInt8, 0, f->comm, NULL),
                   ncclInvalidUsage,
                   "Trying to send to self without a matching recv");
    assert_int_equal(ncclGroupStart(), ncclSuccess);
    assert_int_equal(ncclSend(NULL, 1, ncclInt8, 0, f->comm, NULL),
                     ncclSuccess);
    assert_int_equal(ncclRecv(NULL, 1, ncclInt8, 0, f->comm, NULL),
                     ncclSuccess);
    assert_int_equal(ncclGroupEnd(), ncclSuccess);
    assert_int_equal(ncclGroupStart(), ncclSuccess);
    assert_int_equal(ncclRecv(NULL, 1, ncclInt8, 0, f->comm, NULL),
                     ncclSuccess);
    assert_refused(ncclGroupEnd(), ncclInvalidUsage,
                   "Trying to recv to self without a matching send");
}

static void test_nccl_stub__sections_are_numbered(void **state)
{
    const fixture *f = *state;
    assert_int_equal(ncclSend(NULL, 1, ncclInt8, 1, f->comm, NULL),
                     ncclSuccess);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ncclGroupStart(), ncclSuccess);
        assert_int_equal(ncclSend(NULL, 1, ncclInt8, 1, f->comm, NULL),
                         ncclSuccess);
        assert_int_equal(ncclRecv(NULL, 1, ncclInt8, 1, f->comm, NULL),
                         ncclSuccess);
        assert_int_equal(ncclGroupEnd(), ncclSuccess);
    }
    const uint32_t groups[] = {0, 1, 1, 2, 2};
    assert_int_equal(me_call_log_count(f->log), 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(f->log->calls[i].group, groups[i]);
    }
}

static int split_pair(void *self, const me_group *parent, int color, int key,
                      me_group *group_out)
{
    (void)self;
    (void)key;
    *group_out = (me_group){.kind = ME_GROUP_EMBEDDING,
                            .start = me_group_member(parent, color),
                            .stride = 1,
                            .count = 1};
    return 0;
}

static void test_nccl_stub__makes_communicators(void **state)
{
    const fixture *f = *state;
    const int members[] = {5, 3, 9};
    const me_group group = {
        .kind = ME_GROUP_DATA, .members = members, .count = 3};
    ncclUniqueId id;
    ncclComm_t comm = NULL;
    me_comm_unique_id(f->log, &group, &id);
    assert_int_equal(ncclCommInitRank(&comm, 2, id, 1), ncclInvalidArgument);
    assert_int_equal(ncclCommInitRank(&comm, 3, id, 1), ncclSuccess);
    int count = 0;
    int rank = 0;
    assert_int_equal(ncclCommCount(comm, &count), ncclSuccess);
    assert_int_equal(ncclCommUserRank(comm, &rank), ncclSuccess);
    assert_int_equal(count, 3);
    assert_int_equal(rank, 1);
    ncclComm_t part = NULL;
    assert_int_equal(ncclCommSplit(comm, 1, 0, &part, NULL), ncclInvalidUsage);
    me_call_log_set_split(f->log, split_pair, NULL);
    assert_int_equal(ncclCommSplit(comm, 1, 0, &part, NULL), ncclSuccess);
    assert_int_equal(me_group_member(&part->group, 0), 3);
    assert_int_equal(ncclCommSplit(comm, NCCL_SPLIT_NOCOLOR, 0, &part, NULL),
                     ncclSuccess);
    assert_null(part);
    assert_int_equal(ncclCommDestroy(comm), ncclSuccess);
    assert_refused(ncclAllGather(NULL, NULL, 1, ncclInt8, comm, NULL),
                   ncclInvalidArgument,
                   "AllGather : comm argument is destroyed");
}

static void test_nccl_stub__knows_pytorchs_types(void **state)
{
    (void)state;
    for (int i = 0; i < ME_DTYPE_COUNT; i++) {
        const ncclDataType_t type = me_nccl_type_of((me_dtype)i);
        assert_int_equal(me_nccl_type_bytes(type), me_dtype_bytes((me_dtype)i));
    }
}

static void test_nccl_stub__fails_with_the_last_error(void **state)
{
    const fixture *f = *state;
    me_diag diag = {0};
    const ncclResult_t result = ncclSend(NULL, 1, ncclInt8, 4, f->comm, NULL);
    assert_int_equal(me_nccl_status(result, &diag), ME_ERR_INTERNAL);
    assert_string_equal(diag.text,
                        "NCCL: invalid argument: Send : invalid root 4 (root "
                        "should be in the 0..2 range)");
    assert_int_equal(me_nccl_status(ncclSuccess, &diag), ME_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_nccl_stub__refuses_what_nccl_refuses),
        TEST(test_nccl_stub__end_needs_a_start),
        TEST(test_nccl_stub__section_returns_its_first_failure),
        TEST(test_nccl_stub__self_needs_a_pair),
        TEST(test_nccl_stub__sections_are_numbered),
        TEST(test_nccl_stub__makes_communicators),
        TEST(test_nccl_stub__knows_pytorchs_types),
        TEST(test_nccl_stub__fails_with_the_last_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
