/* SPDX-License-Identifier: BSD-3-Clause */
#include "track/mem_tracker_impl.h"

bool me_mem_is_refused(me_mem_tracker *t)
{
    // The module that is called is a parent already.
    const bool is_root = me_mod_tracker_parent(t->mod, 1) == NULL;
    if (is_root && t->keeps_modules && t->options.as_memtracker) {
        me_engine_fail(t->e, ME_ERR_UNSUPPORTED,
                       "PyTorch's tool, which --as-memtracker and --tool "
                       "ilp are, refuses a model that runs forward again in "
                       "the same iteration (NotImplementedError)");
        return true;
    }
    return false;
}

static void pre_forward(me_mem_tracker *t, const me_mod_event *event)
{
    me_mem_module *m = me_mem_find(t, event->module);
    const bool is_known = m != NULL;
    m = is_known ? m : me_mem_record(t, event->module);
    if (m == NULL) {
        return;
    }
    if (is_known && event->is_backward) {
        if (!t->is_in_recomputation) {
            t->is_in_recomputation = true;
            t->recomputed = event->module;
        }
        me_mem_append(t, m, ME_MEM_PRE_FW_AC);
        return;
    }
    if (is_known && me_mem_is_refused(t)) {
        return;
    }
    m->input_bytes = me_mem_bytes_of(t, event->data);
    me_mem_reset_peak(t, m);
    me_mem_append(t, m, ME_MEM_PEAK_FW);
    me_mem_append(t, m, ME_MEM_PRE_FW);
}

static void post_forward(me_mem_tracker *t, const me_mod_event *event)
{
    me_mem_module *m = me_mem_find(t, event->module);
    if (m == NULL) {
        return;
    }
    if (!event->is_backward) {
        m->output_bytes = me_mem_bytes_of(t, event->data);
        me_mem_append(t, m, ME_MEM_POST_FW);
        return;
    }
    me_mem_append(t, m, ME_MEM_POST_FW_AC);
    if (t->is_in_recomputation && t->recomputed == event->module) {
        t->is_in_recomputation = false;
    }
}

static void pre_backward(me_mem_tracker *t, const me_mod_event *event)
{
    me_mem_module *m = me_mem_find(t, event->module);
    if (m != NULL) {
        me_mem_reset_peak(t, m);
        me_mem_append(t, m, ME_MEM_PEAK_BW);
        me_mem_append(t, m, ME_MEM_PRE_BW);
    }
}

void me_mem_on_module(void *self, const me_mod_event *event)
{
    me_mem_tracker *t = self;
    if (!t->is_listening) {
        return;
    }
    me_mem_module *m = NULL;
    switch (event->kind) {
    case ME_MOD_PRE_FORWARD: pre_forward(t, event); break;
    case ME_MOD_POST_FORWARD: post_forward(t, event); break;
    case ME_MOD_PRE_BACKWARD: pre_backward(t, event); break;
    case ME_MOD_POST_BACKWARD:
        m = me_mem_find(t, event->module);
        if (m != NULL) {
            me_mem_append(t, m, ME_MEM_POST_BW);
        }
        break;
    }
}
