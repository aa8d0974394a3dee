/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/sac.h"

#include "base/alloc.h"
#include "base/parse.h"
#include "report/json.h"
#include "sac/display.h"
#include "sac/policy.h"
#include "sac/tradeoff.h"

#include <inttypes.h>
#include <math.h>

/** What follows from the statistics of a module, where anything does: its order,
 *  its trade-off, its policy. */
typedef struct findings {
    me_sac_greedy greedy;
    me_sac_tradeoff tradeoff;
    bool *saves;      /**< by operation; NULL: no policy is asked for */
    bool is_feasible; /**< there is a policy */
} findings;

static void forget(findings *f)
{
    me_sac_greedy_fini(&f->greedy);
    me_sac_tradeoff_fini(&f->tradeoff);
    me_free(f->saves);
    *f = (findings){.saves = NULL};
}

/** Find out. @param f  for forget(), on failure too */
static me_status find(const me_sac_stats *stats, const me_sac_format *format,
                      me_diag *diag, findings *f)
{
    *f = (findings){.saves = NULL};
    me_status status = me_sac_greedy_init(&f->greedy, stats, diag);
    if (status == ME_OK) {
        status = me_sac_tradeoff_init(&f->tradeoff, stats, &f->greedy,
                                      ME_PIECES, diag);
    }
    if (status != ME_OK || !format->has_policy) {
        return status;
    }
    f->saves = me_alloc((size_t)stats->n_ops + 1, sizeof *f->saves, "sac");
    return f->saves == NULL ? ME_ERR_NOMEM
                            : me_sac_policy(stats, format->budget, f->saves,
                                            &f->is_feasible, diag);
}

/** Is a module shown? Only where there is something to give up, and to make
 *  again: of others PyTorch's tool says nothing, it divides by zero. */
static bool is_shown(const me_sac_stats *stats, const me_sac_format *format)
{
    return me_path_is_within(stats->fqn, format->depth) &&
           me_sac_stats_bytes(stats) > 0 && me_sac_stats_runtime_ms(stats) > 0;
}

static void append_policy(me_str *text, const me_sac_stats *stats,
                          const findings *f, double budget)
{
    uint64_t bytes = 0;
    double again_ms = 0;
    me_str_printf(text, "Policy within %g of the memory: ", budget);
    if (!f->is_feasible) {
        me_str_append(text, "none\n");
        return;
    }
    me_str_append(text, "saves");
    for (uint32_t i = 0; i < stats->n_ops; i++) {
        const me_sac_op *op = &stats->ops[i];
        if (f->saves[i]) {
            me_str_printf(text, " %" PRIu32 ":%s", i, op->name);
            bytes += op->bytes;
        } else {
            again_ms += op->runtime_ms;
        }
    }
    me_str_printf(text,
                  "\n%" PRIu64 " B saved, %.3f ms to make the rest again\n",
                  bytes, again_ms);
}

me_status me_sac_append(me_str *text, const me_sac_estimator *s,
                        const me_sac_format *format, me_diag *diag)
{
    uint32_t count = 0;
    const me_sac_stats *modules = me_sac_estimator_modules(s, &count);
    me_status status = ME_OK;
    for (uint32_t i = 0; status == ME_OK && i < count; i++) {
        if (!is_shown(&modules[i], format)) {
            continue;
        }
        findings f;
        status = find(&modules[i], format, diag, &f);
        if (status == ME_OK) {
            status = me_sac_display_append(text, &modules[i], &f.greedy,
                                           format->tabulates, diag);
        }
        if (status == ME_OK && format->has_policy) {
            append_policy(text, &modules[i], &f, format->budget);
        }
        forget(&f);
    }
    return status == ME_OK ? me_str_status(text) : status;
}

/** What me_json_array() makes elements of. */
typedef struct items {
    const me_sac_stats *stats;
    const findings *found;
} items;

static json_t *make_op(const void *self, uint32_t i)
{
    const items *all = self;
    const me_sac_op *op = &all->stats->ops[i];
    json_t *object =
        json_pack("{s:s, s:f, s:I, s:b, s:b, s:b}", "op", op->name,
                  "runtime_ms", op->runtime_ms, "memory", (json_int_t)op->bytes,
                  "is_view_like", op->is_view_like, "is_rand_op", op->is_random,
                  "is_saved_autograd", op->is_saved);
    if (op->in_place_of != ME_SAC_NOT_IN_PLACE) {
        object =
            me_json_put(object, "in_place_of", json_integer(op->in_place_of));
    }
    if (all->found->saves != NULL && all->found->is_feasible) {
        object =
            me_json_put(object, "saves", json_boolean(all->found->saves[i]));
    }
    return object;
}

static json_t *make_point(const void *self, uint32_t i)
{
    const items *all = self;
    const me_sac_point *point = &all->found->tradeoff.points[i];
    return json_pack("[f, f]", point->discarded, point->recomputed);
}

static json_t *make_segment(const void *self, uint32_t i)
{
    const me_piecewise *fit = &((const items *)self)->found->tradeoff.fit;
    return json_pack("{s:f, s:f, s:f, s:f}", "slope", fit->slopes[i],
                     "intercept", fit->intercepts[i], "from", fit->breaks[i],
                     "to", fit->breaks[i + 1]);
}

static json_t *make_module(const me_sac_stats *stats, const findings *found)
{
    const items all = {.stats = stats, .found = found};
    const me_piecewise *fit = &found->tradeoff.fit;
    const uint32_t n_segments = isfinite(fit->slopes[0]) ? fit->n_segments : 0;
    return json_pack(
        "{s:s, s:I, s:f, s:b, s:o, s:o, s:o}", "module", stats->fqn,
        "sac_memory", (json_int_t)found->tradeoff.sac_memory, "sac_runtime_ms",
        found->tradeoff.sac_runtime, "force_store_random", stats->stores_random,
        "ops", me_json_array(&all, stats->n_ops, make_op), "tradeoff_curve",
        me_json_array(&all, found->tradeoff.n_points, make_point), "segments",
        me_json_array(&all, n_segments, make_segment));
}

me_status me_sac_json_append(me_str *text, const me_sac_estimator *s,
                             const me_sac_format *format, me_diag *diag)
{
    uint32_t count = 0;
    const me_sac_stats *modules = me_sac_estimator_modules(s, &count);
    json_t *list = json_array();
    me_status status = list == NULL ? ME_ERR_NOMEM : ME_OK;
    for (uint32_t i = 0; status == ME_OK && i < count; i++) {
        if (!is_shown(&modules[i], format)) {
            continue;
        }
        findings f;
        status = find(&modules[i], format, diag, &f);
        if (status == ME_OK &&
            json_array_append_new(list, make_module(&modules[i], &f)) != 0) {
            status = ME_ERR_NOMEM;
        }
        forget(&f);
    }
    if (status != ME_OK) {
        json_decref(list);
        return status;
    }
    return me_json_append(json_pack("{s:o}", "modules", list),
                          JSON_INDENT(2) | JSON_REAL_PRECISION(12), text);
}
