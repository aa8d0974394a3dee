/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log.h"
#include "sac/ilp_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t MOST_BYTES = UINT64_C(1) << 32;
static const double BYTES_PER_GIB = 1024.0 * 1024 * 1024;

/** Bytes below which a need is what rounding left of none. */
static const double HALF_A_BYTE = 0.5;

static bool is_named(const char *const *names, uint32_t n, const char *fqn)
{
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(names[i], fqn) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_allowed(const me_sac_request *r, const char *fqn)
{
    for (uint32_t i = 0; i < r->n_fsdp_units; i++) {
        if (me_sac_is_submodule(r->fsdp_units[i], fqn)) {
            return false;
        }
    }
    return r->n_ac_units == 0 || is_named(r->ac_units, r->n_ac_units, fqn);
}

/** A module that is left alone has r = 0, and PyTorch's rows still ask that the
 *  time at r = 0 is M at most. */
static bool can_stay(const me_sac_module *m)
{
    double most = 0;
    for (uint32_t s = 0; s < m->n_segments; s++) {
        most = fmax(most, m->intercepts[s]);
    }
    return m->sac_ms * most <= ME_SAC_MOST_MS;
}

static uint64_t all_bytes_of(const me_sac_module *m)
{
    if (m->sac_bytes < m->act_fw_bytes) {
        me_log(ME_LOG_WARN,
               "module %s: its forward leaves %" PRIu64
               " bytes behind, more than the %" PRIu64
               " of its operations; taken for as many",
               m->fqn, m->act_fw_bytes, m->sac_bytes);
        return m->act_fw_bytes;
    }
    return m->sac_bytes;
}

static me_sac_candidate describe(const me_sac_graph *graph, uint32_t module,
                                 uint64_t all_bytes)
{
    const me_sac_module *m = &graph->modules[module];
    me_sac_candidate c = {
        .module = module,
        .position = m->fw_post_order,
        .act_bytes = (double)m->act_fw_bytes,
        .all_bytes = (double)all_bytes,
        .is_forced = !can_stay(m),
        .n_lines = 1 + m->n_segments,
    };
    const double first = (c.all_bytes - c.act_bytes) / c.all_bytes;
    for (uint32_t s = 0; s < m->n_segments; s++) {
        c.base[s + 1] = m->sac_ms * (m->slopes[s] * first + m->intercepts[s]);
        c.price[s + 1] = m->sac_ms * m->slopes[s] / c.all_bytes;
    }
    return c;
}

static void find_candidates(me_sac_ilp *p)
{
    for (uint32_t i = 0; i < p->graph->n_modules; i++) {
        const me_sac_module *m = &p->graph->modules[i];
        const uint64_t all_bytes = m->is_leaf ? 0 : all_bytes_of(m);
        if (all_bytes == 0) {
            continue;
        }
        if (!is_allowed(p->request, m->fqn)) {
            p->is_possible = p->is_possible && can_stay(m);
            continue;
        }
        p->candidates[p->n_candidates++] = describe(p->graph, i, all_bytes);
        p->unit_bytes = fmax(p->unit_bytes, (double)m->act_fw_bytes);
        p->unit_ms = fmax(p->unit_ms, m->sac_ms);
    }
    for (uint32_t c = 0; c < p->n_candidates; c++) {
        const uint32_t last = p->graph->last[p->candidates[c].module];
        uint32_t d = c;
        while (d + 1 < p->n_candidates && p->candidates[d + 1].module <= last) {
            d++;
        }
        p->candidates[c].last = d;
    }
    p->unit_bytes = p->unit_bytes > 0 ? p->unit_bytes : 1;
    p->unit_ms = p->unit_ms > 0 ? p->unit_ms : 1;
}

static int by_position(const void *a, const void *b)
{
    const uint32_t left = ((const me_sac_bound *)a)->position;
    const uint32_t right = ((const me_sac_bound *)b)->position;
    return left < right ? -1 : left > right;
}

/** Of what must be given up, keep what does not follow from earlier needs. */
static void thin_needs(me_sac_ilp *p)
{
    uint32_t n = 0;
    double most = HALF_A_BYTE;
    for (uint32_t i = 0; i < p->n_needs; i++) {
        if (p->needs[i].bytes > most) {
            most = p->needs[i].bytes;
            p->needs[n++] = p->needs[i];
        }
    }
    p->n_needs = n;
}

/** Of what may be given up, keep what does not follow from later limits, nor from
 *  what candidates have. */
static void thin_caps(me_sac_ilp *p)
{
    double least = 0;
    for (uint32_t c = 0; c < p->n_candidates; c++) {
        least += p->candidates[c].act_bytes;
    }
    uint32_t first = p->n_caps;
    for (uint32_t i = p->n_caps; i > 0; i--) {
        if (p->caps[i - 1].bytes < least) {
            least = p->caps[i - 1].bytes;
            p->caps[--first] = p->caps[i - 1];
        }
    }
    p->n_caps -= first;
    p->caps += first;
}

/** Before each module's backward: activations must not become less than none, nor
 *  all memory more than the budget. */
static void find_bounds(me_sac_ilp *p)
{
    const double world = p->request->world_size;
    const double budget = p->request->budget_gib * BYTES_PER_GIB;
    const double params = (double)p->graph->modules[0].param_bytes;
    for (uint32_t i = 0; i < p->graph->n_modules; i++) {
        const me_sac_module *m = &p->graph->modules[i];
        const double act =
            (double)m->act_total_bytes + (double)m->act_grad_bytes;
        const double held = (params + (double)m->grad_total_bytes) / world;
        p->caps[i] = (me_sac_bound){m->fw_post_order, act};
        p->needs[i] = (me_sac_bound){m->fw_post_order, act + held - budget};
    }
    p->n_caps = p->n_needs = p->graph->n_modules;
    qsort(p->needs, p->n_needs, sizeof *p->needs, by_position);
    qsort(p->caps, p->n_caps, sizeof *p->caps, by_position);
    thin_needs(p);
    thin_caps(p);
}

me_status me_sac_ilp_init(me_sac_ilp *p, const me_sac_graph *graph,
                          const me_sac_request *request, me_diag *diag)
{
    *p = (me_sac_ilp){.graph = graph, .request = request};
    p->is_possible = request->budget_gib >= 0;
    p->arena = me_arena_create(MOST_BYTES, "sac.ilp");
    if (p->arena == NULL) {
        return me_fail(diag, ME_ERR_NOMEM,
                       "no memory for the integer programme");
    }
    const size_t n = graph->n_modules;
    p->candidates = me_arena_alloc(p->arena, n, sizeof *p->candidates);
    p->needs = me_arena_alloc(p->arena, n, sizeof *p->needs);
    p->caps = me_arena_alloc(p->arena, n, sizeof *p->caps);
    p->kinds = me_arena_alloc(p->arena, n, sizeof *p->kinds);
    p->counts = me_arena_alloc(p->arena, n, sizeof *p->counts);
    p->chosen = me_arena_alloc(p->arena, n, sizeof *p->chosen);
    p->bytes = me_arena_alloc(p->arena, n, sizeof *p->bytes);
    if (p->candidates == NULL || p->needs == NULL || p->caps == NULL ||
        p->kinds == NULL || p->counts == NULL || p->chosen == NULL ||
        p->bytes == NULL) {
        return me_fail(diag, ME_ERR_NOMEM,
                       "no memory for the integer programme");
    }
    find_candidates(p);
    find_bounds(p);
    return ME_OK;
}

void me_sac_ilp_fini(me_sac_ilp *p)
{
    me_arena_destroy(p->arena);
}
