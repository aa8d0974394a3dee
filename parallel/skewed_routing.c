/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/skewed_routing.h"

#include "base/alloc.h"

#include <math.h>
#include <stdlib.h>

/** What one layer is worked out with. */
typedef struct layer_state {
    double *share;   /**< of each expert of the rows, adding up to 1 */
    double *lost;    /**< by rounding */
    uint32_t *order; /**< experts, the one that is wanted most first */
} layer_state;

/** splitmix64: the next of a sequence of numbers that any seed begins. */
static uint64_t next_random(uint64_t *state)
{
    *state += 0x9E3779B97F4A7C15U;
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
}

static void draw_order(const me_skew *skew, uint32_t layer, uint32_t *order)
{
    uint64_t state = skew->seed;
    state = next_random(&state) ^ layer;
    for (uint32_t i = 0; i < skew->n_experts; i++) {
        order[i] = i;
    }
    for (uint32_t i = skew->n_experts; i > 1; i--) {
        const uint32_t j = (uint32_t)(next_random(&state) % i);
        const uint32_t last = order[i - 1];
        order[i - 1] = order[j];
        order[j] = last;
    }
}

/** Shares after Zipf's law, in the experts' order, none above @p most: those that
 *  would be have that, the first ones, and the rest divide what is left. */
static void divide(const me_skew *skew, const layer_state *s)
{
    const uint32_t n = skew->n_experts;
    const double most = 1.0 / (double)skew->topk;
    double weights = 0.0;
    for (uint32_t k = 0; k < n; k++) {
        weights += pow((double)(k + 1), -skew->exponent);
    }
    double left = 1.0;
    for (uint32_t k = 0; k < n; k++) {
        const double weight = pow((double)(k + 1), -skew->exponent);
        const double share = fmin(left * weight / weights, most);
        s->share[s->order[k]] = share;
        left -= share;
        weights -= weight;
        if (share < most) { // nor has anyone behind it too much
            const double scale = left / fmax(weights, 1e-300);
            for (uint32_t i = k + 1; i < n; i++) {
                s->share[s->order[i]] =
                    scale * pow((double)(i + 1), -skew->exponent);
            }
            return;
        }
    }
}

/** Whole rows: rounded down, and one more for those that lost most. */
static void round_rows(const me_skew *skew, const layer_state *s,
                       uint64_t *counts)
{
    uint64_t given = 0;
    for (uint32_t i = 0; i < skew->n_experts; i++) {
        const double exact = s->share[i] * (double)skew->rows;
        counts[i] = (uint64_t)exact;
        s->lost[i] = exact - (double)counts[i];
        given += counts[i];
    }
    for (; given < skew->rows; given++) {
        uint32_t best = 0;
        for (uint32_t i = 1; i < skew->n_experts; i++) {
            best = s->lost[i] > s->lost[best] ? i : best;
        }
        counts[best]++;
        s->lost[best] -= 1.0;
    }
}

me_status me_skewed_routing(const me_skew *skew, me_diag *diag,
                            me_routing *routing_out)
{
    const size_t n = skew->n_experts;
    layer_state s = {
        .share = me_alloc(n, sizeof *s.share, "skew.share"),
        .lost = me_alloc(n, sizeof *s.lost, "skew.lost"),
        .order = me_alloc(n, sizeof *s.order, "skew.order"),
    };
    uint64_t *counts =
        me_alloc(n * skew->n_layers, sizeof *counts, "routing.counts");
    me_status status = ME_OK;
    if (s.share == NULL || s.lost == NULL || s.order == NULL ||
        counts == NULL) {
        me_free(counts);
        status = me_fail(diag, ME_ERR_NOMEM, "no host memory for routing");
    } else {
        for (uint32_t layer = 0; layer < skew->n_layers; layer++) {
            draw_order(skew, layer, s.order);
            divide(skew, &s);
            round_rows(skew, &s, counts + layer * n);
        }
        *routing_out = (me_routing){
            .imbalance = 1.0,
            .counts = counts,
            .n_skewed = skew->n_experts,
        };
    }
    me_free(s.share);
    me_free(s.lost);
    me_free(s.order);
    return status;
}
