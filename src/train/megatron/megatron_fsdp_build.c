/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/size.h"
#include "tensor/launch.h"
#include "train/megatron/bookkeeping.h"
#include "train/megatron/megatron_fsdp.h"
#include "train/megatron/trainer.h"

/** The parameters of a module that is on the meta device get memory, its own
 *  alone (to_empty(), reset_parameters()). */
static void materialize(me_megatron_fsdp *f, me_module_id module)
{
    const me_parameter_list *all = &f->t->parameters;
    for (uint32_t i = 0; i < all->count; i++) {
        me_parameter *p = all->parameters[i];
        if (p->module == module && p->tensor == NULL) {
            me_parameter_to_device(&f->t->nn, p, p->dtype);
        }
    }
    me_module_switch(f->t->e, ME_NO_MODULE);
}

/** The bucket's part of a parameter takes the place of what it was made in. */
static void move_parameter(me_megatron_fsdp *f, const me_fsdp_group_buffers *b,
                           me_parameter *p)
{
    me_engine *e = f->t->e;
    const me_frame frame = me_enter(e);
    uint64_t strides[ME_MAX_DIMS] = {0};
    if (p->tensor == NULL) {
        materialize(f, p->module);
    }
    if (me_engine_is_ok(e) && b->shard != NULL) {
        me_strides_contiguous(&p->shape, strides);
        me_set_data(e, p->tensor,
                    me_alias(e, b->weights == NULL ? b->shard : b->weights,
                             p->shape, strides));
    }
    me_leave(e, frame, NULL);
}

/** A bucket's parameters and main parameters. */
static void build_bucket(me_megatron_fsdp *f, me_fsdp_group_buffers *b)
{
    me_engine *e = f->t->e;
    const me_parallel_config *c = &f->t->config->parallel;
    const uint64_t part = b->numel / b->ranks;
    const bool is_cut = me_megatron_fsdp_shards_weights(f, b);
    if (c->sharding_strategy != ME_SHARDING_NO_SHARD) {
        b->shard = me_keep(e, "model_weight_buffer", ME_CATEGORY_PARAMETER,
                           b->dtype, ME_SHAPE(is_cut ? part : b->numel));
    }
    if (is_cut) {
        b->weights = me_keep(e, "fetch_bucket", ME_CATEGORY_PARAMETER, b->dtype,
                             ME_SHAPE(b->numel));
    }
    if (c->fsdp_main_params_dtype >= 0) {
        b->main = me_keep(
            e, "main_weight_buffer", ME_CATEGORY_MAIN_PARAMETER,
            (me_dtype)c->fsdp_main_params_dtype,
            ME_SHAPE(me_megatron_fsdp_shards_main(f, b) ? part : b->numel));
    }
    for (uint32_t i = 0; i < b->layout->n_items && me_engine_is_ok(e); i++) {
        move_parameter(f, b,
                       me_megatron_fsdp_parameter(
                           f, &f->layout->items[b->layout->first_item + i]));
    }
    if (is_cut && me_engine_is_ok(e)) {
        me_storage_free(e, b->weights);
    }
}

/** The persistent gradients, of all buckets of a type together. */
static void build_gradients(me_megatron_fsdp *f)
{
    uint64_t numel = 0;
    for (uint32_t i = 0; i < f->n_buckets; i++) {
        const me_fsdp_group_buffers *b = &f->buckets[i];
        numel = me_size_add(numel, me_megatron_fsdp_shards_gradients(f, b)
                                       ? b->numel / b->ranks
                                       : b->numel);
    }
    if (numel > 0) {
        f->gradients[0] =
            me_keep(f->t->e, "main_grad_buffer", ME_CATEGORY_GRADIENT,
                    f->t->config->train.grad_dtype, ME_SHAPE(numel));
    }
}

/** Bytes of a pickled list of the extents of @p p with @p rows rows: protocol 4
 *  with its frame. */
static uint64_t pickled_shape(const me_parameter *p, uint64_t rows)
{
    enum {
        HEADER_BYTES = 2 + 9, // protocol, frame
        LIST_BYTES = 2 + 1,   // an empty list, memoized; the end
        ITEMS_BYTES = 2       // of several items: a mark, and their appending
    };

    uint64_t bytes =
        HEADER_BYTES + LIST_BYTES + (p->shape.ndim > 1 ? ITEMS_BYTES : 1);
    for (int32_t i = 0; i < p->shape.ndim; i++) {
        const uint64_t extent = i == 0 ? rows : p->shape.dim[i];
        bytes += extent <= UINT8_MAX ? 2 : extent <= UINT16_MAX ? 3 : 5;
    }
    return bytes;
}

/** validate_uneven_dtensor(): are the first and the last row somewhere? */
static void check_boundaries(me_megatron_fsdp *f,
                             const me_fsdp_group_buffers *b,
                             const me_parameter *p)
{
    me_engine *e = f->t->e;
    const me_frame frame = me_enter(e);
    const uint64_t numel = 2 * (uint64_t)p->shape.ndim;
    me_tensor *checks = me_scratch(e, "boundary_checks", 4 * numel);
    me_communicate(e, f->t->comm,
                   (me_call){b->group, ME_COLLECTIVE_ALL_REDUCE, ME_DTYPE_INT32,
                             numel, -1, false});
    me_temporary(e, "all", 1);
    me_drop(e, checks);
    me_leave(e, frame, NULL);
}

/** gather_and_compute_chunk_metadata(): all tell each other the extents of
 *  their parts; and those of several tensor ranks, of what these cut, too. */
static void gather_shape(me_megatron_fsdp *f, const me_fsdp_group_buffers *b,
                         const me_fsdp_item *item)
{
    const me_parameter *p = me_megatron_fsdp_parameter(f, item);
    const uint64_t row = p->numel / p->shape.dim[0];
    const uint64_t own = me_megatron_fsdp_slice(f, p).numel / row;
    uint64_t longest = 0;
    for (uint64_t i = 0; i < b->ranks; i++) {
        const uint64_t rows =
            me_fsdp_slice_of(item, b->numel, b->ranks, i).numel / row;
        longest = me_max_u64(longest, pickled_shape(p, rows));
    }
    me_gather_object_in(f->t, b->group, pickled_shape(p, own), longest);
    if (p->is_tensor_sharded && f->t->comm->size[ME_GROUP_TENSOR] > 1) {
        const uint64_t bytes = pickled_shape(p, p->shape.dim[0]);
        me_gather_object_in(f->t, ME_GROUP_TENSOR, bytes, bytes);
    }
}

/** make_fsdp_dtensor() of the parameters that the optimizer gets. */
static void describe_parameters(me_megatron_fsdp *f)
{
    for (uint32_t i = 0; i < f->n_buckets; i++) {
        const me_fsdp_group_buffers *b = &f->buckets[i];
        for (uint32_t k = 0; k < b->layout->n_items && me_engine_is_ok(f->t->e);
             k++) {
            const me_fsdp_item *item =
                &f->layout->items[b->layout->first_item + k];
            if (f->t->config->parallel.sharding_strategy !=
                ME_SHARDING_NO_SHARD) {
                gather_shape(f, b, item);
                check_boundaries(f, b, me_megatron_fsdp_parameter(f, item));
                gather_shape(f, b, item);
            }
        }
    }
}

void me_megatron_fsdp_build(me_megatron_fsdp *f)
{
    me_engine *e = f->t->e;
    const uint8_t stream = me_stream_set(e, ME_STREAM_SIDE);
    for (uint32_t i = 0; i < f->n_buckets && me_engine_is_ok(e); i++) {
        build_bucket(f, &f->buckets[i]);
    }
    build_gradients(f);
    me_empty_cache(e);
    describe_parameters(f);
    me_stream_set(e, stream);
}
