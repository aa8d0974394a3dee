/* SPDX-License-Identifier: BSD-3-Clause */
// What orders cost on the engine, against what their lists say.

#include "parallel/schedule_csv.h"
#include "support/simulate.h"
#include "support/test.h"

#include <stdio.h>

enum {
    RANKS = 6,
    MICROBATCHES = 12
};

/** A Llama small enough for a pencil, two layers a stage; bfloat16. */
static const char *const small[] = {
    "model.num_layers=12",
    "model.hidden_size=12",
    "model.ffn_hidden_size=10",
    "model.num_attention_heads=3",
    "model.num_query_groups=1",
    "model.seq_length=5",
    "model.vocab_size=14",
    "model.make_vocab_size_divisible_by=1",
    "model.normalization=RMSNorm",
    "model.activation=swiglu",
    "model.add_bias_linear=false",
    "model.position_embedding_type=rope",
    "model.untie_embeddings_and_output_weights=true",
    "model.attention_dropout=0.0",
    "model.hidden_dropout=0.0",
    "parallel.pipeline=6",
    "train.global_batch_size=12",
    "train.micro_batch_size=1",
    "train.params_dtype=bfloat16",
    "train.create_attention_mask_in_dataloader=false",
    "train.bias_swiglu_fusion=false",
    "train.bias_dropout_fusion=false",
    "train.apply_rope_fusion=false",
    "train.masked_softmax_fusion=false",
    "train.gradient_accumulation_fusion=false",
    "impl.core_attention=sdpa_flash",
    NULL,
};

/** With an option that names the schedule. */
static me_status plan_job(test_job *job, const char *option,
                          const char *schedule, me_diag *diag)
{
    *job = (test_job){.config = me_config_create()};
    assert_non_null(job->config);
    me_status status = test_job_set(job, small, diag);
    if (status == ME_OK) {
        status = me_config_set(job->config, option, schedule, diag);
    }
    return status == ME_OK ? test_job_plan(job, diag) : status;
}

/** Requested bytes at the peak of each rank. */
static void run_as(const char *option, const char *schedule,
                   uint64_t peaks[RANKS])
{
    test_job job;
    me_diag diag = {.status = ME_OK};
    if (plan_job(&job, option, schedule, &diag) != ME_OK) {
        fail_msg("%s: %s", schedule, diag.text);
    }
    for (int32_t rank = 0; rank < RANKS; rank++) {
        me_rank_result *result = NULL;
        if (test_job_run(&job, rank, &diag, &result) != ME_OK) {
            fail_msg("%s: %s", schedule, diag.text);
        }
        peaks[rank] = me_rank_result_peak(result)->requested_bytes;
        me_rank_result_destroy(result);
    }
    test_job_fini(&job);
}

static void run_job(const char *schedule, uint64_t peaks[RANKS])
{
    run_as("pipeline.schedule", schedule, peaks);
}

/** Of the middle ranks, which hold layers alone, rank r holds p - r
 *  micro-batches under 1F1B and r weight gradients more under ZB-H1. */
static void check_slope(const char *schedule, int64_t of_activations,
                        int64_t of_weights)
{
    uint64_t peaks[RANKS];
    run_job(schedule, peaks);
    for (int32_t rank = 2; rank < RANKS - 1; rank++) {
        assert_int_equal((int64_t)(peaks[rank - 1] - peaks[rank]),
                         of_activations - of_weights);
    }
}

/**
 * What a layer keeps for its weights' gradients, inputs and output gradients,
 * of 5 tokens in bfloat16: query-key-value 12 + 20, projection 12 + 12, first
 * of the MLP 12 + 20, second 10 + 12 numbers a token. What it keeps for its
 * input's gradient is what 1F1B holds for each micro-batch.
 */
static void test_schedule_memory__split_backwards(void **state)
{
    (void)state;

    enum {
        LAYERS = 2,
        WEIGHTS =
            LAYERS * 5 * 2 * ((12 + 20) + (12 + 12) + (12 + 20) + (10 + 12))
    };

    uint64_t peaks[RANKS];
    run_job("1f1b", peaks);
    const int64_t activations = (int64_t)(peaks[1] - peaks[2]);
    check_slope("1f1b", activations, 0);
    check_slope("zbh1", activations, WEIGHTS);
    check_slope("zb_auto", activations, WEIGHTS);
    check_slope("zbh2", 2 * activations, 2 * (int64_t)WEIGHTS);
    check_slope("gpipe", 0, 0);
}

/** The peaks of a middle rank in order of what its list holds. */
static void test_schedule_memory__follows_in_flight(void **state)
{
    (void)state;
    static const char *const names[] = {"1f1b", "zbh1", "zbh2", "gpipe"};
    uint64_t before = 0;
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        uint64_t peaks[RANKS];
        run_job(names[i], peaks);
        assert_true(peaks[2] > before);
        before = peaks[2];
    }
}

/** In a V the first rank has embedding and head, and the last rank hands its
 *  tensors over without sending them. */
static void test_schedule_memory__v_places_the_model(void **state)
{
    (void)state;
    test_job job;
    me_diag diag = {.status = ME_OK};
    assert_int_equal(plan_job(&job, "pipeline.schedule", "zbv", &diag), ME_OK);
    assert_int_equal(job.plan->n_chunks, 2);
    const me_stage first = me_plan_stage(job.plan, 0, 0);
    const me_stage last = me_plan_stage(job.plan, 0, 1);
    assert_true(first.has_embedding && !first.has_head);
    assert_true(last.has_head && !last.has_embedding);
    assert_int_equal(first.first_layer, 0);
    assert_int_equal(last.first_layer, 11);
    assert_int_equal(me_plan_stage(job.plan, RANKS - 1, 0).first_layer, 5);
    assert_int_equal(me_plan_stage(job.plan, RANKS - 1, 1).first_layer, 6);
    test_job_fini(&job);
}

/** With two directions both ends have embedding and head, each rank a stage of
 *  each direction, and twice the parameters: those of 1F1B's rank r and of
 *  rank p - 1 - r. */
static void test_schedule_memory__two_directions(void **state)
{
    (void)state;
    test_job one;
    test_job two;
    me_diag diag = {.status = ME_OK};
    assert_int_equal(plan_job(&one, "pipeline.schedule", "1f1b", &diag), ME_OK);
    assert_int_equal(plan_job(&two, "pipeline.schedule", "dualpipe", &diag),
                     ME_OK);
    assert_int_equal(two.plan->n_chunks, 2);
    uint64_t parameters[RANKS];
    for (int32_t rank = 0; rank < RANKS; rank++) {
        me_rank_result *result = NULL;
        assert_int_equal(test_job_run(&one, rank, &diag, &result), ME_OK);
        parameters[rank] = result->parameters;
        me_rank_result_destroy(result);
    }
    for (int32_t rank = 0; rank < RANKS; rank++) {
        const int32_t mirrored = RANKS - 1 - rank;
        const me_stage a = me_plan_stage(two.plan, rank, 0);
        const me_stage b = me_plan_stage(two.plan, mirrored, 1);
        assert_int_equal(a.first_layer, 2 * rank);
        assert_int_equal(b.first_layer, 2 * rank);
        assert_int_equal(a.has_embedding, rank == 0);
        assert_int_equal(b.has_head, rank == RANKS - 1);
        me_rank_result *result = NULL;
        assert_int_equal(test_job_run(&two, rank, &diag, &result), ME_OK);
        assert_int_equal(result->parameters,
                         parameters[rank] + parameters[mirrored]);
        me_rank_result_destroy(result);
    }
    test_job_fini(&one);
    test_job_fini(&two);
}

static void test_schedule_memory__refuses_what_is_not_modelled(void **state)
{
    (void)state;

    static const struct {
        const char *set[2];
        const char *schedule;
        me_status status;
        const char *text;
    } cases[] = {
        {{NULL},
         "zbh3",
         ME_ERR_CONFIG,
         "pipeline.schedule: no schedule is called \"zbh3\": none, 1f1b, "
         "interleaved, interleaved_torch, gpipe, looped_bfs, zbh1, zbh2, "
         "interleaved_zb, zbv, vhalf, vmin, zb_auto, v_auto, dualpipev, "
         "dualpipe, chimera"},
        {{NULL},
         "looped_bfs",
         ME_ERR_CONFIG,
         "schedule looped_bfs needs at least 2 chunks per rank, not 1"},
        {{"parallel.virtual_pipeline=2"},
         "chimera",
         ME_ERR_CONFIG,
         "schedule chimera has two chunks per rank, not 4"},
        {{"optimizer.overlap_grad_reduce=true"},
         "zbh1",
         ME_ERR_UNSUPPORTED,
         "pipeline.schedule = zbh1: not modelled: optimizer.overlap_grad_reduce "
         "and overlap_param_gather"},
        {{"model.untie_embeddings_and_output_weights=false"},
         "zbv",
         ME_ERR_UNSUPPORTED,
         "pipeline.schedule = zbv: not modelled: tied embeddings "
         "(model.untie_embeddings_and_output_weights = false) where stages do "
         "not stand in a loop"},
        {{"model.mtp_num_layers=1"},
         "zbh1",
         ME_ERR_UNSUPPORTED,
         "pipeline.schedule = zbh1: not modelled: multi-token prediction "
         "(model.mtp_num_layers), whose heads share a weight gradient"},
        {{"pipeline.schedule_file=x.csv"},
         "zbv",
         ME_ERR_IO,
         "cannot open: No such file or directory"},
    };

    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        test_job job = {.config = me_config_create()};
        me_diag diag = {.status = ME_OK};
        assert_int_equal(test_job_set(&job, small, &diag), ME_OK);
        assert_int_equal(test_job_set(&job, cases[i].set, &diag), ME_OK);
        assert_int_equal(me_config_set(job.config, "pipeline.schedule",
                                       cases[i].schedule, &diag),
                         ME_OK);
        assert_int_equal(test_job_plan(&job, &diag), cases[i].status);
        assert_string_equal(diag.text, cases[i].text);
        test_job_fini(&job);
    }
}

/** The actions of a schedule as a file, but for the transfers. */
static void write_file(const char *path, const char *schedule)
{
    const me_pipeline pipeline = {
        .ranks = RANKS, .microbatches = MICROBATCHES, .chunks = 1};
    me_diag diag = {.status = ME_OK};
    me_pipeline_order *order = NULL;
    assert_int_equal(me_pipeline_order_create(me_schedule_find(schedule),
                                              &pipeline, &diag, &order),
                     ME_OK);
    me_str text = {0};
    me_schedule_csv_write(order, &text);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fputs(me_str_text(&text), file) >= 0, true);
    assert_int_equal(fclose(file), 0);
    me_str_fini(&text);
    me_pipeline_order_destroy(order);
}

/* Megatron-LM's 1F1B keeps the last stage's loss in a list while the next
 * micro-batch's runs, which no order of actions says: a file of its order takes
 * the same bytes, since its own function runs it. */
static void test_schedule_memory__own_order_from_a_file(void **state)
{
    (void)state;
    static const char *const path = "own_order.csv";
    uint64_t own[RANKS];
    uint64_t read[RANKS];
    run_job("1f1b", own);
    write_file(path, "1f1b");
    run_as("pipeline.schedule_file", path, read);
    assert_memory_equal(own, read, sizeof own);

    uint64_t gpipe[RANKS];
    run_job("gpipe", gpipe);
    write_file(path, "gpipe");
    run_as("pipeline.schedule_file", path, read);
    assert_memory_equal(gpipe, read, sizeof gpipe);
    assert_int_equal(remove(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schedule_memory__split_backwards),
        cmocka_unit_test(test_schedule_memory__follows_in_flight),
        cmocka_unit_test(test_schedule_memory__v_places_the_model),
        cmocka_unit_test(test_schedule_memory__two_directions),
        cmocka_unit_test(test_schedule_memory__own_order_from_a_file),
        cmocka_unit_test(test_schedule_memory__refuses_what_is_not_modelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
