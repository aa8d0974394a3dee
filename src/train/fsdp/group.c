/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/size.h"
#include "tensor/hooks.h"
#include "tensor/launch.h"
#include "train/fsdp/fsdp.h"

/** Bytes that a block of the copy kernels handles (aten/native/cuda/
 *  TensorShape.cu, BYTES_PER_BLOCK), and their threads. */
enum {
    COPY_BLOCK_BYTES = 2048,
    COPY_THREADS = 128
};

static me_engine *engine_of(const me_fsdp_group *group)
{
    return group->fsdp->spec.nn->e;
}

static uint64_t ranks_of(const me_fsdp_group *group)
{
    const me_fully_shard_spec *spec = &group->fsdp->spec;
    return (uint64_t)spec->nn->comm->size[spec->group];
}

static me_dtype original_dtype(const me_fsdp_group *group)
{
    return group->params[0].parameter->dtype;
}

static me_dtype param_dtype(const me_fsdp_group *group)
{
    const me_fully_shard_config *c = group->fsdp->spec.config;
    return c->has_param_dtype ? c->param_dtype : original_dtype(group);
}

static me_dtype reduce_dtype(const me_fsdp_group *group)
{
    const me_fully_shard_config *c = group->fsdp->spec.config;
    return c->has_reduce_dtype ? c->reduce_dtype : param_dtype(group);
}

/** On a stream of FSDP's; who needs the result waits for it. */
static void tell(me_fsdp_group *group, me_collective kind, me_dtype dtype,
                 uint64_t numel, uint8_t stream)
{
    const me_fully_shard_spec *spec = &group->fsdp->spec;
    if (ranks_of(group) > 1) {
        const uint8_t before = me_stream_set(spec->nn->e, stream);
        me_communicate(spec->nn->e, spec->nn->comm,
                       (me_call){spec->group, kind, dtype, numel, -1, true});
        me_stream_set(spec->nn->e, before);
    }
}

/** A kernel that reads and writes all of @p numel elements. */
static void copy(me_fsdp_group *group, me_dtype from, me_dtype to,
                 uint64_t numel)
{
    const uint64_t bytes =
        me_size_mul(numel, me_dtype_bytes(from) + me_dtype_bytes(to));
    me_launch_kernel(engine_of(group),
                     from == to ? ME_KERNEL_COPY : ME_KERNEL_CAST, 0, bytes);
}

/** A flat tensor on a stream of FSDP's, the caller's. */
static me_tensor *flat(me_fsdp_group *group, const char *op, uint8_t stream,
                       me_dtype dtype, uint64_t numel)
{
    me_engine *e = engine_of(group);
    const uint8_t before = me_stream_set(e, stream);
    me_tensor *x =
        me_keep(e, op, ME_CATEGORY_COMMUNICATION, dtype, ME_SHAPE(numel));
    me_stream_set(e, before);
    return x;
}

static void blip(me_engine *e, const char *op, uint64_t bytes)
{
    const me_frame frame = me_enter(e);
    me_drop(e, me_scratch(e, op, bytes));
    me_leave(e, frame, NULL);
}

uint64_t me_fsdp_local_rows(uint64_t rows, uint64_t ranks, uint64_t index)
{
    const uint64_t chunk = me_div_up(rows, ranks);
    const uint64_t before = chunk * index;
    return before >= rows ? 0 : me_min_u64(chunk, rows - before);
}

/** This rank's rows; the block has room for those of the fullest rank. */
static void make_shard(me_fsdp_group *group, me_fsdp_param *p)
{
    const me_fully_shard_spec *spec = &group->fsdp->spec;
    me_engine *e = spec->nn->e;
    me_shape shape = p->parameter->shape;
    const uint64_t rows = shape.dim[0];
    shape.dim[0] = me_div_up(rows, ranks_of(group));
    p->shard_numel = me_shape_numel(&shape);
    group->shard_numel = me_size_add(group->shard_numel, p->shard_numel);
    p->sharded =
        me_keep(e, "shard", ME_CATEGORY_PARAMETER, p->parameter->dtype, shape);
    if (me_engine_is_ok(e)) {
        p->sharded->shape.dim[0] =
            me_fsdp_local_rows(rows, ranks_of(group),
                               (uint64_t)spec->nn->comm->index[spec->group]);
        p->sharded->requires_grad = true;
        p->sharded->parameter = p->parameter;
    }
}

void me_fsdp_group_shard(me_fsdp_group *group)
{
    me_nn *nn = group->fsdp->spec.nn;
    for (uint32_t i = 0; i < group->n_params; i++) {
        me_parameter *parameter = group->params[i].parameter;
        if (parameter->tensor == NULL &&
            !group->fsdp->spec.is_meta) { /* _move_states_to_device() */
            me_parameter_to_device(nn, parameter, parameter->dtype);
        }
    }
    for (uint32_t i = 0; i < group->n_params && me_engine_is_ok(nn->e); i++) {
        me_module_switch(nn->e, group->params[i].parameter->module);
        make_shard(group, &group->params[i]);
    }
    me_module_switch(nn->e, ME_NO_MODULE);
    for (uint32_t i = 0; i < group->n_params && me_engine_is_ok(nn->e); i++) {
        me_fsdp_param *p = &group->params[i];
        me_assign(nn->e, &p->parameter->tensor, p->sharded);
    }
}

void me_fsdp_group_unshard(me_fsdp_group *group)
{
    me_engine *e = engine_of(group);
    if (group->is_unsharded || group->is_pending || group->n_params == 0 ||
        !me_engine_is_ok(e)) {
        return;
    }
    group->is_pending = true;
    if (ranks_of(group) == 1) { /* shards are copied as they are */
        return;
    }
    const me_dtype dtype = param_dtype(group);
    me_tensor *cast = NULL;
    if (dtype != original_dtype(group)) {
        cast = flat(group, "all_gather_copy_in", ME_STREAM_GATHER, dtype,
                    group->shard_numel);
    }
    group->gathered = flat(group, "all_gather", ME_STREAM_GATHER, dtype,
                           me_size_mul(group->shard_numel, ranks_of(group)));
    me_launch_host(e, ME_HOST_FSDP);
    copy(group, original_dtype(group), dtype, group->shard_numel);
    tell(group, ME_COLLECTIVE_ALL_GATHER, dtype, group->shard_numel,
         ME_STREAM_GATHER);
    me_tell_shard_role(e, group->gathered, ME_SHARD_GATHERED);
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
    const me_card *card = me_engine_card(engine_of(group));
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

/** A reduction: parameters with a gradient, which is none of those that the
 *  backward has not come to. */
typedef struct reduction {
    me_fsdp_param **params;
    uint32_t count;
    uint64_t shard_numel;
} reduction;

/** The same of chunk_cat(), which copies gradients in. */
static uint64_t copy_in_bytes(const reduction *r, me_dtype dtype)
{
    const uint64_t size = me_dtype_bytes(dtype);
    uint64_t blocks = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        blocks += me_div_up(me_size_mul(r->params[i]->shard_numel, size),
                            COPY_BLOCK_BYTES);
    }
    return 8 * (6 * (uint64_t)r->count + 2 + blocks);
}

/** A whole parameter: made once, later the same storage with a new block. */
static void alloc_unsharded(me_fsdp_group *group, me_fsdp_param *p)
{
    me_engine *e = engine_of(group);
    const me_category before = me_category_set(e, ME_CATEGORY_PARAMETER);
    if (p->unsharded != NULL) {
        me_storage_alloc(e, p->unsharded, "unshard");
        me_tell_shard_role(e, p->unsharded, ME_SHARD_UNSHARDED_PARAMETER);
    } else {
        p->unsharded = me_keep(e, "unshard", ME_CATEGORY_PARAMETER,
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
    me_engine *e = engine_of(group);
    if (!group->is_pending || !me_engine_is_ok(e)) {
        return NULL;
    }
    for (uint32_t i = 0; i < group->n_params && me_engine_is_ok(e); i++) {
        alloc_unsharded(group, &group->params[i]);
    }
    if (ranks_of(group) > 1) {
        blip(e, "split_with_sizes_copy", copy_out_bytes(group));
    }
    me_launch_stream_waits(e);
    copy(group, param_dtype(group), param_dtype(group),
         me_size_mul(group->shard_numel, ranks_of(group)));
    me_tensor *gathered = group->gathered;
    group->gathered = NULL;
    group->is_pending = false;
    group->is_unsharded = true;
    return gathered;
}

void me_fsdp_group_reshard(me_fsdp_group *group)
{
    me_engine *e = engine_of(group);
    for (uint32_t i = 0; group->is_unsharded && i < group->n_params; i++) {
        me_fsdp_param *p = &group->params[i];
        me_assign(e, &p->parameter->tensor, p->sharded);
        me_storage_free(e, p->unsharded);
    }
    group->is_unsharded = false;
}

/** A shard's gradient: its part of what was reduced, or added to what there
 *  is. */
static void set_gradients(me_engine *e, const reduction *r,
                          const me_tensor *reduced)
{
    const me_frame frame = me_enter(e);
    for (uint32_t i = 0; i < r->count; i++) {
        me_tensor *sharded = r->params[i]->sharded;
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
static void release_gradients(me_engine *e, const reduction *r)
{
    for (uint32_t i = r->count - 1; i > 0; i--) {
        me_clear(e, &r->params[i - 1]->unsharded->grad);
    }
}

static reduction list_gradients(me_fsdp_group *group)
{
    reduction r = {.params = group->with_grad};
    for (uint32_t i = 0; i < group->n_params; i++) {
        me_fsdp_param *p = &group->params[i];
        if (p->unsharded != NULL && p->unsharded->grad != NULL) {
            r.params[r.count++] = p;
            r.shard_numel = me_size_add(r.shard_numel, p->shard_numel);
        }
    }
    return r;
}

/** foreach_reduce(). */
static void reduce(me_fsdp_group *group, const reduction *r)
{
    me_fsdp *fsdp = group->fsdp;
    me_engine *e = engine_of(group);
    const me_dtype dtype = reduce_dtype(group);
    fsdp->reduce_input =
        flat(group, "reduce_scatter_copy_in", ME_STREAM_DEFAULT, dtype,
             me_size_mul(r->shard_numel, ranks_of(group)));
    blip(e, "chunk_cat", copy_in_bytes(r, dtype));
    copy(group, param_dtype(group), dtype,
         me_size_mul(r->shard_numel, ranks_of(group)));
    release_gradients(e, r);
    me_tensor *output =
        flat(group, "reduce_scatter", ME_STREAM_REDUCE, dtype, r->shard_numel);
    tell(group, ME_COLLECTIVE_REDUCE_SCATTER, dtype, r->shard_numel,
         ME_STREAM_REDUCE);
    me_tell_shard_role(e, fsdp->reduce_input, ME_SHARD_REDUCE_SCATTER);
    me_clear(e, &r->params[r->count - 1]->unsharded->grad);
    if (dtype != original_dtype(group)) {
        me_tensor *cast = flat(group, "to", ME_STREAM_REDUCE,
                               original_dtype(group), r->shard_numel);
        me_release(e, output);
        output = cast;
    }
    if (me_engine_is_ok(e)) {
        set_gradients(e, r, output);
    }
    me_release(e, output);
}

void me_fsdp_group_post_backward(me_fsdp_group *group)
{
    me_engine *e = engine_of(group);
    group->state = ME_FSDP_POST_BACKWARD;
    const reduction r = list_gradients(group);
    for (uint32_t i = 0; i < r.count; i++) {
        me_tell_shard_role(e, r.params[i]->unsharded->grad,
                           ME_SHARD_UNSHARDED_GRADIENT);
    }
    me_fsdp_tell(group, ME_SHARD_BEFORE_POST_BACKWARD);
    me_fsdp_group_reshard(group);
    if (r.count > 0 && me_engine_is_ok(e)) {
        me_clear(e, &group->fsdp->reduce_input);
        reduce(group, &r);
    }
    for (uint32_t i = 0; i < group->n_params; i++) {
        me_tell_shard_role(e, group->params[i].sharded->grad,
                           ME_SHARD_SHARDED_GRADIENT);
    }
    me_fsdp_tell(group, ME_SHARD_AFTER_POST_BACKWARD);
}
