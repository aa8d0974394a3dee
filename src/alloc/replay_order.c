/* SPDX-License-Identifier: BSD-3-Clause */
#include "alloc/replay_order.h"

#include "alloc/id_map.h"
#include "base/alloc.h"

#include <string.h>

enum {
    MAX_SEGMENTS = 4096,
    MAX_RULES = 4096,
    MAX_CHOICES = 4096,
    MAX_IDS = 1 << 20,
    RANK_SHIFT = 40 /* a segment is smaller than this power of two */
};

/** A segment of this pass. */
typedef struct segment {
    uint64_t address;
    uint32_t number; /**< in the order in which they were taken */
} segment;

/** Segment `low` lies below segment `high`. */
typedef struct rule {
    uint32_t low;
    uint32_t high;
} rule;

/** An id that came for the first time took one of several equal blocks. */
typedef struct choice {
    uint32_t taken;
    uint32_t other;
} choice;

struct me_replay_order {
    rule rules[MAX_RULES];
    size_t n_rules;
    size_t n_rules_before;         /**< of the passes before this one */
    uint32_t ranked[MAX_SEGMENTS]; /**< numbers by address, as of last pass */
    uint32_t rank[MAX_SEGMENTS];   /**< of a number; its place in `ranked` */
    uint32_t n_ranked;
    segment segments[MAX_SEGMENTS]; /**< of this pass, by address */
    uint32_t n_segments;
    choice choices[MAX_CHOICES]; /**< the latest of this pass, a ring */
    uint32_t n_choices;
    me_id_map places; /**< id to address */
    me_id_map owned;  /**< addresses that have an id */
    bool is_known;    /**< the expected id has an address */
    uint64_t expected;
    uint64_t given;
    bool is_given_up;
};

static uint64_t value_address(const me_id_value *value)
{
    return (uint64_t)value->epoch << 32U | value->block;
}

static uint32_t number_of(const me_replay_order *order, uint64_t address)
{
    uint32_t low = 0;
    uint32_t high = order->n_segments;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (order->segments[middle].address <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == 0 ? UINT32_MAX : order->segments[low - 1].number;
}

static void learn(me_replay_order *order, uint32_t low, uint32_t high)
{
    if (low == high || low == UINT32_MAX || high == UINT32_MAX) {
        return;
    }
    for (size_t i = 0; i < order->n_rules; i++) {
        const rule *r = &order->rules[i];
        if (r->low == low && r->high == high) {
            return;
        }
        order->is_given_up |= r->low == high && r->high == low;
    }
    if (order->n_rules == MAX_RULES) {
        order->is_given_up = true;
        return;
    }
    order->rules[order->n_rules++] = (rule){low, high};
}

static bool is_owned(const me_replay_order *order, uint64_t address)
{
    return me_id_map_find(&order->owned, (const char *)&address,
                          sizeof address) != NULL;
}

/* Which of equal blocks, lowest address first, the expected id took. */
static size_t choose(void *self, const uint64_t *addresses, size_t n)
{
    me_replay_order *order = self;
    size_t taken = 0;
    size_t other = 0;
    for (size_t i = n; i-- > 0;) {
        const bool fits = order->is_known ? addresses[i] == order->expected
                                          : !is_owned(order, addresses[i]);
        if (fits) {
            other = taken;
            taken = i;
        }
    }
    const uint32_t mine = number_of(order, addresses[taken]);
    for (size_t i = 0; i < taken; i++) {
        learn(order, mine, number_of(order, addresses[i]));
    }
    if (!order->is_known) {
        other = other > taken ? other : taken + 1;
        if (other < n) {
            order->choices[order->n_choices++ % MAX_CHOICES] =
                (choice){mine, number_of(order, addresses[other])};
        }
    }
    return taken;
}

static bool place(void *self, uint64_t bytes, uint64_t *address_out)
{
    me_replay_order *order = self;
    const uint32_t number = order->n_segments;
    order->is_given_up |= bytes >= UINT64_C(1) << RANK_SHIFT;
    const uint64_t rank = number < order->n_ranked
                              ? (uint64_t)order->rank[number] + MAX_SEGMENTS
                              : MAX_SEGMENTS - 1 - (uint64_t)number;
    *address_out = (rank + 1) << RANK_SHIFT;
    return number < MAX_SEGMENTS;
}

static void add_segment(me_replay_order *order, uint64_t address)
{
    if (order->n_segments == MAX_SEGMENTS) {
        order->is_given_up = true;
        return;
    }
    uint32_t at = order->n_segments;
    while (at > 0 && order->segments[at - 1].address > address) {
        order->segments[at] = order->segments[at - 1];
        at--;
    }
    order->segments[at] = (segment){address, order->n_segments};
    order->n_segments++;
}

static void on_trace(void *self, const me_pool_trace *entry)
{
    me_replay_order *order = self;
    if (entry->action == ME_POOL_TRACE_ALLOC) {
        order->given = entry->address;
    } else if (entry->action == ME_POOL_TRACE_SEGMENT_ALLOC) {
        add_segment(order, entry->address);
    } else if (entry->action != ME_POOL_TRACE_FREE_REQUESTED &&
               entry->action != ME_POOL_TRACE_FREE_COMPLETED) {
        order->is_given_up = true;
    }
}

/* Move segments below those that they are known to lie below. */
static void rank_segments(me_replay_order *order)
{
    const uint32_t n = order->n_segments;
    for (uint32_t i = 0; i < n; i++) {
        order->ranked[i] = order->segments[i].number;
        order->rank[order->ranked[i]] = i;
    }
    order->n_ranked = n;
    bool is_moving = true;
    for (size_t pass = 0; pass <= order->n_rules && is_moving; pass++) {
        is_moving = false;
        for (size_t i = 0; i < order->n_rules; i++) {
            const rule *r = &order->rules[i];
            if (r->low >= n || r->high >= n ||
                order->rank[r->low] < order->rank[r->high]) {
                continue;
            }
            const uint32_t to = order->rank[r->high];
            for (uint32_t at = order->rank[r->low]; at > to; at--) {
                order->ranked[at] = order->ranked[at - 1];
                order->rank[order->ranked[at]] = at;
            }
            order->ranked[to] = r->low;
            order->rank[r->low] = to;
            is_moving = true;
        }
    }
    order->is_given_up |= is_moving && order->n_rules > 0;
}

me_replay_order *me_replay_order_create(void)
{
    return me_alloc(1, sizeof(me_replay_order), "alloc.order");
}

void me_replay_order_destroy(me_replay_order *order)
{
    if (order != NULL) {
        me_id_map_fini(&order->places);
        me_id_map_fini(&order->owned);
        me_free(order);
    }
}

void me_replay_order_begin(me_replay_order *order, me_pool_options *options)
{
    if (order->n_segments > 0) {
        rank_segments(order);
        options->place = place;
        options->place_self = order;
    }
    options->choose = choose;
    options->choose_self = order;
    options->on_trace = on_trace;
    options->trace_self = order;
    me_id_map_fini(&order->places);
    me_id_map_fini(&order->owned);
    order->n_rules_before = order->n_rules;
    order->n_segments = 0;
    order->n_choices = 0;
}

void me_replay_order_expect(me_replay_order *order, const char *id,
                            size_t length)
{
    const me_id_value *value = me_id_map_find(&order->places, id, length);
    order->is_known = value != NULL;
    order->expected = value != NULL ? value_address(value) : 0;
}

/* An id is not where it was, or sits where another one was: the latest choice
 * that took a block of either segment was wrong. */
static void explain(me_replay_order *order, uint32_t a, uint32_t b)
{
    const uint32_t n =
        order->n_choices < MAX_CHOICES ? order->n_choices : MAX_CHOICES;
    for (uint32_t i = 1; i <= n; i++) {
        const choice *c = &order->choices[(order->n_choices - i) % MAX_CHOICES];
        if (c->taken == a || c->taken == b) {
            learn(order, c->other, c->taken);
            return;
        }
    }
}

bool me_replay_order_agrees(me_replay_order *order, const char *id,
                            size_t length)
{
    const uint64_t given = order->given;
    if (order->is_known && given == order->expected) {
        return true;
    }
    if (order->is_known || is_owned(order, given)) {
        explain(order, number_of(order, order->expected),
                number_of(order, given));
        return false;
    }
    bool is_new = false;
    me_id_value *value = NULL;
    if (order->places.n_used >= MAX_IDS ||
        me_id_map_add(&order->places, id, length, &is_new, &value) != ME_OK) {
        order->is_given_up = true;
        return false;
    }
    value->block = (uint32_t)given;
    value->epoch = (uint32_t)(given >> 32U);
    if (me_id_map_add(&order->owned, (const char *)&given, sizeof given,
                      &is_new, &value) != ME_OK) {
        order->is_given_up = true;
    }
    return !order->is_given_up;
}

bool me_replay_order_has_learned(const me_replay_order *order)
{
    return !order->is_given_up && order->n_rules > order->n_rules_before;
}

bool me_replay_order_is_used(const me_replay_order *order)
{
    return order->n_rules > 0;
}

void me_replay_order_give_up(me_replay_order *order)
{
    order->is_given_up = true;
}
