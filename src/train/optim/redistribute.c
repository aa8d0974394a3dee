/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/optim/redistribute.h"

#include "base/alloc.h"

me_dlayout me_decayed_layout(const me_step_group *group, const me_parameter *p)
{
    const me_dlayout gradient = me_dparameter_of(p)->gradient;
    const me_dlayout own = me_dparameter_of(p)->tensor.layout;
    if (group->impl == ME_OPTIMIZER_TORCH_FOR_LOOP) {
        return me_dlayout_is_part(own) && !me_dlayout_is_part(gradient)
                   ? own
                   : gradient;
    }
    return gradient == ME_DLAYOUT_PARTIAL ? ME_DLAYOUT_REPLICATE : gradient;
}

bool me_copies_init(me_engine *e, size_t capacity, me_copies *c)
{
    *c = (me_copies){.items = me_alloc(capacity + 1, sizeof(me_tensor *),
                                       "optim.redistributed")};
    if (c->items == NULL) {
        me_engine_fail(e, ME_ERR_NOMEM, "no host memory for a step");
    }
    return c->items != NULL;
}

void me_copies_fini(me_engine *e, me_copies *c)
{
    while (c->count > 0) {
        me_release(e, c->items[--c->count]);
    }
    me_free(c->items);
}

void me_copies_take(me_engine *e, const me_step_group *group, uint32_t i,
                    me_operand kind, me_copies *c)
{
    const me_parameter *p = group->shards[i].parameter;
    const me_dlayout own = me_dparameter_of(p)->tensor.layout;
    me_dlayout from = me_dparameter_of(p)->gradient;
    me_dlayout to = own;
    if (kind == ME_OPERAND_SUMMAND && from != ME_DLAYOUT_PARTIAL) {
        return;
    }
    if (kind == ME_OPERAND_TO_DECAY || kind == ME_OPERAND_DECAY) {
        to = me_decayed_layout(group, p);
        from = kind == ME_OPERAND_DECAY ? own : from;
    } else if (kind == ME_OPERAND_DECAYED) {
        from = me_decayed_layout(group, p);
    }
    me_tensor *x = kind == ME_OPERAND_DECAY ? p->tensor : p->tensor->grad;
    if (from != to && x != NULL && me_engine_is_ok(e)) {
        const me_frame frame = me_enter(e);
        me_module_switch(e, p->module);
        c->items[c->count++] =
            me_retain(me_redistribute_local(group->nn, x, from, to, false));
        me_leave(e, frame, NULL);
    }
}

void me_redistribute_group(me_engine *e, const me_step_group *group,
                           uint32_t first, uint32_t end, uint32_t uses,
                           me_operand kind)
{
    const uint32_t capacity = (end - first) * uses;
    me_copies c;
    if (group->nn == NULL || !me_copies_init(e, capacity, &c)) {
        return;
    }
    for (uint32_t i = 0; i < capacity; i++) {
        me_copies_take(e, group, first + i % (end - first), kind, &c);
    }
    me_copies_fini(e, &c);
}
