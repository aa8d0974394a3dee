/* SPDX-License-Identifier: BSD-3-Clause */
#include "track/memory_tracker.h"

#include "base/alloc.h"
#include "base/str.h"

#include <string.h>

enum {
    MAX_NAMES = 128 /* operations that the dispatcher has a name for */
};

struct me_memory_tracker {
    me_engine *e;
    me_module_id root;
    int32_t iteration;
    me_op_counters counters;
    me_op_series series;
    bool has_module;
    me_module_id module; /**< entered last */

    struct {
        const char *op;
        uint32_t count;
    } names[MAX_NAMES];

    uint32_t n_names;
};

static bool is_on(const me_memory_tracker *t)
{
    return me_iteration_get(t->e) == t->iteration;
}

static void check(me_memory_tracker *t, me_status status)
{
    if (status != ME_OK) {
        me_engine_fail(t->e, status, "no host memory for MemoryTracker");
    }
}

/** How often an operation has run before. */
static uint32_t count(me_memory_tracker *t, const char *op)
{
    for (uint32_t i = 0; i < t->n_names; i++) {
        if (strcmp(t->names[i].op, op) == 0) {
            return t->names[i].count++;
        }
    }
    if (t->n_names == MAX_NAMES) {
        me_engine_fail(t->e, ME_ERR_INTERNAL, "more than %d operations",
                       MAX_NAMES);
        return 0;
    }
    t->names[t->n_names].op = op;
    t->names[t->n_names++].count = 1;
    return 0;
}

static void on_operation(void *self, const me_operation *operation)
{
    me_memory_tracker *t = self;
    if (!is_on(t)) {
        return;
    }
    const char *path =
        t->has_module ? me_engine_modules(t->e)->modules[t->module].path : "";
    me_str name = {0};
    me_str_printf(&name, "%s%s.%s_%u", path, t->has_module ? ".forward" : "",
                  operation->name, count(t, operation->name));
    me_op_memory memory = {0};
    t->counters.read(t->counters.self, &memory);
    me_status status = me_str_status(&name);
    if (status == ME_OK) {
        status = me_op_series_append(&t->series, me_str_text(&name), &memory);
    }
    check(t, status);
    me_str_fini(&name);
}

static void mark(me_memory_tracker *t, const char *name)
{
    check(t, me_op_series_mark(&t->series, name, t->series.n_rows));
}

static void pre_forward(void *self, me_module_id module, me_tensor *x)
{
    me_memory_tracker *t = self;
    (void)x;
    if (is_on(t)) {
        t->has_module = true;
        t->module = module;
        if (module == t->root) {
            mark(t, "fw_start");
        }
    }
}

static void post_forward(void *self, me_module_id module, me_tensor *y)
{
    me_memory_tracker *t = self;
    (void)y;
    if (is_on(t) && module == t->root) {
        mark(t, "fw_bw_boundary");
    }
}

me_memory_tracker *me_memory_tracker_create(me_engine *e, me_module_id root,
                                            int32_t iteration,
                                            const me_op_counters *counters,
                                            bool is_dispatch_mode)
{
    me_memory_tracker *t = me_alloc(1, sizeof *t, "memory_tracker");
    if (t == NULL) {
        return NULL;
    }
    t->e = e;
    t->root = root;
    t->iteration = iteration;
    t->counters = *counters;
    me_engine_hook(e, (me_hooks){.pre_forward = pre_forward,
                                 .post_forward = post_forward,
                                 .operation = on_operation,
                                 .is_dispatch_mode = is_dispatch_mode,
                                 .self = t});
    return t;
}

void me_memory_tracker_destroy(me_memory_tracker *t)
{
    if (t != NULL) {
        me_op_series_fini(&t->series);
        me_free(t);
    }
}

const me_op_series *me_memory_tracker_series(const me_memory_tracker *t)
{
    return &t->series;
}
