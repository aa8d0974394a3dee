/* SPDX-License-Identifier: BSD-3-Clause */
/* What a job allocates before its first iteration. */
#include "program.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_up__flags_of_a_chunk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
