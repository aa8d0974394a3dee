/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "support/random_job.h"

#include <string.h>

static me_rank_result *run(const test_job *job, int32_t rank)
{
    me_diag diag = {.status = ME_OK};
    me_rank_result *result = NULL;
    if (test_job_run(job, rank, &diag, &result) != ME_OK) {
        fail_msg("rank %d: %s", (int)rank, diag.text);
    }
    return result;
}

static const me_point_result *point(const me_rank_result *result,
                                    const char *name)
{
    for (uint32_t i = 0; i < result->n_points; i++) {
        if (strcmp(result->points[i].name, name) == 0) {
            return &result->points[i];
        }
    }
    return NULL;
}

/** PyTorch counts a block whose free was asked for and not completed as
 *  requested, but no longer as allocated: around a backward's end the first can
 *  be the larger one. */
static bool may_wait_for_frees(const me_point_result *p)
{
    return strncmp(p->name, "finalize", 8) == 0 ||
           strncmp(p->name, "fwd", 3) == 0;
}

/** Requested, allocated and reserved bytes, now and at most. */
static const char *check_points(const me_rank_result *result)
{
    for (uint32_t i = 0; i < result->n_points; i++) {
        const me_point_result *p = &result->points[i];
        if (p->requested_bytes > p->requested_peak_bytes ||
            p->allocated_bytes > p->allocated_peak_bytes ||
            p->reserved_bytes > p->reserved_peak_bytes) {
            return "more at a point than at its peak";
        }
        if (p->allocated_peak_bytes > p->reserved_peak_bytes ||
            p->requested_peak_bytes > p->reserved_peak_bytes) {
            return "more than is reserved";
        }
        if (!may_wait_for_frees(p) &&
            (p->requested_bytes > p->allocated_bytes ||
             p->requested_peak_bytes > p->allocated_peak_bytes)) {
            return "more requested than allocated";
        }
    }
    return NULL;
}

static const char *check_peaks(const me_rank_result *result)
{
    for (uint32_t i = 0; i < result->n_iterations; i++) {
        const me_peak_result *peak = &result->iterations[i].peak;
        uint64_t sum = 0;
        for (int c = 0; c < ME_CATEGORY_COUNT; c++) {
            sum += peak->by_category[c];
        }
        if (sum != peak->requested_bytes) {
            return "the categories do not add up to the peak";
        }
        for (uint32_t k = 0; k < result->iterations[i].n_phases; k++) {
            if (result->iterations[i].phases[k].requested_bytes >
                peak->requested_bytes) {
                return "a phase has more than its iteration";
            }
        }
    }
    const uint64_t parameters =
        me_rank_result_peak(result)->by_category[ME_CATEGORY_PARAMETER];
    return parameters < result->parameter_bytes ? "parameters are missing"
                                                : NULL;
}

/** A steady iteration leaves what it found: its scalars alone differ, since
 *  the loss and its total are made anew at other moments. */
static const char *check_balance(const me_rank_result *result)
{
    enum {
        SCALARS = 256
    };

    const me_point_result *begin = point(result, "iter1_begin");
    const me_point_result *end = point(result, "iter1_end");
    if (begin == NULL || end == NULL) {
        return "iteration 1 is missing";
    }
    return end->requested_bytes > begin->requested_bytes + SCALARS ||
                   begin->requested_bytes > end->requested_bytes + SCALARS
               ? "an iteration does not give back what it took"
               : NULL;
}

/** An evaluation leaves no more than it found, and is told once, behind all
 *  iterations. What a stage was sent last has a gradient in training alone. */
static const char *check_evaluation(const me_rank_result *result)
{
    enum {
        SCALARS = 256
    };

    const me_point_result *before = point(result, "iter1_end");
    const me_point_result *after = point(result, "evaluated");
    const me_iteration_result *last =
        &result->iterations[result->n_iterations - 1];
    if (after == NULL || !me_is_evaluation(last) ||
        last->requested_bytes != after->requested_peak_bytes) {
        return "the evaluation is missing";
    }
    return after->requested_bytes > before->requested_bytes + SCALARS
               ? "an evaluation does not give back what it took"
               : NULL;
}

static const char *check_result(const me_rank_result *result)
{
    const char *wrong = check_points(result);
    wrong = wrong == NULL ? check_peaks(result) : wrong;
    wrong = wrong == NULL ? check_balance(result) : wrong;
    return wrong == NULL ? check_evaluation(result) : wrong;
}

static const char *property_results_make_sense(me_random *random)
{
    test_sets s = {.count = 0};
    test_job job;
    const char *wrong = NULL;
    test_make_model(random, &s);
    test_make_grid(random, &s);
    test_plan_sets(&job, &s);
    for (int32_t i = 0; wrong == NULL && i < job.plan->n_classes; i++) {
        me_rank_result *result = run(&job, me_plan_representative(job.plan, i));
        wrong = check_result(result);
        me_rank_result_destroy(result);
    }
    test_job_fini(&job);
    return wrong;
}

/** Equal results give equal bytes. */
static bool are_equal(const me_rank_result *a, const me_rank_result *b)
{
    unsigned char *bytes[2] = {NULL, NULL};
    size_t size[2] = {0, 0};
    assert_int_equal(me_rank_result_encode(a, &bytes[0], &size[0]), ME_OK);
    assert_int_equal(me_rank_result_encode(b, &bytes[1], &size[1]), ME_OK);
    const bool is_equal =
        size[0] == size[1] && memcmp(bytes[0], bytes[1], size[0]) == 0;
    me_free(bytes[0]);
    me_free(bytes[1]);
    return is_equal;
}

/* Ranks of one class give the bytes of their representative. */
static const char *property_folding_changes_nothing(me_random *random)
{
    test_sets s = {.count = 0};
    test_job job;
    const char *wrong = NULL;
    test_make_model(random, &s);
    test_make_grid(random, &s);
    test_plan_sets(&job, &s);
    for (int32_t r = 0; wrong == NULL && r < job.config->parallel.world_size;
         r++) {
        const int32_t other =
            me_plan_representative(job.plan, job.plan->class_of[r]);
        if (other == r) {
            continue;
        }
        me_rank_result *a = run(&job, r);
        me_rank_result *b = run(&job, other);
        if (!are_equal(a, b)) {
            wrong = "ranks of one class differ";
        }
        me_rank_result_destroy(a);
        me_rank_result_destroy(b);
    }
    test_job_fini(&job);
    return wrong;
}

/** Requested bytes that rank 0's forward leaves: fwd0_end less fwd0_begin. */
static uint64_t saved_bytes(const test_sets *s)
{
    test_job job;
    test_plan_sets(&job, s);
    me_rank_result *result = run(&job, 0);
    const uint64_t saved = point(result, "fwd0_end")->requested_bytes -
                           point(result, "fwd0_begin")->requested_bytes;
    me_rank_result_destroy(result);
    test_job_fini(&job);
    return saved;
}

/** Multi-token prediction takes groups of one layer only. */
static bool predicts_further(const test_sets *s)
{
    for (int i = 0; i < s->count; i++) {
        if (strcmp(s->list[i], "model.mtp_num_layers=0") == 0) {
            return false;
        }
    }
    return true;
}

static const char *property_recomputation_saves_less(me_random *random)
{
    test_sets s = {.count = 0};
    test_make_model(random, &s);
    test_make_training(random, &s, 1);
    const uint64_t all = saved_bytes(&s);
    test_sets full = s;
    for (int i = 0; i < s.count; i++) { /* the copy's own texts */
        if (s.list[i] == s.text[i]) {
            full.list[i] = full.text[i];
        }
    }
    test_sets_add_text(&full, "recompute.granularity=full");
    const bool is_uniform = test_coin(random);
    test_sets_add_text(&full, is_uniform ? "recompute.method=uniform"
                                         : "recompute.method=block");
    const bool is_single = is_uniform && predicts_further(&s);
    test_sets_add(&full, "recompute.num_layers",
                  is_single ? 1 : me_random_in(random, 1, 4));
    return saved_bytes(&full) > all ? "recomputation keeps more" : NULL;
}

/** Parameter bytes of rank 0 with @p tensor ranks. */
static uint64_t parameter_bytes(const test_sets *s, int64_t tensor)
{
    test_sets more = {.count = 0};
    test_job job;
    for (int i = 0; i < s->count; i++) {
        test_sets_add_text(&more, s->list[i]);
    }
    test_sets_add(&more, "parallel.tensor", tensor);
    test_plan_sets(&job, &more);
    me_rank_result *result = run(&job, 0);
    const uint64_t bytes = result->parameter_bytes;
    me_rank_result_destroy(result);
    test_job_fini(&job);
    return bytes;
}

/* The vocabulary is given as padded, so more ranks do not pad it further. */
static const char *property_tensor_ranks_share_parameters(me_random *random)
{
    test_sets s = {.count = 0};
    test_make_model(random, &s);
    test_make_training(random, &s, 1);
    test_sets_add(&s, "model.padded_vocab_size", 1024);
    uint64_t before = UINT64_MAX;
    for (int64_t tensor = 1; tensor <= 4; tensor *= 2) {
        const uint64_t bytes = parameter_bytes(&s, tensor);
        if (bytes >= before) {
            return "more tensor ranks hold more parameters each";
        }
        before = bytes;
    }
    return NULL;
}

/** Rank 0's forward_backward peak of iteration 1 in a pipeline. */
static uint64_t pipeline_peak(const test_sets *s, int64_t pipeline,
                              int64_t batches)
{
    test_sets more = {.count = 0};
    test_job job;
    for (int i = 0; i < s->count; i++) {
        test_sets_add_text(&more, s->list[i]);
    }
    test_sets_add(&more, "parallel.pipeline", pipeline);
    test_sets_add(&more, "parallel.world_size", pipeline);
    test_sets_add(&more, "train.micro_batch_size", 1);
    test_sets_add(&more, "train.global_batch_size", batches);
    test_plan_sets(&job, &more);
    me_rank_result *result = run(&job, 0);
    const me_iteration_result *it =
        me_rank_result_iteration(result, ME_STEADY_ITERATION);
    uint64_t peak = 0;
    for (uint32_t i = 0; i < it->n_phases; i++) {
        if (strcmp(it->phases[i].name, "forward_backward") == 0) {
            peak = it->phases[i].requested_bytes;
        }
    }
    me_rank_result_destroy(result);
    test_job_fini(&job);
    return peak;
}

/* 1F1B holds at most as many micro-batches as there are stages: more of them
 * add a report of 8 and a token count of 4 bytes each on the last stage, and
 * nothing on the first. */
static const char *property_in_flight_is_bounded(me_random *random)
{
    test_sets s = {.count = 0};
    test_make_model(random, &s);
    const int64_t pipeline = test_coin(random) ? 2 : 4;
    const uint64_t twice = pipeline_peak(&s, pipeline, 2 * pipeline);
    const uint64_t more =
        pipeline_peak(&s, pipeline, pipeline * me_random_in(random, 3, 6));
    return twice != more || twice == 0
               ? "the first stage holds more with more micro-batches"
               : NULL;
}

/** What rank 0 takes in an evaluation of micro-batches @p times as large as
 *  training's, and as many of them. */
static uint64_t evaluation_peak(const test_sets *s, uint64_t times)
{
    test_sets more = *s;
    for (int i = 0; i < s->count; i++) { /* the copy's own texts */
        more.list[i] = s->list[i] == s->text[i] ? more.text[i] : s->list[i];
    }
    test_job job;
    test_plan_sets(&job, s);
    const me_train_config *t = &job.config->train;
    test_sets_add(&more, "train.eval_micro_batch_size",
                  (int64_t)(times * t->micro_batch_size));
    test_sets_add(&more, "train.eval_global_batch_size",
                  (int64_t)(times * t->global_batch_size));
    test_job_fini(&job);
    test_plan_sets(&job, &more);
    me_rank_result *result = run(&job, 0);
    const uint64_t peak = point(result, "evaluated")->requested_peak_bytes;
    me_rank_result_destroy(result);
    test_job_fini(&job);
    return peak;
}

/* Tensors grow with the samples; what does not is the same. */
static const char *property_evaluation_grows(me_random *random)
{
    test_sets s = {.count = 0};
    test_make_model(random, &s);
    test_make_grid(random, &s);
    return evaluation_peak(&s, 3) <= evaluation_peak(&s, 1)
               ? "an evaluation of larger micro-batches takes no more"
               : NULL;
}

enum {
    CASES = 60
};

static void test_job__results_make_sense(void **state)
{
    (void)state;
    me_property_run(property_results_make_sense, CASES);
}

static void test_job__folding_changes_nothing(void **state)
{
    (void)state;
    me_property_run(property_folding_changes_nothing, CASES);
}

static void test_job__recomputation_saves_less(void **state)
{
    (void)state;
    me_property_run(property_recomputation_saves_less, CASES);
}

static void test_job__tensor_ranks_share_parameters(void **state)
{
    (void)state;
    me_property_run(property_tensor_ranks_share_parameters, CASES);
}

static void test_job__in_flight_is_bounded(void **state)
{
    (void)state;
    me_property_run(property_in_flight_is_bounded, CASES);
}

static void test_job__evaluation_grows(void **state)
{
    (void)state;
    me_property_run(property_evaluation_grows, CASES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_job__results_make_sense),
        cmocka_unit_test(test_job__folding_changes_nothing),
        cmocka_unit_test(test_job__recomputation_saves_less),
        cmocka_unit_test(test_job__tensor_ranks_share_parameters),
        cmocka_unit_test(test_job__in_flight_is_bounded),
        cmocka_unit_test(test_job__evaluation_grows),
    };
    return cmocka_run_group_tests_name("job", tests, NULL, NULL);
}
