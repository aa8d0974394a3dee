/* SPDX-License-Identifier: BSD-3-Clause */
#include "track/sac_modules.h"

#include "base/alloc.h"
#include "sac/greedy.h"
#include "sac/tradeoff.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t UNNUMBERED = UINT32_MAX;

/** Bytes of a category in the last snapshot of a state. */
static int64_t bytes_in(const me_mem_module *m, me_mem_state state,
                        me_mem_category category)
{
    const me_mem_calls *calls = &m->states[state];
    const me_mem_snapshot *last = &calls->snapshots[calls->count - 1];
    return (int64_t)last->device[ME_MEM_CUDA].by_category[category];
}

static int64_t difference(const me_mem_module *m, me_mem_category category,
                          me_mem_state to, me_mem_state from)
{
    return bytes_in(m, to, category) - bytes_in(m, from, category);
}

/** What MemTracker saw of a module. */
static void add_memory(const me_mem_module *m, me_sac_module *module)
{
    const int64_t kept =
        difference(m, ME_MEM_ACTIVATION, ME_MEM_POST_FW, ME_MEM_PRE_FW) -
        (int64_t)m->output_bytes;
    module->param_bytes = m->parameter_bytes;
    module->grad_bytes = m->parameter_bytes;
    module->grad_total_bytes =
        (uint64_t)bytes_in(m, ME_MEM_PRE_BW, ME_MEM_GRADIENT);
    module->act_fw_bytes = kept > 0 ? (uint64_t)kept : 0;
    module->act_bw_bytes =
        (uint64_t)bytes_in(m, ME_MEM_PEAK_BW, ME_MEM_ACTIVATION);
    module->act_grad_bytes =
        difference(m, ME_MEM_TEMP, ME_MEM_PEAK_BW, ME_MEM_PRE_BW);
    module->act_total_bytes =
        (uint64_t)bytes_in(m, ME_MEM_POST_FW, ME_MEM_ACTIVATION);
    module->input_bytes = m->input_bytes;
    module->output_bytes = m->output_bytes;
}

static void add_times(const me_runtime_estimator *runtime,
                      me_sac_module *module)
{
    const me_module_runtime *r =
        me_runtime_estimator_module(runtime, module->fqn);
    module->fw_ms = r == NULL ? 0 : r->forward_ms;
    module->bw_ms = r == NULL ? 0 : r->backward_ms;
}

/** Number modules in the order in which a hook first fired for each. */
static void number(const me_module_order *order, me_sac_module *items,
                   uint32_t count, size_t position)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < order->count; i++) {
        uint32_t at = 0;
        while (at < count && strcmp(items[at].fqn, order->fqns[i]) != 0) {
            at++;
        }
        uint32_t *place =
            at == count ? NULL
                        : (uint32_t *)(void *)((char *)&items[at] + position);
        if (place != NULL && *place == UNNUMBERED) {
            *place = next++;
        }
    }
}

/** The lines of a trade-off. Of a curve that is one step PyTorch's tool has no
 *  numbers, and its solver stops at them: whatever is given up costs as much as
 *  all. */
static void add_lines(const me_sac_tradeoff *tradeoff, me_sac_module *module)
{
    module->n_segments = tradeoff->fit.n_segments;
    memcpy(module->slopes, tradeoff->fit.slopes, sizeof module->slopes);
    memcpy(module->intercepts, tradeoff->fit.intercepts,
           sizeof module->intercepts);
    if (isnan(module->slopes[0])) {
        module->slopes[0] = 0;
        module->intercepts[0] =
            tradeoff->points[tradeoff->n_points - 1].recomputed;
    }
}

/** What SACEstimator saw of it: where there is nothing to give up, or nothing to
 *  make again, it is as a leaf. */
static me_status add_tradeoff(const me_sac_estimator *sac, me_diag *diag,
                              me_sac_module *module)
{
    const me_sac_stats *stats = me_sac_estimator_module(sac, module->fqn);
    module->is_leaf = stats == NULL || me_sac_stats_bytes(stats) == 0 ||
                      !(me_sac_stats_runtime_ms(stats) > 0);
    if (module->is_leaf) {
        return ME_OK;
    }
    me_sac_greedy greedy = {.n_ops = 0};
    me_sac_tradeoff tradeoff = {.n_points = 0};
    me_status status = me_sac_greedy_init(&greedy, stats, diag);
    if (status == ME_OK) {
        status = me_sac_tradeoff_init(&tradeoff, stats, &greedy,
                                      ME_SAC_SEGMENTS, diag);
    }
    if (status == ME_OK) {
        module->sac_bytes = tradeoff.sac_memory;
        module->sac_ms = tradeoff.sac_runtime;
        add_lines(&tradeoff, module);
    }
    me_sac_tradeoff_fini(&tradeoff);
    me_sac_greedy_fini(&greedy);
    return status;
}

/** A module with all states that are needed of it. */
static me_status check_states(const me_mem_module *m, me_diag *diag)
{
    static const me_mem_state needed[] = {ME_MEM_PRE_FW, ME_MEM_POST_FW,
                                          ME_MEM_PRE_BW, ME_MEM_PEAK_BW};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        if (m->states[needed[i]].count == 0) {
            return me_fail(diag, ME_ERR_CONFIG,
                           "%s runs forward and not backward: what checkpoints "
                           "give up, and cost, follows from both",
                           m->fqn);
        }
    }
    return ME_OK;
}

static int by_id(const void *a, const void *b)
{
    const me_mem_module *const *x = a;
    const me_mem_module *const *y = b;
    return ((*x)->module > (*y)->module) - ((*x)->module < (*y)->module);
}

/** What all three know of @p modules, which stand in their tree's order. */
static me_status collect(const me_mem_module **modules, uint32_t count,
                         const me_runtime_estimator *runtime,
                         const me_sac_estimator *sac, me_diag *diag,
                         me_sac_module *items)
{
    for (uint32_t i = 0; i < count; i++) {
        me_status status = check_states(modules[i], diag);
        if (status == ME_OK) {
            items[i] = (me_sac_module){.fqn = modules[i]->fqn,
                                       .fw_pre_order = UNNUMBERED,
                                       .fw_post_order = UNNUMBERED};
            add_memory(modules[i], &items[i]);
            add_times(runtime, &items[i]);
            status = add_tradeoff(sac, diag, &items[i]);
        }
        if (status != ME_OK) {
            return status;
        }
    }
    number(me_runtime_estimator_order(runtime, ME_MOD_PRE_FORWARD), items,
           count, offsetof(me_sac_module, fw_pre_order));
    number(me_runtime_estimator_order(runtime, ME_MOD_POST_FORWARD), items,
           count, offsetof(me_sac_module, fw_post_order));
    return ME_OK;
}

me_status me_sac_modules_collect(const me_mem_tracker *mem,
                                 const me_runtime_estimator *runtime,
                                 const me_sac_estimator *sac, me_diag *diag,
                                 me_sac_graph **graph_out)
{
    uint32_t count = 0;
    const me_mem_module *seen = me_mem_tracker_modules(mem, &count);
    const me_mem_module **sorted =
        me_alloc((size_t)count + 1, sizeof *sorted, "sac_modules");
    me_sac_module *items =
        me_alloc((size_t)count + 1, sizeof *items, "sac_modules");
    me_status status = ME_ERR_NOMEM;
    if (sorted != NULL && items != NULL) {
        for (uint32_t i = 0; i < count; i++) {
            sorted[i] = &seen[i];
        }
        qsort(sorted, count, sizeof *sorted, by_id);
        status = collect(sorted, count, runtime, sac, diag, items);
    }
    if (status == ME_OK) {
        status = me_sac_graph_create(items, count, diag, graph_out);
    }
    me_free(items);
    me_free(sorted);
    return status == ME_ERR_NOMEM
               ? me_fail(diag, status, "no host memory for modules")
               : status;
}
