/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/cpu_offload_v1.h"

#include "base/alloc.h"
#include "nn/megatron/pinned_pool.h"
#include "tensor/saved_hooks.h"

#include <string.h>

enum {
    GROUP_BITS = 16 /* of a place: below it the tensor's number in its group */
};

/** A tensor that a layer saved. */
typedef struct saved_tensor {
    me_tensor *x;   /**< tensor_tag_to_state; NULL: on the host, or handed out;
                         owned */
    me_tensor *buf; /**< tensor_tag_to_buf: until the group leaves; owned */
    me_tensor like;
    bool is_on_host;
} saved_tensor;

typedef struct layer_group {
    saved_tensor *tensors;
    uint32_t count;
    uint32_t capacity;
} layer_group;

struct me_cpu_offload_v1 {
    int32_t num_layers;
    int32_t num_offloaded;
    int32_t current;     /**< current_group */
    int32_t n_offloaded; /**< offloaded_group_count */
    int32_t *windows;    /**< layer_window_map */
    layer_group *groups;
    const me_saved_hooks *before;
    me_saved_hooks hooks;
    me_pinned_pool host;
};

/** tensor_push(). */
static bool pack(void *self, me_engine *e, const me_op *op, me_tensor *x,
                 uint32_t *place_out)
{
    const me_cpu_offload_v1 *o = self;
    layer_group *group = &o->groups[o->current];
    saved_tensor *tensors =
        me_engine_grow(e, group->tensors, group->count, &group->capacity,
                       sizeof *tensors, "offload.tensors");
    if (tensors == NULL) {
        return false;
    }
    group->tensors = tensors;
    *place_out = (uint32_t)o->current << GROUP_BITS | group->count;
    const bool is_offloaded = o->current < o->num_offloaded && op->marks_saved;
    tensors[group->count++] = (saved_tensor){
        .x = x, .buf = is_offloaded ? me_retain(x) : NULL, .like = *x};
    return true;
}

/** tensor_pop(). */
static me_tensor *unpack(void *self, me_engine *e, uint32_t place,
                         const me_tensor *like)
{
    const me_cpu_offload_v1 *o = self;
    saved_tensor *t = &o->groups[place >> GROUP_BITS]
                           .tensors[place & ((1U << GROUP_BITS) - 1)];
    (void)like;
    me_tensor *x = t->x;
    t->x = NULL;
    me_clear(e, &t->buf);
    if (x == NULL) {
        me_engine_fail(e, ME_ERR_INTERNAL, "what a layer saved is on the host");
    }
    return x;
}

me_cpu_offload_v1 *me_cpu_offload_v1_create(me_engine *e, int32_t num_layers,
                                            int32_t num_offloaded)
{
    if (num_offloaded == 0) {
        return NULL;
    }
    me_cpu_offload_v1 *o = me_engine_alloc(e, 1, sizeof *o);
    layer_group *groups =
        me_engine_alloc(e, (size_t)num_layers, sizeof *groups);
    int32_t *windows =
        me_engine_alloc(e, (size_t)num_offloaded, sizeof *windows);
    if (o == NULL || groups == NULL || windows == NULL) {
        return NULL;
    }
    const int32_t rest = num_layers % num_offloaded;
    for (int32_t i = 0; i < num_offloaded; i++) {
        windows[i] = num_layers / num_offloaded * (i + 1) - 1 +
                     (i + 1 < rest ? i + 1 : rest);
    }
    *o = (me_cpu_offload_v1){
        .num_layers = num_layers,
        .num_offloaded = num_offloaded,
        .windows = windows,
        .groups = groups,
        .hooks = {.pack = pack,
                  .unpack = unpack,
                  .self = o,
                  .hands_over = true},
    };
    return o;
}

static void forget(me_engine *e, layer_group *group)
{
    for (uint32_t i = 0; i < group->count; i++) {
        me_clear(e, &group->tensors[i].x);
        me_clear(e, &group->tensors[i].buf);
    }
    group->count = 0;
}

void me_cpu_offload_v1_fini(me_engine *e, me_cpu_offload_v1 *offload)
{
    for (int32_t i = 0; offload != NULL && i < offload->num_layers; i++) {
        forget(e, &offload->groups[i]);
        me_free(offload->groups[i].tensors);
    }
    if (offload != NULL) {
        me_pinned_fini(&offload->host);
    }
}

void me_cpu_offload_v1_enter(me_engine *e, me_cpu_offload_v1 *offload)
{
    if (offload != NULL && me_engine_is_ok(e)) {
        forget(e, &offload->groups[offload->current]);
        offload->before = me_saved_hooks_set(e, &offload->hooks);
    }
}

/** bulk_offload_group(), on a stream of its own: a copy of what has holes goes
 *  with it. */
static void copy_to_host(me_engine *e, me_cpu_offload_v1 *o, int32_t group)
{
    const uint8_t stream = me_stream_set(e, ME_STREAM_OFFLOAD);
    layer_group *g = &o->groups[group];
    for (uint32_t i = 0; i < g->count && me_engine_is_ok(e); i++) {
        saved_tensor *t = &g->tensors[i];
        if (t->buf == NULL) {
            continue;
        }
        const me_frame frame = me_enter(e);
        if (!me_tensor_is_contiguous(t->x)) {
            (void)me_empty_like(e, "offload", t->x);
        }
        me_pinned_take(e, &o->host, 0, me_bytes(t->x));
        me_leave(e, frame, NULL);
        t->is_on_host = true;
        me_clear(e, &t->x);
    }
    me_stream_set(e, stream);
}

/** synchronize_on_group_commit_forward(). */
static void commit_forward(me_engine *e, me_cpu_offload_v1 *o)
{
    if (o->current == 0) {
        copy_to_host(e, o, 0);
    }
    if (o->n_offloaded < o->num_offloaded &&
        o->windows[o->n_offloaded] == o->current) {
        layer_group *group = &o->groups[o->n_offloaded];
        for (uint32_t i = 0; i < group->count; i++) {
            me_clear(e, &group->tensors[i].buf);
        }
        if (o->n_offloaded < o->num_offloaded - 1) {
            copy_to_host(e, o, o->n_offloaded + 1);
        }
        o->n_offloaded++;
    }
    o->current++;
}

/** bulk_reload_group(): blocks of the main stream. */
static void reload(me_engine *e, me_cpu_offload_v1 *o, int32_t group)
{
    const me_frame frame = me_enter(e);
    const me_category before = me_category_set(e, ME_CATEGORY_ACTIVATION);
    layer_group *g = &o->groups[group];
    for (uint32_t i = 0; i < g->count && me_engine_is_ok(e); i++) {
        saved_tensor *t = &g->tensors[i];
        if (t->is_on_host) {
            t->x = me_retain(me_empty(e, "bulk_reload_group",
                                      (me_dtype)t->like.dtype, t->like.shape));
            t->is_on_host = false;
            me_pinned_give(&o->host, 0, me_bytes(t->x));
        }
    }
    me_category_set(e, before);
    me_leave(e, frame, NULL);
}

/** GroupCommitFunction.backward(). */
static void commit_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                            me_tensor **gx)
{
    const me_saved_hooks *hooks = node->data.context;
    me_cpu_offload_v1 *o = hooks->self;
    gx[0] = gy[0];
    o->current--;
    if (o->n_offloaded > 0 && o->windows[o->n_offloaded - 1] == o->current) {
        reload(e, o, o->n_offloaded - 1);
        o->n_offloaded -= o->n_offloaded > 1 ? 1 : 0;
    }
    if (o->current == 0) {
        o->n_offloaded = 0;
    }
}

static const me_op commit_op =
    ME_NODE("GroupCommitFunctionBackward", commit_backward);

me_tensor *me_cpu_offload_v1_exit(me_engine *e, me_cpu_offload_v1 *offload,
                                  me_tensor *y)
{
    if (offload == NULL || !me_engine_is_ok(e)) {
        return y;
    }
    me_saved_hooks_set(e, offload->before);
    if (!me_context_now(e)->is_recording) {
        return y;
    }
    commit_forward(e, offload);
    me_node *node = me_record1(e, &commit_op, y);
    if (node != NULL) {
        node->data.context = &offload->hooks;
    }
    return me_output(e, node, me_alias(e, y, y->shape, y->strides));
}
