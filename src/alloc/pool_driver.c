/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the driver puts segments. Addresses decide which of two equal blocks is
 * used first, and with that fragmentation. The rule was read off the addresses
 * that several thousand calls of cudaMalloc, cudaFree and cuMemAddressReserve
 * gave on H200 and H100 (driver 580), which follow it without exception:
 *
 * - Addresses come in chunks of a multiple of 32 MiB. A request is served from
 *   the newest chunk that has room, there from the smallest hole.
 * - A new chunk lies below all others, or at the top of the highest gap that is
 *   32 MiB larger than it (to align it). An empty chunk leaves a gap.
 * - Memory that is mapped (cuMemMap, as NCCL does) uses the same holes, but its
 *   new chunks ascend, far below.
 * - The kernels' local memory moves when a kernel needs more: the new one is
 *   taken, then the old one goes back, and segments fill the hole.
 *
 * What CUDA and NCCL take comes through me_pool_take(); device_addresses.c says
 * when. */
#include "alloc/pool_internal.h"
#include "base/alloc.h"

#include <stddef.h>
#include <string.h>

#define CHUNK   (32 * MIB)
#define GRANULE (2 * MIB)

/* What a process has once PyTorch has set CUDA up, read off the first addresses
 * that it gets: two pieces of the context, and local memory. */
#define CONTEXT        (8 * MIB)
#define CONTEXT_BESIDE (64 * MIB)
#define LOCAL_MEMORY   (412 * MIB)
#define LOCAL_BESIDE   (4 * MIB)

/* Below 2^53, so that viewers that count in doubles show them exactly. */
#define HIGHEST_CHUNK      (UINT64_C(1) << 52)
#define LOWEST_RESERVATION HIGHEST_CHUNK
#define LOWEST_MAPPED      (UINT64_C(1) << 34)

enum {
    FIRST_LEAVES = 64
};

void me_pool_driver_init(driver *d)
{
    d->floor = HIGHEST_CHUNK;
    d->mapped_next = LOWEST_MAPPED;
    d->reserve_next = LOWEST_RESERVATION;
}

void me_pool_driver_fini(driver *d)
{
    me_free(d->largest);
    me_free(d->gaps);
    d->largest = NULL;
    d->gaps = NULL;
}

static void set_largest(driver *d, uint32_t chunk, uint64_t bytes)
{
    size_t i = (size_t)d->n_leaves + chunk;
    d->largest[i] = bytes;
    for (i /= 2; i > 0; i /= 2) {
        d->largest[i] = me_max_u64(d->largest[2 * i], d->largest[2 * i + 1]);
    }
}

static void update_largest(me_pool *pool, uint32_t chunk)
{
    driver *d = &pool->driver;
    const uint32_t after =
        me_pool_set_lower_bound(pool, &d->holes, chunk + 1, 0, 0);
    const uint32_t last = me_pool_set_before(pool, &d->holes, after);
    const bool is_of_chunk = last != NIL && at(pool, last)->stream == chunk;
    set_largest(d, chunk, is_of_chunk ? at(pool, last)->size : 0);
}

/** Renumber the chunks so that the dead ones are gone; their order stays. */
static me_status renumber(me_pool *pool)
{
    driver *d = &pool->driver;
    uint32_t *number =
        me_alloc(d->n_chunks, sizeof *number, "alloc.chunk_numbers");
    if (number == NULL) {
        return ME_ERR_NOMEM;
    }
    for (uint32_t i = 1; i < pool->n_blocks; i++) {
        if (at(pool, i)->state >= BLOCK_EXTENT) {
            number[at(pool, i)->stream] = 1;
        }
    }
    uint32_t n_kept = 0;
    for (uint32_t i = 0; i < d->n_chunks; i++) {
        const bool is_kept = number[i] != 0;
        number[i] = n_kept;
        n_kept += is_kept ? 1 : 0;
    }
    for (uint32_t i = 1; i < pool->n_blocks; i++) {
        if (at(pool, i)->state >= BLOCK_EXTENT) {
            at(pool, i)->stream = number[at(pool, i)->stream];
        }
    }
    me_free(number);
    memset(d->largest, 0, 2 * (size_t)d->n_leaves * sizeof *d->largest);
    d->n_chunks = n_kept;
    for (uint32_t i = 0; i < n_kept; i++) {
        update_largest(pool, i);
    }
    return ME_OK;
}

static me_status make_leaf(me_pool *pool)
{
    driver *d = &pool->driver;
    if (d->n_chunks < d->n_leaves) {
        return ME_OK;
    }
    if (d->n_leaves > 0 && d->n_live <= d->n_chunks / 2) {
        return renumber(pool);
    }
    const uint32_t n = d->n_leaves == 0 ? FIRST_LEAVES : d->n_leaves * 2;
    uint64_t *heap = me_alloc(2 * (size_t)n, sizeof *heap, "alloc.chunks");
    if (heap == NULL) {
        return ME_ERR_NOMEM;
    }
    uint64_t *old = d->largest;
    const uint32_t n_old = d->n_leaves;
    d->largest = heap;
    d->n_leaves = n;
    for (uint32_t i = 0; i < d->n_chunks; i++) {
        heap[n + i] = old[n_old + i];
    }
    for (size_t i = n - 1; i > 0; i--) {
        heap[i] = me_max_u64(heap[2 * i], heap[2 * i + 1]);
    }
    me_free(old);
    return ME_OK;
}

/** Room to remember the gap of one more chunk. */
static me_status make_gap(driver *d)
{
    if (d->n_gaps + d->n_live < d->n_gap_capacity) {
        return ME_OK;
    }
    gap *gaps = me_grow(d->gaps, d->n_gap_capacity, &d->n_gap_capacity,
                        sizeof *gaps, "alloc.gaps");
    if (gaps == NULL) {
        return ME_ERR_NOMEM;
    }
    d->gaps = gaps;
    return ME_OK;
}

/** A chunk is empty and goes; its addresses join the gaps beside it. */
static void leave_gap(driver *d, uint64_t address, uint64_t size)
{
    gap g = {address, size};
    for (uint32_t i = d->n_gaps; i-- > 0;) {
        const gap other = d->gaps[i];
        if (other.address + other.size != g.address &&
            g.address + g.size != other.address) {
            continue;
        }
        g = (gap){me_min_u64(g.address, other.address), g.size + other.size};
        d->gaps[i] = d->gaps[--d->n_gaps];
    }
    if (g.address == d->floor) {
        d->floor += g.size;
    } else {
        d->gaps[d->n_gaps++] = g; // make_gap() has made room
    }
}

/** Where a chunk goes; 0: nowhere. */
static uint64_t find_addresses(driver *d, uint64_t size, bool is_mapped)
{
    if (size >= d->floor - d->mapped_next) {
        return 0;
    }
    if (is_mapped) {
        d->mapped_next += size;
        return d->mapped_next - size;
    }
    gap *best = NULL;
    for (uint32_t i = 0; i < d->n_gaps; i++) {
        gap *g = &d->gaps[i];
        if (g->size >= size + CHUNK &&
            (best == NULL || g->address > best->address)) {
            best = g;
        }
    }
    if (best == NULL) {
        d->floor -= size;
        return d->floor;
    }
    best->size -= size;
    return best->address + best->size;
}

/** A new chunk, one hole; the hole. */
static me_status add_chunk(me_pool *pool, uint64_t bytes, bool is_mapped,
                           uint32_t *hole_out)
{
    driver *d = &pool->driver;
    const uint64_t size = me_round_up(bytes, CHUNK);
    me_status status = make_leaf(pool);
    if (status == ME_OK) {
        status = make_gap(d);
    }
    if (status == ME_OK) {
        status = me_pool_store_reserve(pool, 2);
    }
    if (status != ME_OK) {
        return status;
    }
    const uint64_t address = find_addresses(d, size, is_mapped);
    if (address == 0) {
        return ME_ERR_OVERFLOW;
    }
    const uint32_t hole = me_pool_record(pool);
    block *b = at(pool, hole);
    b->stream = d->n_chunks++;
    b->size = size;
    b->address = address;
    b->state = BLOCK_HOLE;
    d->n_live++;
    me_pool_set_insert(pool, &d->holes, hole);
    *hole_out = hole;
    return ME_OK;
}

/** Take the lower @p bytes of a hole; there is room for a record. */
static uint32_t carve(me_pool *pool, uint32_t hole, uint64_t bytes)
{
    driver *d = &pool->driver;
    block *h = at(pool, hole);
    const uint32_t chunk = (uint32_t)h->stream;
    uint32_t taken = hole;
    me_pool_set_erase(pool, &d->holes, hole);
    if (h->size > bytes) {
        taken = me_pool_record(pool);
        block *b = at(pool, taken);
        b->stream = h->stream;
        b->size = bytes;
        b->address = h->address;
        b->prev = h->prev;
        b->next = hole;
        if (b->prev != NIL) {
            at(pool, b->prev)->next = taken;
        }
        h->prev = taken;
        h->address += bytes;
        h->size -= bytes;
        me_pool_set_insert(pool, &d->holes, hole);
    }
    at(pool, taken)->state = BLOCK_EXTENT;
    update_largest(pool, chunk);
    return taken;
}

/** The smallest hole of the newest chunk that has one; NIL: no chunk has. */
static uint32_t find_hole(const me_pool *pool, uint64_t bytes)
{
    const driver *d = &pool->driver;
    if (d->n_chunks == 0 || d->largest[1] < bytes) {
        return NIL;
    }
    size_t i = 1;
    while (i < d->n_leaves) {
        i = 2 * i + (d->largest[2 * i + 1] >= bytes ? 1 : 0);
    }
    return me_pool_set_lower_bound(pool, &d->holes, i - d->n_leaves, bytes, 0);
}

/** An extent of the driver's, from a hole or a new chunk. */
static me_status take(me_pool *pool, uint64_t bytes, bool is_mapped,
                      uint32_t *extent_out)
{
    uint32_t hole = find_hole(pool, bytes);
    me_status status = ME_OK;
    if (hole == NIL) {
        status = add_chunk(pool, bytes, is_mapped, &hole);
    }
    if (status == ME_OK) {
        status = me_pool_store_reserve(pool, 1);
    }
    if (status == ME_OK) {
        *extent_out = carve(pool, hole, bytes);
    }
    return status;
}

/** What is there before the first request. */
static me_status begin(me_pool *pool)
{
    driver *d = &pool->driver;
    uint32_t extent = NIL;
    if (d->n_chunks > 0) {
        return ME_OK;
    }
    me_status status = take(pool, CONTEXT, false, &extent);
    if (status == ME_OK) {
        status = take(pool, CONTEXT_BESIDE, false, &extent);
    }
    if (status == ME_OK) {
        status = take(pool, LOCAL_MEMORY + LOCAL_BESIDE / 2, false,
                      &d->local_memory);
    }
    if (status == ME_OK) {
        status = take(pool, LOCAL_BESIDE / 2, false, &extent);
    }
    d->local_bytes = LOCAL_MEMORY;
    return status;
}

me_status me_pool_driver_place(me_pool *pool, uint64_t bytes,
                               uint64_t *address_out, uint32_t *extent_out)
{
    *extent_out = NIL;
    if (pool->options.place != NULL) {
        const bool is_placed =
            pool->options.place(pool->options.place_self, bytes, address_out);
        return is_placed ? ME_OK : ME_ERR_CAPACITY;
    }
    me_status status = begin(pool);
    if (status == ME_OK) {
        status = take(pool, bytes, false, extent_out);
    }
    if (status == ME_OK) {
        *address_out = at(pool, *extent_out)->address;
    }
    return status;
}

/** Let a hole swallow a neighbouring hole. */
static void swallow(me_pool *pool, uint32_t into, uint32_t from)
{
    if (from == NIL || at(pool, from)->state != BLOCK_HOLE) {
        return;
    }
    block *b = at(pool, into);
    const block *h = at(pool, from);
    me_pool_set_erase(pool, &pool->driver.holes, from);
    b->size += h->size;
    if (b->prev == from) {
        b->address = h->address;
        b->prev = h->prev;
        if (b->prev != NIL) {
            at(pool, b->prev)->next = into;
        }
    } else {
        b->next = h->next;
        if (b->next != NIL) {
            at(pool, b->next)->prev = into;
        }
    }
    me_pool_record_drop(pool, from);
}

void me_pool_driver_free(me_pool *pool, uint32_t extent)
{
    if (extent == NIL) {
        return;
    }
    block *b = at(pool, extent);
    const uint32_t chunk = (uint32_t)b->stream;
    b->state = BLOCK_HOLE;
    swallow(pool, extent, b->prev);
    swallow(pool, extent, b->next);
    if (is_split(b)) {
        me_pool_set_insert(pool, &pool->driver.holes, extent);
    } else {
        if (b->address >= pool->driver.floor) {
            leave_gap(&pool->driver, b->address, b->size);
        }
        me_pool_record_drop(pool, extent);
        pool->driver.n_live--;
    }
    update_largest(pool, chunk);
}

static me_status move_local_memory(me_pool *pool, uint64_t bytes)
{
    driver *d = &pool->driver;
    if (bytes <= d->local_bytes) {
        return ME_OK;
    }
    uint32_t extent = NIL;
    const me_status status = take(pool, bytes, false, &extent);
    if (status == ME_OK) {
        me_pool_driver_free(pool, d->local_memory);
        d->local_memory = extent;
        d->local_bytes = bytes;
    }
    return status;
}

me_status me_pool_take(me_pool *pool, me_pool_taker taker, uint64_t bytes)
{
    if (pool->options.place != NULL || bytes == 0) {
        return ME_OK;
    }
    uint32_t extent = NIL;
    const me_status status = begin(pool);
    if (status != ME_OK) {
        return status;
    }
    return taker == ME_POOL_TAKER_LOCAL_MEMORY
               ? move_local_memory(pool, LOCAL_MEMORY + bytes)
               : take(pool, me_round_up(bytes, GRANULE),
                      taker == ME_POOL_TAKER_MAPPED, &extent);
}

me_status me_pool_place(me_pool *pool, uint64_t bytes, uint64_t *address_out)
{
    uint32_t extent = NIL;
    return me_pool_driver_place(pool, bytes, address_out, &extent);
}

me_status me_pool_driver_reserve(me_pool *pool, uint64_t bytes,
                                 uint64_t *address_out)
{
    if (pool->options.place != NULL) {
        const bool is_placed =
            pool->options.place(pool->options.place_self, bytes, address_out);
        return is_placed ? ME_OK : ME_ERR_CAPACITY;
    }
    const uint64_t end = me_size_add(pool->driver.reserve_next, bytes);
    if (!me_size_is_valid(end) || end > INT64_MAX) {
        return ME_ERR_OVERFLOW;
    }
    *address_out = pool->driver.reserve_next;
    pool->driver.reserve_next = end;
    return ME_OK;
}
