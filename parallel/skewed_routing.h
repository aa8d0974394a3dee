/**
 * @file
 * Routing that nobody measured and that is not balanced either: some experts of
 * each layer are wanted more than others, after Zipf's law.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_PARALLEL_SKEWED_ROUTING_H
#define MEMEST_PARALLEL_SKEWED_ROUTING_H

#include "parallel/routing.h"

/** A skew. The expert at place k of a layer's order, from 1, is wanted k^-x times
 *  as often as the first; the order is drawn for each layer from the seed. */
typedef struct me_skew {
    double exponent; /**< x; 0: all alike */
    uint64_t seed;
    uint32_t n_experts; /**< of the model */
    uint32_t topk;      /**< experts of a token */
    uint32_t n_layers;  /**< of the model, prediction depths behind them */
    uint64_t rows;      /**< that all experts of a layer get together */
} me_skew;

/**
 * Rows of each expert of each layer, the same in every micro-batch. No expert gets
 * a token twice, so none gets more than rows / topk; what is too much for one goes
 * to the others in their proportion. What is left of rounding goes to those that
 * lost most by it, the lower one first.
 *
 * @param routing_out  for me_routing_fini()
 * @return ME_OK or ME_ERR_NOMEM
 */
me_status me_skewed_routing(const me_skew *skew, me_diag *diag,
                            me_routing *routing_out) ME_MUST_CHECK;

#endif /* MEMEST_PARALLEL_SKEWED_ROUTING_H */
