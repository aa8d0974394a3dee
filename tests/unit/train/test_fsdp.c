/* SPDX-License-Identifier: BSD-3-Clause */
/* Megatron-LM's --use-torch-fsdp2: who is gathered and reduced how often, and
 * how much of each parameter a rank keeps. */
#include "program.h"

enum {
    LAYERS = 8,
    HIDDEN = 512,
    GROUPS = LAYERS + 2 /**< embedding, layers, the model with the rest */
};

#define FSDP2                                                                  \
    SMALL_JOB "--use-torch-fsdp2 --untie-embeddings-and-output-weights "

/** What iteration 1 and set-up did. */
typedef struct seen {
    int32_t iteration;
    int gathers;
    int scratches; /**< of the copies out of what was gathered */
    int reductions;
    int scatters;
    uint64_t gathered_bytes;
    uint64_t shard_bytes;
    uint64_t main_bytes;
    uint64_t reduced_bytes;
} seen;

static void on_alloc(seen *s, const me_event *event)
{
    const bool is_steady = s->iteration == 1;
    if (strcmp(event->op, "shard") == 0) {
        s->shard_bytes += event->bytes;
    } else if (event->category == ME_CATEGORY_MAIN_PARAMETER) {
        s->main_bytes += event->bytes;
    } else if (is_steady && strcmp(event->op, "all_gather") == 0) {
        s->gathers++;
        s->gathered_bytes += event->bytes;
    } else if (is_steady && strcmp(event->op, "split_with_sizes_copy") == 0) {
        s->scratches++;
    } else if (is_steady && strcmp(event->op, "reduce_scatter") == 0) {
        s->reductions++;
        s->reduced_bytes += event->bytes;
    } else if (is_steady && strcmp(event->op, "distribute_tensor") == 0) {
        s->scatters++;
    }
}

static void on_event(void *self, const me_event *event)
{
    seen *s = self;
    if (event->kind == ME_EVENT_ITERATION) {
        s->iteration = event->iteration;
    } else if (event->kind == ME_EVENT_ALLOC) {
        on_alloc(s, event);
    }
}

static seen run_rank(launched *job)
{
    seen s = {.iteration = -1};
    job->iterations = 2;
    run_launched(job, (me_observer){.on_event = on_event, .self = &s});
    return s;
}

static seen run(const char *command, int32_t world_size)
{
    launched job = {.command = command, .world_size = world_size};
    return run_rank(&job);
}

/** Elements of the job: two tables of 1,024 rows and one of positions, 2 + 2
 *  norms' vectors, 12 h^2 of matrices and 13 h of vectors a layer. */
static uint64_t elements(void)
{
    const uint64_t h = HIDDEN;
    const uint64_t layer = 12 * h * h + 13 * h;
    return 2 * 1024 * h + 128 * h + 2 * h + LAYERS * layer;
}

static void test_fsdp__groups(void **state)
{
    (void)state;
    /* Forward and backward gather each group; the second copy is that of the
     * gradients, once a group. */
    const seen s = run(FSDP2 "--global-batch-size 2", 2);
    assert_int_equal(s.gathers, 2 * GROUPS);
    assert_int_equal(s.scratches, 2 * GROUPS);
    assert_int_equal(s.reductions, GROUPS);
    assert_int_equal(s.gathered_bytes, 2 * 2 * elements());
    assert_int_equal(s.shard_bytes, 2 * elements() / 2);
    assert_int_equal(s.reduced_bytes, 2 * elements() / 2);
    assert_int_equal(s.main_bytes, 4 * elements() / 2);
}

static void test_fsdp__no_reshard_after_forward(void **state)
{
    (void)state;
    const seen s = run(FSDP2 "--global-batch-size 2 "
                             "--torch-fsdp2-no-reshard-after-forward",
                       2);
    assert_int_equal(s.gathers, GROUPS);
    assert_int_equal(s.reductions, GROUPS);
}

static void test_fsdp__every_microbatch_is_reduced(void **state)
{
    (void)state;
    const seen s = run(FSDP2 "--global-batch-size 6", 2);
    assert_int_equal(s.gathers, 3 * 2 * GROUPS);
    assert_int_equal(s.reductions, 3 * GROUPS);
}

/* The layer that runs again is gathered for that, and stays so for its backward
 * (FSDPParamGroup.post_forward(), is_bw()). */
static void test_fsdp__recomputed_layers_are_gathered_twice(void **state)
{
    (void)state;
    const seen s = run(FSDP2 "--global-batch-size 2 "
                             "--recompute-granularity full "
                             "--recompute-method uniform "
                             "--recompute-num-layers 1",
                       2);
    assert_int_equal(s.gathers, 2 * GROUPS);
    assert_int_equal(s.reductions, GROUPS);
}

static void test_fsdp__one_rank_gathers_nothing(void **state)
{
    (void)state;
    const seen s = run(FSDP2 "--global-batch-size 1", 1);
    assert_int_equal(s.gathers, 0);
    assert_int_equal(s.scratches, 0);
    assert_int_equal(s.reductions, GROUPS);
    assert_int_equal(s.shard_bytes, 2 * elements());
}

/* torch.chunk() of 512, 1,024, 128, 1,536 and 2,048 rows by 3: the last rank
 * has one or two rows less, and all make room for the fullest. */
static void test_fsdp__rows_that_do_not_divide(void **state)
{
    (void)state;
    uint64_t main_bytes = 0;
    uint64_t shard_bytes[3] = {0};
    for (int32_t rank = 0; rank < 3; rank++) {
        launched job = {.command = FSDP2 "--global-batch-size 3",
                        .world_size = 3,
                        .rank = rank};
        const seen s = run_rank(&job);
        main_bytes += s.main_bytes;
        shard_bytes[rank] = s.shard_bytes;
        assert_int_equal(job.n_classes, 2);
    }
    assert_int_equal(main_bytes, 4 * elements());
    assert_int_equal(shard_bytes[0], shard_bytes[2]);
    assert_true(3 * shard_bytes[0] > 2 * elements());
}

static void test_fsdp__tensor_ranks_sum_their_norms(void **state)
{
    (void)state;
    launched job = {.command = FSDP2 "--global-batch-size 2 "
                                     "--tensor-model-parallel-size 2",
                    .world_size = 4};
    assert_int_equal(run_rank(&job).scatters, 0);
    assert_int_equal(job.n_classes, 2);
    /* Norms have a weight and a bias; the others are biases of the two
     * projections after which the sequence is split. */
    job.command = FSDP2 "--global-batch-size 2 --sequence-parallel "
                        "--tensor-model-parallel-size 2";
    assert_int_equal(run_rank(&job).scatters, LAYERS * (2 * 2 + 2) + 2);
    assert_int_equal(job.n_classes, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fsdp__groups),
        cmocka_unit_test(test_fsdp__no_reshard_after_forward),
        cmocka_unit_test(test_fsdp__every_microbatch_is_reduced),
        cmocka_unit_test(test_fsdp__recomputed_layers_are_gathered_twice),
        cmocka_unit_test(test_fsdp__one_rank_gathers_nothing),
        cmocka_unit_test(test_fsdp__rows_that_do_not_divide),
        cmocka_unit_test(test_fsdp__tensor_ranks_sum_their_norms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
