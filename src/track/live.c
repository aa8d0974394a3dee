/* SPDX-License-Identifier: BSD-3-Clause */
#include "track/live.h"

#include "base/alloc.h"

#include <string.h>

enum {
    FIRST_BLOCKS = 1024,
    FIRST_KINDS = 512
};

void me_live_fini(me_live *live)
{
    me_free(live->blocks);
    me_free(live->kinds);
    me_free(live->table);
    *live = (me_live){0};
}

static void refuse(me_live *live, me_status status)
{
    if (live->status == ME_OK) {
        live->status = status;
    }
}

/** What tells kinds apart. */
typedef struct kind_key {
    const char *op;
    uint32_t module;
    uint8_t category;
    bool is_shard;
} kind_key;

static kind_key key_of(const me_live_kind *kind)
{
    return (kind_key){kind->op, kind->module, kind->category, kind->is_shard};
}

static uint32_t hash_kind(kind_key key)
{
    const uint64_t where =
        (uint64_t)key.module << 9 | (uint64_t)key.is_shard << 8 | key.category;
    uint64_t h = (uint64_t)(uintptr_t)key.op >> 3;
    h = (h ^ where) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(h >> 32);
}

/** Twice the kinds and a table of twice as many places as kinds. */
static bool grow_kinds(me_live *live)
{
    const uint32_t capacity =
        live->kinds_capacity == 0 ? FIRST_KINDS : live->kinds_capacity * 2;
    me_live_kind *kinds =
        me_realloc(live->kinds, capacity, sizeof *kinds, "live.kinds");
    if (kinds == NULL) {
        return false;
    }
    live->kinds = kinds;
    uint32_t *table =
        me_alloc((size_t)capacity * 2, sizeof *table, "live.table");
    if (table == NULL) {
        return false;
    }
    me_free(live->table);
    live->table = table;
    live->kinds_capacity = capacity;
    live->table_mask = capacity * 2 - 1;
    for (uint32_t i = 0; i < live->n_kinds; i++) {
        uint32_t at = hash_kind(key_of(&kinds[i])) & live->table_mask;
        while (table[at] != 0) {
            at = (at + 1) & live->table_mask;
        }
        table[at] = i + 1;
    }
    return true;
}

static bool is_kind(const me_live_kind *kind, kind_key key)
{
    return kind->op == key.op && kind->module == key.module &&
           kind->category == key.category && kind->is_shard == key.is_shard;
}

/** Index of the kind, made if it is new; UINT32_MAX without memory. */
static uint32_t look_up_kind(me_live *live, kind_key key)
{
    if (live->n_kinds >= live->kinds_capacity && !grow_kinds(live)) {
        refuse(live, ME_ERR_NOMEM);
        return UINT32_MAX;
    }
    uint32_t at = hash_kind(key) & live->table_mask;
    while (live->table[at] != 0) {
        if (is_kind(&live->kinds[live->table[at] - 1], key)) {
            return live->table[at] - 1;
        }
        at = (at + 1) & live->table_mask;
    }
    const uint32_t index = live->n_kinds++;
    live->table[at] = index + 1;
    live->kinds[index] = (me_live_kind){
        .op = key.op,
        .module = key.module,
        .category = key.category,
        .is_shard = key.is_shard,
        .serial = live->peak_serial, // there was none at the peak
    };
    return index;
}

/** As look_up_kind(); a program does the same over and over, so that it mostly is
 *  @p guess, which need be no kind at all. */
static uint32_t find_kind(me_live *live, kind_key key, uint32_t guess)
{
    return guess < live->n_kinds && is_kind(&live->kinds[guess], key)
               ? guess
               : look_up_kind(live, key);
}

/** The kind of a block that is asked for. */
static uint32_t next_kind(me_live *live, const me_event *event)
{
    const kind_key key = {event->op, event->module, event->category,
                          event->is_shard};
    const uint32_t guess =
        live->n_kinds == 0 ? 0 : live->kinds[live->last].next;
    const uint32_t index = find_kind(live, key, guess);
    if (index != UINT32_MAX) {
        live->kinds[live->last].next = index;
        live->last = index;
    }
    return index;
}

/** Before a kind changes: remember what it was at the peak. */
static void remember(const me_live *live, me_live_kind *kind)
{
    if (kind->serial != live->peak_serial) {
        kind->serial = live->peak_serial;
        kind->bytes_at_peak = kind->bytes;
        kind->blocks_at_peak = kind->blocks;
    }
}

static bool reserve_block(me_live *live, uint32_t block)
{
    if (block < live->n_blocks) {
        return true;
    }
    uint64_t count = live->n_blocks == 0 ? FIRST_BLOCKS : live->n_blocks;
    while (count <= block) {
        count *= 2;
    }
    if (count > UINT32_MAX) {
        return false;
    }
    me_live_block *blocks =
        me_realloc(live->blocks, count, sizeof *blocks, "live.blocks");
    if (blocks == NULL) {
        return false;
    }
    memset(blocks + live->n_blocks, 0,
           (size_t)(count - live->n_blocks) * sizeof *blocks);
    live->blocks = blocks;
    live->n_blocks = (uint32_t)count;
    return true;
}

void me_live_alloc(me_live *live, const me_event *event)
{
    if (!reserve_block(live, event->block)) {
        refuse(live, ME_ERR_NOMEM);
        return;
    }
    me_live_block *block = &live->blocks[event->block];
    uint64_t requested = 0;
    if (block->is_live || event->category >= ME_CATEGORY_COUNT ||
        __builtin_add_overflow(live->requested, event->bytes, &requested)) {
        refuse(live, block->is_live ? ME_ERR_INTERNAL : ME_ERR_OVERFLOW);
        return;
    }
    const uint32_t index = next_kind(live, event);
    if (index == UINT32_MAX) {
        return;
    }
    me_live_kind *kind = &live->kinds[index];
    remember(live, kind);
    kind->bytes += event->bytes;
    kind->blocks++;
    *block = (me_live_block){.bytes = event->bytes,
                             .born = live->n_allocations++,
                             .kind = index,
                             .is_live = true};
    live->requested = requested;
}

me_live_block *me_live_find(me_live *live, uint32_t block)
{
    if (block >= live->n_blocks || !live->blocks[block].is_live) {
        return NULL;
    }
    return &live->blocks[block];
}

uint64_t me_live_free(me_live *live, const me_event *event)
{
    me_live_block *block = me_live_find(live, event->block);
    if (block == NULL) {
        refuse(live, ME_ERR_INTERNAL);
        return 0;
    }
    me_live_kind *kind = &live->kinds[block->kind];
    remember(live, kind);
    kind->bytes -= block->bytes;
    kind->blocks--;
    live->requested -= block->bytes;
    block->is_live = false;
    return block->bytes;
}

void me_live_recategorize(me_live *live, const me_event *event)
{
    me_live_block *block = me_live_find(live, event->block);
    if (block == NULL || event->category >= ME_CATEGORY_COUNT) {
        refuse(live, ME_ERR_INTERNAL);
        return;
    }
    const me_live_kind before = live->kinds[block->kind];
    const uint32_t index = find_kind(
        live,
        (kind_key){before.op, before.module, event->category, before.is_shard},
        before.became);
    if (index == UINT32_MAX || index == block->kind) {
        return;
    }
    me_live_kind *from = &live->kinds[block->kind];
    from->became = index;
    me_live_kind *to = &live->kinds[index];
    remember(live, from);
    remember(live, to);
    from->bytes -= block->bytes;
    from->blocks--;
    to->bytes += block->bytes;
    to->blocks++;
    const bool was_unknown = before.category == ME_CATEGORY_TEMPORARY ||
                             before.category == ME_CATEGORY_OTHER;
    const bool is_at_peak = block->born < live->peak_born;
    if (is_at_peak && was_unknown && block->drift != live->peak_serial) {
        from->bytes_at_peak -= block->bytes;
        from->blocks_at_peak--;
        to->bytes_at_peak += block->bytes;
        to->blocks_at_peak++;
    } else if (is_at_peak) {
        block->drift = live->peak_serial;
    }
    block->kind = index;
}

void me_live_mark_peak(me_live *live)
{
    live->peak_serial++;
    live->peak_born = live->n_allocations;
}

uint64_t me_live_peak_bytes(const me_live *live, const me_live_kind *kind)
{
    return kind->serial == live->peak_serial ? kind->bytes_at_peak
                                             : kind->bytes;
}

uint64_t me_live_peak_blocks(const me_live *live, const me_live_kind *kind)
{
    return kind->serial == live->peak_serial ? kind->blocks_at_peak
                                             : kind->blocks;
}

void me_live_by_category(const me_live *live,
                         uint64_t bytes_out[ME_CATEGORY_COUNT])
{
    memset(bytes_out, 0, ME_CATEGORY_COUNT * sizeof *bytes_out);
    for (uint32_t i = 0; i < live->n_kinds; i++) {
        bytes_out[live->kinds[i].category] += live->kinds[i].bytes;
    }
}
