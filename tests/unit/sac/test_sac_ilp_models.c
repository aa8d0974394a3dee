/* SPDX-License-Identifier: BSD-3-Clause */
/* Models that were not recorded: many layers, and modules that are each other's
 * equals. */
#include "base/alloc.h"
#include "mod_stats.h"
#include "sac/ilp.h"

#include <math.h>

enum {
    HEAD = 4, /* modules before the first layer */
    RECORDED = 4,
    LAYERS = 100,
    OF_LAYER = 14,
    SMALL = 4
};

static const uint64_t LAYER_PARAM_BYTES = 28339200;
static const uint64_t LAYER_ACT_BYTES = 415761408;

static mod_stats recorded;
static mod_stats large;

static void append(const me_sac_module *m, const char *name)
{
    char *own = large.names[large.n];
    (void)snprintf(own, sizeof large.names[0], "%s", name);
    large.modules[large.n] = *m;
    large.modules[large.n++].fqn = own;
}

/** What layers there are more of: before the module's forward and after it.
 *  @param more  layers, of all modules' */
static void move(me_sac_module *m, uint64_t before, uint64_t after)
{
    m->act_total_bytes += before * LAYER_ACT_BYTES;
    m->grad_total_bytes += after * LAYER_PARAM_BYTES;
    m->fw_pre_order += (uint32_t)before * OF_LAYER;
    m->fw_post_order += (uint32_t)before * OF_LAYER;
}

/** The recorded model with a hundred times its first layer. */
static void make_large(void)
{
    const uint64_t more = LAYERS - RECORDED;
    mod_stats_read(&recorded, TABLES "/sac_ilp_h100new.tsv");
    large.n = 0;
    for (uint32_t i = 0; i < HEAD; i++) {
        me_sac_module m = recorded.modules[i];
        move(&m, 0, i == 0 ? 0 : more);
        append(&m, recorded.names[i]);
    }
    me_sac_module *root = &large.modules[0];
    root->param_bytes += more * LAYER_PARAM_BYTES;
    root->act_total_bytes += more * LAYER_ACT_BYTES;
    root->act_fw_bytes += more * LAYER_ACT_BYTES;
    root->fw_post_order += (uint32_t)more * OF_LAYER;
    root->sac_bytes *= LAYERS / RECORDED;
    root->sac_ms *= (double)LAYERS / RECORDED;
    for (uint32_t l = 0; l < LAYERS; l++) {
        for (uint32_t i = HEAD; i < HEAD + OF_LAYER; i++) {
            char name[64];
            (void)snprintf(name, sizeof name, "Transformer.layers.%u%s", l,
                           recorded.names[i] + strlen("Transformer.layers.0"));
            me_sac_module m = recorded.modules[i];
            move(&m, l, more - l);
            append(&m, name);
        }
    }
    for (uint32_t i = HEAD + RECORDED * OF_LAYER; i < recorded.n; i++) {
        me_sac_module m = recorded.modules[i];
        move(&m, more, 0);
        append(&m, recorded.names[i]);
    }
}

/* Layers that are alike are counted. With all of them at the kink of their
 * curve the first ones give up all, at one price a byte: by hand. */
static void test_sac_ilp_models__a_hundred_layers(void **state)
{
    (void)state;
    make_large();
    assert_int_equal(large.n, 6 + LAYERS * OF_LAYER);
    const double budget = 16;
    const me_sac_module *root = &large.modules[0];
    const me_sac_module *m = &large.modules[HEAD];
    const double kink =
        (m->intercepts[0] - m->intercepts[1]) / (m->slopes[1] - m->slopes[0]);
    const double free_ratio =
        1 - (double)m->act_fw_bytes / (double)m->sac_bytes;
    const double need =
        (double)root->act_total_bytes + (double)root->act_grad_bytes +
        (double)root->param_bytes / 8 - budget * 1024 * 1024 * 1024;
    const double sum = need / (double)m->sac_bytes + LAYERS * free_ratio;
    const double ms =
        m->sac_ms * (m->slopes[1] * sum + LAYERS * m->intercepts[1]);
    assert_true(sum > LAYERS * kink);

    me_sac_graph *graph = mod_stats_graph(&large);
    me_sac_solution *s = NULL;
    const me_sac_request request = {.budget_gib = budget, .world_size = 8};
    assert_int_equal(me_sac_ilp_solve(graph, &request, NULL, &s), ME_OK);
    assert_int_equal(s->n_decisions, LAYERS);
    double got = 0;
    for (uint32_t i = 0; i < LAYERS; i++) {
        assert_int_equal(s->decisions[i].module, HEAD + i * OF_LAYER);
        assert_true(i == 0 ||
                    s->decisions[i].ratio <= s->decisions[i - 1].ratio);
        got += s->decisions[i].ratio;
    }
    assert_true(fabs(got - sum) <= LAYERS * 0.5e-4);
    assert_true(fabs(s->recompute_ms - ms) <= 0.005 + 1e-5 * ms);
    assert_true(s->gap == 0);
    me_free(s);
    me_sac_graph_destroy(graph);
}

/** M with three modules of 100 bytes and 10 ms each, a tenth of a millisecond a
 * byte: after the other each of them leaves 100 bytes more. */
static me_sac_graph *make_small(const char *const names[SMALL],
                                const uint32_t fw_post_order[SMALL])
{
    me_sac_module modules[SMALL];
    for (uint32_t i = 0; i < SMALL; i++) {
        const uint64_t ended = fw_post_order[i] + 1;
        modules[i] = (me_sac_module){.fqn = names[i],
                                     .act_total_bytes = 100 * ended,
                                     .act_fw_bytes = 100,
                                     .sac_bytes = 100,
                                     .sac_ms = 10,
                                     .n_segments = 1,
                                     .slopes = {1},
                                     .fw_pre_order = i,
                                     .fw_post_order = fw_post_order[i]};
    }
    modules[0].is_leaf = true;
    modules[0].act_total_bytes = 300;
    me_sac_graph *graph = NULL;
    assert_int_equal(me_sac_graph_create(modules, SMALL, NULL, &graph), ME_OK);
    return graph;
}

static const char *const BESIDE[SMALL] = {"M", "M.a", "M.b", "M.c"};
static const uint32_t IN_ORDER[SMALL] = {3, 0, 1, 2};

/** Solve, with @p graph given back, for a budget in bytes. */
static me_sac_solution *solve_small(me_sac_graph *graph, double budget_bytes)
{
    const me_sac_request request = {
        .budget_gib = budget_bytes / (1024.0 * 1024 * 1024), .world_size = 1};
    me_sac_solution *s = NULL;
    assert_int_equal(me_sac_ilp_solve(graph, &request, NULL, &s), ME_OK);
    me_sac_graph_destroy(graph);
    return s;
}

static void test_sac_ilp_models__an_outer_module_before_its_equal(void **state)
{
    (void)state;
    const char *const names[SMALL] = {"M", "M.a", "M.a.a", "M.a.a.a"};
    const uint32_t inner_first[SMALL] = {3, 2, 1, 0};
    me_sac_graph *graph = make_small(names, inner_first);
    graph->modules[1].act_total_bytes = 200;
    me_sac_solution *s = solve_small(graph, 250);
    assert_int_equal(s->n_decisions, 1);
    assert_int_equal(s->decisions[0].module, 1);
    assert_true(s->decisions[0].ratio == 0.5);
    assert_true(s->recompute_ms == 5);
    assert_int_equal(s->peak_bytes, 250);
    me_free(s);
    // They lie in each other: one of them is all there is.
    s = solve_small(make_small(names, inner_first), 199);
    assert_false(s->is_optimal);
    assert_int_equal(s->peak_bytes, -1);
    assert_int_equal(s->n_decisions, 0);
    assert_true(s->recompute_ms == 0);
    me_free(s);
}

static void test_sac_ilp_models__few_modules_of_equals(void **state)
{
    (void)state;
    me_sac_solution *s = solve_small(make_small(BESIDE, IN_ORDER), 150);
    assert_int_equal(s->n_decisions, 2);
    assert_int_equal(s->decisions[0].module, 1);
    assert_true(s->decisions[0].ratio == 1);
    assert_int_equal(s->decisions[1].module, 2);
    assert_true(s->decisions[1].ratio == 0.5);
    assert_true(s->recompute_ms == 15);
    me_free(s);
}

/* Equals do not serve alike: only c has ended before a, which has to keep to the
 * budget too. */
static void test_sac_ilp_models__an_equal_that_ends_earlier(void **state)
{
    (void)state;
    const uint32_t c_first[SMALL] = {3, 1, 2, 0};
    me_sac_graph *graph = make_small(BESIDE, c_first);
    graph->modules[1].act_total_bytes = 300;
    me_sac_solution *s = solve_small(graph, 250);
    assert_int_equal(s->n_decisions, 1);
    assert_int_equal(s->decisions[0].module, 3);
    assert_true(s->recompute_ms == 5);
    me_free(s);
}

/* Nothing is there to be given up, or nothing may be, or it costs nothing. */
static void test_sac_ilp_models__without_operations(void **state)
{
    (void)state;
    me_sac_graph *graph = make_small(BESIDE, IN_ORDER);
    for (uint32_t i = 1; i < SMALL; i++) {
        graph->modules[i].act_fw_bytes = 0;
        graph->modules[i].sac_bytes = 0;
    }
    me_sac_solution *s = solve_small(graph, 300);
    assert_true(s->is_optimal);
    assert_int_equal(s->n_decisions, 0);
    me_free(s);
    graph = make_small(BESIDE, IN_ORDER);
    for (uint32_t i = 1; i < SMALL; i++) {
        graph->modules[i].is_leaf = true;
    }
    s = solve_small(graph, 299);
    assert_false(s->is_optimal);
    me_free(s);
    graph = make_small(BESIDE, IN_ORDER);
    for (uint32_t i = 1; i < SMALL; i++) {
        graph->modules[i].sac_ms = 0;
    }
    s = solve_small(graph, 100);
    assert_int_equal(s->n_decisions, 2);
    assert_true(s->recompute_ms == 0);
    me_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sac_ilp_models__a_hundred_layers),
        cmocka_unit_test(test_sac_ilp_models__an_outer_module_before_its_equal),
        cmocka_unit_test(test_sac_ilp_models__few_modules_of_equals),
        cmocka_unit_test(test_sac_ilp_models__an_equal_that_ends_earlier),
        cmocka_unit_test(test_sac_ilp_models__without_operations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
