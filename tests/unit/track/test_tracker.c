/* SPDX-License-Identifier: BSD-3-Clause */
#include "alloc/pool_observer.h"
#include "support/faults.h"
#include "support/stream.h"
#include "support/test.h"
#include "track/tracker.h"

#include <string.h>

static me_rank_result *play(const me_pool_counters *pool,
                            const me_device_counter *device)
{
    me_tracker *tracker = me_tracker_create(&me_stream_tree, pool, device);
    assert_non_null(tracker);
    me_test_stream s = {.observers = {me_tracker_observer(tracker)},
                        .n_observers = 1};
    me_stream_play(&s);
    me_rank_result *result = NULL;
    me_diag diag = {0};
    assert_int_equal(me_tracker_finish(tracker, &diag, &result), ME_OK);
    me_tracker_destroy(tracker);
    return result;
}

/** A pool that holds twice what it is asked for at its reads. */
typedef struct fake_pool {
    uint64_t current;
    uint64_t resets;
} fake_pool;

static void read_fake(void *self, me_pool_counter *allocated_out,
                      me_pool_counter *reserved_out)
{
    fake_pool *pool = self;
    pool->current += 10; /* every read finds 10 more */
    *allocated_out = (me_pool_counter){pool->current, pool->current + 1};
    *reserved_out = (me_pool_counter){1000, 1000 + pool->current};
}

static void reset_fake(void *self)
{
    ((fake_pool *)self)->resets++;
}

static uint64_t read_device(void *self)
{
    return *(uint64_t *)self;
}

static const me_phase_result *find_phase(const me_iteration_result *iteration,
                                         const char *name)
{
    for (uint32_t i = 0; i < iteration->n_phases; i++) {
        if (strcmp(iteration->phases[i].name, name) == 0) {
            return &iteration->phases[i];
        }
    }
    return NULL;
}

static void test_tracker__keeps_points_in_order(void **state)
{
    (void)state;

    static const struct {
        const char *name;
        uint64_t current;
        uint64_t peak;
    } expected[] = {
        {"model_built", 150, 150},     {"iter0_begin", 150, 150},
        {"fwd0_begin", 150, 150},      {"fwd0_end", 550, 550},
        {"finalize_begin", 150, 620},  {"optimizer_begin", 150, 150},
        {"optimizer_end", 230, 230},   {"iter0_end", 230, 230},
        {"iter1_begin", 230, 230},     {"fwd0_begin", 230, 230},
        {"fwd0_end", 630, 630},        {"finalize_begin", 230, 700},
        {"optimizer_begin", 230, 230}, {"optimizer_end", 230, 230},
        {"iter1_end", 230, 230},
    };

    me_rank_result *result = play(NULL, NULL);
    assert_int_equal(result->n_points, sizeof expected / sizeof *expected);
    for (uint32_t i = 0; i < result->n_points; i++) {
        const me_point_result *point = &result->points[i];
        assert_string_equal(point->name, expected[i].name);
        assert_int_equal(point->requested_bytes, expected[i].current);
        assert_int_equal(point->requested_peak_bytes, expected[i].peak);
        assert_true(point->allocated_bytes == ME_BYTES_UNKNOWN);
        assert_true(point->reserved_peak_bytes == ME_BYTES_UNKNOWN);
        assert_true(point->device_bytes == ME_BYTES_UNKNOWN);
    }
    me_rank_result_destroy(result);
}

static void test_tracker__explains_the_steady_peak(void **state)
{
    (void)state;
    me_rank_result *result = play(NULL, NULL);
    const me_peak_result *peak = me_rank_result_peak(result);
    assert_int_equal(peak->iteration, 1);
    assert_int_equal(peak->requested_bytes, 700);
    assert_string_equal(peak->phase, "backward");
    assert_string_equal(peak->module, "decoder.layers.1.mlp");
    assert_string_equal(peak->op, "aten::mm");
    assert_int_equal(peak->microbatch, 0);
    assert_int_equal(peak->by_category[ME_CATEGORY_PARAMETER], 100);
    assert_int_equal(peak->by_category[ME_CATEGORY_GRADIENT], 50);
    assert_int_equal(peak->by_category[ME_CATEGORY_OPTIMIZER_STATE], 80);
    assert_int_equal(peak->by_category[ME_CATEGORY_ACTIVATION], 400);
    assert_int_equal(peak->by_category[ME_CATEGORY_TEMPORARY], 70);
    uint64_t sum = 0;
    for (unsigned i = 0; i < ME_CATEGORY_COUNT; i++) {
        sum += peak->by_category[i];
    }
    assert_int_equal(sum, peak->requested_bytes);
    me_rank_result_destroy(result);
}

static void test_tracker__folds_contributors(void **state)
{
    (void)state;
    me_rank_result *result = play(NULL, NULL);
    const me_peak_result *peak = me_rank_result_peak(result);
    assert_int_equal(peak->n_contributors, 5);
    const me_contributor *first = &peak->contributors[0];
    assert_string_equal(first->module, "decoder.layers.0-1.mlp");
    assert_string_equal(first->op, "aten::mm");
    assert_int_equal(first->category, ME_CATEGORY_ACTIVATION);
    assert_int_equal(first->modules, 2);
    assert_int_equal(first->blocks, 2);
    assert_int_equal(first->bytes, 400);
    assert_string_equal(peak->contributors[1].module, "");
    assert_int_equal(peak->contributors[1].bytes, 100);
    assert_string_equal(peak->contributors[3].module, "decoder.layers.1.mlp");
    assert_int_equal(peak->contributors[3].bytes, 70);
    me_rank_result_destroy(result);
}

static void test_tracker__keeps_iterations_and_phases(void **state)
{
    (void)state;
    me_rank_result *result = play(NULL, NULL);
    const me_iteration_result *setup =
        me_rank_result_iteration(result, ME_SETUP_ITERATION);
    const me_iteration_result *first = me_rank_result_iteration(result, 0);
    const me_iteration_result *steady = me_rank_result_iteration(result, 1);
    assert_int_equal(result->n_iterations, 3);
    assert_int_equal(setup->requested_bytes, 150);
    assert_int_equal(first->requested_bytes, 620);
    assert_int_equal(steady->requested_bytes, 700);
    assert_string_equal(steady->phases[0].name, "forward_backward");
    assert_int_equal(steady->phases[0].requested_bytes, 700);
    assert_int_equal(find_phase(steady, "forward")->requested_bytes, 630);
    assert_int_equal(find_phase(steady, "backward")->requested_bytes, 700);
    assert_int_equal(find_phase(first, "optimizer")->requested_bytes, 230);
    assert_null(find_phase(steady, "recompute"));
    me_rank_result_destroy(result);
}

static void test_tracker__measures_modules(void **state)
{
    (void)state;

    static const struct {
        const char *name;
        uint64_t forward;
        uint64_t backward;
        uint64_t parameter_bytes;
        uint64_t activation;
    } expected[] = {
        {"decoder", 630, 700, 40, 400},
        {"decoder.layers", 630, 700, 40, 400},
        {"decoder.layers.0", 460, 500, 20, 200},
        {"decoder.layers.0.mlp", 460, 500, 20, 200},
        {"decoder.layers.1", 630, 700, 20, 200},
        {"decoder.layers.1.mlp", 630, 700, 20, 200},
        {"head", ME_BYTES_UNKNOWN, ME_BYTES_UNKNOWN, 10, 0},
    };

    me_rank_result *result = play(NULL, NULL);
    assert_int_equal(result->parameters, 25);
    assert_int_equal(result->parameter_bytes, 50);
    assert_int_equal(result->n_modules, sizeof expected / sizeof *expected);
    for (uint32_t i = 0; i < result->n_modules; i++) {
        const me_module_result *module = &result->modules[i];
        assert_string_equal(module->name, expected[i].name);
        assert_int_equal(module->forward_peak_bytes, expected[i].forward);
        assert_int_equal(module->backward_peak_bytes, expected[i].backward);
        assert_int_equal(module->parameter_bytes, expected[i].parameter_bytes);
        assert_int_equal(module->activation_bytes, expected[i].activation);
    }
    me_rank_result_destroy(result);
}

static void test_tracker__reads_pool_and_device(void **state)
{
    (void)state;
    fake_pool pool = {0};
    uint64_t device_bytes = 4096;
    const me_pool_counters counters = {read_fake, reset_fake, &pool};
    const me_device_counter device = {read_device, &device_bytes};
    me_rank_result *result = play(&counters, &device);
    /* The create reads once, the point once to close and once to write. */
    assert_int_equal(result->points[0].allocated_peak_bytes, 21);
    assert_int_equal(result->points[0].allocated_bytes, 30);
    assert_int_equal(result->points[0].reserved_bytes, 1000);
    assert_int_equal(result->points[0].reserved_peak_bytes, 1020);
    assert_int_equal(result->points[0].device_bytes, 4096);
    // Of what is reserved 1000 are left at the end, and more had been there.
    const me_peak_result *peak = me_rank_result_peak(result);
    assert_true(peak->reserved_bytes > 1000);
    assert_int_equal(peak->device_bytes, 4096 + peak->reserved_bytes - 1000);
    assert_true(pool.resets > result->n_points);
    me_rank_result_destroy(result);
}

static void read_pool(void *self, me_pool_counter *allocated_out,
                      me_pool_counter *reserved_out)
{
    const me_pool *pool = me_pool_observer_pool(self);
    *allocated_out =
        (me_pool_counter){me_pool_current(pool, ME_POOL_ALLOCATED_BYTES),
                          me_pool_peak(pool, ME_POOL_ALLOCATED_BYTES)};
    *reserved_out =
        (me_pool_counter){me_pool_current(pool, ME_POOL_RESERVED_BYTES),
                          me_pool_peak(pool, ME_POOL_RESERVED_BYTES)};
}

static void reset_pool(void *self)
{
    me_pool_observer_reset_peaks(self);
}

/* Blocks are multiples of the allocator's 512 bytes, so it allocates what is
 * requested, from one segment of 2 MiB. */
static void test_tracker__agrees_with_the_allocator(void **state)
{
    (void)state;
    const me_pool_options options = {.conf = me_alloc_conf_default()};
    me_pool_observer *pool = NULL;
    assert_int_equal(me_pool_observer_create(&options, &pool), ME_OK);
    const me_pool_counters counters = {read_pool, reset_pool, pool};
    me_tracker *tracker = me_tracker_create(&me_stream_tree, &counters, NULL);
    me_test_stream s = {.observers = {me_tracker_observer(tracker),
                                      me_pool_observer_handle(pool)},
                        .n_observers = 2,
                        .scale = 512};
    me_stream_play(&s);
    me_rank_result *result = NULL;
    assert_int_equal(me_tracker_finish(tracker, NULL, &result), ME_OK);
    for (uint32_t i = 0; i < result->n_points; i++) {
        const me_point_result *p = &result->points[i];
        assert_int_equal(p->allocated_bytes, p->requested_bytes);
        assert_int_equal(p->allocated_peak_bytes, p->requested_peak_bytes);
        assert_int_equal(p->reserved_peak_bytes, 2 << 20);
    }
    for (int32_t n = 0; n <= 1; n++) {
        const me_iteration_result *it = me_rank_result_iteration(result, n);
        assert_int_equal(it->allocated_bytes, it->requested_bytes);
        for (uint32_t i = 0; i < it->n_phases; i++) {
            assert_int_equal(it->phases[i].allocated_bytes,
                             it->phases[i].requested_bytes);
        }
    }
    me_rank_result_destroy(result);
    me_tracker_destroy(tracker);
    me_pool_observer_destroy(pool);
}

/* A block that became an activation only after the peak was live at it, and
 * one that is given up as an activation later was still one then. */
static void test_tracker__names_blocks_at_the_peak(void **state)
{
    (void)state;
    me_tracker *tracker = me_tracker_create(&me_stream_tree, NULL, NULL);
    me_test_stream s = {.observers = {me_tracker_observer(tracker)},
                        .n_observers = 1};
    me_stream_iteration(&s, 1);
    me_stream_alloc(&s, 1, 10, ME_CATEGORY_TEMPORARY, "a");
    me_stream_alloc(&s, 2, 20, ME_CATEGORY_ACTIVATION, "b");
    me_stream_recategorize(&s, 1, ME_CATEGORY_TEMPORARY,
                           ME_CATEGORY_ACTIVATION);
    me_stream_recategorize(&s, 2, ME_CATEGORY_ACTIVATION,
                           ME_CATEGORY_TEMPORARY);
    me_stream_recategorize(&s, 2, ME_CATEGORY_TEMPORARY, ME_CATEGORY_OTHER);
    me_stream_free(&s, 1, 10);
    me_stream_alloc(&s, 1, 5, ME_CATEGORY_INPUT, "a");
    me_rank_result *result = NULL;
    assert_int_equal(me_tracker_finish(tracker, NULL, &result), ME_OK);
    const me_peak_result *peak = me_rank_result_peak(result);
    assert_int_equal(peak->requested_bytes, 30);
    assert_int_equal(peak->by_category[ME_CATEGORY_ACTIVATION], 30);
    assert_int_equal(peak->by_category[ME_CATEGORY_TEMPORARY], 0);
    assert_int_equal(peak->by_category[ME_CATEGORY_INPUT], 0);
    me_rank_result_destroy(result);
    me_tracker_destroy(tracker);
}

/* Ranks that one run stands for have its points and modules once, for as long as
 * one of them is there. */
static void test_tracker__results_have_things_in_common(void **state)
{
    (void)state;
    me_tracker *tracker = me_tracker_create(&me_stream_tree, NULL, NULL);
    me_test_stream s = {.observers = {me_tracker_observer(tracker)},
                        .n_observers = 1};
    me_stream_play(&s);
    me_rank_result *results[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(me_tracker_finish(tracker, NULL, &results[i]), ME_OK);
    }
    me_tracker_destroy(tracker);
    const me_rank_result *left = results[1];
    assert_true(left->n_points > 0 && left->n_modules > 0);
    assert_ptr_equal(results[0]->points, left->points);
    assert_ptr_equal(results[0]->modules, left->modules);
    assert_ptr_not_equal(results[0]->iterations, left->iterations);
    me_rank_result_destroy(results[0]);
    assert_true(strlen(left->points[left->n_points - 1].name) > 0);
    assert_string_equal(left->modules[0].name, me_stream_tree.modules[1].path);
    me_rank_result_destroy(results[1]);
}

static void test_tracker__refuses_a_free_of_nothing(void **state)
{
    (void)state;
    me_tracker *tracker = me_tracker_create(&me_stream_tree, NULL, NULL);
    me_test_stream s = {.observers = {me_tracker_observer(tracker)},
                        .n_observers = 1};
    me_stream_free(&s, 7, 10);
    me_rank_result *result = NULL;
    me_diag diag = {0};
    assert_int_equal(me_tracker_finish(tracker, &diag, &result),
                     ME_ERR_INTERNAL);
    assert_null(result);
    assert_true(diag.text[0] != '\0');
    me_tracker_destroy(tracker);
}

static me_status track_all(void *context)
{
    (void)context;
    me_tracker *tracker = me_tracker_create(&me_stream_tree, NULL, NULL);
    if (tracker == NULL) {
        return ME_ERR_NOMEM;
    }
    me_test_stream s = {.observers = {me_tracker_observer(tracker)},
                        .n_observers = 1};
    me_stream_play(&s);
    me_rank_result *result = NULL;
    const me_status status = me_tracker_finish(tracker, NULL, &result);
    me_rank_result_destroy(result);
    me_tracker_destroy(tracker);
    return status;
}

static void test_tracker__survives_failing_memory(void **state)
{
    (void)state;
    me_sweep_faults(track_all, NULL, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tracker__keeps_points_in_order),
        cmocka_unit_test(test_tracker__explains_the_steady_peak),
        cmocka_unit_test(test_tracker__folds_contributors),
        cmocka_unit_test(test_tracker__keeps_iterations_and_phases),
        cmocka_unit_test(test_tracker__measures_modules),
        cmocka_unit_test(test_tracker__reads_pool_and_device),
        cmocka_unit_test(test_tracker__agrees_with_the_allocator),
        cmocka_unit_test(test_tracker__names_blocks_at_the_peak),
        cmocka_unit_test(test_tracker__results_have_things_in_common),
        cmocka_unit_test(test_tracker__refuses_a_free_of_nothing),
        cmocka_unit_test(test_tracker__survives_failing_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
