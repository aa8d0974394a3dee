/* SPDX-License-Identifier: BSD-3-Clause */
/* Models of images: every allocation and free of a training step on a GPU but
 * cuDNN's workspaces. */
#include "support/table.h"
#include "support/watch.h"
#include "tensor/hooks.h"

#include <stdlib.h>

enum {
    MODEL,
    ACTION,
    BYTES,
    WHAT
};

/** A rank, whose second step is held against the table as it comes. */
typedef struct listener {
    me_engine *e;
    const char *model;
    test_table table;
    uint32_t n;
} listener;

/** The next line of the model that memest has. @return false: none is left */
static bool next_line(listener *l)
{
    do {
        if (!test_table_next(&l->table)) {
            return false;
        }
    } while (strcmp(l->table.fields[MODEL], l->model) != 0 ||
             strcmp(l->table.fields[WHAT], "workspace") == 0);
    return true;
}

static void on_event(void *self, const me_event *event)
{
    listener *l = self;
    if (me_iteration_get(l->e) != 1) {
        return;
    }
    assert_true(next_line(l));
    const char *action = event->kind == ME_EVENT_ALLOC ? "alloc" : "free";
    const uint64_t bytes = strtoull(l->table.fields[BYTES], NULL, 10);
    if (strcmp(action, l->table.fields[ACTION]) != 0 || event->bytes != bytes) {
        fail_msg("%s, event %u: %s of %llu, measured %s of %s", l->model,
                 (unsigned)l->n, action, (unsigned long long)event->bytes,
                 l->table.fields[ACTION], l->table.fields[BYTES]);
    }
    l->n++;
}

static me_status begin(void *self, me_engine *e, me_diag *diag)
{
    (void)diag;
    listener *l = self;
    l->e = e;
    me_engine_observe(
        e, (me_observer){.on_event = on_event,
                         .self = l,
                         .kinds = ME_EVENT_BIT(ME_EVENT_ALLOC) |
                                  ME_EVENT_BIT(ME_EVENT_FREE_REQUESTED)});
    return ME_OK;
}

static me_status end(void *self, me_diag *diag)
{
    (void)diag;
    assert_false(next_line(self));
    return ME_OK;
}

static void test_images__allocations_of_a_step(void **state)
{
    (void)state;
    static const char *const sets[] = {NULL};

    static const struct {
        const char *model;
        const char *config;
        uint32_t n;
    } cases[] = {
        {"cnn", SOURCE_DIR "/tests/trackers/cnn.cfg", 120},
        {"conv_norm", SOURCE_DIR "/tests/trackers/conv_norm.cfg", 74},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        listener l = {.model = cases[i].model,
                      .table = test_table_open(
                          SOURCE_DIR
                          "/tests/golden/trackers/image_events.tsv")};
        test_job job;
        test_job_watch(cases[i].config, sets,
                       &(me_watcher){.begin = begin, .end = end, .self = &l},
                       &job);
        assert_int_equal(l.n, cases[i].n);
        test_job_fini(&job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_images__allocations_of_a_step),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
