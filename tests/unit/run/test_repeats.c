/* SPDX-License-Identifier: BSD-3-Clause */
/* Micro-batches that are alike are told again, and how many of them: a rank that
 * runs all says the same, and takes several times as long. */
#include "run/rank_parts.h"
#include "support/simulate.h"
#include "support/test.h"

#include <string.h>

enum {
    MICROBATCHES = 12,
    RUN = 2 /* of them at most, in the steady iteration */
};

static const char *const small[] = {
    "model.num_layers=8",
    "model.hidden_size=64",
    "model.num_attention_heads=2",
    "model.ffn_hidden_size=128",
    "model.seq_length=32",
    "model.vocab_size=100",
    "model.add_bias_linear=false",
    "model.position_embedding_type=rope",
    "model.untie_embeddings_and_output_weights=true",
    "train.micro_batch_size=1",
    "train.global_batch_size=12",
    "train.params_dtype=bfloat16",
    NULL,
};

static void count_launches(void *self, const me_launch *launch)
{
    (void)launch;
    ++*(int *)self;
}

static void count_repeated(void *self, const me_launch *launch)
{
    int *n = self;
    *n += launch->kind == ME_LAUNCH_ACTION_REPEATED ? 1 : 0;
}

/** What a rank's steady iteration tells a listener of launches. */
static int launches_counted(const test_job *job, int32_t rank,
                            void (*count)(void *self, const me_launch *launch))
{
    int n = 0;
    me_diag diag = {.status = ME_OK};
    me_call_log *log = NULL;
    assert_int_equal(me_call_log_create(&log), ME_OK);
    me_rank_parts p = me_rank_parts_begin(&job->simulation, rank);
    assert_int_equal(me_rank_parts_make_program(&p, log, &diag), ME_OK);
    assert_int_equal(me_rank_parts_observe(&p, &diag), ME_OK);
    me_engine_listen(p.engine,
                     (me_launch_listener){count, &n, ME_STEADY_ITERATION});
    if (me_rank_parts_run(&p, &diag) != ME_OK) {
        fail_msg("rank %d: %s", rank, diag.text);
    }
    me_rank_parts_fini(&p);
    me_call_log_destroy(log);
    return n;
}

/** @param chunks  of each rank */
static void check_job(const char *const *more, int chunks)
{
    test_job job = {.config = me_config_create()};
    me_diag diag = {.status = ME_OK};
    assert_int_equal(test_job_set(&job, small, &diag), ME_OK);
    if (test_job_set(&job, more, &diag) != ME_OK ||
        test_job_plan(&job, &diag) != ME_OK) {
        fail_msg("%s", diag.text);
    }
    const int least = 2 * chunks * (MICROBATCHES - RUN);
    for (int32_t i = 0; i < job.config->parallel.world_size; i++) {
        assert_true(launches_counted(&job, i, count_repeated) >= least);
    }
    test_job_fini(&job);
}

static void test_repeats__without_a_pipeline(void **state)
{
    (void)state;
    check_job((const char *[]){"parallel.world_size=1", NULL}, 1);
}

/* The last of those that are run lets go of what the others only seem to hold, such
 * as tables of angles. */
static void test_repeats__in_a_pipeline(void **state)
{
    (void)state;
    static const char *const transformers[] = {
        "impl.transformer=local", "impl.transformer=transformer_engine"};
    for (size_t i = 0; i < 2; i++) {
        check_job((const char *[]){transformers[i], "parallel.world_size=4",
                                   "parallel.pipeline=4", NULL},
                  1);
    }
}

static void test_repeats__in_chunks(void **state)
{
    (void)state;
    check_job((const char *[]){"parallel.world_size=2", "parallel.pipeline=2",
                               "parallel.virtual_pipeline=2", NULL},
              2);
}

static const char *const turns[] = {
    "model.activation=swiglu",
    "optimizer.distributed=true",
    "parallel.expert=2",
    "moe.num_experts=4",
    "moe.router_topk=2",
    "moe.ffn_hidden_size=64",
    "moe.grouped_gemm=true",
    "moe.token_dispatcher=alltoall",
    "moe.overlap_expert_comm=true",
    NULL,
};

/** Launches of a rank's steady iteration of so many micro-batches in turns. */
static int launches_in_turns(const char *const *ranks, const char *samples)
{
    test_job job = {.config = me_config_create()};
    me_diag diag = {.status = ME_OK};
    assert_int_equal(test_job_set(&job, small, &diag), ME_OK);
    assert_int_equal(test_job_set(&job, turns, &diag), ME_OK);
    if (test_job_set(&job, ranks, &diag) != ME_OK ||
        test_job_set(&job, (const char *[]){samples, NULL}, &diag) != ME_OK ||
        test_job_plan(&job, &diag) != ME_OK) {
        fail_msg("%s", diag.text);
    }
    const int n = launches_counted(&job, 0, count_launches);
    test_job_fini(&job);
    return n;
}

/* A forward and a backward of two micro-batches in turns are told by the round:
 * twice as many micro-batches launch what half of them do. */
static void test_repeats__in_turns(void **state)
{
    (void)state;
    static const char *const ranks[][4] = {
        {"parallel.world_size=2", NULL},
        {"parallel.world_size=4", "parallel.pipeline=2",
         "parallel.virtual_pipeline=2", NULL}};
    for (size_t i = 0; i < 2; i++) {
        const int n = launches_in_turns(ranks[i], "train.global_batch_size=40");
        assert_true(n > 0);
        assert_int_equal(
            launches_in_turns(ranks[i], "train.global_batch_size=80"), n);
    }
}

enum {
    DEPTH_MAX = 32
};

/** Modules that have been entered and not left. */
typedef struct open_modules {
    uint32_t items[DEPTH_MAX];
    uint32_t count;
    int n_wrong; /**< left, and another one was the last */
} open_modules;

static void follow_modules(void *self, const me_event *event)
{
    open_modules *open = self;
    if (event->kind == ME_EVENT_MODULE_ENTER) {
        assert_true(open->count < DEPTH_MAX);
        open->items[open->count++] = event->module;
    } else if (event->kind == ME_EVENT_MODULE_LEAVE) {
        open->n_wrong +=
            open->count == 0 || open->items[--open->count] != event->module;
    }
}

/* A layer that has run the final norm, which is none of its modules, is left and
 * not what is around it. */
static void test_repeats__leave_modules_that_turns_enter(void **state)
{
    (void)state;
    test_job job = {.config = me_config_create()};
    me_diag diag = {.status = ME_OK};
    open_modules open = {.count = 0};
    me_call_log *log = NULL;
    assert_int_equal(test_job_set(&job, small, &diag), ME_OK);
    assert_int_equal(test_job_set(&job, turns, &diag), ME_OK);
    assert_int_equal(
        test_job_set(&job, (const char *[]){"parallel.world_size=2", NULL},
                     &diag),
        ME_OK);
    assert_int_equal(test_job_plan(&job, &diag), ME_OK);
    assert_int_equal(me_call_log_create(&log), ME_OK);
    me_rank_parts p = me_rank_parts_begin(&job.simulation, 0);
    assert_int_equal(me_rank_parts_make_program(&p, log, &diag), ME_OK);
    assert_int_equal(me_rank_parts_observe(&p, &diag), ME_OK);
    me_engine_observe(p.engine,
                      (me_observer){.on_event = follow_modules, .self = &open});
    assert_int_equal(me_rank_parts_run(&p, &diag), ME_OK);
    assert_int_equal(open.n_wrong, 0);
    me_rank_parts_fini(&p);
    me_call_log_destroy(log);
    test_job_fini(&job);
}

/** Bytes of all reductions of largest values in FP8. */
static void add_reductions(void *self, const me_event *event)
{
    if (event->kind == ME_EVENT_ALLOC && event->op != NULL &&
        strcmp(event->op, "reduce_and_update") == 0) {
        *(uint64_t *)self += event->bytes;
    }
}

static uint32_t all_kinds(void *self, const me_repeated *action)
{
    (void)self;
    (void)action;
    return UINT32_MAX;
}

/** The same of rank 0, in both iterations. */
static uint64_t reduced_bytes(test_job *job, bool runs_all)
{
    uint64_t bytes = 0;
    me_diag diag = {.status = ME_OK};
    me_call_log *log = NULL;
    assert_int_equal(me_call_log_create(&log), ME_OK);
    job->simulation.runs_all_rounds = runs_all;
    me_rank_parts p = me_rank_parts_begin(&job->simulation, 0);
    assert_int_equal(me_rank_parts_make_program(&p, log, &diag), ME_OK);
    assert_int_equal(me_rank_parts_observe(&p, &diag), ME_OK);
    me_engine_observe(p.engine, (me_observer){.on_event = add_reductions,
                                              .on_repeated = all_kinds,
                                              .self = &bytes});
    assert_int_equal(me_rank_parts_run(&p, &diag), ME_OK);
    me_rank_parts_fini(&p);
    me_call_log_destroy(log);
    return bytes;
}

/* A chunk's forward in FP8 reduces the largest values of all chunks that have run
 * so far: as often as it was alike, it is another one once the next chunk has. */
static void test_repeats__reduce_values_of_all_chunks(void **state)
{
    (void)state;
    static const char *const more[] = {"parallel.world_size=2",
                                       "parallel.pipeline=2",
                                       "parallel.virtual_pipeline=2",
                                       "device.name=h200-141gb",
                                       "train.fp8=hybrid",
                                       "impl.transformer=transformer_engine",
                                       "parallel.microbatch_group_size=6",
                                       NULL};
    test_job job = {.config = me_config_create()};
    me_diag diag = {.status = ME_OK};
    assert_int_equal(test_job_set(&job, small, &diag), ME_OK);
    if (test_job_set(&job, more, &diag) != ME_OK ||
        test_job_plan(&job, &diag) != ME_OK) {
        fail_msg("%s", diag.text);
    }
    const uint64_t all = reduced_bytes(&job, true);
    assert_true(all > 0);
    assert_int_equal(reduced_bytes(&job, false), all);
    test_job_fini(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repeats__without_a_pipeline),
        cmocka_unit_test(test_repeats__in_a_pipeline),
        cmocka_unit_test(test_repeats__in_chunks),
        cmocka_unit_test(test_repeats__in_turns),
        cmocka_unit_test(test_repeats__reduce_values_of_all_chunks),
        cmocka_unit_test(test_repeats__leave_modules_that_turns_enter),
    };
    return cmocka_run_group_tests_name("repeats", tests, NULL, NULL);
}
