/* SPDX-License-Identifier: BSD-3-Clause */
/* What modules keep of a micro-batch until the next one comes. */
#include "base/alloc.h"
#include "tensor/engine_private.h"

static void note(me_engine *e, me_keeping keeping, const me_storage *storage,
                 me_tensor **attribute)
{
    me_recording *r = &e->recording;
    if (!r->is_on) {
        return;
    }
    if (r->n_keepings == r->keepings_capacity) {
        me_kept_change *keepings =
            me_grow(r->keepings, r->n_keepings, &r->keepings_capacity,
                    sizeof *keepings, "script.keepings");
        if (keepings == NULL) {
            me_engine_fail(e, ME_ERR_NOMEM, "no host memory for an action");
            r->is_on = false;
            return;
        }
        r->keepings = keepings;
    }
    r->keepings[r->n_keepings++] = (me_kept_change){
        .keeping = keeping,
        .at = r->count,
        .module = e->module,
        .has_block = storage != NULL && !storage->is_empty,
        .block = storage == NULL ? 0 : storage->block,
        .attribute = attribute,
    };
}

static void begin_keeping(me_engine *e, me_tensor **attribute, me_tensor *x)
{
    me_storage *storage = x->storage;
    if (x->n_attributes++ == 0 && storage != NULL &&
        storage->n_attributes++ > 0) {
        note(e, ME_KEEPING_AGAIN, storage, attribute);
    }
    note(e, ME_KEEPING_SET, storage, attribute);
}

static void end_keeping(me_engine *e, me_tensor **attribute, me_tensor *x)
{
    me_storage *storage = x->storage;
    if (--x->n_attributes == 0 && storage != NULL &&
        storage->n_attributes > 0) {
        storage->n_attributes--;
    }
    note(e, ME_KEEPING_LET_GO, storage, attribute);
    if (x->refs > 1) {
        x->refs--; // nothing that holds it beside attributes lets go
    } else {
        me_release(e, x);
    }
    note(e, ME_KEEPING_GONE, NULL, attribute);
}

void me_attribute_set(me_engine *e, me_tensor **attribute, me_tensor *x)
{
    me_tensor *before = *attribute;
    *attribute = me_retain(x);
    if (x != NULL && x != &e->none) {
        begin_keeping(e, attribute, x);
    }
    if (before != NULL && before != &e->none) {
        end_keeping(e, attribute, before);
    }
}

void me_attribute_left(me_engine *e, const me_storage *storage)
{
    if (storage != NULL && storage->n_attributes == storage->refs) {
        note(e, ME_KEEPING_LEFT, storage, NULL);
    }
}

void me_attribute_freed(me_engine *e, const me_storage *storage)
{
    note(e, ME_KEEPING_HANDED, storage, NULL);
}

bool me_is_held_by_others(const me_tensor *x)
{
    return x->refs > x->n_attributes ||
           (x->storage != NULL && x->storage->refs > x->storage->n_attributes);
}
