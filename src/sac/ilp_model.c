/* SPDX-License-Identifier: BSD-3-Clause */
/* PyTorch's rows, with what can be worked out put in: of each kind how many
 * members are chosen (y), what they give up together (x) and the time that
 * takes (t). A line of the time, base + price x of one member, is base y +
 * price x of several, since equal shares are cheapest; and so written it needs
 * no large M to be 0 with y. */
#include "base/alloc.h"
#include "sac/ilp_impl.h"
#include "sac/milp.h"

#include <math.h>

enum {
    COLUMNS_OF_KIND = 3,
    MOST_NODES = 5000
};

/** PyTorch's gapRel: what is not nearer is no answer. */
static const double MOST_GAP = 0.05;

/** What the solver's tolerances let pass, in units. */
static const double SLACK = 4e-7;

static int count_of(uint32_t kind)
{
    return (int)kind * COLUMNS_OF_KIND;
}

static int bytes_of(uint32_t kind)
{
    return count_of(kind) + 1;
}

static int time_of(uint32_t kind)
{
    return count_of(kind) + 2;
}

static void add_columns(const me_sac_ilp *p, me_milp *m)
{
    for (uint32_t k = 0; k < p->n_kinds; k++) {
        const double members = p->kinds[k].n_members;
        const bool is_forced = p->candidates[p->kinds[k].first].is_forced;
        (void)me_milp_add_column(
            m, (me_milp_column){.low = is_forced ? members : 0,
                                .high = members,
                                .is_integer = true});
        (void)me_milp_add_column(m, (me_milp_column){.high = HUGE_VAL});
        (void)me_milp_add_column(m,
                                 (me_milp_column){.high = HUGE_VAL, .cost = 1});
    }
}

static void add_costs(const me_sac_ilp *p, me_milp *m, uint32_t k)
{
    const me_sac_candidate *c = &p->candidates[p->kinds[k].first];
    me_milp_add_row(m, 'L', 0);
    me_milp_add_term(m, bytes_of(k), 1);
    me_milp_add_term(m, count_of(k), -c->act_bytes / p->unit_bytes);
    for (uint32_t l = 1; l < c->n_lines; l++) {
        me_milp_add_row(m, 'G', 0);
        me_milp_add_term(m, time_of(k), 1);
        me_milp_add_term(m, bytes_of(k),
                         -c->price[l] * p->unit_bytes / p->unit_ms);
        me_milp_add_term(m, count_of(k), -c->base[l] / p->unit_ms);
    }
    me_milp_add_row(m, 'L', 0);
    me_milp_add_term(m, time_of(k), 1);
    me_milp_add_term(m, count_of(k), -ME_SAC_MOST_MS / p->unit_ms);
}

/** Of modules that lie in each other one is chosen: each member of the kind @p k
 *  is itself chosen or in something chosen, or neither. */
static void add_nesting(const me_sac_ilp *p, me_milp *m, uint32_t k)
{
    const uint32_t first = p->kinds[k].first;
    const double members = p->kinds[k].n_members;
    me_milp_add_row(m, 'L', members);
    for (uint32_t c = 0; c <= first; c++) {
        if (p->candidates[c].last >= first) {
            const uint32_t outer = p->candidates[c].kind;
            me_milp_add_term(m, count_of(outer),
                             members / p->kinds[outer].n_members);
        }
    }
}

/** Running sums of what kinds give up, each within a bound.
 *  @param is_need  bounds from below: a kind counts from its first member on; else
 *                  from above: once all of it does */
static void add_bounds(const me_sac_ilp *p, me_milp *m, bool is_need)
{
    const me_sac_bound *bounds = is_need ? p->needs : p->caps;
    const uint32_t n = is_need ? p->n_needs : p->n_caps;
    uint32_t before = 0;
    int sum = -1;
    for (uint32_t i = 0; i < n; i++) {
        const double limit = bounds[i].bytes / p->unit_bytes;
        const int next = me_milp_add_column(
            m, (me_milp_column){.low = is_need ? limit : -HUGE_VAL,
                                .high = is_need ? HUGE_VAL : limit});
        me_milp_add_row(m, 'E', 0);
        me_milp_add_term(m, next, 1);
        if (sum >= 0) {
            me_milp_add_term(m, sum, -1);
        }
        for (uint32_t k = 0; k < p->n_kinds; k++) {
            const uint32_t at = is_need ? p->kinds[k].from : p->kinds[k].to;
            if (at >= before && at < bounds[i].position) {
                me_milp_add_term(m, bytes_of(k), -1);
            }
        }
        before = bounds[i].position;
        sum = next;
    }
}

/** Of choices that take @p most units of time at most, prefer those with few
 *  modules, and of these the early ones. */
static void prefer_few(const me_sac_ilp *p, me_milp *m, double most)
{
    const double n = p->n_candidates;
    me_milp_add_row(m, 'L', most);
    for (uint32_t k = 0; k < p->n_kinds && !m->has_failed; k++) {
        me_milp_add_term(m, time_of(k), 1);
        m->columns[time_of(k)].cost = 0;
        m->columns[count_of(k)].cost = n * n + p->kinds[k].first;
    }
}

static void read_counts(me_sac_ilp *p, const double *values)
{
    for (uint32_t k = 0; k < p->n_kinds; k++) {
        p->counts[k] = (uint32_t)lround(values[count_of(k)]);
    }
}

static me_status find_least(me_sac_ilp *p, me_milp *m, double *values,
                            me_diag *diag, me_sac_found *found_out)
{
    const me_milp_accuracy accuracy = {
        .gap = 1e-10, .share = ME_SAC_TIE / 10, .most_nodes = MOST_NODES};
    me_milp_result result = {0};
    const me_status status = me_milp_solve(m, &accuracy, diag, values, &result);
    if (status != ME_OK || !result.is_solved) {
        return status;
    }
    const double gap = result.is_stopped && result.cost > result.bound + SLACK
                           ? (result.cost - result.bound) / result.cost
                           : 0;
    if (gap <= MOST_GAP) {
        read_counts(p, values);
        *found_out = (me_sac_found){true, result.cost, gap};
    }
    return ME_OK;
}

static me_status find_few(me_sac_ilp *p, me_milp *m, double *values,
                          me_diag *diag, const me_sac_found *found)
{
    const me_milp_accuracy accuracy = {.gap = 0.9, .most_nodes = MOST_NODES};
    prefer_few(p, m, found->ms * (1 + ME_SAC_TIE));
    me_milp_result result = {0};
    const me_status status = me_milp_solve(m, &accuracy, diag, values, &result);
    if (status == ME_OK && result.is_solved) {
        read_counts(p, values);
    }
    return status;
}

me_status me_sac_find_counts(me_sac_ilp *p, me_diag *diag,
                             me_sac_found *found_out)
{
    const bool is_trivial = p->n_kinds == 0; // no column is left to the solver
    *found_out = (me_sac_found){.is_solved = is_trivial && p->n_needs == 0 &&
                                             p->n_caps == 0};
    if (is_trivial) {
        return ME_OK;
    }
    me_milp m = {0};
    add_columns(p, &m);
    for (uint32_t k = 0; k < p->n_kinds; k++) {
        add_costs(p, &m, k);
        add_nesting(p, &m, k);
    }
    add_bounds(p, &m, true);
    add_bounds(p, &m, false);
    double *values = me_alloc(m.n_columns + 1, sizeof *values, "sac.values");
    if (values == NULL) {
        me_milp_fini(&m);
        return me_fail(diag, ME_ERR_NOMEM, "no memory for the solver");
    }
    me_status status = find_least(p, &m, values, diag, found_out);
    if (status == ME_OK && found_out->is_solved) {
        status = find_few(p, &m, values, diag, found_out);
    }
    found_out->ms = (found_out->ms * (1 + 4 * ME_SAC_TIE) + SLACK) * p->unit_ms;
    me_free(values);
    me_milp_fini(&m);
    return status;
}
