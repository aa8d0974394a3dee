/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "collectives/call_log.h"
#include "collectives/call_log_impl.h"
#include "support/test.h"

static const me_comm_group four = {
    .kind = ME_GROUP_TENSOR, .start = 0, .stride = 1, .count = 4};

static me_call_log *make_log(ncclComm_t *comm)
{
    me_call_log *log = NULL;
    assert_int_equal(me_call_log_create(&log), ME_OK);
    assert_int_equal(me_comm_create(log, &four, 1, NULL, comm), ME_OK);
    return log;
}

static void play(ncclComm_t comm, uint64_t count)
{
    assert_int_equal(
        ncclAllReduce(NULL, NULL, count, ncclBfloat16, ncclAvg, comm, NULL),
        ncclSuccess);
    assert_int_equal(ncclGroupStart(), ncclSuccess);
    assert_int_equal(ncclSend(NULL, 7, ncclInt64, 2, comm, NULL), ncclSuccess);
    assert_int_equal(ncclRecv(NULL, 9, ncclInt64, 0, comm, NULL), ncclSuccess);
    assert_int_equal(ncclGroupEnd(), ncclSuccess);
    assert_int_equal(ncclBroadcast(NULL, NULL, 3, ncclUint8, 3, comm,
                                   (cudaStream_t)(void *)&comm),
                     ncclSuccess);
}

static void test_call_log__record_is_32_bytes(void **state)
{
    (void)state;
    assert_true(sizeof(me_call) <= 32);
}

static void test_call_log__survives_the_wire(void **state)
{
    (void)state;
    ncclComm_t comm = NULL;
    me_call_log *log = make_log(&comm);
    play(comm, 1024);
    assert_int_equal(me_call_log_wait(log, NULL, (cudaStream_t)(void *)&comm),
                     ME_OK);
    unsigned char *bytes = NULL;
    size_t size = 0;
    assert_int_equal(me_call_log_encode(log, NULL, &bytes, &size), ME_OK);
    me_call_log *copy = NULL;
    assert_int_equal(me_call_log_decode(bytes, size, NULL, &copy), ME_OK);
    assert_int_equal(me_call_log_count(copy), me_call_log_count(log));
    assert_true(
        me_digest_is_equal(me_call_log_digest(copy), me_call_log_digest(log)));
    unsigned char *again = NULL; /* not the structs, whose holes are free */
    size_t size_again = 0;
    assert_int_equal(me_call_log_encode(copy, NULL, &again, &size_again),
                     ME_OK);
    assert_int_equal(size_again, size);
    assert_memory_equal(again, bytes, size);
    me_free(again);
    me_call_log_destroy(copy);
    me_call_log_destroy(log);
    me_free(bytes);
}

static void test_call_log__refuses_damage(void **state)
{
    (void)state;
    ncclComm_t comm = NULL;
    me_call_log *log = make_log(&comm);
    play(comm, 1024);
    unsigned char *bytes = NULL;
    size_t size = 0;
    assert_int_equal(me_call_log_encode(log, NULL, &bytes, &size), ME_OK);
    me_call_log *copy = NULL;
    for (size_t shorter = 0; shorter < size; shorter++) {
        assert_int_equal(me_call_log_decode(bytes, shorter, NULL, &copy),
                         ME_ERR_SYNTAX);
    }
    for (size_t at = 0; at < size; at++) {
        bytes[at] ^= 0xff; /* any status, but no crash and no leak */
        if (me_call_log_decode(bytes, size, NULL, &copy) == ME_OK) {
            me_call_log_destroy(copy);
        }
        bytes[at] ^= 0xff;
    }
    me_call_log_destroy(log);
    me_free(bytes);
}

static void test_call_log__digest_tells_programs_apart(void **state)
{
    (void)state;
    ncclComm_t comms[3] = {NULL};
    me_call_log *logs[3];
    const uint64_t counts[3] = {1024, 1024, 1025};
    for (int i = 0; i < 3; i++) {
        logs[i] = make_log(&comms[i]);
        play(comms[i], counts[i]);
    }
    const me_digest first = me_call_log_digest(logs[0]);
    assert_true(me_digest_is_equal(first, me_call_log_digest(logs[1])));
    assert_false(me_digest_is_equal(first, me_call_log_digest(logs[2])));
    for (int i = 0; i < 3; i++) {
        me_call_log_destroy(logs[i]);
    }
}

/* By hand, for 4 members: AllReduce of 1024 × 2 bytes sends 2·3/4 of them,
 * 3072; Send 7 × 8 = 56; Recv none; Broadcast of 3 bytes ⌈3·3/4⌉ = 3. */
static void test_call_log__records_calls_again(void **state)
{
    (void)state;
    ncclComm_t comm = NULL;
    me_call_log *log = make_log(&comm);
    play(comm, 5);
    const uint64_t position = me_call_log_count(log);
    play(comm, 1024);
    const uint64_t end = me_call_log_count(log);
    play(comm, 6);
    assert_int_equal(me_call_log_repeat(log, position, end), ME_OK);
    assert_int_equal(me_call_log_repeat(log, position, end), ME_OK);
    ncclComm_t comm_full = NULL;
    me_call_log *full = make_log(&comm_full);
    const uint64_t counts[] = {5, 1024, 6, 1024, 1024};
    for (int i = 0; i < 5; i++) {
        play(comm_full, counts[i]);
    }
    assert_int_equal(me_call_log_count(log), me_call_log_count(full));
    assert_true(
        me_digest_is_equal(me_call_log_digest(log), me_call_log_digest(full)));
    for (uint32_t i = 0; i < full->n_calls; i++) {
        assert_int_equal(log->calls[i].group, full->calls[i].group);
        assert_int_equal(log->calls[i].seq, full->calls[i].seq);
    }
    me_call_log_destroy(full);
    me_call_log_destroy(log);
}

static void test_call_log__holds_many_calls_and_peers(void **state)
{
    (void)state;
    const me_comm_group many = {
        .kind = ME_GROUP_EXPERT, .start = 0, .stride = 1, .count = 300};
    me_call_log *log = NULL;
    ncclComm_t comm = NULL;
    assert_int_equal(me_call_log_create(&log), ME_OK);
    assert_int_equal(me_comm_create(log, &many, 0, NULL, &comm), ME_OK);
    for (int i = 0; i < 100000; i++) {
        assert_int_equal(ncclSend(NULL, 1, ncclInt8, 1 + i % 299, comm, NULL),
                         ncclSuccess);
    }
    assert_int_equal(log->n_channels, 299);
    assert_int_equal(log->calls[99999].seq, 99999 / 299);
    me_call_log_destroy(log);
}

static me_status play_without_memory(uint64_t nth)
{
    me_call_log *log = NULL;
    ncclComm_t comm = NULL;
    me_alloc_fail_at(nth);
    me_status status = me_call_log_create(&log);
    if (status == ME_OK) {
        status = me_comm_create(log, &four, 1, NULL, &comm);
    }
    if (status == ME_OK) {
        (void)ncclSend(NULL, 1, ncclInt8, 2, comm, NULL);
        status = me_call_log_status(log);
    }
    unsigned char *bytes = NULL;
    size_t size = 0;
    if (status == ME_OK) {
        status = me_call_log_encode(log, NULL, &bytes, &size);
    }
    me_call_log *copy = NULL;
    if (status == ME_OK) {
        status = me_call_log_decode(bytes, size, NULL, &copy);
    }
    me_alloc_fail_at(0);
    me_free(bytes);
    me_call_log_destroy(copy);
    me_call_log_destroy(log);
    return status;
}

static void test_call_log__survives_any_failed_allocation(void **state)
{
    (void)state;
    uint64_t nth = 1;
    me_status status = ME_ERR_NOMEM;
    while (status != ME_OK) {
        assert_true(nth < 1000);
        status = play_without_memory(nth++);
        assert_true(status == ME_OK || status == ME_ERR_NOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_call_log__record_is_32_bytes),
        cmocka_unit_test(test_call_log__survives_the_wire),
        cmocka_unit_test(test_call_log__refuses_damage),
        cmocka_unit_test(test_call_log__digest_tells_programs_apart),
        cmocka_unit_test(test_call_log__records_calls_again),
        cmocka_unit_test(test_call_log__holds_many_calls_and_peers),
        cmocka_unit_test(test_call_log__survives_any_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
