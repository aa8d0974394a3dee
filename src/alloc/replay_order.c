/* SPDX-License-Identifier: BSD-3-Clause */
#include "alloc/replay_order.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <string.h>

enum {
    WORD_BITS = 64
};

struct me_order {
    me_order_rule *rules;
    uint32_t n_rules;
    uint32_t capacity;
    uint32_t n_segments; /**< with rules: numbers below */
    uint32_t max_segments;
    uint32_t n_words;
    uint64_t *above; /**< of each segment a set of bits: those above it */
    uint32_t *via; /**< of a search for a chain: the rule that led here, + 1 */
    uint32_t *queue;
};

static uint64_t *row(const me_order *order, uint32_t segment)
{
    return &order->above[(size_t)segment * order->n_words];
}

static bool has(const uint64_t *bits, uint32_t i)
{
    return (bits[i / WORD_BITS] >> i % WORD_BITS & 1U) != 0;
}

me_order *me_order_create(uint32_t max_segments)
{
    me_order *order = me_alloc(1, sizeof *order, "alloc.order");
    if (order == NULL) {
        return NULL;
    }
    order->max_segments = max_segments;
    order->n_words = (max_segments + WORD_BITS - 1) / WORD_BITS;
    order->above = me_alloc((size_t)max_segments * order->n_words,
                            sizeof *order->above, "alloc.order");
    order->via = me_alloc(max_segments, sizeof *order->via, "alloc.order");
    order->queue = me_alloc(max_segments, sizeof *order->queue, "alloc.order");
    if (order->above == NULL || order->via == NULL || order->queue == NULL) {
        me_order_destroy(order);
        return NULL;
    }
    return order;
}

void me_order_destroy(me_order *order)
{
    if (order != NULL) {
        me_free(order->rules);
        me_free(order->above);
        me_free(order->via);
        me_free(order->queue);
        me_free(order);
    }
}

bool me_order_is_below(const me_order *order, uint32_t low, uint32_t high)
{
    return has(row(order, low), high);
}

/** What lies below `low`, and that itself, lies below `high` and what is above
 * it. */
static void close_over(me_order *order, const me_order_rule *rule)
{
    const uint64_t *from = row(order, rule->high);
    for (uint32_t i = 0; i < order->n_segments; i++) {
        uint64_t *to = row(order, i);
        if (i != rule->low && !has(to, rule->low)) {
            continue;
        }
        for (uint32_t word = 0;
             word <= order->n_segments / WORD_BITS && word < order->n_words;
             word++) {
            to[word] |= from[word];
        }
        to[rule->high / WORD_BITS] |= UINT64_C(1) << rule->high % WORD_BITS;
    }
}

me_status me_order_add(me_order *order, me_order_rule rule)
{
    ME_ASSERT(rule.low < order->max_segments &&
              rule.high < order->max_segments);
    if (me_order_is_below(order, rule.low, rule.high)) {
        return ME_OK;
    }
    me_order_rule *grown =
        me_grow(order->rules, order->n_rules, &order->capacity, sizeof *grown,
                "alloc.rules");
    if (grown == NULL) {
        return ME_ERR_NOMEM;
    }
    order->rules = grown;
    grown[order->n_rules++] = rule;
    const uint32_t highest = rule.low > rule.high ? rule.low : rule.high;
    if (order->n_segments <= highest) {
        order->n_segments = highest + 1;
    }
    close_over(order, &rule);
    return ME_OK;
}

uint32_t me_order_count(const me_order *order)
{
    return order->n_rules;
}

void me_order_forget(me_order *order, uint32_t n_rules)
{
    if (n_rules == order->n_rules) {
        return;
    }
    memset(order->above, 0,
           (size_t)order->n_segments * order->n_words * sizeof *order->above);
    order->n_rules = n_rules;
    for (uint32_t i = 0; i < n_rules; i++) {
        close_over(order, &order->rules[i]);
    }
}

/** Breadth first from `low`, so that the chain is short. */
static void find_chain(me_order *order, uint32_t low, uint32_t high)
{
    memset(order->via, 0, (size_t)order->n_segments * sizeof *order->via);
    uint32_t n_queued = 0;
    order->queue[n_queued++] = low;
    for (uint32_t at = 0; at < n_queued && order->via[high] == 0; at++) {
        for (uint32_t i = 0; i < order->n_rules; i++) {
            const me_order_rule *rule = &order->rules[i];
            if (rule->low == order->queue[at] && rule->high != low &&
                order->via[rule->high] == 0) {
                order->via[rule->high] = i + 1;
                order->queue[n_queued++] = rule->high;
            }
        }
    }
}

void me_order_explain(me_order *order, uint32_t low, uint32_t high,
                      void (*on_rule)(void *self, const me_order_rule *rule),
                      void *self)
{
    ME_ASSERT(me_order_is_below(order, low, high));
    find_chain(order, low, high);
    for (uint32_t at = high; at != low;) {
        const me_order_rule *rule = &order->rules[order->via[at] - 1];
        on_rule(self, rule);
        at = rule->low;
    }
}
