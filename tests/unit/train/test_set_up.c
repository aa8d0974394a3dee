/* SPDX-License-Identifier: BSD-3-Clause */
/* What a job allocates before its first iteration. */
#include "program.h"

#include <stdio.h>

/** Allocations of the operation that a test looks for. */
typedef struct seen {
    const char *op;
    int allocations;
    uint64_t bytes;
} seen;

static void on_event(void *self, const me_event *event)
{
    seen *s = self;
    if (event->kind == ME_EVENT_ALLOC && strcmp(event->op, s->op) == 0) {
        s->allocations++;
        s->bytes = event->bytes;
    }
}

/** Rank 0's set-up of a job. */
static seen set_up(const char *op, const char *command)
{
    seen s = {.op = op};
    launched job = {.command = command, .world_size = 2};
    run_launched(&job, (me_observer){.on_event = on_event, .self = &s});
    return s;
}

static void test_set_up__flags_of_a_chunk(void **state)
{
    (void)state;
    const seen plain =
        set_up("dataset_flags", SMALL_JOB "--global-batch-size 4 "
                                          "--pipeline-model-parallel-size 2");
    assert_int_equal(plain.allocations, 1);
    assert_int_equal(plain.bytes, 24);
    const seen chunks = set_up("dataset_flags", SMALL_JOB
                               "--global-batch-size 4 "
                               "--pipeline-model-parallel-size 2 "
                               "--num-layers-per-virtual-pipeline-stage 1");
    assert_int_equal(chunks.allocations, 4);
}

static void on_main(void *self, const me_event *event)
{
    uint64_t *bytes = self;
    if (event->kind == ME_EVENT_ALLOC &&
        event->category == ME_CATEGORY_MAIN_PARAMETER) {
        *bytes += event->bytes;
    }
}

static uint64_t main_parameters(const char *command, int32_t world_size,
                                int32_t rank)
{
    uint64_t bytes = 0;
    launched job = {.command = command, .world_size = world_size, .rank = rank};
    run_launched(&job, (me_observer){.on_event = on_main, .self = &bytes});
    return bytes;
}

/* An instance of the distributed optimizer owns what the ranks of a job of its
 * size would. */
static void test_set_up__optimizer_instances(void **state)
{
    (void)state;
    for (int32_t rank = 0; rank < 4; rank++) {
        assert_int_equal(
            main_parameters(SMALL_JOB "--use-distributed-optimizer "
                                      "--num-distributed-optimizer-instances 2",
                            4, rank),
            main_parameters(SMALL_JOB "--use-distributed-optimizer", 2,
                            rank % 2));
    }
}

/* So it is with experts, whose own data-parallel ranks are cut as well, and with
 * context parallelism. */
static void test_set_up__instances_of_experts(void **state)
{
    (void)state;
    static const char *const jobs[] = {
        SMALL_JOB
        "--use-distributed-optimizer --num-experts 4 --disable-bias-linear "
        "--moe-token-dispatcher-type alltoall "
        "--expert-model-parallel-size 2 ",
        SMALL_JOB
        "--use-distributed-optimizer --num-experts 4 --disable-bias-linear "
        "--moe-token-dispatcher-type alltoall "
        "--transformer-impl transformer_engine "
        "--context-parallel-size 2 --expert-model-parallel-size 2 ",
    };
    for (int job = 0; job < 2; job++) {
        char command[1024];
        (void)snprintf(command, sizeof command,
                       "%s --num-distributed-optimizer-instances 2", jobs[job]);
        for (int32_t rank = 0; rank < 8; rank++) {
            assert_int_equal(main_parameters(command, 8, rank),
                             main_parameters(jobs[job], 4, rank % 4));
        }
    }
}

/** Bytes of each main parameter in the order of the optimizer. */
typedef struct mains {
    uint64_t bytes[64];
    int count;
} mains;

static void on_each_main(void *self, const me_event *event)
{
    mains *m = self;
    if (event->kind == ME_EVENT_ALLOC && m->count < 64 &&
        event->category == ME_CATEGORY_MAIN_PARAMETER) {
        m->bytes[m->count++] = event->bytes;
    }
}

/* Transformer Engine's softmax offset is a vector, one number a head: stepped
 * with the vectors, of which it is the first. */
static void test_set_up__softmax_offset_is_a_vector(void **state)
{
    (void)state;
    mains m = {.count = 0};
    launched job = {
        .command = "pretrain_gpt.py --num-layers 1 --hidden-size 64 "
                   "--num-attention-heads 2 --seq-length 64 "
                   "--max-position-embeddings 64 --vocab-size 100 "
                   "--micro-batch-size 1 --bf16 --softmax-type learnable "
                   "--position-embedding-type rope --disable-bias-linear",
        .world_size = 1,
    };
    run_launched(&job, (me_observer){.on_event = on_each_main, .self = &m});
    /* embedding, projection, QKV, fc1, fc2; offset, norms */
    static const uint64_t expected[] = {
        4 * 128 * 64, 4 * 64 * 64, 4 * 192 * 64, 4 * 256 * 64,
        4 * 256 * 64, 4 * 2,       4 * 64,       4 * 64,
        4 * 64,       4 * 64,      4 * 64,       4 * 64,
    };
    assert_int_equal(m.count, sizeof expected / sizeof expected[0]);
    assert_memory_equal(m.bytes, expected, sizeof expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_up__flags_of_a_chunk),
        cmocka_unit_test(test_set_up__optimizer_instances),
        cmocka_unit_test(test_set_up__instances_of_experts),
        cmocka_unit_test(test_set_up__softmax_offset_is_a_vector),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
