/* SPDX-License-Identifier: BSD-3-Clause */
#include "diff/diff.h"

#include "base/alloc.h"
#include "base/size.h"

#include <stdlib.h>
#include <string.h>

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

uint64_t me_diff_beyond(const me_diff *diff, uint64_t a, uint64_t b)
{
    const uint64_t by = distance(a, b);
    return by <= diff->a->rounding + diff->b->rounding ? 0 : by;
}

/** The largest difference of a pair's quantities, beyond rounding. */
static uint64_t largest_of(const me_diff *diff, const me_diff_pair *pair)
{
    uint64_t largest = 0;
    for (int q = 0; q < ME_QUANTITY_COUNT; q++) {
        if (pair->a->has[q] && pair->b->has[q]) {
            largest =
                me_max_u64(largest, me_diff_beyond(diff, pair->a->bytes[q],
                                                   pair->b->bytes[q]));
        }
    }
    return largest;
}

static bool is_unknown(const me_profile *p)
{
    return p->n_ranks == 1 && p->ranks[0].rank < 0;
}

/** The rank of a source that does not say it. */
static int32_t unknown_rank(const me_profile *other, int32_t asked)
{
    return asked >= 0 ? asked : other->n_ranks == 1 ? other->ranks[0].rank : 0;
}

static void add_pair(me_diff *d, const me_profile_rank *a,
                     const me_profile_rank *b, int32_t rank)
{
    const me_diff_pair pair = {rank, a, b};
    d->pairs[d->n_pairs++] = pair;
    d->largest_bytes = me_max_u64(d->largest_bytes, largest_of(d, &pair));
}

/** Where a source does not say whose memory it shows. */
static void pair_unknown(me_diff *d, int32_t asked)
{
    const bool is_a = is_unknown(d->a);
    const bool is_b = is_unknown(d->b);
    int32_t rank = asked;
    if (!is_a || !is_b) {
        rank = unknown_rank(is_b ? d->a : d->b, asked);
    }
    if (asked < 0 && is_a != is_b && (is_b ? d->a : d->b)->n_ranks > 1) {
        d->guessed = is_b ? d->b : d->a;
    }
    const me_profile_rank *a =
        is_a ? d->a->ranks : me_profile_rank_find(d->a, rank);
    const me_profile_rank *b =
        is_b ? d->b->ranks : me_profile_rank_find(d->b, rank);
    if (a != NULL && b != NULL) {
        add_pair(d, a, b, rank);
    }
}

static void pair_known(me_diff *d, int32_t asked)
{
    for (uint32_t i = 0; i < d->a->n_ranks; i++) {
        const me_profile_rank *a = &d->a->ranks[i];
        const me_profile_rank *b = me_profile_rank_find(d->b, a->rank);
        if (b != NULL && (asked < 0 || asked == a->rank)) {
            add_pair(d, a, b, a->rank);
        }
        d->n_alone[0] += b == NULL ? 1 : 0;
    }
    for (uint32_t i = 0; i < d->b->n_ranks; i++) {
        d->n_alone[1] +=
            me_profile_rank_find(d->a, d->b->ranks[i].rank) == NULL ? 1 : 0;
    }
}

/** Knuth, Morris and Pratt: the place where most of @p wanted stands in one
 *  go in @p in. @return ME_OK or ME_ERR_NOMEM */
static me_status find_calls(const int64_t *wanted, uint32_t n_wanted,
                            const me_profile_calls *in, me_diff_calls *found)
{
    uint32_t *border = me_alloc(n_wanted, sizeof *border, "diff.calls");
    if (border == NULL) {
        return ME_ERR_NOMEM;
    }
    uint32_t n = 0;
    for (uint32_t i = 1; i < n_wanted; i++) {
        while (n > 0 && wanted[i] != wanted[n]) {
            n = border[n - 1];
        }
        n += wanted[i] == wanted[n] ? 1 : 0;
        border[i] = n;
    }
    n = 0;
    for (uint32_t i = 0; i < in->count && found->n_equal < n_wanted; i++) {
        while (n > 0 && in->bytes[i] != wanted[n]) {
            n = border[n - 1];
        }
        n += in->bytes[i] == wanted[n] ? 1 : 0;
        if (n > found->n_equal) {
            found->n_equal = n;
            found->at = i + 2 - n;
            found->wanted = n < n_wanted ? wanted[n] : 0;
            found->found = i + 1 < in->count ? in->bytes[i + 1] : 0;
        }
    }
    me_free(border);
    return ME_OK;
}

static me_status compare_calls(me_diff *d)
{
    const me_profile_calls *of = &d->a->calls;
    const me_profile_calls *in = &d->b->calls;
    if (of->end == 0) {
        of = &d->b->calls;
        in = &d->a->calls;
        d->calls.is_of_b = true;
    }
    if (of->end <= of->first || in->count == 0) {
        return ME_OK;
    }
    d->calls.is_known = true;
    d->calls.iteration = of->iteration == NULL ? "" : of->iteration;
    d->calls.n_calls = of->end - of->first;
    return find_calls(of->bytes + of->first, d->calls.n_calls, in, &d->calls);
}

static int by_rank(const void *a, const void *b)
{
    const int32_t x = ((const me_diff_pair *)a)->rank;
    const int32_t y = ((const me_diff_pair *)b)->rank;
    return (x > y) - (x < y);
}

/** Nothing can be compared. */
static me_status fail_unpaired(const me_profile *a, const me_profile *b,
                               int32_t asked, me_diag *diag)
{
    if (asked >= 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--rank %d: not both of %s and %s have it", (int)asked,
                       a->name, b->name);
    }
    if (a->n_ranks == 1 && b->n_ranks == 1) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%s is of rank %d, and %s of rank %d: what is compared "
                       "is of the same rank",
                       a->name, (int)a->ranks[0].rank, b->name,
                       (int)b->ranks[0].rank);
    }
    return me_fail(diag, ME_ERR_CONFIG, "%s and %s have no rank in common",
                   a->name, b->name);
}

me_status me_diff_init(const me_profile *a, const me_profile *b, int32_t rank,
                       me_diag *diag, me_diff *diff_out)
{
    me_diff d = {.a = a, .b = b};
    d.pairs = me_alloc(a->n_ranks, sizeof *d.pairs, "diff.pairs");
    if (d.pairs == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory to compare");
    }
    if (is_unknown(a) || is_unknown(b)) {
        pair_unknown(&d, rank);
    } else {
        pair_known(&d, rank);
    }
    if (d.n_pairs == 0) {
        me_diff_fini(&d);
        return fail_unpaired(a, b, rank, diag);
    }
    qsort(d.pairs, d.n_pairs, sizeof *d.pairs, by_rank);
    if (compare_calls(&d) != ME_OK) {
        me_diff_fini(&d);
        return me_fail(diag, ME_ERR_NOMEM, "no memory to compare");
    }
    *diff_out = d;
    return ME_OK;
}

void me_diff_fini(me_diff *diff)
{
    me_free(diff->pairs);
    diff->pairs = NULL;
}

int64_t me_part_change(const me_part_pair *pair)
{
    return (int64_t)((pair->b == NULL ? 0 : pair->b->bytes) -
                     (pair->a == NULL ? 0 : pair->a->bytes));
}

const me_part *me_part_named(const me_part_pair *pair)
{
    return pair->a == NULL || me_part_change(pair) > 0 ? pair->b : pair->a;
}

static int by_change(const void *a, const void *b)
{
    const int64_t x = llabs(me_part_change(a));
    const int64_t y = llabs(me_part_change(b));
    return x != y ? (x < y) - (x > y)
                  : strcmp(me_part_named(a)->name, me_part_named(b)->name);
}

me_status me_diff_parts(const me_diff_pair *pair, me_division division,
                        me_part_pair **pairs_out, uint32_t *n_out)
{
    const me_part_list *a = &pair->a->divisions[division];
    const me_part_list *b = &pair->b->divisions[division];
    me_part_pair *pairs =
        me_alloc((size_t)a->count + b->count, sizeof *pairs, "diff.parts");
    uint32_t n = 0;
    if (pairs == NULL) {
        return ME_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < a->count; i++) {
        pairs[n] = (me_part_pair){&a->parts[i], me_part_find(b, &a->parts[i])};
        n += me_part_change(&pairs[n]) != 0 ? 1 : 0;
    }
    for (uint32_t i = 0; i < b->count; i++) {
        if (me_part_find(a, &b->parts[i]) == NULL && b->parts[i].bytes > 0) {
            pairs[n++] = (me_part_pair){NULL, &b->parts[i]};
        }
    }
    qsort(pairs, n, sizeof *pairs, by_change);
    *pairs_out = pairs;
    *n_out = n;
    return ME_OK;
}

const me_diff_pair *me_diff_worst(const me_diff *diff)
{
    const me_diff_pair *worst = &diff->pairs[0];
    for (uint32_t i = 1; i < diff->n_pairs; i++) {
        if (largest_of(diff, &diff->pairs[i]) > largest_of(diff, worst)) {
            worst = &diff->pairs[i];
        }
    }
    return worst;
}
