/* SPDX-License-Identifier: BSD-3-Clause */
/* Small random models in which all numbers are whole: then a best choice gives up
 * whole bytes, and trying them all finds it. */
#include "base/alloc.h"
#include "sac/ilp.h"
#include "support/random.h"

#include <math.h>
#include <stdio.h>

enum {
    MOST = 6, /* modules with the root */
    MOST_BYTES = 4,
    MODELS = 300,
    M_MS = 100
};

/** Milliseconds for x bytes: p (x - a), then q (x - b), and 0 at least. */
typedef struct shape {
    int bytes; /**< IA */
    int extra; /**< ACM - IA */
    int p, a, q, b;
} shape;

typedef struct model {
    int n;
    me_sac_module modules[MOST];
    char names[MOST][32];
    int parent[MOST];
    shape shapes[MOST];
    int budget;
    me_sac_graph *graph;
} model;

/** The best that there is. */
typedef struct best {
    int ms; /**< -1: there is nothing */
    int n_modules;
} best;

static int most(int a, int b)
{
    return a > b ? a : b;
}

static int cost(const shape *s, int bytes)
{
    return most(0, most(s->p * (bytes - s->a), s->q * (bytes - s->b)));
}

/** Do both lines reach each other, and M, at whole bytes? */
static bool is_whole(const shape *s)
{
    if (s->p != s->q && (s->p * s->a - s->q * s->b) % (s->p - s->q) != 0) {
        return false;
    }
    return (s->p <= 0 || M_MS % s->p == 0) && (s->q <= 0 || M_MS % s->q == 0);
}

static shape make_shape(me_random *random)
{
    static const int prices[] = {-1, 0, 1, 2, 5, 10, 25, 50};
    shape s;
    do {
        s = (shape){.bytes = me_random_in(random, 0, MOST_BYTES),
                    .extra = me_random_in(random, 0, 2),
                    .p = prices[me_random_in(random, 0, 7)],
                    .a = me_random_in(random, -1, 3),
                    .q = prices[me_random_in(random, 0, 7)],
                    .b = me_random_in(random, -1, 4)};
    } while (!is_whole(&s) || s.bytes + s.extra == 0);
    return s;
}

/** Slope and intercept of a line, in shares of memory and time. */
static void write_line(me_sac_module *m, const shape *s, int price, int offset)
{
    const double all = s->bytes + s->extra;
    const uint32_t n = m->n_segments++;
    m->slopes[n] = price * all / m->sac_ms;
    m->intercepts[n] = -price * (offset + s->extra) / m->sac_ms;
}

static void describe(model *t, me_random *random, int i)
{
    me_sac_module *m = &t->modules[i];
    *m = (me_sac_module){
        .fqn = t->names[i],
        .param_bytes = (uint64_t)me_random_in(random, 0, 2),
        .grad_total_bytes = (uint64_t)me_random_in(random, 0, 3),
        .act_grad_bytes = me_random_in(random, -1, 2),
        .act_total_bytes = (uint64_t)me_random_in(random, 1, 12),
        .is_leaf = me_random_in(random, 0, 9) == 0,
        .fw_pre_order = (uint32_t)i};
    if (!m->is_leaf) {
        // Few shapes, so that modules are alike.
        const shape *s = &t->shapes[i];
        m->sac_ms = 8;
        m->act_fw_bytes = (uint64_t)s->bytes;
        m->sac_bytes = (uint64_t)s->bytes + (uint64_t)s->extra;
        write_line(m, s, s->p, s->a);
        write_line(m, s, s->q, s->b);
    }
}

/** Modules whose forward ends after all that lies in them. */
static uint32_t end_forward(model *t, int i, uint32_t ended)
{
    for (int j = i + 1; j < t->n; j++) {
        if (t->parent[j] == i) {
            ended = end_forward(t, j, ended);
        }
    }
    t->modules[i].fw_post_order = ended;
    return ended + 1;
}

static void make(model *t, me_random *random)
{
    shape palette[2] = {make_shape(random), make_shape(random)};
    t->n = me_random_in(random, 1, MOST);
    for (int i = 0; i < t->n; i++) {
        // In forward a module's inner ones follow it at once.
        t->parent[i] = i - 1;
        while (i > 0 && t->parent[i] > 0 && me_random_in(random, 0, 1) == 0) {
            t->parent[i] = t->parent[t->parent[i]];
        }
        const char *outer = i > 0 ? t->names[t->parent[i]] : "";
        assert_in_range(
            snprintf(t->names[i], sizeof t->names[i], "%s.m%d", outer, i), 1,
            (int)sizeof t->names[i] - 1);
        t->shapes[i] = palette[me_random_in(random, 0, 1)];
        describe(t, random, i);
    }
    (void)end_forward(t, 0, 0);
    t->budget = me_random_in(random, 0, 14);
    assert_int_equal(
        me_sac_graph_create(t->modules, (uint32_t)t->n, NULL, &t->graph),
        ME_OK);
}

/** Do all modules keep to the budget, with @p bytes given up? */
static bool keeps(const model *t, const int bytes[MOST])
{
    for (int i = 0; i < t->n; i++) {
        const me_sac_module *m = &t->modules[i];
        int64_t act = (int64_t)m->act_total_bytes + m->act_grad_bytes;
        for (int j = 0; j < t->n; j++) {
            if (t->modules[j].fw_post_order < m->fw_post_order &&
                bytes[j] > 0) {
                act -= bytes[j];
            }
        }
        const uint64_t held = t->modules[0].param_bytes + m->grad_total_bytes;
        if (act < 0 || act + (int64_t)held > t->budget) {
            return false;
        }
    }
    return true;
}

static bool lies_in_a_chosen_one(const model *t, const int bytes[MOST], int i)
{
    while (i > 0) {
        i = t->parent[i];
        if (bytes[i] >= 0) {
            return true;
        }
    }
    return false;
}

/** Try all for the modules from @p i on. @param bytes  -1: not chosen */
static void try_all(const model *t, int bytes[MOST], int i, best so_far,
                    best *best_out)
{
    if (i == t->n) {
        if (keeps(t, bytes) && (best_out->ms < 0 || so_far.ms < best_out->ms ||
                                (so_far.ms == best_out->ms &&
                                 so_far.n_modules < best_out->n_modules))) {
            *best_out = so_far;
        }
        return;
    }
    const shape *s = &t->shapes[i];
    bytes[i] = -1;
    if (t->modules[i].is_leaf || cost(s, -s->extra) <= M_MS) {
        try_all(t, bytes, i + 1, so_far, best_out);
    }
    if (t->modules[i].is_leaf || lies_in_a_chosen_one(t, bytes, i)) {
        return;
    }
    for (bytes[i] = 0; bytes[i] <= s->bytes; bytes[i]++) {
        if (cost(s, bytes[i]) <= M_MS) {
            const best next = {so_far.ms + cost(s, bytes[i]),
                               so_far.n_modules + 1};
            try_all(t, bytes, i + 1, next, best_out);
        }
    }
    bytes[i] = -1;
}

/** Is what was decided what it says it is? */
static const char *check_solution(const model *t, const me_sac_solution *s)
{
    int bytes[MOST];
    for (int i = 0; i < MOST; i++) {
        bytes[i] = -1;
    }
    int ms = 0;
    for (uint32_t i = 0; i < s->n_decisions; i++) {
        const uint32_t m = s->decisions[i].module;
        const shape *of = &t->shapes[m];
        if (t->modules[m].is_leaf || lies_in_a_chosen_one(t, bytes, (int)m)) {
            return "a leaf, or a module in another, is checkpointed";
        }
        bytes[m] =
            (int)lround(s->decisions[i].ratio * (of->bytes + of->extra)) -
            of->extra;
        ms += cost(of, bytes[m]);
    }
    return !keeps(t, bytes)        ? "the peak exceeds the budget"
           : s->recompute_ms != ms ? "the time is another"
                                   : NULL;
}

static const char *compare(const model *t, const me_sac_solution *s,
                           const best *expected)
{
    if (s->is_optimal != (expected->ms >= 0)) {
        return s->is_optimal ? "there is no choice" : "a choice was missed";
    }
    if (!s->is_optimal) {
        return NULL;
    }
    return s->recompute_ms != expected->ms ? "there is a better choice"
           : (int)s->n_decisions != expected->n_modules
               ? "there is a choice with another number of modules"
           : s->peak_bytes != t->budget ? "the peak is not the budget"
                                        : check_solution(t, s);
}

static const char *finds_the_best(me_random *random)
{
    model t;
    make(&t, random);
    int bytes[MOST];
    best expected = {.ms = -1};
    try_all(&t, bytes, 0, (best){0}, &expected);
    const me_sac_request request = {
        .budget_gib = t.budget / (1024.0 * 1024 * 1024), .world_size = 1};
    me_sac_solution *s = NULL;
    me_diag diag = {0};
    if (me_sac_ilp_solve(t.graph, &request, &diag, &s) != ME_OK) {
        me_sac_graph_destroy(t.graph);
        return "it fails";
    }
    const char *wrong = compare(&t, s, &expected);
    me_free(s);
    me_sac_graph_destroy(t.graph);
    return wrong;
}

static void test_sac_ilp_property__finds_the_best(void **state)
{
    (void)state;
    me_property_run(finds_the_best, MODELS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sac_ilp_property__finds_the_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
