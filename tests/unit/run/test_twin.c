/* SPDX-License-Identifier: BSD-3-Clause */
/* Which classes may have the result of another, and that they would have had
 * it. */
#include "base/alloc.h"
#include "run/program.h"
#include "run/twin.h"
#include "support/simulate.h"
#include "support/test.h"

#include <string.h>

enum {
    STAGES = 4,
    CLASSES = 2 * STAGES, /**< the first of each tensor group, and the others */
    CLASSES_MAX = 2 * CLASSES /**< with two shards */
};

static const char *const small[] = {
    "impl.transformer=local",
    "impl.optimizer=torch_foreach",
    "model.num_layers=8",
    "model.hidden_size=256",
    "model.num_attention_heads=4",
    "model.ffn_hidden_size=512",
    "model.seq_length=128",
    "model.vocab_size=1000",
    "model.untie_embeddings_and_output_weights=true",
    "parallel.world_size=16",
    "parallel.tensor=2",
    "parallel.pipeline=4",
    "train.micro_batch_size=1",
    "train.global_batch_size=16",
    "train.params_dtype=bfloat16",
    NULL,
};

static void plan(test_job *job, const char *const *more)
{
    me_diag diag = {.status = ME_OK};
    *job = (test_job){.config = me_config_create()};
    assert_non_null(job->config);
    assert_int_equal(test_job_set(job, small, &diag), ME_OK);
    assert_int_equal(test_job_set(job, more, &diag), ME_OK);
    if (test_job_plan(job, &diag) != ME_OK) {
        fail_msg("%s", diag.text);
    }
}

/* The ends of the pipeline read data, in an order that is followed. */
static void test_twin__is_of_every_stage(void **state)
{
    (void)state;
    test_job job;
    me_twin twins[CLASSES];
    plan(&job, (const char *[]){NULL});
    assert_int_equal(job.plan->n_classes, CLASSES);
    me_twins_find(&job.simulation, twins);
    for (int32_t i = 0; i < CLASSES; i++) {
        assert_int_equal(twins[i].first, i / 2 * 2);
        assert_int_equal(twins[i].number, i / 2);
        assert_int_equal(twins[i].kin, i);
    }
    test_job_fini(&job);
}

/* With context parallelism the parts of a mask are taken in another order too, and
 * what lives in between is looked at if the course of memory is asked for. */
static void test_twin__is_none_of_a_batch_that_is_not_followed(void **state)
{
    (void)state;
    static const char *const jobs[][4] = {
        {"parallel.context=2", "impl.transformer=transformer_engine", NULL},
        {"parallel.context=2", "impl.transformer=transformer_engine",
         "train.create_attention_mask_in_dataloader=false", NULL},
        {NULL},
    };
    static const bool keeps_course[] = {false, false, true};
    static const bool has_twin[] = {false, true, false};
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        test_job job;
        me_twin twins[CLASSES_MAX];
        plan(&job, jobs[i]);
        job.simulation.keeps_course = keeps_course[i];
        me_twins_find(&job.simulation, twins);
        const int32_t other = job.plan->class_of[1];
        assert_int_not_equal(other, job.plan->class_of[0]);
        assert_int_equal(twins[other].first != other, has_twin[i]);
        test_job_fini(&job);
    }
}

/** The bytes of what the rank makes of a batch. */
static void check_batch(const me_plan *of, int32_t rank, uint64_t tokens,
                        uint64_t mask)
{
    const me_twin_batch batch = me_twin_batch_of(of, rank);
    assert_int_equal(batch.token_bytes, tokens);
    assert_int_equal(batch.mask_bytes, mask);
}

static void test_twin__follows_who_reads_data_first(void **state)
{
    (void)state;
    test_job job;
    plan(&job, (const char *[]){"train.micro_batch_size=2", NULL});
    check_batch(job.plan, 0, 2 * 128 * 8, 2 * 128 * 128);
    check_batch(job.plan, 1, 0, 0);
    check_batch(job.plan, 4, 0, 0); // an inner stage
    check_batch(job.plan, 12, 2 * 128 * 8, 2 * 128 * 128);
    test_job_fini(&job);
    plan(&job, (const char *[]){
                   "train.create_attention_mask_in_dataloader=false", NULL});
    check_batch(job.plan, 0, 128 * 8, 0);
    test_job_fini(&job);
}

static void test_twin__is_none_where_more_differs(void **state)
{
    (void)state;
    static const char *const jobs[][5] = {
        {"device.gpus_per_node=3", NULL},
        {"device.alloc_conf=garbage_collection_threshold:0.8", NULL},
        {"moe.num_experts=4", "parallel.sequence=true",
         "moe.token_dispatcher=alltoall", "model.add_bias_linear=false", NULL},
    };
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        test_job job;
        plan(&job, jobs[i]);
        me_twin twins[CLASSES_MAX];
        me_twins_find(&job.simulation, twins);
        for (int32_t k = 0; k < job.plan->n_classes; k++) {
            assert_int_equal(twins[k].first, k);
            assert_int_equal(twins[k].number, k);
        }
        test_job_fini(&job);
    }
}

/** A block with a segment of its own, for which the driver is called. */
static void spend(const me_observer *pool, uint32_t block)
{
    const me_event event = {
        .kind = ME_EVENT_ALLOC, .block = block, .bytes = UINT64_C(12) << 20};
    pool->on_event(pool->self, &event);
}

/* Where the driver was called among what the first rank alone makes is not
 * forgotten by a later part that calls nobody; calls in between are of both. */
static void test_twin__remembers_calls_of_the_driver(void **state)
{
    (void)state;
    const me_pool_options options = {.conf = me_alloc_conf_default()};
    me_pool_observer *pool = NULL;
    assert_int_equal(me_pool_observer_create(&options, &pool), ME_OK);
    const me_observer handle = me_pool_observer_handle(pool);
    me_twin_watch watch = {.pool = pool};
    bool differs_from_twin = false;

    spend(&handle, 0);
    me_twin_watch_tell(&watch, true);
    me_twin_watch_tell(&watch, false);
    me_twin_watch_end(&watch, &differs_from_twin);
    assert_false(differs_from_twin);
    me_twin_watch_tell(&watch, true);
    spend(&handle, 1);
    me_twin_watch_tell(&watch, false);
    spend(&handle, 2);
    me_twin_watch_tell(&watch, true);
    me_twin_watch_tell(&watch, false);
    me_twin_watch_end(&watch, &differs_from_twin);
    assert_true(differs_from_twin);
    me_twin_watch_end(&watch, NULL);
    me_pool_observer_destroy(pool);
}

static void run(const test_job *job, int32_t class_id, bool *differs_from_twin,
                unsigned char **bytes, size_t *size)
{
    me_diag diag = {.status = ME_OK};
    me_rank_result *result = NULL;
    test_job one = *job;
    one.simulation.differs_from_twin = differs_from_twin;
    assert_int_equal(test_job_run(&one,
                                  me_plan_representative(job->plan, class_id),
                                  &diag, &result),
                     ME_OK);
    assert_int_equal(me_rank_result_encode(result, bytes, size), ME_OK);
    me_rank_result_destroy(result);
}

/* With room, and where the job dies or comes near it, unless it says that it
 * is a rank's own: nothing in the last job takes more than the norms. */
static void test_twin__has_the_result(void **state)
{
    (void)state;
    static const char *const jobs[][6] = {
        {"device.memory_limit=1GiB", NULL},
        {"device.memory_limit=64MiB", NULL},
        {"device.memory_limit=150MiB", NULL},
        {"device.memory_limit=160MiB", NULL},
        {"device.memory_limit=170MiB", NULL},
        {"device.memory_limit=174MiB", NULL},
        {"device.memory_limit=176MiB", NULL},
        {"device.memory_limit=178MiB", NULL},
        {"optimizer.distributed=true", "parallel.sequence=true", NULL},
        {"train.create_attention_mask_in_dataloader=false", NULL},
        {"train.micro_batch_size=2", "model.seq_length=2048", NULL},
        {"parallel.pipeline=1", "parallel.world_size=4", NULL},
        {"parallel.virtual_pipeline=2", NULL},
        {"optimizer.kind=sgd", "optimizer.sgd_momentum=0",
         "optimizer.clip_grad=0", "optimizer.weight_decay=0", NULL},
    };
    int n_shared = 0;
    int n_differ = 0;
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        test_job job;
        me_twin twins[CLASSES_MAX];
        plan(&job, jobs[i]);
        me_twins_find(&job.simulation, twins);
        for (int32_t k = 0; k < job.plan->n_classes; k++) {
            unsigned char *bytes[2] = {NULL, NULL};
            size_t size[2] = {0, 0};
            bool differs_from_twin[2] = {false, false};
            run(&job, k, &differs_from_twin[0], &bytes[0], &size[0]);
            run(&job, twins[k].first, &differs_from_twin[1], &bytes[1],
                &size[1]);
            n_differ += differs_from_twin[1];
            if (!differs_from_twin[1]) {
                n_shared += twins[k].first != k;
                assert_int_equal(size[0], size[1]);
                assert_memory_equal(bytes[0], bytes[1], size[0]);
            }
            me_free(bytes[0]);
            me_free(bytes[1]);
        }
        test_job_fini(&job);
    }
    assert_true(n_shared > 0 && n_differ > 0);
}

/* Norms of shards on the device take as much on every rank that has any. */
static void test_twin__is_told_of_norms_on_the_device(void **state)
{
    (void)state;
    test_job job;
    me_twin twins[CLASSES_MAX];
    plan(&job, (const char *[]){"optimizer.distributed=true",
                                "parallel.sequence=true",
                                "impl.optimizer=fused", NULL});
    me_twins_find(&job.simulation, twins);
    int n_told = 0;
    for (int32_t k = 0; k < job.plan->n_classes; k++) {
        unsigned char *bytes = NULL;
        size_t size = 0;
        bool differs_from_twin = false;
        if (twins[k].first != k) {
            run(&job, twins[k].first, &differs_from_twin, &bytes, &size);
            assert_false(differs_from_twin);
            n_told++;
        }
        me_free(bytes);
    }
    assert_true(n_told > 0);
    test_job_fini(&job);
}

/** A job whose shards are told apart. */
static void plan_shards(test_job *job, const char *const *more)
{
    me_diag diag = {.status = ME_OK};
    plan(job, more);
    const me_shard_classes shards = {.find = me_program_shard_classes};
    assert_int_equal(me_plan_fold_shards(job->plan, &shards, &diag), ME_OK);
}

/** @return whether the class is of another one's kin, whose simulation gives the
 *  result that it would have had itself, and which is not that one's own */
static bool check_kin(test_job *job, const me_twin *twin, int32_t class_id)
{
    me_rank_result *results[3] = {NULL};
    unsigned char *bytes[3] = {NULL};
    size_t sizes[3] = {0};
    const me_kin kin = {me_plan_shard_modules(job->plan, class_id),
                        &results[1]};
    me_simulation *s = &job->simulation;
    me_diag diag = {.status = ME_OK};
    s->kin = &kin;
    s->n_kin = 1;
    const int32_t rank = me_plan_representative(job->plan, twin->kin);
    assert_int_equal(test_job_run(job, rank, &diag, &results[0]), ME_OK);
    s->n_kin = 0;
    const int32_t own = me_plan_representative(job->plan, class_id);
    assert_int_equal(test_job_run(job, own, &diag, &results[2]), ME_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(
            me_rank_result_encode(results[i], &bytes[i], &sizes[i]), ME_OK);
        me_rank_result_destroy(results[i]);
    }
    assert_int_equal(sizes[1], sizes[2]);
    assert_memory_equal(bytes[1], bytes[2], sizes[1]);
    const bool differs =
        sizes[0] != sizes[1] || memcmp(bytes[0], bytes[1], sizes[0]) != 0;
    for (int i = 0; i < 3; i++) {
        me_free(bytes[i]);
    }
    return differs;
}

/* Ranks that own as much of other layers' parameters differ in names. */
static void test_kin__has_the_result(void **state)
{
    (void)state;
    static const char *const jobs[][7] = {
        {"parallel.world_size=128", "train.global_batch_size=64", NULL},
        {"parallel.world_size=128", "train.global_batch_size=64",
         "impl.optimizer=torch_foreach", "optimizer.log_num_zeros_in_grad=true",
         NULL},
        {"parallel.world_size=128", "train.global_batch_size=64",
         "device.memory_limit=40MiB", NULL},
        {"parallel.world_size=64", "parallel.pipeline=1", "parallel.tensor=1",
         "train.global_batch_size=64", "device.memory_limit=100MiB", NULL},
    };
    int n_differ = 0;
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        test_job job;
        const char *sets[8] = {"optimizer.distributed=true"};
        for (int k = 0; jobs[i][k] != NULL; k++) {
            sets[k + 1] = jobs[i][k];
        }
        plan_shards(&job, sets);
        const int32_t n = job.plan->n_classes;
        me_twin *twins = me_alloc((size_t)n, sizeof *twins, "test.twins");
        me_twins_find(&job.simulation, twins);
        for (int32_t k = 0; k < n; k++) {
            n_differ += twins[k].kin != k && check_kin(&job, &twins[k], k);
        }
        me_free(twins);
        test_job_fini(&job);
    }
    assert_true(n_differ > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_twin__is_of_every_stage),
        cmocka_unit_test(test_twin__is_none_of_a_batch_that_is_not_followed),
        cmocka_unit_test(test_twin__follows_who_reads_data_first),
        cmocka_unit_test(test_twin__is_none_where_more_differs),
        cmocka_unit_test(test_twin__remembers_calls_of_the_driver),
        cmocka_unit_test(test_twin__has_the_result),
        cmocka_unit_test(test_twin__is_told_of_norms_on_the_device),
        cmocka_unit_test(test_kin__has_the_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
