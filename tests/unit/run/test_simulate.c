/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/file.h"
#include "support/faults.h"
#include "support/simulate.h"
#include "support/test.h"

#include <string.h>

static const char *const small[] = {
    "impl.transformer=local",
    "model.num_layers=1",
    "model.hidden_size=8",
    "model.num_attention_heads=2",
    "model.seq_length=4",
    "model.vocab_size=16",
    "train.micro_batch_size=1",
    "train.params_dtype=bfloat16",
    NULL,
};

static me_status plan(test_job *job, const char *const *more, me_diag *diag)
{
    *job = (test_job){.config = me_config_create()};
    if (job->config == NULL) {
        return ME_ERR_NOMEM;
    }
    me_status status = test_job_set(job, small, diag);
    if (status == ME_OK && more != NULL) {
        status = test_job_set(job, more, diag);
    }
    return status == ME_OK ? test_job_plan(job, diag) : status;
}

/* Set-up, then iterations 0 and 1 with their points, in this order. */
static void test_simulate__points(void **state)
{
    static const char *const names[] = {
        "initialized",    "model_built",  "optimizer_built", "iter0_begin",
        "finalize_begin", "finalize_end", "optimizer_begin", "optimizer_end",
        "iter0_end",      "iter1_begin",  "fwd0_begin",      "fwd0_end",
        "finalize_begin", "finalize_end", "optimizer_begin", "optimizer_end",
        "iter1_end",
    };
    (void)state;
    test_job job;
    me_diag diag = {.status = ME_OK};
    me_rank_result *result = NULL;

    assert_int_equal(plan(&job, NULL, &diag), ME_OK);
    assert_int_equal(test_job_run(&job, 0, &diag, &result), ME_OK);
    assert_true(result->n_points >= sizeof names / sizeof names[0]);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_string_equal(result->points[i].name, names[i]);
    }
    assert_int_equal(me_rank_result_peak(result)->iteration,
                     ME_STEADY_ITERATION);
    me_rank_result_destroy(result);
    test_job_fini(&job);
}

/* Two workspaces of 32 MiB do not fit into 40 MiB: the second one, of the
 * backward's first product, is refused in iteration 0. */
static void test_simulate__limit(void **state)
{
    (void)state;
    test_job job;
    me_diag diag = {.status = ME_OK};
    me_rank_result *result = NULL;

    assert_int_equal(
        plan(&job,
             (const char *[]){"device.memory_limit=40MiB",
                              "train.bias_gelu_fusion=false",
                              "train.bias_dropout_fusion=false", NULL},
             &diag),
        ME_OK);
    assert_int_equal(test_job_run(&job, 0, &diag, &result), ME_OK);
    assert_true(result->limit.is_known && result->limit.oom);
    assert_int_equal(result->limit.iteration, 0);
    assert_string_equal(result->limit.phase, "backward");
    assert_string_equal(result->limit.op, "cublas_workspace");
    assert_int_equal(result->limit.tried_bytes, UINT64_C(32) << 20);
    me_rank_result_destroy(result);
    test_job_fini(&job);
}

/** Sure to die 0, a coin flip 1, or sure to run 2. */
static int end_under(const test_job *job)
{
    me_diag diag = {.status = ME_OK};
    me_rank_result *result = NULL;
    assert_int_equal(test_job_run(job, 0, &diag, &result), ME_OK);
    const me_limit_result limit = result->limit;
    me_rank_result_destroy(result);
    assert_true(limit.oom_with_less || !limit.oom);
    assert_true(limit.oom || !limit.oom_with_more);
    return limit.oom_with_more ? 0 : limit.oom_with_less ? 1 : 2;
}

/* With more memory a job never ends worse, and between dying for sure and
 * running for sure lies a coin flip, a band to each side of the least memory
 * that it runs in: which may be less than it wants, since it frees what it
 * only caches. */
static void test_simulate__more_memory_never_ends_worse(void **state)
{
    (void)state;
    test_job job;
    me_diag diag = {.status = ME_OK};
    int seen[3] = {0, 0, 0};
    int before = 0;

    assert_int_equal(
        plan(&job,
             (const char *[]){"train.bias_gelu_fusion=false",
                              "train.bias_dropout_fusion=false", NULL},
             &diag),
        ME_OK);
    for (uint64_t mib = 60; mib <= 84; mib++) {
        job.simulation.memory_limit_bytes = mib << 20;
        const int end = end_under(&job);
        assert_true(end >= before);
        before = end;
        seen[end]++;
    }
    assert_true(seen[0] > 0 && seen[2] > 0);
    assert_in_range(seen[1], 3, 5); /* 2 MiB to each side */
    test_job_fini(&job);
}

/* The same where the card is what ends: the band less or more is still there
 * when libraries have been loaded, after which the driver has less to give. */
static void test_simulate__cards_have_a_band_too(void **state)
{
    (void)state;
    test_job job;
    me_diag diag = {.status = ME_OK};
    int seen[3] = {0, 0, 0};
    int before = 0;

    assert_int_equal(
        plan(&job,
             (const char *[]){"train.bias_gelu_fusion=false",
                              "train.bias_dropout_fusion=false", NULL},
             &diag),
        ME_OK);
    for (uint64_t mib = 2520; mib <= 2560; mib += 2) {
        job.card.card.total_bytes = mib << 20;
        const int end = end_under(&job);
        assert_true(end >= before);
        before = end;
        seen[end]++;
    }
    assert_true(seen[0] > 0 && seen[2] > 0);
    assert_in_range(seen[1], 9,
                    11); /* 2 MiB and 8 of the device on each side */
    test_job_fini(&job);
}

/* A limited run has no trackers, and may find that micro-batches are not like
 * those before where the first run had not: then it runs all of them, and its
 * answer is one about memory. */
static void test_simulate__limited_runs_may_run_all(void **state)
{
    (void)state;
    test_job job;
    me_diag diag = {.status = ME_OK};
    bool seen[2] = {false, false};

    assert_int_equal(
        plan(&job,
             (const char *[]){
                 "model.hidden_size=64", "model.num_attention_heads=1",
                 "model.seq_length=1024", "model.vocab_size=1000",
                 "train.global_batch_size=3",
                 "optimizer.overlap_grad_reduce=true",
                 "recompute.granularity=selective", "recompute.core_attn=true",
                 "train.masked_softmax_fusion=false",
                 "train.compile_cache_is_warm=false",
                 "train.gradient_accumulation_fusion=false", NULL},
             &diag),
        ME_OK);
    for (uint64_t mib = 174; mib <= 190; mib += 2) {
        me_rank_result *result = NULL;
        job.simulation.memory_limit_bytes = mib << 20;
        const me_status status = test_job_run(&job, 0, &diag, &result);
        assert_string_equal(diag.text, "");
        assert_int_equal(status, ME_OK);
        assert_true(result->limit.is_known);
        seen[result->limit.oom] = true;
        me_rank_result_destroy(result);
    }
    assert_true(seen[false] && seen[true]);
    test_job_fini(&job);
}

static void test_simulate__modules(void **state)
{
    (void)state;
    test_job job;
    me_diag diag = {.status = ME_OK};
    me_str text = {0};

    assert_int_equal(plan(&job, NULL, &diag), ME_OK);
    assert_int_equal(me_simulate_modules(job.plan, 0, &diag, &text), ME_OK);
    assert_non_null(strstr(me_str_text(&text),
                           "decoder.layers.0.mlp.linear_fc1 parameters 288"));
    me_str_fini(&text);
    test_job_fini(&job);
}

/** A whole job, each of whose host allocations fails once. */
static me_status scenario(void *context)
{
    (void)context;
    test_job job;
    me_diag diag = {.status = ME_OK};
    me_rank_result *result = NULL;
    me_status status = plan(&job, NULL, &diag);
    if (status == ME_OK) {
        status = test_job_run(&job, 0, &diag, &result);
    }
    me_rank_result_destroy(result);
    test_job_fini(&job);
    return status;
}

static void test_simulate__no_host_memory(void **state)
{
    (void)state;
    me_sweep_faults(scenario, NULL, 50);
}

/** Of plain PyTorch: autocast, a layer that runs again, a GradScaler. */
static const char torch_job[] =
    "framework = \"torch\";\n"
    "torch: { input_shape = \"(2, 4)\"; autocast = \"float16\";\n"
    "         grad_scaler = true; };\n"
    "optimizer: { clip_grad = 1.0; };\n"
    "module: { class = \"Sequential\";\n"
    "  up: { class = \"Linear\"; in_features = 4; out_features = 8; };\n"
    "  down: { class = \"Linear\"; in_features = 8; out_features = 4;\n"
    "          checkpoint = true; }; };";

static me_status torch_scenario(void *context)
{
    (void)context;
    test_job job = {.config = me_config_create()};
    me_diag diag = {.status = ME_OK};
    me_rank_result *result = NULL;
    me_status status =
        job.config == NULL
            ? ME_ERR_NOMEM
            : me_config_read_text(job.config, "job.cfg", torch_job,
                                  strlen(torch_job), &diag);
    if (status == ME_OK) {
        status = test_job_plan(&job, &diag);
    }
    if (status == ME_OK) {
        status = test_job_run(&job, 0, &diag, &result);
    }
    me_rank_result_destroy(result);
    test_job_fini(&job);
    return status;
}

static void test_simulate__no_host_memory_for_autocast(void **state)
{
    (void)state;
    me_sweep_faults(torch_scenario, NULL, 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_simulate__points),
        cmocka_unit_test(test_simulate__limit),
        cmocka_unit_test(test_simulate__more_memory_never_ends_worse),
        cmocka_unit_test(test_simulate__cards_have_a_band_too),
        cmocka_unit_test(test_simulate__limited_runs_may_run_all),
        cmocka_unit_test(test_simulate__modules),
        cmocka_unit_test(test_simulate__no_host_memory),
        cmocka_unit_test(test_simulate__no_host_memory_for_autocast),
    };
    return cmocka_run_group_tests_name("simulate", tests, NULL, NULL);
}
