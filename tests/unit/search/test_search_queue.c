/* SPDX-License-Identifier: BSD-3-Clause */
/* What waits comes out by its step, then by its bytes, then by its index. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_search_queue__comes_in_order),
        cmocka_unit_test(test_search_queue__compares),
    };
    return cmocka_run_group_tests_name("search_queue", tests, NULL, NULL);
}
