/* SPDX-License-Identifier: BSD-3-Clause */
#include "sac/ilp.h"

#include "base/alloc.h"
#include "sac/ilp_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const double BYTES_PER_GIB = 1024.0 * 1024 * 1024;

/** As Python's round(). */
static double round_to(double value, int digits)
{
    char text[64];
    (void)snprintf(text, sizeof text, "%.*f", digits, value);
    return strtod(text, NULL);
}

/** The best choice among the kinds that there are; members that are alike are told
 *  apart last, and only if that costs nothing is it the best of all. */
static me_status choose(me_sac_ilp *p, me_diag *diag, me_sac_found *found_out,
                        bool *fits_out)
{
    const me_status status = me_sac_find_counts(p, diag, found_out);
    double ms = 0;
    *fits_out = status == ME_OK && found_out->is_solved && me_sac_choose(p) &&
                me_sac_fill(p, &ms) && ms <= found_out->ms;
    found_out->ms = ms;
    return status;
}

static me_status solve(me_sac_ilp *p, me_diag *diag, me_sac_found *found_out)
{
    if (!p->is_possible) {
        *found_out = (me_sac_found){.is_solved = false};
        return ME_OK;
    }
    bool fits = false;
    me_sac_find_kinds(p, true);
    me_status status = choose(p, diag, found_out, &fits);
    if (status != ME_OK || !found_out->is_solved || fits) {
        return status;
    }
    me_sac_find_kinds(p, false);
    status = choose(p, diag, found_out, &fits);
    if (status != ME_OK || !found_out->is_solved || fits) {
        return status;
    }
    return me_fail(diag, ME_ERR_INTERNAL,
                   "what the solver chose does not keep to the budget");
}

static me_status make_solution(const me_sac_ilp *p, const me_sac_found *found,
                               me_diag *diag, me_sac_solution **solution_out)
{
    me_sac_solution *s = me_alloc(
        1, sizeof *s + p->n_candidates * sizeof *s->decisions, "sac.solution");
    if (s == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory for the decisions");
    }
    s->peak_bytes = -1;
    if (found->is_solved) {
        s->is_optimal = true;
        s->recompute_ms = round_to(found->ms, 2);
        s->peak_bytes = llrint(p->request->budget_gib * BYTES_PER_GIB);
        s->gap = found->gap;
    }
    for (uint32_t c = 0; found->is_solved && c < p->n_candidates; c++) {
        const me_sac_candidate *candidate = &p->candidates[c];
        if (p->chosen[c]) {
            const double given =
                p->bytes[c] + candidate->all_bytes - candidate->act_bytes;
            s->decisions[s->n_decisions++] = (me_sac_decision){
                candidate->module, round_to(given / candidate->all_bytes, 4)};
        }
    }
    *solution_out = s;
    return ME_OK;
}

me_status me_sac_ilp_solve(const me_sac_graph *graph,
                           const me_sac_request *request, me_diag *diag,
                           me_sac_solution **solution_out)
{
    me_sac_ilp p;
    me_sac_found found = {.is_solved = false};
    me_status status = me_sac_ilp_init(&p, graph, request, diag);
    if (status == ME_OK) {
        status = solve(&p, diag, &found);
    }
    if (status == ME_OK) {
        status = make_solution(&p, &found, diag, solution_out);
    }
    me_sac_ilp_fini(&p);
    return status;
}
