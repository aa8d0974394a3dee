/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/skewed_routing.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

enum {
    EXPERTS = 4,
    LAYERS = 6
};

static int falling(const void *x, const void *y)
{
    const uint64_t a = *(const uint64_t *)x;
    const uint64_t b = *(const uint64_t *)y;
    return (a < b) - (a > b);
}

static me_routing routing_of(const me_skew *skew)
{
    me_diag diag = {.status = ME_OK};
    me_routing routing = {0};
    assert_int_equal(me_skewed_routing(skew, &diag, &routing), ME_OK);
    return routing;
}

/** Rows of a layer's experts, which two ranks have two each of. */
static void take(const me_routing *routing, int32_t layer, uint64_t *counts)
{
    for (int32_t member = 0; member < 2; member++) {
        const me_routing_place at = {.layer = layer, .member = member};
        me_routing_counts(routing, &at, 0, EXPERTS / 2,
                          counts + member * (EXPERTS / 2));
    }
}

/* Weights 1, 1/2, 1/3, 1/4 are 12, 6, 4, 3 of 25. Weights 1, 1/4, 1/9, 1/16 of
 * top-2 would give the first 70 of 100 rows, of which it takes 50; the others
 * divide 50 as 1/4 : 1/9 : 1/16, 29.51, 13.11 and 7.38, and the row that rounding
 * leaves goes to the first of them. */
static const struct {
    double exponent;
    uint32_t topk;
    uint64_t counts[EXPERTS];
} cases[] = {
    {0.0, 1, {25, 25, 25, 25}},
    {1.0, 1, {48, 24, 16, 12}},
    {2.0, 2, {50, 30, 13, 7}},
    {16.0, 4, {25, 25, 25, 25}},
};

static void test_skewed_routing__counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const me_skew skew = {.exponent = cases[i].exponent,
                              .seed = 7,
                              .n_experts = EXPERTS,
                              .topk = cases[i].topk,
                              .n_layers = LAYERS,
                              .rows = 100};
        me_routing routing = routing_of(&skew);
        for (int32_t layer = 0; layer < LAYERS; layer++) {
            uint64_t counts[EXPERTS];
            take(&routing, layer, counts);
            qsort(counts, EXPERTS, sizeof *counts, falling);
            assert_memory_equal(counts, cases[i].counts, sizeof counts);
        }
        me_routing_fini(&routing);
    }
}

/* Of experts that lost the same the first gets the row, the second the next. */
static void test_skewed_routing__equally_lost(void **state)
{
    (void)state;
    static const uint64_t expected[EXPERTS] = {26, 26, 25, 25};
    const me_skew skew = {.exponent = 0.0,
                          .seed = 7,
                          .n_experts = EXPERTS,
                          .topk = 1,
                          .n_layers = LAYERS,
                          .rows = 102};
    me_routing routing = routing_of(&skew);
    for (int32_t layer = 0; layer < LAYERS; layer++) {
        uint64_t counts[EXPERTS];
        take(&routing, layer, counts);
        assert_memory_equal(counts, expected, sizeof counts);
    }
    me_routing_fini(&routing);
}

/* A seed gives the same orders each time, another one others, and so does another
 * layer. */
static void test_skewed_routing__orders(void **state)
{
    (void)state;
    me_skew skew = {.exponent = 1.0,
                    .seed = 1,
                    .n_experts = EXPERTS,
                    .topk = 1,
                    .n_layers = LAYERS,
                    .rows = 100};
    me_routing first = routing_of(&skew);
    me_routing again = routing_of(&skew);
    skew.seed = 2;
    me_routing other = routing_of(&skew);
    const size_t bytes = LAYERS * EXPERTS * sizeof(uint64_t);
    assert_memory_equal(first.counts, again.counts, bytes);
    assert_memory_not_equal(first.counts, other.counts, bytes);
    int n_differing = 0;
    for (int32_t layer = 1; layer < LAYERS; layer++) {
        uint64_t here[EXPERTS];
        uint64_t before[EXPERTS];
        take(&first, layer, here);
        take(&first, layer - 1, before);
        n_differing += memcmp(here, before, sizeof here) != 0;
    }
    assert_true(n_differing > 0);
    assert_false(me_routing_is_uniform(&first));
    assert_true(me_routing_is_steady(&first));
    me_routing_fini(&first);
    me_routing_fini(&again);
    me_routing_fini(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_skewed_routing__counts),
        cmocka_unit_test(test_skewed_routing__equally_lost),
        cmocka_unit_test(test_skewed_routing__orders),
    };
    return cmocka_run_group_tests_name("skewed_routing", tests, NULL, NULL);
}
