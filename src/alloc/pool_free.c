/* SPDX-License-Identifier: BSD-3-Clause */
/* Cached blocks, in the order of stream, size and address. Those of a stream
 * lie in classes of like sizes, eight to a doubling, each a set of its own: a
 * program asks for the same few sizes over and over, so that a class holds
 * little but equals, and finding a block or its place takes a step or two. */
#include "alloc/pool_internal.h"
#include "base/alloc.h"

#include <string.h>

enum {
    WORD_BITS = 64,
    STEPS_LOG2 = 3,
    STEPS = 1 << STEPS_LOG2
};

/** Grows with the size; one class a size as long as steps are that small. */
static inline uint32_t class_of(uint64_t size)
{
    const uint64_t units = size / MIN_BLOCK;
    if (units < STEPS) {
        return (uint32_t)units;
    }
    const uint32_t log2 = 63U - (uint32_t)__builtin_clzll(units);
    return (uint32_t)(units >> (log2 - STEPS_LOG2)) +
           STEPS * (log2 - STEPS_LOG2);
}

/** The first stream that is not below @p stream, or past the last one. */
static uint32_t stream_place(const free_set *set, uint64_t stream)
{
    uint32_t from = 0;
    uint32_t n = set->n_streams;
    while (n > 0) {
        const uint32_t half = n / 2;
        const bool is_below = set->streams[from + half]->stream < stream;
        from += is_below ? half + 1 : 0;
        n = is_below ? n - half - 1 : half;
    }
    return from;
}

/** NULL: no request was made on it. The first one is the default stream. */
static inline free_stream *stream_of(const me_pool *pool, unsigned slot,
                                     uint64_t stream)
{
    const free_set *set = &pool->free_blocks[slot];
    if (set->first_stream == stream) {
        return set->first;
    }
    const uint32_t place = stream_place(set, stream);
    return place < set->n_streams && set->streams[place]->stream == stream
               ? set->streams[place]
               : NULL;
}

static me_status add_stream(free_set *set, uint64_t stream)
{
    const uint32_t place = stream_place(set, stream);
    if (place < set->n_streams && set->streams[place]->stream == stream) {
        return ME_OK;
    }
    free_stream **grown = me_realloc(set->streams, set->n_streams + 1,
                                     sizeof(free_stream *), "alloc.streams");
    if (grown == NULL) {
        return ME_ERR_NOMEM;
    }
    set->streams = grown;
    free_stream *added = me_alloc(1, sizeof *added, "alloc.stream");
    if (added == NULL) {
        return ME_ERR_NOMEM;
    }
    added->stream = stream;
    memmove(&grown[place + 1], &grown[place],
            (set->n_streams - place) * sizeof *grown);
    grown[place] = added;
    set->n_streams++;
    set->first = grown[0];
    set->first_stream = grown[0]->stream;
    return ME_OK;
}

me_status me_pool_free_reserve(me_pool *pool, uint64_t stream)
{
    if (stream_of(pool, ME_POOL_LARGE, stream) != NULL) {
        return ME_OK; // it was added last
    }
    const me_status status =
        add_stream(&pool->free_blocks[ME_POOL_SMALL], stream);
    return status == ME_OK
               ? add_stream(&pool->free_blocks[ME_POOL_LARGE], stream)
               : status;
}

void me_pool_free_fini(me_pool *pool)
{
    for (int slot = ME_POOL_SMALL; slot <= ME_POOL_LARGE; slot++) {
        free_set *set = &pool->free_blocks[slot];
        for (uint32_t i = 0; i < set->n_streams; i++) {
            me_free(set->streams[i]);
        }
        me_free(set->streams);
    }
}

void me_pool_free_insert(me_pool *pool, uint32_t index)
{
    const block *b = at(pool, index);
    free_stream *s = stream_of(pool, b->slot, b->stream);
    const uint32_t class = class_of(b->size);
    ME_ASSERT(s != NULL);
    me_pool_set_insert(pool, &s->classes[class], index);
    s->used[class / WORD_BITS] |= UINT64_C(1) << class % WORD_BITS;
}

void me_pool_free_erase(me_pool *pool, uint32_t index)
{
    const block *b = at(pool, index);
    free_stream *s = stream_of(pool, b->slot, b->stream);
    const uint32_t class = class_of(b->size);
    ME_ASSERT(s != NULL);
    me_pool_set_erase(pool, &s->classes[class], index);
    if (s->classes[class].root == NIL) {
        s->used[class / WORD_BITS] &= ~(UINT64_C(1) << class % WORD_BITS);
    }
}

/** A block alone in its class, as what is left of a segment mostly is, stays
 * where it is. */
void me_pool_free_resize(me_pool *pool, uint32_t index, uint64_t address,
                         uint64_t size)
{
    block *b = at(pool, index);
    const bool is_alone = b->parent == NIL && b->left == NIL && b->right == NIL;
    const bool stays = is_alone && class_of(size) == class_of(b->size);
    if (!stays) {
        me_pool_free_erase(pool, index);
    }
    b->address = address;
    b->size = size;
    if (!stays) {
        me_pool_free_insert(pool, index);
    }
}

/** The first block of @p class or of one above; NIL if there is none. */
static uint32_t first_from(const me_pool *pool, const free_stream *s,
                           uint32_t class)
{
    uint32_t word = class / WORD_BITS;
    uint64_t bits = s->used[word] >> class % WORD_BITS << class % WORD_BITS;
    while (bits == 0 && ++word < FREE_CLASSES / WORD_BITS) {
        bits = s->used[word];
    }
    return bits == 0 ? NIL
                     : me_pool_set_first(
                           pool, &s->classes[word * WORD_BITS +
                                             (uint32_t)__builtin_ctzll(bits)]);
}

/** The last block of a class below @p class; NIL if there is none. */
static uint32_t last_below(const me_pool *pool, const free_stream *s,
                           uint32_t class)
{
    uint32_t word = class / WORD_BITS;
    uint64_t bits = 0;
    if (class % WORD_BITS > 0) {
        bits = s->used[word] << (WORD_BITS - class % WORD_BITS) >>
               (WORD_BITS - class % WORD_BITS);
    }
    while (bits == 0 && word > 0) {
        bits = s->used[--word];
    }
    return bits == 0 ? NIL
                     : me_pool_set_last(
                           pool, &s->classes[word * WORD_BITS + 63U -
                                             (uint32_t)__builtin_clzll(bits)]);
}

uint32_t me_pool_free_find(const me_pool *pool, unsigned slot, uint64_t stream,
                           uint64_t size)
{
    const free_stream *s = stream_of(pool, slot, stream);
    if (s == NULL) {
        return NIL;
    }
    const uint32_t class = class_of(size);
    const uint32_t found =
        me_pool_set_lower_bound(pool, &s->classes[class], stream, size, 0);
    return found != NIL ? found : first_from(pool, s, class + 1);
}

uint32_t me_pool_free_last(const me_pool *pool, unsigned slot, uint64_t stream)
{
    const free_stream *s = stream_of(pool, slot, stream);
    return s == NULL ? NIL : last_below(pool, s, FREE_CLASSES - 1);
}

uint32_t me_pool_free_prev(const me_pool *pool, uint32_t index)
{
    const uint32_t prev = me_pool_set_prev(pool, index);
    const block *b = at(pool, index);
    return prev != NIL ? prev
                       : last_below(pool, stream_of(pool, b->slot, b->stream),
                                    class_of(b->size));
}

/** The first block of the stream at @p place of the set, or of one after. */
static uint32_t first_of_stream(const me_pool *pool, const free_set *set,
                                uint32_t place)
{
    uint32_t found = NIL;
    while (found == NIL && place < set->n_streams) {
        found = first_from(pool, set->streams[place++], 0);
    }
    return found;
}

uint32_t me_pool_free_first(const me_pool *pool, unsigned slot)
{
    return first_of_stream(pool, &pool->free_blocks[slot], 0);
}

uint32_t me_pool_free_next(const me_pool *pool, uint32_t index)
{
    const block *b = at(pool, index);
    const free_set *set = &pool->free_blocks[b->slot];
    const uint32_t place = stream_place(set, b->stream);
    uint32_t next = me_pool_set_next(pool, index);
    if (next == NIL) {
        next = first_from(pool, set->streams[place], class_of(b->size) + 1);
    }
    return next != NIL ? next : first_of_stream(pool, set, place + 1);
}
