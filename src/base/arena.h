/**
 * @file
 * An arena: memory that is given out piece by piece and given back as a whole.
 * One belongs to each simulated rank.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_ARENA_H
#define MEMEST_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

typedef struct me_arena me_arena;

/**
 * An empty arena.
 *
 * @param ceiling_bytes  what it may hold at most; beyond it requests fail
 * @param name           what it is for, static
 * @return the arena, to be destroyed by the caller; NULL without memory
 */
me_arena *me_arena_create(uint64_t ceiling_bytes, const char *name);

/** Give back the arena and everything in it; NULL is allowed. */
void me_arena_destroy(me_arena *arena);

/**
 * Zeroed memory, aligned for any type, that lives as long as the arena.
 *
 * @return the piece, owned by the arena; NULL when the ceiling or the host's
 *         memory is reached
 */
void *me_arena_alloc(me_arena *arena, size_t count, size_t size);

/** A copy of @p text in the arena; NULL as for me_arena_alloc(). */
char *me_arena_strdup(me_arena *arena, const char *text);

#endif /* MEMEST_BASE_ARENA_H */
