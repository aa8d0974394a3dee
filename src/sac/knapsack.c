/* SPDX-License-Identifier: BSD-3-Clause */
/* Item by item, the choices that no other beats (at no more weight, no less
 * value) are kept, rising in weight; equal items thus add one choice each, not
 * twice as many. A choice goes when even fractions of the items that are left
 * cannot make it better than the best that was found; what it makes with each
 * further item that fits taken may be that best. */
#include "sac/knapsack.h"

#include "base/alloc.h"

#include <float.h>

enum {
    NONE = -1
};

/** A choice among the items so far. */
typedef struct choice {
    uint64_t weight;
    double value;
    int32_t before; /**< the choice that it adds an item to, or NONE */
    uint32_t item;
    int32_t index; /**< its own, NONE before it is kept */
} choice;

/** A rising list of choices, by index. */
typedef struct front {
    int32_t *choices;
    uint32_t count;
    uint32_t capacity;
} front;

typedef struct solver {
    me_knapsack_item *items;
    uint32_t n_items;
    uint64_t capacity;
    uint64_t *weights; /**< of the first i items */
    double *values;
    uint64_t *lightest; /**< of items from the i-th on */
    double noise;       /**< by which sums of values may differ by rounding */
    choice *choices;
    uint32_t n_choices;
    uint32_t room;
    double best;
    int32_t best_choice; /**< and what fits of the items from best_from on */
    uint32_t best_from;
} solver;

static double ratio(const me_knapsack_item *item)
{
    return item->value / (double)item->weight;
}

static void sort_items(me_knapsack_item *items, uint32_t n_items)
{
    for (uint32_t i = 1; i < n_items; i++) {
        const me_knapsack_item moved = items[i];
        uint32_t at = i;
        while (at > 0 && ratio(&items[at - 1]) < ratio(&moved)) {
            items[at] = items[at - 1];
            at--;
        }
        items[at] = moved;
    }
}

/** The first item from @p next on that does not fit any more. */
static uint32_t first_left_out(const solver *s, uint64_t weight, uint32_t next)
{
    const uint64_t until = s->weights[next] + (s->capacity - weight);
    uint32_t low = next;
    uint32_t high = s->n_items;
    while (low < high) {
        const uint32_t middle = low + (high - low + 1) / 2;
        if (s->weights[middle] <= until) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

/** @return its index, or NONE without memory */
static int32_t add_choice(solver *s, const choice *c)
{
    choice *choices = me_grow(s->choices, s->n_choices, &s->room,
                              sizeof *choices, "sac.choices");
    if (choices == NULL) {
        return NONE;
    }
    const int32_t index = (int32_t)s->n_choices++;
    s->choices = choices;
    s->choices[index] = *c;
    s->choices[index].index = index;
    return index;
}

/** What items from @p next on add to a choice with room for @p left, where each
 *  that fits is taken. */
static double fill_up(const solver *s, uint64_t left, uint32_t next, bool takes)
{
    double value = 0;
    for (uint32_t i = next; i < s->n_items && left >= s->lightest[i]; i++) {
        if (s->items[i].weight <= left) {
            left -= s->items[i].weight;
            value += s->items[i].value;
            s->items[i].is_taken = s->items[i].is_taken || takes;
        }
    }
    return value;
}

/** The most that a choice can come to with fractions of items from @p next on. */
static double most_of(const solver *s, const choice *c, uint32_t next)
{
    const uint32_t end = first_left_out(s, c->weight, next);
    const uint64_t left =
        s->capacity - c->weight - (s->weights[end] - s->weights[next]);
    const double whole = c->value + s->values[end] - s->values[next];
    return end < s->n_items ? whole + (double)left * ratio(&s->items[end])
                            : whole;
}

/** Add a choice to the list, unless it cannot come to anything. */
static me_status keep(solver *s, front *to, const choice *c, uint32_t next)
{
    if (most_of(s, c, next) <= s->best + s->noise) {
        return ME_OK;
    }
    int32_t *list = me_grow(to->choices, to->count, &to->capacity, sizeof *list,
                            "sac.front");
    if (list == NULL) {
        return ME_ERR_NOMEM;
    }
    to->choices = list;
    const int32_t index = c->index != NONE ? c->index : add_choice(s, c);
    if (index == NONE) {
        return ME_ERR_NOMEM;
    }
    to->choices[to->count++] = index;
    const double reached =
        c->value + fill_up(s, s->capacity - c->weight, next, false);
    if (reached > s->best + s->noise) {
        s->best = reached;
        s->best_choice = index;
        s->best_from = next;
    }
    return ME_OK;
}

/** Without the item a choice stays as it is, and keeps its index. */
static me_status merge(solver *s, const front *from, uint32_t item, front *to)
{
    const uint64_t weight = s->items[item].weight;
    const double value = s->items[item].value;
    double last = -1;
    uint32_t without = 0;
    uint32_t with = 0;
    me_status status = ME_OK;
    while (status == ME_OK && (without < from->count || with < from->count)) {
        choice a = {.weight = UINT64_MAX};
        choice b = {.weight = UINT64_MAX};
        if (without < from->count) {
            a = s->choices[from->choices[without]];
        }
        if (with < from->count) {
            const int32_t before = from->choices[with];
            b = (choice){.weight = s->choices[before].weight + weight,
                         .value = s->choices[before].value + value,
                         .before = before,
                         .item = item,
                         .index = NONE};
        }
        const bool takes_b =
            b.weight < a.weight || (b.weight == a.weight && b.value > a.value);
        const choice *next = takes_b ? &b : &a;
        with += takes_b ? 1 : 0;
        without += takes_b ? 0 : 1;
        if (next->weight <= s->capacity && next->value > last) {
            last = next->value;
            status = keep(s, to, next, item + 1);
        }
    }
    return status;
}

/** What divides all weights: no choice weighs anything between its multiples. */
static uint64_t common_divisor(const me_knapsack_item *items, uint32_t n_items)
{
    uint64_t divisor = 0;
    for (uint32_t i = 0; i < n_items; i++) {
        uint64_t rest = items[i].weight;
        while (rest != 0) {
            const uint64_t next = divisor % rest;
            divisor = rest;
            rest = next;
        }
    }
    return divisor > 0 ? divisor : 1;
}

static me_status search(solver *s, front fronts[2])
{
    const choice nothing = {.before = NONE, .index = NONE};
    s->best = -1;
    me_status status = keep(s, &fronts[0], &nothing, 0);
    for (uint32_t i = 0; status == ME_OK && i < s->n_items; i++) {
        fronts[(i + 1) % 2].count = 0;
        status = merge(s, &fronts[i % 2], i, &fronts[(i + 1) % 2]);
    }
    return status;
}

static void take(solver *s)
{
    const uint64_t weight = s->choices[s->best_choice].weight;
    for (int32_t at = s->best_choice; s->choices[at].before != NONE;
         at = s->choices[at].before) {
        s->items[s->choices[at].item].is_taken = true;
    }
    (void)fill_up(s, s->capacity - weight, s->best_from, true);
}

me_status me_knapsack_solve(me_knapsack_item *items, uint32_t n_items,
                            uint64_t capacity)
{
    const uint64_t divisor = common_divisor(items, n_items);
    solver s = {.items = items,
                .n_items = n_items,
                .capacity = capacity - capacity % divisor};
    front fronts[2] = {{.count = 0}, {.count = 0}};
    me_status status = ME_ERR_NOMEM;
    s.weights = me_alloc((size_t)n_items + 1, sizeof *s.weights, "sac.weights");
    s.values = me_alloc((size_t)n_items + 1, sizeof *s.values, "sac.values");
    s.lightest =
        me_alloc((size_t)n_items + 1, sizeof *s.lightest, "sac.lightest");
    if (s.weights == NULL || s.values == NULL || s.lightest == NULL) {
        goto out;
    }
    sort_items(items, n_items);
    for (uint32_t i = 0; i < n_items; i++) {
        items[i].is_taken = false;
        s.weights[i + 1] = s.weights[i] + items[i].weight;
        s.values[i + 1] = s.values[i] + items[i].value;
    }
    for (uint32_t i = n_items; i-- > 0;) {
        const uint64_t other = i + 1 < n_items ? s.lightest[i + 1] : UINT64_MAX;
        s.lightest[i] = items[i].weight < other ? items[i].weight : other;
    }
    s.noise = s.values[n_items] * DBL_EPSILON * 4 * (n_items + 1);
    status = search(&s, fronts);
    if (status == ME_OK) {
        take(&s);
    }
out:
    me_free(fronts[0].choices);
    me_free(fronts[1].choices);
    me_free(s.choices);
    me_free(s.lightest);
    me_free(s.values);
    me_free(s.weights);
    return status;
}
