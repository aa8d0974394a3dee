/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/size.h"
#include "nn/torch/dtensor.h"
#include "tensor/hooks.h"
#include "train/fsdp/fsdp_private.h"

/* What becomes of a group's gradients (_fsdp_param_group.py, post_backward(),
 * and _fsdp_collectives.py, foreach_reduce()). */

/** A reduction: parameters with a gradient, which is none of those that the
 *  backward has not come to. */
typedef struct reduction {
    me_fsdp_param **params;
    uint32_t count;
    uint64_t shard_numel;
} reduction;

static const me_fully_shard_config *policy(const me_fsdp_group *group)
{
    return group->fsdp->spec.config;
}

static me_dtype reduce_dtype(const me_fsdp_group *group)
{
    const me_fully_shard_config *c = policy(group);
    return c->has_reduce_dtype ? c->reduce_dtype : me_fsdp_param_dtype(group);
}

static bool is_last_pass(const me_fsdp *fsdp)
{
    return fsdp->spec.is_last_pass == NULL || *fsdp->spec.is_last_pass;
}

/** set_requires_gradient_sync(False): a later pass reduces, or the runtime of a
 *  pipeline. */
static bool waits(const me_fsdp *fsdp)
{
    return fsdp->spec.is_stage
               ? !fsdp->is_reducing
               : fsdp->spec.config->syncs_last && !is_last_pass(fsdp);
}

/** Where the gradient that is to be reduced is held; NULL: there is none. */
static me_tensor **gradient(me_fsdp_param *p)
{
    if (p->accumulated != NULL) {
        return &p->accumulated;
    }
    return p->unsharded == NULL || p->unsharded->grad == NULL
               ? NULL
               : &p->unsharded->grad;
}

/** New gradients are added to those that were kept, in place. */
static void accumulate(me_fsdp_group *group)
{
    for (uint32_t i = 0; i < group->n_params; i++) {
        me_fsdp_param *p = &group->params[i];
        if (p->accumulated != NULL && p->unsharded != NULL) {
            me_clear(me_fsdp_engine(group), &p->unsharded->grad);
        }
    }
}

/** Gradients stay, in the dtype of the reduction, for a later pass
 *  (set_requires_gradient_sync(False)). */
static void keep_gradients(me_fsdp_group *group)
{
    me_engine *e = me_fsdp_engine(group);
    if (!policy(group)->has_reduce_dtype) {
        return;
    }
    const me_dtype dtype = reduce_dtype(group);
    for (uint32_t i = 0; i < group->n_params && me_engine_is_ok(e); i++) {
        me_fsdp_param *p = &group->params[i];
        if (p->unsharded != NULL && p->unsharded->grad != NULL &&
            p->unsharded->grad->dtype != dtype) {
            p->accumulated = me_keep(e, "to", ME_CATEGORY_GRADIENT, dtype,
                                     p->unsharded->grad->shape);
            me_clear(e, &p->unsharded->grad);
        }
    }
}

/** Gradients of DTensors come to lie as their parameters do. */
static void place_gradients(me_fsdp_group *group)
{
    me_nn *nn = group->fsdp->spec.nn;
    for (uint32_t i = 0; i < group->n_params && me_engine_is_ok(nn->e); i++) {
        me_fsdp_param *p = &group->params[i];
        me_tensor **held = gradient(p);
        if (held != NULL) {
            const me_frame frame = me_enter(nn->e);
            me_assign(nn->e, held,
                      me_redistribute_local(
                          nn, *held, me_dparameter_of(p->parameter)->gradient,
                          me_dparameter_of(p->parameter)->tensor.layout,
                          false));
            me_leave(nn->e, frame, NULL);
        }
    }
}

static reduction list_gradients(me_fsdp_group *group)
{
    reduction r = {.params = group->with_grad};
    for (uint32_t i = 0; i < group->n_params; i++) {
        me_fsdp_param *p = &group->params[i];
        if (gradient(p) != NULL) {
            r.params[r.count++] = p;
            r.shard_numel = me_size_add(r.shard_numel, p->shard_numel);
        }
    }
    return r;
}

/** Pointers and sizes that chunk_cat(), which copies gradients in, sends to
 *  the GPU, as split_with_sizes_copy() does. */
static uint64_t copy_in_bytes(const reduction *r, me_dtype dtype)
{
    const uint64_t size = me_dtype_bytes(dtype);
    uint64_t blocks = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        blocks += me_div_up(me_size_mul(r->params[i]->shard_numel, size),
                            ME_FSDP_COPY_BYTES);
    }
    return 8 * (6 * (uint64_t)r->count + 2 + blocks);
}

/** chunk_cat() has a kernel for gradients of the reduced dtype, and for
 *  bfloat16 that becomes float32; others go through cat(), whose padding is a
 *  copy of each gradient that does not divide. */
static void copy_in(me_fsdp_group *group, const reduction *r, me_dtype dtype)
{
    me_engine *e = me_fsdp_engine(group);
    const me_dtype from =
        r->params[0]->accumulated != NULL ? dtype : me_fsdp_param_dtype(group);
    me_fsdp_copy(group, from, dtype,
                 me_size_mul(r->shard_numel, me_fsdp_ranks(group)));
    if (from == dtype ||
        (from == ME_DTYPE_BFLOAT16 && dtype == ME_DTYPE_FLOAT32)) {
        me_temporary(e, "chunk_cat", copy_in_bytes(r, dtype));
        return;
    }
    const me_frame frame = me_enter(e);
    for (uint32_t i = 0; i < r->count; i++) {
        const me_fsdp_param *p = r->params[i];
        const uint64_t padded =
            me_size_mul(p->shard_numel, me_fsdp_ranks(group));
        if (padded != p->parameter->numel) {
            me_scratch(e, "constant_pad_nd",
                       me_size_mul(padded, me_dtype_bytes(from)));
        }
    }
    me_leave(e, frame, NULL);
}

/** The list of gradients goes from its end; the last one is named by the loop
 *  over them, which one rank has not, until the function returns. */
static void release_gradients(me_fsdp_group *group, const reduction *r)
{
    const uint32_t named = me_fsdp_ranks(group) > 1 ? 1 : 0;
    for (uint32_t i = r->count - named; i > 0; i--) {
        me_clear(me_fsdp_engine(group), gradient(r->params[i - 1]));
    }
}

/** All gradients of the group, in one tensor, this rank's part summed over the
 *  ranks that share the shards. @return the caller's */
static me_tensor *reduce_scatter(me_fsdp_group *group, const reduction *r,
                                 me_dtype dtype)
{
    me_fsdp *fsdp = group->fsdp;
    fsdp->reduce_input =
        me_fsdp_flat(group, "reduce_scatter_copy_in", ME_STREAM_DEFAULT, dtype,
                     me_size_mul(r->shard_numel, me_fsdp_ranks(group)));
    copy_in(group, r, dtype);
    release_gradients(group, r);
    me_tensor *output = me_fsdp_flat(group, "reduce_scatter", ME_STREAM_REDUCE,
                                     dtype, r->shard_numel);
    me_fsdp_communicate(group, ME_C10D_REDUCE_SCATTER_BASE_, fsdp->reduce_input,
                        (me_call){.group = fsdp->spec.group,
                                  .kind = ME_COLLECTIVE_REDUCE_SCATTER,
                                  .dtype = dtype,
                                  .count = r->shard_numel},
                        ME_STREAM_REDUCE);
    me_tell_shard_role(me_fsdp_engine(group), fsdp->reduce_input,
                       ME_SHARD_REDUCE_SCATTER);
    return output;
}

/** HSDP: sums over the copies of the shards too, in place, or adds to what is
 *  kept for the pass that does. @return @p output if it goes on, else NULL */
static me_tensor *all_reduce(me_fsdp_group *group, const reduction *r,
                             me_tensor *output)
{
    if (policy(group)->all_reduces_last && !is_last_pass(group->fsdp)) {
        if (group->partial == NULL) {
            group->partial = output;
        } else {
            me_release(me_fsdp_engine(group), output);
        }
        return NULL;
    }
    me_fsdp_communicate(group, ME_C10D_ALLREDUCE_, output,
                        (me_call){.group = group->fsdp->spec.copies,
                                  .kind = ME_COLLECTIVE_ALL_REDUCE,
                                  .dtype = (me_dtype)output->dtype,
                                  .count = r->shard_numel},
                        ME_STREAM_ALL_REDUCE);
    group->all_reduced = me_retain(output);
    return output;
}

/** A shard's gradient: its part of what was reduced, or added to what there
 *  is. With offloading a copy on the host, of which the device has no block, as
 *  it has none of the shard. */
static void set_gradients(const me_fsdp_group *group, const reduction *r,
                          const me_tensor *reduced)
{
    me_engine *e = me_fsdp_engine(group);
    const bool offloads = policy(group)->offloads;
    const me_frame frame = me_enter(e);
    for (uint32_t i = 0; i < r->count; i++) {
        me_tensor *sharded = r->params[i]->sharded;
        uint64_t strides[ME_MAX_DIMS] = {0};
        me_strides_contiguous(&sharded->shape, strides);
        if (sharded->grad == NULL) {
            sharded->grad = me_retain(me_alias(e, offloads ? sharded : reduced,
                                               sharded->shape, strides));
            if (offloads && !r->params[i]->has_host_gradient) {
                r->params[i]->has_host_gradient = true;
                me_host_hold(e, ME_HOST_GRADIENTS, me_bytes(sharded),
                             policy(group)->pins_memory);
            }
        }
    }
    me_leave(e, frame, NULL);
    me_categorize(e, reduced, ME_CATEGORY_GRADIENT);
}

/** foreach_reduce(). */
static void reduce(me_fsdp_group *group, const reduction *r)
{
    me_engine *e = me_fsdp_engine(group);
    const bool has_copies = group->fsdp->spec.has_copies;
    const me_dtype dtype = reduce_dtype(group);
    const me_dtype original = me_fsdp_original_dtype(group);
    me_tensor *output = reduce_scatter(group, r, dtype);
    if (has_copies && me_engine_is_ok(e)) {
        output = all_reduce(group, r, output);
    }
    if (output != NULL && dtype != original) {
        const uint8_t stream =
            has_copies ? ME_STREAM_ALL_REDUCE : ME_STREAM_REDUCE;
        me_tensor *cast =
            me_fsdp_flat(group, "to", stream, original, r->shard_numel);
        me_release(e, output);
        output = cast;
    }
    if (output != NULL && me_engine_is_ok(e)) {
        set_gradients(group, r, output);
    }
    me_tensor **last = gradient(r->params[r->count - 1]);
    if (last != NULL) {
        me_clear(e, last);
    }
    me_release(e, output);
    if (output != NULL) {
        me_clear(e, &group->partial);
    }
}

/** Whoever watches is told what its tensors are. */
static void tell_unsharded_gradients(const me_fsdp_group *group)
{
    for (uint32_t i = 0; i < group->n_params; i++) {
        me_tensor **held = gradient(&group->params[i]);
        if (held != NULL) {
            me_tell_shard_role(me_fsdp_engine(group), *held,
                               ME_SHARD_UNSHARDED_GRADIENT);
        }
    }
}

static void tell_sharded_gradients(const me_fsdp_group *group)
{
    for (uint32_t i = 0; i < group->n_params; i++) {
        me_tell_shard_role(me_fsdp_engine(group),
                           group->params[i].sharded->grad,
                           ME_SHARD_SHARDED_GRADIENT);
    }
}

void me_fsdp_group_post_backward(me_fsdp_group *group)
{
    me_engine *e = me_fsdp_engine(group);
    group->state = ME_FSDP_POST_BACKWARD;
    if (!me_engine_is_ok(e)) {
        return;
    }
    tell_unsharded_gradients(group);
    me_fsdp_tell(group, ME_SHARD_BEFORE_POST_BACKWARD);
    accumulate(group);
    if (waits(group->fsdp)) {
        if (!group->fsdp->spec.is_stage) { // set_reshard_after_backward()
            me_fsdp_group_reshard(group);
        }
        keep_gradients(group);
    } else {
        place_gradients(group);
        const reduction r = list_gradients(group);
        me_fsdp_group_reshard(group);
        if (r.count > 0 && me_engine_is_ok(e)) {
            me_clear(e, &group->fsdp->reduce_input);
            me_clear(e, &group->all_reduced);
            reduce(group, &r);
        }
    }
    tell_sharded_gradients(group);
    me_fsdp_tell(group, ME_SHARD_AFTER_POST_BACKWARD);
}
