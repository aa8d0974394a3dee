/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/size.h"
#include "tensor/engine_private.h"
#include "tensor/tensor.h"

/** Room for one more item in a growing array of pointers or ids. */
static bool grow(void **items, uint32_t count, uint32_t *capacity, size_t size)
{
    void *larger = me_grow(*items, count, capacity, size, "engine.list");
    if (larger == NULL) {
        return false;
    }
    *items = larger;
    return true;
}

void me_block_forget(me_engine *e, uint32_t block)
{
    me_block_ids *ids = &e->blocks;
    void *items = ids->freed;
    if (!grow(&items, ids->count, &ids->capacity, sizeof *ids->freed)) {
        me_engine_fail(e, ME_ERR_NOMEM, "no host memory for block ids");
        return;
    }
    ids->freed = items;
    ids->freed[ids->count++] = block;
    if (block < ids->n_holders) {
        ids->holders[block].storage = NULL;
    }
}

uint32_t me_block_new(me_engine *e)
{
    me_block_ids *ids = &e->blocks;
    return ids->count > 0 ? ids->freed[--ids->count] : ids->next++;
}

static void emit_block(me_engine *e, me_event_kind kind,
                       const me_storage *storage, const char *op)
{
    if (storage->mempool == ME_MEMPOOL_REPLAY) {
        return;
    }
    me_emit(e, &(me_event){
                   .kind = kind,
                   .category = storage->category,
                   .stream = storage->stream,
                   .mempool = storage->mempool,
                   .is_late = storage->is_late,
                   .is_drawn = kind == ME_EVENT_ALLOC && e->context.is_drawn,
                   .is_shard = kind == ME_EVENT_ALLOC && e->is_at_shard,
                   .block = storage->block,
                   .is_scratch = storage->is_scratch,
                   .bytes = storage->bytes,
                   .op = op,
               });
}

/** The allocator has the block back; the object may live on without one. */
static void give_back(me_engine *e, me_storage *storage)
{
    emit_block(e, ME_EVENT_FREE_COMPLETED, storage, "");
    if (storage->mempool != ME_MEMPOOL_REPLAY) {
        me_block_forget(e, storage->block);
    }
}

/** Nobody names the object any more, and nobody is told. */
static void forget_storage(me_engine *e, me_storage *storage)
{
    storage->next_free = e->free_storages;
    e->free_storages = storage;
}

static void complete_free(me_engine *e, me_storage *storage)
{
    give_back(e, storage);
    forget_storage(e, storage);
}

/** The allocator looks at late frees at the start of each allocation. */
void me_complete_pending(me_engine *e)
{
    for (uint32_t i = 0; i < e->pending.count; i++) {
        complete_free(e, e->pending.storages[i]);
    }
    e->pending.count = 0;
}

/** A block of what the running code allocates, for a storage object. */
static void take_block(me_engine *e, me_storage *storage, const char *op,
                       uint64_t bytes)
{
    storage->bytes = bytes;
    storage->mempool = e->context.mempool;
    storage->block =
        storage->mempool == ME_MEMPOOL_REPLAY ? 0 : me_block_new(e);
    storage->category = (uint8_t)e->context.category;
    storage->stream = e->context.stream;
    storage->is_scratch = e->is_scratch;
    storage->module = e->module;
    storage->op = op;
    if (storage->mempool != ME_MEMPOOL_REPLAY) {
        me_block_hold(e, storage->block, storage);
    }
    emit_block(e, ME_EVENT_ALLOC, storage, op);
}

/** Room for a storage, not cleared; NULL after a failure. */
static me_storage *take_storage(me_engine *e)
{
    me_storage *storage = e->free_storages;
    if (storage != NULL) {
        e->free_storages = storage->next_free;
    } else {
        storage = me_arena_alloc(e->arena, 1, sizeof *storage);
    }
    if (storage == NULL) {
        me_engine_fail(e, ME_ERR_NOMEM, "no host memory for a storage");
    }
    return storage;
}

me_storage *me_storage_new(me_engine *e, const char *op, uint64_t bytes)
{
    me_complete_pending(e);
    if (!me_size_is_valid(bytes) || bytes > UINT64_MAX / 2) {
        me_engine_fail(e, ME_ERR_OVERFLOW,
                       "the size of a tensor of %s exceeds 64 bits", op);
        return NULL;
    }
    me_storage *storage = take_storage(e);
    if (storage == NULL) {
        return NULL;
    }
    *storage = (me_storage){.refs = 1, .serial = e->n_storages++};
    take_block(e, storage, op, bytes);
    return storage;
}

me_storage *me_storage_adopt(me_engine *e, const me_storage *like,
                             uint32_t block)
{
    me_storage *storage = take_storage(e);
    if (storage != NULL) {
        *storage = *like;
        storage->refs = 1;
        storage->n_attributes = 0;
        storage->block = block;
        me_block_hold(e, block, storage);
    }
    return storage;
}

void me_storage_retain(me_storage *storage)
{
    if (storage != NULL) {
        storage->refs++;
    }
}

void me_storage_hold_back(me_engine *e, me_storage *storage)
{
    me_pending_frees *pending = &e->pending;
    void *items = pending->storages;
    if (!grow(&items, pending->count, &pending->capacity,
              sizeof *pending->storages)) {
        me_engine_fail(e, ME_ERR_NOMEM, "no host memory for late frees");
        return;
    }
    pending->storages = items;
    pending->storages[pending->count++] = storage;
}

// NOLINTNEXTLINE(misc-no-recursion): an output's input awaits nothing
void me_storage_await(me_engine *e, me_storage *storage)
{
    me_storage *input = storage == NULL ? NULL : storage->awaited;
    if (input != NULL) {
        storage->awaited = NULL;
        me_storage_release(e, input);
    }
}

// NOLINTNEXTLINE(misc-no-recursion): an output's input awaits nothing
void me_storage_release(me_engine *e, me_storage *storage)
{
    if (storage == NULL) {
        return;
    }
    ME_ASSERT(storage->refs > 0);
    if (--storage->refs > 0) {
        if (storage->n_attributes > 0) {
            me_attribute_left(e, storage);
        }
        return;
    }
    me_storage_await(e, storage);
    if (storage->is_empty) {
        me_storage *data = storage->data;
        forget_storage(e, storage);
        me_storage_release(e, data);
        return;
    }
    if (storage->is_handed) {
        me_attribute_freed(e, storage);
    }
    emit_block(e, ME_EVENT_FREE_REQUESTED, storage, "");
    if (storage->is_late) {
        me_storage_hold_back(e, storage);
    } else {
        complete_free(e, storage);
    }
}

void me_storage_free(me_engine *e, const me_tensor *x)
{
    me_storage *storage = x->storage;
    if (storage == NULL || storage->is_empty || !me_engine_is_ok(e)) {
        return;
    }
    me_storage *block = take_storage(e); // takes over the block
    if (block == NULL) {
        return;
    }
    *block = *storage;
    block->refs = 1;
    if (block->mempool != ME_MEMPOOL_REPLAY) {
        me_block_hold(e, block->block, block);
    }
    *storage = (me_storage){.refs = storage->refs,
                            .category = ME_CATEGORY_ACTIVATION,
                            .is_empty = true};
    me_storage_release(e, block);
}

void me_storage_alloc(me_engine *e, const me_tensor *x, const char *op)
{
    me_storage *storage = x->storage;
    if (storage != NULL && storage->is_empty && me_engine_is_ok(e)) {
        me_complete_pending(e);
        *storage = (me_storage){.refs = storage->refs};
        take_block(e, storage, op, me_bytes(x));
    }
}

void me_restore_data(me_engine *e, me_tensor *x, const me_tensor *y)
{
    me_storage *storage = x->storage;
    if (storage == NULL || !me_engine_is_ok(e)) {
        return;
    }
    ME_ASSERT(storage->is_empty && storage->data == NULL);
    me_storage_retain(y->storage);
    storage->data = y->storage;
}
