/**
 * @file
 * What is known of the order of segments' addresses: which lies below which,
 * and what it is known from.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_ALLOC_REPLAY_ORDER_H
#define MEMEST_ALLOC_REPLAY_ORDER_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/** Segment `low` lies below segment `high`. */
typedef struct me_order_rule {
    uint32_t low;
    uint32_t high;
    uint32_t reason; /**< the caller's */
} me_order_rule;

typedef struct me_order me_order;

/** Nothing is known yet; NULL without memory. Local. */
me_order *me_order_create(uint32_t max_segments);

/** Give it back; NULL is allowed. Local. */
void me_order_destroy(me_order *order);

/** Whether @p low is known to lie below @p high, also by way of others. */
bool me_order_is_below(const me_order *order, uint32_t low, uint32_t high);

/**
 * It does; nothing happens if that is known. Local.
 *
 * @param rule  not against what is known: me_order_is_below() of it the other
 *              way round is false
 */
me_status me_order_add(me_order *order, me_order_rule rule) ME_MUST_CHECK;

/** Rules so far, for me_order_forget(). */
uint32_t me_order_count(const me_order *order);

/** Only the first @p n_rules are known. Local. */
void me_order_forget(me_order *order, uint32_t n_rules);

/**
 * Why @p low lies below @p high, which is known: the rules of a shortest chain
 * between them. Local.
 */
void me_order_explain(me_order *order, uint32_t low, uint32_t high,
                      void (*on_rule)(void *self, const me_order_rule *rule),
                      void *self);

#endif /* MEMEST_ALLOC_REPLAY_ORDER_H */
