/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/size.h"
#include "train/torch/fsdp.h"

/** Threads of a block of the copy kernels (aten/native/cuda/TensorShape.cu). */
enum {
    COPY_THREADS = 128
};

uint64_t me_fsdp_ranks(const me_fsdp_group *group)
{
    return (uint64_t)group->fsdp->loop->comm->size[ME_GROUP_DATA_SHARD];
}

me_dtype me_fsdp_original_dtype(const me_fsdp_group *group)
{
    return group->params[0].parameter->dtype;
}

me_dtype me_fsdp_param_dtype(const me_fsdp_group *group)
{
    const me_fully_shard_config *c = &group->fsdp->loop->config->fully_shard;
    return c->has_param_dtype ? c->param_dtype : me_fsdp_original_dtype(group);
}

void me_fsdp_tell(me_fsdp_group *group, me_group_kind ranks, me_collective kind,
                  me_dtype dtype)
{
    me_loop *l = group->fsdp->loop;
    me_communicate(l->e, l->comm,
                   (me_call){me_mesh_group(l->comm, ranks), kind, dtype,
                             group->shard_numel, -1, false});
}

me_tensor *me_fsdp_flat(me_fsdp_group *group, const char *op, uint8_t stream,
                        me_dtype dtype, uint64_t numel)
{
    me_engine *e = group->fsdp->loop->e;
    const uint8_t before = me_stream_set(e, stream);
    me_tensor *x =
        me_loop_keep(group->fsdp->loop, op, ME_CATEGORY_COMMUNICATION, dtype,
                     ME_SHAPE(numel));
    me_stream_set(e, before);
    return x;
}

void me_fsdp_blip(me_engine *e, const char *op, uint64_t bytes)
{
    const me_frame frame = me_enter(e);
    me_drop(e, me_scratch(e, op, bytes));
    me_leave(e, frame, NULL);
}

void me_fsdp_group_shard(me_fsdp_group *group)
{
    me_loop *l = group->fsdp->loop;
    for (uint32_t i = 0; i < group->n_params && me_engine_is_ok(l->e); i++) {
        me_fsdp_param *p = &group->params[i];
        me_shape shape = p->parameter->shape;
        shape.dim[0] = me_div_up(shape.dim[0], me_fsdp_ranks(group));
        p->shard_numel = me_shape_numel(&shape);
        group->shard_numel = me_size_add(group->shard_numel, p->shard_numel);
        p->sharded = me_loop_keep(l, "shard", ME_CATEGORY_PARAMETER,
                                  p->parameter->dtype, shape);
        if (me_engine_is_ok(l->e)) {
            p->sharded->requires_grad = true;
            p->sharded->layout = p->parameter->layout;
            p->sharded->parameter = p->parameter;
        }
    }
    for (uint32_t i = 0; i < group->n_params && me_engine_is_ok(l->e); i++) {
        me_fsdp_param *p = &group->params[i];
        me_assign(l->e, &p->parameter->tensor, p->sharded);
    }
}

void me_fsdp_group_unshard(me_fsdp_group *group)
{
    me_engine *e = group->fsdp->loop->e;
    if (group->is_unsharded || group->gathered != NULL || !me_engine_is_ok(e)) {
        return;
    }
    if (me_fsdp_ranks(group) == 1) {
        group->is_alone = true;
        return;
    }
    const me_dtype dtype = me_fsdp_param_dtype(group);
    me_tensor *cast = NULL;
    if (dtype != me_fsdp_original_dtype(group)) {
        cast = me_fsdp_flat(group, "all_gather_copy_in", ME_STREAM_SIDE, dtype,
                            group->shard_numel);
    }
    group->gathered =
        me_fsdp_flat(group, "all_gather", ME_STREAM_SIDE, dtype,
                     me_size_mul(group->shard_numel, me_fsdp_ranks(group)));
    me_fsdp_tell(group, ME_GROUP_DATA_SHARD, ME_COLLECTIVE_ALL_GATHER, dtype);
    me_release(e, cast);
}

/** Smallest whole number whose square is at least @p x. */
static uint64_t root_up(uint64_t x)
{
    uint64_t root = 0;
    while (root * root < x) {
        root++;
    }
    return root;
}

/**
 * Pointers and sizes that split_with_sizes_copy() sends to the GPU
 * (TensorShape.cu): blocks handle several pieces each where there are more of
 * them than the card runs at once.
 */
static uint64_t copy_out_bytes(const me_fsdp_group *group)
{
    const me_card *card = me_engine_card(group->fsdp->loop->e);
    const uint64_t size = me_dtype_bytes(me_fsdp_param_dtype(group));
    const uint64_t slots = (uint64_t)card->multiprocessors *
                           card->threads_per_multiprocessor / COPY_THREADS * 2;
    uint64_t pieces = 0;
    for (uint32_t i = 0; i < group->n_params; i++) {
        pieces += me_div_up(me_size_mul(group->params[i].shard_numel, size),
                            ME_FSDP_COPY_BYTES);
    }
    const uint64_t rounds =
        me_div_up(me_size_mul(pieces, me_fsdp_ranks(group)), slots);
    const uint64_t chunks = me_min_u64(root_up(rounds), me_fsdp_ranks(group));
    const uint64_t each = me_div_up(rounds, chunks);
    uint64_t blocks = 0;
    for (uint32_t i = 0; i < group->n_params; i++) {
        blocks += me_div_up(me_size_mul(group->params[i].shard_numel, size),
                            ME_FSDP_COPY_BYTES * each);
    }
    return 8 * (4 * (uint64_t)group->n_params + 1 + blocks);
}

/** A whole parameter: made once, later the same storage with a new block. */
static void alloc_unsharded(me_fsdp_group *group, me_fsdp_param *p)
{
    me_loop *l = group->fsdp->loop;
    me_engine *e = l->e;
    const me_category before = me_category_set(e, ME_CATEGORY_PARAMETER);
    if (p->unsharded != NULL) {
        me_storage_alloc(e, p->unsharded, "unshard");
    } else {
        p->unsharded =
            me_loop_keep(l, "unshard", ME_CATEGORY_PARAMETER,
                         me_fsdp_param_dtype(group), p->parameter->shape);
        if (me_engine_is_ok(e)) {
            p->unsharded->requires_grad = true;
            p->unsharded->layout = p->parameter->layout;
            p->unsharded->parameter = p->parameter;
        }
    }
    me_category_set(e, before);
    me_assign(e, &p->parameter->tensor, p->unsharded);
}

/** One rank: each parameter is copied, or cast first. */
static void copy_alone(me_fsdp_group *group)
{
    me_engine *e = group->fsdp->loop->e;
    const me_dtype dtype = me_fsdp_param_dtype(group);
    me_tensor *cast = NULL;
    for (uint32_t i = 0; i < group->n_params && me_engine_is_ok(e); i++) {
        if (dtype != me_fsdp_original_dtype(group)) {
            me_tensor *next = me_fsdp_flat(group, "to", ME_STREAM_DEFAULT,
                                           dtype, group->params[i].shard_numel);
            me_release(e, cast);
            cast = next;
        }
        alloc_unsharded(group, &group->params[i]);
    }
    me_release(e, cast);
    group->is_alone = false;
    group->is_unsharded = true;
}

me_tensor *me_fsdp_group_wait(me_fsdp_group *group)
{
    me_engine *e = group->fsdp->loop->e;
    if (group->is_alone) {
        copy_alone(group);
        return NULL;
    }
    if (group->gathered == NULL || !me_engine_is_ok(e)) {
        return NULL;
    }
    for (uint32_t i = 0; i < group->n_params && me_engine_is_ok(e); i++) {
        alloc_unsharded(group, &group->params[i]);
    }
    me_fsdp_blip(e, "split_with_sizes_copy", copy_out_bytes(group));
    me_tensor *gathered = group->gathered;
    group->gathered = NULL;
    group->is_unsharded = true;
    return gathered;
}

void me_fsdp_group_reshard(me_fsdp_group *group)
{
    me_engine *e = group->fsdp->loop->e;
    for (uint32_t i = 0; group->is_unsharded && i < group->n_params; i++) {
        me_fsdp_param *p = &group->params[i];
        me_assign(e, &p->parameter->tensor, p->sharded);
        me_storage_free(e, p->unsharded);
    }
    group->is_unsharded = false;
}
