/* SPDX-License-Identifier: BSD-3-Clause */
#include "track/runtime_estimator.h"

#include "base/alloc.h"

#include <string.h>

enum {
    ORDERS = 4 /* one a kind of hook */
};

struct me_runtime_estimator {
    me_engine *e;
    me_mod_tracker *mod;
    me_roofline roofline;
    int32_t iteration;
    bool counts_queries;
    double total_ms;
    me_module_runtime *modules;
    uint32_t n_modules;
    uint32_t capacity;
    me_module_order orders[ORDERS];
};

static bool is_on(const me_runtime_estimator *r)
{
    return me_iteration_get(r->e) == r->iteration;
}

/** Room for one more; false, and the engine has failed, without memory. */
static bool reserve(me_runtime_estimator *r, void **items, uint32_t count,
                    uint32_t *capacity, size_t size)
{
    void *larger = me_grow(*items, count, capacity, size, "runtime_estimator");
    if (larger == NULL) {
        me_engine_fail(r->e, ME_ERR_NOMEM,
                       "no host memory for RuntimeEstimator");
        return false;
    }
    *items = larger;
    return true;
}

static void charge(me_runtime_estimator *r, const char *fqn, double ms)
{
    uint32_t at = 0;
    while (at < r->n_modules && strcmp(r->modules[at].fqn, fqn) != 0) {
        at++;
    }
    if (at == r->n_modules) {
        void *items = r->modules;
        if (!reserve(r, &items, at, &r->capacity, sizeof *r->modules)) {
            return;
        }
        r->modules = items;
        r->modules[r->n_modules++] = (me_module_runtime){.fqn = fqn};
    }
    if (me_is_backward(r->e)) {
        r->modules[at].backward_ms += ms;
    } else {
        r->modules[at].forward_ms += ms;
    }
}

static void on_operation(void *self, const me_operation *operation)
{
    me_runtime_estimator *r = self;
    if (!is_on(r)) {
        return;
    }
    const double ms = me_roofline_ms(&r->roofline, operation);
    r->total_ms += ms;
    charge(r, "Global", ms);
    const char *fqn = NULL;
    for (uint32_t i = 0; (fqn = me_mod_tracker_parent(r->mod, i)) != NULL;
         i++) {
        charge(r, fqn, ms);
    }
}

static void on_device_query(void *self, const me_tensor *x)
{
    const me_runtime_estimator *r = self;
    if (r->counts_queries) {
        on_operation(self, &(me_operation){.name = "device.default",
                                           .arguments = ME_TENSORS(x)});
    }
}

static void on_module(void *self, const me_mod_event *event)
{
    me_runtime_estimator *r = self;
    me_module_order *order = &r->orders[event->kind];
    void *items = order->fqns;
    if (is_on(r) && reserve(r, &items, order->count, &order->capacity,
                            sizeof *order->fqns)) {
        order->fqns = items;
        order->fqns[order->count++] = event->fqn;
    }
}

me_runtime_estimator *me_runtime_estimator_create(me_engine *e,
                                                  me_mod_tracker *mod,
                                                  const me_roofline *roofline,
                                                  int32_t iteration)
{
    me_runtime_estimator *r = me_alloc(1, sizeof *r, "runtime_estimator");
    if (r == NULL) {
        return NULL;
    }
    r->e = e;
    r->mod = mod;
    r->roofline = *roofline;
    r->iteration = iteration;
    me_mod_tracker_observe(mod,
                           (me_mod_observer){.on_event = on_module, .self = r});
    me_engine_hook(e, (me_hooks){.operation = on_operation,
                                 .device_query = on_device_query,
                                 .is_dispatch_mode = true,
                                 .self = r});
    return r;
}

void me_runtime_estimator_count_queries(me_runtime_estimator *r)
{
    r->counts_queries = true;
}

void me_runtime_estimator_destroy(me_runtime_estimator *r)
{
    if (r == NULL) {
        return;
    }
    for (int i = 0; i < ORDERS; i++) {
        me_free(r->orders[i].fqns);
    }
    me_free(r->modules);
    me_free(r);
}

double me_runtime_estimator_total_ms(const me_runtime_estimator *r)
{
    return r->total_ms;
}

const me_module_runtime *
me_runtime_estimator_modules(const me_runtime_estimator *r, uint32_t *count_out)
{
    *count_out = r->n_modules;
    return r->modules;
}

const me_module_runtime *
me_runtime_estimator_module(const me_runtime_estimator *r, const char *fqn)
{
    for (uint32_t i = 0; i < r->n_modules; i++) {
        if (strcmp(r->modules[i].fqn, fqn) == 0) {
            return &r->modules[i];
        }
    }
    return NULL;
}

const me_module_order *me_runtime_estimator_order(const me_runtime_estimator *r,
                                                  me_mod_event_kind kind)
{
    return &r->orders[kind];
}
