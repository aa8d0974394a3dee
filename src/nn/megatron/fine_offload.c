/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/fine_offload.h"

#include "base/alloc.h"
#include "base/size.h"
#include "nn/megatron/fine_offload_chunks.h"
#include "tensor/autograd.h"
#include "tensor/saved_hooks.h"

enum {
    GROUP_BITS = 16 /* of a place: below it the tensor's number in its group */
};

static bool is_named(const me_config *config, me_offload_module module)
{
    const me_offload_config *o = &config->offload;
    const bool named[ME_OFFLOAD_MODULES] = {
        [ME_OFFLOAD_ATTN_NORM] = o->attn_norm && !o->keeps_attn_norm,
        [ME_OFFLOAD_QKV_LINEAR] = o->qkv_linear,
        [ME_OFFLOAD_CORE_ATTN] = o->core_attn,
        [ME_OFFLOAD_ATTN_PROJ] = o->attn_proj,
        [ME_OFFLOAD_MLP_NORM] = o->mlp_norm && !o->keeps_mlp_norm,
        [ME_OFFLOAD_EXPERT_FC1] = o->expert_fc1,
        [ME_OFFLOAD_MOE_ACT] = o->moe_act,
    };
    return named[module];
}

me_fine_offload *me_fine_offload_create(me_engine *e, const me_config *config,
                                        int32_t stage, int32_t chunks)
{
    if (!config->offload.fine_grained) {
        return NULL;
    }
    me_fine_offload *o = me_engine_alloc(e, 1, sizeof *o);
    me_chunk_list *stages = me_engine_alloc(e, (size_t)chunks, sizeof *stages);
    if (o == NULL || stages == NULL) {
        return NULL;
    }
    *o = (me_fine_offload){
        .config = config, .stage = stage, .n_stages = chunks, .stages = stages};
    return o;
}

void me_fine_offload_fini(me_engine *e, me_fine_offload *offload)
{
    for (uint32_t i = 0; offload != NULL && i < offload->forward.count; i++) {
        const me_offload_chunk *chunk = offload->forward.items[i];
        for (uint32_t k = 0; k < chunk->count; k++) {
            me_group_forget(e, &chunk->groups[k]);
            me_free(chunk->groups[k].tensors);
        }
        me_free(chunk->groups);
        me_free(chunk->to_offload.items);
        me_free(chunk->to_reload.items);
    }
    for (int32_t i = 0; offload != NULL && i < offload->n_stages; i++) {
        me_free(offload->stages[i].items);
    }
    if (offload != NULL) {
        me_free(offload->forward.items);
        me_free(offload->backward.items);
        me_pinned_fini(&offload->pool);
    }
}

void me_fine_offload_begin_chunk(me_engine *e, me_fine_offload *offload,
                                 int32_t chunk)
{
    if (offload != NULL && !offload->is_warm) {
        me_chunk_begin(e, offload, chunk);
    }
}

const char *me_offload_module_name(me_offload_module module)
{
    static const char *const names[ME_OFFLOAD_MODULES] = {
        [ME_OFFLOAD_ATTN_NORM] = "attn_norm",
        [ME_OFFLOAD_QKV_LINEAR] = "qkv_linear",
        [ME_OFFLOAD_CORE_ATTN] = "core_attn",
        [ME_OFFLOAD_ATTN_PROJ] = "attn_proj",
        [ME_OFFLOAD_MLP_NORM] = "mlp_norm",
        [ME_OFFLOAD_EXPERT_FC1] = "expert_fc1",
        [ME_OFFLOAD_MOE_ACT] = "moe_act",
    };
    return names[module];
}

bool me_fine_offload_reset(me_engine *e, me_fine_offload *offload,
                           me_offload_summary *summary_out)
{
    if (offload == NULL || !me_engine_is_ok(e)) {
        return false;
    }
    me_fine_offload *o = offload;
    const bool was_warm_up = !o->is_warm && o->forward.count > 0;
    o->current_forward = NULL;
    o->current_backward = NULL;
    me_pinned_reset(&o->pool);
    if (was_warm_up) {
        me_chunks_settle(o, summary_out);
    }
    o->next_forward = 0;
    o->next_backward = 0;
    for (uint32_t i = 0; i < o->forward.count; i++) {
        o->forward.items[i]->index = 0;
        o->forward.items[i]->to_offload.count = 0;
        o->forward.items[i]->to_reload.count = 0;
    }
    return was_warm_up;
}

/** tensor_need_offloading_checker(). */
static bool is_large(const me_fine_offload *o, const me_tensor *x)
{
    return x != NULL && x->storage != NULL && x->parameter == NULL &&
           me_numel(x) >= o->config->offload.min_tensor_size;
}

/** Pinned blocks are kept by shape and type; experts', whose rows change, come from
 *  PyTorch's own pool. */
static uint64_t pool_key(me_offload_module module, const me_tensor *like)
{
    uint64_t key = like->dtype + 1;
    const bool has_pool =
        module != ME_OFFLOAD_EXPERT_FC1 && module != ME_OFFLOAD_MOE_ACT;
    for (int32_t i = 0; has_pool && i < like->shape.ndim; i++) {
        key = key * 1000003 + like->shape.dim[i];
    }
    return has_pool ? key : 0;
}

/** offload(): a copy of what has holes goes with it. */
static void copy_to_host(me_engine *e, me_fine_offload *o,
                         me_offload_module module, me_offloaded *t)
{
    const me_frame frame = me_enter(e);
    if (!me_tensor_is_contiguous(t->x)) {
        (void)me_empty_like(e, "offload", t->x);
    }
    me_pinned_take(e, &o->pool, pool_key(module, t->x), me_bytes(t->x));
    me_leave(e, frame, NULL);
    me_record_stream(t->x);
    t->is_on_host = true;
}

/** bulk_offload_group(): a name of the loop holds each tensor until the next
 *  one. */
static void offload_group(me_engine *e, me_fine_offload *o,
                          me_offload_tensors *group)
{
    const uint8_t stream = me_stream_set(e, ME_STREAM_OFFLOAD);
    for (uint32_t i = 0; i < group->count && me_engine_is_ok(e); i++) {
        me_offloaded *t = &group->tensors[i];
        if (is_large(o, t->x)) {
            copy_to_host(e, o, group->module, t);
            if (!o->is_warm) {
                group->offloaded_bytes =
                    me_size_add(group->offloaded_bytes, me_bytes(t->x));
            }
            me_clear(e, &t->x);
        }
    }
    me_stream_set(e, stream);
}

/** reload(): a new block of the stream that runs, held by the group. */
static void reload(me_engine *e, me_fine_offload *o, me_offload_module module,
                   me_offloaded *t)
{
    const me_frame frame = me_enter(e);
    const me_category before = me_category_set(e, ME_CATEGORY_ACTIVATION);
    t->x = me_retain(
        me_empty(e, "reload", (me_dtype)t->like.dtype, t->like.shape));
    t->is_on_host = false;
    me_pinned_give(&o->pool, pool_key(module, &t->like), me_bytes(&t->like));
    me_category_set(e, before);
    me_leave(e, frame, NULL);
}

/** bulk_reload_group(): the last one that went comes first. */
static void reload_group(me_engine *e, me_offload_chunk *chunk)
{
    const uint8_t stream = me_stream_set(e, ME_STREAM_RELOAD);
    me_offload_tensors *group =
        &chunk->groups[chunk->to_reload.items[--chunk->to_reload.count]];
    for (uint32_t i = 0; i < group->count && me_engine_is_ok(e); i++) {
        if (group->tensors[i].is_on_host) {
            reload(e, chunk->manager, group->module, &group->tensors[i]);
        }
    }
    me_stream_set(e, stream);
}

/** on_save_for_backward(): tensor_push(). */
static bool pack(void *self, me_engine *e, const me_op *op, me_tensor *x,
                 uint32_t *place_out)
{
    const me_fine_offload *o = self;
    me_offload_chunk *chunk = o->current_forward;
    (void)op;
    me_offload_tensors *group = &chunk->groups[chunk->index - 1];
    me_offloaded *tensors =
        me_engine_grow(e, group->tensors, group->count, &group->capacity,
                       sizeof *tensors, "offload.tensors");
    if (tensors == NULL) {
        return false;
    }
    group->tensors = tensors;
    *place_out = (chunk->index - 1) << GROUP_BITS | group->count;
    tensors[group->count++] = (me_offloaded){.x = x, .like = *x};
    return true;
}

/** on_get_saved_tensor(): tensor_pop(). */
static me_tensor *unpack(void *self, me_engine *e, uint32_t place,
                         const me_tensor *like)
{
    me_fine_offload *o = self;
    const uint32_t number = place & ((1U << GROUP_BITS) - 1);
    (void)like;
    if (o->current_backward == NULL) {
        me_engine_fail(e, ME_ERR_INTERNAL, "no chunk has offloaded tensors");
        return NULL;
    }
    me_offload_tensors *group =
        &o->current_backward->groups[place >> GROUP_BITS];
    me_offloaded *t = &group->tensors[number];
    if (t->is_on_host) {
        reload(e, o, group->module, t);
    }
    me_tensor *x = t->x;
    t->x = NULL;
    return x;
}

/** Whose group a node begins or ends. */
static me_offload_chunk *chunk_of(const me_node *node)
{
    const me_offload_chunk *chunk = node->data.context;
    return chunk->manager->forward.items[chunk->number];
}

/** FineGrainedOffloadingGroupStartFunction.backward(): the group before comes
 *  back; in front of a chunk's first one, the last one of the chunk whose
 *  backward is next, if its forward has ended. */
static void start_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                           me_tensor **gx)
{
    me_offload_chunk *chunk = chunk_of(node);
    gx[0] = gy[0];
    if (chunk->to_reload.count > 0) {
        reload_group(e, chunk);
        return;
    }
    me_offload_chunk *next = me_chunk_next_backward(chunk->manager, NULL);
    if (next != NULL && next->index == next->count &&
        next->to_reload.count > 0) {
        reload_group(e, next);
    }
}

static const me_op start_op =
    ME_NODE("FineGrainedOffloadingGroupStartFunctionBackward", start_backward);

/** FineGrainedOffloadingGroupCommitFunction.backward(): whose backward this is. */
static void commit_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                            me_tensor **gx)
{
    me_offload_chunk *chunk = chunk_of(node);
    me_fine_offload *o = chunk->manager;
    gx[0] = gy[0];
    if (o->current_backward == chunk) {
        return;
    }
    me_chunk_of_backward(e, o, (me_offload_module)node->data.dim);
    if (me_engine_is_ok(e) && o->current_backward != chunk) {
        me_engine_fail(
            e, ME_ERR_CONFIG,
            "offload.fine_grained = true: in iteration %d a backward "
            "meets the groups of another micro-batch, at which "
            "Megatron-LM stops (\"Chunk mismatch\"): so do chunks "
            "whose first group stays on the card, as those of one "
            "layer and what offload.delta_bytes keeps",
            (int)me_iteration_get(e));
    }
}

static const me_op commit_op = ME_NODE(
    "FineGrainedOffloadingGroupCommitFunctionBackward", commit_backward);

/** An identity that the tape knows; a view, as of every input that is handed on. */
static me_tensor *pass_on(me_engine *e, const me_op *op, me_tensor *x,
                          me_offload_chunk *chunk, me_offload_module module)
{
    me_node *node = me_record1(e, op, x);
    if (node != NULL) {
        node->data.context = chunk;
        node->data.dim = (int32_t)module;
    }
    return me_output(e, node, me_alias(e, x, x->shape, x->strides));
}

me_tensor *me_offload_enter(me_nn *nn, me_offload_group *group,
                            me_offload_module module, me_tensor *x)
{
    me_fine_offload *o = nn->fine_offload;
    *group = (me_offload_group){.module = module};
    group->is_on =
        o != NULL && me_engine_is_ok(nn->e) && is_named(nn->config, module);
    if (!group->is_on) {
        return x;
    }
    me_offload_chunk *chunk = me_chunk_of_forward(o, module);
    if (chunk == NULL) {
        return x;
    }
    me_chunk_begin_group(nn->e, chunk, module);
    x = pass_on(nn->e, &start_op, x, chunk, module);
    o->hooks = (me_saved_hooks){
        .pack = pack, .unpack = unpack, .self = o, .hands_over = true};
    o->before = me_saved_hooks_set(nn->e, &o->hooks);
    return x;
}

void me_offload_exit(me_nn *nn, const me_offload_group *group)
{
    const me_fine_offload *o = nn->fine_offload;
    if (group->is_on && o->current_forward != NULL) {
        me_saved_hooks_set(nn->e, o->before);
    }
}

/** bulk_offload(). */
static void commit(me_engine *e, me_offload_chunk *chunk,
                   me_offload_module module, uint32_t n,
                   me_tensor *const *released)
{
    me_fine_offload *o = chunk->manager;
    uint32_t i = 0;
    while (i < chunk->to_offload.count &&
           chunk->groups[chunk->to_offload.items[i]].module != module) {
        i++;
    }
    if (i == chunk->to_offload.count) {
        me_engine_fail(
            e, ME_ERR_CONFIG,
            "offload.fine_grained = true: in iteration %d the end of "
            "a module meets the groups of another micro-batch, at "
            "which Megatron-LM stops (\"Group not found\")",
            (int)me_iteration_get(e));
        return;
    }
    const uint32_t group = chunk->to_offload.items[i];
    if (me_chunk_offloads(chunk, group) &&
        me_group_list_add(e, &chunk->to_reload, group)) {
        offload_group(e, o, &chunk->groups[group]);
        for (uint32_t k = 0; k < n; k++) {
            if (is_large(o, released[k])) {
                me_storage_free(e, released[k]);
            }
        }
    }
    me_group_list_remove(&chunk->to_offload, group);
}

me_tensor *me_offload_commit(me_nn *nn, const me_offload_group *group,
                             me_tensor *y, uint32_t n,
                             me_tensor *const *released)
{
    const me_fine_offload *o = nn->fine_offload;
    if (!group->is_on || o->current_forward == NULL ||
        !me_engine_is_ok(nn->e)) {
        return y;
    }
    me_offload_chunk *chunk = o->current_forward;
    commit(nn->e, chunk, group->module, n, released);
    return pass_on(nn->e, &commit_op, y, chunk, group->module);
}
