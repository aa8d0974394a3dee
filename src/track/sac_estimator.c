/* SPDX-License-Identifier: BSD-3-Clause */
#include "track/sac_estimator.h"

#include "base/alloc.h"
#include "base/parse.h"
#include "base/size.h"
#include "tensor/tensor.h"

#include <string.h>

enum {
    MAX_RESULTS = 8,
    ALLOCATOR_STEP = 512 /* kMinBlockSize */
};

/** An operation of the forward that runs. */
typedef struct record {
    const char *name; /**< with its overload */
    double ms;
    uint64_t bytes;                 /**< of its results */
    uint32_t storages[MAX_RESULTS]; /**< of its results, each once */
    uint32_t n_storages;
} record;

/** A list that grows. */
typedef struct list {
    uint32_t count;
    uint32_t capacity;
} list;

struct me_sac_estimator {
    me_engine *e;
    me_roofline roofline;
    int32_t iteration;
    record *records; /**< since the outermost forward began */
    list of_records;
    uint32_t *saved; /**< storages that a backward needs */
    list of_saved;
    uint32_t *running; /**< first record of each forward that has not ended */
    list of_running;
    char **names; /**< of operations without overloads, each once; owned */
    list of_names;
    me_sac_stats *modules;
    list of_modules;
};

/** Room for one more of a list; NULL, and the engine has failed, without
 *  memory. */
static void *grow(me_sac_estimator *s, void *items, list *l, size_t size)
{
    void *larger =
        me_grow(items, l->count, &l->capacity, size, "sac_estimator");
    if (larger == NULL) {
        me_engine_fail(s->e, ME_ERR_NOMEM, "no host memory for SACEstimator");
    }
    return larger;
}

static bool has(const uint32_t *items, uint32_t count, uint32_t item)
{
    uint32_t i = 0;
    while (i < count && items[i] != item) {
        i++;
    }
    return i < count;
}

/** Does every storage of @p some belong to @p all? */
static bool is_subset(const record *some, const uint32_t *all, uint32_t count)
{
    for (uint32_t i = 0; i < some->n_storages; i++) {
        if (!has(all, count, some->storages[i])) {
            return false;
        }
    }
    return true;
}

/** The name without its overload, kept; NULL without memory. */
static const char *short_name(me_sac_estimator *s, const char *name)
{
    const size_t length = strcspn(name, ".");
    for (uint32_t i = 0; i < s->of_names.count; i++) {
        if (strlen(s->names[i]) == length &&
            strncmp(s->names[i], name, length) == 0) {
            return s->names[i];
        }
    }
    char **names = grow(s, s->names, &s->of_names, sizeof *names);
    if (names == NULL) {
        return NULL;
    }
    s->names = names;
    char *copy = me_alloc(length + 1, 1, "sac_estimator");
    if (copy == NULL) {
        me_engine_fail(s->e, ME_ERR_NOMEM, "no host memory for SACEstimator");
        return NULL;
    }
    memcpy(copy, name, length);
    names[s->of_names.count++] = copy;
    return copy;
}

/** Is an operation tagged as taking random numbers (nondeterministic_seeded),
 *  by its name? Attention is, with dropout or without. */
static bool is_random(const char *name)
{
    static const char *const names[] = {
        "native_dropout",
        "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_cudnn_attention",
    };
    return me_is_one_of(name, strlen(name), names,
                        sizeof names / sizeof names[0]);
}

/** What an operation's results hold, each storage once. */
static void note_results(me_sac_estimator *s, record *r, me_tensors results)
{
    for (uint32_t i = 0; i < results.count; i++) {
        const me_tensor *x = results.items[i];
        if (x == NULL || x->storage == NULL ||
            has(r->storages, r->n_storages, x->storage->serial)) {
            continue;
        }
        if (r->n_storages == MAX_RESULTS) {
            me_engine_fail(s->e, ME_ERR_INTERNAL,
                           "%s: more than %d results in a forward", r->name,
                           MAX_RESULTS);
            return;
        }
        r->storages[r->n_storages++] = x->storage->serial;
        r->bytes = me_size_add(r->bytes,
                               me_round_up(x->storage->bytes, ALLOCATOR_STEP));
    }
}

/** Does a forward of the iteration run, not of a recomputation? */
static bool is_on(const me_sac_estimator *s)
{
    return s->of_running.count > 0;
}

static void on_operation(void *self, const me_operation *operation)
{
    me_sac_estimator *s = self;
    if (!is_on(s)) {
        return;
    }
    const char *name = short_name(s, operation->name);
    record *records = grow(s, s->records, &s->of_records, sizeof *s->records);
    if (name == NULL || records == NULL) {
        return;
    }
    s->records = records;
    record *r = &records[s->of_records.count++];
    *r = (record){.name = name, .ms = me_roofline_ms(&s->roofline, operation)};
    note_results(s, r, operation->results);
}

static void on_saved(void *self, const me_tensor *x)
{
    me_sac_estimator *s = self;
    if (!is_on(s) || x->storage == NULL ||
        has(s->saved, s->of_saved.count, x->storage->serial)) {
        return;
    }
    uint32_t *saved = grow(s, s->saved, &s->of_saved, sizeof *saved);
    if (saved != NULL) {
        s->saved = saved;
        saved[s->of_saved.count++] = x->storage->serial;
    }
}

static bool has_children(const me_engine *e, me_module_id module)
{
    const me_module_tree *tree = me_engine_modules(e);
    uint32_t i = module + 1;
    while (i < tree->count && tree->modules[i].parent != module) {
        i++;
    }
    return i < tree->count;
}

/** The first record of a module whose results have the storages of @p at. */
static int32_t parent_of(const record *records, uint32_t at)
{
    uint32_t i = 0;
    while (i < at && !is_subset(&records[at], records[i].storages,
                                records[i].n_storages)) {
        i++;
    }
    return (int32_t)i;
}

/** Statistics of the records since @p first. */
static void fill_in(me_sac_estimator *s, me_sac_stats *stats, uint32_t first)
{
    const record *records = &s->records[first];
    stats->n_ops = s->of_records.count - first;
    for (uint32_t i = 0; i < stats->n_ops; i++) {
        const record *r = &records[i];
        const bool is_view_like = me_sac_is_view_like(r->name);
        stats->ops[i] = (me_sac_op){
            .name = r->name,
            .runtime_ms = r->ms,
            .bytes = is_view_like ? 0 : r->bytes,
            .is_view_like = is_view_like,
            .is_random = is_random(r->name),
            .is_saved = is_subset(r, s->saved, s->of_saved.count),
            .in_place_of = me_sac_is_in_place(r->name) ? parent_of(records, i)
                                                       : ME_SAC_NOT_IN_PLACE,
        };
    }
    me_diag diag = {.status = ME_OK};
    const me_status status = me_sac_stats_finish(stats, &diag);
    if (status != ME_OK) {
        me_engine_fail(s->e, status, "SACEstimator: %s: %s", stats->fqn,
                       diag.text);
    }
}

/** Where a module's statistics go: its earlier ones are gone. */
static me_sac_stats *place_of(me_sac_estimator *s, const char *fqn)
{
    for (uint32_t i = 0; i < s->of_modules.count; i++) {
        if (strcmp(s->modules[i].fqn, fqn) == 0) {
            me_free(s->modules[i].ops);
            s->modules[i].ops = NULL;
            return &s->modules[i];
        }
    }
    me_sac_stats *modules =
        grow(s, s->modules, &s->of_modules, sizeof *modules);
    if (modules == NULL) {
        return NULL;
    }
    s->modules = modules;
    return &modules[s->of_modules.count++];
}

static void end_forward(me_sac_estimator *s, const me_mod_event *event)
{
    const uint32_t first = s->running[--s->of_running.count];
    if (has_children(s->e, event->module)) {
        me_sac_stats *stats = place_of(s, event->fqn);
        const uint32_t count = s->of_records.count - first;
        if (stats == NULL) {
            return;
        }
        *stats = (me_sac_stats){
            .fqn = event->fqn,
            .ops = me_alloc((size_t)count + 1, sizeof *stats->ops,
                            "sac_estimator"),
        };
        if (stats->ops == NULL) {
            me_engine_fail(s->e, ME_ERR_NOMEM,
                           "no host memory for SACEstimator");
            return;
        }
        fill_in(s, stats, first);
    }
    if (s->of_running.count == 0) {
        s->of_records.count = 0;
        s->of_saved.count = 0;
    }
}

static void on_module(void *self, const me_mod_event *event)
{
    me_sac_estimator *s = self;
    if (me_iteration_get(s->e) != s->iteration || event->is_backward) {
        return;
    }
    if (event->kind == ME_MOD_PRE_FORWARD) {
        uint32_t *running =
            grow(s, s->running, &s->of_running, sizeof *running);
        if (running != NULL) {
            s->running = running;
            running[s->of_running.count++] = s->of_records.count;
        }
    } else if (event->kind == ME_MOD_POST_FORWARD && is_on(s)) {
        end_forward(s, event);
    }
}

me_sac_estimator *me_sac_estimator_create(me_engine *e, me_mod_tracker *mod,
                                          const me_roofline *roofline,
                                          int32_t iteration)
{
    me_sac_estimator *s = me_alloc(1, sizeof *s, "sac_estimator");
    if (s == NULL) {
        return NULL;
    }
    s->e = e;
    s->roofline = *roofline;
    s->iteration = iteration;
    me_mod_tracker_observe(mod,
                           (me_mod_observer){.on_event = on_module, .self = s});
    me_engine_hook(e, (me_hooks){.operation = on_operation,
                                 .saved = on_saved,
                                 .is_dispatch_mode = true,
                                 .is_fake = true,
                                 .self = s});
    return s;
}

void me_sac_estimator_destroy(me_sac_estimator *s)
{
    if (s == NULL) {
        return;
    }
    for (uint32_t i = 0; i < s->of_modules.count; i++) {
        me_free(s->modules[i].ops);
    }
    for (uint32_t i = 0; i < s->of_names.count; i++) {
        me_free(s->names[i]);
    }
    me_free(s->modules);
    me_free(s->names);
    me_free(s->running);
    me_free(s->saved);
    me_free(s->records);
    me_free(s);
}

const me_sac_stats *me_sac_estimator_modules(const me_sac_estimator *s,
                                             uint32_t *count_out)
{
    *count_out = s->of_modules.count;
    return s->modules;
}

const me_sac_stats *me_sac_estimator_module(const me_sac_estimator *s,
                                            const char *fqn)
{
    for (uint32_t i = 0; i < s->of_modules.count; i++) {
        if (strcmp(s->modules[i].fqn, fqn) == 0) {
            return &s->modules[i];
        }
    }
    return NULL;
}
