/**
 * @file
 * What a selective checkpoint of a module costs: of the memory that it gives up,
 * which part of the forward's time it takes to make it again, and the one or two
 * straight lines that stand for the curve in the integer programme of
 * torch/distributed/_tools/sac_ilp.py (SACTradeOffStats).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SAC_TRADEOFF_H
#define MEMEST_SAC_TRADEOFF_H

#include "sac/greedy.h"
#include "sac/piecewise.h"

/** A point of the curve. */
typedef struct me_sac_point {
    double discarded;  /**< part of the memory, and 0.01 */
    double recomputed; /**< part of the time */
} me_sac_point;

/** All zero is an empty one. */
typedef struct me_sac_tradeoff {
    me_piecewise fit; /**< n_segments, slopes, intercepts, breaks; it lies above
                           the curve: each part of the memory takes the next
                           point's time */
    uint64_t sac_memory;  /**< bytes of all operations */
    double sac_runtime;   /**< milliseconds of all operations */
    me_sac_point *points; /**< the curve, discarded rising; owned */
    uint32_t n_points;
} me_sac_tradeoff;

/**
 * The curve and its fit for @p stats in the order @p greedy. Local.
 *
 * @param most_segments  1 or 2; a curve of few points has one
 * @param tradeoff_out   to be given back by me_sac_tradeoff_fini()
 * @return ME_OK; ME_ERR_NOMEM; ME_ERR_UNSUPPORTED for other segments;
 *         ME_ERR_CONFIG where PyTorch divides by zero: the operations take no
 *         memory, or no time
 */
me_status me_sac_tradeoff_init(me_sac_tradeoff *tradeoff_out,
                               const me_sac_stats *stats,
                               const me_sac_greedy *greedy,
                               uint32_t most_segments,
                               me_diag *diag) ME_MUST_CHECK;

/** Give back what it owns; all zero is allowed. */
void me_sac_tradeoff_fini(me_sac_tradeoff *tradeoff);

/** Has @p stats memory and time, so that parts of them can be told?
 *  @return ME_OK or, as PyTorch divides by zero, ME_ERR_CONFIG */
me_status me_sac_tradeoff_check(const me_sac_stats *stats,
                                me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_SAC_TRADEOFF_H */
