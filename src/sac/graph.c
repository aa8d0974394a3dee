/* SPDX-License-Identifier: BSD-3-Clause */
#include "sac/graph.h"

#include "base/alloc.h"

#include <string.h>

bool me_sac_is_submodule(const char *inner, const char *outer)
{
    const size_t length = strlen(outer);
    const char *at = strstr(inner, outer);
    while (at != NULL && at[length] != '.' && *at != '\0') {
        at = strstr(at + 1, outer);
    }
    return at != NULL && at[length] == '.';
}

/** The modules that follow @p i and lie in it end at the first that does not. */
static uint32_t last_inside(const me_sac_graph *graph, uint32_t i)
{
    uint32_t j = i;
    while (j + 1 < graph->n_modules &&
           (strcmp(graph->modules[j + 1].fqn, graph->modules[i].fqn) == 0 ||
            me_sac_is_submodule(graph->modules[j + 1].fqn,
                                graph->modules[i].fqn))) {
        j++;
    }
    return j;
}

static bool take(uint8_t *taken, uint32_t n, uint32_t position, uint8_t bit)
{
    if (position >= n || (taken[position] & bit) != 0) {
        return false;
    }
    taken[position] |= bit;
    return true;
}

static me_status check_orders(const me_sac_graph *graph, me_diag *diag)
{
    const uint32_t n = graph->n_modules;
    uint8_t *taken = me_alloc(n, sizeof *taken, "sac.order");
    if (taken == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory for modules");
    }
    me_status status = ME_OK;
    for (uint32_t i = 0; i < n && status == ME_OK; i++) {
        const me_sac_module *m = &graph->modules[i];
        if (!take(taken, n, m->fw_pre_order, 1) ||
            !take(taken, n, m->fw_post_order, 2)) {
            status = me_fail(diag, ME_ERR_INTERNAL,
                             "module %s: places %u and %u in the forward of %u "
                             "modules are no order of them",
                             m->fqn, m->fw_pre_order, m->fw_post_order, n);
        }
    }
    me_free(taken);
    return status;
}

me_status me_sac_graph_create(const me_sac_module *modules, uint32_t n_modules,
                              me_diag *diag, me_sac_graph **graph_out)
{
    if (n_modules == 0) {
        return me_fail(diag, ME_ERR_CONFIG, "there are no modules");
    }
    me_sac_graph *graph = me_alloc(1, sizeof *graph, "sac.graph");
    if (graph == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory for modules");
    }
    graph->n_modules = n_modules;
    graph->modules = me_alloc(n_modules, sizeof *graph->modules, "sac.modules");
    graph->last = me_alloc(n_modules, sizeof *graph->last, "sac.last");
    me_status status = ME_OK;
    if (graph->modules == NULL || graph->last == NULL) {
        status = me_fail(diag, ME_ERR_NOMEM, "no memory for modules");
        goto out;
    }
    memcpy(graph->modules, modules, n_modules * sizeof *modules);
    for (uint32_t i = 0; i < n_modules; i++) {
        graph->last[i] = last_inside(graph, i);
    }
    status = check_orders(graph, diag);
out:
    if (status == ME_OK) {
        *graph_out = graph;
    } else {
        me_sac_graph_destroy(graph);
    }
    return status;
}

void me_sac_graph_destroy(me_sac_graph *graph)
{
    if (graph != NULL) {
        me_free(graph->modules);
        me_free(graph->last);
        me_free(graph);
    }
}

me_sac_baseline me_sac_graph_baseline(const me_sac_graph *graph)
{
    const me_sac_module *root = &graph->modules[0];
    int64_t peak = 0;
    for (uint32_t i = 0; i < graph->n_modules; i++) {
        const me_sac_module *m = &graph->modules[i];
        const int64_t bytes =
            (int64_t)(root->param_bytes + m->grad_total_bytes +
                      m->act_total_bytes) +
            m->act_grad_bytes;
        peak = bytes > peak ? bytes : peak;
    }
    return (me_sac_baseline){.peak_bytes = peak,
                             .compute_ms = root->fw_ms + root->bw_ms};
}
