/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "base/assert.h"
#include "tensor/engine_private.h"

me_tensor *me_retain(me_tensor *x)
{
    if (x != NULL) {
        x->refs++;
    }
    return x;
}

void me_release(me_engine *e, me_tensor *x)
{
    if (x == NULL) {
        return;
    }
    ME_ASSERT(x->refs > 0 || !me_engine_is_ok(e));
    if (x->refs == 0 || --x->refs > 0 || x == &e->none) {
        if (x->n_attributes > 0 && x->n_attributes == x->refs) {
            me_attribute_left(e, x->storage);
        }
        return;
    }
    me_storage *storage = x->storage;
    me_node *grad_fn = x->grad_fn;
    me_tensor *grad = x->grad;
    if (me_engine_is_ok(e)) {
        x->grad = e->free_tensors;
        e->free_tensors = x;
    } else { // a program that has failed may still name it
        *x = (me_tensor){.refs = 0};
    }
    me_node_release(e, grad_fn);
    me_release(e, grad);
    me_storage_release(e, storage);
}

void me_clear(me_engine *e, me_tensor **x)
{
    me_tensor *held = *x;
    *x = NULL;
    me_release(e, held);
}

void me_assign(me_engine *e, me_tensor **name, me_tensor *x)
{
    me_tensor *before = *name;
    *name = me_retain(x);
    me_release(e, before);
}

static bool reserve(me_engine *e)
{
    me_variables *v = &e->variables;
    if (v->count < v->capacity) {
        return true;
    }
    me_tensor **tensors = me_grow(v->tensors, v->count, &v->capacity,
                                  sizeof *tensors, "engine.variables");
    if (tensors == NULL) {
        me_engine_fail(e, ME_ERR_NOMEM, "no host memory for variables");
        return false;
    }
    v->tensors = tensors;
    return true;
}

void me_frame_push(me_engine *e, me_tensor *x)
{
    if (x == NULL || x == &e->none) {
        return;
    }
    me_retain(x); // without room for ever, since the caller goes on with it
    if (reserve(e)) {
        e->variables.tensors[e->variables.count++] = x;
    }
}

me_tensor *me_adopt(me_engine *e, me_tensor *x)
{
    me_frame_push(e, x);
    me_release(e, x);
    return x;
}

me_tensor *me_hold(me_engine *e, me_tensor *x)
{
    me_frame_push(e, x);
    return x;
}

me_frame me_enter(me_engine *e)
{
    const me_frame outer = {e->variables.base};
    e->variables.base = e->variables.count;
    return outer;
}

void me_leave_with(me_engine *e, me_frame frame, uint32_t count,
                   me_tensor *const *results)
{
    me_variables *v = &e->variables;
    for (uint32_t i = 0; i < count; i++) {
        me_retain(results[i]);
    }
    const uint32_t base = v->base;
    const uint32_t end = v->count;
    for (uint32_t i = base; i < end; i++) {
        me_tensor *x = v->tensors[i];
        v->tensors[i] = NULL;
        me_release(e, x);
    }
    v->count = base;
    v->base = frame.base;
    for (uint32_t i = 0; i < count; i++) {
        me_adopt(e, results[i]);
    }
}

me_tensor *me_leave(me_engine *e, me_frame frame, me_tensor *result)
{
    me_leave_with(e, frame, result == NULL ? 0 : 1, &result);
    return result;
}

/** Where the running frame holds @p x, looking from the newest; -1: nowhere. */
static int64_t find(const me_engine *e, const me_tensor *x)
{
    const me_variables *v = &e->variables;
    for (int64_t i = (int64_t)v->count - 1; i >= (int64_t)v->base; i--) {
        if (v->tensors[i] == x) {
            return i;
        }
    }
    return -1;
}

void me_drop(me_engine *e, me_tensor *x)
{
    const int64_t at = x == NULL ? -1 : find(e, x);
    if (at < 0) {
        ME_ASSERT(x == NULL || x == &e->none || !me_engine_is_ok(e));
        return;
    }
    me_variables *v = &e->variables;
    for (uint32_t i = (uint32_t)at; i + 1 < v->count; i++) {
        v->tensors[i] = v->tensors[i + 1];
    }
    v->count--;
    me_release(e, x);
}

void me_name_last(me_engine *e, me_tensor *x)
{
    const int64_t at = find(e, x);
    if (at < 0) {
        return;
    }
    me_variables *v = &e->variables;
    for (uint32_t i = (uint32_t)at; i + 1 < v->count; i++) {
        v->tensors[i] = v->tensors[i + 1];
    }
    v->tensors[v->count - 1] = x;
}

me_tensor *me_rebind(me_engine *e, me_tensor *x, me_tensor *y)
{
    const int64_t at = find(e, x);
    const int64_t from = find(e, y);
    if (x == y || at < 0 || from < 0) {
        return y;
    }
    me_variables *v = &e->variables;
    v->tensors[at] = y;
    for (uint32_t i = (uint32_t)from; i + 1 < v->count; i++) {
        v->tensors[i] = v->tensors[i + 1];
    }
    v->count--;
    me_release(e, x);
    return y;
}

me_tensor *me_rebind_own(me_engine *e, me_tensor *x, const me_tensor *given,
                         me_tensor *y)
{
    return x == given ? y : me_rebind(e, x, y);
}
