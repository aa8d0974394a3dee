/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensor/kind.h"

#include "tensor/engine_private.h"

#include <string.h>

struct me_interned_kind {
    me_interned_kind *next;
    size_t size;
    const me_kind *kind;
};

const me_kind *me_kind_intern(me_engine *e, const me_kind *kind, size_t size)
{
    me_interned_kind *known = e->kinds;
    while (known != NULL &&
           (known->size != size || memcmp(known->kind, kind, size) != 0)) {
        known = known->next;
    }
    if (known != NULL) {
        return known->kind;
    }
    known = me_engine_alloc(e, 1, sizeof *known);
    me_kind *copy = known == NULL ? NULL : me_engine_alloc(e, 1, size);
    if (copy == NULL) {
        return NULL;
    }
    memcpy(copy, kind, size);
    *known = (me_interned_kind){.next = e->kinds, .size = size, .kind = copy};
    e->kinds = known;
    return copy;
}
