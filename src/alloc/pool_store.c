/* SPDX-License-Identifier: BSD-3-Clause */
/* Records and ordered sets of them. A set is a treap: a search tree whose
 * priorities are a hash of the record's index, so that its shape depends on
 * nothing but the records in it and stays shallow whatever is asked for. */
#include "alloc/pool_internal.h"
#include "base/alloc.h"

#include <string.h>

#define MAX_RECORDS (UINT32_C(1) << 31)

me_status me_pool_store_reserve(me_pool *pool, uint32_t count)
{
    const uint32_t fresh = pool->n_capacity - pool->n_blocks;
    if (count <= pool->n_unused + fresh) {
        return ME_OK;
    }
    if (pool->n_capacity >= MAX_RECORDS) {
        return ME_ERR_NOMEM;
    }
    block *grown = me_grow(pool->blocks, pool->n_capacity, &pool->n_capacity,
                           sizeof *grown, "alloc.blocks");
    if (grown == NULL) {
        return ME_ERR_NOMEM;
    }
    if (pool->n_blocks == 0) {
        grown[NIL] = (block){0};
        pool->n_blocks = 1;
    }
    pool->blocks = grown;
    return ME_OK;
}

uint32_t me_pool_record(me_pool *pool)
{
    uint32_t index = pool->unused;
    if (index != NIL) {
        pool->unused = at(pool, index)->next;
        pool->n_unused--;
    } else {
        ME_ASSERT(pool->n_blocks < pool->n_capacity);
        index = pool->n_blocks++;
    }
    *at(pool, index) = (block){0};
    return index;
}

void me_pool_record_drop(me_pool *pool, uint32_t index)
{
    block *b = at(pool, index);
    b->state = BLOCK_UNUSED;
    b->next = pool->unused;
    pool->unused = index;
    pool->n_unused++;
}

/** A bijection that scatters indices. */
static inline uint32_t priority(uint32_t index)
{
    index *= UINT32_C(0x9E3779B1);
    index ^= index >> 15;
    return index * UINT32_C(0x85EBCA77);
}

static inline bool is_below(const block *b, bool is_by_address, uint64_t stream,
                            uint64_t size, uint64_t address)
{
    if (b->stream != stream) {
        return b->stream < stream;
    }
    if (!is_by_address && b->size != size) {
        return b->size < size;
    }
    return b->address < address;
}

/** Put @p child where @p old hangs below @p parent. */
static inline void hang(me_pool *pool, block_set *set, uint32_t parent,
                        uint32_t old, uint32_t child)
{
    if (parent == NIL) {
        set->root = child;
    } else if (at(pool, parent)->left == old) {
        at(pool, parent)->left = child;
    } else {
        at(pool, parent)->right = child;
    }
    if (child != NIL) {
        at(pool, child)->parent = parent;
    }
}

/** Lift a record above its parent. */
static inline void rotate_up(me_pool *pool, block_set *set, uint32_t index)
{
    block *b = at(pool, index);
    const uint32_t parent = b->parent;
    block *p = at(pool, parent);
    hang(pool, set, p->parent, parent, index);
    if (p->left == index) {
        p->left = b->right;
        if (b->right != NIL) {
            at(pool, b->right)->parent = parent;
        }
        b->right = parent;
    } else {
        p->right = b->left;
        if (b->left != NIL) {
            at(pool, b->left)->parent = parent;
        }
        b->left = parent;
    }
    p->parent = index;
}

void me_pool_set_insert(me_pool *pool, block_set *set, uint32_t index)
{
    block *b = at(pool, index);
    b->left = NIL;
    b->right = NIL;
    uint32_t parent = NIL;
    bool is_left = false;
    for (uint32_t i = set->root; i != NIL;) {
        const block *node = at(pool, i);
        parent = i;
        is_left =
            !is_below(node, set->is_by_address, b->stream, b->size, b->address);
        i = is_left ? node->left : node->right;
    }
    b->parent = parent;
    if (parent == NIL) {
        set->root = index;
        return;
    }
    if (is_left) {
        at(pool, parent)->left = index;
    } else {
        at(pool, parent)->right = index;
    }
    const uint32_t mine = priority(index);
    while (b->parent != NIL && priority(b->parent) < mine) {
        rotate_up(pool, set, index);
    }
}

void me_pool_set_erase(me_pool *pool, block_set *set, uint32_t index)
{
    block *b = at(pool, index);
    while (b->left != NIL && b->right != NIL) {
        rotate_up(pool, set,
                  priority(b->left) > priority(b->right) ? b->left : b->right);
    }
    hang(pool, set, b->parent, index, b->left != NIL ? b->left : b->right);
}

uint32_t me_pool_set_lower_bound(const me_pool *pool, const block_set *set,
                                 uint64_t stream, uint64_t size,
                                 uint64_t address)
{
    uint32_t best = NIL;
    for (uint32_t i = set->root; i != NIL;) {
        const block *node = at(pool, i);
        if (is_below(node, set->is_by_address, stream, size, address)) {
            i = node->right;
        } else {
            best = i;
            i = node->left;
        }
    }
    return best;
}

static uint32_t leftmost(const me_pool *pool, uint32_t index)
{
    while (index != NIL && at(pool, index)->left != NIL) {
        index = at(pool, index)->left;
    }
    return index;
}

static uint32_t rightmost(const me_pool *pool, uint32_t index)
{
    while (index != NIL && at(pool, index)->right != NIL) {
        index = at(pool, index)->right;
    }
    return index;
}

uint32_t me_pool_set_first(const me_pool *pool, const block_set *set)
{
    return leftmost(pool, set->root);
}

uint32_t me_pool_set_last(const me_pool *pool, const block_set *set)
{
    return rightmost(pool, set->root);
}

uint32_t me_pool_set_next(const me_pool *pool, uint32_t index)
{
    if (at(pool, index)->right != NIL) {
        return leftmost(pool, at(pool, index)->right);
    }
    uint32_t parent = at(pool, index)->parent;
    while (parent != NIL && at(pool, parent)->right == index) {
        index = parent;
        parent = at(pool, parent)->parent;
    }
    return parent;
}

uint32_t me_pool_set_prev(const me_pool *pool, uint32_t index)
{
    if (at(pool, index)->left != NIL) {
        return rightmost(pool, at(pool, index)->left);
    }
    uint32_t parent = at(pool, index)->parent;
    while (parent != NIL && at(pool, parent)->left == index) {
        index = parent;
        parent = at(pool, parent)->parent;
    }
    return parent;
}

uint32_t me_pool_set_before(const me_pool *pool, const block_set *set,
                            uint32_t index)
{
    return index == NIL ? rightmost(pool, set->root)
                        : me_pool_set_prev(pool, index);
}
