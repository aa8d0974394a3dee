/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/fsdp_buckets.h"

#include "base/alloc.h"
#include "base/size.h"

/** What a layout is made with: lists of as many places as parameters. */
typedef struct layout {
    const me_fsdp_bucket_param *params;
    uint32_t n_params;
    uint64_t bucket_numel;
    me_fsdp_buckets *out;
    uint32_t *list;    /**< parameters of the bucket that is being made */
    uint32_t *regular; /**< of these, as large as a chunk */
    uint32_t *small;   /**< of these, smaller */
    bool *is_taken;
} layout;

static uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
    while (b > 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/** Largest rows first; equal ones stay in their order. */
static void sort_by_rows(const layout *l, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        const uint32_t moved = l->list[i];
        uint32_t k = i;
        while (k > 0 && l->params[l->list[k - 1]].row_numel <
                            l->params[moved].row_numel) {
            l->list[k] = l->list[k - 1];
            k--;
        }
        l->list[k] = moved;
    }
}

/** What all rows of parameters that are as large as it divide. */
static uint64_t chunk_factor(const layout *l, uint32_t count)
{
    uint64_t factor = l->params[l->list[0]].row_numel;
    for (uint32_t i = 0; i < count; i++) {
        const me_fsdp_bucket_param *p = &l->params[l->list[i]];
        const bool fits =
            p->row_numel == factor ||
            (factor % p->row_numel == 0 && p->numel % factor == 0) ||
            p->numel < factor;
        if (!fits) {
            factor = me_size_mul(
                factor / greatest_divisor(factor, p->row_numel), p->row_numel);
        }
    }
    return factor;
}

static void place(me_fsdp_item *items, uint32_t place_of, uint32_t param,
                  uint64_t start, uint64_t numel)
{
    items[place_of] =
        (me_fsdp_item){.param = param, .start = start, .numel = numel};
}

/** The place of a parameter among those of the bucket. */
static uint32_t place_of(const layout *l, uint32_t param)
{
    uint32_t i = 0;
    while (l->list[i] != param) {
        i++;
    }
    return i;
}

static void remove_at(uint32_t *list, uint32_t *count, uint32_t index)
{
    (*count)--;
    for (uint32_t i = index; i < *count; i++) {
        list[i] = list[i + 1];
    }
}

/** A gap behind a parameter that ends inside of a chunk. */
typedef struct gap {
    uint64_t start;
    uint64_t space;
} gap;

/** The first parameter whose own rest fits into the chunk where the one before
 *  ends: it ends there. @param factor  elements of a chunk
 *  @return elements of its whole chunks, behind it */
static uint64_t share_chunk(const layout *l, me_fsdp_item *items,
                            uint64_t factor, uint32_t *n_regular, gap *g)
{
    const uint64_t chunk_end = g->start + g->space;
    for (uint32_t i = 0; i < *n_regular; i++) {
        const uint32_t param = l->regular[i];
        const uint64_t numel = l->params[param].numel;
        const uint64_t other = numel % factor;
        if (other != 0 && other <= g->space) {
            place(items, place_of(l, param), param, chunk_end - other, numel);
            remove_at(l->regular, n_regular, i);
            g->space -= other;
            return numel - other;
        }
    }
    return 0;
}

static void fill_gap(const layout *l, me_fsdp_item *items, uint32_t *n_small,
                     gap g)
{
    for (uint32_t i = 0; i < *n_small;) {
        const uint32_t param = l->small[i];
        const uint64_t numel = l->params[param].numel;
        if (numel > g.space) {
            i++;
            continue;
        }
        place(items, place_of(l, param), param, g.start, numel);
        g.start += numel;
        g.space -= numel;
        remove_at(l->small, n_small, i);
    }
}

/** Where the parameters of a bucket lie. @return elements up to the last end */
static uint64_t lay_out(const layout *l, uint32_t count, uint64_t factor,
                        me_fsdp_item *items)
{
    uint32_t n_regular = 0;
    uint32_t n_small = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (l->params[l->list[i]].numel < factor) {
            l->small[n_small++] = l->list[i];
        } else {
            l->regular[n_regular++] = l->list[i];
        }
    }
    uint64_t end = 0;
    while (n_regular > 0) {
        const uint32_t param = l->regular[0];
        const uint64_t numel = l->params[param].numel;
        const uint64_t rest = numel % factor;
        remove_at(l->regular, &n_regular, 0);
        place(items, place_of(l, param), param, end, numel);
        gap g = {.start = end + numel, .space = factor - rest};
        end = me_size_add(end, numel);
        if (rest != 0) {
            end += g.space;
            end += share_chunk(l, items, factor, &n_regular, &g);
            fill_gap(l, items, &n_small, g);
        }
    }
    for (uint32_t i = 0; i < n_small; i++) {
        const uint32_t param = l->small[i];
        place(items, place_of(l, param), param, end, l->params[param].numel);
        end = me_size_add(end, l->params[param].numel);
    }
    return end;
}

/** The parameters in `list` are a bucket. */
static void close_bucket(layout *l, uint32_t count)
{
    me_fsdp_buckets *out = l->out;
    if (count == 0) {
        return;
    }
    sort_by_rows(l, count);
    const me_fsdp_bucket_param *first = &l->params[l->list[0]];
    me_fsdp_bucket *b = &out->buckets[out->count++];
    *b = (me_fsdp_bucket){.unit = first->unit,
                          .kind = first->kind,
                          .chunk_factor = chunk_factor(l, count),
                          .first_item = out->n_items,
                          .n_items = count};
    b->unpadded_numel =
        lay_out(l, count, b->chunk_factor, out->items + out->n_items);
    out->n_items += count;
}

/** All parameters of one unit and kind, in buckets. */
static void divide_group(layout *l, int32_t unit, uint32_t kind)
{
    uint32_t count = 0;
    uint64_t numel = 0;
    for (uint32_t i = 0; i < l->n_params; i++) {
        const me_fsdp_bucket_param *p = &l->params[i];
        if (p->unit != unit || p->kind != kind) {
            continue;
        }
        l->is_taken[i] = true;
        if (p->is_shared_embedding) {
            close_bucket(l, count);
            count = 0;
            numel = 0;
        }
        l->list[count++] = i;
        numel = me_size_add(numel, p->numel);
        const bool is_full = unit == ME_NO_FSDP_UNIT && l->bucket_numel > 0 &&
                             numel >= l->bucket_numel;
        if (is_full || p->is_shared_embedding) {
            close_bucket(l, count);
            count = 0;
            numel = 0;
        }
    }
    close_bucket(l, count);
}

static bool begin(layout *l)
{
    const size_t n = (size_t)l->n_params + 1;
    l->out = me_alloc(1, sizeof *l->out, "fsdp.buckets");
    l->list = me_alloc(n, sizeof *l->list, "fsdp.list");
    l->regular = me_alloc(n, sizeof *l->regular, "fsdp.list");
    l->small = me_alloc(n, sizeof *l->small, "fsdp.list");
    l->is_taken = me_alloc(n, sizeof *l->is_taken, "fsdp.list");
    if (l->out != NULL) {
        l->out->buckets = me_alloc(n, sizeof *l->out->buckets, "fsdp.buckets");
        l->out->items = me_alloc(n, sizeof *l->out->items, "fsdp.buckets");
    }
    return l->out != NULL && l->out->buckets != NULL && l->out->items != NULL &&
           l->list != NULL && l->regular != NULL && l->small != NULL &&
           l->is_taken != NULL;
}

me_status me_fsdp_buckets_create(const me_fsdp_bucket_param *params,
                                 uint32_t n_params, uint64_t bucket_numel,
                                 me_diag *diag, me_fsdp_buckets **buckets_out)
{
    layout l = {
        .params = params, .n_params = n_params, .bucket_numel = bucket_numel};
    const bool has_memory = begin(&l);
    for (uint32_t i = 0; has_memory && i < n_params; i++) {
        if (!l.is_taken[i]) {
            divide_group(&l, params[i].unit, params[i].kind);
        }
    }
    me_free(l.list);
    me_free(l.regular);
    me_free(l.small);
    me_free(l.is_taken);
    if (!has_memory) {
        me_fsdp_buckets_destroy(l.out);
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for buckets");
    }
    *buckets_out = l.out;
    return ME_OK;
}

void me_fsdp_buckets_destroy(me_fsdp_buckets *buckets)
{
    if (buckets != NULL) {
        me_free(buckets->buckets);
        me_free(buckets->items);
        me_free(buckets);
    }
}

uint64_t me_fsdp_bucket_numel(const me_fsdp_bucket *bucket, uint64_t ranks,
                              bool is_padded)
{
    return is_padded ? me_round_up(bucket->unpadded_numel,
                                   me_size_mul(ranks, bucket->chunk_factor))
                     : bucket->unpadded_numel;
}

me_fsdp_slice me_fsdp_slice_of(const me_fsdp_item *item, uint64_t numel,
                               uint64_t ranks, uint64_t rank)
{
    const uint64_t part = numel / ranks;
    const uint64_t start = me_max_u64(item->start, part * rank);
    const uint64_t end =
        me_min_u64(item->start + item->numel, part * (rank + 1));
    if (start >= end) {
        return (me_fsdp_slice){0, 0};
    }
    return (me_fsdp_slice){start - item->start, end - start};
}
