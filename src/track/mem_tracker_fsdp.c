/* SPDX-License-Identifier: BSD-3-Clause */
#include "track/mem_tracker_impl.h"

static void end_moment(me_mem_tracker *t)
{
    if (t->held.bytes > 0) { // the tool's own loop variable goes
        me_mem_device *d = &t->current.device[ME_MEM_CUDA];
        d->by_category[t->held.category] -= t->held.bytes;
        d->total -= t->held.bytes;
        t->held = (me_mem_block){0};
    }
}

static void before_forward(me_mem_tracker *t, me_module_id module)
{
    if (me_mem_find(t, module) != NULL &&
        (me_is_backward(t->e) || me_mem_is_refused(t))) {
        return;
    }
    me_mem_module *m = me_mem_record(t, module);
    if (m != NULL) {
        me_mem_reset_peak(t, m);
        me_mem_append(t, m, ME_FSDP_MEM_PEAK_FW);
        me_mem_append(t, m, ME_FSDP_MEM_BEF_PRE_FW);
    }
}

/** A moment inside of a recomputation: two states of its own. */
static void recomputation(me_mem_tracker *t, me_mem_module *m,
                          me_shard_moment moment)
{
    if (moment == ME_SHARD_AFTER_PRE_FORWARD) {
        me_mem_append(t, m, ME_FSDP_MEM_PRE_FW_AC);
        if (!t->is_in_recomputation) {
            t->is_in_recomputation = true;
            t->recomputed = m->module;
        }
    } else if (moment == ME_SHARD_BEFORE_POST_FORWARD) {
        me_mem_append(t, m, ME_FSDP_MEM_POST_FW_AC);
        if (t->is_in_recomputation && t->recomputed == m->module) {
            t->is_in_recomputation = false;
        }
    }
}

void me_mem_on_shard_moment(void *self, me_module_id module,
                            me_shard_moment moment)
{
    me_mem_tracker *t = self;
    if (!t->is_listening) {
        return;
    }
    if (moment == ME_SHARD_BEFORE_PRE_FORWARD) {
        before_forward(t, module);
        return;
    }
    me_mem_module *m = me_mem_find(t, module);
    if (m == NULL) {
        return;
    }
    if (moment <= ME_SHARD_AFTER_POST_FORWARD && me_is_backward(t->e)) {
        recomputation(t, m, moment);
        return;
    }
    if (moment == ME_SHARD_BEFORE_PRE_BACKWARD) {
        me_mem_reset_peak(t, m);
        me_mem_append(t, m, ME_FSDP_MEM_PEAK_BW);
    }
    me_mem_append(t, m, ME_FSDP_MEM_BEF_PRE_FW + (uint32_t)moment);
    if (moment == ME_SHARD_AFTER_POST_BACKWARD) {
        end_moment(t);
    }
}

void me_mem_on_shard_role(void *self, const me_tensor *x, me_shard_role role)
{
    static const uint8_t categories[] = {
        [ME_SHARD_UNSHARDED_PARAMETER] = ME_FSDP_MEM_UNSHARDED_PARAM,
        [ME_SHARD_UNSHARDED_GRADIENT] = ME_FSDP_MEM_UNSHARDED_GRAD,
        [ME_SHARD_SHARDED_GRADIENT] = ME_FSDP_MEM_SHARDED_GRAD,
        [ME_SHARD_GATHERED] = ME_FSDP_MEM_ALL_GATHER,
        [ME_SHARD_REDUCE_SCATTER] = ME_FSDP_MEM_REDUCE_SCATTER,
    };
    me_mem_tracker *t = self;
    if (!t->is_listening || x == NULL) {
        return;
    }
    me_mem_move(t, x, categories[role]);
    if (role != ME_SHARD_UNSHARDED_GRADIENT || !t->options.as_memtracker) {
        return;
    }
    if (x->storage != NULL) { // the last one is what its loop still names
        t->held_id = x->storage->block + 1;
    }
}
