/* SPDX-License-Identifier: BSD-3-Clause */
/* Orders under PyTorch's executor: a schedule by its name, and the same order
 * from a file; and what _PipelineScheduleRuntime would not run. */
#include "base/alloc.h"
#include "config/file.h"
#include "parallel/schedule_csv.h"
#include "parallel/schedule_lower.h"
#include "support/simulate.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define FILE_OF_ORDER                                                          \
    "pipeline.schedule=", "pipeline.schedule_file=torch_order.csv"
/** Two ranks of each stage; the batch for 8 micro-batches again. */
#define SHARDED                                                                \
    "parallel.world_size=8", "train.global_batch_size=32",                     \
        "torch.data_parallel=fully_shard"

enum {
    RANKS = 4,
    MICROBATCHES = 8
};

/** How an order is written into a file. */
typedef enum form {
    COMPUTES,   /**< what is computed alone */
    TRANSFERS,  /**< with sends and receives */
    EVERYTHING, /**< with work on parameters as well, as PyTorch dumps it */
    N_FORMS
} form;

static const char *const path = "torch_order.csv";

static void write_text(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void write_order(const char *schedule, int32_t chunks, form how)
{
    const me_pipeline pipeline = {
        .ranks = RANKS, .microbatches = MICROBATCHES, .chunks = chunks};
    me_pipeline_order *order = NULL;
    me_pipeline_order *lowered = NULL;
    assert_int_equal(me_pipeline_order_create(me_schedule_find(schedule),
                                              &pipeline, NULL, &order),
                     ME_OK);
    if (how == TRANSFERS) {
        assert_int_equal(me_pipeline_order_lower(order, NULL, &lowered), ME_OK);
    } else if (how == EVERYTHING) {
        assert_int_equal(me_pipeline_order_lower_torch(order, NULL, &lowered),
                         ME_OK);
    }
    me_str text = {0};
    me_schedule_csv_write(lowered == NULL ? order : lowered, &text);
    write_text(me_str_text(&text));
    me_str_fini(&text);
    me_pipeline_order_destroy(lowered);
    me_pipeline_order_destroy(order);
}

/** The 1F1B job of PyTorch, with options up to a NULL. */
static me_status plan_job(test_job *job, const char *const *sets, me_diag *diag)
{
    *job = (test_job){.config = me_config_create()};
    me_status status = me_config_read_file(
        job->config, SOURCE_DIR "/tests/jobs/pp4_1f1b.cfg", diag);
    if (status == ME_OK) {
        status = test_job_set(job, sets, diag);
    }
    return status == ME_OK ? test_job_plan(job, diag) : status;
}

/** All that memest says of each rank's memory, as bytes. */
typedef struct outcome {
    unsigned char *bytes[RANKS];
    size_t size[RANKS];
} outcome;

static outcome run(const char *const *sets)
{
    outcome o = {.size = {0}};
    test_job job;
    me_diag diag = {.status = ME_OK};
    if (plan_job(&job, sets, &diag) != ME_OK) {
        fail_msg("%s: %s", diag.where, diag.text);
    }
    const int32_t each = job.config->parallel.world_size / RANKS;
    for (int32_t rank = 0; rank < RANKS; rank++) {
        me_rank_result *result = NULL;
        if (test_job_run(&job, rank * each, &diag, &result) != ME_OK) {
            fail_msg("%s", diag.text);
        }
        assert_int_equal(
            me_rank_result_encode(result, &o.bytes[rank], &o.size[rank]),
            ME_OK);
        me_rank_result_destroy(result);
    }
    test_job_fini(&job);
    return o;
}

static void outcome_fini(outcome *o)
{
    for (int32_t rank = 0; rank < RANKS; rank++) {
        me_free(o->bytes[rank]);
    }
}

static void check_equal(const outcome *a, const outcome *b)
{
    for (int32_t rank = 0; rank < RANKS; rank++) {
        assert_int_equal(a->size[rank], b->size[rank]);
        assert_memory_equal(a->bytes[rank], b->bytes[rank], a->size[rank]);
    }
}

/** A schedule by name, then from files of some forms. */
static void check_schedule(const char *schedule, int32_t chunks,
                           const char *const more[3], const bool forms[N_FORMS])
{
    char name[64];
    char of_chunks[64];
    (void)snprintf(name, sizeof name, "pipeline.schedule=%s", schedule);
    (void)snprintf(of_chunks, sizeof of_chunks, "parallel.virtual_pipeline=%d",
                   (int)chunks);
    outcome named = run((const char *const[]){name, of_chunks, more[0], more[1],
                                              more[2], NULL});
    for (int f = 0; f < N_FORMS; f++) {
        if (forms[f]) {
            write_order(schedule, chunks, (form)f);
            outcome read = run((const char *const[]){
                FILE_OF_ORDER, of_chunks, more[0], more[1], more[2], NULL});
            check_equal(&named, &read);
            outcome_fini(&read);
        }
    }
    outcome_fini(&named);
    assert_int_equal(remove(path), 0);
}

/* What PyTorch's own classes run, its runtime runs from a file. */
static void test_torch_orders__file_runs_as_named(void **state)
{
    (void)state;
    const char *const none[3] = {NULL};
    const bool all[N_FORMS] = {true, true, true};
    check_schedule("ScheduleInterleaved1F1B", 2, none, all);
    check_schedule("ScheduleLoopedBFS", 2, none, all);
    check_schedule("ScheduleZBVZeroBubble", 2, none, all);
    check_schedule("ScheduleDualPipeV", 2, none, all);
    check_schedule("zbh1", 1, none, all);
    check_schedule("vmin", 2, none, all);
}

/* A dump of PyTorch's has what fully_shard needs. */
static void test_torch_orders__of_fully_shard(void **state)
{
    (void)state;
    const bool forms[N_FORMS] = {true, false, true};
    const char *const sharded[3] = {SHARDED};
    check_schedule("ScheduleInterleaved1F1B", 2, sharded, forms);
}

/* PyTorch's own loop of 1F1B names tensors for longer than its runtime does: a
 * file of the same order is run by the runtime, and the last sends of a rank
 * are not kept. */
static void test_torch_orders__loops_are_not_files(void **state)
{
    (void)state;
    write_order("1f1b", 1, COMPUTES);
    outcome named = run((const char *const[]){NULL});
    outcome read = run((const char *const[]){FILE_OF_ORDER, NULL});
    int n_equal = 0;
    for (int32_t rank = 0; rank < RANKS; rank++) {
        n_equal +=
            named.size[rank] == read.size[rank] &&
            memcmp(named.bytes[rank], read.bytes[rank], named.size[rank]) == 0;
    }
    assert_int_not_equal(n_equal, RANKS);
    outcome_fini(&read);
    outcome_fini(&named);
    assert_int_equal(remove(path), 0);
}

static const struct refused {
    const char *sets[7];
    const char *text; /**< of the file; NULL: of `schedule` */
    const char *schedule;
    form how;
    const char *error;
} refused[] = {
    {{"pipeline.schedule=dualpipe"},
     "",
     NULL,
     COMPUTES,
     "pipeline.schedule = \"dualpipe\": PyTorch's stages are one chain that "
     "every micro-batch passes; an order of two directions, with two copies "
     "of each stage, it refuses"},
    {{"pipeline.schedule=ScheduleZBH1x"},
     "",
     NULL,
     COMPUTES,
     "pipeline.schedule = \"ScheduleZBH1x\": must be one of "
     "torch.distributed.pipelining's, such as ScheduleGPipe, Schedule1F1B "
     "or ScheduleZBVZeroBubble, or another of `memest schedule list`"},
    {{FILE_OF_ORDER},
     NULL,
     "chimera",
     COMPUTES,
     "pipeline.schedule_file = \"torch_order.csv\": PyTorch's stages are "
     "one chain that every micro-batch passes; an order of two directions, "
     "with two copies of each stage, it refuses"},
    {{FILE_OF_ORDER, "parallel.virtual_pipeline=2", SHARDED},
     NULL,
     "interleaved",
     TRANSFERS,
     "stage 0, of fully_shard, has no UNSHARD: it would compute in shards"},
    {{FILE_OF_ORDER, "train.global_batch_size=2"},
     "0F0,0REDUCE_GRAD,0B0\n1F0,1B0\n2F0,2B0\n3F0,3B0\n",
     NULL,
     COMPUTES,
     "rank 0: 0REDUCE_GRAD comes before the last backward of its stage"},
    {{FILE_OF_ORDER, "train.global_batch_size=2"},
     "0F0,0B0,0REDUCE_GRAD\n1F0,1B0\n2F0,2B0\n3F0,3B0\n",
     NULL,
     COMPUTES,
     "pipeline.schedule_file = \"torch_order.csv\": UNSHARD, RESHARD and "
     "REDUCE_GRAD without sends and receives: PyTorch reads what is "
     "computed alone (compute_only), or everything (compute_comms)"},
    {{FILE_OF_ORDER, "train.global_batch_size=2",
      "parallel.virtual_pipeline=2"},
     "0F0,1F0,1B0,0B0\n2F0,2B0\n3F0,3B0\n4F0,4B0\n",
     NULL,
     COMPUTES,
     "5 stages, but parallel.pipeline x parallel.virtual_pipeline = 4 x 2"},
};

static void test_torch_orders__refuses_what_pytorch_does(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (refused[i].text == NULL) {
            write_order(refused[i].schedule, 2, refused[i].how);
        } else {
            write_text(refused[i].text);
        }
        test_job job;
        me_diag diag = {.status = ME_OK};
        const me_status status = plan_job(&job, refused[i].sets, &diag);
        assert_true(status == ME_ERR_CONFIG || status == ME_ERR_UNSUPPORTED);
        assert_string_equal(diag.text, refused[i].error);
        test_job_fini(&job);
        assert_int_equal(remove(path), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_torch_orders__file_runs_as_named),
        cmocka_unit_test(test_torch_orders__of_fully_shard),
        cmocka_unit_test(test_torch_orders__loops_are_not_files),
        cmocka_unit_test(test_torch_orders__refuses_what_pytorch_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
