/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "mod_stats.h"
#include "sac/ilp.h"
#include "support/faults.h"

static mod_stats stats;

static me_status scenario(void *context)
{
    const me_sac_request request = {.budget_gib = 1.6, .world_size = 4};
    me_diag diag = {0};
    me_sac_solution *solution = NULL;
    const me_status status =
        me_sac_ilp_solve(context, &request, &diag, &solution);
    assert_int_equal(status, diag.status);
    assert_true((status == ME_OK) == (solution != NULL));
    me_free(solution);
    return status;
}

static void test_sac_ilp__survives_full_memory(void **state)
{
    (void)state;
    mod_stats_read(&stats, TABLES "/sac_ilp_h100new.tsv");
    me_sac_graph *graph = mod_stats_graph(&stats);
    me_sweep_faults(scenario, graph, 12);
    me_sac_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sac_ilp__survives_full_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
