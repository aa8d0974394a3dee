/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that own other shards of a stage and are told of one program have the
 * results that they have by themselves. */
#include "base/alloc.h"
#include "run/program.h"
#include "run/twin.h"
#include "support/simulate.h"
#include "support/test.h"
#include "tensor/strand.h"

static const char *const small[] = {
    "impl.optimizer=fused",
    "model.num_layers=4",
    "model.hidden_size=256",
    "model.num_attention_heads=4",
    "model.ffn_hidden_size=512",
    "model.seq_length=128",
    "model.vocab_size=1000",
    "model.untie_embeddings_and_output_weights=true",
    "optimizer.distributed=true",
    "parallel.world_size=32",
    "parallel.tensor=2",
    "parallel.sequence=true",
    "parallel.pipeline=2",
    "train.micro_batch_size=1",
    "train.global_batch_size=64",
    "train.params_dtype=bfloat16",
    NULL,
};

/** A job, and what can be simulated together of it. */
typedef struct strandd {
    test_job job;
    me_twin *twins; /**< owned */
} strandd;

static void plan(strandd *x, const char *const *more)
{
    me_diag diag = {.status = ME_OK};
    test_job *job = &x->job;
    *job = (test_job){.config = me_config_create()};
    assert_non_null(job->config);
    assert_int_equal(test_job_set(job, small, &diag), ME_OK);
    if (test_job_set(job, more, &diag) != ME_OK ||
        test_job_plan(job, &diag) != ME_OK) {
        fail_msg("%s", diag.text);
    }
    const me_shard_classes shards = {.find = me_program_shard_classes};
    assert_int_equal(me_plan_fold_shards(job->plan, &shards, &diag), ME_OK);
    job->simulation.strands_max = 3;
    x->twins =
        me_alloc((size_t)job->plan->n_classes, sizeof *x->twins, "test.twins");
    assert_non_null(x->twins);
    me_twins_find(&job->simulation, x->twins);
}

static void fini(strandd *x)
{
    me_free(x->twins);
    test_job_fini(&x->job);
}

static int32_t rank_of(const strandd *x, int32_t class_id)
{
    return me_plan_representative(x->job.plan, class_id);
}

static void test_strands__are_of_one_stage_and_tensor_rank(void **state)
{
    (void)state;
    strandd x;
    plan(&x, (const char *[]){NULL});
    int32_t n_begun = 0;
    int32_t n_led = 0;
    int32_t n_leads = 0;
    for (int32_t i = 0; i < x.job.plan->n_classes; i++) {
        const me_twin *t = &x.twins[i];
        if (t->first != i || t->kin != i) {
            continue;
        }
        const me_twin *lead = &x.twins[t->lead];
        const me_coordinates a =
            me_plan_coordinates(x.job.plan, rank_of(&x, i));
        const me_coordinates b =
            me_plan_coordinates(x.job.plan, rank_of(&x, t->lead));
        assert_int_equal(a.at[ME_AXIS_PIPELINE], b.at[ME_AXIS_PIPELINE]);
        assert_int_equal(a.at[ME_AXIS_TENSOR], b.at[ME_AXIS_TENSOR]);
        assert_int_equal(t->task, lead->task);
        assert_in_range(t->strand, 0, 2);
        n_begun++;
        n_led += t->lead == i ? t->n_strands : 0;
        n_leads += t->lead == i;
    }
    assert_int_equal(n_led, n_begun);
    assert_true(n_leads < n_begun);
    fini(&x);
}

static void test_strands__are_none_where_temporaries_are_of_shards(void **state)
{
    (void)state;
    static const char *const jobs[][2] = {
        {"impl.optimizer=torch_foreach", NULL},
        {"optimizer.log_num_zeros_in_grad=true", NULL},
        {"optimizer.precision_aware=true", NULL},
        {"train.load_checkpoint=all", NULL},
    };
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        strandd x;
        plan(&x, jobs[i]);
        for (int32_t k = 0; k < x.job.plan->n_classes; k++) {
            assert_int_equal(x.twins[k].lead, k);
        }
        fini(&x);
    }
}

static void expect_same(me_rank_result *a, me_rank_result *b)
{
    unsigned char *bytes[2] = {NULL};
    size_t sizes[2] = {0};
    assert_int_equal(me_rank_result_encode(a, &bytes[0], &sizes[0]), ME_OK);
    assert_int_equal(me_rank_result_encode(b, &bytes[1], &sizes[1]), ME_OK);
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(bytes[0], bytes[1], sizes[0]);
    me_free(bytes[0]);
    me_free(bytes[1]);
}

/** @param result  taken over */
static void expect_own(const strandd *x, int32_t class_id,
                       me_rank_result *result)
{
    me_rank_result *own = NULL;
    me_diag diag = {.status = ME_OK};
    assert_int_equal(test_job_run(&x->job, rank_of(x, class_id), &diag, &own),
                     ME_OK);
    expect_same(result, own);
    me_rank_result_destroy(result);
    me_rank_result_destroy(own);
}

/** @return how many strands had to be simulated by themselves */
static int check_lead(strandd *x, int32_t lead)
{
    me_strand strands[ME_STRANDS_MAX];
    int32_t classes[ME_STRANDS_MAX];
    me_rank_result *results[ME_STRANDS_MAX] = {NULL};
    me_simulation *s = &x->job.simulation;
    uint32_t n = 0;
    for (int32_t i = x->twins[lead].next_strand; i != 0;
         i = x->twins[i].next_strand) {
        classes[n] = i;
        strands[n] =
            (me_strand){.rank = rank_of(x, i), .result_out = &results[n]};
        n++;
    }
    me_diag diag = {.status = ME_OK};
    me_rank_result *first = NULL;
    s->strands = strands;
    s->n_strands = n;
    assert_int_equal(test_job_run(&x->job, rank_of(x, lead), &diag, &first),
                     ME_OK);
    s->n_strands = 0;
    expect_own(x, lead, first);
    int n_apart = 0;
    for (uint32_t i = 0; i < n; i++) {
        n_apart += results[i] == NULL;
        if (results[i] != NULL) {
            expect_own(x, classes[i], results[i]);
        }
    }
    return n_apart;
}

/** @return as check_lead(), of all leads; @p n_strands_out  of all */
static int check_job(const char *const *more, int *n_strands_out)
{
    strandd x;
    int n_apart = 0;
    plan(&x, more);
    *n_strands_out = 0;
    for (int32_t i = 0; i < x.job.plan->n_classes; i++) {
        if (x.twins[i].lead == i && x.twins[i].n_strands > 1) {
            n_apart += check_lead(&x, i);
            *n_strands_out += x.twins[i].n_strands;
        }
    }
    fini(&x);
    return n_apart;
}

static void test_strands__have_their_own_results(void **state)
{
    (void)state;
    static const char *const jobs[][6] = {
        {NULL},
        {"parallel.virtual_pipeline=2", "parallel.overlap_p2p_comm=true", NULL},
        {"train.grad_reduce_in_bf16=true", "optimizer.overlap_grad_reduce=true",
         NULL},
        {"device.memory_limit=24MiB", NULL},
        {"optimizer.overlap_grad_reduce=true",
         "optimizer.overlap_param_gather=true",
         "optimizer.num_distributed_optimizer_instances=2", NULL},
        {"moe.num_experts=4", "moe.token_dispatcher=alltoall",
         "parallel.expert=2", "model.add_bias_linear=false", NULL},
    };
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        int n_strands = 0;
        assert_int_equal(check_job(jobs[i], &n_strands), 0);
        assert_true(n_strands > 0);
    }
}

/* At the end of a buffer ranks own nothing, and clip nothing. */
static void test_strands__part_where_one_does_not_step(void **state)
{
    (void)state;
    static const char *const few[] = {"parallel.world_size=256",
                                      "parallel.tensor=1",
                                      "parallel.sequence=false",
                                      "parallel.pipeline=1",
                                      "train.global_batch_size=256",
                                      "model.num_layers=1",
                                      "model.hidden_size=64",
                                      "model.ffn_hidden_size=64",
                                      NULL};
    int n_strands = 0;
    assert_true(check_job(few, &n_strands) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strands__are_of_one_stage_and_tensor_rank),
        cmocka_unit_test(
            test_strands__are_none_where_temporaries_are_of_shards),
        cmocka_unit_test(test_strands__have_their_own_results),
        cmocka_unit_test(test_strands__part_where_one_does_not_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
