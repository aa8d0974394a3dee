/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensor/round.h"

#include "base/alloc.h"
#include "tensor/engine_private.h"

#include <stdlib.h>
#include <string.h>

void me_block_hold(me_engine *e, uint32_t block, me_storage *storage)
{
    me_block_ids *ids = &e->blocks;
    while (block >= ids->n_holders) {
        const uint32_t before = ids->n_holders;
        me_block_holder *holders =
            me_grow(ids->holders, before, &ids->n_holders, sizeof *holders,
                    "engine.holders");
        if (holders == NULL) {
            me_engine_fail(e, ME_ERR_NOMEM, "no host memory for block ids");
            return;
        }
        memset(holders + before, 0,
               (ids->n_holders - before) * sizeof *holders);
        ids->holders = holders;
    }
    ids->holders[block] =
        (me_block_holder){.storage = storage, .age = ids->n_made++};
}

uint64_t me_block_age(const me_engine *e)
{
    return e->blocks.n_made;
}

static void set_apart(me_engine *e, const me_storage *storage)
{
    if (storage->block < e->blocks.n_holders) {
        e->blocks.holders[storage->block].is_apart = true;
    }
}

void me_block_set_apart(me_engine *e, const me_tensor *x)
{
    if (x->storage != NULL && !x->storage->is_empty) {
        set_apart(e, x->storage);
    }
}

static bool is_listed(const me_block_holder *holder, uint64_t age)
{
    return holder->storage != NULL && !holder->is_apart && holder->age >= age;
}

static int by_age(const void *a, const void *b)
{
    const me_block_holder *x = a;
    const me_block_holder *y = b;
    return (x->age > y->age) - (x->age < y->age);
}

static bool make_room(me_live_blocks *live, uint32_t count)
{
    const size_t n = count;
    me_live_blocks_fini(live);
    live->storages = me_alloc(n, sizeof(me_storage *), "round.storages");
    live->ages = me_alloc(n, sizeof *live->ages, "round.ages");
    live->blocks.ids = me_alloc(n, sizeof *live->blocks.ids, "round.ids");
    live->blocks.storages = me_alloc(n, sizeof(me_storage *), "round.ids");
    live->blocks.capacity = count;
    return live->storages != NULL && live->ages != NULL &&
           live->blocks.ids != NULL && live->blocks.storages != NULL;
}

bool me_live_blocks_list(me_engine *e, uint64_t age, me_live_blocks *live)
{
    const me_block_ids *ids = &e->blocks;
    for (uint32_t i = 0; i < e->pending.count; i++) {
        set_apart(e, e->pending.storages[i]); // they are asked to be freed
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < ids->n_holders; i++) {
        count += is_listed(&ids->holders[i], age);
    }
    me_block_holder *found = me_alloc(count, sizeof *found, "round.found");
    const bool has_room = found != NULL && make_room(live, count);
    for (uint32_t i = 0; has_room && i < ids->n_holders; i++) {
        if (is_listed(&ids->holders[i], age)) {
            found[live->count++] = ids->holders[i];
        }
    }
    if (has_room && count > 0) {
        qsort(found, count, sizeof *found, by_age);
    }
    for (uint32_t i = 0; has_room && i < count; i++) {
        live->storages[i] = found[i].storage;
        live->ages[i] = found[i].age;
        live->blocks.ids[i] = found[i].storage->block;
    }
    live->blocks.count = live->count;
    me_free(found);
    if (!has_room) {
        me_engine_fail(e, ME_ERR_NOMEM, "no host memory for blocks");
    }
    return has_room;
}

bool me_live_blocks_are(const me_live_blocks *live, const me_script *script)
{
    bool is_same = live->count == script->n_kept;
    for (uint32_t i = 0; is_same && i < live->count; i++) {
        is_same = live->blocks.ids[i] == script->ids[script->kept[i]];
    }
    return is_same;
}

void me_live_blocks_rename(me_engine *e, const me_live_blocks *live)
{
    me_block_ids *ids = &e->blocks;
    for (uint32_t i = 0; i < live->count && me_engine_is_ok(e); i++) {
        const uint32_t block = live->blocks.ids[i];
        live->storages[i]->block = block;
        me_block_hold(e, block, live->storages[i]);
        if (me_engine_is_ok(e)) {
            ids->holders[block].age = live->ages[i];
        }
    }
}

void me_live_blocks_fini(me_live_blocks *live)
{
    me_free(live->storages);
    me_free(live->ages);
    me_blocks_fini(&live->blocks);
    *live = (me_live_blocks){.count = 0};
}
