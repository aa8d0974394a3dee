/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/megatron/hybrid_optimizer.h"

#include "base/alloc.h"
#include "base/size.h"
#include "tensor/launch.h"
#include "train/megatron/bookkeeping.h"
#include "train/megatron/trainer.h"

/* core/optimizer/cpu_offloading/hybrid_optimizer.py: from the first parameter
 * on, the host steps as many as reach a part of all elements, and the device's
 * own optimizer the others, each on float32 copies. */

/** How many of @p n, from the first on, the host takes. */
static uint32_t count_offloaded(const me_shard_state *shards, uint32_t n,
                                double fraction)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < n; i++) {
        total = me_size_add(total, shards[i].numel);
    }
    uint64_t taken = 0;
    uint32_t count = 0;
    while (count < n && (double)taken < (double)total * fraction) {
        taken = me_size_add(taken, shards[count++].numel);
    }
    return count;
}

/** Is the host's copy of a parameter the pinned one itself, as it is in
 *  float32? */
static bool is_copy_pinned(const me_trainer *t)
{
    return t->config->train.params_dtype == ME_DTYPE_FLOAT32;
}

/** `.cpu().pin_memory()` in the parameter's type, whose block is free as soon as
 *  the float32 copy, which is not pinned, is there. */
static void hold_copy(me_trainer *t, uint64_t numel)
{
    const uint64_t bytes =
        me_size_mul(me_dtype_bytes(t->config->train.params_dtype), numel);
    me_host_hold(t->e, ME_HOST_PARAMETERS, bytes, true);
    if (!is_copy_pinned(t)) {
        me_host_release(t->e, ME_HOST_PARAMETERS, bytes, true);
        me_host_hold(t->e, ME_HOST_PARAMETERS, me_size_mul(4, numel), false);
    }
}

/** _init_sub_optimizers(): a clone of what goes to the host, a main parameter of
 *  what stays; and the kernels' flag, if anything does. */
static uint32_t build(me_trainer *t, me_optimizer *o, me_shard_state *shards,
                      uint32_t n)
{
    me_engine *e = t->e;
    const uint32_t n_offloaded =
        count_offloaded(shards, n, t->config->optimizer.offload_fraction);
    const uint64_t bytes = me_dtype_bytes(t->config->train.params_dtype);
    for (uint32_t i = 0; i < n && me_engine_is_ok(e); i++) {
        me_module_switch(e, shards[i].parameter->module);
        if (i < n_offloaded) {
            me_temporary(e, "clone", me_size_mul(bytes, shards[i].numel));
            hold_copy(t, shards[i].numel);
        } else {
            shards[i].main =
                me_make_main_parameter(t, shards[i].parameter, shards[i].numel);
        }
    }
    me_module_switch(e, ME_NO_MODULE);
    o->whole_flag = o->overflow_flag; // of the build before, if there was one
    o->overflow_flag = NULL;
    if (n_offloaded < n && t->config->impl.optimizer == ME_OPTIMIZER_FUSED) {
        o->overflow_flag = me_keep_scalar(e, "overflow_flag", 4);
    }
    return n_offloaded;
}

/** Whole parameters of an optimizer's chunks as it groups them. */
static uint32_t list_whole(const me_trainer *t, const me_optimizer *o,
                           me_shard_state *shards)
{
    uint32_t n = 0;
    for (int group = 0; group < ME_OPTIMIZER_GROUPS; group++) {
        for (uint32_t i = 0; i < t->parameters.count; i++) {
            me_parameter *p = t->parameters.parameters[i];
            const bool is_mine =
                p->chunk >= o->chunk_begin && p->chunk < o->chunk_end &&
                p->is_expert == (o->sharing == ME_SHARING_EXPERT);
            if (is_mine && (int)me_parameter_group_of(t, p) == group) {
                shards[n++] =
                    (me_shard_state){.parameter = p, .numel = p->numel};
            }
        }
    }
    return n;
}

/** It is garbage once that of the shards is there, with its hooks in a cycle, for
 * Python's collector to find. */
void me_hybrid_build_whole(me_trainer *t, me_optimizer *o)
{
    o->n_whole = 0;
    o->whole =
        me_alloc(t->parameters.count, sizeof *o->whole, "optimizer.whole");
    if (o->whole == NULL) {
        me_engine_fail(t->e, ME_ERR_NOMEM, "no host memory for the optimizer");
        return;
    }
    o->n_whole = list_whole(t, o, o->whole);
    o->n_whole_offloaded = build(t, o, o->whole, o->n_whole);
}

void me_hybrid_forget_whole(me_trainer *t, me_optimizer *o)
{
    for (uint32_t i = o->n_whole; i > 0; i--) {
        me_shard_state_fini(t->e, &o->whole[i - 1]);
    }
    for (uint32_t i = 0; i < o->n_whole_offloaded; i++) {
        me_host_release(t->e, ME_HOST_PARAMETERS,
                        me_size_mul(4, o->whole[i].numel), is_copy_pinned(t));
    }
    me_clear(t->e, &o->whole_flag);
    me_free(o->whole);
    o->whole = NULL;
    o->n_whole = 0;
    o->n_whole_offloaded = 0;
}

/** Of all optimizers of a rank. */
static void collect(void *self, me_engine *e)
{
    me_trainer *t = self;
    (void)e;
    for (int i = 0; i < t->n_optimizers; i++) {
        me_hybrid_forget_whole(t, &t->optimizers[i]);
    }
}

void me_hybrid_build(me_trainer *t, me_optimizer *o)
{
    o->n_offloaded = build(t, o, o->shards, o->count);
    me_collect_later(t->e, collect, t);
}

/** A float32 copy on the way between device and host, on the stream of the
 *  copies. */
static void convert(me_trainer *t, const me_shard_state *s)
{
    me_module_switch(t->e, s->parameter->module);
    me_temporary(t->e, "copy_", me_size_mul(4, s->numel));
    me_launch_kernel(t->e, ME_KERNEL_CAST, 0, me_size_mul(6, s->numel));
}

/** _set_sub_optimizer_grads(): gradients in float32, the device's until the next
 *  step's. */
static void take_gradients(me_trainer *t, me_optimizer *o)
{
    me_engine *e = t->e;
    if (t->config->train.grad_dtype == ME_DTYPE_FLOAT32) {
        return;
    }
    for (uint32_t i = o->n_offloaded; i < o->count; i++) {
        me_shard_state *s = &o->shards[i];
        const me_frame frame = me_enter(e);
        const me_category before = me_category_set(e, ME_CATEGORY_GRADIENT);
        me_module_switch(e, s->parameter->module);
        me_assign(e, &s->gradient,
                  me_empty(e, "to", ME_DTYPE_FLOAT32, ME_SHAPE(s->numel)));
        me_launch_kernel(e, ME_KERNEL_CAST, 0, me_size_mul(6, s->numel));
        me_category_set(e, before);
        me_leave(e, frame, NULL);
    }
    for (uint32_t i = 0; i < o->n_offloaded; i++) {
        convert(t, &o->shards[i]);
    }
}

/** What the host's first step makes: gradients, two moments and a
 *  counter. */
static void hold_states(me_trainer *t, me_optimizer *o)
{
    for (uint32_t i = 0; !o->has_host_states && i < o->n_offloaded; i++) {
        const uint64_t bytes = me_size_mul(4, o->shards[i].numel);
        me_host_hold(t->e, ME_HOST_GRADIENTS, bytes,
                     t->config->optimizer.pin_cpu_grads);
        me_host_hold(t->e, ME_HOST_OPTIMIZER_STATE,
                     me_size_add(me_size_mul(2, bytes), 4), false);
    }
    o->has_host_states = true;
}

/** The device's part first; then the host's, whose parameters go back by way of
 * a float32 copy. */
void me_hybrid_step(me_trainer *t, me_optimizer *o)
{
    me_engine *e = t->e;
    const bool overlaps = t->config->optimizer.overlap_cpu_optimizer_d2h_h2d;
    const uint8_t copies = overlaps ? ME_STREAM_SIDE : ME_STREAM_DEFAULT;
    const uint8_t stream = me_stream_set(e, copies);
    me_collect(e);
    take_gradients(t, o);
    me_stream_set(e, stream);
    me_optimizer_step_groups(t, o);
    hold_states(t, o);
    if (o->n_offloaded > 0) {
        me_launch_host_waits(e); // for the gradients
    }
    me_stream_set(e, copies);
    for (uint32_t i = 0; i < o->n_offloaded; i++) {
        convert(t, &o->shards[i]);
    }
    me_stream_set(e, stream);
    me_module_switch(e, ME_NO_MODULE);
}
