/* SPDX-License-Identifier: BSD-3-Clause */
#include "cases.h"
#include "sac/tradeoff.h"
#include "support/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void make(const me_sac_stats *stats, uint32_t n_segments,
                 me_sac_tradeoff *t)
{
    me_sac_greedy g = {.n_ops = 0};
    assert_int_equal(me_sac_greedy_init(&g, stats, NULL), ME_OK);
    assert_int_equal(me_sac_tradeoff_init(t, stats, &g, n_segments, NULL),
                     ME_OK);
    me_sac_greedy_fini(&g);
}

static void expect_near(const char *what, double said, double expected,
                        double most)
{
    if (!(fabs(said - expected) <= most)) {
        fail_msg("%s is %.15g, not %.15g", what, said, expected);
    }
}

/* Curves to the last bit; no random search finds a better fit. */
static void test_tradeoff__is_pythons(void **state)
{
    (void)state;
    FILE *file = fopen(GOLDEN_DIR "/sac_cases.tsv", "r");
    assert_non_null(file);
    static sac_case c;
    int n_bent = 0;
    while (me_sac_case_read(file, &c)) {
        me_sac_tradeoff t = {.n_points = 0};
        make(&c.stats, 2, &t);
        assert_int_equal(t.n_points, c.n_points);
        for (uint32_t i = 0; i < t.n_points; i++) {
            expect_near("x", t.points[i].discarded, c.points[i].discarded, 0);
            expect_near("y", t.points[i].recomputed, c.points[i].recomputed, 0);
        }
        assert_int_equal(t.fit.n_segments, c.n_segments);
        if (t.fit.residual > c.residual * (1 + 1e-12) + 1e-28) {
            fail_msg("%s: the fit is off by %.17g, one by %.17g was found",
                     c.name, t.fit.residual, c.residual);
        }
        n_bent += c.n_segments == 2 ? 1 : 0;
        me_sac_tradeoff_fini(&t);
    }
    assert_int_equal(fclose(file), 0);
    assert_true(n_bent > 20);
}

/* The table has times of nine digits and points of twelve. */
static void expect_points(const char *module, const me_sac_tradeoff *t)
{
    FILE *file = fopen(GOLDEN_DIR "/sac_tradeoff.tsv", "r");
    assert_non_null(file);
    char line[256];
    uint32_t count = 0;
    const size_t length = strlen(module);
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, module, length) != 0 || line[length] != '\t') {
            continue;
        }
        char *at = line + length;
        assert_int_equal(strtoul(at, &at, 10), count);
        assert_true(count < t->n_points);
        expect_near("x", t->points[count].discarded, strtod(at, &at), 6e-13);
        expect_near("y", t->points[count].recomputed, strtod(at, &at), 1e-9);
        count++;
    }
    assert_int_equal(fclose(file), 0);
    assert_int_equal(count, t->n_points);
}

typedef struct fit_case {
    const char *module;
    uint64_t bytes;
    double runtime_ms;
    uint32_t n_segments;
    double at;
    double slopes[2];
    double intercepts[2];
} fit_case;

/* PyTorch's Transformer on an A100, fitted by a scan of breaks. */
static const fit_case fits[] = {
    {"Transformer",
     UINT64_C(2175873024),
     24.124098,
     2,
     0.514869669,
     {0.154136132, 1.454951528},
     {-0.006512954, -0.676263346}},
    {"Transformer.layers.0",
     UINT64_C(491258880),
     5.123374801,
     2,
     0.522539746,
     {0.433319555, 1.842906922},
     {-0.015747895, -0.752313320}},
    {"Transformer.layers.0.feed_forward",
     UINT64_C(226492416),
     2.7695647431,
     1,
     0,
     {1.084892562, 0},
     {0.023130987, 0}},
};

static void test_tradeoff__is_the_transformers(void **state)
{
    (void)state;
    static sac_case c;
    for (size_t i = 0; i < sizeof fits / sizeof fits[0]; i++) {
        const fit_case *f = &fits[i];
        me_sac_case_of_module(f->module, &c);
        me_sac_tradeoff t = {.n_points = 0};
        make(&c.stats, 2, &t);
        expect_points(f->module, &t);
        assert_int_equal(t.sac_memory, f->bytes);
        expect_near("sac_runtime", t.sac_runtime, f->runtime_ms, 1e-7);
        assert_int_equal(t.fit.n_segments, f->n_segments);
        for (uint32_t k = 0; k < f->n_segments; k++) {
            expect_near("slope", t.fit.slopes[k], f->slopes[k], 5e-9);
            expect_near("intercept", t.fit.intercepts[k], f->intercepts[k],
                        5e-9);
        }
        if (f->n_segments == 2) {
            expect_near("break", t.fit.breaks[1], f->at, 3e-9);
        }
        assert_true(t.fit.breaks[0] == 0.01);
        assert_true(t.fit.breaks[t.fit.n_segments] ==
                    t.points[t.n_points - 2].discarded);
        if (i == 1) {
            expect_near("residual", t.fit.residual, 0.0292338396, 5e-11);
        }
        me_sac_tradeoff_fini(&t);
    }
}

/* Four points on a line and one above: every break between the last two fits
 * exactly, and the first one is taken. */
static void test_tradeoff__bends_as_early_as_it_can(void **state)
{
    (void)state;
    static sac_case c;
    me_sac_tradeoff t = {.n_points = 0};
    me_sac_case_of_module("Transformer.layers.0.attention", &c);
    make(&c.stats, 2, &t);
    expect_points(c.name, &t);
    assert_int_equal(t.fit.n_segments, 2);
    expect_near("break", t.fit.breaks[1], t.points[3].discarded, 1e-12);
    expect_near("residual", t.fit.residual, 0, 1e-28);
    expect_near("slope", t.fit.slopes[0],
                (t.points[4].recomputed - t.points[1].recomputed) /
                    (t.points[3].discarded - t.points[0].discarded),
                1e-12);
    expect_near("slope", t.fit.slopes[1],
                (t.points[5].recomputed - t.points[4].recomputed) /
                    (t.points[4].discarded - t.points[3].discarded),
                1e-12);
    me_sac_tradeoff_fini(&t);
    make(&c.stats, 1, &t);
    assert_int_equal(t.fit.n_segments, 1);
    assert_true(t.fit.residual > 0.01);
    me_sac_tradeoff_fini(&t);
}

/* A line stays one, and a bend away from the points is found: worked out by hand
 * from y = x before 0.45 and y = 3x - 0.9 behind. */
static void test_piecewise__finds_what_is_there(void **state)
{
    (void)state;
    const double x[] = {0, 0.1, 0.2, 0.4, 0.5, 0.7, 1};
    double y[7];
    me_piecewise fit = {.n_segments = 0};
    for (int i = 0; i < 7; i++) {
        y[i] = 2 - x[i];
    }
    assert_int_equal(me_piecewise_fit(x, y, 7, 2, &fit), ME_OK);
    for (int i = 0; i < 2; i++) {
        expect_near("slope", fit.slopes[i], -1, 1e-14);
        expect_near("intercept", fit.intercepts[i], 2, 1e-14);
    }
    for (int i = 0; i < 7; i++) {
        y[i] = x[i] < 0.45 ? x[i] : 3 * x[i] - 0.9;
    }
    assert_int_equal(me_piecewise_fit(x, y, 7, 2, &fit), ME_OK);
    expect_near("break", fit.breaks[1], 0.45, 1e-14);
    expect_near("slope", fit.slopes[0], 1, 1e-13);
    expect_near("slope", fit.slopes[1], 3, 1e-13);
    expect_near("intercept", fit.intercepts[1], -0.9, 1e-13);
    assert_int_equal(me_piecewise_fit(x, y, 2, 1, &fit), ME_OK);
    expect_near("slope", fit.slopes[0], 1, 1e-14);
    expect_near("end", fit.breaks[1], 0.1, 0);
}

static void test_tradeoff__of_one_step_has_no_slope(void **state)
{
    (void)state;
    me_sac_op ops[] = {{.name = "addmm", .runtime_ms = 1, .in_place_of = -1},
                       {.name = "relu_", .bytes = 512, .in_place_of = 0}};
    const me_sac_stats stats = {.fqn = "Foo", .ops = ops, .n_ops = 2};
    me_sac_tradeoff t = {.n_points = 0};
    make(&stats, 2, &t);
    assert_int_equal(t.n_points, 2);
    assert_int_equal(t.fit.n_segments, 1);
    assert_true(isnan(t.fit.slopes[0]) && isnan(t.fit.intercepts[0]));
    me_sac_tradeoff_fini(&t);
}

static void expect_refused(me_sac_op *ops, uint32_t n_ops, const char *text)
{
    const me_sac_stats stats = {.fqn = "a.b", .ops = ops, .n_ops = n_ops};
    me_sac_greedy g = {.n_ops = 0};
    me_sac_tradeoff t = {.n_points = 0};
    me_diag diag = {.line = 0};
    assert_int_equal(me_sac_greedy_init(&g, &stats, NULL), ME_OK);
    assert_int_equal(me_sac_tradeoff_init(&t, &stats, &g, 2, &diag),
                     ME_ERR_CONFIG);
    assert_string_equal(diag.text, text);
    me_sac_greedy_fini(&g);
}

static void test_tradeoff__refuses_to_divide_by_zero(void **state)
{
    (void)state;
    me_sac_op ops[] = {{.name = "mm", .runtime_ms = 1, .in_place_of = -1},
                       {.name = "mm", .in_place_of = -1, .bytes = 512}};
    expect_refused(ops, 1,
                   "a.b: its operations take no memory: PyTorch's "
                   "SACEstimator raises ZeroDivisionError");
    expect_refused(ops + 1, 1,
                   "a.b: its operations take no time: PyTorch's "
                   "SACEstimator raises ZeroDivisionError");
    const me_sac_stats stats = {.fqn = "a", .ops = ops, .n_ops = 2};
    me_sac_greedy g = {.n_ops = 0};
    me_sac_tradeoff t = {.n_points = 0};
    me_diag diag = {.line = 0};
    assert_int_equal(me_sac_tradeoff_init(&t, &stats, &g, 3, &diag),
                     ME_ERR_UNSUPPORTED);
    assert_string_equal(
        diag.text, "a trade-off curve of 3 segments: 1 and 2 are modelled");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tradeoff__is_pythons),
        cmocka_unit_test(test_tradeoff__is_the_transformers),
        cmocka_unit_test(test_tradeoff__bends_as_early_as_it_can),
        cmocka_unit_test(test_piecewise__finds_what_is_there),
        cmocka_unit_test(test_tradeoff__of_one_step_has_no_slope),
        cmocka_unit_test(test_tradeoff__refuses_to_divide_by_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
