/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/torch/fsdp.h"

/** _pre_backward(): parameters, and the next gather ahead of its use. */
static void pre_backward(void *self, me_engine *e, me_tensor *const *gy)
{
    (void)gy;
    me_fsdp_group *group = self;
    me_fsdp *fsdp = group->fsdp;
    me_fsdp_group_unshard(group);
    me_release(e, me_fsdp_group_wait(group));
    for (uint32_t i = 1; i < fsdp->n_post_forward; i++) {
        if (fsdp->post_forward_order[i] == group) {
            me_fsdp_group_unshard(fsdp->post_forward_order[i - 1]);
        }
    }
}

static void post_backward(me_fsdp_group *group)
{
    const me_loop *l = group->fsdp->loop;
    group->has_run_backward = true;
    me_fsdp_group_accumulate(group);
    if (l->config->fully_shard.syncs_last && !l->is_last_pass) {
        me_fsdp_group_reshard(group);
        me_fsdp_group_keep_gradients(group);
    } else {
        me_fsdp_group_place_gradients(group);
        me_fsdp_group_reshard(group);
        me_fsdp_group_reduce(group);
    }
}

static void input_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                           me_tensor **gx)
{
    (void)e;
    gx[0] = gy[0];
    /* The group outlives the tape, which only borrows it. */
    post_backward(*(me_fsdp_group *const *)node->data.context);
}

static const me_op input_op = {"RegisterPostBackwardFunctionBackward",
                               input_backward};

/** RegisterPostBackwardFunction: an identity whose backward comes once the
 *  module's is done. */
static me_tensor *register_post_backward(me_fsdp_group *group, me_tensor *x)
{
    me_engine *e = group->fsdp->loop->e;
    me_node *node = me_record1(e, &input_op, x);
    if (node == NULL) {
        return x;
    }
    node->data.context = &group->hooks.self;
    return me_output(e, node, me_alias(e, x, x->shape, x->strides));
}

static me_tensor *pre_forward(void *self, me_layer *layer, me_tensor *x)
{
    (void)layer;
    me_fsdp_group *group = self;
    me_fsdp *fsdp = group->fsdp;
    me_engine *e = fsdp->loop->e;
    group->has_run_backward = false;
    me_fsdp_group_unshard(group);
    me_tensor *gathered = me_fsdp_group_wait(group);
    if (gathered != NULL) { /* kept until the next one is copied out */
        me_tensor *before = fsdp->last_gathered;
        fsdp->last_gathered = gathered;
        me_release(e, before);
    }
    return register_post_backward(group, x);
}

static bool is_root(const me_fsdp_group *group)
{
    return group == &group->fsdp->groups[group->fsdp->n_groups - 1];
}

static void post_forward(void *self, me_layer *layer, me_tensor *y)
{
    (void)layer;
    me_fsdp_group *group = self;
    me_fsdp *fsdp = group->fsdp;
    if (fsdp->loop->config->fully_shard.reshard_after_forward) {
        me_fsdp_group_reshard(group);
    }
    if (is_root(group)) {
        me_clear(fsdp->loop->e, &fsdp->last_gathered);
    }
    fsdp->post_forward_order[fsdp->n_post_forward++] = group;
    if (y->grad_fn != NULL) {
        y->grad_fn->prehook = &group->pre_backward;
    }
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

/** Is @p module the layer's, or one below it? */
static bool is_below(const me_loop *l, me_module_id module,
                     const me_layer *layer)
{
    const me_module_tree *tree = me_engine_modules(l->e);
    while (module != layer->module && module != ME_NO_MODULE) {
        module = tree->modules[module].parent;
    }
    return module == layer->module;
}

/** fully_shard(layer): what no other group has, in the order of parameters. */
static void add_group(me_fsdp *fsdp, me_layer *layer)
{
    me_loop *l = fsdp->loop;
    me_fsdp_group *group = &fsdp->groups[fsdp->n_groups];
    *group = (me_fsdp_group){.fsdp = fsdp, .layer = layer};
    group->params = me_engine_alloc(l->e, (size_t)l->parameters.count + 1,
                                    sizeof *group->params);
    if (group->params == NULL) {
        return;
    }
    for (uint32_t i = 0; i < l->parameters.count; i++) {
        me_parameter *parameter = l->parameters.parameters[i];
        if (is_below(l, parameter->module, layer) &&
            !is_taken(fsdp, parameter)) {
            group->params[group->n_params++].parameter = parameter;
        }
    }
    fsdp->n_groups++;
    group->pre_backward = (me_prehook){.run = pre_backward, .self = group};
    group->hooks = (me_layer_hooks){.pre_forward = pre_forward,
                                    .post_forward = post_forward,
                                    .self = group};
    layer->hooks = &group->hooks;
    me_fsdp_group_shard(group);
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the tree
static uint32_t count_marked(const me_layer *layer)
{
    uint32_t count = layer->spec->is_sharded ? 1 : 0;
    for (uint32_t i = 0; i < layer->n_children; i++) {
        count += count_marked(&layer->children[i]);
    }
    return count;
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the tree
static void add_marked(me_fsdp *fsdp, me_layer *layer)
{
    for (uint32_t i = 0; i < layer->n_children; i++) {
        add_marked(fsdp, &layer->children[i]);
    }
    if (layer->spec->is_sharded && layer != fsdp->loop->model) {
        add_group(fsdp, layer);
    }
}

static void *wrap(me_loop *l)
{
    me_fsdp *fsdp = me_engine_alloc(l->e, 1, sizeof *fsdp);
    if (fsdp == NULL) {
        return NULL;
    }
    const size_t n = (size_t)count_marked(l->model) + 1;
    fsdp->loop = l;
    fsdp->groups = me_engine_alloc(l->e, n, sizeof *fsdp->groups);
    fsdp->post_forward_order =
        me_engine_alloc(l->e, n, sizeof(me_fsdp_group *));
    if (fsdp->groups != NULL && fsdp->post_forward_order != NULL) {
        add_marked(fsdp, l->model);
        add_group(fsdp, l->model);
    }
    return fsdp;
}

static void begin_forward(void *self)
{
    me_fsdp *fsdp = self;
    fsdp->n_post_forward = 0;
}

/** _root_post_backward_final_callback(). */
static void end_backward(void *self)
{
    me_fsdp *fsdp = self;
    me_engine *e = fsdp->loop->e;
    const me_phase phase = me_phase_set(e, ME_PHASE_BACKWARD);
    for (uint32_t i = fsdp->n_groups; i > 0; i--) {
        if (!fsdp->groups[i - 1].has_run_backward) {
            post_backward(&fsdp->groups[i - 1]);
        }
        me_clear(e, &fsdp->groups[i - 1].all_reduced);
    }
    me_clear(e, &fsdp->reduce_input);
    me_phase_set(e, phase);
}

static void unwrap(void *self)
{
    me_fsdp *fsdp = self;
    if (fsdp == NULL) {
        return;
    }
    me_engine *e = fsdp->loop->e;
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
            me_release(e, group->params[k].accumulated);
        }
    }
}

const me_wrapper me_fsdp_wrapper_row = {
    .wrap = wrap,
    .pre_forward = begin_forward,
    .end_backward = end_backward,
    .unwrap = unwrap,
};
