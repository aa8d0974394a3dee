/* SPDX-License-Identifier: BSD-3-Clause */
/* A copy of a pool, for who wants to go on from the same state more than
 * once. */
#include "alloc/pool_internal.h"
#include "base/alloc.h"

#include <string.h>

static void *copy_of(const void *items, size_t count, size_t size,
                     const char *name, bool *is_lost)
{
    if (items == NULL) {
        return NULL;
    }
    void *copy = me_alloc(count, size, name);
    if (copy == NULL) {
        *is_lost = true;
        return NULL;
    }
    memcpy(copy, items, count * size);
    return copy;
}

static void copy_streams(const free_set *from, free_set *to, bool *is_lost)
{
    *to = (free_set){.streams = copy_of(from->streams, from->n_streams,
                                        sizeof *from->streams, "alloc.streams",
                                        is_lost)};
    while (to->streams != NULL && to->n_streams < from->n_streams &&
           !*is_lost) {
        to->streams[to->n_streams] =
            copy_of(from->streams[to->n_streams], 1, sizeof(free_stream),
                    "alloc.stream", is_lost);
        to->n_streams++;
    }
    to->first_stream = from->first_stream;
    to->first = to->n_streams == 0 ? NULL : to->streams[0];
}

me_status me_pool_clone(const me_pool *pool, me_pool **clone_out)
{
    me_pool *c = me_alloc(1, sizeof *c, "alloc.pool");
    if (c == NULL) {
        return ME_ERR_NOMEM;
    }
    *c = *pool;
    bool is_lost = false;
    c->n_capacity = pool->n_blocks;
    c->blocks = copy_of(pool->blocks, pool->n_blocks, sizeof *c->blocks,
                        "alloc.blocks", &is_lost);
    c->reservations =
        copy_of(pool->reservations, pool->n_reservation_capacity,
                sizeof *c->reservations, "alloc.reservations", &is_lost);
    c->driver.largest =
        copy_of(pool->driver.largest, 2 * (size_t)pool->driver.n_leaves,
                sizeof *c->driver.largest, "alloc.largest", &is_lost);
    c->driver.gaps = copy_of(pool->driver.gaps, pool->driver.n_gap_capacity,
                             sizeof *c->driver.gaps, "alloc.gaps", &is_lost);
    for (int slot = 0; slot < ME_POOL_SLOTS; slot++) {
        copy_streams(&pool->free_blocks[slot], &c->free_blocks[slot], &is_lost);
    }
    if (is_lost) {
        me_pool_destroy(c);
        return ME_ERR_NOMEM;
    }
    *clone_out = c;
    return ME_OK;
}
