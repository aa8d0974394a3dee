/* SPDX-License-Identifier: BSD-3-Clause */
/* Which module lies in which, as PyTorch tells by their names. */
#include "mod_stats.h"
#include "support/faults.h"

enum {
    N = 4
};

static const char *const NAMES[N] = {"M", "M.a", "M.a.b", "M.c"};

static void make(me_sac_module modules[N], const char *const names[N])
{
    for (uint32_t i = 0; i < N; i++) {
        modules[i] = (me_sac_module){
            .fqn = names[i], .fw_pre_order = i, .fw_post_order = N - 1 - i};
    }
}

static void test_sac_graph__says_who_lies_in_whom(void **state)
{
    (void)state;
    me_sac_module modules[N];
    make(modules, NAMES);
    me_sac_graph *graph = NULL;
    assert_int_equal(me_sac_graph_create(modules, N, NULL, &graph), ME_OK);
    const uint32_t last[N] = {3, 2, 2, 3};
    for (uint32_t i = 0; i < N; i++) {
        assert_int_equal(graph->last[i], last[i]);
    }
    me_sac_graph_destroy(graph);
    me_sac_graph_destroy(NULL);
}

/* The run of inner modules ends at the first that is none. */
static void test_sac_graph__ends_at_the_first_miss(void **state)
{
    (void)state;
    const char *const names[N] = {"M", "M.a", "M.c", "M.a.b"};
    me_sac_module modules[N];
    make(modules, names);
    me_sac_graph *graph = NULL;
    assert_int_equal(me_sac_graph_create(modules, N, NULL, &graph), ME_OK);
    assert_int_equal(graph->last[1], 1);
    me_sac_graph_destroy(graph);
}

static void test_sac_graph__finds_names_anywhere(void **state)
{
    (void)state;
    assert_true(me_sac_is_submodule("M.a.b", "M.a"));
    assert_true(me_sac_is_submodule("M.aa.a.b", "a"));
    assert_true(me_sac_is_submodule("M.a", ""));
    assert_false(me_sac_is_submodule("M.a", "M.a"));
    assert_false(me_sac_is_submodule("M.ab", "M.a"));
    assert_false(me_sac_is_submodule("M", ""));
}

static void test_sac_graph__refuses_what_is_no_order(void **state)
{
    (void)state;
    me_sac_module modules[N];
    make(modules, NAMES);
    modules[2].fw_post_order = 0;
    me_diag diag = {0};
    me_sac_graph *graph = NULL;
    assert_int_equal(me_sac_graph_create(modules, N, &diag, &graph),
                     ME_ERR_INTERNAL);
    assert_string_equal(diag.text, "module M.c: places 3 and 0 in the forward "
                                   "of 4 modules are no order of them");
    modules[2].fw_post_order = 1;
    modules[0].fw_pre_order = N;
    assert_int_equal(me_sac_graph_create(modules, N, &diag, &graph),
                     ME_ERR_INTERNAL);
    assert_int_equal(me_sac_graph_create(modules, 0, &diag, &graph),
                     ME_ERR_CONFIG);
    assert_null(graph);
}

/* Temporary memory may shrink: 10 + 4 + 7 - 6 = 15, 10 + 1 + 3 + 0 = 14. */
static void test_sac_graph__baseline_is_the_largest_sum(void **state)
{
    (void)state;
    me_sac_module modules[N];
    make(modules, NAMES);
    modules[0].param_bytes = 10;
    modules[0].fw_ms = 1.5;
    modules[0].bw_ms = 2.25;
    modules[1].grad_total_bytes = 4;
    modules[1].act_total_bytes = 7;
    modules[1].act_grad_bytes = -6;
    modules[3].param_bytes = 100;
    modules[3].grad_total_bytes = 1;
    modules[3].act_total_bytes = 3;
    me_sac_graph *graph = NULL;
    assert_int_equal(me_sac_graph_create(modules, N, NULL, &graph), ME_OK);
    const me_sac_baseline baseline = me_sac_graph_baseline(graph);
    assert_int_equal(baseline.peak_bytes, 15);
    assert_true(baseline.compute_ms == 3.75);
    me_sac_graph_destroy(graph);
}

static me_status scenario(void *context)
{
    me_diag diag = {0};
    me_sac_graph *graph = NULL;
    const me_status status = me_sac_graph_create(context, N, &diag, &graph);
    me_sac_graph_destroy(graph);
    assert_int_equal(status, diag.status);
    return status;
}

static void test_sac_graph__survives_full_memory(void **state)
{
    (void)state;
    me_sac_module modules[N];
    make(modules, NAMES);
    me_sweep_faults(scenario, modules, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sac_graph__says_who_lies_in_whom),
        cmocka_unit_test(test_sac_graph__ends_at_the_first_miss),
        cmocka_unit_test(test_sac_graph__finds_names_anywhere),
        cmocka_unit_test(test_sac_graph__refuses_what_is_no_order),
        cmocka_unit_test(test_sac_graph__baseline_is_the_largest_sum),
        cmocka_unit_test(test_sac_graph__survives_full_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
