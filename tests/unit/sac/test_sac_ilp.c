/* SPDX-License-Identifier: BSD-3-Clause */
/* Checkpoints of PyTorch's test model, from the statistics that its tools recorded
 * of it. What is expected is PyTorch's own programme, as it is written in
 * sac_ilp.py, solved by CBC without a gap. */
#include "base/alloc.h"
#include "base/log.h"
#include "mod_stats.h"
#include "sac/ilp.h"

#include <math.h>

#define LAYER(n) "Transformer.layers." #n

enum {
    MOST_UNITS = 8,
    MOST_DECISIONS = 16
};

/** A request and its answer. */
typedef struct answer {
    double budget_gib;
    uint32_t n;
    double sum; /**< of the ratios, to 4 digits */
    double ms;
    int64_t peak_bytes;
} answer;

static mod_stats stats;

static void read_table(const char *device)
{
    char path[512];
    (void)snprintf(path, sizeof path, TABLES "/sac_ilp_%s.tsv", device);
    mod_stats_read(&stats, path);
}

static me_sac_solution *solve(const me_sac_request *request)
{
    me_sac_graph *graph = mod_stats_graph(&stats);
    me_diag diag = {0};
    me_sac_solution *solution = NULL;
    if (me_sac_ilp_solve(graph, request, &diag, &solution) != ME_OK) {
        fail_msg("%s", diag.text);
    }
    me_sac_graph_destroy(graph);
    return solution;
}

static double sum_of(const me_sac_solution *s)
{
    double sum = 0;
    for (uint32_t i = 0; i < s->n_decisions; i++) {
        sum += s->decisions[i].ratio;
    }
    return sum;
}

/** Each ratio is rounded, and so is their expected sum. */
static void check(const char *what, const me_sac_solution *s, const answer *a)
{
    if (s->is_optimal != (a->peak_bytes >= 0) || s->n_decisions != a->n ||
        fabs(sum_of(s) - a->sum) > 0.5e-4 * (a->n + 1.1) ||
        s->recompute_ms != a->ms || s->peak_bytes != a->peak_bytes ||
        s->gap != 0) {
        fail_msg("%s, %g GiB: %u decisions, sum %.4f, %g ms, %lld bytes, "
                 "gap %g; PyTorch %u, %.4f, %g, %lld",
                 what, a->budget_gib, s->n_decisions, sum_of(s),
                 s->recompute_ms, (long long)s->peak_bytes, s->gap, a->n,
                 a->sum, a->ms, (long long)a->peak_bytes);
    }
}

/** The decisions as text, such as "layers.0 0.5000". */
static void expect_decisions(const me_sac_solution *s, const char *expected)
{
    char text[1024] = "";
    size_t length = 0;
    for (uint32_t i = 0; i < s->n_decisions; i++) {
        const char *name = stats.names[s->decisions[i].module];
        length += (size_t)snprintf(
            text + length, sizeof text - length, "%s%s %.4f", i > 0 ? " " : "",
            name + strlen("Transformer."), s->decisions[i].ratio);
        assert_true(length < sizeof text);
    }
    assert_string_equal(text, expected);
}

enum {
    N_BUDGETS = 12
};

static void check_device(const char *device, const answer answers[N_BUDGETS])
{
    read_table(device);
    for (int i = 0; i < N_BUDGETS; i++) {
        me_sac_solution *s = solve(&(me_sac_request){
            .budget_gib = answers[i].budget_gib, .world_size = 4});
        check(device, s, &answers[i]);
        me_free(s);
    }
}

static void test_sac_ilp__a100_of_before(void **state)
{
    (void)state;
    const answer answers[N_BUDGETS] = {
        {0.8, 0, 0, 0, -1},
        {1.0, 4, 3.6773, 19.64, 1073741824},
        {1.2, 4, 3.2402, 15.50, 1288490189},
        {1.4, 4, 2.8030, 11.36, 1503238554},
        {1.5, 4, 2.5845, 9.29, 1610612736},
        {1.6, 4, 2.3660, 7.22, 1717986918},
        {1.7, 4, 2.1473, 5.15, 1825361101},
        {1.8, 4, 1.9288, 4.33, 1932735283},
        {2.0, 2, 1.0818, 2.65, 2147483648},
        {2.2, 1, 0.4398, 0.98, 2362232013},
        {2.3, 1, 0.1188, 0.45, 2469606195},
        {2.4, 0, 0, 0, 2576980378},
    };
    check_device("a100old", answers);
}

static void test_sac_ilp__a100_of_now(void **state)
{
    (void)state;
    const answer answers[N_BUDGETS] = {
        {0.8, 0, 0, 0, -1},
        {1.0, 4, 3.6773, 19.30, 1073741824},
        {1.2, 4, 3.2402, 15.18, 1288490189},
        {1.4, 4, 2.8030, 11.05, 1503238554},
        {1.5, 4, 2.5845, 8.99, 1610612736},
        {1.6, 4, 2.3660, 6.92, 1717986918},
        {1.7, 4, 2.1473, 4.86, 1825361101},
        {1.8, 4, 1.9287, 3.96, 1932735283},
        {2.0, 2, 1.0818, 2.51, 2147483648},
        {2.2, 1, 0.4398, 0.90, 2362232013},
        {2.3, 1, 0.2212, 0.41, 2469606195},
        {2.4, 0, 0, 0, 2576980378},
    };
    check_device("a100new", answers);
}

static void test_sac_ilp__h100(void **state)
{
    (void)state;
    const answer answers[N_BUDGETS] = {
        {0.8, 0, 0, 0, -1},
        {1.0, 4, 3.6773, 5.96, 1073741824},
        {1.2, 4, 3.2402, 4.71, 1288490189},
        {1.4, 4, 2.8030, 3.47, 1503238554},
        {1.5, 4, 2.5845, 2.84, 1610612736},
        {1.6, 4, 2.3660, 2.22, 1717986918},
        {1.7, 4, 2.1473, 1.85, 1825361101},
        {1.8, 3, 1.7239, 1.52, 1932735283},
        {2.0, 2, 1.0818, 0.93, 2147483648},
        {2.2, 1, 0.4398, 0.37, 2362232013},
        {2.3, 1, 0.1188, 0.15, 2469606195},
        {2.4, 0, 0, 0, 2576980378},
    };
    check_device("h100new", answers);
}

/* What PyTorch's test/distributed/_tools/test_sac_ilp.py asks for, but for the time
 * of its authors' A100: that is of 2.6, as the times of a100old are. */
static void test_sac_ilp__what_its_test_asks(void **state)
{
    (void)state;
    const char *const devices[] = {"a100old", "a100new", "h100new"};
    for (int d = 0; d < 3; d++) {
        read_table(devices[d]);
        me_sac_graph *graph = mod_stats_graph(&stats);
        const me_sac_baseline baseline = me_sac_graph_baseline(graph);
        me_sac_graph_destroy(graph);
        assert_int_equal(baseline.peak_bytes, 2583888896);
        me_sac_solution *s =
            solve(&(me_sac_request){.budget_gib = 1.6, .world_size = 4});
        assert_int_equal(s->n_decisions, 4);
        for (uint32_t i = 1; i < 4; i++) {
            assert_true(fabs(s->decisions[i].ratio - 0.55) <= 0.05);
            assert_true(s->decisions[i].ratio < s->decisions[0].ratio);
        }
        assert_true(fabs(sum_of(s) - 2.35) <= 0.05);
        assert_string_equal(stats.names[s->decisions[3].module], LAYER(3));
        const double ratio = s->recompute_ms / baseline.compute_ms;
        assert_true(fabs(ratio / (6.97 / 97.97) - 1) <= 0.25);
        me_free(s);
    }
}

/* Equal layers: the first gives up more, and of some the first are chosen. */
static void test_sac_ilp__ties_go_to_the_first(void **state)
{
    (void)state;

    static const struct {
        double budget_gib;
        const char *decisions;
    } cases[] = {
        {1.6,
         "layers.0 0.7870 layers.1 0.5263 layers.2 0.5263 layers.3 0.5263"},
        {1.0,
         "layers.0 1.0000 layers.1 1.0000 layers.2 1.0000 layers.3 0.6774"},
        {2.0, "layers.0 0.5556 layers.1 0.5263"},
        {2.2, "layers.0 0.4398"},
        {2.3, "layers.0.feed_forward 0.1188"},
        {2.4, ""},
    };

    read_table("a100old");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        me_sac_solution *s = solve(&(me_sac_request){
            .budget_gib = cases[i].budget_gib, .world_size = 4});
        expect_decisions(s, cases[i].decisions);
        me_free(s);
    }
}

/** Requests with units. */
typedef struct unit_case {
    answer answer;
    const char *ac[MOST_UNITS];
    const char *fsdp[MOST_UNITS];
    const char *decisions;
} unit_case;

static uint32_t count(const char *const units[MOST_UNITS])
{
    uint32_t n = 0;
    while (n < MOST_UNITS && units[n] != NULL) {
        n++;
    }
    return n;
}

static void check_units(const unit_case *cases, int n)
{
    for (int i = 0; i < n; i++) {
        const unit_case *c = &cases[i];
        me_sac_solution *s =
            solve(&(me_sac_request){.budget_gib = c->answer.budget_gib,
                                    .world_size = 4,
                                    .ac_units = c->ac,
                                    .n_ac_units = count(c->ac),
                                    .fsdp_units = c->fsdp,
                                    .n_fsdp_units = count(c->fsdp)});
        check(c->decisions, s, &c->answer);
        expect_decisions(s, c->decisions);
        me_free(s);
    }
}

static void test_sac_ilp__only_what_is_named(void **state)
{
    (void)state;
    read_table("h100new");
    const unit_case cases[] = {
        {{1.9, 3, 2.1817, 2.06, 2040109466},
         {LAYER(0) ".feed_forward", LAYER(1) ".feed_forward",
          LAYER(2) ".feed_forward", LAYER(3) ".feed_forward"},
         {NULL},
         "layers.0.feed_forward 1.0000 layers.1.feed_forward 1.0000 "
         "layers.2.feed_forward 0.1817"},
        {{1.5, 0, 0, 0, -1},
         {LAYER(0) ".feed_forward", LAYER(1) ".feed_forward",
          LAYER(2) ".feed_forward", LAYER(3) ".feed_forward"},
         {NULL},
         ""},
        {{2.0, 2, 1.3205, 1.20, 2147483648},
         {LAYER(1), LAYER(3) ".feed_forward", "no module"},
         {NULL},
         "layers.1 0.5688 layers.3.feed_forward 0.7517"},
        // No module's forward ends after the root's, to use what that gives up.
        {{2.0, 0, 0, 0, -1}, {"Transformer"}, {NULL}, ""},
        // A leaf is never checkpointed.
        {{2.0, 0, 0, 0, -1}, {LAYER(0) ".attention.wq"}, {NULL}, ""},
    };
    check_units(cases, 5);
}

static void test_sac_ilp__nothing_around_a_unit_of_fsdp(void **state)
{
    (void)state;
    read_table("h100new");
    const unit_case cases[] = {
        {{2.0, 2, 1.0819, 0.93, 2147483648},
         {NULL},
         {LAYER(0) ".attention"},
         "layers.1 0.5688 layers.2 0.5131"},
        {{1.6, 4, 3.0797, 2.78, 1717986918},
         {NULL},
         {LAYER(0) ".attention", LAYER(1) ".attention.wq"},
         "layers.0.feed_forward 1.0000 layers.1.feed_forward 0.9421 "
         "layers.2 0.5688 layers.3 0.5688"},
        // A unit may be one itself.
        {{2.2, 1, 0.4398, 0.37, 2362232013},
         {NULL},
         {LAYER(0), LAYER(1), LAYER(2), LAYER(3)},
         "layers.0 0.4398"},
    };
    check_units(cases, 3);
}

static void test_sac_ilp__ranks_share_parameters(void **state)
{
    (void)state;
    read_table("h100new");

    static const struct {
        uint32_t world_size;
        answer answer;
    } cases[] = {
        {1, {1.6, 4, 2.5823, 2.84, 1717986918}},
        {8, {1.6, 4, 2.3299, 2.12, 1717986918}},
        {1, {2.4, 1, 0.1138, 0.15, 2576980378}},
        {2, {2.3, 1, 0.2933, 0.24, 2469606195}},
    };

    for (int i = 0; i < 4; i++) {
        me_sac_solution *s =
            solve(&(me_sac_request){.budget_gib = cases[i].answer.budget_gib,
                                    .world_size = cases[i].world_size});
        check("world", s, &cases[i].answer);
        me_free(s);
    }
}

/* PyTorch's M: no module may take 100 ms and more. At 1.2 GiB layers would, and
 * their halves do not. */
static void test_sac_ilp__no_module_beyond_m(void **state)
{
    (void)state;
    read_table("h100new");
    for (uint32_t i = 0; i < stats.n; i++) {
        stats.modules[i].sac_ms *= 100;
    }
    const answer answers[] = {
        {1.6, 4, 2.366, 222.00, 1717986918},
        {1.2, 8, 7.4397, 671.91, 1288490189},
        {1.05, 0, 0, 0, -1},
    };
    for (int i = 0; i < 3; i++) {
        me_sac_solution *s = solve(&(me_sac_request){
            .budget_gib = answers[i].budget_gib, .world_size = 4});
        check("times 100", s, &answers[i]);
        me_free(s);
    }
}

/* Operations that take less than their forward leaves behind: as much is assumed,
 * and the first part of it is free of charge. */
static void test_sac_ilp__memory_of_operations_is_raised(void **state)
{
    (void)state;
    read_table("h100new");
    for (uint32_t i = 0; i < stats.n; i++) {
        const char *name = stats.names[i];
        if (strncmp(name, LAYER(), strlen(LAYER())) == 0 &&
            strlen(name) == strlen(LAYER(0))) {
            stats.modules[i].sac_bytes = 1000;
        }
    }
    me_log_set_level(ME_LOG_ERROR);
    const answer answers[] = {
        {1.6, 4, 1.9449, 1.66, 1717986918},
        {2.2, 4, 0.2956, 0.18, 2362232013},
    };
    for (int i = 0; i < 2; i++) {
        me_sac_solution *s = solve(&(me_sac_request){
            .budget_gib = answers[i].budget_gib, .world_size = 4});
        check("raised", s, &answers[i]);
        me_free(s);
    }
    me_log_set_level(ME_LOG_WARN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sac_ilp__a100_of_before),
        cmocka_unit_test(test_sac_ilp__a100_of_now),
        cmocka_unit_test(test_sac_ilp__h100),
        cmocka_unit_test(test_sac_ilp__what_its_test_asks),
        cmocka_unit_test(test_sac_ilp__ties_go_to_the_first),
        cmocka_unit_test(test_sac_ilp__only_what_is_named),
        cmocka_unit_test(test_sac_ilp__nothing_around_a_unit_of_fsdp),
        cmocka_unit_test(test_sac_ilp__ranks_share_parameters),
        cmocka_unit_test(test_sac_ilp__no_module_beyond_m),
        cmocka_unit_test(test_sac_ilp__memory_of_operations_is_raised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
