/* SPDX-License-Identifier: BSD-3-Clause */
#include "alloc/pool_observer.h"
#include "support/test.h"

#define MIB (UINT64_C(1) << 20)

static me_pool_observer *make_observer(uint64_t limit)
{
    const me_pool_options options = {.conf = me_alloc_conf_default(),
                                     .limit_bytes = limit};
    me_pool_observer *observer = NULL;
    assert_int_equal(me_pool_observer_create(&options, &observer), ME_OK);
    return observer;
}

static void emit(me_pool_observer *observer, me_event event)
{
    const me_observer handle = me_pool_observer_handle(observer);
    handle.on_event(handle.self, &event);
}

static void emit_alloc(me_pool_observer *observer, uint32_t block,
                       uint64_t bytes)
{
    emit(observer, (me_event){.kind = ME_EVENT_ALLOC,
                              .phase = ME_PHASE_BACKWARD,
                              .iteration = 1,
                              .microbatch = 2,
                              .module = 5,
                              .op = "aten::mm",
                              .block = block,
                              .bytes = bytes});
}

static void emit_free(me_pool_observer *observer, me_event_kind kind,
                      uint32_t block)
{
    emit(observer, (me_event){.kind = kind, .block = block});
}

/** Peaks as a point showed them. */
typedef struct shown {
    int n;
    uint64_t peak;
} shown;

static void on_point(void *self, const me_event *point, const me_pool *pool)
{
    shown *s = self;
    assert_string_equal(point->name, "built");
    s->n++;
    s->peak = me_pool_peak(pool, ME_POOL_REQUESTED_BYTES);
}

/** A block that another stream uses comes back after the next point, at an
 *  allocation; others at once. */
static void test_observer__frees_at_points(void **state)
{
    (void)state;
    me_pool_observer *o = make_observer(0);
    me_pool_observer_free_at_points(o);
    const me_pool *pool = me_pool_observer_pool(o);
    emit_alloc(o, 0, 3 * MIB);
    emit_alloc(o, 1, 5 * MIB);
    emit_free(o, ME_EVENT_FREE_REQUESTED, 1);
    emit_free(o, ME_EVENT_FREE_COMPLETED, 1);
    assert_int_equal(me_pool_current(pool, ME_POOL_REQUESTED_BYTES), 3 * MIB);
    for (uint32_t i = 0; i < 2; i++) { /* the engine uses its id again */
        emit_free(o, ME_EVENT_FREE_REQUESTED, 0);
        emit(o, (me_event){.kind = ME_EVENT_FREE_COMPLETED,
                           .block = 0,
                           .is_late = true});
        emit_alloc(o, 0, 4 * MIB);
    }
    assert_int_equal(me_pool_current(pool, ME_POOL_REQUESTED_BYTES), 11 * MIB);
    emit(o, (me_event){.kind = ME_EVENT_POINT, .name = "built"});
    assert_int_equal(me_pool_current(pool, ME_POOL_REQUESTED_BYTES), 11 * MIB);
    emit_free(o, ME_EVENT_FREE_REQUESTED, 0);
    emit(o, (me_event){.kind = ME_EVENT_FREE_COMPLETED, .is_late = true});
    emit_alloc(o, 2, MIB); /* what was late before the point, and no more */
    assert_int_equal(me_pool_current(pool, ME_POOL_REQUESTED_BYTES), 5 * MIB);
    assert_int_equal(me_pool_observer_status(o, NULL), ME_OK);
    me_pool_observer_destroy(o);
}

/** The program waits for its GPU: late frees are over, and nothing is kept that
 *  nobody uses. */
static void test_observer__empties_the_cache(void **state)
{
    (void)state;
    me_pool_observer *o = make_observer(0);
    me_pool_observer_free_at_points(o);
    const me_pool *pool = me_pool_observer_pool(o);
    emit_alloc(o, 0, 30 * MIB);
    emit_alloc(o, 1, 50 * MIB);
    emit_free(o, ME_EVENT_FREE_REQUESTED, 1);
    emit(o, (me_event){
                .kind = ME_EVENT_FREE_COMPLETED, .block = 1, .is_late = true});
    assert_int_equal(me_pool_current(pool, ME_POOL_RESERVED_BYTES), 80 * MIB);
    emit(o, (me_event){.kind = ME_EVENT_EMPTY_CACHE});
    assert_int_equal(me_pool_current(pool, ME_POOL_REQUESTED_BYTES), 30 * MIB);
    assert_int_equal(me_pool_current(pool, ME_POOL_RESERVED_BYTES), 30 * MIB);
    assert_int_equal(me_pool_observer_status(o, NULL), ME_OK);
    me_pool_observer_destroy(o);
}

static void test_observer__follows(void **state)
{
    (void)state;
    me_pool_observer *o = make_observer(0);
    const me_pool *pool = me_pool_observer_pool(o);
    shown s = {0};
    me_pool_observer_on_point(o, on_point, &s);
    emit_alloc(o, 0, 3 * MIB);
    emit_alloc(o, 5000, 4 * MIB);
    emit_free(o, ME_EVENT_FREE_REQUESTED, 0);
    assert_int_equal(me_pool_current(pool, ME_POOL_ALLOCATED_BYTES), 4 * MIB);
    assert_int_equal(me_pool_current(pool, ME_POOL_ACTIVE_BYTES), 7 * MIB);
    emit_free(o, ME_EVENT_FREE_COMPLETED, 0);
    emit(o, (me_event){.kind = ME_EVENT_POINT, .name = "built"});
    assert_int_equal(s.n, 1);
    assert_int_equal(s.peak, 7 * MIB);
    assert_int_equal(me_pool_peak(pool, ME_POOL_REQUESTED_BYTES), 4 * MIB);
    emit_alloc(o, 0, 1); /* an id that is used again */
    emit_alloc(o, 1, 0); /* a tensor without bytes */
    emit_free(o, ME_EVENT_FREE_REQUESTED, 1);
    emit_free(o, ME_EVENT_FREE_COMPLETED, 1);
    assert_int_equal(me_pool_observer_status(o, NULL), ME_OK);
    const me_pool_limit limit = me_pool_observer_limit(o);
    assert_false(limit.is_oom);
    assert_int_equal(limit.num_alloc_retries, 0);
    me_pool_observer_destroy(o);
}

static void count_end(void *self)
{
    ++*(int *)self;
}

static void test_observer__says_where_memory_ran_out(void **state)
{
    (void)state;
    me_pool_observer *o = make_observer(64 * MIB);
    int n_ends = 0;
    me_pool_observer_on_end(o, count_end, &n_ends);
    emit_alloc(o, 0, 40 * MIB);
    assert_int_equal(n_ends, 0);
    emit_alloc(o, 1, 41 * MIB);
    assert_int_equal(n_ends, 1);
    emit_alloc(o, 2, 1); /* nobody is there any more to ask for this */
    assert_int_equal(n_ends, 1);
    const me_pool_limit limit = me_pool_observer_limit(o);
    assert_true(limit.is_oom);
    assert_int_equal(limit.iteration, 1);
    assert_int_equal(limit.microbatch, 2);
    assert_int_equal(limit.phase, ME_PHASE_BACKWARD);
    assert_int_equal(limit.module, 5);
    assert_string_equal(limit.op, "aten::mm");
    assert_int_equal(limit.oom.tried_bytes, 42 * MIB);
    assert_int_equal(limit.num_alloc_retries, 1);
    assert_int_equal(limit.reserved_bytes, 40 * MIB);
    assert_int_equal(me_pool_observer_status(o, NULL), ME_OK);
    me_pool_observer_destroy(o);
}

static void test_observer__refuses_contradictions(void **state)
{
    (void)state;

    static const struct {
        me_event_kind kind;
        uint32_t block;
    } cases[] = {
        {ME_EVENT_ALLOC, 0},
        {ME_EVENT_FREE_COMPLETED, 0},
        {ME_EVENT_FREE_REQUESTED, 1},
        {ME_EVENT_FREE_REQUESTED, 4000000000U},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_pool_observer *o = make_observer(0);
        emit_alloc(o, 0, 1);
        emit_free(o, cases[i].kind, cases[i].block);
        me_diag diag = {0};
        assert_int_equal(me_pool_observer_status(o, &diag), ME_ERR_INTERNAL);
        me_pool_observer_destroy(o);
    }
    me_pool_observer_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_observer__frees_at_points),
        cmocka_unit_test(test_observer__empties_the_cache),
        cmocka_unit_test(test_observer__follows),
        cmocka_unit_test(test_observer__says_where_memory_ran_out),
        cmocka_unit_test(test_observer__refuses_contradictions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
