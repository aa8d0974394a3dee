/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/size.h"
#include "nn/dtensor.h"
#include "train/torch/fsdp.h"

/* What becomes of a group's gradients (_fsdp_param_group.py, post_backward(),
 * and _fsdp_collectives.py, foreach_reduce()). */

static const me_fully_shard_config *policy(const me_fsdp_group *group)
{
    return &group->fsdp->loop->config->fully_shard;
}

static me_dtype reduce_dtype(const me_fsdp_group *group)
{
    const me_fully_shard_config *c = policy(group);
    return c->has_reduce_dtype ? c->reduce_dtype : me_fsdp_param_dtype(group);
}

/** Where the gradient that is to be reduced is held. */
static me_tensor **gradient(me_fsdp_param *p)
{
    return p->accumulated != NULL ? &p->accumulated : &p->unsharded->grad;
}

void me_fsdp_group_accumulate(me_fsdp_group *group)
{
    me_engine *e = group->fsdp->loop->e;
    for (uint32_t i = 0; i < group->n_params; i++) {
        me_fsdp_param *p = &group->params[i];
        if (p->accumulated != NULL && p->unsharded != NULL) {
            me_clear(e, &p->unsharded->grad); // added in place
        }
    }
}

void me_fsdp_group_keep_gradients(me_fsdp_group *group)
{
    me_loop *l = group->fsdp->loop;
    const me_dtype dtype = reduce_dtype(group);
    for (uint32_t i = 0; i < group->n_params && me_engine_is_ok(l->e); i++) {
        me_fsdp_param *p = &group->params[i];
        if (policy(group)->has_reduce_dtype && p->unsharded != NULL &&
            p->unsharded->grad != NULL && p->unsharded->grad->dtype != dtype) {
            p->accumulated = me_loop_keep(l, "to", ME_CATEGORY_GRADIENT, dtype,
                                          p->unsharded->grad->shape);
            me_clear(l->e, &p->unsharded->grad);
        }
    }
}

void me_fsdp_group_place_gradients(me_fsdp_group *group)
{
    me_loop *l = group->fsdp->loop;
    for (uint32_t i = 0; i < group->n_params && me_engine_is_ok(l->e); i++) {
        me_fsdp_param *p = &group->params[i];
        me_tensor **held = p->unsharded == NULL ? NULL : gradient(p);
        if (held != NULL && *held != NULL) {
            const me_frame frame = me_enter(l->e);
            me_assign(
                l->e, held,
                me_redistribute_local(&l->nn, *held,
                                      (me_dlayout)p->parameter->gradient_layout,
                                      (me_dlayout)p->parameter->layout, false));
            me_leave(l->e, frame, NULL);
        }
    }
}

/** Pointers and sizes that chunk_cat(), which copies gradients in, sends to
 *  the GPU, as split_with_sizes_copy() does. */
static uint64_t copy_in_bytes(const me_fsdp_group *group)
{
    const uint64_t size = me_dtype_bytes(reduce_dtype(group));
    uint64_t blocks = 0;
    for (uint32_t i = 0; i < group->n_params; i++) {
        blocks += me_div_up(me_size_mul(group->params[i].shard_numel, size),
                            ME_FSDP_COPY_BYTES);
    }
    return 8 * (6 * (uint64_t)group->n_params + 2 + blocks);
}

/** chunk_cat() has a kernel for gradients of the reduced dtype, and for
 *  bfloat16 that becomes float32; others go through cat(), whose padding is a
 *  copy of each gradient that does not divide. */
static void copy_in(me_fsdp_group *group, me_dtype dtype)
{
    me_engine *e = group->fsdp->loop->e;
    const me_dtype from = group->params[0].accumulated != NULL
                              ? dtype
                              : me_fsdp_param_dtype(group);
    if (from == dtype ||
        (from == ME_DTYPE_BFLOAT16 && dtype == ME_DTYPE_FLOAT32)) {
        me_fsdp_blip(e, "chunk_cat", copy_in_bytes(group));
        return;
    }
    const me_frame frame = me_enter(e);
    for (uint32_t i = 0; i < group->n_params; i++) {
        const me_fsdp_param *p = &group->params[i];
        const uint64_t padded =
            me_size_mul(p->shard_numel, me_fsdp_ranks(group));
        if (padded != p->parameter->numel) {
            me_scratch(e, "constant_pad_nd",
                       me_size_mul(padded, me_dtype_bytes(from)));
        }
    }
    me_leave(e, frame, NULL);
}

/** A shard's gradient: its part of what was reduced, or added to what there
 *  is. */
static void set_gradients(me_fsdp_group *group, const me_tensor *reduced)
{
    me_engine *e = group->fsdp->loop->e;
    const me_frame frame = me_enter(e);
    for (uint32_t i = 0; i < group->n_params; i++) {
        me_tensor *sharded = group->params[i].sharded;
        uint64_t strides[ME_MAX_DIMS] = {0};
        me_strides_contiguous(&sharded->shape, strides);
        if (sharded->grad == NULL) {
            sharded->grad =
                me_retain(me_alias(e, reduced, sharded->shape, strides));
        }
    }
    me_leave(e, frame, NULL);
    me_categorize(e, reduced, ME_CATEGORY_GRADIENT);
}

/** The list of gradients goes from its end; the last one is named by the loop
 *  over them, which one rank has not, until the function returns. */
static void release_gradients(me_fsdp_group *group)
{
    me_engine *e = group->fsdp->loop->e;
    const uint32_t named = me_fsdp_ranks(group) > 1 ? 1 : 0;
    for (uint32_t i = group->n_params - named; i > 0; i--) {
        me_clear(e, gradient(&group->params[i - 1]));
    }
}

/** All gradients of the group, in one tensor, this rank's part summed over the
 *  ranks that share the shards. @return the caller's */
static me_tensor *reduce_scatter(me_fsdp_group *group, me_dtype dtype)
{
    me_fsdp *fsdp = group->fsdp;
    fsdp->reduce_input =
        me_fsdp_flat(group, "reduce_scatter_copy_in", ME_STREAM_DEFAULT, dtype,
                     me_size_mul(group->shard_numel, me_fsdp_ranks(group)));
    copy_in(group, dtype);
    release_gradients(group);
    me_tensor *output = me_fsdp_flat(group, "reduce_scatter", ME_STREAM_REDUCE,
                                     dtype, group->shard_numel);
    me_fsdp_tell(group, ME_GROUP_DATA_SHARD, ME_COLLECTIVE_REDUCE_SCATTER,
                 dtype);
    return output;
}

/** HSDP: sums over the copies of the shards too, in place, or adds to what is
 *  kept for the pass that does. @return @p output if it goes on, else NULL */
static me_tensor *all_reduce(me_fsdp_group *group, me_tensor *output)
{
    const bool is_last = group->fsdp->loop->is_last_pass;
    if (policy(group)->all_reduces_last && !is_last) {
        if (group->partial == NULL) {
            group->partial = output;
        } else {
            me_release(group->fsdp->loop->e, output);
        }
        return NULL;
    }
    me_fsdp_tell(group, ME_GROUP_DATA_REPLICATE, ME_COLLECTIVE_ALL_REDUCE,
                 (me_dtype)output->dtype);
    group->all_reduced = me_retain(output);
    return output;
}

void me_fsdp_group_reduce(me_fsdp_group *group)
{
    me_fsdp *fsdp = group->fsdp;
    me_engine *e = fsdp->loop->e;
    if (group->n_params == 0 || !me_engine_is_ok(e) ||
        group->params[0].unsharded == NULL) {
        return;
    }
    me_clear(e, &fsdp->reduce_input);
    me_clear(e, &group->all_reduced);
    const bool is_replicated =
        fsdp->loop->comm->size[ME_GROUP_DATA_REPLICATE] > 1;
    const me_dtype dtype = reduce_dtype(group);
    const me_dtype original = me_fsdp_original_dtype(group);
    me_tensor *output = reduce_scatter(group, dtype);
    if (is_replicated && me_engine_is_ok(e)) {
        output = all_reduce(group, output);
    }
    if (output != NULL && dtype != original) {
        me_tensor *cast = me_fsdp_flat(group, "to",
                                       is_replicated ? ME_STREAM_ALL_REDUCE
                                                     : ME_STREAM_REDUCE,
                                       original, group->shard_numel);
        me_release(e, output);
        output = cast;
    }
    if (output != NULL && me_engine_is_ok(e)) {
        set_gradients(group, output);
    }
    me_clear(e, gradient(&group->params[group->n_params - 1]));
    me_release(e, output);
    if (output != NULL) {
        me_clear(e, &group->partial);
    }
}
