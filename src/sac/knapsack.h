/**
 * @file
 * Which things fit into a sack and are worth most: exactly.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SAC_KNAPSACK_H
#define MEMEST_SAC_KNAPSACK_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct me_knapsack_item {
    uint64_t weight; /**< above 0 */
    double value;    /**< above 0 */
    uint32_t tag;    /**< the caller's */
    bool is_taken;   /**< the answer */
} me_knapsack_item;

/**
 * Take those of @p items that together weigh @p capacity at most and are worth
 * most; sums of values that differ by rounding alone count as equal, and of equal
 * choices one is found that does not depend on anything but the items' order.
 * Local.
 *
 * @param items  sorted on return: most value per weight first, those of equal
 *               value per weight in the order in which they came
 * @return ME_OK or ME_ERR_NOMEM
 */
me_status me_knapsack_solve(me_knapsack_item *items, uint32_t n_items,
                            uint64_t capacity) ME_MUST_CHECK;

#endif /* MEMEST_SAC_KNAPSACK_H */
