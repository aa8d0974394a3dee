/* SPDX-License-Identifier: BSD-3-Clause */
/* What waits comes out by its step, then by its bytes, then by its index; of what
 * screens have simulated that of the first ones is kept. */
#include "base/alloc.h"
#include "search/search_private.h"
#include "search/search_queue.h"
#include "support/random.h"
#include "support/test.h"

enum {
    ENTRIES = 40,
    CASES = 100
};

static me_search_entry draw(me_random *random, uint32_t index)
{
    return (me_search_entry){
        .bound = {.bytes = (uint64_t)me_random_in(random, 0, 3),
                  .step_ns = me_random_in(random, 0, 5)},
        .index = index};
}

/** Half of them come out before the others go in. */
static const char *comes_in_order(me_random *random)
{
    me_search_queue queue = {.count = 0};
    if (me_search_queue_init(ENTRIES, &queue) != ME_OK) {
        return "no memory";
    }
    const char *wrong = NULL;
    uint32_t in = 0;
    while (in < ENTRIES / 2) {
        me_search_queue_push(&queue, draw(random, in++));
    }
    while (queue.count > 0 && wrong == NULL) {
        const me_search_entry first = queue.items[0];
        me_search_queue_pop(&queue);
        for (uint32_t i = 0; i < queue.count; i++) {
            if (me_search_entry_is_before(&queue.items[i], &first)) {
                wrong = "one that waits comes before the first";
            }
        }
        if (in < ENTRIES) {
            me_search_queue_push(&queue, draw(random, in++));
        }
    }
    me_search_queue_fini(&queue);
    return wrong == NULL && in < ENTRIES ? "not all were there" : wrong;
}

static void test_search_queue__comes_in_order(void **state)
{
    (void)state;
    me_property_run(comes_in_order, CASES);
}

static void test_search_queue__compares(void **state)
{
    (void)state;
    const me_search_entry a = {.bound = {.bytes = 9, .step_ns = 1}, .index = 9};
    const me_search_entry b = {.bound = {.bytes = 1, .step_ns = 2}, .index = 8};
    const me_search_entry c = {.bound = {.bytes = 2, .step_ns = 2}, .index = 3};
    const me_search_entry d = {.bound = {.bytes = 2, .step_ns = 2}, .index = 4};
    assert_true(me_search_entry_is_before(&a, &b));
    assert_true(me_search_entry_is_before(&b, &c));
    assert_true(me_search_entry_is_before(&c, &d));
    assert_false(me_search_entry_is_before(&d, &c));
    assert_false(me_search_entry_is_before(&d, &d));
}

static me_units_done make_done(void)
{
    me_unit_done *item = me_alloc(1, sizeof *item, "test");
    assert_non_null(item);
    return (me_units_done){.items = item, .count = 1};
}

static void test_search_kept__drops_the_last(void **state)
{
    (void)state;

    enum {
        COUNT = ME_SEARCH_KEPT + 8
    };

    me_candidate items[COUNT] = {{.world = 0}};
    me_search_run s = {.candidates = {.items = items, .count = COUNT}};
    for (uint32_t i = 0; i < COUNT; i++) {
        items[i].bound.step_ns = (int64_t)(i * 7 % COUNT); // all of them differ
        me_units_done done = make_done();
        me_search_keep(&s, i, &done);
        assert_int_equal(done.count, 0);
    }
    items[1].end = ME_SEARCH_TOO_LARGE; // nothing is kept of what is decided
    me_units_done done = make_done();
    me_search_keep(&s, 1, &done);
    assert_int_equal(s.n_kept, ME_SEARCH_KEPT);
    uint32_t n = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        me_units_done kept = me_search_kept_of(&s, i);
        n += kept.count;
        assert_true(kept.count == 1 ||
                    items[i].bound.step_ns >= ME_SEARCH_KEPT - 1);
        me_units_done_fini(&kept);
    }
    assert_int_equal(n, ME_SEARCH_KEPT);
    assert_int_equal(s.n_kept, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_search_queue__comes_in_order),
        cmocka_unit_test(test_search_queue__compares),
        cmocka_unit_test(test_search_kept__drops_the_last),
    };
    return cmocka_run_group_tests_name("search_queue", tests, NULL, NULL);
}
