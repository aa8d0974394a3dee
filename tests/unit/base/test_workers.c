/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "base/workers.h"
#include "support/test.h"

#include <stdatomic.h>

enum {
    TASKS = 1000,
    THREADS = 8
};

typedef struct record {
    atomic_int runs[TASKS];
    uint32_t failing; /* TASKS: none */
} record;

static bool run(void *self, uint32_t task)
{
    record *r = self;
    atomic_fetch_add(&r->runs[task], 1);
    return task != r->failing;
}

static void every_task_runs_once(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= THREADS; threads++) {
        record r = {.failing = TASKS};
        me_workers_run(threads, TASKS, run, &r);
        for (int i = 0; i < TASKS; i++) {
            assert_int_equal(atomic_load(&r.runs[i]), 1);
        }
    }
}

static void what_comes_before_a_failure_has_run(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= THREADS; threads++) {
        record r = {.failing = TASKS / 2};
        me_workers_run(threads, TASKS, run, &r);
        for (uint32_t i = 0; i <= r.failing; i++) {
            assert_int_equal(atomic_load(&r.runs[i]), 1);
        }
        int after = 0;
        for (uint32_t i = r.failing + 1; i < TASKS; i++) {
            after += atomic_load(&r.runs[i]);
        }
        if (threads == 1) {
            assert_int_equal(after, 0);
        }
    }
}

static void no_task_is_no_task(void **state)
{
    (void)state;
    record r = {.failing = TASKS};
    me_workers_run(THREADS, 0, run, &r);
    assert_int_equal(atomic_load(&r.runs[0]), 0);
}

static bool lose(void *self, uint32_t task)
{
    (void)self;
    (void)task;
    me_alloc_fail_at(1);
    me_free(me_alloc(1, 1, "a task's"));
    me_alloc_fail_at(0);
    return true;
}

static void what_a_task_has_lost_its_caller_has_lost(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= THREADS; threads++) {
        const uint64_t before = me_alloc_lost();
        me_diag diag = {0};
        me_workers_run(threads, TASKS, lose, NULL);
        assert_int_equal(me_alloc_lost(), before + TASKS);
        assert_int_equal(me_alloc_check(before, ME_OK, &diag), ME_ERR_NOMEM);
        assert_string_equal(diag.text, "no host memory for a task's");
        assert_int_equal(me_alloc_check(me_alloc_lost(), ME_OK, &diag), ME_OK);
    }
}

static void a_share_is_at_least_one(void **state)
{
    (void)state;
    assert_int_equal(me_workers_share(3, 1), 3);
    assert_int_equal(me_workers_share(3, 8), 3);
    assert_true(me_workers_share(0, 1) >= 1);
    assert_int_equal(me_workers_share(0, 1000000), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_runs_once),
        cmocka_unit_test(what_comes_before_a_failure_has_run),
        cmocka_unit_test(no_task_is_no_task),
        cmocka_unit_test(what_a_task_has_lost_its_caller_has_lost),
        cmocka_unit_test(a_share_is_at_least_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
