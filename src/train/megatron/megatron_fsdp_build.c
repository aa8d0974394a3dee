/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/size.h"
#include "nn/megatron/te_fp8_state.h"
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
            me_fp8_quantize_made(&f->t->nn, p);
        }
    }
    me_module_switch(f->t->e, ME_NO_MODULE);
}

/** `p.data = …`; what it was made in goes. */
static void point(me_megatron_fsdp *f, const me_parameter *p,
                  const me_tensor *weights)
{
    me_engine *e = f->t->e;
    const me_frame frame = me_enter(e);
    uint64_t strides[ME_MAX_DIMS] = {0};
    me_strides_contiguous(&p->shape, strides);
    me_quantized *q = me_quantized_of(p);
    if (q != NULL && q->rows == NULL) {
        q->rows = me_retain(me_alias(e, weights, p->shape, strides));
    } else {
        me_set_data(e, q == NULL ? p->tensor : q->rows,
                    me_alias(e, weights, p->shape, strides));
    }
    me_leave(e, frame, NULL);
}

static me_parameter *parameter_at(const me_megatron_fsdp *f,
                                  const me_fsdp_group_buffers *b, uint32_t i)
{
    return me_megatron_fsdp_parameter(
        f, &f->layout->items[b->layout->first_item + i]);
}

void me_megatron_fsdp_point(me_megatron_fsdp *f, const me_fsdp_group_buffers *b,
                            const me_tensor *weights)
{
    for (uint32_t i = 0; i < b->layout->n_items && me_engine_is_ok(f->t->e);
         i++) {
        point(f, parameter_at(f, b, i), weights);
    }
}

/** Each parameter is copied into the bucket. */
static void move_parameters(me_megatron_fsdp *f, const me_fsdp_group_buffers *b,
                            const me_tensor *weights)
{
    for (uint32_t i = 0; i < b->layout->n_items && me_engine_is_ok(f->t->e);
         i++) {
        me_parameter *p = parameter_at(f, b, i);
        if (p->tensor == NULL) {
            materialize(f, p->module);
        }
        if (me_quantized_of(p) != NULL &&
            !f->t->config->parallel.fsdp_keep_fp8_columns) {
            me_fp8_release_columns(f->t->e, me_quantized_of(p));
        }
        if (me_engine_is_ok(f->t->e) && weights != NULL) {
            point(f, p, weights);
        }
    }
}

/** The memory of a whole bucket, for a moment. @return borrowed */
static me_tensor *fetch_bucket(me_megatron_fsdp *f, me_fsdp_group_buffers *b)
{
    if (b->is_pooled) {
        return me_fsdp_pool_take(f, &f->weight_pool, (uint32_t)(b - f->buckets),
                                 b->dtype, false);
    }
    b->weights = me_keep(f->t->e, "fetch_bucket", ME_CATEGORY_PARAMETER,
                         b->dtype, ME_SHAPE(b->numel));
    return b->weights;
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
    const me_tensor *weights = is_cut ? fetch_bucket(f, b) : b->shard;
    if (c->fsdp_main_params_dtype >= 0) {
        b->main = me_keep(e, "main_weight_buffer", ME_CATEGORY_MAIN_PARAMETER,
                          (me_dtype)c->fsdp_main_params_dtype,
                          ME_SHAPE(me_megatron_fsdp_shards_main(f, b)
                                       ? part / b->instances
                                       : b->numel));
    }
    move_parameters(f, b, weights);
    if (b->is_pooled && is_cut) {
        me_fsdp_pool_give(&f->weight_pool, (uint32_t)(b - f->buckets));
    } else if (is_cut && me_engine_is_ok(e) &&
               !c->fsdp_db_use_persist_buf_on_alloc_fail) {
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
    const me_trainer *t = f->t;
    const me_frame frame = me_enter(t->e);
    const uint64_t numel = 2 * (uint64_t)p->shape.ndim;
    me_tensor *checks = me_scratch(t->e, "boundary_checks", 4 * numel);
    me_call call = {.group = ME_GROUP_INTER_INSTANCE,
                    .kind = ME_COLLECTIVE_ALL_REDUCE,
                    .dtype = ME_DTYPE_INT32,
                    .count = numel,
                    .peer = -1};
    if (b->instances > 1) {
        me_communicate(t->e, t->comm, call);
    }
    call.group = b->group;
    me_communicate(t->e, t->comm, call);
    me_temporary(t->e, "all", 1);
    me_drop(t->e, checks);
    me_leave(t->e, frame, NULL);
}

/** Rows of an item that @p count ranks' parts from @p first on have. */
static uint64_t rows_of(const me_megatron_fsdp *f,
                        const me_fsdp_group_buffers *b,
                        const me_fsdp_item *item, uint64_t first,
                        uint64_t count)
{
    const me_parameter *p = me_megatron_fsdp_parameter(f, item);
    uint64_t numel = 0;
    for (uint64_t i = first; i < first + count; i++) {
        numel +=
            me_fsdp_slice_of(item, b->numel, b->ranks * b->instances, i).numel;
    }
    return numel / (p->numel / p->shape.dim[0]);
}

/** The members of a group tell each other their extents; each has @p each parts,
 *  the first member those from @p first on. */
static void gather_rows(me_megatron_fsdp *f, const me_fsdp_group_buffers *b,
                        const me_fsdp_item *item, me_group_kind group,
                        uint64_t first, uint64_t each)
{
    const me_parameter *p = me_megatron_fsdp_parameter(f, item);
    const uint64_t own = (uint64_t)f->t->comm->index[group];
    uint64_t longest = 0;
    for (uint64_t i = 0; i < (uint64_t)f->t->comm->size[group]; i++) {
        longest = me_max_u64(
            longest,
            pickled_shape(p, rows_of(f, b, item, first + i * each, each)));
    }
    me_gather_object_in(
        f->t, group,
        pickled_shape(p, rows_of(f, b, item, first + own * each, each)),
        longest);
}

/** gather_and_compute_chunk_metadata(): all tell each other the extents of
 *  their parts, instances first; and those of several tensor ranks, of what
 *  these cut, too. */
static void gather_shape(me_megatron_fsdp *f, const me_fsdp_group_buffers *b,
                         const me_fsdp_item *item)
{
    const me_parameter *p = me_megatron_fsdp_parameter(f, item);
    if (b->instances > 1) {
        gather_rows(f, b, item, ME_GROUP_INTER_INSTANCE,
                    (uint64_t)f->t->comm->index[b->group] * b->instances, 1);
    }
    gather_rows(f, b, item, b->group, 0, b->instances);
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
