/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/program.h"
#include "support/random_job.h"

#include <string.h>

enum {
    BLOCKS_MAX = 1 << 16,
    ITERATIONS = 4
};

typedef enum block_state {
    BLOCK_FREE,
    BLOCK_LIVE,
    BLOCK_WAITING /**< its free was asked for */
} block_state;

/** What has happened to each block so far. */
typedef struct blocks {
    uint8_t state[BLOCKS_MAX];
    uint64_t bytes[BLOCKS_MAX];
    uint64_t live;
    uint32_t waiting;
    uint64_t at_end[ITERATIONS]; /**< live bytes at iterN_end */
    uint64_t digest[ITERATIONS]; /**< of the iteration's events */
    const char *wrong;
} blocks;

static void expect(blocks *b, bool is_right, const char *wrong)
{
    if (!is_right && b->wrong == NULL) {
        b->wrong = wrong;
    }
}

static void on_alloc(blocks *b, const me_event *event)
{
    expect(b, b->state[event->block] == BLOCK_FREE,
           "a block is allocated while it lives");
    expect(b, b->waiting == 0, "a late free outlives the next allocation");
    b->state[event->block] = BLOCK_LIVE;
    b->bytes[event->block] = event->bytes;
    b->live += event->bytes;
}

static void on_request(blocks *b, const me_event *event)
{
    expect(b, b->state[event->block] == BLOCK_LIVE, "a block is freed twice");
    expect(b, b->bytes[event->block] == event->bytes,
           "a block is freed with other bytes than it has");
    b->state[event->block] = BLOCK_WAITING;
    b->waiting++;
}

static void on_complete(blocks *b, const me_event *event)
{
    expect(b, b->state[event->block] == BLOCK_WAITING,
           "a free completes that nobody asked for");
    b->state[event->block] = BLOCK_FREE;
    b->live -= event->bytes;
    b->waiting--;
}

static void count(blocks *b, const me_event *event)
{
    if (event->iteration < 0 || event->iteration >= ITERATIONS) {
        return;
    }
    uint64_t *digest = &b->digest[event->iteration];
    *digest = (*digest ^ event->bytes ^ (uint64_t)event->kind << 60) *
              UINT64_C(0x00000100000001b3);
}

static void on_event(void *self, const me_event *event)
{
    blocks *b = self;
    if (event->kind == ME_EVENT_POINT) {
        const size_t length = strlen(event->name);
        if (event->iteration >= 0 && event->iteration < ITERATIONS &&
            length >= 9 && strcmp(event->name + length - 4, "_end") == 0 &&
            strncmp(event->name, "iter", 4) == 0) {
            b->at_end[event->iteration] = b->live;
        }
        return;
    }
    if (event->kind != ME_EVENT_ALLOC &&
        event->kind != ME_EVENT_FREE_REQUESTED &&
        event->kind != ME_EVENT_FREE_COMPLETED) {
        return;
    }
    if (event->block >= BLOCKS_MAX) {
        b->wrong = "more blocks than this test has room for";
        return;
    }
    count(b, event);
    if (event->kind == ME_EVENT_ALLOC) {
        on_alloc(b, event);
    } else if (event->kind == ME_EVENT_FREE_REQUESTED) {
        on_request(b, event);
    } else {
        on_complete(b, event);
    }
}

/** A rank's program alone, without allocator and trackers. */
static void run_program(const test_job *job, int32_t rank, blocks *b)
{
    const me_card card = {.multiprocessors = 132,
                          .threads_per_multiprocessor = 2048,
                          .cublas_workspace_bytes = 1000};
    me_engine *engine = NULL;
    me_program program;
    assert_int_equal(me_engine_create(&card, &engine), ME_OK);
    assert_int_equal(me_program_init(job->plan, rank, &program), ME_OK);
    program.iterations = ITERATIONS;
    me_engine_observe(engine, (me_observer){.on_event = on_event, .self = b});
    me_program_run(engine, &program);
    assert_int_equal(me_engine_status(engine, NULL), ME_OK);
    me_program_fini(&program);
    me_engine_destroy(engine);
}

/* Blocks live and die once, and from the third iteration on each is like the
 * one before and leaves the same bytes. */
static const char *property_blocks(me_random *random)
{
    static blocks b;
    test_sets s = {.count = 0};
    test_job job;
    const char *wrong = NULL;
    test_make_model(random, &s);
    test_make_grid(random, &s);
    test_plan_sets(&job, &s);
    for (int32_t i = 0; wrong == NULL && i < job.plan->n_classes; i++) {
        memset(&b, 0, sizeof b);
        run_program(&job, me_plan_representative(job.plan, i), &b);
        expect(&b, b.at_end[2] > 0 && b.at_end[2] == b.at_end[3],
               "an iteration leaves other bytes than the one before");
        expect(&b, b.digest[2] == b.digest[3],
               "an iteration's events are not those of the one before");
        wrong = b.wrong;
    }
    test_job_fini(&job);
    return wrong;
}

static void test_blocks__live_and_die_once(void **state)
{
    (void)state;
    me_property_run(property_blocks, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks__live_and_die_once),
    };
    return cmocka_run_group_tests_name("blocks", tests, NULL, NULL);
}
