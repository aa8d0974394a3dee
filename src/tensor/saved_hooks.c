/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensor/saved_hooks.h"

#include "tensor/engine_private.h"
#include "tensor/tensor.h"

#include <string.h>

const me_saved_hooks *me_saved_hooks_set(me_engine *e,
                                         const me_saved_hooks *hooks)
{
    const me_saved_hooks *before = e->saved_hooks;
    e->saved_hooks = hooks;
    return before;
}

bool me_saved_is_own(const me_node *node)
{
    return node->saved_hooks != NULL && node->saved_hooks->hands_over;
}

void me_saved_clear_data(me_engine *e, me_node *node, uint32_t index)
{
    me_tensor *x = node->saved[index];
    if (x != NULL && node->saved_hooks != NULL) {
        me_set_data(e, x, &e->none);
    }
    me_clear(e, &node->saved[index]);
}

me_tensor *me_saved_pack(me_engine *e, me_node *node, me_tensor *saved)
{
    const me_saved_hooks *hooks = e->saved_hooks;
    me_tensor *stand_in = me_tensor_new(e);
    if (stand_in == NULL) {
        return saved;
    }
    const me_tensor like = *saved;
    uint32_t place = 0;
    if (!hooks->pack(hooks->self, e, node->op, saved, &place)) {
        me_release(e, stand_in);
        return saved;
    }
    node->saved_hooks = hooks;
    stand_in->is_packed = true;
    stand_in->version = place;
    stand_in->dtype = like.dtype;
    stand_in->shape = like.shape;
    memcpy(stand_in->strides, like.strides, sizeof like.strides);
    return stand_in;
}

/** Of the places of a node, one by one. */
static me_tensor **place_of(me_node *node, uint32_t i)
{
    return i < ME_MAX_SAVED ? &node->saved[i]
                            : &node->wide->saved[i - ME_MAX_SAVED];
}

static uint32_t count_places(const me_node *node)
{
    return ME_MAX_SAVED + (node->wide == NULL ? 0 : node->wide->n_saved);
}

void me_saved_unpack(me_engine *e, me_node *node)
{
    const me_saved_hooks *hooks = node->saved_hooks;
    for (uint32_t i = 0; i < count_places(node) && me_engine_is_ok(e); i++) {
        me_tensor **place = place_of(node, i);
        if (*place != NULL && (*place)->is_packed) {
            me_tensor *stand_in = *place;
            *place = hooks->unpack(hooks->self, e, stand_in->version, stand_in);
            me_release(e, stand_in);
        }
    }
}

bool me_saved_unpack_for(me_engine *e, me_node *node)
{
    const bool was_packed = node->saved_hooks != NULL;
    if (was_packed) {
        me_saved_unpack(e, node);
        node->saved_hooks = NULL;
    }
    return was_packed;
}

void me_saved_drop(me_engine *e, me_node *node)
{
    for (uint32_t i = 0; me_saved_is_own(node) && i < count_places(node); i++) {
        me_clear(e, place_of(node, i));
    }
}
