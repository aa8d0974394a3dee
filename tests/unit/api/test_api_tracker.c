/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/test.h"
#include "support/tracked.h"

#include <stdio.h>
#include <string.h>

/** What PyTorch's MemTracker says of its first test, Linear and ReLU four times:
 *  the peak of the GPU (docs/trackers.md). */
static const uint64_t PEAK_BYTES = 10522624;

/** A snapshot, whose categories add up. */
static memest_snapshot check_sum(const memest_snapshot *s)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < s->n_categories; i++) {
        sum += s->category_bytes[i];
    }
    assert_true(sum == s->total_bytes);
    return *s;
}

static memest_snapshot peak_of(const memest_tracker *t, memest_place place)
{
    memest_snapshot s = MEMEST_INIT(memest_snapshot);
    assert_true(memest_tracker_peak(t, place, &s));
    return check_sum(&s);
}

static uint64_t category_of(const memest_tracker *t, const memest_snapshot *s,
                            const char *name)
{
    const char *label = NULL;
    for (size_t i = 0; (label = memest_tracker_category_name(t, i)) != NULL;
         i++) {
        if (strcmp(label, name) == 0) {
            return s->category_bytes[i];
        }
    }
    fail_msg("no category %s", name);
    return 0;
}

static void check_module(const memest_tracker *t, size_t index)
{
    memest_tracked_module m = MEMEST_INIT(memest_tracked_module);
    assert_true(memest_tracker_module(t, index, &m));
    assert_true(m.n_states > 0);
    for (size_t s = 0; s < m.n_states; s++) {
        assert_non_null(memest_tracker_state_name(t, index, s));
        const size_t n = memest_tracker_n_calls(t, index, s);
        assert_true(n > 0);
        for (size_t call = 0; call < n; call++) {
            memest_snapshot snapshot = MEMEST_INIT(memest_snapshot);
            assert_true(memest_tracker_module_snapshot(
                t, index, s, call, MEMEST_PLACE_GPU, &snapshot));
            (void)check_sum(&snapshot);
        }
        memest_snapshot none = MEMEST_INIT(memest_snapshot);
        assert_false(memest_tracker_module_snapshot(t, index, s, n,
                                                    MEMEST_PLACE_GPU, &none));
    }
    assert_null(memest_tracker_state_name(t, index, m.n_states));
}

/* Snapshots, points and modules of MemTracker. The model has four Linear of 512
 * x 512 with bias in bfloat16: blocks of 524288 and 1024 bytes. */
static void test_api_tracker__mem(void **state)
{
    (void)state;
    memest_tracker *t = me_tracked_create(MEMEST_TOOL_MEM, true);
    memest_snapshot none = MEMEST_INIT(memest_snapshot);
    assert_false(memest_tracker_peak(t, MEMEST_PLACE_GPU, &none));
    me_tracked_run("mem_tracker", t, NULL);
    const memest_snapshot gpu = peak_of(t, MEMEST_PLACE_GPU);
    assert_true(gpu.total_bytes == PEAK_BYTES);
    assert_true(category_of(t, &gpu, "Parameter") ==
                4 * (UINT64_C(524288) + 1024));
    assert_true(peak_of(t, MEMEST_PLACE_HOST).total_bytes > 0);

    memest_tracked_module root = MEMEST_INIT(memest_tracked_module);
    assert_true(memest_tracker_module(t, 0, &root));
    assert_string_equal(root.name, "DummyModel");
    assert_true(root.parameter_bytes == 4 * (UINT64_C(524288) + 1024));
    assert_true(root.input_bytes == UINT64_C(16) * 512 * 2);
    assert_int_equal(memest_tracker_n_modules(t), 9); /* lists do not run */
    for (size_t i = 0; i < memest_tracker_n_modules(t); i++) {
        check_module(t, i);
    }
    assert_false(memest_tracker_module(t, 9, &root));

    assert_string_equal(memest_tracker_point_name(t, 0), "iter0_begin");
    memest_snapshot point = MEMEST_INIT(memest_snapshot);
    assert_true(memest_tracker_point(t, 0, MEMEST_PLACE_GPU, &point));
    (void)check_sum(&point);
    assert_false(memest_tracker_point(t, 9999, MEMEST_PLACE_GPU, &point));
    assert_null(memest_tracker_parent(t, 0)); /* nothing runs any more */
    assert_null(memest_tracker_series(t));
    memest_tracker_destroy(t);
}

/* FSDPMemTracker has categories and states of its own, and no bytes of modules.
 * The peak is PyTorch's tool's (docs/trackers.md). */
static void test_api_tracker__fsdp(void **state)
{
    (void)state;
    memest_tracker *t = me_tracked_create(MEMEST_TOOL_FSDP2, true);
    me_tracked_run("fsdp2_checkpoint", t, NULL);
    assert_true(peak_of(t, MEMEST_PLACE_GPU).total_bytes ==
                UINT64_C(272958464));
    assert_string_equal(memest_tracker_category_name(t, 0), "Sharded Param");
    memest_tracked_module m = MEMEST_INIT(memest_tracked_module);
    assert_true(memest_tracker_module(t, 0, &m));
    assert_true(m.parameter_bytes == MEMEST_BYTES_UNKNOWN);
    check_module(t, 0);
    memest_tracker_destroy(t);
}

/** What a hook does with the tracker of its run. */
typedef struct in_run {
    memest_tracker *tracker;
    bool resets;
    int n_checked;
} in_run;

/** Memory that is there in one iteration alone. */
static int on_iteration(void *self, const memest_mark_event *event)
{
    in_run *r = self;
    memest_error *error = memest_error_create();
    if (event->at.iteration == 1) {
        assert_int_equal(memest_tracker_track_external(
                             r->tracker, MEMEST_PLACE_GPU, 513, error),
                         MEMEST_OK);
        memest_snapshot now = MEMEST_INIT(memest_snapshot);
        assert_true(memest_tracker_current(r->tracker, MEMEST_PLACE_GPU, &now));
        assert_true(category_of(r->tracker, &now, "Other") == 16384 + 1024);
    }
    if (r->resets) {
        memest_tracker_reset_modules(r->tracker);
        assert_int_equal(memest_tracker_n_modules(r->tracker), 0);
    }
    /* It runs already. */
    memest_job *job = me_tracked_job("mem_tracker");
    assert_int_equal(memest_track(job, 0, r->tracker, NULL, 0, error),
                     MEMEST_ERR_CONFIG);
    memest_job_destroy(job);
    memest_error_destroy(error);
    r->n_checked++;
    return 0;
}

/* Tensors of the user's own are rounded to blocks on the GPU and are Other. */
static void test_api_tracker__external(void **state)
{
    (void)state;
    memest_tracker *t = me_tracked_create(MEMEST_TOOL_MEM, true);
    assert_int_equal(
        memest_tracker_track_external(t, MEMEST_PLACE_GPU, 1000, NULL),
        MEMEST_OK);
    assert_int_equal(
        memest_tracker_track_external(t, MEMEST_PLACE_HOST, 10, NULL),
        MEMEST_OK);
    me_tracked_run("mem_tracker", t, NULL);
    const memest_snapshot gpu = peak_of(t, MEMEST_PLACE_GPU);
    const memest_snapshot host = peak_of(t, MEMEST_PLACE_HOST);
    assert_true(gpu.total_bytes == PEAK_BYTES + 1024);
    assert_true(category_of(t, &host, "Other") == 10);
    assert_int_equal(
        memest_tracker_release_external(t, MEMEST_PLACE_GPU, 1025, NULL),
        MEMEST_ERR_CONFIG);
    assert_int_equal(
        memest_tracker_release_external(t, MEMEST_PLACE_GPU, 1000, NULL),
        MEMEST_OK);

    in_run r = {.tracker = t};
    memest_observer observer = MEMEST_INIT(memest_observer);
    observer.self = &r;
    observer.iteration_begin = on_iteration;
    me_tracked_run("mem_tracker", t, &observer);
    assert_int_equal(r.n_checked, 2);
    assert_true(peak_of(t, MEMEST_PLACE_GPU).total_bytes == PEAK_BYTES + 1024);
    memest_tracker_destroy(t);
}

/** Calls of the root's forward that are kept. */
static size_t n_root_calls(bool resets)
{
    memest_tracker_options options = MEMEST_INIT(memest_tracker_options);
    in_run r = {.resets = resets};
    memest_observer observer = MEMEST_INIT(memest_observer);
    options.keep_modules = true;
    assert_int_equal(memest_tracker_create(&options, &r.tracker, NULL),
                     MEMEST_OK);
    observer.self = &r;
    observer.iteration_begin = on_iteration;
    me_tracked_run("mem_tracker", r.tracker, &observer);
    const size_t n = memest_tracker_n_calls(r.tracker, 0, 0);
    memest_tracker_destroy(r.tracker);
    return n;
}

/* Two iterations: both are kept, until the user resets. PyTorch's tool refuses
 * a root that runs again without a reset. */
static void test_api_tracker__reset(void **state)
{
    (void)state;
    assert_int_equal(n_root_calls(false), 2);
    assert_int_equal(n_root_calls(true), 1);
    memest_tracker_options options = MEMEST_INIT(memest_tracker_options);
    memest_tracker *t = NULL;
    options.keep_modules = true;
    options.as_memtracker = true;
    assert_int_equal(memest_tracker_create(&options, &t, NULL), MEMEST_OK);
    memest_job *job = me_tracked_job("mem_tracker");
    assert_int_equal(memest_track(job, 0, t, NULL, 0, NULL),
                     MEMEST_ERR_UNSUPPORTED);
    memest_job_destroy(job);
    memest_tracker_destroy(t);
}

/** The lines of --tool mod, made by hooks. */
typedef struct hook_log {
    const memest_tracker *tracker;
    char text[8192];
    size_t length;
} hook_log;

static int note(hook_log *log, const char *hook,
                const memest_module_event *event)
{
    if (event->at.iteration != 1) {
        return 0;
    }
    char parents[512] = "";
    const char *name = NULL;
    for (size_t i = 0; (name = memest_tracker_parent(log->tracker, i)) != NULL;
         i++) {
        const size_t at = strlen(parents);
        (void)snprintf(parents + at, sizeof parents - at, "%s%s",
                       i == 0 ? "" : ",", name);
    }
    const int n =
        snprintf(log->text + log->length, sizeof log->text - log->length,
                 "%s\t%s\t%d\t%d\t%s\n", hook, event->fqn, event->is_parent,
                 event->is_backward, parents);
    assert_true(n > 0 && (size_t)n < sizeof log->text - log->length);
    log->length += (size_t)n;
    return 0;
}

static int note_pre_forward(void *self, const memest_module_event *event)
{
    return note(self, "pre_fw", event);
}

static int note_post_forward(void *self, const memest_module_event *event)
{
    return note(self, "post_fw", event);
}

static int note_pre_backward(void *self, const memest_module_event *event)
{
    return note(self, "pre_bw", event);
}

static int note_post_backward(void *self, const memest_module_event *event)
{
    return note(self, "post_bw", event);
}

/* A user's hooks see what ModTracker sees, in its order. */
static void test_api_tracker__mod(void **state)
{
    (void)state;
    static hook_log log;
    memest_tracker *t = me_tracked_create(MEMEST_TOOL_MOD, false);
    memest_observer observer = MEMEST_INIT(memest_observer);
    char *text = NULL;
    log = (hook_log){.tracker = t};
    observer.self = &log;
    observer.pre_forward = note_pre_forward;
    observer.post_forward = note_post_forward;
    observer.pre_backward = note_pre_backward;
    observer.post_backward = note_post_backward;
    assert_int_equal(memest_tracker_text(t, NULL, &text, NULL),
                     MEMEST_ERR_CONFIG); /* it has not run */
    me_tracked_run("mem_tracker", t, &observer);
    assert_int_equal(memest_tracker_text(t, NULL, &text, NULL), MEMEST_OK);
    assert_string_equal(strchr(text, '\n') + 1, log.text);
    assert_non_null(strstr(text, "pre_bw\tDummyModel.linears.0\t1\t1"));
    memest_text_destroy(text);
    memest_tracker_destroy(t);
}

/** A tool that estimates, and a piece of what it says. */
typedef struct estimate {
    memest_tool tool;
    double budget;
    const char *says;
} estimate;

/** A library without a solver refuses to choose. */
static bool is_refused(const estimate *c, memest_status status)
{
    return c->tool == MEMEST_TOOL_ILP && status == MEMEST_ERR_UNSUPPORTED;
}

static void check_estimate(const estimate *c)
{
    memest_tracker_options options = MEMEST_INIT(memest_tracker_options);
    memest_tracker *t = NULL;
    char *text = NULL;
    options.tool = c->tool;
    options.iteration = 1;
    options.budget = c->budget;
    assert_int_equal(memest_tracker_create(&options, &t, NULL), MEMEST_OK);
    me_tracked_run("mem_tracker", t, NULL);
    const memest_status status = memest_tracker_text(t, NULL, &text, NULL);
    if (!is_refused(c, status)) {
        assert_int_equal(status, MEMEST_OK);
        assert_non_null(strstr(text, c->says));
    }
    memest_text_destroy(text);
    memest_tracker_destroy(t);
}

/* Tools that cost operations, and the choice of what to checkpoint. */
static void test_api_tracker__estimates(void **state)
{
    (void)state;
    static const estimate cases[] = {
        {MEMEST_TOOL_RUNTIME, 0, "\nDummyModel fw: 0.000ms bw: 0.001ms\n"},
        {MEMEST_TOOL_SAC, 0, "Module: DummyModel\n"},
        {MEMEST_TOOL_SAC, 0.5, "\nPolicy within 0.5 of the memory: saves"},
        {MEMEST_TOOL_ILP, 1, "\nNo checkpoints are needed\n"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_estimate(&cases[i]);
    }
}

/* The collectives of fully_shard: four modules over four ranks. */
static void test_api_tracker__comm(void **state)
{
    (void)state;
    memest_tracker *t = me_tracked_create(MEMEST_TOOL_COMM, false);
    memest_observer observer = MEMEST_INIT(memest_observer);
    memest_track_style style = MEMEST_INIT(memest_track_style);
    char *text = NULL;
    assert_int_equal(memest_tracker_text(t, NULL, &text, NULL),
                     MEMEST_ERR_CONFIG); /* it has not run */
    me_tracked_run("fsdp2_multi_group", t, &observer);
    assert_int_equal(memest_tracker_text(t, NULL, &text, NULL), MEMEST_OK);
    assert_non_null(strstr(text, "c10d._allgather_base_.default"));
    memest_text_destroy(text);
    style.format = MEMEST_TRACK_JSON;
    assert_int_equal(memest_tracker_text(t, &style, &text, NULL), MEMEST_OK);
    assert_non_null(strstr(text, "c10d._reduce_scatter_base_.default"));
    memest_text_destroy(text);
    style.format = MEMEST_TRACK_HTML;
    assert_int_equal(memest_tracker_text(t, &style, &text, NULL),
                     MEMEST_ERR_CONFIG);
    assert_null(memest_tracker_series(t));
    memest_snapshot s = MEMEST_INIT(memest_snapshot);
    assert_false(memest_tracker_peak(t, MEMEST_PLACE_GPU, &s));
    memest_tracker_destroy(t);
}

static int stop_at_layer(void *self, const memest_module_event *event)
{
    (void)self;
    return event->at.iteration == 0 &&
                   strcmp(event->fqn, "DummyModel.linears.4") == 0
               ? 5
               : 0;
}

/* After a stop the tracker says what it saw until then. */
static void test_api_tracker__stops(void **state)
{
    (void)state;
    memest_tracker *t = me_tracked_create(MEMEST_TOOL_MEM, false);
    memest_error *error = memest_error_create();
    memest_job *job = me_tracked_job("mem_tracker");
    memest_observer observer = MEMEST_INIT(memest_observer);
    observer.post_backward = stop_at_layer;
    const memest_observer *all[] = {&observer};
    assert_int_equal(memest_track(job, 0, t, all, 1, error),
                     MEMEST_ERR_STOPPED);
    assert_non_null(strstr(memest_error_text(error),
                           "its hook post_backward returned 5 in iteration 0"));
    assert_true(peak_of(t, MEMEST_PLACE_GPU).total_bytes > 0);
    assert_int_equal(memest_tracker_n_modules(t), 9);
    memest_job_destroy(job);
    memest_error_destroy(error);
    memest_tracker_destroy(t);
}

static void check_refused(memest_tool tool, const char *name, int32_t rank,
                          const char *part)
{
    memest_tracker *t = me_tracked_create(tool, false);
    memest_error *error = memest_error_create();
    memest_job *job = me_tracked_job(name);
    assert_int_equal(memest_track(job, rank, t, NULL, 0, error),
                     MEMEST_ERR_CONFIG);
    if (strstr(memest_error_text(error), part) == NULL) {
        fail_msg("%s", memest_error_text(error));
    }
    memest_job_destroy(job);
    memest_error_destroy(error);
    memest_tracker_destroy(t);
}

static void test_api_tracker__refuses(void **state)
{
    (void)state;
    check_refused(MEMEST_TOOL_FSDP2, "mem_tracker", 0, "fully_shard");
    check_refused(MEMEST_TOOL_MEM, "mem_tracker", 1, "ranks 0 to 0");
    check_refused(MEMEST_TOOL_MEM, "mem_tracker", -1, "rank -1");

    memest_tracker_options options = MEMEST_INIT(memest_tracker_options);
    memest_tracker *t = NULL;
    options.iteration = -1;
    assert_int_equal(memest_tracker_create(&options, &t, NULL),
                     MEMEST_ERR_CONFIG);
    options.struct_size = 1;
    assert_int_equal(memest_tracker_create(&options, &t, NULL),
                     MEMEST_ERR_CONFIG);
    t = me_tracked_create(MEMEST_TOOL_MOD, false);
    assert_int_equal(
        memest_tracker_release_external(t, MEMEST_PLACE_GPU, 0, NULL),
        MEMEST_ERR_CONFIG); /* it keeps no snapshots to take it from */
    assert_int_equal(
        memest_tracker_track_external(t, MEMEST_PLACE_GPU, 1, NULL),
        MEMEST_ERR_CONFIG);
    memest_tracker_destroy(t);
    memest_tracker_destroy(NULL);

    t = me_tracked_create(MEMEST_TOOL_MEM, false);
    me_tracked_run("mem_tracker", t, NULL);
    memest_track_style style = MEMEST_INIT(memest_track_style);
    char *text = NULL;
    style.units = "furlong";
    assert_int_equal(memest_tracker_text(t, &style, &text, NULL),
                     MEMEST_ERR_CONFIG);
    style = (memest_track_style)MEMEST_INIT(memest_track_style);
    style.format = MEMEST_TRACK_HTML;
    assert_int_equal(memest_tracker_text(t, &style, &text, NULL),
                     MEMEST_ERR_CONFIG);
    memest_tracker_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_api_tracker__mem),
        cmocka_unit_test(test_api_tracker__fsdp),
        cmocka_unit_test(test_api_tracker__external),
        cmocka_unit_test(test_api_tracker__reset),
        cmocka_unit_test(test_api_tracker__mod),
        cmocka_unit_test(test_api_tracker__estimates),
        cmocka_unit_test(test_api_tracker__comm),
        cmocka_unit_test(test_api_tracker__stops),
        cmocka_unit_test(test_api_tracker__refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
