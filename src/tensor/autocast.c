/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensor/autocast.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "tensor/engine_private.h"
#include "tensor/tensor.h"

me_autocast_state me_autocast_enter(me_engine *e, me_autocast_state state)
{
    const me_autocast_state before = e->autocast.state;
    e->autocast.state = state;
    e->autocast.depth++;
    return before;
}

void me_autocast_exit(me_engine *e, me_autocast_state before)
{
    me_autocast *a = &e->autocast;
    ME_ASSERT(a->depth > 0);
    a->depth--;
    for (uint32_t i = 0; a->depth == 0 && i < a->count; i++) {
        me_release(e, a->casts[i].cast);
    }
    a->count = a->depth == 0 ? 0 : a->count;
    a->state = before;
}

me_autocast_state me_autocast_now(const me_engine *e)
{
    return e->autocast.state;
}

me_tensor *me_autocast_cached(const me_engine *e, const me_tensor *source)
{
    for (uint32_t i = 0; i < e->autocast.count; i++) {
        if (e->autocast.casts[i].source == source) {
            return e->autocast.casts[i].cast;
        }
    }
    return NULL;
}

static bool make_room(me_autocast *a)
{
    me_cached_cast *casts = me_grow(a->casts, a->count, &a->capacity,
                                    sizeof *casts, "engine.autocast");
    if (casts != NULL) {
        a->casts = casts;
    }
    return casts != NULL;
}

void me_autocast_cache(me_engine *e, const me_tensor *source, me_tensor *cast)
{
    me_autocast *a = &e->autocast;
    if (!me_engine_is_ok(e)) {
        return;
    }
    if (!make_room(a)) {
        me_engine_fail(e, ME_ERR_NOMEM, "no host memory for autocast");
        return;
    }
    a->casts[a->count++] =
        (me_cached_cast){.source = source, .cast = me_retain(cast)};
}

void me_autocast_fini(me_autocast *autocast)
{
    me_free(autocast->casts);
    *autocast = (me_autocast){0};
}
