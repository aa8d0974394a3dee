/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests: rounding, best fit, splitting. */
#include "alloc/pool_count.h"
#include "base/alloc.h"

enum {
    RECORDS_PER_CALL = 8, /* a request makes at most this many at a time */
    MAX_EQUAL = 256       /* blocks that somebody may choose among */
};

/** With expandable segments a block counts as large as it could grow. */
static uint64_t growable_size(const me_pool *pool, uint32_t index)
{
    const block *b = at(pool, index);
    const block *next = at(pool, b->next);
    const bool can_grow = b->next != NIL && next->state == BLOCK_UNMAPPED;
    return b->size + (can_grow ? next->size : 0);
}

static uint32_t skip_expandable(const me_pool *pool, uint32_t i,
                                uint64_t stream)
{
    if (pool->options.conf.expandable_segments) {
        uint32_t next = me_pool_free_next(pool, i);
        while (at(pool, i)->is_expandable && next != NIL &&
               at(pool, next)->stream == stream &&
               growable_size(pool, next) < growable_size(pool, i)) {
            i = next;
            next = me_pool_free_next(pool, i);
        }
        return i;
    }
    while (i != NIL && at(pool, i)->is_expandable &&
           at(pool, i)->stream == stream) {
        i = me_pool_free_next(pool, i);
    }
    return i;
}

/** Let somebody choose among the blocks that are as large as @p first. */
static uint32_t choose(const me_pool *pool, uint32_t first)
{
    uint64_t addresses[MAX_EQUAL];
    uint32_t indices[MAX_EQUAL];
    size_t n = 0;
    for (uint32_t i = first; i != NIL && n < MAX_EQUAL &&
                             at(pool, i)->size == at(pool, first)->size &&
                             at(pool, i)->stream == at(pool, first)->stream;
         i = me_pool_free_next(pool, i)) {
        indices[n] = i;
        addresses[n++] = at(pool, i)->address;
    }
    return indices[pool->options.choose(pool->options.choose_self, addresses,
                                        n)];
}

/** The smallest cached block that is large enough, at the lowest address. */
static bool find_free(me_pool *pool, request *r)
{
    const me_alloc_conf *conf = &pool->options.conf;
    pool->n_searches[r->slot]++;
    uint32_t i = me_pool_free_find(pool, r->slot, r->stream, r->size);
    if (i == NIL) {
        return false;
    }
    if (at(pool, i)->is_expandable) {
        i = skip_expandable(pool, i, r->stream);
        if (i == NIL || at(pool, i)->stream != r->stream) {
            return false;
        }
    }
    const uint64_t size = at(pool, i)->size;
    if (r->size < conf->max_split_bytes && size >= conf->max_split_bytes) {
        return false;
    }
    if (r->size >= conf->max_split_bytes &&
        size >= r->size + conf->max_non_split_rounding_bytes) {
        return false;
    }
    if (pool->options.choose != NULL) {
        i = choose(pool, i);
    }
    r->found = i;
    r->is_cached = true;
    return true;
}

static bool should_split(const me_pool *pool, const block *b, uint64_t size)
{
    const uint64_t remaining = b->size - size;
    if (b->slot == ME_POOL_SMALL || pool->options.conf.expandable_segments) {
        return remaining >= MIN_BLOCK;
    }
    return size < pool->options.conf.max_split_bytes &&
           remaining > SMALL_REQUEST;
}

/** The rest of a block that is split is cached. */
static void cache_rest(me_pool *pool, const request *r)
{
    block *rest = at(pool, r->found);
    const uint64_t address = rest->address + r->size;
    const uint64_t size = rest->size - r->size;
    if (r->is_cached) {
        rest->age_base = pool->n_searches[rest->slot];
        me_pool_free_resize(pool, r->found, address, size);
        return;
    }
    rest->address = address;
    rest->size = size;
    me_pool_cache(pool, r->found);
}

/** Cut what is asked for off the lower end of the block that was found. */
static uint32_t split(me_pool *pool, const request *r)
{
    const uint32_t lower = me_pool_record(pool);
    block *rest = at(pool, r->found);
    block *b = at(pool, lower);
    const bool was_split = is_split(rest);
    b->stream = rest->stream;
    b->size = r->size;
    b->address = rest->address;
    b->placed_at = rest->placed_at;
    b->slot = rest->slot;
    b->is_expandable = rest->is_expandable;
    b->prev = rest->prev;
    b->next = r->found;
    if (b->prev != NIL) {
        at(pool, b->prev)->next = lower;
    }
    rest->prev = lower;
    cache_rest(pool, r);
    count_split(pool, b, rest, was_split);
    return lower;
}

/** As a whole. */
static uint32_t take_found(me_pool *pool, const request *r)
{
    const block *b = at(pool, r->found);
    if (r->is_cached) {
        me_pool_free_erase(pool, r->found);
    }
    count_taken(pool, b);
    return r->found;
}

static uint32_t hand_out(me_pool *pool, const request *r, uint64_t bytes)
{
    const uint32_t index = should_split(pool, at(pool, r->found), r->size)
                               ? split(pool, r)
                               : take_found(pool, r);
    block *b = at(pool, index);
    b->state = BLOCK_ALLOCATED;
    b->requested = bytes;
    me_pool_emit(pool, ME_POOL_TRACE_ALLOC, b->address, bytes, b->stream);
    count_alloc(pool, b, bytes);
    return index;
}

/** Nothing cached fits: from the driver, at need after giving blocks back. */
static me_status get_new(me_pool *pool, request *r)
{
    if (pool->limit_bytes != UINT64_MAX &&
        pool->options.conf.garbage_collection_threshold > 0.0) {
        me_pool_collect_garbage(pool);
    }
    me_status status = me_pool_segment_take(pool, r, false);
    if (status == ME_ERR_CAPACITY && me_pool_release_available(pool, r)) {
        status = me_pool_segment_take(pool, r, false);
    }
    if (status != ME_ERR_CAPACITY || is_private(r->stream)) {
        return status;
    }
    status = me_pool_release_cached(pool);
    return status == ME_OK ? me_pool_segment_take(pool, r, true) : status;
}

static uint64_t device_free_bytes(const me_pool *pool)
{
    const me_pool_options *o = &pool->options;
    const uint64_t taken = me_size_add(reserved_bytes(pool), o->outside_bytes);
    if (o->device_total_bytes != 0) {
        return o->device_total_bytes - me_min_u64(taken, o->device_total_bytes);
    }
    return o->capacity_bytes -
           me_min_u64(reserved_bytes(pool), o->capacity_bytes);
}

static void note_oom(me_pool *pool, const request *r, uint64_t bytes)
{
    pool->oom = (me_pool_oom){
        .requested_bytes = bytes,
        .tried_bytes = r->segment,
        .stream = cuda_stream(r->stream),
        .allocated_bytes = me_pool_current(pool, ME_POOL_ALLOCATED_BYTES),
        .reserved_bytes = reserved_bytes(pool),
        .free_bytes = device_free_bytes(pool),
        .num_alloc_retries = pool->num_alloc_retries,
    };
}

me_status me_pool_alloc(me_pool *pool, uint64_t bytes, uint64_t stream,
                        me_pool_block *block_out)
{
    *block_out = ME_POOL_NO_BLOCK;
    if (bytes == 0) {
        return ME_OK;
    }
    request r = {.size = bytes, .segment = bytes, .stream = stream};
    if (bytes >= TOO_LARGE) {
        note_oom(pool, &r, bytes);
        return ME_ERR_CAPACITY;
    }
    me_status status = me_pool_store_reserve(pool, RECORDS_PER_CALL);
    if (status == ME_OK) {
        status = me_pool_free_reserve(pool, stream);
    }
    if (status != ME_OK) {
        return status;
    }
    r.size = me_pool_round(&pool->options.conf, bytes);
    r.slot = r.size <= SMALL_REQUEST ? ME_POOL_SMALL : ME_POOL_LARGE;
    if (!find_free(pool, &r)) {
        r.segment = me_pool_segment_bytes(&pool->options.conf, r.size);
        status = get_new(pool, &r);
        if (status == ME_ERR_CAPACITY) {
            note_oom(pool, &r, bytes);
            me_pool_emit(pool, ME_POOL_TRACE_OOM, pool->oom.free_bytes, r.size,
                         stream);
            pool->num_ooms++;
        }
        if (status == ME_OK) {
            status = me_pool_store_reserve(pool, RECORDS_PER_CALL);
        }
        if (status != ME_OK) {
            return status;
        }
    }
    *block_out = hand_out(pool, &r, bytes);
    return ME_OK;
}

uint64_t me_pool_private_stream(uint64_t stream, uint8_t mempool)
{
    if (mempool == 0) {
        return stream;
    }
    ME_ASSERT(mempool <= ME_POOL_PRIVATE_MAX && stream >> MEMPOOL_SHIFT == 0);
    return stream | PRIVATE | (uint64_t)mempool << MEMPOOL_SHIFT;
}

me_status me_pool_alloc_private(me_pool *pool, uint64_t bytes, uint64_t stream,
                                uint8_t mempool, me_pool_block *block_out)
{
    return me_pool_alloc(pool, bytes, me_pool_private_stream(stream, mempool),
                         block_out);
}

bool me_pool_set_outside(me_pool *pool, uint64_t outside_bytes)
{
    me_pool_options *o = &pool->options;
    o->outside_bytes = outside_bytes;
    if (o->device_total_bytes == 0) {
        return true;
    }
    const uint64_t left = o->device_total_bytes -
                          me_min_u64(outside_bytes, o->device_total_bytes);
    o->capacity_bytes = me_max_u64(left, 1); // 0 would be no limit
    return reserved_bytes(pool) <= left;
}

static uint64_t limit_of(const me_pool_options *o)
{
    const uint64_t limit = me_alloc_conf_limit_bytes(&o->conf, o->limit_bytes,
                                                     o->device_total_bytes);
    return limit == 0 ? UINT64_MAX : limit;
}

me_status me_pool_create(const me_pool_options *options, me_pool **pool_out)
{
    me_pool *pool = me_alloc(1, sizeof *pool, "alloc.pool");
    if (pool == NULL) {
        return ME_ERR_NOMEM;
    }
    pool->options = *options;
    pool->limit_bytes = limit_of(options);
    pool->unmapped[ME_POOL_SMALL].is_by_address = true;
    pool->unmapped[ME_POOL_LARGE].is_by_address = true;
    me_pool_driver_init(&pool->driver);
    const me_status status = me_pool_store_reserve(pool, RECORDS_PER_CALL);
    if (status != ME_OK) {
        me_pool_destroy(pool);
        return status;
    }
    *pool_out = pool;
    return ME_OK;
}

void me_pool_destroy(me_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    me_pool_driver_fini(&pool->driver);
    me_free(pool->reservations);
    me_pool_free_fini(pool);
    me_free(pool->blocks);
    me_free(pool);
}

me_status me_pool_empty_cache(me_pool *pool)
{
    return me_pool_release_cached(pool);
}
