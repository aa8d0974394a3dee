/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/stream.h"
#include "support/test.h"
#include "track/event_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    TEXT_MAX = 16384
};

typedef struct folder {
    char path[64];
    char file[96];
} folder;

static int setup(void **state)
{
    static folder f;
    (void)snprintf(f.path, sizeof f.path, "/tmp/memest-test-XXXXXX");
    if (mkdtemp(f.path) == NULL) {
        return -1;
    }
    (void)snprintf(f.file, sizeof f.file, "%s/events.tsv", f.path);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    const folder *f = *state;
    (void)unlink(f->file);
    return rmdir(f->path); /* fails if a file is left beside */
}

static void read_file(const char *path, char *text)
{
    FILE *stream = fopen(path, "r");
    assert_non_null(stream);
    text[fread(text, 1, TEXT_MAX - 1, stream)] = '\0';
    (void)fclose(stream);
}

static me_status play(const char *path, int32_t iteration, me_diag *diag)
{
    me_event_log *log = NULL;
    me_status status =
        me_event_log_create(path, &me_stream_tree, iteration, diag, &log);
    if (status != ME_OK) {
        return status;
    }
    me_test_stream s = {.observers = {me_event_log_observer(log)},
                        .n_observers = 1};
    me_stream_play(&s);
    status = me_event_log_finish(log, diag);
    me_event_log_destroy(log);
    return status;
}

static void test_event_log__writes_one_iteration(void **state)
{
    const folder *f = *state;
    me_diag diag = {0};
    assert_int_equal(play(f->file, 1, &diag), ME_OK);
    char text[TEXT_MAX];
    read_file(f->file, text);
    static const char earlier[] =
        "# action\trequested_bytes\tblock\tstream\tcategory\tphase\tmodule\top\t"
        "late\n"
        "earlier_alloc\t100\t1\t0\tparameter\tsetup\t\taten::empty\n"
        "earlier_alloc\t50\t2\t0\tgradient\tsetup\t\taten::zeros\n"
        "point\tmodel_built\npoint\titer0_begin\nmark\tfwd0_begin\n";
    static const char iteration[] =
        "point\titer1_begin\nmark\tfwd0_begin\n"
        "alloc\t200\t3\t0\ttemporary\tforward\tdecoder.layers.0.mlp\taten::mm\n"
        "alloc\t30\t4\t0\ttemporary\tforward\tdecoder.layers.0.mlp\taten::gelu\n"
        "free\t30\t4\t0\tparameter\tforward\tdecoder.layers.0.mlp\t\n"
        "alloc\t200\t5\t0\ttemporary\tforward\tdecoder.layers.1.mlp\taten::mm\n"
        "mark\tfwd0_end\n"
        "alloc\t70\t6\t0\ttemporary\tbackward\tdecoder.layers.1.mlp\taten::mm\n"
        "free\t70\t6\t0\tparameter\tbackward\tdecoder.layers.1.mlp\t\n"
        "free\t200\t5\t0\tparameter\tbackward\tdecoder.layers.1.mlp\t\n"
        "alloc\t70\t7\t0\ttemporary\tbackward\tdecoder.layers.0.mlp\taten::mm\n"
        "free\t70\t7\t0\tparameter\tbackward\tdecoder.layers.0.mlp\t\n"
        "free\t200\t3\t0\tparameter\tbackward\tdecoder.layers.0.mlp\t\n"
        "point\tfinalize_begin\npoint\toptimizer_begin\npoint\toptimizer_end\npoint\titer1_end\n";
    assert_memory_equal(text, earlier, sizeof earlier - 1);
    assert_true(strlen(text) > sizeof iteration);
    assert_string_equal(text + strlen(text) - (sizeof iteration - 1),
                        iteration);
    assert_non_null(strstr(text, "\nearlier_free\t200\t3\t"));
    assert_null(strstr(text, "optimizer\t\taten::zeros_like\nalloc"));
}

/* What comes before the "begin" point is not the iteration's. */
static void test_event_log__begins_at_the_point(void **state)
{
    const folder *f = *state;
    me_event_log *log = NULL;
    assert_int_equal(
        me_event_log_create(f->file, &me_stream_tree, 1, NULL, &log), ME_OK);
    me_test_stream s = {.observers = {me_event_log_observer(log)},
                        .n_observers = 1};
    me_stream_iteration(&s, 1);
    me_stream_alloc(&s, 1, 11, ME_CATEGORY_INPUT, NULL);
    me_stream_point(&s, "iter1_begin");
    me_stream_alloc(&s, 2, 22, ME_CATEGORY_INPUT, NULL);
    me_stream_point(&s, "iter1_end");
    me_stream_alloc(&s, 3, 33, ME_CATEGORY_INPUT, NULL);
    assert_int_equal(me_event_log_finish(log, NULL), ME_OK);
    me_event_log_destroy(log);
    char text[TEXT_MAX];
    read_file(f->file, text);
    assert_null(strstr(text, "\nalloc\t11\t"));
    assert_non_null(
        strstr(text, "\nearlier_alloc\t11\t1\t0\tinput\tsetup\t\t\n"));
    assert_non_null(strstr(text, "\nalloc\t22\t2\t0\tinput\tsetup\t\t\n"));
    assert_null(strstr(text, "\t33\t"));
}

/* A free that does not complete at once says so, and when it does. */
static void test_event_log__says_what_is_late(void **state)
{
    const folder *f = *state;
    me_event_log *log = NULL;
    assert_int_equal(
        me_event_log_create(f->file, &me_stream_tree, 0, NULL, &log), ME_OK);
    const me_observer o = me_event_log_observer(log);
    static const me_event events[] = {
        {.kind = ME_EVENT_ITERATION},
        {.kind = ME_EVENT_ALLOC, .block = 1, .bytes = 11, .op = "mm"},
        {.kind = ME_EVENT_FREE_REQUESTED, .block = 1, .bytes = 11},
        {.kind = ME_EVENT_POINT, .name = "here"},
        {.kind = ME_EVENT_FREE_COMPLETED, .block = 1, .bytes = 11},
    };
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        o.on_event(o.self, &events[i]);
    }
    me_event_log_take(log, "driver", 7);
    assert_int_equal(me_event_log_finish(log, NULL), ME_OK);
    me_event_log_destroy(log);
    char text[TEXT_MAX];
    read_file(f->file, text);
    assert_non_null(strstr(
        text, "\nfree\t11\t1\t0\tparameter\tsetup\t\t\tlate\npoint\there\n"
              "free_completed\t1\ntake\tdriver\t7\n"));
}

static void test_event_log__keeps_the_old_file(void **state)
{
    const folder *f = *state;
    FILE *old = fopen(f->file, "w");
    assert_non_null(old);
    (void)fputs("old\n", old);
    (void)fclose(old);
    me_diag diag = {0};
    assert_int_equal(play(f->file, 9, &diag), ME_ERR_CONFIG);
    assert_non_null(strstr(diag.text, "iteration 9"));
    char text[TEXT_MAX];
    read_file(f->file, text);
    assert_string_equal(text, "old\n");
}

static void test_event_log__says_when_the_disk_is_full(void **state)
{
    (void)state;
    struct stat about;
    if (stat("/dev/full", &about) != 0) {
        skip();
    }
    me_diag diag = {0};
    assert_int_equal(play("/dev/full", 1, &diag), ME_ERR_IO);
    assert_non_null(strstr(diag.text, "/dev/full"));
}

static void test_event_log__names_a_missing_folder(void **state)
{
    (void)state;
    me_diag diag = {0};
    assert_int_equal(play("/nowhere/at/all.tsv", 1, &diag), ME_ERR_IO);
    assert_non_null(strstr(diag.text, "/nowhere/at/all.tsv"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_event_log__writes_one_iteration,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_event_log__begins_at_the_point,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_event_log__says_what_is_late,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_event_log__keeps_the_old_file,
                                        setup, teardown),
        cmocka_unit_test(test_event_log__says_when_the_disk_is_full),
        cmocka_unit_test(test_event_log__names_a_missing_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
