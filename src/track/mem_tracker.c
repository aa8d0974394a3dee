/* SPDX-License-Identifier: BSD-3-Clause */
#include "track/mem_tracker.h"

#include "base/alloc.h"
#include "base/size.h"
#include "track/mem_tracker_impl.h"

#include <string.h>

#define LABEL(constant, label) [constant] = (label),

static const char *const mem_categories[] = {ME_MEM_CATEGORY_LIST(LABEL)};
static const char *const mem_states[] = {ME_MEM_STATE_LIST(LABEL)};
static const char *const fsdp_categories[] = {ME_FSDP_MEM_CATEGORY_LIST(LABEL)};
static const char *const fsdp_states[] = {ME_FSDP_MEM_STATE_LIST(LABEL)};

static const me_mem_labels mem_labels = {mem_categories, ME_MEM_CATEGORIES,
                                         mem_states, ME_MEM_STATES};
static const me_mem_labels fsdp_labels = {
    fsdp_categories, ME_FSDP_MEM_CATEGORIES, fsdp_states, ME_FSDP_MEM_STATES};

const me_mem_labels *me_mem_labels_of(bool is_fsdp)
{
    return is_fsdp ? &fsdp_labels : &mem_labels;
}

static void no_memory(me_mem_tracker *t)
{
    me_engine_fail(t->e, ME_ERR_NOMEM, "no host memory for the memory tracker");
}

/** Room for one more; false, and the engine has failed, without memory. */
static bool reserve(me_mem_tracker *t, void **items, uint32_t count,
                    uint32_t *capacity, size_t size)
{
    void *larger = me_grow(*items, count, capacity, size, "mem_tracker");
    if (larger == NULL) {
        no_memory(t);
        return false;
    }
    *items = larger;
    return true;
}

me_mem_module *me_mem_find(const me_mem_tracker *t, me_module_id module)
{
    return module < t->n_places && t->place_of[module] != 0
               ? &t->modules[t->place_of[module] - 1]
               : NULL;
}

me_mem_module *me_mem_record(me_mem_tracker *t, me_module_id module)
{
    if (module >= t->n_places) {
        const uint32_t count = me_engine_modules(t->e)->count;
        uint32_t *larger =
            me_realloc(t->place_of, count, sizeof *larger, "mem_tracker");
        if (larger == NULL) {
            no_memory(t);
            return NULL;
        }
        memset(larger + t->n_places, 0, (count - t->n_places) * sizeof *larger);
        t->place_of = larger;
        t->n_places = count;
    }
    if (t->place_of[module] != 0) {
        return me_mem_find(t, module);
    }
    void *items = t->modules;
    if (!reserve(t, &items, t->n_modules, &t->modules_capacity,
                 sizeof *t->modules)) {
        return NULL;
    }
    t->modules = items;
    me_mem_module *m = &t->modules[t->n_modules++];
    t->place_of[module] = t->n_modules;
    *m = (me_mem_module){
        .module = module,
        .fqn = me_mod_tracker_fqn(t->mod, module),
        .parameter_bytes =
            me_engine_modules(t->e)->modules[module].parameter_blocks,
        .buffer_bytes = me_engine_modules(t->e)->modules[module].buffer_blocks,
    };
    return m;
}

void me_mem_append(me_mem_tracker *t, me_mem_module *m, uint32_t state)
{
    if (!t->keeps_modules) {
        return; // the asked iteration is over
    }
    me_mem_calls *calls = &m->states[state];
    void *items = calls->snapshots;
    if (!reserve(t, &items, calls->count, &calls->capacity,
                 sizeof *calls->snapshots)) {
        return;
    }
    calls->snapshots = items;
    if (calls->count == 0) {
        m->order[m->n_order++] = (uint8_t)state;
    }
    calls->snapshots[calls->count++] = t->current;
}

void me_mem_reset_peak(const me_mem_tracker *t, me_mem_module *m)
{
    for (int d = 0; d < ME_MEM_DEVICES; d++) {
        m->local_peak[d] = t->current.device[d].total;
    }
}

void me_mem_tracker_reset_modules(me_mem_tracker *t)
{
    for (uint32_t i = 0; i < t->n_modules; i++) {
        for (uint32_t s = 0; s < ME_MEM_MAX_STATES; s++) {
            me_free(t->modules[i].states[s].snapshots);
        }
    }
    t->n_modules = 0;
    if (t->n_places > 0) {
        memset(t->place_of, 0, t->n_places * sizeof *t->place_of);
    }
}

/** Which list of a module the running peak goes into. */
static uint32_t peak_state(const me_mem_tracker *t)
{
    if (t->options.is_fsdp) {
        return me_is_backward(t->e) ? ME_FSDP_MEM_PEAK_BW : ME_FSDP_MEM_PEAK_FW;
    }
    return me_is_backward(t->e) ? ME_MEM_PEAK_BW : ME_MEM_PEAK_FW;
}

static void check_module(const me_mem_tracker *t, me_mem_module *m,
                         uint32_t state)
{
    const me_mem_calls *calls = &m->states[state];
    if (calls->count == 0 || !me_mod_tracker_is_parent(t->mod, m->module)) {
        return;
    }
    me_mem_snapshot *last = &calls->snapshots[calls->count - 1];
    for (int d = 0; d < ME_MEM_DEVICES; d++) {
        if (m->local_peak[d] < t->current.device[d].total) {
            m->local_peak[d] = t->current.device[d].total;
            last->device[d] = t->current.device[d];
        }
    }
}

void me_mem_check_peaks(me_mem_tracker *t)
{
    t->has_unchecked = false;
    if (!t->is_listening) {
        return;
    }
    const uint32_t state = peak_state(t);
    for (uint32_t i = 0; t->keeps_modules && i < t->n_modules; i++) {
        check_module(t, &t->modules[i], state);
    }
    for (int d = 0; d < ME_MEM_DEVICES; d++) {
        if (t->peak.device[d].total < t->current.device[d].total) {
            t->peak.device[d] = t->current.device[d];
        }
    }
}

/** The block with an id; NULL after a failure. */
static me_mem_block *block_at(me_mem_tracker *t, uint32_t id)
{
    if (id >= t->n_blocks) {
        const uint32_t wanted = id < 1024 ? 2048 : id * 2;
        me_mem_block *larger =
            me_realloc(t->blocks, wanted, sizeof *larger, "mem_tracker");
        if (larger == NULL) {
            no_memory(t);
            return NULL;
        }
        memset(larger + t->n_blocks, 0,
               (wanted - t->n_blocks) * sizeof *larger);
        t->blocks = larger;
        t->n_blocks = wanted;
    }
    return &t->blocks[id];
}

static void add(me_mem_tracker *t, const me_mem_block *block)
{
    me_mem_device *d = &t->current.device[ME_MEM_CUDA];
    d->by_category[block->category] += block->bytes;
    d->total += block->bytes;
}

static void take(me_mem_tracker *t, const me_mem_block *block)
{
    me_mem_device *d = &t->current.device[ME_MEM_CUDA];
    d->by_category[block->category] -= block->bytes;
    d->total -= block->bytes;
}

/** Of a block that is born while the tool listens. */
static uint8_t category_inside(const me_mem_tracker *t)
{
    const bool is_fsdp = t->options.is_fsdp;
    if (t->is_in_step) {
        return is_fsdp ? ME_FSDP_MEM_OPTSTATE : ME_MEM_OPTSTATE;
    }
    if (me_is_backward(t->e) && !t->is_in_recomputation) {
        return is_fsdp ? ME_FSDP_MEM_TEMP : ME_MEM_TEMP;
    }
    return is_fsdp ? ME_FSDP_MEM_ACTIVATION : ME_MEM_ACTIVATION;
}

/** Of a block that was there before: what track_external() makes of it. */
static uint8_t category_before(const me_mem_tracker *t, uint8_t category)
{
    const bool is_fsdp = t->options.is_fsdp;
    const uint8_t activation =
        is_fsdp ? ME_FSDP_MEM_ACTIVATION : ME_MEM_ACTIVATION;
    const uint8_t input = is_fsdp ? ME_FSDP_MEM_INPUTS : ME_MEM_OTHER;
    switch (category) {
    case ME_CATEGORY_PARAMETER:
        return is_fsdp ? ME_FSDP_MEM_SHARDED_PARAM : ME_MEM_PARAMETER;
    case ME_CATEGORY_GRADIENT:
        return is_fsdp ? ME_FSDP_MEM_SHARDED_GRAD : ME_MEM_GRADIENT;
    case ME_CATEGORY_OPTIMIZER_STATE:
        return is_fsdp ? ME_FSDP_MEM_OPTSTATE : ME_MEM_OPTSTATE;
    case ME_CATEGORY_BUFFER:
        return is_fsdp ? ME_FSDP_MEM_BUFFER : ME_MEM_BUFFER;
    case ME_CATEGORY_INPUT:
        return t->options.is_input_inside ? activation : input;
    default: return (uint8_t)(t->labels->n_categories - 1);
    }
}

static void on_alloc(me_mem_tracker *t, const me_event *event)
{
    me_mem_block *block = block_at(t, event->block);
    if (block == NULL) {
        return;
    }
    const uint8_t unseen = (uint8_t)(t->labels->n_categories - 1);
    *block = (me_mem_block){
        .bytes = me_round_up(event->bytes, ME_MEM_BLOCK_BYTES),
        .category = t->is_listening ? category_inside(t)
                                    : category_before(t, event->category),
    };
    if (event->is_scratch) {
        block->category = unseen;
    }
    block->is_counted = block->category != unseen || !t->options.as_memtracker;
    if (!block->is_counted) {
        return;
    }
    add(t, block);
    if (t->options.is_fsdp && event->category == ME_CATEGORY_PARAMETER) {
        t->has_unchecked = true; // no operation but a resized storage
    } else {
        me_mem_check_peaks(t);
    }
}

static void on_free(me_mem_tracker *t, const me_event *event)
{
    me_mem_block *block = block_at(t, event->block);
    if (block == NULL || !block->is_counted) {
        return;
    }
    if (t->held_id == event->block + 1) {
        t->held = *block;
        t->held_id = 0;
    } else {
        take(t, block);
    }
    *block = (me_mem_block){0};
}

static void on_gradient(me_mem_tracker *t, const me_event *event)
{
    me_mem_block *block = block_at(t, event->block);
    if (t->options.is_fsdp || block == NULL || !block->is_counted) {
        return; // fully_shard says itself what its gradients are
    }
    take(t, block);
    block->category = ME_MEM_GRADIENT;
    add(t, block);
}

static void on_point(me_mem_tracker *t, const me_event *event)
{
    void *items = t->points;
    if (!t->is_listening || !reserve(t, &items, t->n_points,
                                     &t->points_capacity, sizeof *t->points)) {
        return;
    }
    t->points = items;
    char *name = me_strdup(event->name, "mem_tracker");
    if (name == NULL) {
        no_memory(t);
        return;
    }
    t->points[t->n_points++] =
        (me_mem_point){.name = name, .snapshot = t->current};
}

static void on_iteration(me_mem_tracker *t, const me_event *event)
{
    if (!t->is_listening) {
        t->is_listening = true;
        t->peak = t->current;
    }
    if (t->options.keeps_all) {
        t->keeps_modules = true;
        return;
    }
    if (event->iteration <= t->options.iteration) {
        me_mem_tracker_reset_modules(t);
    }
    t->keeps_modules = event->iteration <= t->options.iteration;
}

static void on_recategorize(me_mem_tracker *t, const me_event *event)
{
    if (event->category == ME_CATEGORY_GRADIENT) {
        on_gradient(t, event);
    }
}

/** What is done about an event; the other kinds are nothing to the tracker. */
static const struct {
    me_event_kind kind;
    void (*run)(me_mem_tracker *t, const me_event *event);
} handlers[] = {
    {ME_EVENT_ALLOC, on_alloc},
    {ME_EVENT_FREE_REQUESTED, on_free},
    {ME_EVENT_RECATEGORIZE, on_recategorize},
    {ME_EVENT_ITERATION, on_iteration},
    {ME_EVENT_POINT, on_point},
};

static void on_event(void *self, const me_event *event)
{
    me_mem_tracker *t = self;
    if (t->has_unchecked) {
        me_mem_check_peaks(t);
    }
    for (size_t i = 0; i < sizeof handlers / sizeof handlers[0]; i++) {
        if (handlers[i].kind == event->kind) {
            handlers[i].run(t, event);
        }
    }
}

static void on_host_memory(void *self, int64_t bytes)
{
    me_mem_tracker *t = self;
    me_mem_device *d = &t->current.device[ME_MEM_CPU];
    const uint32_t category =
        t->options.is_fsdp ? ME_FSDP_MEM_OPTSTATE : ME_MEM_OPTSTATE;
    d->by_category[category] += (uint64_t)bytes; // less where negative
    d->total += (uint64_t)bytes;
    me_mem_check_peaks(t);
}

static void on_optimizer_step(void *self, bool begins)
{
    me_mem_tracker *t = self;
    t->is_in_step = begins;
}

uint64_t me_mem_bytes_of(const me_mem_tracker *t, const me_tensor *x)
{
    if (x->storage == NULL || x->storage->is_empty ||
        x->storage->block >= t->n_blocks) {
        return 0;
    }
    return t->blocks[x->storage->block].bytes;
}

void me_mem_move(me_mem_tracker *t, const me_tensor *x, uint8_t category)
{
    if (x == NULL || x->storage == NULL || x->storage->is_empty ||
        x->storage->block >= t->n_blocks) {
        return;
    }
    me_mem_block *block = &t->blocks[x->storage->block];
    if (block->is_counted) {
        take(t, block);
        block->category = category;
        add(t, block);
    }
}

me_mem_tracker *me_mem_tracker_create(me_engine *e, me_mod_tracker *mod,
                                      const me_mem_options *options)
{
    me_mem_tracker *t = me_alloc(1, sizeof *t, "mem_tracker");
    if (t == NULL) {
        return NULL;
    }
    t->e = e;
    t->mod = mod;
    t->options = *options;
    t->labels = me_mem_labels_of(options->is_fsdp);
    me_observer observer = {.on_event = on_event, .self = t};
    for (size_t i = 0; i < sizeof handlers / sizeof handlers[0]; i++) {
        observer.kinds |= ME_EVENT_BIT(handlers[i].kind);
    }
    me_engine_observe(e, observer);
    me_hooks hooks = {.optimizer_step = on_optimizer_step,
                      .host_memory = on_host_memory,
                      .is_dispatch_mode = options->as_memtracker,
                      .self = t};
    if (options->is_fsdp) {
        hooks.shard_moment = me_mem_on_shard_moment;
        hooks.shard_role = me_mem_on_shard_role;
    } else {
        me_mod_tracker_observe(
            mod, (me_mod_observer){.on_event = me_mem_on_module, .self = t});
    }
    me_engine_hook(e, hooks);
    return t;
}

void me_mem_tracker_destroy(me_mem_tracker *t)
{
    if (t == NULL) {
        return;
    }
    me_mem_tracker_reset_modules(t);
    me_free(t->modules);
    me_free(t->place_of);
    me_free(t->blocks);
    for (uint32_t i = 0; i < t->n_points; i++) {
        me_free(t->points[i].name);
    }
    me_free(t->points);
    me_free(t);
}

const me_mem_labels *me_mem_tracker_labels(const me_mem_tracker *t)
{
    return t->labels;
}

const me_mem_snapshot *me_mem_tracker_current(const me_mem_tracker *t)
{
    return &t->current;
}

const me_mem_snapshot *me_mem_tracker_peak(const me_mem_tracker *t)
{
    return &t->peak;
}

const me_mem_module *me_mem_tracker_modules(const me_mem_tracker *t,
                                            uint32_t *count_out)
{
    *count_out = t->n_modules;
    return t->modules;
}

const me_mem_point *me_mem_tracker_points(const me_mem_tracker *t,
                                          uint32_t *count_out)
{
    *count_out = t->n_points;
    return t->points;
}

uint32_t me_mem_tracker_shown(const me_mem_tracker *t)
{
    return t->labels->n_categories - (t->options.as_memtracker ? 1 : 0);
}
