/* SPDX-License-Identifier: BSD-3-Clause */
/* The search's choices among equal blocks, and which of them a contradiction
 * can come from. */
#include "alloc/replay_search_internal.h"
#include "base/alloc.h"
#include "base/assert.h"

enum {
    NO_DECISION = -1
};

/** Equal blocks, lowest address first. */
typedef struct equals {
    const uint64_t *addresses;
    uint32_t numbers[MAX_EQUAL]; /**< of their segments */
    uint32_t n;
} equals;

static void set_add(decision_set *set, uint32_t i)
{
    set->words[i / WORD_BITS] |= UINT64_C(1) << i % WORD_BITS;
}

static void set_merge(decision_set *into, const decision_set *from)
{
    for (int i = 0; i < MAX_DECISIONS / WORD_BITS; i++) {
        into->words[i] |= from->words[i];
    }
}

static int set_last(const decision_set *set)
{
    for (int i = MAX_DECISIONS / WORD_BITS - 1; i >= 0; i--) {
        if (set->words[i] != 0) {
            return i * WORD_BITS + 63 - __builtin_clzll(set->words[i]);
        }
    }
    return NO_DECISION;
}

/** Those before @p n stay. */
static void set_cut(decision_set *set, uint32_t n)
{
    for (uint32_t i = n; i < MAX_DECISIONS; i++) {
        set->words[i / WORD_BITS] &= ~(UINT64_C(1) << i % WORD_BITS);
    }
}

uint32_t me_search_segment(const me_search *s, uint64_t address)
{
    uint32_t low = 0;
    uint32_t high = s->n_segments;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (s->segments[middle].address <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    ME_ASSERT(low > 0);
    return s->segments[low - 1].number;
}

bool me_search_is_owned(const me_search *s, uint64_t address)
{
    return me_id_map_find(&s->owned, (const char *)&address, sizeof address) !=
           NULL;
}

/** What a segment holds at a call follows from the decisions before it between
 * blocks of which one lies in that segment. */
static void blame_segment(me_search *s, uint32_t number, uint32_t call)
{
    for (uint32_t i = 0; i < s->n_made && s->decisions[i].call < call; i++) {
        const decision *d = &s->decisions[i];
        for (uint32_t k = 0; k < d->n_open; k++) {
            if (d->open_segments[k] == number) {
                set_add(&s->blame, i);
                break;
            }
        }
    }
}

void me_search_blame(me_search *s, uint64_t address)
{
    s->is_conflict = true;
    blame_segment(s, me_search_segment(s, address), s->call);
}

/** A rule follows from the decision of its call; where there was none to make,
 * from what led there. */
static void blame_rule(void *self, const me_order_rule *rule)
{
    me_search *s = self;
    for (uint32_t i = 0; i < s->n_made; i++) {
        if (s->decisions[i].call == rule->reason) {
            set_add(&s->blame, i);
            return;
        }
    }
    blame_segment(s, rule->low, rule->reason);
    blame_segment(s, rule->high, rule->reason);
}

static bool is_rule_against(const me_search *s, const equals *e, uint32_t i,
                            uint32_t other)
{
    return e->numbers[other] != e->numbers[i] &&
           me_order_is_below(s->order, e->numbers[other], e->numbers[i]);
}

/** Whether another one is known to lie below it. */
static bool is_above_other(const me_search *s, const equals *e, uint32_t i)
{
    for (uint32_t k = 0; k < e->n; k++) {
        const bool is_below =
            e->numbers[k] == e->numbers[i] && e->addresses[k] < e->addresses[i];
        if (is_below || is_rule_against(s, e, i, k)) {
            return true;
        }
    }
    return false;
}

/** Whether what the id says would allow it. */
static bool can_serve(const me_search *s, uint64_t address)
{
    return s->expected == 0 ? !me_search_is_owned(s, address)
                            : s->expected == address;
}

/** Why none can serve: what lies in their segments, and of those that could but
 * for another one below why that is so. */
static void blame_equals(me_search *s, const equals *e)
{
    for (uint32_t i = 0; i < e->n; i++) {
        me_search_blame(s, e->addresses[i]);
        uint32_t other = can_serve(s, e->addresses[i]) ? 0 : e->n;
        while (other < e->n && !is_rule_against(s, e, i, other)) {
            other++;
        }
        if (other < e->n) {
            me_order_explain(s->order, e->numbers[other], e->numbers[i],
                             blame_rule, s);
        }
    }
}

/** A decision on the way is made as before. */
static uint32_t decide(me_search *s, const equals *e, const uint32_t *open,
                       uint32_t n_open)
{
    if (s->n_made < s->n_decisions) {
        const decision *made = &s->decisions[s->n_made++];
        ME_ASSERT(made->call == s->call && made->n_open == n_open);
        return open[made->taken];
    }
    decision *d = &s->decisions[s->n_decisions];
    if (s->n_decisions == MAX_DECISIONS) {
        s->is_full = true;
        return open[0];
    }
    *d = (decision){.call = s->call, .n_open = n_open};
    d->open_segments = me_alloc(n_open, sizeof *d->open_segments, "alloc.open");
    if (d->open_segments == NULL) {
        s->is_lost = true;
        return open[0];
    }
    for (uint32_t i = 0; i < n_open; i++) {
        d->open_segments[i] = e->numbers[open[i]];
    }
    s->n_decisions++;
    s->n_made++;
    return open[0];
}

/** The one where the id is, or one that no id stands for, with none below it. */
static uint32_t choose_equal(me_search *s, const equals *e)
{
    uint32_t open[MAX_EQUAL];
    uint32_t n_open = 0;
    for (uint32_t i = 0; i < e->n; i++) {
        if (can_serve(s, e->addresses[i]) && !is_above_other(s, e, i)) {
            open[n_open++] = i;
        }
    }
    if (n_open == 0) {
        blame_equals(s, e);
        if (s->expected != 0) {
            me_search_blame(s, s->expected);
        }
        return 0;
    }
    return n_open == 1 ? open[0] : decide(s, e, open, n_open);
}

/** The block that was taken lies below the others. */
static void learn(me_search *s, const equals *e, uint32_t taken)
{
    for (uint32_t i = 0; i < e->n; i++) {
        const me_order_rule rule = {e->numbers[taken], e->numbers[i], s->call};
        if (rule.low != rule.high && me_order_add(s->order, rule) != ME_OK) {
            s->is_lost = true;
        }
    }
}

static void note_chosen(me_search *s, uint32_t taken)
{
    uint16_t *grown = me_grow(s->chosen, s->n_chosen, &s->chosen_capacity,
                              sizeof *grown, "alloc.chosen");
    if (grown == NULL) {
        s->is_lost = true;
        return;
    }
    s->chosen = grown;
    grown[s->n_chosen++] = (uint16_t)taken;
}

size_t me_search_choose(void *self, const uint64_t *addresses, size_t n)
{
    me_search *s = self;
    equals e = {.addresses = addresses, .n = (uint32_t)n};
    ME_ASSERT(n <= MAX_EQUAL);
    for (uint32_t i = 0; i < e.n; i++) {
        e.numbers[i] = me_search_segment(s, addresses[i]);
    }
    const uint32_t taken = s->n_chosen < s->n_fixed
                               ? s->result->chosen[s->n_chosen]
                               : choose_equal(s, &e);
    if (!s->is_conflict) {
        learn(s, &e, taken);
        note_chosen(s, taken);
    }
    return taken;
}

void me_search_drop_decisions(me_search *s, uint32_t n)
{
    while (s->n_decisions > n) {
        me_free(s->decisions[--s->n_decisions].open_segments);
    }
}

bool me_search_decide_anew(me_search *s)
{
    for (int last = set_last(&s->blame); last != NO_DECISION;
         last = set_last(&s->blame)) {
        const uint32_t i = (uint32_t)last;
        decision *d = &s->decisions[i];
        set_cut(&s->blame, i);
        set_merge(&d->conflict, &s->blame);
        if (d->taken + 1 < d->n_open) {
            d->taken++;
            s->blame = (decision_set){0};
            me_search_drop_decisions(s, i + 1);
            return true;
        }
        // All failed: by what those failed by, and by what made none else
        // open.
        s->blame = d->conflict;
        s->n_made = i;
        for (uint32_t k = 0; k < d->n_open; k++) {
            blame_segment(s, d->open_segments[k], d->call);
        }
    }
    return false;
}

bool me_search_decide_last(me_search *s)
{
    for (uint32_t i = s->n_decisions; i-- > 0;) {
        decision *d = &s->decisions[i];
        if (d->taken + 1 < d->n_open) {
            d->taken++;
            s->blame = (decision_set){0};
            me_search_drop_decisions(s, i + 1);
            return true;
        }
    }
    return false;
}
