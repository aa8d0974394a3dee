/* SPDX-License-Identifier: BSD-3-Clause */
/* What MemTracker and FSDPMemTracker know. */
#include "api/api_tracker.h"

static bool is_fsdp(const memest_tracker *t)
{
    return t->tool.options.kind == ME_TOOL_FSDP2;
}

/** Categories that a snapshot shows. */
static uint32_t n_categories(const memest_tracker *t)
{
    return me_mem_labels_of(is_fsdp(t))->n_categories -
           (t->tool.options.as_memtracker ? 1 : 0);
}

const char *memest_tracker_category_name(const memest_tracker *tracker,
                                         size_t category)
{
    const me_tool_kind kind = tracker->tool.options.kind;
    const bool has_any = kind == ME_TOOL_MEM || kind == ME_TOOL_FSDP2;
    return has_any && category < n_categories(tracker)
               ? me_mem_labels_of(is_fsdp(tracker))->categories[category]
               : NULL;
}

/** @param snapshot  NULL: there is none */
static bool fill(const memest_tracker *t, const me_mem_snapshot *snapshot,
                 memest_place place, memest_snapshot *snapshot_out)
{
    if (snapshot == NULL || (unsigned)place >= ME_MEM_DEVICES) {
        return false;
    }
    const me_mem_device *device = &snapshot->device[place];
    memest_snapshot whole = {
        .total_bytes = device->total,
        .n_categories = n_categories(t),
    };
    for (size_t i = 0; i < whole.n_categories; i++) {
        whole.category_bytes[i] = device->by_category[i];
    }
    return me_api_fill(snapshot_out, &whole, sizeof whole);
}

bool memest_tracker_current(const memest_tracker *tracker, memest_place place,
                            memest_snapshot *snapshot_out)
{
    const me_mem_tracker *mem = tracker->tool.mem;
    return fill(tracker, mem == NULL ? NULL : me_mem_tracker_current(mem),
                place, snapshot_out);
}

bool memest_tracker_peak(const memest_tracker *tracker, memest_place place,
                         memest_snapshot *snapshot_out)
{
    const me_mem_tracker *mem = tracker->tool.mem;
    return fill(tracker, mem == NULL ? NULL : me_mem_tracker_peak(mem), place,
                snapshot_out);
}

static const me_mem_point *point_at(const memest_tracker *t, size_t index)
{
    uint32_t count = 0;
    const me_mem_point *points =
        t->tool.mem == NULL ? NULL : me_mem_tracker_points(t->tool.mem, &count);
    return index < count ? &points[index] : NULL;
}

const char *memest_tracker_point_name(const memest_tracker *tracker,
                                      size_t index)
{
    const me_mem_point *point = point_at(tracker, index);
    return point == NULL ? NULL : point->name;
}

bool memest_tracker_point(const memest_tracker *tracker, size_t index,
                          memest_place place, memest_snapshot *snapshot_out)
{
    const me_mem_point *point = point_at(tracker, index);
    return fill(tracker, point == NULL ? NULL : &point->snapshot, place,
                snapshot_out);
}

static const me_mem_module *modules_of(const memest_tracker *t,
                                       uint32_t *count_out)
{
    *count_out = 0;
    return t->tool.mem == NULL ? NULL
                               : me_mem_tracker_modules(t->tool.mem, count_out);
}

static const me_mem_module *module_at(const memest_tracker *t, size_t index)
{
    uint32_t count = 0;
    const me_mem_module *modules = modules_of(t, &count);
    return index < count ? &modules[index] : NULL;
}

size_t memest_tracker_n_modules(const memest_tracker *tracker)
{
    uint32_t count = 0;
    (void)modules_of(tracker, &count);
    return count;
}

bool memest_tracker_module(const memest_tracker *tracker, size_t index,
                           memest_tracked_module *module_out)
{
    const me_mem_module *m = module_at(tracker, index);
    if (m == NULL) {
        return false;
    }
    const bool has_bytes = !is_fsdp(tracker);
    const memest_tracked_module whole = {
        .name = m->fqn,
        .parameter_bytes = has_bytes ? m->parameter_bytes : ME_BYTES_UNKNOWN,
        .buffer_bytes = has_bytes ? m->buffer_bytes : ME_BYTES_UNKNOWN,
        .input_bytes = has_bytes ? m->input_bytes : ME_BYTES_UNKNOWN,
        .output_bytes = has_bytes ? m->output_bytes : ME_BYTES_UNKNOWN,
        .gpu_peak_bytes = m->local_peak[ME_MEM_CUDA],
        .host_peak_bytes = m->local_peak[ME_MEM_CPU],
        .n_states = m->n_order,
    };
    return me_api_fill(module_out, &whole, sizeof whole);
}

/** Calls of a module in a state, by its place in the order of states. */
static const me_mem_calls *calls_of(const memest_tracker *t, size_t module,
                                    size_t state, uint32_t *state_out)
{
    const me_mem_module *m = module_at(t, module);
    if (m == NULL || state >= m->n_order) {
        return NULL;
    }
    *state_out = m->order[state];
    return &m->states[m->order[state]];
}

const char *memest_tracker_state_name(const memest_tracker *tracker,
                                      size_t module, size_t state)
{
    uint32_t at = 0;
    return calls_of(tracker, module, state, &at) == NULL
               ? NULL
               : me_mem_labels_of(is_fsdp(tracker))->states[at];
}

size_t memest_tracker_n_calls(const memest_tracker *tracker, size_t module,
                              size_t state)
{
    uint32_t at = 0;
    const me_mem_calls *calls = calls_of(tracker, module, state, &at);
    return calls == NULL ? 0 : calls->count;
}

bool memest_tracker_module_snapshot(const memest_tracker *tracker,
                                    size_t module, size_t state, size_t call,
                                    memest_place place,
                                    memest_snapshot *snapshot_out)
{
    uint32_t at = 0;
    const me_mem_calls *calls = calls_of(tracker, module, state, &at);
    return fill(tracker,
                calls != NULL && call < calls->count ? &calls->snapshots[call]
                                                     : NULL,
                place, snapshot_out);
}
