/* SPDX-License-Identifier: BSD-3-Clause */
#include "alloc/device_observer.h"

#include "base/alloc.h"
#include "model/dtype.h"

#include <string.h>

enum {
    ADDRESS_BYTES = 64 /* of a buffer, as CUDA hands it to other processes */
};

struct me_device_observer {
    me_device_memory memory;
    me_device_place place;
    bool has_exchanged;
    me_device_on_growth *on_growth;
    void *growth_self;
    me_status status;
    me_diag diag;
};

/** Is it memory of an operation that asks for a cuDNN handle: PyTorch's, or
 *  Transformer Engine's, which are a thread's own as well (HandleManager)? */
static bool uses_cudnn(const char *op)
{
    static const char *const ops[] = {
        "cudnn_workspace",      "convolution",    "cudnn_batch_norm",
        "convolution_backward", "fused_attn_fwd", "cudnn_batch_norm_backward",
        "fused_attn_bwd"};
    const bool can_be = *op == 'c' || *op == 'f';
    for (size_t i = 0; can_be && i < sizeof ops / sizeof ops[0]; i++) {
        if (strcmp(op, ops[i]) == 0) {
            return true;
        }
    }
    return false;
}

/** PyTorch gives each new cuBLAS handle its workspace; the handle of the
 *  training thread is made first, autograd's second. */
static void follow_alloc(me_device_observer *o, const me_event *event)
{
    const char *op = event->op == NULL ? "" : event->op;
    if (uses_cudnn(op)) { // recomputed by autograd
        me_device_memory_cudnn(&o->memory, event->phase == ME_PHASE_FORWARD
                                               ? ME_DEVICE_TRAINING_THREAD
                                               : ME_DEVICE_AUTOGRAD_THREAD);
    }
    if (o->memory.has_cublas[ME_DEVICE_AUTOGRAD_THREAD]) {
        return; // nothing more comes with an allocation
    }
    if (event->is_drawn) {
        return; // whatever loads later
    }
    me_device_memory_kernel(&o->memory);
    if (strcmp(op, "cublas_workspace") == 0) {
        me_device_memory_matmul(&o->memory,
                                o->memory.has_cublas[ME_DEVICE_TRAINING_THREAD]
                                    ? ME_DEVICE_AUTOGRAD_THREAD
                                    : ME_DEVICE_TRAINING_THREAD);
    }
}

/** Who exchange through another library take NCCL only to tell each other the
 *  addresses of their buffers. */
static bool is_exchange(const me_device_observer *o, const me_event *event)
{
    return o->place.exchange_bytes > 0 &&
           event->group == ME_GROUP_EXPERT_TENSOR_EXPERT &&
           event->collective == ME_COLLECTIVE_ALL_TO_ALL;
}

static void follow_collective(me_device_observer *o, const me_event *event)
{
    const bool is_library = is_exchange(o, event);
    if (is_library && o->has_exchanged) {
        return;
    }
    if (is_library) {
        me_device_memory_library(&o->memory, o->place.exchange_bytes);
        o->has_exchanged = true;
    }
    const me_group_kind group = (me_group_kind)event->group;
    const me_collective kind = is_library ? ME_COLLECTIVE_ALL_GATHER
                                          : (me_collective)event->collective;
    const bool has_peer =
        kind == ME_COLLECTIVE_SEND || kind == ME_COLLECTIVE_RECV;
    const int32_t peer =
        event->peer + (group == ME_GROUP_WORLD ? o->place.world_offset : 0);
    const me_device_call call = {
        .group = group,
        .shape = o->place.shape[group],
        .collective = kind,
        .position = o->place.position[group],
        .peer = peer,
        .is_lone = event->is_lone,
        .is_peer_remote = has_peer && o->place.is_remote != NULL &&
                          o->place.is_remote(o->place.self, group, peer),
        .bytes = is_library
                     ? (uint64_t)o->place.shape[group].size * ADDRESS_BYTES
                     : event->count * me_dtype_bytes((me_dtype)event->dtype),
    };
    o->status = me_device_memory_call(&o->memory, &call, &o->diag);
}

static void on_event(void *self, const me_event *event)
{
    me_device_observer *o = self;
    if (o->status != ME_OK) {
        return;
    }
    const uint64_t before = me_device_memory_bytes(&o->memory);
    if (event->kind != ME_EVENT_COLLECTIVE) {
        me_device_memory_settle(&o->memory);
    }
    if (event->kind == ME_EVENT_ALLOC) {
        follow_alloc(o, event);
    } else if (event->kind == ME_EVENT_COLLECTIVE) {
        follow_collective(o, event);
    } else if (event->kind == ME_EVENT_PHASE &&
               event->phase == ME_PHASE_BACKWARD) {
        me_device_memory_modules(&o->memory);
    }
    const uint64_t bytes = me_device_memory_bytes(&o->memory);
    if (bytes != before && o->on_growth != NULL) {
        o->on_growth(o->growth_self, bytes, event);
    }
}

static void on_exchange(void *self, const me_exchange_event *exchange)
{
    me_device_observer *o = self;
    if (o->status == ME_OK) {
        me_device_memory_exchange(&o->memory, (me_group_kind)exchange->group);
    }
}

me_status me_device_observer_create(const me_device_card *card,
                                    const me_nccl_setup *setup,
                                    const me_device_place *place,
                                    me_device_observer **observer_out)
{
    me_device_observer *o = me_alloc(1, sizeof *o, "alloc.device_observer");
    if (o == NULL) {
        return ME_ERR_NOMEM;
    }
    me_device_memory_begin(&o->memory, card, setup);
    o->place = *place;
    me_device_memory_user_buffers(&o->memory, place->user_buffer_bytes);
    *observer_out = o;
    return ME_OK;
}

void me_device_observer_destroy(me_device_observer *observer)
{
    me_free(observer);
}

/** What was done before takes nothing more: kernels are loaded, handles made,
 * ranks connected. */
static uint32_t on_repeated(void *self, const me_repeated *action)
{
    me_device_observer *o = self;
    (void)action;
    me_device_memory_settle(&o->memory);
    return 0;
}

me_observer me_device_observer_handle(me_device_observer *observer)
{
    return (me_observer){
        .on_event = on_event,
        .self = observer,
        .on_repeated = on_repeated,
        .on_exchange = on_exchange,
        .skips_echoes = true,
        .kinds = ME_EVENT_BIT(ME_EVENT_ALLOC) |
                 ME_EVENT_BIT(ME_EVENT_COLLECTIVE) |
                 ME_EVENT_BIT(ME_EVENT_PHASE),
    };
}

void me_device_observer_on_growth(me_device_observer *observer,
                                  me_device_on_growth *on_growth, void *self)
{
    observer->on_growth = on_growth;
    observer->growth_self = self;
}

void me_device_observer_on_take(me_device_observer *observer,
                                me_device_on_take *on_take, void *self)
{
    observer->memory.on_take = on_take;
    observer->memory.take_self = self;
}

const me_device_memory *
me_device_observer_memory(const me_device_observer *observer)
{
    return &observer->memory;
}

me_status me_device_observer_status(const me_device_observer *observer,
                                    me_diag *diag)
{
    if (observer->status != ME_OK && diag != NULL) {
        *diag = observer->diag;
    }
    return observer->status;
}
