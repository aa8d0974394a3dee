/**
 * @file
 * Blocks of a loop whose rounds are recorded and told again (script.h). A round
 * leaves the program as it found it, but for the names of blocks: the k-th oldest
 * one that lives before it has the part of the k-th oldest before the next one.
 * Rounds that are told therefore need no objects of their own: at their end those
 * of the last round that was run are given the blocks that are there then, and the
 * program goes on.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TENSOR_ROUND_H
#define MEMEST_TENSOR_ROUND_H

#include "tensor/script.h"

/** Blocks that live; all zero is none. */
typedef struct me_live_blocks {
    me_storage **storages; /**< whose they are, oldest first; owned */
    uint64_t *ages;        /**< owned */
    me_blocks blocks;      /**< their ids, for scripts; owned */
    uint32_t count;
} me_live_blocks;

/** How many blocks were made so far. Local. */
uint64_t me_block_age(const me_engine *e);

/** The block of @p x is no part of what rounds leave as they find it: the loop
 *  gathers such. Local. */
void me_block_set_apart(me_engine *e, const me_tensor *x);

/** All that live of those made since @p age, but those set apart.
 *  @return false without memory */
bool me_live_blocks_list(me_engine *e, uint64_t age, me_live_blocks *live);

/** Does it list the blocks that a script's recording left, in its order? */
bool me_live_blocks_are(const me_live_blocks *live, const me_script *script);

/** Scripts were told since, which have set `live->blocks`: objects get these. */
void me_live_blocks_rename(me_engine *e, const me_live_blocks *live);

void me_live_blocks_fini(me_live_blocks *live);

#endif /* MEMEST_TENSOR_ROUND_H */
