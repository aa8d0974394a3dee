/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/size.h"
#include "tensor/launch.h"
#include "train/torch/fsdp.h"

/** Bytes that a block of the copy kernels handles (aten/native/cuda/
 *  TensorShape.cu, BYTES_PER_BLOCK), and their threads. */
enum {
    COPY_BLOCK_BYTES = 2048,
    COPY_THREADS = 128
};

static uint64_t ranks_of(const me_fsdp_group *group)
{
    return (uint64_t)group->fsdp->loop->comm->size[ME_GROUP_WORLD];
}

static me_dtype original_dtype(const me_fsdp_group *group)
{
    return group->params[0].parameter->dtype;
}

static me_dtype param_dtype(const me_fsdp_group *group)
{
    const me_fully_shard_config *c = &group->fsdp->loop->config->fully_shard;
    return c->has_param_dtype ? c->param_dtype : original_dtype(group);
}

static me_dtype reduce_dtype(const me_fsdp_group *group)
{
    const me_fully_shard_config *c = &group->fsdp->loop->config->fully_shard;
    return c->has_reduce_dtype ? c->reduce_dtype : param_dtype(group);
}

/** On a stream of FSDP's; who needs the result waits for it. */
static void tell(me_fsdp_group *group, me_collective kind, me_dtype dtype,
                 uint8_t stream)
{
    me_loop *l = group->fsdp->loop;
    const uint8_t before = me_stream_set(l->e, stream);
    me_communicate(
        l->e, l->comm,
        (me_call){ME_GROUP_WORLD, kind, dtype, group->shard_numel, -1, true});
    me_stream_set(l->e, before);
}

/** A kernel that reads and writes all of @p numel elements. */
static void copy(me_fsdp_group *group, me_dtype from, me_dtype to,
                 uint64_t numel)
{
    const uint64_t bytes =
        me_size_mul(numel, me_dtype_bytes(from) + me_dtype_bytes(to));
    me_launch_kernel(group->fsdp->loop->e,
                     from == to ? ME_KERNEL_COPY : ME_KERNEL_CAST, 0, bytes);
}

/** Elements of all its parameters, with padding. */
static uint64_t whole_numel(const me_fsdp_group *group)
{
    return me_size_mul(group->shard_numel, ranks_of(group));
}

/** A flat tensor on a stream of FSDP's, the caller's. */
static me_tensor *flat(me_fsdp_group *group, const char *op, uint8_t stream,
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

static void blip(me_engine *e, const char *op, uint64_t bytes)
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
        shape.dim[0] = me_div_up(shape.dim[0], ranks_of(group));
        p->shard_numel = me_shape_numel(&shape);
        group->shard_numel = me_size_add(group->shard_numel, p->shard_numel);
        p->sharded = me_loop_keep(l, "shard", ME_CATEGORY_PARAMETER,
                                  p->parameter->dtype, shape);
        if (me_engine_is_ok(l->e)) {
            p->sharded->requires_grad = true;
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
    const me_dtype dtype = param_dtype(group);
    me_tensor *cast = NULL;
    if (dtype != original_dtype(group)) {
        cast = flat(group, "all_gather_copy_in", ME_STREAM_SIDE, dtype,
                    group->shard_numel);
    }
    group->gathered = flat(group, "all_gather", ME_STREAM_SIDE, dtype,
                           me_size_mul(group->shard_numel, ranks_of(group)));
    me_launch_host(e, ME_HOST_FSDP);
    copy(group, original_dtype(group), dtype, group->shard_numel);
    tell(group, ME_COLLECTIVE_ALL_GATHER, dtype, ME_STREAM_SIDE);
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
    const uint64_t size = me_dtype_bytes(param_dtype(group));
    const uint64_t slots = (uint64_t)card->multiprocessors *
                           card->threads_per_multiprocessor / COPY_THREADS * 2;
    uint64_t pieces = 0;
    for (uint32_t i = 0; i < group->n_params; i++) {
        pieces += me_div_up(me_size_mul(group->params[i].shard_numel, size),
                            COPY_BLOCK_BYTES);
    }
    const uint64_t rounds =
        me_div_up(me_size_mul(pieces, ranks_of(group)), slots);
    const uint64_t chunks = me_min_u64(root_up(rounds), ranks_of(group));
    const uint64_t each = me_div_up(rounds, chunks);
    uint64_t blocks = 0;
    for (uint32_t i = 0; i < group->n_params; i++) {
        blocks += me_div_up(me_size_mul(group->params[i].shard_numel, size),
                            COPY_BLOCK_BYTES * each);
    }
    return 8 * (4 * (uint64_t)group->n_params + 1 + blocks);
}

/** The same of chunk_cat(), which copies gradients in. */
static uint64_t copy_in_bytes(const me_fsdp_group *group)
{
    const uint64_t size = me_dtype_bytes(reduce_dtype(group));
    uint64_t blocks = 0;
    for (uint32_t i = 0; i < group->n_params; i++) {
        blocks += me_div_up(me_size_mul(group->params[i].shard_numel, size),
                            COPY_BLOCK_BYTES);
    }
    return 8 * (6 * (uint64_t)group->n_params + 2 + blocks);
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
        p->unsharded = me_loop_keep(l, "unshard", ME_CATEGORY_PARAMETER,
                                    param_dtype(group), p->parameter->shape);
        if (me_engine_is_ok(e)) {
            p->unsharded->requires_grad = true;
            p->unsharded->parameter = p->parameter;
        }
    }
    me_category_set(e, before);
    me_assign(e, &p->parameter->tensor, p->unsharded);
}

me_tensor *me_fsdp_group_wait(me_fsdp_group *group)
{
    me_engine *e = group->fsdp->loop->e;
    if (group->gathered == NULL || !me_engine_is_ok(e)) {
        return NULL;
    }
    for (uint32_t i = 0; i < group->n_params && me_engine_is_ok(e); i++) {
        alloc_unsharded(group, &group->params[i]);
    }
    blip(e, "split_with_sizes_copy", copy_out_bytes(group));
    me_launch_stream_waits(e);
    copy(group, param_dtype(group), param_dtype(group), whole_numel(group));
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
 *  that made the list until the function returns. */
static void release_gradients(me_fsdp_group *group)
{
    me_engine *e = group->fsdp->loop->e;
    for (uint32_t i = group->n_params - 1; i > 0; i--) {
        me_clear(e, &group->params[i - 1].unsharded->grad);
    }
}

void me_fsdp_group_reduce(me_fsdp_group *group)
{
    me_fsdp *fsdp = group->fsdp;
    me_engine *e = fsdp->loop->e;
    me_clear(e, &fsdp->reduce_input);
    if (group->n_params == 0 || !me_engine_is_ok(e) ||
        group->params[0].unsharded == NULL) {
        return;
    }
    const me_dtype dtype = reduce_dtype(group);
    fsdp->reduce_input =
        flat(group, "reduce_scatter_copy_in", ME_STREAM_DEFAULT, dtype,
             me_size_mul(group->shard_numel, ranks_of(group)));
    blip(e, "chunk_cat", copy_in_bytes(group));
    copy(group, param_dtype(group), dtype, whole_numel(group));
    release_gradients(group);
    me_tensor *output = flat(group, "reduce_scatter", ME_STREAM_REDUCE, dtype,
                             group->shard_numel);
    tell(group, ME_COLLECTIVE_REDUCE_SCATTER, dtype, ME_STREAM_REDUCE);
    me_clear(e, &group->params[group->n_params - 1].unsharded->grad);
    if (dtype != original_dtype(group)) {
        me_tensor *cast = flat(group, "to", ME_STREAM_REDUCE,
                               original_dtype(group), group->shard_numel);
        me_release(e, output);
        output = cast;
    }
    if (me_engine_is_ok(e)) {
        set_gradients(group, output);
    }
    me_release(e, output);
}
