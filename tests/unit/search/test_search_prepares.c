/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/file.h"
#include "config/options.h"
#include "search/search_run.h"
#include "support/test.h"

#include <stdatomic.h>

/* What is prepared, and whether a candidate was decided before the end of it. */
typedef struct preparation {
    int n_phases;
    uint32_t n_wanted;
    atomic_uint n_done;
    bool is_decided;
} preparation;

static void prepare(void *self, const char *what, bool begins, uint32_t count)
{
    preparation *p = self;
    assert_non_null(what);
    assert_false(p->is_decided);
    if (begins) {
        assert_int_equal(atomic_load(&p->n_done), p->n_wanted);
        p->n_wanted += count;
        p->n_phases++;
    } else {
        atomic_fetch_add(&p->n_done, 1);
    }
}

static bool decide(void *self, const me_candidate *candidate, uint32_t done,
                   uint32_t count)
{
    preparation *p = self;
    (void)candidate;
    (void)done;
    (void)count;
    p->is_decided = true;
    return true;
}

/* A listener is told of each step of what comes before the first decision. */
static void test_search_prepares__each_step(void **state)
{
    (void)state;
    const char *const list[] = {"parallel.pipeline=1,2,4"};
    preparation p = {.n_phases = 0};
    me_diag diag = {.status = ME_OK};
    me_transport *transport = NULL;
    me_config *job = me_config_create();
    assert_non_null(job);
    assert_int_equal(
        me_config_read_file(job, GOLDEN "/compare/tiny.cfg", &diag), ME_OK);
    assert_int_equal(me_transport_local_create(&transport), ME_OK);
    const me_search_request request = {
        .space = {.spaces = list, .n_spaces = 1, .gpus = "4,8"},
        .threads = 2,
        .listener = {.decided = decide, .prepares = prepare, .self = &p}};
    me_search_run *run = NULL;
    assert_int_equal(
        me_search_run_create(transport, &request, job, &diag, &run), ME_OK);
    assert_true(p.n_phases >= 2);
    assert_int_equal(atomic_load(&p.n_done), p.n_wanted);
    assert_true(p.is_decided);
    me_search_run_destroy(run);
    me_transport_destroy(transport);
    me_config_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_search_prepares__each_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
