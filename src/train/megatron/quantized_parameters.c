/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/megatron/quantized_parameters.h"

#include "base/alloc.h"
#include "base/size.h"
#include "nn/megatron/te_fp8.h"
#include "tensor/launch.h"
#include "train/megatron/megatron_fsdp.h"
#include "train/megatron/trainer.h"

/** A quantised parameter of an optimizer's buffers. */
typedef struct cast_item {
    const me_parameter *parameter;
    const me_shard_state *shard; /**< this rank's; NULL: it has none */
    me_tensor *copy;  /**< of its main parameter, in the model's type;
                                      owned */
    me_tensor *scale; /**< that is found for it; owned, or NULL */
} cast_item;

/** All of them, in the order of the buffers and of registration. */
typedef struct cast_list {
    cast_item *items;
    uint32_t count;
    me_group_kind group;
    bool makes_shards; /**< each shard is a tensor of its own
                            (use_fsdp_shard_model_weights) */
} cast_list;

static const me_shard_state *shard_of(const me_optimizer *o,
                                      const me_parameter *parameter)
{
    for (uint32_t i = 0; i < o->count; i++) {
        if (o->shards[i].parameter == parameter) {
            return &o->shards[i];
        }
    }
    return NULL;
}

static void collect_buffer(const me_optimizer *o, const me_ddp_buffer *b,
                           cast_list *list)
{
    list->group = b->group;
    for (uint32_t k = 0; k < b->n_parameters; k++, list->count++) {
        if (list->items != NULL) {
            list->items[list->count] = (cast_item){
                .parameter = b->parameters[k],
                .shard = shard_of(o, b->parameters[k]),
            };
        }
    }
}

/** @param list  with room, or with none to count alone */
static void collect(const me_trainer *t, const me_optimizer *o, cast_list *list)
{
    list->count = 0;
    for (int32_t c = o->chunk_begin; c < o->chunk_end; c++) {
        for (int i = 0; i < t->ddp[c].n_buffers; i++) {
            const me_ddp_buffer *b = &t->ddp[c].buffers[i];
            if (b->sharing == o->sharing && b->is_quantized) {
                collect_buffer(o, b, list);
            }
        }
    }
}

/** Of Megatron-FSDP: all buckets that the ranks of a group share. */
static void collect_buckets(const me_megatron_fsdp *f, const me_optimizer *o,
                            cast_list *list)
{
    list->count = 0;
    for (uint32_t i = 0; i < f->layout->n_items; i++) {
        const me_parameter *p =
            me_megatron_fsdp_parameter(f, &f->layout->items[i]);
        if (me_quantized_of(p) == NULL ||
            f->buckets[f->bucket_of[p->index]].group != list->group) {
            continue;
        }
        if (list->items != NULL) {
            list->items[list->count] =
                (cast_item){.parameter = p, .shard = shard_of(o, p)};
        }
        list->count++;
    }
}

static me_tensor *scalars(me_engine *e, const char *op, uint64_t count)
{
    return me_scratch(e, op, me_size_mul(4, count));
}

/** What a shard's quantised tensor makes beside its data: columns, which
 *  nobody uses. NULL: none */
static me_tensor *unused_columns(me_engine *e, const cast_item *item)
{
    return me_engine_card(e)->has_any_order_fp8
               ? NULL
               : me_scratch(e, "update_quantized", item->shard->numel);
}

static void tell_cast(me_engine *e, const cast_item *item)
{
    me_launch_kernel(e, ME_KERNEL_CAST, 0, me_size_mul(3, item->shard->numel));
}

static void reduce_amaxes(me_trainer *t, const cast_list *list, uint64_t count)
{
    me_communicate(t->e, t->comm,
                   (me_call){list->group, ME_COLLECTIVE_ALL_REDUCE,
                             ME_DTYPE_FLOAT32, count, -1, false});
}

/** _cast_master_weights_to_fp8_delayed_scaling(). */
static void cast_delayed(me_trainer *t, const cast_list *list)
{
    me_engine *e = t->e;
    const me_frame frame = me_enter(e);
    me_tensor *inverse = NULL;
    me_tensor *columns = NULL;
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->items[i].shard == NULL) {
            continue;
        }
        me_tensor *reciprocal = scalars(e, "reciprocal", 1);
        me_tensor *next = scalars(e, "mul", 1);
        me_drop(e, reciprocal);
        me_drop(e, inverse);
        me_drop(e, columns);
        inverse = next;
        columns = unused_columns(e, &list->items[i]);
        tell_cast(e, &list->items[i]);
    }
    me_tensor *flag = scalars(e, "overflow_flag", 1);
    me_tensor *amaxes = scalars(e, "packed_amaxes", list->count);
    reduce_amaxes(t, list, list->count);
    me_tensor *scales = scalars(e, "packed_scales", list->count);
    me_drop(e, inverse);
    me_drop(e, columns);
    me_drop(e, flag);
    me_drop(e, amaxes);
    me_drop(e, scales);
    me_leave(e, frame, NULL);
}

/** Numbers that a parameter's scale has. */
static uint64_t scale_numel(const me_trainer *t, const cast_item *item)
{
    const me_fp8_row *row = me_fp8_row_of(&t->nn);
    if (row->scale_shape == NULL) {
        return 1;
    }
    const me_shape *shape = &item->parameter->shape;
    const me_shape scales =
        row->scale_shape(shape->dim[0], shape->dim[1], false, true);
    return me_shape_numel(&scales);
}

static uint64_t all_scales(const me_trainer *t, const cast_list *list)
{
    uint64_t numel = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        numel = me_size_add(numel, scale_numel(t, &list->items[i]));
    }
    return numel;
}

/** The same casts into shards that are tensors of their own, with scales. */
static void cast_shards(me_trainer *t, const cast_list *list)
{
    me_engine *e = t->e;
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->items[i].shard == NULL) {
            continue;
        }
        me_tensor *reciprocal = scalars(e, "reciprocal", 1);
        me_tensor *inverse = scalars(e, "mul", 1);
        me_drop(e, reciprocal);
        me_tensor *columns = unused_columns(e, &list->items[i]);
        tell_cast(e, &list->items[i]);
        me_drop(e, inverse);
        me_drop(e, columns);
    }
}

/** The casts of _cast_master_weights_to_fp8_current_scaling(). @return the
 *  last one's unused columns, which the loop's variable holds, or NULL */
static me_tensor *cast_current(me_trainer *t, const cast_list *list)
{
    me_engine *e = t->e;
    me_tensor *columns = NULL;
    for (uint32_t i = 0; i < list->count; i++) {
        me_drop(e, columns);
        columns = list->items[i].shard == NULL
                      ? NULL
                      : unused_columns(e, &list->items[i]);
    }
    return columns;
}

/** The item whose scale the loop over a rank's shards holds by its quantizer, which
 *  blocks have not: the last that has a shard here; the list's length: none. */
static uint32_t last_of_rank(const cast_list *list, bool has_quantizer)
{
    uint32_t last = list->count;
    for (uint32_t i = 0; has_quantizer && i < list->count; i++) {
        last = list->items[i].shard == NULL ? last : i;
    }
    return last;
}

/** _cast_master_weights_to_fp8_current_scaling(), …_blockwise_scaling(): scales are
 *  found first, and the loop's variable holds the last. */
static void cast_with_scales(me_trainer *t, cast_list *list)
{
    me_engine *e = t->e;
    const me_frame frame = me_enter(e);
    const uint64_t numel = all_scales(t, list);
    me_tensor *flag = scalars(e, "overflow_flag", 1);
    me_tensor *amaxes = scalars(e, "packed_amaxes", numel);
    for (uint32_t i = 0; i < list->count; i++) {
        list->items[i].scale =
            scalars(e, "scale", scale_numel(t, &list->items[i]));
    }
    reduce_amaxes(t, list, numel);
    const bool is_current = me_fp8_row_of(&t->nn)->scale_shape == NULL;
    me_tensor *columns = NULL;
    if (list->makes_shards) {
        cast_shards(t, list);
    } else if (is_current) {
        columns = cast_current(t, list);
    }
    me_drop(e, flag);
    const uint32_t held = last_of_rank(list, list->makes_shards || is_current);
    for (uint32_t i = list->count - 1; i-- > 0;) {
        if (i != held) {
            me_drop(e, list->items[i].scale);
        }
    }
    me_drop(e, amaxes);
    if (held < list->count - 1) {
        me_drop(e, list->items[held].scale);
    }
    me_drop(e, columns);
    me_drop(e, list->items[list->count - 1].scale);
    me_leave(e, frame, NULL);
}

/** Main parameters in the model's type, all at once; they go from the last to the
 *  first, but for the one that the loop's variable holds. */
static void cast(me_trainer *t, cast_list *list)
{
    me_engine *e = t->e;
    const me_frame frame = me_enter(e);
    for (uint32_t i = 0; i < list->count; i++) {
        cast_item *item = &list->items[i];
        me_module_switch(e, item->parameter->module);
        item->copy = item->shard == NULL
                         ? NULL
                         : me_empty(e, "to", t->config->train.params_dtype,
                                    ME_SHAPE(item->shard->numel));
    }
    me_module_switch(e, ME_NO_MODULE);
    if (me_fp8_row_of(&t->nn)->has_state) {
        cast_delayed(t, list);
    } else {
        cast_with_scales(t, list);
    }
    for (uint32_t i = list->count - 1; i-- > 0;) {
        me_drop(e, list->items[i].copy);
    }
    me_drop(e, list->items[list->count - 1].copy);
    me_leave(e, frame, NULL);
}

/** Those of the wrapper that the job has; of Megatron-FSDP, of one group. */
static void collect_all(const me_trainer *t, const me_optimizer *o,
                        cast_list *list)
{
    if (t->megatron_fsdp != NULL) {
        collect_buckets(t->megatron_fsdp, o, list);
    } else {
        collect(t, o, list);
    }
}

static void quantize(me_trainer *t, const me_optimizer *o, cast_list list)
{
    collect_all(t, o, &list);
    if (list.count == 0 || !me_engine_is_ok(t->e)) {
        return;
    }
    list.items = me_alloc(list.count, sizeof *list.items, "optimizer.cast");
    if (list.items == NULL) {
        me_engine_fail(t->e, ME_ERR_NOMEM, "no host memory for the optimizer");
        return;
    }
    collect_all(t, o, &list);
    cast(t, &list);
    me_free(list.items);
}

void me_quantize_parameters(me_trainer *t, const me_optimizer *o)
{
    if (!t->config->fp8.param || !me_engine_is_ok(t->e)) {
        return;
    }
    if (t->megatron_fsdp == NULL) {
        quantize(t, o, (cast_list){.items = NULL});
        return;
    }
    static const me_group_kind groups[2][2] = {
        {ME_GROUP_DATA_CONTEXT, ME_GROUP_EXPERT_DATA},
        {ME_GROUP_PARTIAL_DATA_CONTEXT, ME_GROUP_PARTIAL_EXPERT_DATA},
    };
    const me_group_kind *own =
        groups[me_megatron_fsdp_has_instances(t->megatron_fsdp) ? 1 : 0];
    for (int i = 0; i < 2; i++) {
        quantize(t, o, (cast_list){.group = own[i], .makes_shards = true});
    }
}
