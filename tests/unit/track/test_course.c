/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/faults.h"
#include "support/stream.h"
#include "support/test.h"
#include "track/tracker.h"

#include <string.h>

enum {
    GRADIENT = 1, /* blocks */
    SAVED,
    SCRATCH,
    RECEIVED
};

static void forward(me_test_stream *s, int32_t chunk, uint32_t saved)
{
    me_stream_action(s, "F", chunk);
    me_stream_phase(s, ME_PHASE_FORWARD);
    me_stream_alloc(s, saved, 100, ME_CATEGORY_ACTIVATION, "mm");
    me_stream_alloc(s, SCRATCH, 7, ME_CATEGORY_TEMPORARY, "gelu");
    me_stream_free(s, SCRATCH, 7);
    me_stream_phase(s, ME_PHASE_OTHER);
    me_stream_action(s, NULL, 0);
}

/** An overlapped reduction inside of it belongs to it. */
static void backward(me_test_stream *s, int32_t chunk, uint32_t saved)
{
    me_stream_action(s, "B", chunk);
    me_stream_phase(s, ME_PHASE_BACKWARD);
    me_stream_alloc(s, SCRATCH, 30, ME_CATEGORY_TEMPORARY, "mm");
    me_stream_phase(s, ME_PHASE_GRADIENT_REDUCTION);
    me_stream_phase(s, ME_PHASE_BACKWARD);
    me_stream_free(s, SCRATCH, 30);
    me_stream_free(s, saved, 100);
    me_stream_phase(s, ME_PHASE_OTHER);
    me_stream_action(s, NULL, 0);
}

/** Two micro-batches; what is received between two actions is of the second,
 *  and is gone before it begins. */
static void play_iteration(me_test_stream *s, int32_t iteration,
                           const char *begin, const char *end)
{
    me_stream_iteration(s, iteration);
    me_stream_alloc(s, SCRATCH, 5000, ME_CATEGORY_OTHER, "before");
    me_stream_free(s, SCRATCH, 5000);
    me_stream_point(s, begin);
    s->microbatch = 0;
    forward(s, 1, SAVED);
    s->microbatch = ME_NO_MICROBATCH;
    me_stream_alloc(s, RECEIVED, 500, ME_CATEGORY_COMMUNICATION, "recv");
    me_stream_free(s, RECEIVED, 500);
    s->microbatch = 0;
    backward(s, 1, SAVED);
    s->microbatch = 1;
    forward(s, 0, SAVED);
    backward(s, 0, SAVED);
    s->microbatch = ME_NO_MICROBATCH;
    me_stream_phase(s, ME_PHASE_OPTIMIZER);
    me_stream_alloc(s, SCRATCH, 40, ME_CATEGORY_TEMPORARY, "sqrt");
    me_stream_free(s, SCRATCH, 40);
    me_stream_phase(s, ME_PHASE_OTHER);
    me_stream_alloc(s, SCRATCH, 3, ME_CATEGORY_TEMPORARY, "loss");
    me_stream_point(s, end);
    me_stream_free(s, SCRATCH, 3);
}

static me_tracker *play(bool keeps)
{
    me_tracker *tracker = me_tracker_create(&me_stream_tree, NULL, NULL);
    if (tracker == NULL) {
        return NULL;
    }
    if (keeps) {
        me_tracker_keep_course(tracker);
    }
    me_test_stream s = {.observers = {me_tracker_observer(tracker)},
                        .n_observers = 1,
                        .iteration = -1};
    me_stream_alloc(&s, GRADIENT, 50, ME_CATEGORY_GRADIENT, "zeros");
    play_iteration(&s, 0, "iter0_begin", "iter0_end");
    play_iteration(&s, 1, "iter1_begin", "iter1_end");
    play_iteration(&s, 2, "iter2_begin", "iter2_end");
    return tracker;
}

static void test_course__follows_the_steady_iteration(void **state)
{
    (void)state;

    static const struct {
        const char *name;
        int32_t chunk;
        int32_t microbatch;
        uint64_t begin;
        uint64_t peak;
        uint64_t end;
    } expected[] = {
        {"F", 1, 0, 50, 157, 150},         {"B", 1, 0, 150, 650, 50},
        {"F", 0, 1, 50, 157, 150},         {"B", 0, 1, 150, 180, 50},
        {"optimizer", -1, -1, 50, 90, 50}, {"other", -1, -1, 50, 53, 53},
    };

    me_tracker *tracker = play(true);
    me_rank_result *result = NULL;
    assert_int_equal(me_tracker_finish(tracker, NULL, &result), ME_OK);
    assert_int_equal(result->n_course, sizeof expected / sizeof *expected);
    for (uint32_t i = 0; i < result->n_course; i++) {
        const me_course_part *part = &result->course[i];
        assert_string_equal(part->name, expected[i].name);
        assert_int_equal(part->chunk, expected[i].chunk);
        assert_int_equal(part->microbatch, expected[i].microbatch);
        assert_int_equal(part->requested.begin, expected[i].begin);
        assert_int_equal(part->requested.peak, expected[i].peak);
        assert_int_equal(part->requested.end, expected[i].end);
        assert_true(part->allocated.peak == ME_BYTES_UNKNOWN);
        assert_true(part->reserved.begin == ME_BYTES_UNKNOWN);
    }
    assert_int_equal(result->course_left_out, 0);
    for (unsigned i = 0; i < ME_CATEGORY_COUNT; i++) {
        assert_int_equal(result->course_begin_by_category[i],
                         i == ME_CATEGORY_GRADIENT ? 50 : 0);
    }
    assert_int_equal(me_rank_result_peak(result)->requested_bytes, 650);
    me_rank_result_destroy(result);
    me_tracker_destroy(tracker);
}

static void test_course__is_kept_on_request_only(void **state)
{
    (void)state;
    me_tracker *tracker = play(false);
    me_rank_result *result = NULL;
    assert_int_equal(me_tracker_finish(tracker, NULL, &result), ME_OK);
    assert_int_equal(result->n_course, 0);
    me_rank_result_destroy(result);
    me_tracker_destroy(tracker);
}

/* What finds no room is counted, and its peak is the last part's. */
static void test_course__is_bounded(void **state)
{
    (void)state;
    me_tracker *tracker = me_tracker_create(&me_stream_tree, NULL, NULL);
    me_tracker_keep_course(tracker);
    me_test_stream s = {.observers = {me_tracker_observer(tracker)},
                        .n_observers = 1};
    me_stream_iteration(&s, 1);
    for (int32_t i = 0; i < ME_COURSE_MAX + 9; i++) {
        const uint64_t bytes = i == ME_COURSE_MAX + 5 ? 77 : 10;
        s.microbatch = i;
        me_stream_action(&s, "F", 0);
        me_stream_alloc(&s, SCRATCH, bytes, ME_CATEGORY_TEMPORARY, "mm");
        me_stream_free(&s, SCRATCH, bytes);
        me_stream_action(&s, NULL, 0);
    }
    me_rank_result *result = NULL;
    assert_int_equal(me_tracker_finish(tracker, NULL, &result), ME_OK);
    assert_int_equal(result->n_course, ME_COURSE_MAX);
    assert_int_equal(result->course_left_out, 10);
    const me_course_part *last = &result->course[ME_COURSE_MAX - 1];
    assert_string_equal(last->name, "other");
    assert_int_equal(last->requested.peak, 77);
    me_rank_result_destroy(result);
    me_tracker_destroy(tracker);
}

static me_status keep_all(void *context)
{
    (void)context;
    me_tracker *tracker = play(true);
    if (tracker == NULL) {
        return ME_ERR_NOMEM;
    }
    me_rank_result *result = NULL;
    const me_status status = me_tracker_finish(tracker, NULL, &result);
    me_rank_result_destroy(result);
    me_tracker_destroy(tracker);
    return status;
}

static void test_course__survives_failing_memory(void **state)
{
    (void)state;
    me_sweep_faults(keep_all, NULL, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_course__follows_the_steady_iteration),
        cmocka_unit_test(test_course__is_kept_on_request_only),
        cmocka_unit_test(test_course__is_bounded),
        cmocka_unit_test(test_course__survives_failing_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
