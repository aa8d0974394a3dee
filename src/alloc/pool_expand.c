/* SPDX-License-Identifier: BSD-3-Clause */
/* Expandable segments: one range of addresses per pool and stream that memory
 * is mapped into page by page, so that blocks can grow together. */
#include "alloc/pool_internal.h"
#include "base/alloc.h"

/* Sizes the range when nobody says how large the card is. */
#define UNKNOWN_DEVICE (UINT64_C(1) << 40)

static bool is_available(const block *b)
{
    return b->state == BLOCK_FREE || b->state == BLOCK_UNMAPPED;
}

static bool is_spanning(const me_pool *pool, uint32_t index, uint64_t size)
{
    uint64_t bytes = 0;
    for (uint32_t i = index; i != NIL && bytes < size; i = at(pool, i)->next) {
        if (!is_available(at(pool, i))) {
            return false;
        }
        bytes += at(pool, i)->size;
    }
    return bytes >= size;
}

/** The lowest place where mapping more makes room for the request. */
static uint32_t find_place(const me_pool *pool, const request *r)
{
    for (uint32_t i = me_pool_set_lower_bound(pool, &pool->unmapped[r->slot],
                                              r->stream, 0, 0);
         i != NIL && at(pool, i)->stream == r->stream;
         i = me_pool_set_next(pool, i)) {
        const uint32_t before = at(pool, i)->prev;
        const bool is_joining = before != NIL && is_available(at(pool, before));
        const uint32_t start = is_joining ? before : i;
        if (is_spanning(pool, start, r->size)) {
            return start;
        }
    }
    return NIL;
}

static me_status add_reservation(me_pool *pool, uint32_t *index_out)
{
    if (pool->unused_reservation != 0) {
        *index_out = pool->unused_reservation;
        pool->unused_reservation = pool->reservations[*index_out].next_unused;
        return ME_OK;
    }
    if (pool->n_reservations == pool->n_reservation_capacity) {
        reservation *grown = me_grow(pool->reservations, pool->n_reservations,
                                     &pool->n_reservation_capacity,
                                     sizeof *grown, "alloc.reservations");
        if (grown == NULL) {
            return ME_ERR_NOMEM;
        }
        pool->reservations = grown;
        pool->n_reservations += pool->n_reservations == 0 ? 1 : 0;
    }
    *index_out = pool->n_reservations++;
    return ME_OK;
}

static uint64_t device_bytes(const me_pool *pool)
{
    const me_pool_options *o = &pool->options;
    if (o->device_total_bytes != 0) {
        return o->device_total_bytes;
    }
    return o->capacity_bytes != 0 ? o->capacity_bytes : UNKNOWN_DEVICE;
}

/** A new segment, nothing of it mapped: 9/8 of the card, so that pages can be
 * moved to its end; more only where a request is larger than the card. */
static me_status reserve(me_pool *pool, const request *r, uint32_t *index_out)
{
    uint32_t number = 0;
    me_status status = add_reservation(pool, &number);
    if (status != ME_OK) {
        return status;
    }
    reservation *range = &pool->reservations[number];
    *range = (reservation){
        .page = r->slot == ME_POOL_SMALL
                    ? SMALL_SEGMENT
                    : pool->options.conf.large_segment_bytes,
        .next_unused = pool->unused_reservation,
    };
    pool->unused_reservation = number; // until all has gone well
    const uint64_t device = device_bytes(pool);
    range->size = me_round_up(
        me_max_u64(me_size_add(device, device / 8), r->size), range->page);
    status = me_pool_driver_reserve(pool, range->size, &range->base);
    if (status == ME_OK) {
        status = me_pool_store_reserve(pool, 1);
    }
    if (status != ME_OK) {
        return status;
    }
    pool->unused_reservation = range->next_unused;
    *index_out = me_pool_record(pool);
    block *b = at(pool, *index_out);
    b->stream = r->stream;
    b->size = range->size;
    b->address = range->base;
    b->placed_at = number;
    b->slot = (uint8_t)r->slot;
    b->is_expandable = true;
    b->state = BLOCK_UNMAPPED;
    me_pool_set_insert(pool, &pool->unmapped[b->slot], *index_out);
    return ME_OK;
}

/** A new record beside @p index, of the same segment. */
static uint32_t add_neighbour(me_pool *pool, uint32_t index, uint64_t address,
                              uint64_t size, bool is_before)
{
    const uint32_t added = me_pool_record(pool);
    block *b = at(pool, index);
    block *n = at(pool, added);
    n->stream = b->stream;
    n->size = size;
    n->address = address;
    n->placed_at = b->placed_at;
    n->slot = b->slot;
    n->is_expandable = true;
    n->prev = is_before ? b->prev : index;
    n->next = is_before ? index : b->next;
    if (n->prev != NIL) {
        at(pool, n->prev)->next = added;
    }
    if (n->next != NIL) {
        at(pool, n->next)->prev = added;
    }
    return added;
}

/** Map whole pages for at least @p size bytes of an unmapped block; it is a
 * cached block afterwards, merged with its free neighbours. */
static me_status map(me_pool *pool, uint32_t index, uint64_t size)
{
    const me_status status = me_pool_store_reserve(pool, 1);
    if (status != ME_OK) {
        return status;
    }
    block *b = at(pool, index);
    const uint64_t mapped =
        me_round_up(size, pool->reservations[b->placed_at].page);
    if (!has_room(pool, mapped)) {
        return ME_ERR_CAPACITY;
    }
    const uint64_t address = b->address;
    me_pool_set_erase(pool, &pool->unmapped[b->slot], index);
    b->state = BLOCK_FREE;
    if (mapped < b->size) {
        const uint32_t rest = add_neighbour(pool, index, address + mapped,
                                            b->size - mapped, false);
        b->size = mapped;
        at(pool, rest)->state = BLOCK_UNMAPPED;
        me_pool_set_insert(pool, &pool->unmapped[b->slot], rest);
    }
    (void)me_pool_merge(pool, index, b->prev);
    (void)me_pool_merge(pool, index, b->next);
    me_pool_cache(pool, index);
    stat_up(pool, ME_POOL_RESERVED_BYTES, b->slot, mapped);
    pool->private_bytes += is_private(b->stream) ? mapped : 0;
    pool->num_device_alloc++;
    me_pool_emit(pool, ME_POOL_TRACE_SEGMENT_MAP, address, mapped, b->stream);
    return ME_OK;
}

me_status me_pool_expand(me_pool *pool, request *r)
{
    uint32_t i = find_place(pool, r);
    me_status status = ME_OK;
    if (i == NIL) {
        status = reserve(pool, r, &i);
    }
    if (status == ME_OK && at(pool, i)->state == BLOCK_UNMAPPED) {
        status = map(pool, i, me_min_u64(at(pool, i)->size, r->size));
    }
    while (status == ME_OK && at(pool, i)->size < r->size) {
        const uint64_t missing = r->size - at(pool, i)->size;
        i = at(pool, i)->next;
        status = map(pool, i, me_min_u64(at(pool, i)->size, missing));
    }
    if (status == ME_OK) {
        me_pool_free_erase(pool, i);
        r->found = i;
    }
    return status;
}

/** The whole segment is unmapped: nothing of it remains. */
static void drop_segment(me_pool *pool, uint32_t index)
{
    block *b = at(pool, index);
    reservation *range = &pool->reservations[b->placed_at];
    range->next_unused = pool->unused_reservation;
    pool->unused_reservation = b->placed_at;
    me_pool_set_erase(pool, &pool->unmapped[b->slot], index);
    me_pool_record_drop(pool, index);
}

/** What lies before and after the pages that go stays cached. */
static void cut_out(me_pool *pool, uint32_t index, uint64_t begin, uint64_t end)
{
    block *b = at(pool, index);
    const uint64_t b_end = b->address + b->size;
    if (begin > b->address) {
        me_pool_cache(pool, add_neighbour(pool, index, b->address,
                                          begin - b->address, true));
    }
    if (end < b_end) {
        me_pool_cache(pool,
                      add_neighbour(pool, index, end, b_end - end, false));
    }
    b->address = begin;
    b->size = end - begin;
}

me_status me_pool_unmap(me_pool *pool, uint32_t index)
{
    const me_status status = me_pool_store_reserve(pool, 2);
    if (status != ME_OK) {
        return status;
    }
    block *b = at(pool, index);
    const reservation *range = &pool->reservations[b->placed_at];
    const uint64_t page = range->page;
    const uint64_t from = b->address - range->base;
    const uint64_t begin = range->base + me_round_up(from, page);
    const uint64_t end = range->base + (from + b->size) / page * page;
    if (begin >= end) {
        return ME_OK;
    }
    const uint64_t unmapped = end - begin;
    me_pool_free_erase(pool, index);
    cut_out(pool, index, begin, end);
    b->state = BLOCK_UNMAPPED;
    (void)me_pool_merge(pool, index, b->prev);
    (void)me_pool_merge(pool, index, b->next);
    me_pool_set_insert(pool, &pool->unmapped[b->slot], index);
    stat_down(pool, ME_POOL_RESERVED_BYTES, b->slot, unmapped);
    pool->num_device_free++;
    me_pool_emit(pool, ME_POOL_TRACE_SEGMENT_UNMAP, begin, unmapped, b->stream);
    if (!is_split(b)) {
        drop_segment(pool, index);
    }
    return ME_OK;
}
