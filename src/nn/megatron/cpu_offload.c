/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/cpu_offload.h"

#include "base/alloc.h"
#include "nn/megatron/pinned_pool.h"
#include "tensor/hooks.h"
#include "tensor/launch.h"
#include "tensor/saved_hooks.h"

#include <string.h>

enum {
    LEAST_ELEMENTS = 256 * 1024 /* _check_if_offload() */
};

typedef enum layer_state {
    NOT_OFFLOADED,
    OFFLOAD_STARTED,
    OFFLOAD_FINISHED,
    RELOAD_STARTED
} layer_state;

/** A tensor of a layer; the same one may be saved several times. */
typedef struct offloaded_tensor {
    me_tensor *x; /**< on the card; NULL: on the host alone; owned */
    me_tensor like;
    uint64_t bytes;
    bool is_base; /**< all of its storage, of which what is saved are views */
} offloaded_tensor;

/** OffloadableLayerState. */
typedef struct offloaded_layer {
    struct me_cpu_offload *offload;
    int32_t number;
    layer_state state;
    offloaded_tensor *tensors;
    uint32_t count;
    uint32_t capacity;
    me_prehook before_backward; /**< of the node that made its output */
} offloaded_layer;

struct me_cpu_offload {
    int32_t num_layers;
    int32_t num_offloaded;
    int32_t running;  /**< layer whose forward runs, or whose backward */
    int32_t forward;  /**< of the layers' forwards, from 0; -1: none yet */
    int32_t previous; /**< whose backward ran last; -1: none */
    offloaded_layer *layers;
    const me_saved_hooks *before;
    me_saved_hooks hooks;
    me_pinned_pool host;
};

/** release_all_memory(): lists go from their ends. */
static void release_all(me_engine *e, offloaded_layer *layer)
{
    const bool is_on_host = layer->state != NOT_OFFLOADED;
    for (uint32_t i = layer->count; i > 0; i--) {
        me_clear(e, &layer->tensors[i - 1].x);
    }
    for (uint32_t i = 0; is_on_host && i < layer->count; i++) {
        me_pinned_give(&layer->offload->host, 0, layer->tensors[i].bytes);
    }
    layer->count = 0;
    layer->state = NOT_OFFLOADED;
}

/** start_offload(): copies on a stream of their own. */
static void start_offload(me_engine *e, offloaded_layer *layer)
{
    layer->state = OFFLOAD_STARTED;
    for (uint32_t i = 0; i < layer->count; i++) {
        me_pinned_take(e, &layer->offload->host, 0, layer->tensors[i].bytes);
    }
}

/** release_activation_forward_gpu_memory(). */
static void release_forward(me_engine *e, offloaded_layer *layer)
{
    layer->state = OFFLOAD_FINISHED;
    for (uint32_t i = layer->count; i > 0; i--) {
        me_clear(e, &layer->tensors[i - 1].x);
    }
}

/** start_reload(): blocks of the main stream. */
static void start_reload(me_engine *e, offloaded_layer *layer)
{
    const me_frame frame = me_enter(e);
    const me_category before = me_category_set(e, ME_CATEGORY_ACTIVATION);
    layer->state = RELOAD_STARTED;
    for (uint32_t i = 0; i < layer->count && me_engine_is_ok(e); i++) {
        offloaded_tensor *t = &layer->tensors[i];
        const me_dtype dtype = (me_dtype)t->like.dtype;
        t->x = me_retain(
            t->is_base ? me_empty(e, "start_reload", dtype,
                                  ME_SHAPE(t->bytes / me_dtype_bytes(dtype)))
                       : me_empty_like(e, "start_reload", &t->like));
    }
    me_category_set(e, before);
    me_leave(e, frame, NULL);
}

/** Another name of all of a storage is the same tensor to start_offload(), and
 *  so is a view with holes of what attention marked. */
static bool is_whole(const me_tensor *x)
{
    return me_bytes(x) == x->storage->bytes || !me_tensor_is_contiguous(x);
}

static uint32_t find(const offloaded_layer *layer, const me_tensor *x)
{
    uint32_t i = 0;
    while (i < layer->count &&
           (!is_whole(x) || layer->tensors[i].x->storage != x->storage)) {
        i++;
    }
    return i;
}

static bool add(me_engine *e, offloaded_layer *layer, me_tensor *x)
{
    if (layer->count == layer->capacity) {
        offloaded_tensor *larger =
            me_engine_grow(e, layer->tensors, layer->count, &layer->capacity,
                           sizeof *larger, "offloaded.tensors");
        if (larger == NULL) {
            return false;
        }
        layer->tensors = larger;
    }
    layer->tensors[layer->count++] = (offloaded_tensor){
        .x = x,
        .like = *x,
        .bytes = is_whole(x) ? x->storage->bytes : me_bytes(x),
        .is_base = is_whole(x) && me_bytes(x) != x->storage->bytes,
    };
    return true;
}

/** _check_if_offload(): parameters never come here. Views with holes are offloaded
 *  where @p op marked them by start_offload(offload_base_tensor=True). */
static bool is_offloaded(const me_op *op, const me_tensor *x)
{
    return me_numel(x) >= LEAST_ELEMENTS &&
           (op->offloads_base || me_tensor_is_contiguous(x));
}

/** push_tensor(). */
static bool pack(void *self, me_engine *e, const me_op *op, me_tensor *x,
                 uint32_t *place_out)
{
    me_cpu_offload *o = self;
    offloaded_layer *layer = &o->layers[o->forward];
    if (o->forward >= o->num_offloaded || !is_offloaded(op, x)) {
        return false;
    }
    const uint32_t place = find(layer, x);
    if (place < layer->count) {
        me_release(e, x);
    } else if (!add(e, layer, x)) {
        return false;
    }
    *place_out = place;
    return true;
}

/** pop_tensor(). */
static me_tensor *unpack(void *self, me_engine *e, uint32_t place,
                         const me_tensor *like)
{
    const me_cpu_offload *o = self;
    const offloaded_tensor *t = &o->layers[o->running].tensors[place];
    if (t->x == NULL) {
        me_engine_fail(e, ME_ERR_INTERNAL, "what layer %d saved is on the host",
                       o->running);
        return NULL;
    }
    if (!t->is_base && me_shape_equal(&t->x->shape, &like->shape)) {
        return me_retain(t->x);
    }
    const me_frame frame = me_enter(e);
    me_tensor *view = me_retain(me_alias(e, t->x, like->shape, like->strides));
    me_leave(e, frame, NULL);
    return view;
}

/** finish_part_of_bwd(). */
static void finish_backward(void *self, me_engine *e)
{
    me_cpu_offload *o = self;
    if (o->previous >= 0) {
        release_all(e, &o->layers[o->previous]);
    }
    o->previous = -1;
}

/** bwd_step(). */
static void begin_backward(void *self, me_engine *e, me_tensor *const *gy)
{
    const offloaded_layer *layer = self;
    me_cpu_offload *o = layer->offload;
    (void)gy;
    finish_backward(o, e);
    o->previous = layer->number;
    o->running = layer->number;
    const int32_t back = layer->number + 1 - (o->num_layers - o->num_offloaded);
    if (back >= 0 && back < o->num_offloaded) {
        start_reload(e, &o->layers[back]);
    }
    me_tape_at_end(e, finish_backward, o);
}

me_cpu_offload *me_cpu_offload_create(me_engine *e, int32_t num_layers,
                                      int32_t num_offloaded)
{
    if (num_offloaded == 0) {
        return NULL;
    }
    me_cpu_offload *o = me_engine_alloc(e, 1, sizeof *o);
    offloaded_layer *layers =
        me_engine_alloc(e, (size_t)num_layers, sizeof *layers);
    if (o == NULL || layers == NULL) {
        return NULL;
    }
    *o = (me_cpu_offload){
        .num_layers = num_layers,
        .num_offloaded = num_offloaded,
        .forward = -1,
        .previous = -1,
        .layers = layers,
        .hooks = {.pack = pack, .unpack = unpack, .self = o},
    };
    for (int32_t i = 0; i < num_layers; i++) {
        layers[i] = (offloaded_layer){
            .offload = o,
            .number = i,
            .before_backward = {.run = begin_backward, .self = &layers[i]},
        };
    }
    return o;
}

void me_cpu_offload_fini(me_engine *e, me_cpu_offload *offload)
{
    for (int32_t i = 0; offload != NULL && i < offload->num_layers; i++) {
        release_all(e, &offload->layers[i]);
        me_free(offload->layers[i].tensors);
    }
    if (offload != NULL) {
        me_pinned_fini(&offload->host);
    }
}

/** fwd_step(). */
static void begin_forward(me_engine *e, me_cpu_offload *o)
{
    if (o->forward < 0 || o->forward == o->num_layers - 1) {
        for (int32_t i = 0; i < o->num_layers; i++) {
            release_all(e, &o->layers[i]);
        }
        o->forward = 0;
    } else {
        o->forward++;
    }
    o->running = o->forward;
    if (o->forward > 0 && o->forward <= o->num_offloaded) {
        start_offload(e, &o->layers[o->forward - 1]);
    }
    const int32_t gone = o->forward - (o->num_layers - o->num_offloaded);
    if (gone >= 0 && gone < o->num_offloaded) {
        release_forward(e, &o->layers[gone]);
    }
}

void me_cpu_offload_enter(me_engine *e, me_cpu_offload *offload)
{
    if (offload != NULL && me_engine_is_ok(e)) {
        offload->before = me_saved_hooks_set(e, &offload->hooks);
        begin_forward(e, offload);
    }
}

void me_cpu_offload_exit(me_engine *e, me_cpu_offload *offload,
                         const me_tensor *y)
{
    if (offload == NULL || !me_engine_is_ok(e)) {
        return;
    }
    me_saved_hooks_set(e, offload->before);
    if (y->grad_fn != NULL) {
        me_prehook_add(y->grad_fn,
                       &offload->layers[offload->running].before_backward);
    }
}
