/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/node_memory.h"
#include "report/verdict.h"
#include "support/test.h"

enum {
    RANKS = 4,
    GIB = 1 << 30
};

/** Four ranks; host memory of @p gib GiB each. */
typedef struct world {
    me_config config;
    me_point_result points[RANKS];
    me_rank_result results[RANKS];
    me_rank_result *pointers[RANKS];
    me_report_rank ranks[RANKS];
    me_report report;
} world;

static void make_world(world *w, const uint64_t gib[RANKS], int32_t per_node)
{
    *w = (world){0};
    w->config.parallel.world_size = RANKS;
    w->config.device.gpus_per_node = per_node;
    for (uint32_t i = 0; i < RANKS; i++) {
        w->points[i] = (me_point_result){
            .name = "iter1_end",
            .requested_peak_bytes = 1,
            .reserved_peak_bytes = 1,
            .device_bytes = ME_BYTES_UNKNOWN,
        };
        w->results[i] = (me_rank_result){
            .points = &w->points[i],
            .n_points = 1,
            .host = {.peak_bytes = gib[i] * GIB, .pinned_bytes = gib[i]},
        };
        w->pointers[i] = &w->results[i];
        w->ranks[i] = (me_report_rank){.place.rank = (int32_t)i, .result = i};
    }
    w->report = (me_report){.config = &w->config,
                            .world_size = RANKS,
                            .results = w->pointers,
                            .n_results = RANKS,
                            .ranks = w->ranks};
}

static void test_node_memory__is_of_the_node_with_most(void **state)
{
    (void)state;

    static const struct {
        uint64_t gib[RANKS];
        int32_t per_node;
        me_rank_placement placement;
        int32_t node;
        int32_t first_rank;
        int32_t n_ranks;
        uint64_t sum;
    } cases[] = {
        {{1, 2, 3, 4}, 8, ME_RANKS_BLOCK, 0, 0, 4, 10},
        {{1, 2, 3, 4}, 2, ME_RANKS_BLOCK, 1, 2, 2, 7},
        {{4, 4, 3, 4}, 2, ME_RANKS_BLOCK, 0, 0, 2, 8},
        {{1, 2, 3, 4}, 3, ME_RANKS_BLOCK, 0, 0, 3, 6},
        {{1, 2, 3, 4}, 2, ME_RANKS_CYCLIC, 1, 1, 2, 6},
        {{0, 0, 0, 0}, 2, ME_RANKS_BLOCK, 0, 0, 0, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world w;
        make_world(&w, cases[i].gib, cases[i].per_node);
        w.config.machine.placement = cases[i].placement;
        const me_node_memory node = me_report_node_memory(&w.report);
        assert_int_equal(node.node, cases[i].node);
        assert_int_equal(node.first_rank, cases[i].first_rank);
        assert_int_equal(node.n_ranks, cases[i].n_ranks);
        assert_int_equal(node.bytes, cases[i].sum * GIB);
        assert_int_equal(node.pinned_bytes, cases[i].sum);
    }
}

/* A few ranks, as a probe has them, are no node. */
static void test_node_memory__wants_all_ranks(void **state)
{
    (void)state;
    world w;
    make_world(&w, (const uint64_t[RANKS]){1, 2, 3, 4}, 4);
    w.report.world_size = 3;
    assert_int_equal(me_report_node_memory(&w.report).n_ranks, 0);
}

/* Cards with room are of no use to a node without. */
static void test_node_memory__decides(void **state)
{
    (void)state;

    static const struct {
        uint64_t capacity;
        me_risk risk;
        bool fits;
    } cases[] = {
        {0, ME_RISK_FITS, true},
        {(uint64_t)10 * GIB, ME_RISK_FITS, true},
        {(uint64_t)10 * GIB - 1, ME_RISK_DOES_NOT_FIT, false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world w;
        make_world(&w, (const uint64_t[RANKS]){1, 2, 3, 4}, 4);
        w.config.device.host_memory_bytes = cases[i].capacity;
        const me_verdict v = me_verdict_judge(&w.report, GIB);
        assert_int_equal(v.risk, cases[i].risk);
        assert_int_equal(v.fits, cases[i].fits);
        assert_int_equal(me_verdict_lets_go(&v), cases[i].fits);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_node_memory__is_of_the_node_with_most),
        cmocka_unit_test(test_node_memory__wants_all_ranks),
        cmocka_unit_test(test_node_memory__decides),
    };
    return cmocka_run_group_tests_name("node_memory", tests, NULL, NULL);
}
