/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/json.h"
#include "report/sac.h"

#include <inttypes.h>

static const double BYTES_OF_GIB = 1073741824.0;

static double gib(int64_t bytes)
{
    return (double)bytes / BYTES_OF_GIB;
}

void me_ilp_append(me_str *text, const me_sac_graph *graph,
                   const me_sac_request *request,
                   const me_sac_solution *solution)
{
    const me_sac_baseline baseline = me_sac_graph_baseline(graph);
    me_str_printf(text,
                  "Without checkpoints: peak %.3f GiB, forward and backward "
                  "%.2f ms\n",
                  gib(baseline.peak_bytes), baseline.compute_ms);
    me_str_printf(text,
                  "Budget: %g GiB, parameters and gradients over %" PRIu32
                  " rank%s\n",
                  request->budget_gib, request->world_size,
                  request->world_size == 1 ? "" : "s");
    if (!solution->is_optimal) {
        me_str_append(text, "No selective checkpoints keep to the budget\n");
        return;
    }
    if (solution->n_decisions == 0) {
        me_str_append(text, "No checkpoints are needed\n");
    }
    for (uint32_t i = 0; i < solution->n_decisions; i++) {
        const me_sac_decision *d = &solution->decisions[i];
        const me_sac_module *m = &graph->modules[d->module];
        me_str_printf(text, "%s: discard %.4f of %.3f GiB\n", m->fqn, d->ratio,
                      gib((int64_t)m->sac_bytes));
    }
    me_str_printf(text, "Recomputation: %.2f ms\nPeak: at most %.3f GiB\n",
                  solution->recompute_ms, gib(solution->peak_bytes));
    if (solution->gap > 0) {
        me_str_printf(text,
                      "The search was cut off: a better choice may take up to "
                      "%.1f %% less\n",
                      100 * solution->gap);
    }
}

static json_t *make_decisions(const me_sac_graph *graph,
                              const me_sac_solution *solution)
{
    json_t *object = json_object();
    for (uint32_t i = 0; object != NULL && i < solution->n_decisions; i++) {
        const me_sac_decision *d = &solution->decisions[i];
        if (json_object_set_new(object, graph->modules[d->module].fqn,
                                json_real(d->ratio)) != 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

me_status me_ilp_json_append(me_str *text, const me_sac_graph *graph,
                             const me_sac_request *request,
                             const me_sac_solution *solution)
{
    const me_sac_baseline baseline = me_sac_graph_baseline(graph);
    json_t *root = json_pack(
        "{s:{s:I, s:f}, s:f, s:I, s:b, s:o, s:f, s:I, s:f}", "baseline",
        "peak_mem", (json_int_t)baseline.peak_bytes, "compute_time_ms",
        baseline.compute_ms, "budget_gib", request->budget_gib, "world_size",
        (json_int_t)request->world_size, "is_feasible", solution->is_optimal,
        "ac_decisions", make_decisions(graph, solution),
        "recomputation_time_ms", solution->recompute_ms, "peak_mem",
        (json_int_t)solution->peak_bytes, "gap", solution->gap);
    return me_json_append(root, JSON_INDENT(2) | JSON_REAL_PRECISION(12), text);
}
