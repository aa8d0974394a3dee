/* SPDX-License-Identifier: BSD-3-Clause */
#include "alloc/twin_pool.h"

#include "base/alloc.h"

enum {
    BATCH_MAX = 5 /* tensors of a micro-batch */
};

/** A small block of the first rank's, by its id. */
typedef struct twin_block {
    me_pool_block block; /**< ME_POOL_NO_BLOCK: it is no small one */
    uint32_t epoch;
} twin_block;

/** An allocation of the first rank, and the large segment that it took. */
typedef struct taking {
    me_twin_request request;
    uint64_t segment_bytes; /**< 0: none */
    uint64_t address;
} taking;

struct me_twin_pool {
    const me_pool *first;
    me_pool *pool;
    me_alloc_conf conf;
    twin_block *blocks; /**< by id */
    uint32_t n_ids;
    uint64_t expected[BATCH_MAX]; /**< bytes of a micro-batch's tensors, as the
                                       first rank makes them */
    uint32_t n_expected;
    bool has_mask;          /**< the first of them */
    taking open[BATCH_MAX]; /**< n_open of them have been made */
    uint32_t n_open;
    uint64_t
        n_taken; /**< segments, by the first rank so far, as what follows */
    uint64_t n_given_back;
    uint64_t
        n_small; /**< small segments that it had when it was last told of */
    bool differs;
};

me_status me_twin_pool_create(const me_pool *first, const me_alloc_conf *conf,
                              const me_twin_batch *batch,
                              me_twin_pool **pool_out)
{
    me_twin_pool *t = me_alloc(1, sizeof *t, "alloc.twin");
    if (t == NULL) {
        return ME_ERR_NOMEM;
    }
    const me_pool_options options = {.conf = *conf, .counts_bytes_alone = true};
    t->first = first;
    t->conf = *conf;
    t->has_mask = batch->mask_bytes > 0;
    if (t->has_mask) {
        t->expected[t->n_expected++] = batch->mask_bytes;
    }
    t->expected[t->n_expected++] = batch->token_bytes;
    t->expected[t->n_expected++] = batch->token_bytes / 2;
    t->expected[t->n_expected++] = batch->token_bytes;
    t->expected[t->n_expected++] = batch->token_bytes;
    const me_status status = me_pool_create(&options, &t->pool);
    if (status != ME_OK) {
        me_twin_pool_destroy(t);
        return status;
    }
    t->differs = conf->expandable_segments ||
                 !me_pool_is_small(t->pool, batch->token_bytes);
    *pool_out = t;
    return ME_OK;
}

void me_twin_pool_destroy(me_twin_pool *pool)
{
    if (pool != NULL) {
        me_pool_destroy(pool->pool);
        me_free(pool->blocks);
        me_free(pool);
    }
}

/** @return false: there is no host memory, so nobody knows */
static bool has_id(me_twin_pool *t, uint32_t id)
{
    const uint32_t before = t->n_ids;
    if (id < before) { // of nearly every event
        return true;
    }
    twin_block *grown =
        me_grow_to(t->blocks, id, &t->n_ids, sizeof *grown, "alloc.twin");
    if (grown == NULL) {
        t->differs = true;
        return false;
    }
    for (uint32_t i = before; i < t->n_ids; i++) {
        grown[i] = (twin_block){.block = ME_POOL_NO_BLOCK};
    }
    t->blocks = grown;
    return true;
}

/** A large segment, which has to lie where the first rank has it. */
static void take_segment(me_twin_pool *t, const taking *x)
{
    uint64_t address = 0;
    t->differs = t->differs ||
                 me_pool_place(t->pool, x->segment_bytes, &address) != ME_OK ||
                 address != x->address;
}

static void take(me_twin_pool *t, const taking *x)
{
    const me_twin_request *r = &x->request;
    if (x->segment_bytes > 0) {
        take_segment(t, x);
    } else if (me_pool_is_small(t->pool, r->bytes) && has_id(t, r->id)) {
        const me_status status = me_pool_alloc_private(
            t->pool, r->bytes, r->stream, r->mempool, &t->blocks[r->id].block);
        t->differs = t->differs || status != ME_OK;
    }
}

static bool has_as_many_segments(const me_twin_pool *t)
{
    return me_pool_small_segments(t->first) == me_pool_small_segments(t->pool);
}

/** Where memory is limited: has it room for the small segments that the first rank
 *  does not have? */
static bool has_room(const me_twin_pool *t)
{
    const uint64_t own = me_pool_small_segments(t->pool);
    const uint64_t firsts = me_pool_small_segments(t->first);
    return own <= firsts ||
           (own - firsts) * me_pool_segment_bytes(&t->conf, 1) <=
               me_pool_room(t->first);
}

/** All tensors of a micro-batch are made. */
static void take_batch(me_twin_pool *t)
{
    const uint32_t last = t->n_open - 1;
    take(t, &t->open[last]);
    for (uint32_t i = t->has_mask ? 1 : 0; i < last; i++) {
        take(t, &t->open[i]);
    }
    if (t->has_mask) {
        take(t, &t->open[0]);
    }
    t->n_open = 0;
}

static void add_to_batch(me_twin_pool *t, const taking *x)
{
    const me_twin_request *r = &x->request;
    t->differs = t->differs || !r->is_input || r->is_oom ||
                 r->bytes != t->expected[t->n_open];
    t->open[t->n_open++] = *x;
    if (t->n_open == t->n_expected) {
        take_batch(t);
    }
}

/** The first rank has found no room, and given back what was cached. Others may
 *  have had that elsewhere, so only one that dies now is followed. */
static void give_back(me_twin_pool *t, bool is_oom)
{
    t->differs = t->differs || !is_oom || t->n_open > 0 ||
                 t->n_small != me_pool_small_segments(t->pool) ||
                 me_pool_empty_cache(t->pool) != ME_OK;
}

/** The large segment that the first rank has just taken, if it has. */
static taking describe(me_twin_pool *t, const me_twin_request *r)
{
    const uint64_t n_taken = me_pool_num_taken(t->first);
    taking x = {.request = *r};
    if (n_taken != t->n_taken && !me_pool_is_small(t->pool, r->bytes)) {
        x.segment_bytes =
            me_pool_segment_bytes(&t->conf, me_pool_round(&t->conf, r->bytes));
        x.address = me_pool_newest_address(t->first);
    }
    t->n_taken = n_taken;
    return x;
}

static void follow(me_twin_pool *t, const taking *x)
{
    const me_twin_request *r = &x->request;
    if (t->n_open > 0 || (r->is_input && r->bytes == t->expected[0])) {
        add_to_batch(t, x);
    } else if (!r->is_oom) {
        take(t, x);
    }
}

void me_twin_pool_alloc(me_twin_pool *pool, const me_twin_request *request)
{
    me_twin_pool *t = pool;
    if (t->differs) {
        return;
    }
    const uint64_t n_given_back = me_pool_num_given_back(t->first);
    const taking x = describe(t, request);
    if (n_given_back != t->n_given_back) {
        t->n_given_back = n_given_back;
        give_back(t, request->is_oom);
    }
    follow(t, &x);
    t->n_small = me_pool_small_segments(t->first);
    t->differs = t->differs || !has_room(t) ||
                 (request->is_oom && !has_as_many_segments(t));
}

/** The small block of an id, if it is one; NULL: there is nothing to do. */
static twin_block *find(me_twin_pool *t, uint32_t id)
{
    t->differs = t->differs || t->n_open > 0;
    return t->differs || id >= t->n_ids ||
                   t->blocks[id].block == ME_POOL_NO_BLOCK
               ? NULL
               : &t->blocks[id];
}

void me_twin_pool_free(me_twin_pool *pool, uint32_t id)
{
    twin_block *b = find(pool, id);
    if (b != NULL) {
        me_pool_free(pool->pool, b->block);
        b->block = ME_POOL_NO_BLOCK;
    }
}

void me_twin_pool_free_requested(me_twin_pool *pool, uint32_t id)
{
    twin_block *b = find(pool, id);
    if (b != NULL) {
        b->epoch = me_pool_free_requested(pool->pool, b->block);
    }
}

void me_twin_pool_free_completed(me_twin_pool *pool, uint32_t id)
{
    twin_block *b = find(pool, id);
    if (b != NULL) {
        me_pool_free_completed(pool->pool, b->block, b->epoch);
        b->block = ME_POOL_NO_BLOCK;
    }
}

void me_twin_pool_empty_cache(me_twin_pool *pool)
{
    pool->differs = true;
}

void me_twin_pool_take(me_twin_pool *pool, me_pool_taker taker, uint64_t bytes)
{
    pool->differs = pool->differs || pool->n_open > 0 ||
                    me_pool_take(pool->pool, taker, bytes) != ME_OK;
}

void me_twin_pool_compare(me_twin_pool *pool)
{
    pool->differs = me_twin_pool_differs(pool);
}

uint64_t me_twin_pool_driver_calls(const me_twin_pool *pool)
{
    return me_pool_driver_calls(pool->pool);
}

bool me_twin_pool_differs(const me_twin_pool *pool)
{
    return pool->differs || pool->n_open > 0 || !has_as_many_segments(pool);
}
