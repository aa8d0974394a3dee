/* SPDX-License-Identifier: BSD-3-Clause */
#include "cases.h"
#include "sac/greedy.h"
#include "support/test.h"

#include <float.h>
#include <string.h>

static void expect_set(const me_int_set *set, const int32_t *expected,
                       uint32_t count)
{
    uint32_t position = 0;
    int32_t op = 0;
    assert_int_equal(set->used, count);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(me_int_set_next(set, &position, &op));
        assert_int_equal(op, expected[i]);
    }
}

static void expect_candidates(const me_sac_greedy *g, const sac_case *c)
{
    assert_int_equal(g->n_candidates, c->n_candidates);
    for (uint32_t i = 0; i < c->n_candidates; i++) {
        const me_sac_candidate *said = &g->candidates[i];
        const me_sac_candidate *expected = &c->candidates[i];
        if (said->op != expected->op || said->bytes != expected->bytes ||
            said->runtime_ms != expected->runtime_ms ||
            said->bytes_per_ms != expected->bytes_per_ms) {
            fail_msg("%s, candidate %u: %d, %llu bytes, %.17g ms, %.17g, not "
                     "%d, %llu, %.17g, %.17g",
                     c->name, i, (int)said->op, (unsigned long long)said->bytes,
                     said->runtime_ms, said->bytes_per_ms, (int)expected->op,
                     (unsigned long long)expected->bytes, expected->runtime_ms,
                     expected->bytes_per_ms);
        }
    }
}

/* To the last bit: operations in place and random ones, some forced. */
static void test_greedy__is_pythons(void **state)
{
    (void)state;
    FILE *file = fopen(GOLDEN_DIR "/sac_cases.tsv", "r");
    assert_non_null(file);
    static sac_case c;
    int count = 0;
    while (me_sac_case_read(file, &c)) {
        me_sac_greedy g = {.n_ops = 0};
        assert_int_equal(me_sac_greedy_init(&g, &c.stats, NULL), ME_OK);
        expect_set(&g.recomputed, c.recomputed, c.n_recomputed);
        expect_set(&g.stored, c.stored, c.n_stored);
        expect_candidates(&g, &c);
        me_sac_greedy_fini(&g);
        count++;
    }
    assert_int_equal(fclose(file), 0);
    assert_int_equal(count, 48);
}

static void expect_ops(const me_sac_greedy *g, const int32_t *ops,
                       uint32_t count)
{
    assert_int_equal(g->n_candidates, count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(g->candidates[i].op, ops[i]);
    }
}

/* What takes no time goes first, equals in their order. */
static void test_greedy__gives_up_what_is_cheap_first(void **state)
{
    (void)state;
    me_sac_op ops[] = {{.name = "mm", .runtime_ms = 2, .bytes = 4},
                       {.name = "mm", .runtime_ms = 1, .bytes = 2},
                       {.name = "arange", .bytes = 8},
                       {.name = "gelu", .runtime_ms = 1, .bytes = 9}};
    for (uint32_t i = 0; i < 4; i++) {
        ops[i].in_place_of = ME_SAC_NOT_IN_PLACE;
    }
    const me_sac_stats stats = {.fqn = "m", .ops = ops, .n_ops = 4};
    me_sac_greedy g = {.n_ops = 0};
    assert_int_equal(me_sac_greedy_init(&g, &stats, NULL), ME_OK);
    expect_ops(&g, (const int32_t[]){2, 3, 0, 1}, 4);
    assert_true(g.candidates[0].bytes_per_ms == DBL_MAX);
    me_sac_greedy_fini(&g);
}

/* `force & count > 0` in Python's precedence: bit 0 of the count decides. */
static void test_greedy__stores_groups_of_odd_randomness(void **state)
{
    (void)state;
    for (int n_random = 1; n_random <= 2; n_random++) {
        me_sac_op ops[] = {
            {.name = "bernoulli", .in_place_of = -1, .is_random = true},
            {.name = "mm", .in_place_of = -1, .bytes = 1},
            {.name = "bernoulli_", .in_place_of = 1, .is_random = true},
            {.name = "uniform_", .in_place_of = 1, .is_random = n_random == 2}};
        const me_sac_stats stats = {
            .fqn = "m", .ops = ops, .n_ops = 4, .stores_random = true};
        me_sac_greedy g = {.n_ops = 0};
        assert_int_equal(me_sac_greedy_init(&g, &stats, NULL), ME_OK);
        assert_true(me_int_set_has(&g.stored, 0));
        assert_int_equal(me_int_set_has(&g.stored, 1), n_random == 1);
        me_sac_greedy_fini(&g);
    }
}

static void test_greedy__is_empty_without_operations(void **state)
{
    (void)state;
    const me_sac_stats none = {.fqn = "m"};
    me_sac_greedy g = {.n_ops = 0};
    assert_int_equal(me_sac_greedy_init(&g, &none, NULL), ME_OK);
    expect_ops(&g, NULL, 0);
    assert_int_equal(g.random_head, ME_SAC_NO_OP);
    me_sac_greedy_fini(&g);
    me_sac_op views[] = {
        {.name = "t", .is_view_like = true, .in_place_of = -1},
        {.name = "view", .is_view_like = true, .in_place_of = -1}};
    const me_sac_stats all = {.fqn = "m", .ops = views, .n_ops = 2};
    assert_int_equal(me_sac_greedy_init(&g, &all, NULL), ME_OK);
    expect_ops(&g, NULL, 0);
    expect_set(&g.recomputed, (const int32_t[]){0, 1}, 2);
    me_sac_greedy_fini(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greedy__is_pythons),
        cmocka_unit_test(test_greedy__gives_up_what_is_cheap_first),
        cmocka_unit_test(test_greedy__stores_groups_of_odd_randomness),
        cmocka_unit_test(test_greedy__is_empty_without_operations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
