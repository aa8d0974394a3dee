/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/small_job.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

enum {
    MAX_BLOCKS = 4096,
    MAX_RUNNING = 32
};

/** What an observer saw, checked as it goes. */
typedef struct seen {
    uint64_t bytes[MAX_BLOCKS]; /**< of live blocks, by number */
    uint64_t live;
    uint64_t peak; /**< in the iteration that runs */
    uint64_t steady_peak;
    int32_t iteration;
    char running[MAX_RUNNING][128];
    size_t n_running;
    const char *layer; /**< whose forwards of iteration 1 are counted */
    int n_forwards;
    int n_recomputed;
    int n_backwards;
    int n_collectives;
    int n_actions;
    int n_points;
    int n_changes;
} seen;

static void check_path(const memest_module_event *event)
{
    if (event->n_parents > 0) {
        const char *parent = event->parents[event->n_parents - 1];
        const size_t length = strlen(parent);
        assert_memory_equal(event->path, parent, length);
        assert_int_equal(event->path[length], '.');
        assert_string_equal(event->path + length + 1, event->name);
    } else {
        assert_string_equal(event->path, event->name);
    }
}

static void enter(seen *s, const memest_module_event *event)
{
    assert_int_equal(event->struct_size, sizeof *event);
    check_path(event);
    assert_true(s->n_running < MAX_RUNNING);
    assert_true(strlen(event->path) < sizeof s->running[0]);
    memcpy(s->running[s->n_running], event->path, strlen(event->path) + 1);
    s->n_running++;
}

static void leave(seen *s, const memest_module_event *event)
{
    assert_true(s->n_running > 0);
    s->n_running--;
    assert_string_equal(s->running[s->n_running], event->path);
}

static int pre_forward(void *self, const memest_module_event *event)
{
    seen *s = self;
    enter(s, event);
    if (event->at.iteration == 1 && strcmp(event->path, s->layer) == 0) {
        s->n_forwards += !event->is_backward;
        s->n_recomputed += event->is_backward;
    }
    assert_int_equal(event->is_backward,
                     event->at.phase == MEMEST_PHASE_RECOMPUTE);
    return 0;
}

static int pre_backward(void *self, const memest_module_event *event)
{
    seen *s = self;
    enter(s, event);
    assert_true(event->is_backward);
    s->n_backwards++;
    return 0;
}

static int post(void *self, const memest_module_event *event)
{
    leave(self, event);
    return 0;
}

static int on_alloc(void *self, const memest_block_event *event)
{
    seen *s = self;
    assert_true(event->block < MAX_BLOCKS);
    assert_int_equal(s->bytes[event->block], 0);
    s->bytes[event->block] = event->bytes;
    s->live += event->bytes;
    s->peak = s->live > s->peak ? s->live : s->peak;
    assert_non_null(event->path);
    return 0;
}

static int on_free(void *self, const memest_block_event *event)
{
    seen *s = self;
    assert_true(s->bytes[event->block] == event->bytes);
    s->bytes[event->block] = 0;
    s->live -= event->bytes;
    return 0;
}

static int on_change(void *self, const memest_block_event *event)
{
    assert_int_not_equal(event->category, event->category_before);
    ((seen *)self)->n_changes++;
    return 0;
}

static int on_iteration(void *self, const memest_mark_event *event)
{
    seen *s = self;
    assert_int_equal(event->at.iteration, s->iteration + 1);
    s->steady_peak = s->iteration == 1 ? s->peak : s->steady_peak;
    s->iteration = event->at.iteration;
    s->peak = s->live;
    return 0;
}

static int on_collective(void *self, const memest_mark_event *event)
{
    assert_non_null(event->group);
    assert_non_null(event->dtype);
    const bool is_pair =
        strcmp(event->name, "Send") == 0 || strcmp(event->name, "Recv") == 0;
    assert_int_equal(event->peer >= 0, is_pair);
    ((seen *)self)->n_collectives++;
    return 0;
}

static int on_point(void *self, const memest_mark_event *event)
{
    assert_non_null(event->name);
    ((seen *)self)->n_points++;
    return 0;
}

static int on_action(void *self, const memest_mark_event *event)
{
    assert_non_null(strchr("FBIW", event->name[0]));
    assert_int_equal(event->chunk, 0);
    ((seen *)self)->n_actions++;
    return 0;
}

static memest_observer observer_of(seen *s)
{
    *s = (seen){.iteration = -1, .layer = ""};
    memest_observer observer = MEMEST_INIT(memest_observer);
    observer.self = s;
    observer.pre_forward = pre_forward;
    observer.post_forward = post;
    observer.pre_backward = pre_backward;
    observer.post_backward = post;
    observer.alloc = on_alloc;
    observer.free_completed = on_free;
    observer.category_changed = on_change;
    observer.iteration_begin = on_iteration;
    observer.collective = on_collective;
    observer.point = on_point;
    observer.action_begin = on_action;
    return observer;
}

/* An observer that adds up what it is told has the report's peak, for every
 * rank; each layer's forward is told once a micro-batch, eight of them, and
 * once more where it is recomputed. */
static void test_api_observe__agrees_with_the_report(void **state)
{
    (void)state;
    static seen s;
    memest_job *job = me_small_job_create(NULL);
    memest_report *report = NULL;
    assert_int_equal(memest_estimate(job, NULL, &report, NULL), MEMEST_OK);
    for (int32_t rank = 0; rank < SMALL_JOB_RANKS; rank++) {
        const memest_observer observer = observer_of(&s);
        s.layer = rank < 2 ? "decoder.layers.0" : "decoder.layers.2";
        const memest_observer *all[] = {&observer};
        memest_peak peak = MEMEST_INIT(memest_peak);
        assert_int_equal(memest_observe(job, rank, all, 1, NULL), MEMEST_OK);
        assert_true(memest_report_peak(report, rank, &peak));
        const uint64_t steady = s.iteration == 1 ? s.peak : s.steady_peak;
        assert_true(steady == peak.requested_bytes);
        assert_int_equal(s.n_running, 0);
        assert_int_equal(s.n_forwards, 8);
        assert_int_equal(s.n_recomputed, 8);
        assert_true(s.n_backwards > 0 && s.n_collectives > 0 &&
                    s.n_points > 0 && s.n_changes > 0);
    }
    memest_report_destroy(report);
    memest_job_destroy(job);
}

/* Two observers, one from a caller whose struct was smaller. */
static void test_api_observe__several(void **state)
{
    (void)state;
    static seen first;
    static seen second;
    memest_job *job = me_small_job_create(NULL);
    const memest_observer a = observer_of(&first);
    memest_observer b = observer_of(&second);
    b.struct_size = offsetof(memest_observer, category_changed);
    const memest_observer *all[] = {&a, &b};
    assert_int_equal(memest_observe(job, 1, all, 2, NULL), MEMEST_OK);
    assert_int_equal(first.n_backwards, second.n_backwards);
    assert_true(first.n_changes > 0);
    assert_int_equal(second.n_changes, 0);
    memest_job_destroy(job);
}

static void test_api_observe__refuses(void **state)
{
    (void)state;
    static seen s;
    memest_job *job = me_small_job_create(NULL);
    memest_error *error = memest_error_create();
    memest_observer observer = observer_of(&s);
    const memest_observer *all[] = {&observer};
    assert_int_equal(memest_observe(job, SMALL_JOB_RANKS, all, 1, error),
                     MEMEST_ERR_CONFIG);
    assert_non_null(strstr(memest_error_text(error), "0 to 3"));
    assert_int_equal(memest_observe(job, -1, all, 1, error), MEMEST_ERR_CONFIG);
    observer.struct_size = 3;
    assert_int_equal(memest_observe(job, 0, all, 1, error), MEMEST_ERR_CONFIG);
    assert_int_equal(memest_observe(job, 0, NULL, 0, error), MEMEST_OK);
    memest_error_destroy(error);
    memest_job_destroy(job);
}

/** The module hooks of iteration 1, a line each. */
typedef struct hook_log {
    char text[1024];
    size_t length;
} hook_log;

static void note(void *self, const char *hook, const memest_module_event *event)
{
    hook_log *log = self;
    if (event->at.iteration != 1) {
        return;
    }
    const int n =
        snprintf(log->text + log->length, sizeof log->text - log->length,
                 "%s %s %zu %d\n", hook, event->path, event->n_parents,
                 event->is_backward);
    assert_true(n > 0 && (size_t)n < sizeof log->text - log->length);
    log->length += (size_t)n;
}

static int note_pre_forward(void *self, const memest_module_event *event)
{
    note(self, "pre_fw", event);
    return 0;
}

static int note_post_forward(void *self, const memest_module_event *event)
{
    note(self, "post_fw", event);
    return 0;
}

static int note_pre_backward(void *self, const memest_module_event *event)
{
    note(self, "pre_bw", event);
    return 0;
}

static int note_post_backward(void *self, const memest_module_event *event)
{
    note(self, "post_bw", event);
    return 0;
}

/* The hooks of a job of plain PyTorch are ModTracker's: once a forward, those of
 * one tensor in the order in which forwards made them. The root's input needs no
 * gradient, nor does that of `first`, so these end with the whole backward. */
static void test_api_observe__fires_as_mod_tracker(void **state)
{
    (void)state;
    static const char text[] =
        "framework = \"torch\";\n"
        "torch: { input_shape = \"(4, 8)\"; };\n"
        "module: {\n"
        "  first: { class = \"Linear\"; in_features = 8; out_features = 8; };\n"
        "  block: { inner: { class = \"Linear\"; in_features = 8;\n"
        "                    out_features = 8; }; };\n"
        "};\n";
    hook_log log = {.length = 0};
    memest_job *job = memest_job_create();
    assert_int_equal(
        memest_job_read_text(job, "torch", text, sizeof text - 1, NULL),
        MEMEST_OK);
    memest_observer observer = MEMEST_INIT(memest_observer);
    observer.self = &log;
    observer.pre_forward = note_pre_forward;
    observer.post_forward = note_post_forward;
    observer.pre_backward = note_pre_backward;
    observer.post_backward = note_post_backward;
    const memest_observer *all[] = {&observer};
    assert_int_equal(memest_observe(job, 0, all, 1, NULL), MEMEST_OK);
    assert_string_equal(log.text, "pre_fw  0 0\n"
                                  "pre_fw first 0 0\n"
                                  "post_fw first 0 0\n"
                                  "pre_fw block 0 0\n"
                                  "pre_fw block.inner 1 0\n"
                                  "post_fw block.inner 1 0\n"
                                  "post_fw block 0 0\n"
                                  "post_fw  0 0\n"
                                  "pre_bw block.inner 1 1\n"
                                  "pre_bw block 0 1\n"
                                  "pre_bw  0 1\n"
                                  "pre_bw first 0 1\n"
                                  "post_bw block 0 1\n"
                                  "post_bw block.inner 1 1\n"
                                  "post_bw first 0 1\n"
                                  "post_bw  0 1\n");
    memest_job_destroy(job);
}

/** Stops at the @p left-th call. */
typedef struct stopper {
    int left;
    int n_calls;
} stopper;

static int stop_at_last(void *self, const memest_block_event *event)
{
    stopper *s = self;
    (void)event;
    s->n_calls++;
    return --s->left == 0 ? 42 : 0;
}

static int stop_in_layer(void *self, const memest_module_event *event)
{
    stopper *s = self;
    s->n_calls++;
    return event->at.iteration == 1 && event->is_backward &&
                   strcmp(event->path, "decoder.layers.1") == 0
               ? -1
               : 0;
}

/* A hook that does not return 0 ends the run: the observer behind it and later
 * events are not told, and the caller gets a line that says who and where. */
static void test_api_observe__stops(void **state)
{
    (void)state;
    stopper first = {.left = 7};
    stopper second = {.left = 100};
    memest_job *job = me_small_job_create(NULL);
    memest_error *error = memest_error_create();
    memest_observer a = MEMEST_INIT(memest_observer);
    a.self = &first;
    a.alloc = stop_at_last;
    memest_observer b = a;
    b.self = &second;
    const memest_observer *all[] = {&b, &a};
    assert_int_equal(memest_observe(job, 0, all, 2, error), MEMEST_ERR_STOPPED);
    assert_int_equal(first.n_calls, 7);
    assert_int_equal(second.n_calls, 7);
    assert_non_null(strstr(memest_error_text(error),
                           "observer 1 stopped the run: its hook alloc "
                           "returned 42 in iteration -1, setup"));

    /* In the middle of a backward, in a forward that is run again. */
    stopper third = {.left = 0};
    memest_observer c = MEMEST_INIT(memest_observer);
    c.self = &third;
    c.pre_forward = stop_in_layer;
    const memest_observer *one[] = {&c};
    assert_int_equal(memest_observe(job, 0, one, 1, error), MEMEST_ERR_STOPPED);
    assert_non_null(strstr(memest_error_text(error),
                           "its hook pre_forward returned -1 in iteration 1, "
                           "recompute, decoder.layers.1"));
    assert_int_equal(memest_error_status(error), MEMEST_ERR_STOPPED);
    memest_error_destroy(error);
    memest_job_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_api_observe__agrees_with_the_report),
        cmocka_unit_test(test_api_observe__several),
        cmocka_unit_test(test_api_observe__refuses),
        cmocka_unit_test(test_api_observe__fires_as_mod_tracker),
        cmocka_unit_test(test_api_observe__stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
