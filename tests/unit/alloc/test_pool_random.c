/* SPDX-License-Identifier: BSD-3-Clause */
/* Random calls: the pool agrees with a slow and simple model, its invariants
 * hold, and when everything is freed nothing is left. */
#include "alloc/pool.h"
#include "base/alloc.h"
#include "slow_pool.h"
#include "support/test.h"

#include <stdbool.h>

enum {
    MAX_LIVE = 120,
    CALLS = 170000, /* six settings: a million together */
    COMPARE_EVERY = 16,
    WALK_EVERY = 2048
};

#define MIB (UINT64_C(1) << 20)

/** Where both allocators put their segments: equal answers to equal calls. */
typedef struct placer {
    uint64_t n_calls;
} placer;

/** A block of both allocators. */
typedef struct live_block {
    me_pool_block block;
    uint32_t epoch;
    uint64_t address;
    bool is_waiting;
} live_block;

/** A run of random calls. */
typedef struct run {
    uint64_t seed;
    me_pool *pool;
    slow_pool *slow; /**< NULL: only invariants are looked at */
    placer pool_placer;
    placer slow_placer;
    uint64_t last_address;
    size_t n_live;
    live_block live[MAX_LIVE];
} run;

static uint64_t draw(run *r)
{
    r->seed ^= r->seed << 13U;
    r->seed ^= r->seed >> 7U;
    r->seed ^= r->seed << 17U;
    return r->seed;
}

/* Up and down, so that the newest segment is not always the lowest. */
static uint64_t place(placer *p)
{
    const uint64_t n = ++p->n_calls;
    const uint64_t middle = UINT64_C(1) << 50;
    return n % 3 == 0 ? middle + n * 1024 * MIB : middle - n * 1024 * MIB;
}

static bool place_pool(void *self, uint64_t bytes, uint64_t *address_out)
{
    (void)bytes;
    *address_out = place(self);
    return true;
}

static uint64_t place_slow(void *self)
{
    return place(self);
}

static void on_trace(void *self, const me_pool_trace *entry)
{
    run *r = self;
    if (entry->action == ME_POOL_TRACE_ALLOC) {
        r->last_address = entry->address;
    }
}

/* Few distinct sizes, so that equal blocks meet. */
static uint64_t draw_bytes(run *r)
{
    static const uint64_t usual[] = {
        1,         512,      513,      100000,   MIB,      MIB + 1,
        2 * MIB,   5 * MIB,  9 * MIB,  10 * MIB, 12 * MIB, 19 * MIB,
        20971520U, 21 * MIB, 31 * MIB, 33 * MIB, 40 * MIB, 3 * MIB + 5,
    };
    const uint64_t n = draw(r);
    if (n % 4 != 0) {
        return usual[(n >> 8U) % (sizeof usual / sizeof usual[0])];
    }
    return 1 + (n >> 8U) % (UINT64_C(1) << (1 + (n >> 3U) % 26));
}

static void do_alloc(run *r)
{
    const uint64_t bytes = draw_bytes(r);
    const uint64_t stream = draw(r) % 8 == 0 ? 7 : 0;
    live_block b = {0};
    const me_status status = me_pool_alloc(r->pool, bytes, stream, &b.block);
    b.address = r->last_address;
    if (r->slow != NULL) {
        uint64_t address = 0;
        const bool is_served = me_slow_alloc(r->slow, bytes, stream, &address);
        assert_int_equal(status, is_served ? ME_OK : ME_ERR_CAPACITY);
        if (is_served) {
            assert_int_equal(address, b.address);
        }
    }
    if (status == ME_OK) {
        r->live[r->n_live++] = b;
    }
}

static void do_free(run *r, size_t i, bool may_wait)
{
    live_block *b = &r->live[i];
    if (b->is_waiting) {
        me_pool_free_completed(r->pool, b->block, b->epoch);
        if (r->slow != NULL) {
            me_slow_complete(r->slow, b->address);
        }
    } else if (may_wait) {
        b->epoch = me_pool_free_requested(r->pool, b->block);
        b->is_waiting = true;
        if (r->slow != NULL) {
            me_slow_free(r->slow, b->address, true);
        }
        return;
    } else {
        me_pool_free(r->pool, b->block);
        if (r->slow != NULL) {
            me_slow_free(r->slow, b->address, false);
        }
    }
    r->live[i] = r->live[--r->n_live];
}

static uint64_t current(const run *r, me_pool_stat_kind kind)
{
    return me_pool_current(r->pool, kind);
}

static void compare(const run *r)
{
    const slow_sums sums = me_slow_add_up(r->slow);
    assert_int_equal(current(r, ME_POOL_REQUESTED_BYTES), sums.requested);
    assert_int_equal(current(r, ME_POOL_ALLOCATED_BYTES), sums.allocated);
    assert_int_equal(current(r, ME_POOL_ACTIVE_BYTES), sums.active);
    assert_int_equal(current(r, ME_POOL_RESERVED_BYTES), sums.reserved);
    assert_int_equal(current(r, ME_POOL_INACTIVE_SPLIT_BYTES),
                     sums.inactive_split);
    assert_int_equal(current(r, ME_POOL_SEGMENT), sums.n_segments);
    assert_int_equal(me_pool_num_alloc_retries(r->pool), r->slow->n_retries);
}

/* After a flush a wait is over: a new block may be where the old one was, and
 * the slow model knows blocks by address only. */
static void forget_waits(run *r)
{
    for (size_t i = r->n_live; i-- > 0;) {
        if (r->live[i].is_waiting) {
            do_free(r, i, false);
        }
    }
}

static void step(run *r, uint64_t n)
{
    const uint64_t dice = draw(r) % 1000;
    if (dice == 0) {
        assert_int_equal(me_pool_empty_cache(r->pool), ME_OK);
        if (r->slow != NULL) {
            me_slow_flush(r->slow);
        }
        forget_waits(r);
    } else if (r->n_live == 0 || (r->n_live < MAX_LIVE && dice < 505)) {
        const uint64_t retries = me_pool_num_alloc_retries(r->pool);
        const size_t n_before = r->n_live;
        do_alloc(r);
        if (me_pool_num_alloc_retries(r->pool) != retries) {
            const live_block newest = r->live[r->n_live - 1];
            const bool has_newest = r->n_live > n_before;
            r->n_live = n_before;
            r->slow == NULL ? (void)0 : me_slow_flush(r->slow);
            forget_waits(r);
            if (has_newest) {
                r->live[r->n_live++] = newest;
            }
        }
    } else {
        do_free(r, draw(r) % r->n_live, draw(r) % 5 == 0);
    }
    if (r->slow != NULL && n % COMPARE_EVERY == 0) {
        compare(r);
    }
    if (n % WALK_EVERY == 0) {
        me_diag diag = {0};
        assert_int_equal(me_pool_check(r->pool, &diag), ME_OK);
    }
}

static void free_all(run *r)
{
    while (r->n_live > 0) {
        do_free(r, draw(r) % r->n_live, false);
    }
    assert_int_equal(current(r, ME_POOL_REQUESTED_BYTES), 0);
    assert_int_equal(current(r, ME_POOL_ALLOCATED_BYTES), 0);
    assert_int_equal(current(r, ME_POOL_ACTIVE_BYTES), 0);
    assert_int_equal(current(r, ME_POOL_INACTIVE_SPLIT_BYTES), 0);
    assert_int_equal(me_pool_empty_cache(r->pool), ME_OK);
    assert_int_equal(current(r, ME_POOL_RESERVED_BYTES), 0);
    assert_int_equal(current(r, ME_POOL_SEGMENT), 0);
    me_diag diag = {0};
    assert_int_equal(me_pool_check(r->pool, &diag), ME_OK);
}

static void go(const char *conf, uint64_t limit, uint64_t divisions,
               bool is_modelled, bool is_placed)
{
    run *r = me_alloc(1, sizeof *r, "test.run");
    assert_non_null(r);
    r->seed = UINT64_C(0x9E3779B97F4A7C15) + limit;
    me_pool_options options = {
        .limit_bytes = limit,
        .device_total_bytes = 80 * 1024 * MIB,
        .place = is_placed ? place_pool : NULL,
        .place_self = &r->pool_placer,
        .on_trace = on_trace,
        .trace_self = r,
    };
    assert_int_equal(me_alloc_conf_parse(conf, NULL, &options.conf), ME_OK);
    assert_int_equal(me_pool_create(&options, &r->pool), ME_OK);
    if (is_modelled) {
        r->slow = me_alloc(1, sizeof *r->slow, "test.slow");
        assert_non_null(r->slow);
        r->slow->max_split = options.conf.max_split_bytes;
        r->slow->rounding = options.conf.max_non_split_rounding_bytes;
        r->slow->divisions = divisions;
        r->slow->limit = limit == 0 ? UINT64_MAX : limit;
        r->slow->place = place_slow;
        r->slow->place_self = &r->slow_placer;
    }
    for (uint64_t n = 0; n < CALLS; n++) {
        step(r, n);
    }
    free_all(r);
    me_pool_destroy(r->pool);
    me_free(r->slow);
    me_free(r);
}

static void test_random__default(void **state)
{
    (void)state;
    go("", 0, 0, true, true);
}

static void test_random__max_split(void **state)
{
    (void)state;
    go("max_split_size_mb:32", 0, 0, true, true);
}

static void test_random__divisions(void **state)
{
    (void)state;
    go("roundup_power2_divisions:8", 0, 8, true, true);
}

static void test_random__limit(void **state)
{
    (void)state;
    go("", 600 * MIB, 0, true, true);
}

static void test_random__tight_limit(void **state)
{
    (void)state;
    go("", 200 * MIB, 0, true, true);
}

static void test_random__max_split_and_limit(void **state)
{
    (void)state;
    go("max_split_size_mb:20,max_non_split_rounding_mb:24", 500 * MIB, 0, true,
       true);
}

static void test_random__expandable_segments(void **state)
{
    (void)state;
    go("expandable_segments:True", 0, 0, false, false);
    go("expandable_segments:True", 500 * MIB, 0, false, false);
}

static void test_random__garbage_collection(void **state)
{
    (void)state;
    go("garbage_collection_threshold:0.5", 700 * MIB, 0, false, false);
}

static void test_random__driver_addresses(void **state)
{
    (void)state;
    go("", 300 * MIB, 0, false, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random__default),
        cmocka_unit_test(test_random__max_split),
        cmocka_unit_test(test_random__divisions),
        cmocka_unit_test(test_random__limit),
        cmocka_unit_test(test_random__tight_limit),
        cmocka_unit_test(test_random__max_split_and_limit),
        cmocka_unit_test(test_random__expandable_segments),
        cmocka_unit_test(test_random__garbage_collection),
        cmocka_unit_test(test_random__driver_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
