/* SPDX-License-Identifier: BSD-3-Clause */
#include "sac/tradeoff.h"

#include "base/alloc.h"
#include "base/assert.h"

/** PyTorch adds it to every part of the memory. */
static const double delta = 1e-2;

me_status me_sac_tradeoff_check(const me_sac_stats *stats, me_diag *diag)
{
    const bool has_memory = me_sac_stats_bytes(stats) > 0;
    if (has_memory && me_sac_stats_runtime_ms(stats) > 0) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "%s: its operations take no %s: PyTorch's SACEstimator "
                   "raises ZeroDivisionError",
                   stats->fqn, has_memory ? "time" : "memory");
}

/** Add to the curve; a point over the last one takes its place. */
static void add_point(me_sac_tradeoff *t, uint64_t bytes, double runtime_ms)
{
    const me_sac_point point = {
        .discarded = (double)bytes / (double)t->sac_memory + delta,
        .recomputed = runtime_ms / t->sac_runtime};
    if (t->n_points > 0 &&
        t->points[t->n_points - 1].discarded >= point.discarded) {
        t->points[t->n_points - 1].recomputed = point.recomputed;
    } else {
        t->points[t->n_points++] = point;
    }
}

/** What the members of @p ops and their groups add up to. */
static me_status sum_groups(const me_sac_stats *stats,
                            const me_sac_greedy *greedy, const me_int_set *ops,
                            uint64_t *bytes_out, double *runtime_ms_out)
{
    me_int_set all = {.slots = NULL};
    uint32_t position = 0;
    int32_t op = 0;
    while (me_int_set_next(ops, &position, &op)) {
        me_sac_greedy_add_group(greedy, op, &all);
    }
    me_sac_sum(stats, &all, bytes_out, runtime_ms_out);
    const me_status status = me_int_set_status(&all);
    me_int_set_fini(&all);
    return status;
}

static me_status draw(me_sac_tradeoff *t, const me_sac_stats *stats,
                      const me_sac_greedy *greedy)
{
    t->points = me_alloc((size_t)greedy->n_candidates + 2, sizeof *t->points,
                         "sac.points");
    uint64_t bytes = 0;
    double runtime_ms = 0;
    if (t->points == NULL || sum_groups(stats, greedy, &greedy->recomputed,
                                        &bytes, &runtime_ms) != ME_OK) {
        return ME_ERR_NOMEM;
    }
    add_point(t, bytes, runtime_ms);
    for (uint32_t i = 0; i < greedy->n_candidates; i++) {
        bytes += greedy->candidates[i].bytes;
        runtime_ms += greedy->candidates[i].runtime_ms;
        add_point(t, bytes, runtime_ms);
    }
    uint64_t stored_bytes = 0;
    double stored_ms = 0;
    const me_status status =
        sum_groups(stats, greedy, &greedy->stored, &stored_bytes, &stored_ms);
    add_point(t, bytes + stored_bytes, runtime_ms + stored_ms);
    return status;
}

/** Every part of the memory with the time of the point behind it. */
static me_status fit(me_sac_tradeoff *t, uint32_t most_segments)
{
    // Every byte is some candidate's or stored one's: the curve rises.
    ME_ASSERT(t->n_points >= 2);
    const uint32_t n = t->n_points - 1;
    double *x = me_alloc((size_t)n * 2, sizeof *x, "sac.curve");
    if (x == NULL) {
        return ME_ERR_NOMEM;
    }
    double *y = x + n;
    for (uint32_t i = 0; i < n; i++) {
        x[i] = t->points[i].discarded;
        y[i] = t->points[i + 1].recomputed;
    }
    const me_status status =
        me_piecewise_fit(x, y, n, n >= 4 ? most_segments : 1, &t->fit);
    me_free(x);
    return status;
}

me_status me_sac_tradeoff_init(me_sac_tradeoff *tradeoff_out,
                               const me_sac_stats *stats,
                               const me_sac_greedy *greedy,
                               uint32_t most_segments, me_diag *diag)
{
    if (most_segments < 1 || most_segments > ME_PIECES) {
        return me_fail(diag, ME_ERR_UNSUPPORTED,
                       "a trade-off curve of %u segments: 1 and 2 are modelled",
                       most_segments);
    }
    me_status status = me_sac_tradeoff_check(stats, diag);
    if (status != ME_OK) {
        return status;
    }
    me_sac_tradeoff t = {.sac_memory = me_sac_stats_bytes(stats),
                         .sac_runtime = me_sac_stats_runtime_ms(stats)};
    status = draw(&t, stats, greedy);
    if (status == ME_OK) {
        status = fit(&t, most_segments);
    }
    if (status != ME_OK) {
        me_sac_tradeoff_fini(&t);
        return me_fail(diag, status, "no memory for the trade-off curve of %s",
                       stats->fqn);
    }
    *tradeoff_out = t;
    return ME_OK;
}

void me_sac_tradeoff_fini(me_sac_tradeoff *tradeoff)
{
    me_free(tradeoff->points);
    *tradeoff = (me_sac_tradeoff){.n_points = 0};
}
