/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/size.h"
#include "tensor/hooks.h"
#include "tensor/launch.h"
#include "train/fsdp/fsdp_private.h"

/** Threads of a block of the copy kernels (aten/native/cuda/TensorShape.cu). */
enum {
    COPY_THREADS = 128
};

me_engine *me_fsdp_engine(const me_fsdp_group *group)
{
    return group->fsdp->spec.nn->e;
}

uint64_t me_fsdp_ranks(const me_fsdp_group *group)
{
    const me_fully_shard_spec *spec = &group->fsdp->spec;
    return (uint64_t)spec->nn->comm->size[spec->group];
}

me_dtype me_fsdp_original_dtype(const me_fsdp_group *group)
{
    return group->params[0].parameter->dtype;
}

me_dtype me_fsdp_param_dtype(const me_fsdp_group *group)
{
    const me_fully_shard_config *c = group->fsdp->spec.config;
    return c->has_param_dtype ? c->param_dtype : me_fsdp_original_dtype(group);
}

void me_fsdp_communicate(me_fsdp_group *group, me_c10d_op op,
                         const me_tensor *whole, me_call call, uint8_t stream)
{
    const me_nn *nn = group->fsdp->spec.nn;
    const uint8_t before = me_stream_set(nn->e, stream);
    call.peer = -1;
    me_communicate_c10d(
        nn->e, nn->comm,
        (me_c10d_call){.op = op,
                       .group = call.group,
                       .peer = -1,
                       .input_bytes = me_storage_bytes(whole),
                       .output_bytes = me_storage_bytes(whole)});
    call.is_async = true;
    me_communicate(nn->e, nn->comm, call);
    me_stream_set(nn->e, before);
}

void me_fsdp_copy(me_fsdp_group *group, me_dtype from, me_dtype to,
                  uint64_t numel)
{
    const uint64_t bytes =
        me_size_mul(numel, me_dtype_bytes(from) + me_dtype_bytes(to));
    me_launch_kernel(me_fsdp_engine(group),
                     from == to ? ME_KERNEL_COPY : ME_KERNEL_CAST, 0, bytes);
}

me_tensor *me_fsdp_flat(me_fsdp_group *group, const char *op, uint8_t stream,
                        me_dtype dtype, uint64_t numel)
{
    me_engine *e = me_fsdp_engine(group);
    const uint8_t before = me_stream_set(e, stream);
    me_tensor *x =
        me_keep(e, op, ME_CATEGORY_COMMUNICATION, dtype, ME_SHAPE(numel));
    me_stream_set(e, before);
    return x;
}

uint64_t me_fsdp_local_rows(uint64_t rows, uint64_t ranks, uint64_t index)
{
    const uint64_t chunk = me_div_up(rows, ranks);
    const uint64_t before = chunk * index;
    return before >= rows ? 0 : me_min_u64(chunk, rows - before);
}

/** `shard.cpu()`, then pin_memory(): the device's block goes. */
static void offload_shard(me_fsdp_group *group, me_fsdp_param *p)
{
    me_engine *e = me_fsdp_engine(group);
    me_storage_free(e, p->sharded);
    me_host_hold(e, ME_HOST_PARAMETERS, me_bytes(p->sharded),
                 group->fsdp->spec.config->pins_memory);
}

/** This rank's rows; the block has room for those of the fullest rank. On the
 *  meta device those of the host never have one on the card. */
static void make_shard(me_fsdp_group *group, me_fsdp_param *p)
{
    const me_fully_shard_spec *spec = &group->fsdp->spec;
    me_engine *e = spec->nn->e;
    me_shape shape = p->parameter->shape;
    const uint64_t rows = shape.dim[0];
    shape.dim[0] = me_div_up(rows, me_fsdp_ranks(group));
    p->shard_numel = me_shape_numel(&shape);
    group->shard_numel = me_size_add(group->shard_numel, p->shard_numel);
    p->sharded = spec->is_meta && spec->config->offloads
                     ? me_keep_on_host(e, p->parameter->dtype, shape)
                     : me_keep(e, "shard", ME_CATEGORY_PARAMETER,
                               p->parameter->dtype, shape);
    if (spec->config->offloads && me_engine_is_ok(e)) {
        offload_shard(group, p);
    }
    if (me_engine_is_ok(e)) {
        p->sharded->shape.dim[0] =
            me_fsdp_local_rows(rows, me_fsdp_ranks(group),
                               (uint64_t)spec->nn->comm->index[spec->group]);
        p->sharded->requires_grad = true;
        p->sharded->kind = p->parameter->kind;
        p->sharded->parameter = p->parameter;
    }
}

/** Those that are one with @p moved until each is sharded are moved with it. */
static void share_moved(me_nn *nn, const me_parameter *moved)
{
    const me_parameter *first =
        moved->parted_from == NULL ? moved : moved->parted_from;
    for (uint32_t i = 0; i < nn->parameters->count; i++) {
        me_parameter *p = nn->parameters->parameters[i];
        if (p->tensor == NULL && (p == first || p->parted_from == first) &&
            me_engine_is_ok(nn->e)) {
            p->tensor = me_retain(moved->tensor);
        }
    }
}

void me_fsdp_group_shard(me_fsdp_group *group)
{
    me_nn *nn = group->fsdp->spec.nn;
    for (uint32_t i = 0; i < group->n_params; i++) {
        me_parameter *parameter = group->params[i].parameter;
        if (parameter->tensor == NULL &&
            !group->fsdp->spec.is_meta) { // _move_states_to_device()
            me_parameter_to_device(nn, parameter, parameter->dtype);
            share_moved(nn, parameter);
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

/** What the host has comes to the device, parameter by parameter, and is cast
 *  there (FSDPParam.all_gather_inputs). */
static void copy_from_host(me_fsdp_group *group)
{
    me_engine *e = me_fsdp_engine(group);
    const me_dtype from = me_fsdp_original_dtype(group);
    const me_dtype to = me_fsdp_param_dtype(group);
    for (uint32_t i = 0; i < group->n_params && me_engine_is_ok(e); i++) {
        me_fsdp_param *p = &group->params[i];
        p->copied =
            me_fsdp_flat(group, "to", ME_STREAM_GATHER, from, p->shard_numel);
        if (from != to) {
            me_tensor *cast =
                me_fsdp_flat(group, "to", ME_STREAM_GATHER, to, p->shard_numel);
            me_clear(e, &p->copied);
            p->copied = cast;
        }
    }
}

static void drop_copies(me_fsdp_group *group)
{
    for (uint32_t i = group->n_params; i > 0; i--) {
        me_clear(me_fsdp_engine(group), &group->params[i - 1].copied);
    }
}

void me_fsdp_group_unshard(me_fsdp_group *group)
{
    me_engine *e = me_fsdp_engine(group);
    if (group->is_unsharded || group->is_pending || group->n_params == 0 ||
        !me_engine_is_ok(e)) {
        return;
    }
    group->is_pending = true;
    if (me_fsdp_ranks(group) == 1) { // shards are copied as they are
        return;
    }
    const me_dtype dtype = me_fsdp_param_dtype(group);
    me_tensor *cast = NULL;
    if (group->fsdp->spec.config->offloads) {
        copy_from_host(group);
    } else if (dtype != me_fsdp_original_dtype(group)) {
        cast = me_fsdp_flat(group, "all_gather_copy_in", ME_STREAM_GATHER,
                            dtype, group->shard_numel);
    }
    group->gathered =
        me_fsdp_flat(group, "all_gather", ME_STREAM_GATHER, dtype,
                     me_size_mul(group->shard_numel, me_fsdp_ranks(group)));
    me_launch_host(e, ME_HOST_FSDP);
    me_fsdp_copy(group, me_fsdp_original_dtype(group), dtype,
                 group->shard_numel);
    me_fsdp_communicate(group, ME_C10D_ALLGATHER_BASE_, group->gathered,
                        (me_call){.group = group->fsdp->spec.group,
                                  .kind = ME_COLLECTIVE_ALL_GATHER,
                                  .dtype = dtype,
                                  .count = group->shard_numel},
                        ME_STREAM_GATHER);
    me_tell_shard_role(e, group->gathered, ME_SHARD_GATHERED);
    me_release(e, cast);
    drop_copies(group);
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
    const me_card *card = me_engine_card(me_fsdp_engine(group));
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

/** `torch.as_strided(all_gather_output, size)` of a parameter: no view to
 *  autograd. @return the caller's */
static me_tensor *show_unsharded(me_engine *e, const me_fsdp_param *p)
{
    uint64_t strides[ME_MAX_DIMS] = {0};
    me_strides_contiguous(&p->parameter->shape, strides);
    const me_frame frame = me_enter(e);
    me_tensor *x =
        me_retain(me_alias(e, p->gathered, p->parameter->shape, strides));
    if (me_engine_is_ok(e)) {
        x->is_view = false;
    }
    me_leave(e, frame, NULL);
    return x;
}

/** A whole parameter: made once, later the same storage with a new block. */
static void alloc_unsharded(me_fsdp_group *group, me_fsdp_param *p)
{
    me_engine *e = me_fsdp_engine(group);
    const me_category before = me_category_set(e, ME_CATEGORY_PARAMETER);
    if (p->unsharded != NULL) {
        me_storage_alloc(e, p->gathered, "unshard");
        me_tell_shard_role(e, p->unsharded, ME_SHARD_UNSHARDED_PARAMETER);
    } else {
        const me_dtype dtype = me_fsdp_param_dtype(group);
        p->gathered = me_keep(
            e, "unshard", ME_CATEGORY_PARAMETER, dtype,
            ME_SHAPE(me_size_mul(p->shard_numel, me_fsdp_ranks(group))));
        p->unsharded = show_unsharded(e, p);
        if (me_engine_is_ok(e)) {
            p->unsharded->requires_grad = true;
            p->unsharded->kind = p->parameter->kind;
            p->unsharded->parameter = p->parameter;
        }
    }
    me_category_set(e, before);
    me_assign(e, &p->parameter->tensor, p->unsharded);
}

/** What one rank copies of a shard: itself (NULL), or from the host and cast
 *  before. @return the caller's */
static me_tensor *copied_alone(me_fsdp_group *group, uint64_t numel)
{
    me_engine *e = me_fsdp_engine(group);
    const me_dtype from = me_fsdp_original_dtype(group);
    const me_dtype to = me_fsdp_param_dtype(group);
    me_tensor *x = NULL;
    if (group->fsdp->spec.config->offloads) {
        x = me_fsdp_flat(group, "to", ME_STREAM_DEFAULT, from, numel);
    }
    if (from != to) {
        me_tensor *cast =
            me_fsdp_flat(group, "to", ME_STREAM_DEFAULT, to, numel);
        me_release(e, x);
        x = cast;
    }
    return x;
}

/** One rank has the whole: each shard is copied; the one before goes once there
 *  is the next one. */
static void copy_alone(me_fsdp_group *group)
{
    me_engine *e = me_fsdp_engine(group);
    me_tensor *copied = NULL;
    for (uint32_t i = 0; i < group->n_params && me_engine_is_ok(e); i++) {
        me_tensor *next = copied_alone(group, group->params[i].shard_numel);
        me_release(e, copied);
        copied = next;
        alloc_unsharded(group, &group->params[i]);
    }
    me_release(e, copied);
}

/** What was gathered is cut into the parameters. */
static void copy_out(me_fsdp_group *group)
{
    me_engine *e = me_fsdp_engine(group);
    for (uint32_t i = 0; i < group->n_params && me_engine_is_ok(e); i++) {
        alloc_unsharded(group, &group->params[i]);
    }
    me_temporary(e, "split_with_sizes_copy", copy_out_bytes(group));
    me_launch_stream_waits(e);
}

me_tensor *me_fsdp_group_wait(me_fsdp_group *group)
{
    me_engine *e = me_fsdp_engine(group);
    if (!group->is_pending || !me_engine_is_ok(e)) {
        return NULL;
    }
    if (me_fsdp_ranks(group) == 1) {
        copy_alone(group);
    } else {
        copy_out(group);
    }
    me_fsdp_copy(group, me_fsdp_param_dtype(group), me_fsdp_param_dtype(group),
                 me_size_mul(group->shard_numel, me_fsdp_ranks(group)));
    me_tensor *gathered = group->gathered;
    group->gathered = NULL;
    group->is_pending = false;
    group->is_unsharded = true;
    return gathered;
}

void me_fsdp_group_reshard(me_fsdp_group *group)
{
    me_engine *e = me_fsdp_engine(group);
    for (uint32_t i = 0; group->is_unsharded && i < group->n_params; i++) {
        me_fsdp_param *p = &group->params[i];
        me_assign(e, &p->parameter->tensor, p->sharded);
        me_storage_free(e, p->gathered);
    }
    group->is_unsharded = false;
}
