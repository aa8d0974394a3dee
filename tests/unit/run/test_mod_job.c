/* SPDX-License-Identifier: BSD-3-Clause */
/* ModTracker's hooks on whole jobs: the lines that PyTorch's own were recorded
 * with, in their order. */
#include "base/str.h"
#include "support/watch.h"
#include "track/mod_tracker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE_BYTES = 512,
    PATH_BYTES = 512,
    MAX_PARENTS = 16
};

/** A rank's tracker, while its engine is there. */
typedef struct tracking {
    const char *name; /**< of the job, and in the table */
    me_engine *e;
    me_mod_tracker *tracker;
    me_str said; /**< of iteration 0 */
} tracking;

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/** The parents in the order of their names. */
static void say_parents(tracking *t)
{
    const char *names[MAX_PARENTS];
    uint32_t n = 0;
    while ((names[n] = me_mod_tracker_parent(t->tracker, n)) != NULL) {
        n++;
        assert_in_range(n, 1, MAX_PARENTS - 1);
    }
    qsort(names, n, sizeof names[0], by_text);
    for (uint32_t i = 0; i < n; i++) {
        me_str_printf(&t->said, "%s%s", i == 0 ? "" : ",", names[i]);
    }
    me_str_append(&t->said, n == 0 ? "-\n" : "\n");
}

static void on_event(void *self, const me_mod_event *event)
{
    static const char *const hooks[] = {"pre_fw", "post_fw", "pre_bw",
                                        "post_bw"};
    tracking *t = self;
    if (me_iteration_get(t->e) == 0) {
        me_str_printf(&t->said, "%s\t%s\t%s\t%d\t%d\t", t->name,
                      hooks[event->kind], event->fqn, event->is_parent,
                      event->is_backward);
        say_parents(t);
    }
}

static me_status begin(void *self, me_engine *e, me_diag *diag)
{
    (void)diag;
    tracking *t = self;
    t->e = e;
    t->tracker = me_mod_tracker_create(e);
    assert_non_null(t->tracker);
    me_mod_tracker_observe(t->tracker,
                           (me_mod_observer){.on_event = on_event, .self = t});
    return ME_OK;
}

static me_status end(void *self, me_diag *diag)
{
    (void)self;
    (void)diag;
    return ME_OK;
}

static void append_golden(const char *name, me_str *text)
{
    FILE *file =
        fopen(SOURCE_DIR "/tests/golden/trackers/autocast_hooks.tsv", "r");
    assert_non_null(file);
    char line[LINE_BYTES];
    const size_t length = strlen(name);
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, name, length) == 0 && line[length] == '\t') {
            me_str_append(text, line);
        }
    }
    (void)fclose(file);
}

static void track(tracking *t)
{
    static const char *const none[] = {NULL};
    test_job job;
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, SOURCE_DIR "/tests/trackers/%s.cfg",
                   t->name);
    const me_watcher watcher = {.begin = begin, .end = end, .self = t};
    test_job_watch(path, none, &watcher, &job);
    me_mod_tracker_destroy(t->tracker);
    test_job_fini(&job);
}

static void check(const char *name)
{
    tracking t = {.name = name};
    me_str golden = {0};
    track(&t);
    append_golden(name, &golden);
    assert_true(strlen(me_str_text(&golden)) > 0);
    assert_string_equal(me_str_text(&t.said), me_str_text(&golden));
    me_str_fini(&golden);
    me_str_fini(&t.said);
}

static void test_autocast(void **state)
{
    (void)state;
    check("autocast");
}

static void test_autocast__reentrant(void **state)
{
    (void)state;
    check("autocast_reentrant");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_autocast),
        cmocka_unit_test(test_autocast__reentrant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
