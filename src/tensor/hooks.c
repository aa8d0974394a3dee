/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensor/hooks.h"

#include "tensor/engine_private.h"

void me_engine_hook(me_engine *e, me_hooks hooks)
{
    if (e->n_hooks == ME_MAX_HOOKS) {
        me_engine_fail(e, ME_ERR_INTERNAL, "more than %d hooks", ME_MAX_HOOKS);
        return;
    }
    e->hooks[e->n_hooks++] = hooks;
    e->has_dispatch_mode = e->has_dispatch_mode || hooks.is_dispatch_mode;
    e->is_fake = e->is_fake || hooks.is_fake;
    e->is_asked_devices = e->is_asked_devices || hooks.device_query != NULL;
}

bool me_is_listened_to(const me_engine *e)
{
    return e->n_hooks > 0;
}

bool me_is_fake(const me_engine *e)
{
    return e->is_fake;
}

bool me_is_backward(const me_engine *e)
{
    return e->context.phase == ME_PHASE_BACKWARD ||
           e->context.phase == ME_PHASE_RECOMPUTE ||
           e->context.thread == ME_THREAD_AUTOGRAD;
}

/** Room for a hook of a tensor; NULL after a failure. */
static me_node_hook *take_hook(me_engine *e)
{
    me_node_hook *hook = e->free_hooks;
    if (hook != NULL) {
        e->free_hooks = hook->next;
        return hook;
    }
    return me_engine_alloc(e, 1, sizeof *hook);
}

me_node *me_tensor_hook(me_engine *e, me_tensor *x,
                        void (*run)(void *self, uint32_t number), void *self,
                        uint32_t number)
{
    if (!me_engine_is_ok(e) || !x->requires_grad) {
        return NULL;
    }
    me_node *leaf = x->grad_fn == NULL ? me_leaf_accumulator(e, x) : NULL;
    me_node *node = x->grad_fn == NULL ? leaf : x->grad_fn;
    me_node_hook *hook = node == NULL ? NULL : take_hook(e);
    if (hook == NULL) {
        return leaf;
    }
    *hook = (me_node_hook){.run = run, .self = self, .number = number};
    me_node_hook **end = &node->hooks;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = hook;
    return leaf;
}

void me_node_hooks_run(me_node *node)
{
    for (const me_node_hook *h = node->hooks; h != NULL; h = h->next) {
        h->run(h->self, h->number);
    }
}

void me_node_hooks_free(me_engine *e, me_node *node)
{
    while (node->hooks != NULL) {
        me_node_hook *hook = node->hooks;
        node->hooks = hook->next;
        hook->next = e->free_hooks;
        e->free_hooks = hook;
    }
}

void me_prehook_add(me_node *node, me_prehook *hook)
{
    me_prehook **end = &node->prehooks;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    hook->next = NULL;
    *end = hook;
}

void me_prehook_remove(me_node *node, const me_prehook *hook)
{
    me_prehook **at = &node->prehooks;
    while (*at != NULL && *at != hook) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        *at = hook->next;
    }
}

void me_prehooks_run(me_engine *e, const me_node *node, me_tensor *const *gy)
{
    for (const me_prehook *h = node->prehooks; h != NULL; h = h->next) {
        h->run(h->self, e, gy);
    }
}

void me_tell_pre_forward(me_engine *e, me_module_id module, me_tensor *x)
{
    for (uint32_t i = 0; i < e->n_hooks; i++) {
        if (e->hooks[i].pre_forward != NULL) {
            e->hooks[i].pre_forward(e->hooks[i].self, module, x);
        }
    }
}

void me_tell_post_forward(me_engine *e, me_module_id module, me_tensor *y)
{
    for (uint32_t i = 0; i < e->n_hooks; i++) {
        if (e->hooks[i].post_forward != NULL) {
            e->hooks[i].post_forward(e->hooks[i].self, module, y);
        }
    }
}

void me_tell_end_backward(me_engine *e)
{
    for (uint32_t i = 0; i < e->n_hooks; i++) {
        if (e->hooks[i].end_backward != NULL) {
            e->hooks[i].end_backward(e->hooks[i].self);
        }
    }
}

void me_tell_shard_moment(me_engine *e, me_module_id module,
                          me_shard_moment moment)
{
    for (uint32_t i = 0; i < e->n_hooks; i++) {
        if (e->hooks[i].shard_moment != NULL) {
            e->hooks[i].shard_moment(e->hooks[i].self, module, moment);
        }
    }
}

void me_tell_shard_role(me_engine *e, const me_tensor *x, me_shard_role role)
{
    for (uint32_t i = 0; i < e->n_hooks; i++) {
        if (e->hooks[i].shard_role != NULL) {
            e->hooks[i].shard_role(e->hooks[i].self, x, role);
        }
    }
}

void me_tell_device_query(me_engine *e, const me_tensor *x)
{
    for (uint32_t i = 0; i < e->n_hooks; i++) {
        if (e->hooks[i].device_query != NULL && me_engine_is_ok(e)) {
            e->hooks[i].device_query(e->hooks[i].self, x);
        }
    }
}

void me_tell_device_queries(me_engine *e, const me_tensor *x, uint32_t count)
{
    for (uint32_t i = 0; x != NULL && i < count; i++) {
        me_tell_device_query(e, x);
    }
}

void me_tell_operation(me_engine *e, const me_operation *operation)
{
    for (uint32_t i = 0; i < e->n_hooks; i++) {
        if (e->hooks[i].operation != NULL && me_engine_is_ok(e)) {
            e->hooks[i].operation(e->hooks[i].self, operation);
        }
    }
}

void me_tell_op(me_engine *e, const char *op, me_tensors arguments,
                me_tensors results)
{
    if (e->n_hooks > 0) {
        me_tell_operation(e, &(me_operation){.name = op,
                                             .arguments = arguments,
                                             .results = results});
    }
}

void me_tell_op_of(me_engine *e, const char *op, uint64_t bytes)
{
    if (e->n_hooks > 0) {
        me_tell_operation(e, &(me_operation){.name = op, .more_bytes = bytes});
    }
}

void me_tell_saved(me_engine *e, const me_tensor *x)
{
    for (uint32_t i = 0; i < e->n_hooks; i++) {
        if (e->hooks[i].saved != NULL) {
            e->hooks[i].saved(e->hooks[i].self, x);
        }
    }
}

void me_tell_collective(me_engine *e, const me_collective_op *collective)
{
    for (uint32_t i = 0; i < e->n_hooks; i++) {
        if (e->hooks[i].collective != NULL && me_engine_is_ok(e)) {
            e->hooks[i].collective(e->hooks[i].self, collective);
        }
    }
}

void me_tell_optimizer_step(me_engine *e, bool begins)
{
    for (uint32_t i = 0; i < e->n_hooks; i++) {
        if (e->hooks[i].optimizer_step != NULL) {
            e->hooks[i].optimizer_step(e->hooks[i].self, begins);
        }
    }
}

void me_tell_host_memory(me_engine *e, int64_t bytes)
{
    for (uint32_t i = 0; i < e->n_hooks; i++) {
        if (e->hooks[i].host_memory != NULL) {
            e->hooks[i].host_memory(e->hooks[i].self, bytes);
        }
    }
}
