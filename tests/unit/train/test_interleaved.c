/* SPDX-License-Identifier: BSD-3-Clause */
/* Flags of the interleaved schedule. The orders below are those of Megatron-LM's
 * own forward_backward_pipelining_with_interleaving(), run with stand-ins for
 * tensors, transfers, forwards and backwards, but that a tensor's gradient goes
 * before the tensor, as PyTorch's do. */
#include "program.h"

#include <stdio.h>

enum {
    MAX_BLOCKS = 4096,
    MAX_TEXT = 4096,
    TRAVELLING_BYTES = 2 * 128 * 512 /**< no weight's gradient has so many */
};

#define CHUNKS                                                                 \
    SMALL_JOB "--untie-embeddings-and-output-weights "                         \
              "--num-virtual-stages-per-pipeline-rank 2 "                      \
              "--position-embedding-type rope --no-rope-fusion "

#define FLUSH "--overlap-p2p-communication-warmup-flush "

/** What happened to tensors that travel, in iteration 1: `+f0` the first input
 *  is received, `+b0` the first gradient, `-` when it goes, `-g` when a gradient
 *  that was sent goes; `F` and `B` are a forward's and a backward's begin. */
typedef struct journey {
    char name_of[MAX_BLOCKS][8]; /**< of a block that travels, else "" */
    int inputs;
    int gradients;
    bool runs;
    char text[MAX_TEXT];
} journey;

static void append(journey *j, const char *sign, const char *what)
{
    const size_t length = strlen(j->text);
    (void)snprintf(j->text + length, sizeof j->text - length, "%s%s%s",
                   length > 0 ? " " : "", sign, what);
}

static void on_received(journey *j, const me_event *event)
{
    char *name = j->name_of[event->block];
    const bool is_input = strcmp(event->op, "recv_forward") == 0;
    name[0] = '\0';
    if (!is_input && strcmp(event->op, "recv_backward") != 0) {
        const bool is_made = event->phase == ME_PHASE_BACKWARD &&
                             event->bytes == TRAVELLING_BYTES;
        (void)snprintf(name, sizeof j->name_of[0], "%s", is_made ? "g" : "");
        return;
    }
    int *n = is_input ? &j->inputs : &j->gradients;
    (void)snprintf(name, sizeof j->name_of[0], "%c%d", is_input ? 'f' : 'b',
                   (*n)++);
    append(j, "+", name);
}

static void on_journey(void *self, const me_event *event)
{
    journey *j = self;
    if (event->kind == ME_EVENT_ITERATION) {
        j->runs = event->iteration == 1;
    } else if (!j->runs) {
        return;
    } else if (event->kind == ME_EVENT_ALLOC) {
        assert_true(event->block < MAX_BLOCKS);
        on_received(j, event);
    } else if (event->kind == ME_EVENT_FREE_REQUESTED) {
        const char *name = j->name_of[event->block];
        if (name[0] != '\0' && (name[0] != 'g' || event->is_late)) {
            append(j, "-", name);
        }
    } else if (event->kind == ME_EVENT_ACTION_BEGIN) {
        append(j, "", event->name[0] == 'F' ? "F" : "B");
    }
}

static void expect_journey(const char *command, int32_t stages, int32_t rank,
                           const char *expected)
{
    static journey j;
    j = (journey){.runs = false};
    launched job = {.command = command,
                    .world_size = stages,
                    .rank = rank,
                    .iterations = 2};
    run_launched(&job, (me_observer){.on_event = on_journey, .self = &j});
    assert_string_equal(j.text, expected);
}

static void test_interleaved__receives_ahead_in_warmup_and_flush(void **state)
{
    (void)state;
    const char *two = CHUNKS FLUSH "--pipeline-model-parallel-size 2 "
                                   "--global-batch-size 4";
    expect_journey(two, 2, 0,
                   "F F +f0 F +f1 F +b0 F B -f0 +b1 -b0 F +f2 B -b1 +b2 -g F "
                   "+f3 B -b2 +b3 F B -b3 +b4 +b5 B -f2 -b4 +b6 B -g -b5 +b7 B "
                   "-b6 B -g -f1 -b7");
    expect_journey(two, 2, 1,
                   "+f0 +f1 F +f2 F F +f3 B F -f2 +f4 B +b0 -g F +f5 B -f0 -b0 "
                   "+b1 F +f6 B -b1 -g F -g -f3 +f7 B F -f6 B +b2 -g B -f4 +b3 "
                   "-b2 B -g -g -f1 -b3");
    expect_journey(CHUNKS FLUSH "--pipeline-model-parallel-size 4 "
                                "--global-batch-size 4",
                   4, 1,
                   "+f0 +f1 F +f2 F +f3 F +f4 F +f5 F +f6 F +f7 F F +b0 +b1 B "
                   "-f4 -b0 +b2 B -f5 -g -b1 +b3 B -f6 -g -b2 +b4 B -g -b3 +b5 "
                   "B -f0 -b4 +b6 B -f1 -g -b5 +b7 B -f2 -g -b6 B -g -b7");
}

/** What tells a chain of optimizers. */
typedef struct chain {
    int32_t iteration;
    int loss_scales; /**< one an optimizer */
    int groups;      /**< parameter groups told to all ranks */
    int reductions;  /**< of gradient buckets */
    uint64_t roots;  /**< most bytes of second moments' roots at once */
    uint64_t roots_now;
    bool is_root[MAX_BLOCKS];
} chain;

static void on_chain(void *self, const me_event *event)
{
    chain *c = self;
    if (event->kind == ME_EVENT_ITERATION) {
        c->iteration = event->iteration;
    } else if (event->kind == ME_EVENT_ALLOC) {
        assert_true(event->block < MAX_BLOCKS);
        const bool is_steady = c->iteration == 1;
        c->loss_scales += strcmp(event->op, "loss_scale") == 0;
        c->groups += strcmp(event->op, "all_gather_object") == 0;
        c->is_root[event->block] =
            is_steady && strcmp(event->op, "_foreach_sqrt") == 0;
        c->roots_now += c->is_root[event->block] ? event->bytes : 0;
        c->roots = c->roots_now > c->roots ? c->roots_now : c->roots;
    } else if (event->kind == ME_EVENT_FREE_REQUESTED &&
               c->is_root[event->block]) {
        c->roots_now -= event->bytes;
    } else if (event->kind == ME_EVENT_COLLECTIVE && c->iteration == 1) {
        c->reductions += event->collective == ME_COLLECTIVE_REDUCE_SCATTER;
    }
}

static chain run_chain(const char *command)
{
    static chain c;
    c = (chain){.iteration = -1};
    launched job = {.command = command, .world_size = 4, .iterations = 2};
    run_launched(&job, (me_observer){.on_event = on_chain, .self = &c});
    return c;
}

#define SHARDED                                                                \
    CHUNKS "--pipeline-model-parallel-size 2 --global-batch-size 4 "           \
           "--use-distributed-optimizer --overlap-grad-reduce "                \
           "--overlap-param-gather --ddp-bucket-size 1000000 "

/* The first chunk has an optimizer of its own, and its gradients one bucket. */
static void test_interleaved__steps_the_first_chunk_alone(void **state)
{
    (void)state;
    const chain one = run_chain(SHARDED);
    const chain two =
        run_chain(SHARDED "--overlap-param-gather-with-optimizer-step "
                          "--ckpt-format torch");
    assert_int_equal(one.loss_scales, 1);
    assert_int_equal(two.loss_scales, 2);
    assert_int_equal(two.groups * 2,
                     one.groups * 3); /* experts are asked for */
    assert_int_equal(one.reductions, 7 + 1);
    assert_int_equal(two.reductions, 1 + 1);
    /* Of the weights, 6,815,744 in the first chunk and 6,291,456 in the second,
     * the half of each buffer that this rank steps, in float32. */
    assert_int_equal(one.roots, 26191872);
    assert_int_equal(two.roots, 13629440);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interleaved__receives_ahead_in_warmup_and_flush),
        cmocka_unit_test(test_interleaved__steps_the_first_chunk_alone),
    };
    return cmocka_run_group_tests_name("interleaved", tests, NULL, NULL);
}
