/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "base/parse.h"
#include "report/json.h"
#include "report/mem_text.h"

#include <string.h>

/*
 * A value that jansson cannot make is NULL, and whatever it was put into
 * becomes NULL.
 */

static json_t *make_device(const me_mem_tracker *t, const me_mem_device *d)
{
    const me_mem_labels *labels = me_mem_tracker_labels(t);
    json_t *object = json_object();
    for (uint32_t i = 0; i < me_mem_tracker_shown(t); i++) {
        object = me_json_put(object, labels->categories[i],
                             me_json_bytes(d->by_category[i]));
    }
    return me_json_put(object, "Total", me_json_bytes(d->total));
}

/** A device without anything is not there, as in PyTorch's snapshots. */
static json_t *make_snapshot(const me_mem_tracker *t, const me_mem_snapshot *s)
{
    json_t *object = json_object();
    if (s->device[ME_MEM_CUDA].total > 0) {
        object = me_json_put(object, "cuda:0",
                             make_device(t, &s->device[ME_MEM_CUDA]));
    }
    if (s->device[ME_MEM_CPU].total > 0) {
        object =
            me_json_put(object, "cpu", make_device(t, &s->device[ME_MEM_CPU]));
    }
    return object;
}

static json_t *make_calls(const me_mem_tracker *t, const me_mem_calls *calls)
{
    json_t *list = json_array();
    for (uint32_t i = 0; list != NULL && i < calls->count; i++) {
        list = me_json_push(list, make_snapshot(t, &calls->snapshots[i]));
    }
    return list;
}

static json_t *make_module(const me_mem_tracker *t, const me_mem_module *m)
{
    const me_mem_labels *labels = me_mem_tracker_labels(t);
    json_t *states = json_object();
    for (uint32_t i = 0; i < m->n_order; i++) {
        states = me_json_put(states, labels->states[m->order[i]],
                             make_calls(t, &m->states[m->order[i]]));
    }
    json_t *object = json_pack("{s:s}", "module", m->fqn);
    if (labels->n_states == ME_MEM_STATES) {
        object = me_json_put(object, "parameter_mem",
                             me_json_bytes(m->parameter_bytes));
        object =
            me_json_put(object, "buffer_mem", me_json_bytes(m->buffer_bytes));
        object =
            me_json_put(object, "input_mem", me_json_bytes(m->input_bytes));
        object =
            me_json_put(object, "output_mem", me_json_bytes(m->output_bytes));
    }
    return me_json_put(object, "snapshots", states);
}

static json_t *make_modules(const me_mem_tracker *t, uint32_t depth)
{
    uint32_t count = 0;
    const me_mem_module **modules = me_mem_sorted(t, &count);
    json_t *list = modules == NULL ? NULL : json_array();
    for (uint32_t i = 0; list != NULL && i < count; i++) {
        if (me_path_is_within(modules[i]->fqn, depth)) {
            list = me_json_push(list, make_module(t, modules[i]));
        }
    }
    me_free(modules);
    return list;
}

static json_t *make_points(const me_mem_tracker *t)
{
    uint32_t count = 0;
    const me_mem_point *points = me_mem_tracker_points(t, &count);
    json_t *list = json_array();
    for (uint32_t i = 0; list != NULL && i < count; i++) {
        json_t *point = json_pack("{s:s}", "point", points[i].name);
        point = me_json_put(point, "snapshot",
                            make_snapshot(t, &points[i].snapshot));
        list = me_json_push(list, point);
    }
    return list;
}

me_status me_mem_json_append(me_str *text, const me_mem_tracker *t,
                             uint32_t depth)
{
    json_t *root = json_object();
    root = me_json_put(root, "current",
                       make_snapshot(t, me_mem_tracker_current(t)));
    root = me_json_put(root, "peak", make_snapshot(t, me_mem_tracker_peak(t)));
    root = me_json_put(root, "points", make_points(t));
    root = me_json_put(root, "modules", make_modules(t, depth));
    return me_json_append(root, JSON_INDENT(2), text);
}
