/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/fsdp/fsdp.h"

#include "base/alloc.h"
#include "ops/elementwise.h"
#include "tensor/launch.h"

#include <stdio.h>
#include <string.h>

void me_fsdp_tell(const me_fsdp_group *group, me_shard_moment moment)
{
    if (group->n_params > 0) {
        me_tell_shard_moment(group->fsdp->spec.nn->e, group->module, moment);
    }
}

/** FSDPParamGroup._backward_prefetch(): the group that was used before the last
 *  use of this one that has not asked for it yet. */
static void backward_prefetch(me_fsdp_group *group)
{
    me_fsdp *fsdp = group->fsdp;
    uint32_t i = fsdp->n_uses;
    while (i > 0 && (fsdp->post_forward_order[i - 1].group != group ||
                     fsdp->post_forward_order[i - 1].is_popped)) {
        i--;
    }
    if (i == 0) {
        return;
    }
    fsdp->post_forward_order[i - 1].is_popped = true;
    if (i > 1) {
        me_fsdp_group_unshard(fsdp->post_forward_order[i - 2].group);
    }
}

/** _pre_backward(): parameters, and the next gather ahead of its use. */
static void pre_backward(void *self, uint32_t number)
{
    me_fsdp_group *group = &((me_fsdp *)self)->groups[number];
    me_engine *e = group->fsdp->spec.nn->e;
    me_fsdp_tell(group, ME_SHARD_BEFORE_PRE_BACKWARD);
    group->is_in_backward = true;
    group->fsdp->is_callback_queued = true;
    if (group->state != ME_FSDP_PRE_BACKWARD) {
        group->state = ME_FSDP_PRE_BACKWARD;
        me_fsdp_group_unshard(group);
        me_release(e, me_fsdp_group_wait(group));
        if (!group->has_backward_prefetch) {
            backward_prefetch(group);
        }
    }
    if (group->backward_prefetch != NULL) {
        me_fsdp_group_unshard(group->backward_prefetch);
    }
    me_fsdp_tell(group, ME_SHARD_AFTER_PRE_BACKWARD);
}

static void input_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                           me_tensor **gx)
{
    (void)e;
    gx[0] = gy[0];
    // The group outlives the tape, which only borrows it.
    me_fsdp_group_post_backward(*(me_fsdp_group *const *)node->data.context);
}

static const me_op input_op =
    ME_NODE("RegisterPostBackwardFunctionBackward", input_backward);

/** RegisterPostBackwardFunction: an identity whose backward comes once the
 *  module's is done. */
static me_tensor *register_post_backward(me_fsdp_group *group, me_tensor *x)
{
    me_engine *e = group->fsdp->spec.nn->e;
    me_node *node = group->n_params == 0 ? NULL : me_record1(e, &input_op, x);
    if (node == NULL) {
        return x;
    }
    node->data.context = &group->hooks.self;
    return me_output(e, node, me_alias(e, x, x->shape, x->strides));
}

/** Mixed precision casts what a module is given. */
static me_tensor *cast_input(const me_fsdp_group *group, me_tensor *x)
{
    const me_fully_shard_config *c = group->fsdp->spec.config;
    return c->has_param_dtype && me_dtype_is_floating((me_dtype)x->dtype)
               ? me_cast(group->fsdp->spec.nn->e, x, c->param_dtype)
               : x;
}

/** Is @p module the one above, or below it? */
static bool is_below(me_engine *e, me_module_id module, me_module_id above)
{
    const me_module_tree *tree = me_engine_modules(e);
    while (module != above && module != ME_NO_MODULE) {
        module = tree->modules[module].parent;
    }
    return module == above;
}

/** _lazy_init(): the first module whose forward runs is the root, and states
 *  that are not below it are nobody's. */
static void lazy_init(me_fsdp *fsdp, const me_fsdp_group *root)
{
    if (fsdp->root != NULL) {
        return;
    }
    fsdp->root = root;
    uint32_t count = 0;
    for (uint32_t i = 0; i < fsdp->n_states; i++) {
        me_fsdp_group *group = fsdp->all_states[i];
        if (is_below(fsdp->spec.nn->e, group->module, root->module)) {
            fsdp->all_states[count++] = group;
        }
    }
    fsdp->n_states = count;
}

/** Where a hook of a module's output has come before, in a recomputation of the
 * module, parameters are there already, and stay. */
static me_tensor *pre_forward(void *self, me_tensor *x)
{
    me_fsdp_group *group = self;
    me_fsdp *fsdp = group->fsdp;
    me_engine *e = fsdp->spec.nn->e;
    me_fsdp_tell(group, ME_SHARD_BEFORE_PRE_FORWARD);
    if (group->is_in_backward || !me_engine_is_ok(e)) {
        me_fsdp_tell(group, ME_SHARD_AFTER_PRE_FORWARD);
        return x;
    }
    lazy_init(fsdp, group);
    if (fsdp->forward_root == NULL) {
        fsdp->forward_root = group;
    }
    group->state = ME_FSDP_FORWARD;
    x = cast_input(group, x);
    me_fsdp_group_unshard(group);
    me_tensor *gathered = me_fsdp_group_wait(group);
    if (gathered != NULL) { // kept until the next one is copied out
        me_tensor *before = fsdp->last_gathered;
        fsdp->last_gathered = gathered;
        me_release(e, before);
    }
    for (uint32_t i = 0; i < group->n_params; i++) {
        me_tell_shard_role(e, group->params[i].unsharded,
                           ME_SHARD_UNSHARDED_PARAMETER);
    }
    x = register_post_backward(group, x);
    me_fsdp_tell(group, ME_SHARD_AFTER_PRE_FORWARD);
    return x;
}

/** _record_post_forward(). */
static void record_use(me_fsdp_group *group)
{
    me_fsdp *fsdp = group->fsdp;
    if (fsdp->n_uses == fsdp->uses_capacity) {
        const uint32_t capacity = 2 * fsdp->uses_capacity + fsdp->n_groups;
        me_fsdp_use *larger =
            me_realloc(fsdp->post_forward_order, capacity,
                       sizeof *fsdp->post_forward_order, "fsdp.uses");
        if (larger == NULL) {
            me_engine_fail(fsdp->spec.nn->e, ME_ERR_NOMEM,
                           "no host memory for FSDP");
            return;
        }
        fsdp->post_forward_order = larger;
        fsdp->uses_capacity = capacity;
    }
    fsdp->post_forward_order[fsdp->n_uses++] = (me_fsdp_use){.group = group};
}

static me_tensor *post_forward(void *self, me_tensor *y)
{
    me_fsdp_group *group = self;
    me_fsdp *fsdp = group->fsdp;
    me_engine *e = fsdp->spec.nn->e;
    me_fsdp_tell(group, ME_SHARD_BEFORE_POST_FORWARD);
    if (group->is_in_backward || !me_engine_is_ok(e)) {
        return y;
    }
    // A forward that a backward runs again keeps what it has gathered.
    const bool is_in_backward = me_context_now(e)->thread == ME_THREAD_AUTOGRAD;
    if (!is_in_backward && fsdp->spec.config->reshard_after_forward &&
        !group->keeps_unsharded) {
        me_fsdp_group_reshard(group);
    }
    group->state = ME_FSDP_IDLE;
    if (group->n_params > 0) {
        if (!is_in_backward) {
            record_use(group);
        }
        me_node_release(e, me_tensor_hook(e, y, pre_backward, fsdp,
                                          (uint32_t)(group - fsdp->groups)));
    }
    if (fsdp->forward_root == group) {
        me_clear(e, &fsdp->last_gathered);
        fsdp->forward_root = NULL;
    }
    me_fsdp_tell(group, ME_SHARD_AFTER_POST_FORWARD);
    return y;
}

/** Does a group have the parameter already? */
static bool is_taken(const me_fsdp *fsdp, const me_parameter *parameter)
{
    for (uint32_t i = 0; i < fsdp->n_groups; i++) {
        for (uint32_t k = 0; k < fsdp->groups[i].n_params; k++) {
            if (fsdp->groups[i].params[k].parameter == parameter) {
                return true;
            }
        }
    }
    return false;
}

me_fsdp *me_fsdp_create(const me_fully_shard_spec *spec)
{
    me_engine *e = spec->nn->e;
    me_fsdp *fsdp = me_engine_alloc(e, 1, sizeof *fsdp);
    if (fsdp == NULL) {
        return NULL;
    }
    fsdp->spec = *spec;
    fsdp->groups =
        me_engine_alloc(e, (size_t)spec->n_modules + 1, sizeof *fsdp->groups);
    fsdp->all_states = me_engine_alloc(e, (size_t)spec->n_modules + 1,
                                       sizeof(me_fsdp_group *));
    return me_engine_is_ok(e) ? fsdp : NULL;
}

/** fully_shard() makes a class of its own of the module's: FSDPLinear. */
static void rename_class(me_engine *e, me_module_id module)
{
    const char *name = me_engine_modules(e)->modules[module].class_name;
    name = name == NULL ? "Module" : name;
    const size_t bytes = strlen(name) + sizeof "FSDP";
    char *renamed = me_engine_alloc(e, bytes, 1);
    if (renamed != NULL) {
        (void)snprintf(renamed, bytes, "FSDP%s", name);
        me_module_set_class(e, module, renamed);
    }
}

/** A model's modules are listed parents first. */
static void list_state(me_fsdp *fsdp, me_fsdp_group *group)
{
    uint32_t i = fsdp->n_states++;
    while (i > 0 && fsdp->all_states[i - 1]->module > group->module) {
        fsdp->all_states[i] = fsdp->all_states[i - 1];
        i--;
    }
    fsdp->all_states[i] = group;
}

me_fsdp_group *me_fsdp_wrap(me_fsdp *fsdp, me_module_id module)
{
    me_engine *e = fsdp->spec.nn->e;
    const me_parameter_list *all = fsdp->spec.nn->parameters;
    me_fsdp_group *group = &fsdp->groups[fsdp->n_groups];
    *group = (me_fsdp_group){.fsdp = fsdp, .module = module};
    const size_t room = (size_t)all->count + 1;
    group->params = me_engine_alloc(e, room, sizeof *group->params);
    group->with_grad = me_engine_alloc(e, room, sizeof *group->with_grad);
    if (!me_engine_is_ok(e)) {
        return NULL;
    }
    for (uint32_t i = 0; i < all->count; i++) {
        me_parameter *parameter = all->parameters[i];
        if (is_below(e, parameter->module, module) &&
            !is_taken(fsdp, parameter)) {
            group->params[group->n_params++].parameter = parameter;
        }
    }
    list_state(fsdp, group);
    fsdp->n_groups++;
    group->hooks = (me_module_hooks){.pre_forward = pre_forward,
                                     .post_forward = post_forward,
                                     .self = group};
    rename_class(e, module);
    me_fsdp_group_shard(group);
    return me_engine_is_ok(e) ? group : NULL;
}

void me_fsdp_set_backward_prefetch(me_fsdp_group *group, me_fsdp_group *other)
{
    group->has_backward_prefetch = true;
    group->backward_prefetch = other;
}

/** FSDPState._finalize_backward(), of the last pass. */
static void finalize(me_engine *e, me_fsdp_group *group)
{
    group->is_pending = false; // of a gather that nobody waited for
    me_clear(e, &group->all_reduced);
    me_clear(e, &group->gathered);
}

/** Groups whose inputs needed no gradient come only now. */
void me_fsdp_end_backward(me_fsdp *fsdp)
{
    me_engine *e = fsdp->spec.nn->e;
    const bool is_last = !fsdp->spec.is_stage || fsdp->is_reducing;
    const me_phase phase = me_phase_set(e, ME_PHASE_BACKWARD);
    for (uint32_t i = 0; i < fsdp->n_states; i++) {
        me_fsdp_group *group = fsdp->all_states[i];
        if (group->state != ME_FSDP_POST_BACKWARD) {
            me_fsdp_group_post_backward(group);
        }
        group->state = ME_FSDP_IDLE;
        group->is_in_backward = false;
        if (is_last) {
            finalize(e, group);
        }
    }
    if (is_last) {
        fsdp->n_uses = 0;
        me_clear(e, &fsdp->reduce_input);
        me_launch_stream_waits(e);
    }
    fsdp->is_callback_queued = false;
    me_phase_set(e, phase);
}

void me_fsdp_unshard(me_fsdp *fsdp)
{
    for (uint32_t i = 0; i < fsdp->n_states; i++) {
        me_fsdp_group_unshard(fsdp->all_states[i]);
    }
}

void me_fsdp_wait(me_fsdp *fsdp)
{
    for (uint32_t i = 0; i < fsdp->n_states; i++) {
        me_release(fsdp->spec.nn->e, me_fsdp_group_wait(fsdp->all_states[i]));
    }
}

void me_fsdp_reshard(me_fsdp *fsdp)
{
    for (uint32_t i = 0; i < fsdp->n_states; i++) {
        me_fsdp_group_reshard(fsdp->all_states[i]);
    }
}

/** PipelineStage._post_backward(). */
void me_fsdp_reduce(me_fsdp *fsdp)
{
    me_engine *e = fsdp->spec.nn->e;
    const me_phase phase = me_phase_set(e, ME_PHASE_BACKWARD);
    fsdp->is_reducing = true;
    for (uint32_t i = 0; i < fsdp->n_states; i++) {
        me_fsdp_group_post_backward(fsdp->all_states[i]);
    }
    me_fsdp_end_backward(fsdp);
    fsdp->is_reducing = false;
    me_phase_set(e, phase);
}

void me_fsdp_fini(me_fsdp *fsdp)
{
    if (fsdp == NULL) {
        return;
    }
    me_engine *e = fsdp->spec.nn->e;
    me_release(e, fsdp->last_gathered);
    me_release(e, fsdp->reduce_input);
    for (uint32_t i = 0; i < fsdp->n_groups; i++) {
        me_fsdp_group *group = &fsdp->groups[i];
        me_release(e, group->gathered);
        me_release(e, group->partial);
        me_release(e, group->all_reduced);
        for (uint32_t k = 0; k < group->n_params; k++) {
            me_release(e, group->params[k].sharded);
            me_release(e, group->params[k].unsharded);
            me_release(e, group->params[k].gathered);
            me_release(e, group->params[k].copied);
            me_release(e, group->params[k].accumulated);
        }
    }
    me_free(fsdp->post_forward_order);
}
