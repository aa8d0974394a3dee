/* SPDX-License-Identifier: BSD-3-Clause */
#include "sac/policy.h"
#include "support/random.h"
#include "support/test.h"

#include <math.h>
#include <stdio.h>

/* The operations of PyTorch's own test of the policy. */
static me_sac_op eight[] = {
    {.name = "aten.copy_", .runtime_ms = 5, .in_place_of = 0},
    {.name = "aten.add", .runtime_ms = 5, .bytes = 100, .in_place_of = -1},
    {.name = "aten.div", .runtime_ms = 8, .bytes = 100, .in_place_of = -1},
    {.name = "aten.mm", .runtime_ms = 15, .bytes = 120, .in_place_of = -1},
    {.name = "aten.native_dropout",
     .runtime_ms = 15,
     .is_random = true,
     .in_place_of = -1},
    {.name = "aten.linear", .runtime_ms = 9, .bytes = 100, .in_place_of = -1},
    {.name = "aten.t",
     .runtime_ms = 1,
     .is_view_like = true,
     .in_place_of = -1},
    {.name = "aten.relu_", .runtime_ms = 5, .in_place_of = 5},
};

static void expect_policy(const me_sac_stats *stats, double budget,
                          const char *expected)
{
    bool saves[64];
    char said[65] = "";
    bool is_feasible = false;
    assert_int_equal(me_sac_policy(stats, budget, saves, &is_feasible, NULL),
                     ME_OK);
    for (uint32_t i = 0; is_feasible && i < stats->n_ops; i++) {
        said[i] = saves[i] ? '1' : '0';
    }
    assert_string_equal(said, expected);
}

static void test_policy__is_that_of_pytorchs_test(void **state)
{
    (void)state;
    const me_sac_stats stats = {.fqn = "m", .ops = eight, .n_ops = 8};
    expect_policy(&stats, 0, "10001000");
    expect_policy(&stats, 100.0 / 420, "10001101");
    expect_policy(&stats, 120.0 / 420, "10011000");
    expect_policy(&stats, 200.0 / 420, "10101101");
    expect_policy(&stats, 220.0 / 420, "10011101");
    expect_policy(&stats, 320.0 / 420, "10111101");
    expect_policy(&stats, 420.0 / 420, "11111101");
}

static void test_policy__rounds_the_budget_up(void **state)
{
    (void)state;
    const me_sac_stats stats = {.fqn = "m", .ops = eight, .n_ops = 8};
    expect_policy(&stats, 99.0 / 420, "10001000");
    expect_policy(&stats, 99.1 / 420, "10001101");
}

/* All random ones or none; forced, all whatever they take. */
static void test_policy__keeps_random_ones_together(void **state)
{
    (void)state;
    me_sac_op ops[] = {
        {.name = "a", .runtime_ms = 9, .bytes = 10, .is_random = true},
        {.name = "b", .runtime_ms = 2, .bytes = 10},
        {.name = "c", .runtime_ms = 1, .bytes = 30, .is_random = true},
        {.name = "d", .runtime_ms = 3, .bytes = 10}};
    for (int i = 0; i < 4; i++) {
        ops[i].in_place_of = ME_SAC_NOT_IN_PLACE;
    }
    me_sac_stats stats = {.fqn = "m", .ops = ops, .n_ops = 4};
    expect_policy(&stats, 20.0 / 60, "0101");
    expect_policy(&stats, 40.0 / 60, "1010");
    expect_policy(&stats, 50.0 / 60, "1011");
    stats.stores_random = true;
    expect_policy(&stats, 20.0 / 60, "");
    expect_policy(&stats, 40.0 / 60, "1010");
}

static void test_policy__has_none_for_rules_at_odds(void **state)
{
    (void)state;
    me_sac_op view = {.name = "t_", .is_view_like = true, .in_place_of = 0};
    const me_sac_stats stats = {.fqn = "m", .ops = &view, .n_ops = 1};
    expect_policy(&stats, 1, "");
    const me_sac_stats none = {.fqn = "m"};
    expect_policy(&none, 0.5, "");
}

static void test_policy__refuses_other_budgets(void **state)
{
    (void)state;
    const double budgets[] = {-0.01, 1.5, NAN};
    const char *const said[] = {"-0.01", "1.5", "nan"};
    const me_sac_stats stats = {.fqn = "a.b", .ops = eight, .n_ops = 8};
    for (int i = 0; i < 3; i++) {
        char expected[ME_DIAG_TEXT];
        bool saves[8];
        bool is_feasible = false;
        me_diag diag = {.line = 0};
        assert_int_equal(
            me_sac_policy(&stats, budgets[i], saves, &is_feasible, &diag),
            ME_ERR_CONFIG);
        (void)snprintf(expected, sizeof expected,
                       "a.b: a memory budget of %s: it is a part of the "
                       "memory, between 0 and 1",
                       said[i]);
        assert_string_equal(diag.text, expected);
    }
}

enum {
    LAYERS = 24,
    LAYER_OPS = 10,
    MANY = LAYERS * LAYER_OPS
};

/* 24 equal layers of matrix products whose time follows their memory, so that
 * nearly every choice is as good as another: half of the memory is worth half of
 * the time, and no search among 2^240 is needed to see it. */
static void test_policy__is_quick_with_equals(void **state)
{
    (void)state;
    static const uint64_t mib[LAYER_OPS] = {24, 24, 24, 24, 96,
                                            24, 96, 48, 12, 6};
    static me_sac_op ops[MANY];
    static bool saves[MANY];
    double total_ms = 0;
    for (int i = 0; i < MANY; i++) {
        ops[i] = (me_sac_op){.name = "mm", .in_place_of = -1};
        ops[i].bytes = mib[i % LAYER_OPS] << 20;
        ops[i].runtime_ms = (double)mib[i % LAYER_OPS] * 0.0137;
        total_ms += ops[i].runtime_ms;
    }
    const me_sac_stats stats = {.fqn = "m", .ops = ops, .n_ops = MANY};
    bool is_feasible = false;
    assert_int_equal(me_sac_policy(&stats, 0.5, saves, &is_feasible, NULL),
                     ME_OK);
    assert_true(is_feasible);
    double saved_ms = 0;
    uint64_t bytes = 0;
    for (int i = 0; i < MANY; i++) {
        saved_ms += saves[i] ? ops[i].runtime_ms : 0;
        bytes += saves[i] ? ops[i].bytes : 0;
    }
    assert_true(bytes <= me_sac_stats_bytes(&stats) / 2);
    assert_true(fabs(saved_ms - total_ms / 2) < 1e-9);
}

/* A hundred sizes of which hardly two are equal: what fills the budget to its last
 * 512 bytes is found without trying all. */
static void test_policy__is_quick_with_odd_sizes(void **state)
{
    (void)state;

    enum {
        ODD = 100
    };

    static me_sac_op ops[ODD];
    bool saves[ODD];
    me_random r = {1};
    for (uint32_t i = 0; i < ODD; i++) {
        ops[i] = (me_sac_op){.name = "mm", .in_place_of = -1};
        ops[i].bytes = UINT64_C(512) * (uint64_t)me_random_in(&r, 1, 100000);
        ops[i].runtime_ms = (double)ops[i].bytes * 1e-8;
    }
    const me_sac_stats stats = {.fqn = "m", .ops = ops, .n_ops = ODD};
    bool is_feasible = false;
    assert_int_equal(me_sac_policy(&stats, 0.37, saves, &is_feasible, NULL),
                     ME_OK);
    uint64_t bytes = 0;
    for (int i = 0; i < ODD; i++) {
        bytes += saves[i] ? ops[i].bytes : 0;
    }
    const uint64_t most =
        (uint64_t)ceil(0.37 * (double)me_sac_stats_bytes(&stats));
    assert_int_equal(bytes, most - most % 512);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policy__is_that_of_pytorchs_test),
        cmocka_unit_test(test_policy__rounds_the_budget_up),
        cmocka_unit_test(test_policy__keeps_random_ones_together),
        cmocka_unit_test(test_policy__has_none_for_rules_at_odds),
        cmocka_unit_test(test_policy__refuses_other_budgets),
        cmocka_unit_test(test_policy__is_quick_with_equals),
        cmocka_unit_test(test_policy__is_quick_with_odd_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
