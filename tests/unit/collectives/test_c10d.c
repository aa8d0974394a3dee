/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of torch.distributed's collectives against PyTorch's: sizes of its
 * own test (four ranks, float32), and for every collective whose storages
 * count and where its process group stands. */
#include "base/size.h"
#include "collectives/c10d.h"
#include "support/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE_BYTES = 128,
    FIELDS = 4,
    RANKS = 4
};

static FILE *open_table(const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", GOLDEN_DIR, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    return file;
}

/* @return the line's number of fields between tabs, 0 at the table's end */
static int read_fields(FILE *file, char line[LINE_BYTES], char *fields[FIELDS])
{
    do {
        if (fgets(line, LINE_BYTES, file) == NULL) {
            return 0;
        }
    } while (line[0] == '#');
    line[strcspn(line, "\n")] = '\0';
    int n = 0;
    for (char *at = line; at != NULL && n < FIELDS; n++) {
        fields[n] = at;
        at = strchr(at, '\t');
        if (at != NULL) {
            *at++ = '\0';
        }
    }
    return n;
}

static me_c10d_op find(const char *name)
{
    me_c10d_op op = ME_C10D_COUNT;
    if (!me_c10d_find(name, &op)) {
        fail_msg("no collective %s", name);
    }
    assert_string_equal(me_c10d_name(op), name);
    return op;
}

/* What PyTorch's test calls, in its order but for waits: tensors that are sent
 * and their rows; what is received: those of the operation's result, or given */
typedef struct call {
    const char *name;
    uint64_t tensors;
    uint64_t rows;
    bool is_given;
    uint64_t received_rows;
} call;

static const call calls[] = {
    {"c10d.broadcast_.default", 1, 100, true, 0},
    {"c10d.allreduce_.default", 1, 100, true, 0},
    {"c10d.reduce_.default", 1, 100, true, 0},
    {"c10d.send.default", 1, 100, true, 0},
    {"c10d.recv_.default", 0, 0, true, 100},
    {"c10d.allgather_.default", 1, 100, true, 400},
    {"c10d.reduce_scatter_.default", 4, 100, true, 100},
    {"c10d._reduce_scatter_base_.default", 1, 400, false, 0},
    {"c10d.scatter_.default", 4, 100, true, 100},
    {"c10d.gather_.default", 1, 100, true, 400},
    {"c10d._allgather_base_.default", 1, 100, false, 0},
    {"c10d.alltoall_.default", 4, 100, true, 400},
    {"c10d.alltoall_base_.default", 1, 400, true, 400},
    {"c10d.barrier.default", 0, 0, true, 0},
    {"_c10d_functional.broadcast.default", 1, 100, false, 0},
    {"_c10d_functional.all_reduce.default", 1, 100, false, 0},
    {"_c10d_functional.all_gather_into_tensor.default", 1, 100, false, 0},
    {"_c10d_functional.all_gather_into_tensor.default", 1, 100, false, 0},
    {"_c10d_functional.reduce_scatter_tensor.default", 1, 400, false, 0},
    {"_c10d_functional.reduce_scatter_tensor.default", 1, 400, false, 0},
    {"_c10d_functional.all_to_all_single.default", 1, 100, true, 0},
    {"_c10d_functional.all_reduce_coalesced.default", 4, 100, false, 0},
    {"_c10d_functional.all_gather_into_tensor_coalesced.default", 4, 100, false,
     0},
    {"_c10d_functional.reduce_scatter_tensor_coalesced.default", 4, 400, false,
     0},
    {"_c10d_functional.all_to_all_single.default", 1, 100, true, 0},
};

static uint64_t size_of(const call *c, me_c10d_op op)
{
    const uint64_t sent = c->tensors * c->rows * sizeof(float);
    const uint64_t rows =
        c->is_given ? c->received_rows
                    : c->tensors * me_c10d_result_rows(op, c->rows, RANKS);
    return me_c10d_bytes(op, sent, rows * sizeof(float));
}

static void test_sizes_of_pytorchs_test(void **state)
{
    (void)state;
    FILE *file = open_table("fake_collectives.tsv");
    char line[LINE_BYTES];
    char *fields[FIELDS] = {NULL};
    size_t n_calls = 0;
    size_t n_waits = 0;
    while (read_fields(file, line, fields) == 2) {
        const me_c10d_op op = find(fields[0]);
        if (op == ME_C10D_FUNCTIONAL_WAIT) {
            n_waits++;
            assert_int_equal(me_c10d_size_of(op), ME_C10D_EXCLUDED);
            assert_string_equal(fields[1], "-");
            continue;
        }
        assert_in_range(n_calls, 0, sizeof calls / sizeof *calls - 1);
        const call *c = &calls[n_calls++];
        assert_string_equal(fields[0], c->name);
        if (strcmp(fields[1], "-") == 0) {
            assert_int_equal(me_c10d_size_of(op), ME_C10D_EXCLUDED);
            assert_int_equal(size_of(c, op), 0);
        } else {
            assert_int_equal(size_of(c, op), strtoull(fields[1], NULL, 10));
        }
    }
    (void)fclose(file);
    assert_int_equal(n_calls, sizeof calls / sizeof *calls);
    assert_int_equal(n_waits, 21);
}

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

/* Bytes of the arguments that are sent, and of those that are received or the
 * result. */
static void roles(char *names, uint64_t *sent_out, uint64_t *received_out)
{
    uint64_t sent = 0;
    uint64_t received = 16;
    uint64_t bytes = 4;
    for (char *at = names; at != NULL; bytes *= 2) {
        char *next = strchr(at, ',');
        if (next != NULL) {
            *next++ = '\0';
        }
        if (strcmp(at, "out") == 0) {
            received = 32;
        } else if (begins(at, "output")) {
            received = bytes;
        } else if (begins(at, "input")) {
            sent = bytes;
        } else if (strcmp(at, "tensors") == 0) {
            sent = bytes;
            received = bytes;
        }
        at = next;
    }
    *sent_out = sent;
    *received_out = received;
}

static void test_every_collective(void **state)
{
    (void)state;
    FILE *file = open_table("collectives.tsv");
    char line[LINE_BYTES];
    char *fields[FIELDS] = {NULL};
    int n = 0;
    for (; read_fields(file, line, fields) == FIELDS; n++) {
        const me_c10d_op op = find(fields[0]);
        assert_int_equal(me_c10d_group_argument(op),
                         strcmp(fields[1], "-") == 0
                             ? -1
                             : (int)strtol(fields[1], NULL, 10));
        uint64_t sent = 0;
        uint64_t received = 0;
        roles(fields[3], &sent, &received);
        const uint64_t bytes = me_c10d_bytes(op, sent, received);
        if (strcmp(fields[2], "-") == 0) {
            assert_int_equal(me_c10d_size_of(op), ME_C10D_EXCLUDED);
            assert_int_equal(bytes, 0);
        } else if (strcmp(fields[2], "TypeError") == 0) {
            assert_true(bytes == ME_SIZE_INVALID);
        } else if (bytes != strtoull(fields[2], NULL, 10)) {
            fail_msg("%s: %llu, PyTorch %s", fields[0],
                     (unsigned long long)bytes, fields[2]);
        }
    }
    (void)fclose(file);
    assert_int_equal(n, ME_C10D_COUNT);
}

static void test_what_is_no_collective(void **state)
{
    (void)state;
    me_c10d_op op = ME_C10D_COUNT;
    assert_false(me_c10d_find("c10d.allreduce_coalesced_.default", &op));
    assert_false(me_c10d_find("", &op));
    assert_int_equal(op, ME_C10D_COUNT);
}

static void test_sizes_beyond_64_bits(void **state)
{
    (void)state;
    const uint64_t half = UINT64_C(1) << 63;
    assert_true(me_c10d_bytes(ME_C10D_FUNCTIONAL_ALL_TO_ALL, half, half) ==
                ME_SIZE_INVALID);
    assert_true(me_c10d_bytes(ME_C10D_ALLTOALL_, half, half) == half);
    assert_true(me_c10d_result_rows(ME_C10D_FUNCTIONAL_ALL_GATHER, half, 4) ==
                ME_SIZE_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_of_pytorchs_test),
        cmocka_unit_test(test_every_collective),
        cmocka_unit_test(test_what_is_no_collective),
        cmocka_unit_test(test_sizes_beyond_64_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
