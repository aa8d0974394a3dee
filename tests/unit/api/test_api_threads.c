/* SPDX-License-Identifier: BSD-3-Clause */
/* One job, estimated and observed by several threads at once. */
#include "support/small_job.h"
#include "support/test.h"

#include <pthread.h>
#include <string.h>

enum {
    N_THREADS = 4,
    N_TIMES = 3
};

typedef struct work {
    pthread_t thread;
    const memest_job *job;
    int n_different; /**< reports that are not the first one */
    uint64_t n_events;
} work;

static int count(void *self, const memest_block_event *event)
{
    (void)event;
    ++*(uint64_t *)self;
    return 0;
}

static memest_status estimate(const memest_job *job, char **text_out)
{
    memest_report *report = NULL;
    memest_status status = memest_estimate(job, NULL, &report, NULL);
    if (status == MEMEST_OK) {
        status = memest_report_text(report, MEMEST_FORMAT_JSON, text_out, NULL,
                                    NULL);
    }
    memest_report_destroy(report);
    return status;
}

static void *run(void *self)
{
    work *w = self;
    char *first = NULL;
    memest_observer observer = MEMEST_INIT(memest_observer);
    observer.self = &w->n_events;
    observer.alloc = count;
    const memest_observer *all[] = {&observer};
    if (estimate(w->job, &first) != MEMEST_OK ||
        memest_observe(w->job, 0, all, 1, NULL) != MEMEST_OK) {
        w->n_different++;
    }
    for (int i = 0; first != NULL && i < N_TIMES; i++) {
        char *text = NULL;
        if (estimate(w->job, &text) != MEMEST_OK || strcmp(text, first) != 0) {
            w->n_different++;
        }
        memest_text_destroy(text);
    }
    memest_text_destroy(first);
    return NULL;
}

static void test_api_threads__share_a_job(void **state)
{
    (void)state;
    work all[N_THREADS];
    memest_job *job = me_small_job_create(NULL);
    assert_non_null(job);
    for (int i = 0; i < N_THREADS; i++) {
        all[i] = (work){.job = job};
        assert_int_equal(pthread_create(&all[i].thread, NULL, run, &all[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        assert_int_equal(pthread_join(all[i].thread, NULL), 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        assert_int_equal(all[i].n_different, 0);
        assert_true(all[i].n_events > 0 && all[i].n_events == all[0].n_events);
    }
    memest_job_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_api_threads__share_a_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
