/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/routing.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

uint64_t *me_routing_row_counts(const me_routing *routing,
                                const me_routing_row *row)
{
    return routing->counts + (size_t)row->number * routing->n_experts;
}

static int compare_numbers(int32_t a, int32_t b)
{
    return (a > b) - (a < b);
}

int me_routing_compare(const void *x, const void *y)
{
    const me_routing_place *a = x;
    const me_routing_place *b = y;
    int order = compare_numbers(a->rank, b->rank);
    order = order != 0 ? order : compare_numbers(a->iteration, b->iteration);
    order = order != 0 ? order : compare_numbers(a->layer, b->layer);
    return order != 0 ? order : compare_numbers(a->microbatch, b->microbatch);
}

void me_routing_fini(me_routing *routing)
{
    me_free(routing->rows);
    me_free(routing->ranks);
    me_free(routing->counts);
    me_free(routing->sent);
    *routing = (me_routing){.imbalance = 1};
}

static int compare_ranks(const void *x, const void *y)
{
    const me_routing_rank *a = x;
    const me_routing_rank *b = y;
    return compare_numbers(a->rank, b->rank);
}

/** Where the rank's rows are; NULL: it has none. Files mostly name one rank after
 *  the other. */
static const me_routing_rank *find_rank(const me_routing *routing, int32_t rank)
{
    if (routing->n_ranks == 0) {
        return NULL;
    }
    const int64_t guess = (int64_t)rank - routing->ranks[0].rank;
    if (guess >= 0 && guess < routing->n_ranks &&
        routing->ranks[guess].rank == rank) {
        return &routing->ranks[guess];
    }
    const me_routing_rank key = {.rank = rank};
    return bsearch(&key, routing->ranks, routing->n_ranks, sizeof key,
                   compare_ranks);
}

/** Where a row is among those of its rank if there is one for each iteration,
 *  layer and micro-batch between the first and the last; else any number, as
 *  sums of unsigned numbers are that wrap. */
static uint64_t guess_row(const me_routing_place *first,
                          const me_routing_place *last,
                          const me_routing_place *at)
{
    const uint64_t layers = (uint64_t)last->layer - (uint64_t)first->layer + 1;
    const uint64_t microbatches =
        (uint64_t)last->microbatch - (uint64_t)first->microbatch + 1;
    const uint64_t iteration =
        (uint64_t)at->iteration - (uint64_t)first->iteration;
    const uint64_t layer = (uint64_t)at->layer - (uint64_t)first->layer;
    return (iteration * layers + layer) * microbatches +
           (uint64_t)at->microbatch - (uint64_t)first->microbatch;
}

const me_routing_row *me_routing_find(const me_routing *routing,
                                      const me_routing_place *at)
{
    const me_routing_rank *rank = find_rank(routing, at->rank);
    if (rank == NULL) {
        return NULL;
    }
    const me_routing_row *rows = routing->rows + rank[0].begin;
    const uint32_t n = rank[1].begin - rank[0].begin;
    const uint64_t guess = guess_row(&rows[0].at, &rows[n - 1].at, at);
    if (guess < n && me_routing_compare(&rows[guess].at, at) == 0) {
        return &rows[guess];
    }
    const me_routing_row key = {.at = *at};
    return bsearch(&key, rows, n, sizeof key, me_routing_compare);
}

bool me_routing_names(const me_routing *routing, int32_t rank)
{
    return find_rank(routing, rank) != NULL;
}

bool me_routing_is_same(const me_routing *routing, int32_t rank, int32_t other)
{
    const me_routing_rank *a = find_rank(routing, rank);
    const me_routing_rank *b = find_rank(routing, other);
    if (a == NULL || b == NULL) {
        return a == b;
    }
    const uint32_t n = a[1].begin - a[0].begin;
    const uint64_t *sent = routing->sent;
    bool is_same = n == b[1].begin - b[0].begin;
    for (uint32_t i = 0; i < n && is_same; i++) {
        const me_routing_row *x = &routing->rows[a[0].begin + i];
        const me_routing_row *y = &routing->rows[b[0].begin + i];
        me_routing_place place = y->at;
        place.rank = rank;
        is_same = me_routing_compare(&x->at, &place) == 0 &&
                  (sent == NULL || sent[x->number] == sent[y->number]) &&
                  memcmp(me_routing_row_counts(routing, x),
                         me_routing_row_counts(routing, y),
                         routing->n_experts * sizeof *routing->counts) == 0;
    }
    return is_same;
}

bool me_routing_has(const me_routing *routing, const me_routing_place *at)
{
    return routing->n_rows == 0 || me_routing_find(routing, at) != NULL ||
           (routing->is_alone && !me_routing_names(routing, at->rank));
}

bool me_routing_is_uniform(const me_routing *routing)
{
    return routing->n_rows == 0 && routing->n_skewed == 0;
}

bool me_routing_is_steady(const me_routing *routing)
{
    return routing->n_rows == 0;
}

/** Rows of an expert rank's experts, of a skewed routing. */
static const uint64_t *skewed_counts(const me_routing *routing,
                                     const me_routing_place *at,
                                     uint32_t n_experts)
{
    return routing->counts + (size_t)at->layer * routing->n_skewed +
           (size_t)at->member * n_experts;
}

uint64_t me_routing_share(uint64_t whole, uint64_t parts, uint64_t index)
{
    return whole / parts + (index < whole % parts ? 1 : 0);
}

static uint64_t received(const me_routing *routing, const me_routing_row *row,
                         uint64_t balanced)
{
    if (row == NULL) {
        return (uint64_t)((double)balanced * routing->imbalance);
    }
    uint64_t sum = 0;
    for (uint32_t i = 0; i < routing->n_experts; i++) {
        sum += me_routing_row_counts(routing, row)[i];
    }
    return sum;
}

uint64_t me_routing_received(const me_routing *routing,
                             const me_routing_place *at, uint64_t balanced)
{
    return received(routing, me_routing_find(routing, at), balanced);
}

bool me_routing_sent(const me_routing *routing, const me_routing_place *at,
                     uint64_t *rows_out)
{
    const me_routing_row *row =
        routing->sent == NULL ? NULL : me_routing_find(routing, at);
    if (row != NULL) {
        *rows_out = routing->sent[row->number];
    }
    return row != NULL;
}

void me_routing_counts(const me_routing *routing, const me_routing_place *at,
                       uint64_t balanced, uint32_t n_experts,
                       uint64_t *counts_out)
{
    if (routing->n_skewed > 0) {
        memcpy(counts_out, skewed_counts(routing, at, n_experts),
               n_experts * sizeof *counts_out);
        return;
    }
    const me_routing_row *row = me_routing_find(routing, at);
    if (row != NULL) {
        ME_ASSERT(n_experts == routing->n_experts);
        memcpy(counts_out, me_routing_row_counts(routing, row),
               n_experts * sizeof *counts_out);
        return;
    }
    const uint64_t sum = received(routing, NULL, balanced);
    for (uint32_t i = 0; i < n_experts; i++) {
        counts_out[i] = me_routing_share(sum, n_experts, i);
    }
}
