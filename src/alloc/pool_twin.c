/* SPDX-License-Identifier: BSD-3-Clause */
#include "alloc/pool_twin.h"

#include "alloc/pool_internal.h"
#include "base/alloc.h"

enum {
    FIRST_IDS = 1024,
    BATCH_MAX = 8 /* blocks of a batch, and the last place of one */
};

/** A small block of the engine's id; NIL: it has none. */
typedef struct twin_block {
    me_pool_block block;
    uint32_t epoch;
} twin_block;

struct me_pool_twin {
    me_pool *pool; /**< of small blocks alone */
    const me_pool *other;
    uint64_t n_calls;   /**< of the other one's driver so far */
    twin_block *blocks; /**< by id; owned */
    uint32_t n_ids;
    me_pool_twin_request held[BATCH_MAX]; /**< of a batch that is being made */
    uint32_t n_held;
    /** That the other one has got since, for small blocks. */
    uint64_t segments[BATCH_MAX];
    uint32_t n_segments;
    uint32_t n_placed;      /**< of them, that this one has got */
    bool has_large_segment; /**< the other one has got one, for the batch */
    bool differs;
};

/** Where the other one's segment lies; there is none: they differ. */
static bool place(void *self, uint64_t bytes, uint64_t *address_out)
{
    me_pool_twin *t = self;
    (void)bytes;
    if (t->n_placed == t->n_segments) {
        return false;
    }
    *address_out = t->segments[t->n_placed++];
    return true;
}

me_status me_pool_twin_create(const me_pool *other,
                              const me_pool_options *options,
                              me_pool_twin **twin_out)
{
    me_pool_twin *t = me_alloc(1, sizeof *t, "alloc.twin");
    if (t == NULL) {
        return ME_ERR_NOMEM;
    }
    t->other = other;
    const me_pool_options own = {.conf = options->conf,
                                 .counts_bytes_alone = true,
                                 .place = place,
                                 .place_self = t};
    const me_status status = me_pool_create(&own, &t->pool);
    if (status != ME_OK) {
        me_pool_twin_destroy(t);
        return status;
    }
    *twin_out = t;
    return ME_OK;
}

void me_pool_twin_destroy(me_pool_twin *twin)
{
    if (twin != NULL) {
        me_pool_destroy(twin->pool);
        me_free(twin->blocks);
        me_free(twin);
    }
}

static bool has_id(me_pool_twin *t, uint32_t id)
{
    if (id < t->n_ids) {
        return true;
    }
    uint64_t n = t->n_ids == 0 ? FIRST_IDS : t->n_ids;
    while (n <= id) {
        n *= 2;
    }
    twin_block *grown =
        n > UINT32_MAX
            ? NULL
            : me_realloc(t->blocks, (size_t)n, sizeof *grown, "alloc.twin");
    if (grown == NULL) {
        t->differs = true; // it may, for all that is known
        return false;
    }
    for (uint64_t i = t->n_ids; i < n; i++) {
        grown[i] = (twin_block){.block = ME_POOL_NO_BLOCK};
    }
    t->blocks = grown;
    t->n_ids = (uint32_t)n;
    return true;
}

static bool is_small(const me_pool_twin *t, me_pool_block index)
{
    return index != ME_POOL_NO_BLOCK &&
           at(t->other, index)->slot == ME_POOL_SMALL;
}

static void serve(me_pool_twin *t, const me_pool_twin_request *r)
{
    if (t->differs || !is_small(t, r->block) || !has_id(t, r->id)) {
        return;
    }
    t->differs = me_pool_alloc_private(t->pool, r->bytes, r->stream, r->mempool,
                                       &t->blocks[r->id].block) != ME_OK;
}

/** What the other one has got is taken from the driver by both. */
static void settle(me_pool_twin *t)
{
    t->differs = t->differs || t->n_placed != t->n_segments;
    t->n_segments = 0;
    t->n_placed = 0;
}

/** A batch is whole: its blocks in the order of this rank. */
static void serve_batch(me_pool_twin *t)
{
    for (uint32_t next = 1; next <= BATCH_MAX; next++) {
        for (uint32_t i = 0; i < t->n_held; i++) {
            if (t->held[i].batch_place == next) {
                serve(t, &t->held[i]);
            }
        }
    }
    // The driver would serve large and small ones in another order.
    t->differs = t->differs || (t->has_large_segment && t->n_segments > 0);
    settle(t);
    t->n_held = 0;
    t->has_large_segment = false;
}

/** Is it of the batch that is being made? Else that one is whole. */
static bool is_next_of_batch(const me_pool_twin *t, uint8_t batch_place)
{
    bool is_next = batch_place > 0;
    for (uint32_t i = 0; is_next && i < t->n_held; i++) {
        is_next = t->held[i].batch_place != batch_place;
    }
    return is_next;
}

/** Was the driver called for the block? */
static void note_call(me_pool_twin *t, const me_pool_twin_request *r)
{
    const uint64_t calls = me_pool_driver_calls(t->other);
    if (calls == t->n_calls) {
        return;
    }
    if (is_small(t, r->block)) {
        t->segments[t->n_segments++] = at(t->other, r->block)->address;
    } else {
        t->has_large_segment = r->batch_place > 0;
    }
    t->n_calls = calls;
}

void me_pool_twin_take(me_pool_twin *twin, const me_pool_twin_request *served)
{
    me_pool_twin *t = twin;
    if (t->differs) {
        return;
    }
    ME_ASSERT(served->batch_place <= BATCH_MAX);
    if (t->n_held > 0 && !is_next_of_batch(t, served->batch_place)) {
        serve_batch(t);
    }
    note_call(t, served);
    if (served->batch_place > 0) {
        t->held[t->n_held++] = *served;
    } else {
        serve(t, served);
        settle(t);
    }
}

/** The block of an id, of which nothing is held any more; NULL: it has none. */
static twin_block *find(me_pool_twin *t, uint32_t id)
{
    if (t->n_held > 0) {
        serve_batch(t);
    }
    return t->differs || id >= t->n_ids ||
                   t->blocks[id].block == ME_POOL_NO_BLOCK
               ? NULL
               : &t->blocks[id];
}

void me_pool_twin_free(me_pool_twin *twin, uint32_t id)
{
    twin_block *b = find(twin, id);
    if (b != NULL) {
        me_pool_free(twin->pool, b->block);
        b->block = ME_POOL_NO_BLOCK;
    }
}

void me_pool_twin_free_requested(me_pool_twin *twin, uint32_t id)
{
    twin_block *b = find(twin, id);
    if (b != NULL) {
        b->epoch = me_pool_free_requested(twin->pool, b->block);
    }
}

void me_pool_twin_free_completed(me_pool_twin *twin, uint32_t id)
{
    twin_block *b = find(twin, id);
    if (b != NULL) {
        me_pool_free_completed(twin->pool, b->block, b->epoch);
        b->block = ME_POOL_NO_BLOCK;
    }
}

void me_pool_twin_give_up(me_pool_twin *twin)
{
    twin->differs = true;
}

bool me_pool_twin_differs(me_pool_twin *twin)
{
    if (twin->n_held > 0) {
        serve_batch(twin);
    }
    return twin->differs;
}
