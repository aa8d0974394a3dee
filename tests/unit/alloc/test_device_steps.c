/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that made communicators of every kind on up to four H200, step by
 * step as tests/golden/allocator/device_steps.tsv holds what was then gone from
 * the card. The driver gives memory in steps of 2 MiB, and is told to. */
#include "alloc/device_memory.h"
#include "support/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_LINE = 256,
    N_FIELDS = 4
};

#define MIB (UINT64_C(1) << 20)

/** A step: the call of NCCL that it makes, or none. */
typedef struct step {
    const char *name;
    me_group_kind group; /**< one kind for each group that is made */
    int32_t size;        /**< of the group; 0: all */
    me_collective collective;
} step;

static const step steps[] = {
    {"first_allreduce", ME_GROUP_WORLD, 0, ME_COLLECTIVE_ALL_REDUCE},
    {"second_allreduce", ME_GROUP_WORLD, 0, ME_COLLECTIVE_ALL_REDUCE},
    {"allreduce_256MiB", ME_GROUP_WORLD, 0, ME_COLLECTIVE_ALL_REDUCE},
    {"all_gather", ME_GROUP_WORLD, 0, ME_COLLECTIVE_ALL_GATHER},
    {"reduce_scatter", ME_GROUP_WORLD, 0, ME_COLLECTIVE_REDUCE_SCATTER},
    {"second_comm", ME_GROUP_DATA, 0, ME_COLLECTIVE_ALL_REDUCE},
    {"size2_comm", ME_GROUP_TENSOR, 2, ME_COLLECTIVE_ALL_REDUCE},
    {"another_size2_comm", ME_GROUP_PIPELINE, 2, ME_COLLECTIVE_ALL_REDUCE},
    {"size1_comm", ME_GROUP_MODEL, 1, ME_COLLECTIVE_ALL_REDUCE},
    {"another_size1_comm", ME_GROUP_EMBEDDING, 1, ME_COLLECTIVE_ALL_REDUCE},
    {"alltoall_new_comm", ME_GROUP_EXPERT, 0, ME_COLLECTIVE_ALL_TO_ALL},
    {"nccl_barrier", ME_GROUP_WORLD, 0, ME_COLLECTIVE_ALL_REDUCE},
};

static void call(me_device_memory *m, me_device_call c)
{
    assert_int_equal(me_device_memory_call(m, &c, NULL), ME_OK);
}

static bool run_group_step(me_device_memory *m, const char *name, int32_t world)
{
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        const step *s = &steps[i];
        if (strcmp(s->name, name) == 0) {
            const int32_t size = s->size == 0 ? world : s->size;
            call(m, (me_device_call){.group = s->group,
                                     .shape = {size, size},
                                     .collective = s->collective});
            return true;
        }
    }
    return false;
}

/* With both neighbours of a ring, which are one of two ranks; then the even
 * ranks send to the odd ones outside of a batch. */
static void run_peer_step(me_device_memory *m, const char *name, int32_t world,
                          int32_t rank)
{
    const me_group_shape all = {world, world};
    if (strcmp(name, "ring_batch_p2p_new_comm") == 0) {
        call(m, (me_device_call){.group = ME_GROUP_CONTEXT,
                                 .shape = all,
                                 .collective = ME_COLLECTIVE_SEND,
                                 .position = rank,
                                 .peer = (rank + 1) % world});
        call(m, (me_device_call){.group = ME_GROUP_CONTEXT,
                                 .shape = all,
                                 .collective = ME_COLLECTIVE_RECV,
                                 .position = rank,
                                 .peer = (rank + world - 1) % world});
        return;
    }
    assert_string_equal(name, "pairwise_send_recv");
    call(m, (me_device_call){.group = ME_GROUP_WORLD,
                             .shape = all,
                             .collective = rank % 2 == 0 ? ME_COLLECTIVE_SEND
                                                         : ME_COLLECTIVE_RECV,
                             .position = rank,
                             .peer = rank ^ 1,
                             .is_lone = true});
}

static void run_step(me_device_memory *m, const char *name, int32_t world,
                     int32_t rank)
{
    if (strcmp(name, "elementwise") == 0) {
        me_device_memory_kernel(m);
    } else if (strcmp(name, "cublas_bf16_gemm") == 0) {
        me_device_memory_matmul(m, ME_DEVICE_TRAINING_THREAD);
        me_device_memory_modules(m);
    } else if (strcmp(name, "linear_fwd_bwd") == 0) {
        me_device_memory_matmul(m, ME_DEVICE_AUTOGRAD_THREAD);
    } else if (strcmp(name, "sdpa_fwd_bwd") == 0) {
        me_device_memory_cudnn(m, ME_DEVICE_TRAINING_THREAD);
        me_device_memory_cudnn(m, ME_DEVICE_AUTOGRAD_THREAD);
    } else if (strcmp(name, "adamw_foreach") != 0 &&
               strcmp(name, "init_process_group") != 0 &&
               !run_group_step(m, name, world)) {
        run_peer_step(m, name, world, rank);
    }
    me_device_memory_settle(m);
}

static void begin(me_device_memory *m)
{
    const me_nccl_setup setup = me_nccl_setup_default();
    me_device_card card;
    assert_int_equal(
        me_device_card_load(ME_CARDS_FOLDER "/h200-141gb.cfg", NULL, &card),
        ME_OK);
    me_device_memory_begin(m, &card, &setup);
}

static void test_device__measured_steps(void **state)
{
    (void)state;
    static me_device_memory m;
    char line[MAX_LINE];
    int n_steps = 0;
    FILE *file = fopen(ME_GOLDEN_FOLDER "/device_steps.tsv", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        char *fields[N_FIELDS] = {line};
        for (int i = 1; line[0] != '#' && i < N_FIELDS; i++) {
            fields[i] = strchr(fields[i - 1], '\t');
            assert_non_null(fields[i]);
            *fields[i]++ = '\0';
        }
        if (line[0] == '#') {
            continue;
        }
        if (strcmp(fields[2], "context") == 0) {
            begin(&m);
        } else {
            run_step(&m, fields[2], (int32_t)strtol(fields[0], NULL, 10),
                     (int32_t)strtol(fields[1], NULL, 10));
        }
        const uint64_t measured = strtoull(fields[3], NULL, 10);
        const uint64_t mine = me_device_memory_bytes(&m);
        if (mine + 2 * MIB < measured || mine > measured + 2 * MIB) {
            fail_msg("%s of rank %s of %s: %" PRIu64 ", measured %" PRIu64,
                     fields[2], fields[1], fields[0], mine, measured);
        }
        n_steps++;
    }
    (void)fclose(file);
    assert_int_equal(n_steps, 137);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_device__measured_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
