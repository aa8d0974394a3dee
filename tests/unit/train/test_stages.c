/* SPDX-License-Identifier: BSD-3-Clause */
/* fully_shard in the stages of a pipeline: what is gathered and reduced how
 * often, and when. */
#include "program.h"

/* torchtitan's debug model of 2024, 8 layers of 256 and 128,256 words, on two
 * stages or two times two of two ranks each; 4 micro-batches of 64 tokens. */
#define JOB                                                                    \
    "train.py --training.batch_size 4 --training.seq_len 64 "                  \
    "--training.data_parallel_shard_degree 2 "                                 \
    "--experimental.pipeline_parallel_degree 2 "                               \
    "--experimental.pipeline_parallel_microbatches 4 "                         \
    "--activation_checkpoint.mode none "
#define INTERLEAVED "--experimental.pipeline_parallel_schedule Interleaved1F1B "

/** Elements of a block: norms, attention and an MLP of int(2 · 4 · 256 / 3) up
 *  to 768. */
enum {
    BLOCK = 2 * 256 + 4 * 256 * 256 + 3 * 256 * 768,
    TABLE = 128256 * 256
};

/** What iteration 1 did. */
typedef struct seen {
    int32_t iteration;
    int gathers;
    int waiting; /**< gathered tensors that live */
    int most_waiting;
    int reductions;
    int forwards;               /**< begun so far */
    int gathers_after_forwards; /**< … of this step */
    uint64_t accumulated_bytes;
    uint64_t gathered[64]; /**< ids */
} seen;

static void on_alloc(seen *s, const me_event *event)
{
    if (strcmp(event->op, "all_gather") == 0) {
        s->gathered[s->gathers % 64] = event->block;
        s->gathers++;
        s->waiting++;
        s->most_waiting =
            s->waiting > s->most_waiting ? s->waiting : s->most_waiting;
        s->gathers_after_forwards += s->forwards > 0;
    } else if (strcmp(event->op, "reduce_scatter") == 0) {
        s->reductions++;
    } else if (strcmp(event->op, "to") == 0 &&
               event->category == ME_CATEGORY_GRADIENT) {
        s->accumulated_bytes += event->bytes;
    }
}

static void on_free(seen *s, const me_event *event)
{
    for (int i = 0; i < 64; i++) {
        if (s->gathered[i] != 0 && s->gathered[i] == event->block) {
            s->gathered[i] = 0;
            s->waiting--;
        }
    }
}

static void on_event(void *self, const me_event *event)
{
    seen *s = self;
    if (event->kind == ME_EVENT_ITERATION) {
        s->iteration = event->iteration;
    } else if (s->iteration != 1) {
        return;
    } else if (event->kind == ME_EVENT_ALLOC) {
        on_alloc(s, event);
    } else if (event->kind == ME_EVENT_FREE_REQUESTED) {
        on_free(s, event);
    } else if (event->kind == ME_EVENT_ACTION_BEGIN) {
        s->forwards++;
    }
}

static seen run(const char *command, int32_t rank)
{
    seen s = {.iteration = -1};
    launched job = {
        .command = command, .world_size = 4, .rank = rank, .iterations = 2};
    run_launched(&job, (me_observer){.on_event = on_event, .self = &s});
    return s;
}

/* Four micro-batches, and each group is gathered and reduced once; gradients of
 * the first are cast to float32, whole, and those of the others added. */
static void test_stages__gather_and_reduce_once_a_step(void **state)
{
    (void)state;
    const seen first = run(JOB, 0);
    assert_int_equal(first.gathers, 5); /* 4 blocks; the table */
    assert_int_equal(first.reductions, 5);
    assert_int_equal(first.accumulated_bytes, 4 * (4 * BLOCK + TABLE));
    const seen last = run(JOB, 2);
    assert_int_equal(last.gathers, 5); /* 4 blocks; norm and head */
    assert_int_equal(last.accumulated_bytes, 4 * (4 * BLOCK + TABLE + 256));
}

/* PyTorch 2.11 issues the gathers of both of a rank's stages before it runs one
 * of them; that of 2024 gathered what ran, one ahead of its copy. */
static void test_stages__are_gathered_ahead(void **state)
{
    (void)state;
    const seen modules = run(JOB INTERLEAVED, 0);
    assert_int_equal(modules.gathers, 5);
    assert_int_equal(modules.most_waiting, 2);
    assert_int_not_equal(modules.gathers_after_forwards, 0);
    const seen stages = run("train.py --training.local_batch_size 4 "
                            "--training.seq_len 64 --model.flavor debugmodel "
                            "--parallelism.data_parallel_shard_degree 2 "
                            "--parallelism.pipeline_parallel_degree 2 "
                            "--activation_checkpoint.mode none "
                            "--parallelism.pipeline_parallel_schedule "
                            "Interleaved1F1B",
                            0);
    /* the table; 6 layers and two more on 4 stages: 1 and 2 of them */
    assert_int_equal(stages.gathers, 4);
    assert_int_equal(stages.most_waiting, 4);
    assert_int_equal(stages.gathers_after_forwards, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stages__gather_and_reduce_once_a_step),
        cmocka_unit_test(test_stages__are_gathered_ahead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
