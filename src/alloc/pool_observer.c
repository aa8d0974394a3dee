/* SPDX-License-Identifier: BSD-3-Clause */
#include "alloc/pool_observer.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <string.h>

typedef enum id_state {
    ID_UNUSED,
    ID_ALLOCATED,
    ID_PENDING
} id_state;

/** What is known of a block id of the engine. */
typedef struct known_id {
    me_pool_block block;
    uint32_t epoch;
    uint32_t state; /**< id_state */
} known_id;

/** A block that the engine has done with and the device has not. */
typedef struct late_block {
    me_pool_block block;
    uint32_t epoch;
} late_block;

struct me_pool_observer {
    me_pool *pool;
    known_id *ids; /**< by block id */
    uint32_t n_ids;
    late_block *late; /**< in the order of their frees */
    uint32_t n_late;
    uint32_t late_capacity;
    uint32_t n_late_done; /**< of them, before the last point */
    bool frees_at_points;
    me_status status;
    uint32_t bad_block; /**< that the engine's events contradict */
    bool is_ended;      /**< no event is followed any more */
    me_pool_on_point *on_point;
    void *point_self;
    me_pool_on_end *on_end;
    void *end_self;
    me_pool_limit limit;
    uint64_t outside_bytes;
    me_twin_pool *twin; /**< NULL: nobody has this rank's result as well */
};

static void end(me_pool_observer *o, me_status status, uint32_t id)
{
    o->status = status;
    o->bad_block = id;
    o->is_ended = true;
}

static bool has_id(me_pool_observer *o, uint32_t id)
{
    const uint32_t before = o->n_ids;
    if (id < before) { // of nearly every event
        return true;
    }
    known_id *grown =
        me_grow_to(o->ids, id, &o->n_ids, sizeof *grown, "alloc.observer");
    if (grown == NULL) {
        end(o, ME_ERR_NOMEM, id);
        return false;
    }
    for (uint32_t i = before; i < o->n_ids; i++) {
        grown[i] = (known_id){0};
    }
    o->ids = grown;
    return true;
}

static void note_end(me_pool_observer *o, const me_event *event)
{
    o->is_ended = true;
    o->limit = (me_pool_limit){
        .is_oom = true,
        .iteration = event->iteration,
        .microbatch = event->microbatch,
        .phase = (me_phase)event->phase,
        .category = (me_category)event->category,
        .module = event->module,
        .is_shard = event->is_shard,
        .op = event->op,
    };
    if (o->on_end != NULL) {
        o->on_end(o->end_self);
    }
}

static void note_oom(me_pool_observer *o, const me_event *event)
{
    note_end(o, event);
    o->limit.oom = *me_pool_last_oom(o->pool);
}

/** The device has come as far as the last point. */
static void complete_late(me_pool_observer *o)
{
    for (uint32_t i = 0; i < o->n_late_done; i++) {
        me_pool_free_completed(o->pool, o->late[i].block, o->late[i].epoch);
    }
    o->n_late -= o->n_late_done;
    if (o->n_late_done > 0 && o->n_late > 0) {
        memmove(o->late, o->late + o->n_late_done, o->n_late * sizeof *o->late);
    }
    o->n_late_done = 0;
}

static void keep_late(me_pool_observer *o, const known_id *id, uint32_t number)
{
    late_block *larger = me_grow(o->late, o->n_late, &o->late_capacity,
                                 sizeof *larger, "alloc.late");
    if (larger == NULL) {
        end(o, ME_ERR_NOMEM, number);
        return;
    }
    o->late = larger;
    o->late[o->n_late++] = (late_block){id->block, id->epoch};
}

/** @return ME_ERR_CAPACITY: there is no memory for it; other failures have
 *  been noted */
static me_status take(me_pool_observer *o, const me_twin_request *request)
{
    const uint32_t block = request->id;
    complete_late(o);
    if (!has_id(o, block)) {
        return o->status;
    }
    known_id *id = &o->ids[block];
    if (id->state != ID_UNUSED) {
        end(o, ME_ERR_INTERNAL, block);
        return o->status;
    }
    const me_status status = me_pool_alloc_private(
        o->pool, request->bytes, request->stream, request->mempool, &id->block);
    if (status == ME_OK) {
        id->state = ID_ALLOCATED;
    } else if (status != ME_ERR_CAPACITY) {
        end(o, status, block);
    }
    if (o->twin != NULL) {
        me_twin_request own = *request;
        own.is_oom = status != ME_OK;
        me_twin_pool_alloc(o->twin, &own);
    }
    return status;
}

/** What is known of a block that must be in @p state; NULL: it is not. */
static known_id *find_id(me_pool_observer *o, uint32_t block, id_state state)
{
    if (block >= o->n_ids || o->ids[block].state != state) {
        end(o, ME_ERR_INTERNAL, block);
        return NULL;
    }
    return &o->ids[block];
}

static void request_free(me_pool_observer *o, uint32_t block)
{
    known_id *id = find_id(o, block, ID_ALLOCATED);
    if (id != NULL) {
        id->epoch = me_pool_free_requested(o->pool, id->block);
        id->state = ID_PENDING;
        if (o->twin != NULL) {
            me_twin_pool_free_requested(o->twin, block);
        }
    }
}

static void complete_free(me_pool_observer *o, uint32_t block, bool is_late)
{
    known_id *id = find_id(o, block, ID_PENDING);
    if (id == NULL) {
        return;
    }
    if (is_late && o->frees_at_points) {
        keep_late(o, id, block);
    } else {
        me_pool_free_completed(o->pool, id->block, id->epoch);
        if (o->twin != NULL) {
            me_twin_pool_free_completed(o->twin, block);
        }
    }
    id->state = ID_UNUSED;
}

/** Both at once. */
static void free_now(me_pool_observer *o, uint32_t block, bool is_late)
{
    if (is_late && o->frees_at_points) {
        request_free(o, block);
        complete_free(o, block, is_late);
        return;
    }
    known_id *id = find_id(o, block, ID_ALLOCATED);
    if (id != NULL) {
        me_pool_free(o->pool, id->block);
        id->state = ID_UNUSED;
        if (o->twin != NULL) {
            me_twin_pool_free(o->twin, block);
        }
    }
}

static void empty_cache(me_pool_observer *o)
{
    o->n_late_done = o->n_late; // it waits for the device
    complete_late(o);
    const me_status status = me_pool_empty_cache(o->pool);
    if (status != ME_OK) {
        end(o, status, 0);
    }
    if (o->twin != NULL) {
        me_twin_pool_empty_cache(o->twin);
    }
}

/** What is reserved may be looked at. */
static void compare_twin(me_pool_observer *o)
{
    if (o->twin != NULL) {
        me_twin_pool_compare(o->twin);
    }
}

static void on_event(void *self, const me_event *event)
{
    me_pool_observer *o = self;
    if (o->is_ended) {
        return;
    }
    if (event->kind == ME_EVENT_ALLOC) {
        const me_twin_request request = {
            .id = event->block,
            .bytes = event->bytes,
            .stream = event->stream,
            .mempool = event->mempool,
            .is_input = event->category == ME_CATEGORY_INPUT,
        };
        if (take(o, &request) == ME_ERR_CAPACITY) {
            note_oom(o, event);
        }
    } else if (event->kind == ME_EVENT_FREE_REQUESTED) {
        request_free(o, event->block);
    } else if (event->kind == ME_EVENT_FREE_COMPLETED) {
        complete_free(o, event->block, event->is_late);
    } else if (event->kind == ME_EVENT_EMPTY_CACHE) {
        empty_cache(o);
    } else if (event->kind == ME_EVENT_PHASE) {
        compare_twin(o);
    } else if (event->kind == ME_EVENT_POINT) {
        compare_twin(o);
        if (o->on_point != NULL) {
            o->on_point(o->point_self, event, o->pool);
        }
        me_pool_reset_peaks(o->pool);
        o->n_late_done = o->n_late;
    }
}

/** Where blocks are placed depends on all that was placed before: every event
 * counts. */
static uint32_t on_repeated(void *self, const me_repeated *action)
{
    (void)self;
    (void)action;
    return UINT32_MAX;
}

static void take_again(me_pool_observer *o, const me_block_ops *blocks,
                       uint32_t i)
{
    const me_block_op *op = &blocks->ops[i];
    const me_twin_request request = {
        .id = blocks->ids[op->slot],
        .bytes = op->bytes,
        .stream = op->stream,
        .mempool = op->mempool,
        .is_input = op->is_input,
    };
    if (take(o, &request) == ME_ERR_CAPACITY) {
        me_event event;
        blocks->describe(blocks, i, &event);
        note_oom(o, &event);
    }
}

static void on_blocks(void *self, const me_block_ops *blocks)
{
    me_pool_observer *o = self;
    for (uint32_t i = 0; i < blocks->n_ops && !o->is_ended; i++) {
        const me_block_op *op = &blocks->ops[i];
        const uint32_t block = blocks->ids[op->slot];
        switch (op->change) {
        case ME_BLOCK_ALLOC: take_again(o, blocks, i); break;
        case ME_BLOCK_FREE: free_now(o, block, op->is_late); break;
        case ME_BLOCK_FREE_REQUESTED: request_free(o, block); break;
        default: complete_free(o, block, op->is_late); break;
        }
    }
}

me_status me_pool_observer_create(const me_pool_options *options,
                                  me_pool_observer **observer_out)
{
    me_pool_observer *o = me_alloc(1, sizeof *o, "alloc.observer");
    if (o == NULL) {
        return ME_ERR_NOMEM;
    }
    o->outside_bytes = options->outside_bytes;
    const me_status status = me_pool_create(options, &o->pool);
    if (status != ME_OK) {
        me_pool_observer_destroy(o);
        return status;
    }
    *observer_out = o;
    return ME_OK;
}

void me_pool_observer_destroy(me_pool_observer *observer)
{
    if (observer != NULL) {
        me_pool_destroy(observer->pool);
        me_twin_pool_destroy(observer->twin);
        me_free(observer->ids);
        me_free(observer->late);
        me_free(observer);
    }
}

void me_pool_observer_free_at_points(me_pool_observer *observer)
{
    observer->frees_at_points = true;
}

me_status me_pool_observer_follow_twin(me_pool_observer *observer,
                                       const me_alloc_conf *conf,
                                       const me_twin_batch *batch)
{
    return me_twin_pool_create(observer->pool, conf, batch, &observer->twin);
}

uint64_t me_pool_observer_driver_calls(const me_pool_observer *observer)
{
    return me_pool_driver_calls(observer->pool) +
           (observer->twin == NULL ? 0
                                   : me_twin_pool_driver_calls(observer->twin));
}

bool me_pool_observer_differs_from_twin(const me_pool_observer *observer)
{
    return observer->twin != NULL && me_twin_pool_differs(observer->twin);
}

me_observer me_pool_observer_handle(me_pool_observer *observer)
{
    return (me_observer){
        .on_event = on_event,
        .self = observer,
        .on_repeated = on_repeated,
        .on_blocks = on_blocks,
        .skips_echoes = true,
        .kinds = ME_EVENT_BIT(ME_EVENT_ALLOC) |
                 ME_EVENT_BIT(ME_EVENT_FREE_REQUESTED) |
                 ME_EVENT_BIT(ME_EVENT_FREE_COMPLETED) |
                 ME_EVENT_BIT(ME_EVENT_EMPTY_CACHE) |
                 ME_EVENT_BIT(ME_EVENT_POINT) |
                 (observer->twin == NULL ? 0 : ME_EVENT_BIT(ME_EVENT_PHASE)),
    };
}

void me_pool_observer_on_point(me_pool_observer *observer,
                               me_pool_on_point *on_point, void *self)
{
    observer->on_point = on_point;
    observer->point_self = self;
}

void me_pool_observer_on_end(me_pool_observer *observer, me_pool_on_end *on_end,
                             void *self)
{
    observer->on_end = on_end;
    observer->end_self = self;
}

const me_pool *me_pool_observer_pool(const me_pool_observer *observer)
{
    return observer->pool;
}

void me_pool_observer_reset_peaks(me_pool_observer *observer)
{
    me_pool_reset_peaks(observer->pool);
}

void me_pool_observer_set_outside(me_pool_observer *observer,
                                  uint64_t outside_bytes, const me_event *event)
{
    if (observer->is_ended) {
        return;
    }
    compare_twin(observer);
    const uint64_t before = observer->outside_bytes;
    observer->outside_bytes = outside_bytes;
    if (!me_pool_set_outside(observer->pool, outside_bytes)) {
        note_end(observer, event);
        observer->limit.is_outside = true;
        observer->limit.oom.tried_bytes = outside_bytes - before;
        if (event->kind == ME_EVENT_COLLECTIVE) {
            observer->limit.op =
                me_collective_name((me_collective)event->collective);
        }
    }
}

void me_pool_observer_take(me_pool_observer *observer, me_pool_taker taker,
                           uint64_t bytes)
{
    if (observer->is_ended) {
        return;
    }
    const me_status status = me_pool_take(observer->pool, taker, bytes);
    if (status != ME_OK) {
        end(observer, status, 0);
    }
    if (observer->twin != NULL) {
        me_twin_pool_take(observer->twin, taker, bytes);
    }
}

void me_pool_observer_oom_text(const me_pool_observer *observer, me_str *text)
{
    if (observer->limit.is_oom && !observer->limit.is_outside) {
        me_pool_oom_text(observer->pool, text);
    }
}

me_status me_pool_observer_status(const me_pool_observer *observer,
                                  me_diag *diag)
{
    const me_status status = observer->status;
    const char *what = "its events contradict each other";
    if (status == ME_OK) {
        return ME_OK;
    }
    if (status == ME_ERR_NOMEM) {
        what = "there is no host memory for it";
    } else if (status == ME_ERR_OVERFLOW) {
        what = "the device has no addresses left for it";
    }
    return me_fail(diag, status, "allocator: block %" PRIu32 ": %s",
                   observer->bad_block, what);
}

me_pool_limit me_pool_observer_limit(const me_pool_observer *observer)
{
    me_pool_limit limit = observer->limit;
    limit.num_alloc_retries = me_pool_num_alloc_retries(observer->pool);
    limit.reserved_bytes =
        me_pool_current(observer->pool, ME_POOL_RESERVED_BYTES);
    return limit;
}
