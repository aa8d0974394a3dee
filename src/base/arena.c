/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/arena.h"

#include "base/alloc.h"

#include <stdalign.h>
#include <string.h>

enum {
    FIRST_CHUNK = 1 << 13,
    LAST_CHUNK = 1 << 20
};

typedef struct chunk {
    struct chunk *next;
    size_t used;
    size_t capacity;
    alignas(max_align_t) unsigned char bytes[];
} chunk;

struct me_arena {
    chunk *chunks; /**< the one being filled first */
    uint64_t held_bytes;
    uint64_t ceiling_bytes;
    const char *name;
};

me_arena *me_arena_create(uint64_t ceiling_bytes, const char *name)
{
    me_arena *arena = me_alloc(1, sizeof *arena, name);
    if (arena != NULL) {
        arena->ceiling_bytes = ceiling_bytes;
        arena->name = name;
    }
    return arena;
}

void me_arena_destroy(me_arena *arena)
{
    if (arena == NULL) {
        return;
    }
    chunk *next = NULL;
    for (chunk *c = arena->chunks; c != NULL; c = next) {
        next = c->next;
        me_free(c);
    }
    me_free(arena);
}

/** Half of what there is, so that a third of it is the most that stays empty. */
static size_t chunk_capacity(const me_arena *arena, size_t at_least)
{
    size_t capacity = FIRST_CHUNK;
    if (arena->held_bytes / 2 > FIRST_CHUNK) {
        capacity = arena->held_bytes / 2 < LAST_CHUNK
                       ? (size_t)arena->held_bytes / 2
                       : LAST_CHUNK;
    }
#ifdef ME_ARENA_MALLOC
    capacity = 0; // an item a chunk, so that AddressSanitizer sees overruns
#endif
    return capacity < at_least ? at_least : capacity;
}

static chunk *add_chunk(me_arena *arena, size_t at_least)
{
    const size_t capacity = chunk_capacity(arena, at_least);
    if (capacity > SIZE_MAX / 2 ||
        arena->held_bytes + capacity > arena->ceiling_bytes) {
        me_alloc_lose(arena->name);
        return NULL;
    }
    chunk *c = me_alloc(1, sizeof *c + capacity, arena->name);
    if (c == NULL) {
        return NULL;
    }
    c->capacity = capacity;
    c->next = arena->chunks;
    arena->chunks = c;
    arena->held_bytes += capacity;
    return c;
}

void *me_arena_alloc(me_arena *arena, size_t count, size_t size)
{
    size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2) {
        me_alloc_lose(arena->name);
        return NULL;
    }
    const size_t step = alignof(max_align_t);
    bytes = bytes == 0 ? step : (bytes + step - 1) / step * step;
    chunk *c = arena->chunks;
    if (c == NULL || c->capacity - c->used < bytes) {
        c = add_chunk(arena, bytes);
    }
    if (c == NULL) {
        return NULL;
    }
    void *piece = c->bytes + c->used;
    c->used += bytes;
    return piece;
}

char *me_arena_strdup(me_arena *arena, const char *text)
{
    const size_t bytes = strlen(text) + 1;
    char *copy = me_arena_alloc(arena, bytes, 1);
    if (copy != NULL) {
        memcpy(copy, text, bytes);
    }
    return copy;
}
