/* SPDX-License-Identifier: BSD-3-Clause */
/* What a job allocates before its first iteration. */
#include "app/program.h"
#include "config/launch.h"
#include "support/test.h"

#include <string.h>

enum {
    MAX_ARGUMENTS = 48
};

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

/** Rank 0's set-up of a small job with some more flags. */
static seen set_up(const char *op, const char *const *more, int n_more)
{
    static const char *const flags[] = {
        "pretrain_gpt.py",
        "--num-layers",
        "8",
        "--hidden-size",
        "512",
        "--num-attention-heads",
        "8",
        "--seq-length",
        "128",
        "--max-position-embeddings",
        "128",
        "--vocab-size",
        "1000",
        "--micro-batch-size",
        "1",
        "--global-batch-size",
        "4",
        "--bf16",
        "--transformer-impl",
        "local",
        "--no-masked-softmax-fusion",
        "--no-gradient-accumulation-fusion",
        "--pipeline-model-parallel-size",
        "2",
    };
    const int n = (int)(sizeof flags / sizeof *flags);
    const char *arguments[MAX_ARGUMENTS] = {NULL};
    assert_true(n + n_more < MAX_ARGUMENTS);
    memcpy(arguments, flags, sizeof flags);
    for (int i = 0; i < n_more; i++) {
        arguments[n + i] = more[i];
    }
    me_diag diag = {.status = ME_OK};
    me_config *config = me_config_create();
    assert_non_null(config);
    assert_int_equal(
        me_config_read_launch(config, n + n_more, arguments, &diag), ME_OK);
    config->parallel.world_size = 2;
    assert_int_equal(me_config_finish(config, 1, &diag), ME_OK);
    me_plan *plan = NULL;
    assert_int_equal(me_plan_create(config, true, &diag, &plan), ME_OK);
    me_program program;
    assert_int_equal(me_program_init(plan, 0, &program), ME_OK);
    program.iterations = 0;
    const me_card card = {.multiprocessors = 132};
    me_engine *e = NULL;
    assert_int_equal(me_engine_create(&card, &e), ME_OK);
    seen s = {.op = op};
    me_engine_observe(e, (me_observer){.on_event = on_event, .self = &s});
    me_program_run(e, &program);
    assert_int_equal(me_engine_status(e, NULL), ME_OK);
    me_engine_destroy(e);
    me_program_fini(&program);
    me_plan_destroy(plan);
    me_config_destroy(config);
    return s;
}

static void test_set_up__flags_of_a_chunk(void **state)
{
    (void)state;
    const seen plain = set_up("dataset_flags", NULL, 0);
    assert_int_equal(plain.allocations, 1);
    assert_int_equal(plain.bytes, 24);
    const char *const chunks[] = {"--num-layers-per-virtual-pipeline-stage",
                                  "1"};
    assert_int_equal(set_up("dataset_flags", chunks, 2).allocations, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_up__flags_of_a_chunk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
