/* SPDX-License-Identifier: BSD-3-Clause */
/* evaluate() of training/training.py: which of its forwards are run, and what is
 * there of those that are not. */
#include "program.h"

enum {
    MAX_ROWS = 8
};

/** What an evaluation told. */
typedef struct evaluation {
    bool runs;
    bool is_other; /**< something of another phase */
    int vstacks;
    uint64_t rows[MAX_ROWS]; /**< losses that are put below each other */
    int reports;             /**< losses that are there without a forward */
    int begun;               /**< evaluations of the loop that are run */
    uint32_t microbatches;   /**< that are run, a bit each */
    int masks;               /**< dropout's */
    uint64_t tokens;         /**< bytes of a micro-batch's */
} evaluation;

static void on_alloc(evaluation *x, const me_event *event)
{
    const bool is_first = event->microbatch == ME_NO_MICROBATCH;
    x->is_other = x->is_other || event->phase != ME_PHASE_EVALUATION;
    if (strcmp(event->op, "vstack") == 0 && x->vstacks < MAX_ROWS) {
        x->rows[x->vstacks++] = event->bytes / 8;
    }
    x->reports += is_first && strcmp(event->op, "cat") == 0;
    x->begun += strcmp(event->op, "total_num_tokens") == 0;
    x->masks += strstr(event->op, "mask") != NULL &&
                strcmp(event->op, "loss_mask") != 0 &&
                strstr(event->op, "dropout") != NULL;
    if (strcmp(event->op, "tokens") == 0) {
        x->tokens = event->bytes;
    }
    if (!is_first) {
        x->microbatches |= 1U << event->microbatch;
    }
}

static void on_event(void *self, const me_event *event)
{
    evaluation *x = self;
    if (event->kind == ME_EVENT_ITERATION) {
        x->runs = event->iteration == 2;
    }
    if (x->runs && event->kind == ME_EVENT_ALLOC) {
        on_alloc(x, event);
    }
}

static evaluation run(const char *command)
{
    evaluation x = {.runs = false};
    launched job = {.command = command, .world_size = 1, .iterations = 2};
    run_launched(&job, (me_observer){.on_event = on_event, .self = &x});
    assert_false(x.is_other);
    return x;
}

/* Five micro-batches of two samples: of the first iteration all five losses, of
 * the second those of three, and two forwards. */
static void test_evaluation__runs_the_last_two(void **state)
{
    (void)state;
    const evaluation x = run(SMALL_JOB "--global-batch-size 3 --eval-iters 7 "
                                       "--eval-micro-batch-size 2 "
                                       "--eval-global-batch-size 10");
    assert_int_equal(x.vstacks, 2);
    assert_int_equal(x.rows[0], 5);
    assert_int_equal(x.rows[1], 5);
    assert_int_equal(x.reports, 5 + 3);
    assert_int_equal(x.begun, 1);
    assert_int_equal(x.microbatches, 3);
    assert_int_equal(x.tokens, 2 * 128 * 8);
}

/* One iteration has no losses before it. */
static void test_evaluation__of_one_iteration(void **state)
{
    (void)state;
    const evaluation x = run(SMALL_JOB "--eval-iters 1");
    assert_int_equal(x.vstacks, 1);
    assert_int_equal(x.rows[0], 1);
    assert_int_equal(x.reports, 0);
    assert_int_equal(x.microbatches, 1);
    assert_int_equal(x.tokens, 128 * 8);
}

static void test_evaluation__has_no_dropout(void **state)
{
    (void)state;
    const evaluation x =
        run(SMALL_JOB "--hidden-dropout 0.1 --attention-dropout 0.1");
    assert_int_equal(x.begun, 1);
    assert_int_equal(x.masks, 0);
}

static void test_evaluation__is_not_where_nobody_asks(void **state)
{
    (void)state;
    assert_int_equal(run(SMALL_JOB "--eval-iters 0").tokens, 0);
    assert_int_equal(run(SMALL_JOB "--eval-iters 0 --full-validation").tokens,
                     128 * 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_evaluation__runs_the_last_two),
        cmocka_unit_test(test_evaluation__of_one_iteration),
        cmocka_unit_test(test_evaluation__has_no_dropout),
        cmocka_unit_test(test_evaluation__is_not_where_nobody_asks),
    };
    return cmocka_run_group_tests_name("evaluation", tests, NULL, NULL);
}
