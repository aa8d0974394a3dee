/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensor/backward_groups.h"

#include "base/alloc.h"
#include "tensor/backward_run.h"
#include "tensor/engine_private.h"
#include "tensor/hooks.h"
#include "tensor/launch.h"
#include "tensor/tensor.h"

/** The node whose incoming gradient is the tensor's (_get_grad_fn_or_grad_acc);
 *  held, NULL if it has none. */
static me_node *gradient_node(me_engine *e, me_tensor *x)
{
    if (x->grad_fn != NULL) {
        x->grad_fn->refs++;
        return x->grad_fn;
    }
    return me_leaf_accumulator(e, x);
}

/** What finding groups works on. */
typedef struct search {
    me_engine *e;
    const me_run *run;
    me_node *const *accumulators; /**< of the weights */
    uint32_t n_weights;
    me_node **parents; /**< of each weight: where its way parts, or NULL */
} search;

static bool is_on_the_way(const search *s, const me_node *node)
{
    return s->e->tape.slots[node->slot].is_needed;
}

/** The weights that are reached from @p node, off the way to the input, are
 *  those of @p parent. A chain of views is all that lies between. */
static void claim(search *s, me_node *parent, const me_node *node)
{
    for (uint32_t i = 0; i < s->n_weights; i++) {
        if (s->accumulators[i] == node && s->parents[i] == NULL) {
            s->parents[i] = parent;
        }
    }
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        const me_node *next = node->edges[i].node;
        if (next != NULL && !is_on_the_way(s, next)) {
            claim(s, parent, next);
        }
    }
}

static void find_parents(search *s)
{
    const me_tape *tape = &s->e->tape;
    for (uint32_t i = s->run->first_slot; i < tape->n_slots; i++) {
        me_node *node = tape->slots[i].node;
        for (uint32_t k = 0; k < node->n_inputs; k++) {
            const me_node *next = node->edges[k].node;
            if (is_on_the_way(s, node) && next != NULL &&
                !is_on_the_way(s, next)) {
                claim(s, node, next);
            }
        }
    }
}

static void keep_gradient(void *self, me_engine *e, me_tensor *const *gy)
{
    (void)e;
    me_intermediate *intermediate = self;
    intermediate->gradient = me_retain(gy[0]);
}

/** The group of a node: known, or the next one. NULL without memory. */
static me_parameter_group *group_of(me_parameter_groups *groups, me_node *node,
                                    uint32_t n_weights)
{
    for (uint32_t i = 0; i < groups->count; i++) {
        if (groups->groups[i].intermediates[0].node == node) {
            return &groups->groups[i];
        }
    }
    me_parameter_group *group = &groups->groups[groups->count];
    group->parameters =
        me_alloc(n_weights, sizeof(uint32_t), "parameter_groups");
    group->intermediates =
        me_alloc(1, sizeof *group->intermediates, "parameter_groups");
    groups->count++;
    if (group->parameters == NULL || group->intermediates == NULL) {
        return NULL;
    }
    node->refs++;
    group->n_intermediates = 1;
    group->intermediates[0] = (me_intermediate){.node = node};
    group->intermediates[0].prehook =
        (me_prehook){.run = keep_gradient, .self = &group->intermediates[0]};
    me_prehook_add(node, &group->intermediates[0].prehook);
    return group;
}

/** get_param_groups() from where each weight's way parts. */
static void make_groups(search *s, me_parameter_groups *groups)
{
    groups->groups = me_alloc(s->n_weights, sizeof *groups->groups, //
                              "parameter_groups");
    for (uint32_t i = 0; groups->groups != NULL && i < s->n_weights; i++) {
        if (s->parents[i] == NULL) {
            continue; // no gradient comes to it
        }
        me_parameter_group *group =
            group_of(groups, s->parents[i], s->n_weights);
        if (group == NULL) {
            break;
        }
        group->parameters[group->n_parameters++] = i;
    }
    if (groups->groups == NULL ||
        (groups->count > 0 &&
         groups->groups[groups->count - 1].n_parameters == 0)) {
        me_engine_fail(s->e, ME_ERR_NOMEM, "no host memory for a backward");
    }
}

static void find_groups(me_engine *e, me_node *root, me_node *input,
                        uint32_t n_weights, me_node *const *accumulators,
                        me_parameter_groups *groups)
{
    const me_run run = me_run_begin(e);
    search s = {
        .e = e,
        .run = &run,
        .accumulators = accumulators,
        .n_weights = n_weights,
        .parents = me_alloc(n_weights, sizeof(me_node *), "parameter_groups"),
    };
    if (s.parents == NULL) {
        me_engine_fail(e, ME_ERR_NOMEM, "no host memory for a backward");
        return;
    }
    me_run_count(e, &run, root);
    if (me_engine_is_ok(e)) {
        me_run_mark(e, &run, 1, &input);
        find_parents(&s);
        make_groups(&s, groups);
    }
    me_run_finish(e, &run);
    me_free(s.parents);
}

/** The AccumulateGrad of each weight, held; NULL without memory. */
static me_node **hold_accumulators(me_engine *e, uint32_t n_weights,
                                   me_tensor *const *weights)
{
    me_node **nodes =
        me_alloc(n_weights, sizeof(me_node *), "parameter_groups");
    if (nodes == NULL) {
        me_engine_fail(e, ME_ERR_NOMEM, "no host memory for a backward");
        return NULL;
    }
    for (uint32_t i = 0; i < n_weights; i++) {
        nodes[i] = me_leaf_accumulator(e, weights[i]);
    }
    return nodes;
}

static void release_nodes(me_engine *e, uint32_t count, me_node **nodes)
{
    for (uint32_t i = 0; nodes != NULL && i < count; i++) {
        me_node_release(e, nodes[i]);
    }
    me_free(nodes);
}

/** `grad`: the gradient becomes it, or is added to it in place. */
static void collect(me_engine *e, me_tensor *leaf, me_tensor *gradient)
{
    if (leaf->grad == NULL) {
        leaf->grad = me_retain(gradient);
    }
    if (leaf->parameter != NULL && leaf->grad != NULL) {
        me_categorize(e, leaf->grad, ME_CATEGORY_GRADIENT);
    }
}

/** Hooks are for the first half alone. */
static void remove_prehooks(const me_parameter_groups *groups)
{
    for (uint32_t i = 0; i < groups->count; i++) {
        for (uint32_t k = 0; k < groups->groups[i].n_intermediates; k++) {
            me_prehook_remove(groups->groups[i].intermediates[k].node,
                              &groups->groups[i].intermediates[k].prehook);
        }
    }
}

static void run_after(const me_stage_weights *weights)
{
    if (weights->after.run != NULL) {
        weights->after.run(weights->after.self);
    }
}

void me_backward_input(me_engine *e, const me_backward_way *way,
                       const me_stage_weights *weights,
                       me_parameter_groups *groups_out)
{
    me_tensor *output = way->output;
    me_tensor *input = way->input;
    *groups_out = (me_parameter_groups){.count = 0};
    if (!me_engine_is_ok(e) || output->grad_fn == NULL) {
        return;
    }
    me_node *target = gradient_node(e, input);
    me_node **accumulators =
        hold_accumulators(e, weights->count, weights->tensors);
    if (me_engine_is_ok(e) && accumulators != NULL) {
        find_groups(e, output->grad_fn, target, weights->count, accumulators,
                    groups_out);
    }
    me_tensor *of_input = NULL;
    const me_edge root = {output->grad_fn, output->output_nr};
    me_autograd_grad(e, &(me_grad_request){
                            .n_roots = 1,
                            .roots = &root,
                            .gradients = &way->gradient,
                            .n_inputs = 1,
                            .inputs = &target,
                            .gradients_out = &of_input,
                            .retain_graph = true,
                        });
    run_after(weights);
    collect(e, input, of_input);
    me_release(e, of_input);
    me_detach_in_place(e, output);
    remove_prehooks(groups_out);
    release_nodes(e, weights->count, accumulators);
    me_node_release(e, target);
}

static void group_fini(me_engine *e, me_parameter_group *group)
{
    for (uint32_t i = 0; i < group->n_intermediates; i++) {
        me_clear(e, &group->intermediates[i].gradient);
        me_node_release(e, group->intermediates[i].node);
    }
    me_free(group->parameters);
    me_free(group->intermediates);
    *group = (me_parameter_group){.n_parameters = 0};
}

void me_parameter_groups_fini(me_engine *e, me_parameter_groups *groups)
{
    for (uint32_t i = 0; i < groups->count; i++) {
        group_fini(e, &groups->groups[i]);
    }
    me_free(groups->groups);
    *groups = (me_parameter_groups){.count = 0};
}

/** Variables of stage_backward_weight() that outlive a round of its loop. */
typedef struct locals {
    me_tensor *captured;    /**< grads_tuple */
    me_node *intermediate;  /**< and valid_edges */
    me_tensor *summed_grad; /**< and valid_grad_outputs */
    me_tensor **dweights;   /**< of the group before; owned, with the list */
    uint32_t n_dweights;
} locals;

static void release_list(me_engine *e, me_tensor **list, uint32_t count)
{
    for (uint32_t i = 0; list != NULL && i < count; i++) {
        me_release(e, list[i]);
    }
    me_free(list);
}

/** `sum()` begins at 0, which makes a tensor even of one gradient. The node of
 *  the group before may have been the last name of a part of the graph. */
static void bind_sum(me_engine *e, locals *l, me_intermediate *intermediate)
{
    me_node *before = l->intermediate;
    l->intermediate = intermediate->node; // its reference moves here
    intermediate->node = NULL;
    me_node_release(e, before);
    me_assign(e, &l->captured, intermediate->gradient);
    me_clear(e, &intermediate->gradient);
    const me_frame frame = me_enter(e);
    me_tensor *sum = me_empty_like(e, "add", l->captured);
    me_launch_kernel(e, ME_KERNEL_ELEMENTWISE, me_numel(sum),
                     2 * me_bytes(sum));
    me_assign(e, &l->summed_grad, sum);
    me_leave(e, frame, NULL);
}

/** The gradients of a group's weights, and where they go. */
static void run_group(me_engine *e, locals *l, const me_stage_weights *weights,
                      me_parameter_group *group)
{
    me_launch_host(e, ME_HOST_WEIGHT_GROUP);
    bind_sum(e, l, &group->intermediates[0]);
    const uint32_t n = group->n_parameters;
    me_node **inputs = me_alloc(n, sizeof(me_node *), "parameter_groups");
    me_tensor **dweights = me_alloc(n, sizeof(me_tensor *), "dweights");
    if (inputs == NULL || dweights == NULL) {
        me_engine_fail(e, ME_ERR_NOMEM, "no host memory for a backward");
        me_free(dweights);
        me_free(inputs);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        inputs[i] =
            me_leaf_accumulator(e, weights->tensors[group->parameters[i]]);
    }
    const me_edge root = {l->intermediate, 0};
    me_autograd_grad(e, &(me_grad_request){
                            .n_roots = 1,
                            .roots = &root,
                            .gradients = &l->summed_grad,
                            .n_inputs = n,
                            .inputs = inputs,
                            .gradients_out = dweights,
                        });
    run_after(weights);
    release_list(e, l->dweights, l->n_dweights);
    l->dweights = dweights;
    l->n_dweights = n;
    for (uint32_t i = 0; i < n; i++) {
        collect(e, weights->tensors[group->parameters[i]], dweights[i]);
    }
    release_nodes(e, n, inputs);
}

/** weight_grads: what the weights had before, which is returned. NULL without
 *  memory. */
static me_tensor **hold_gradients(me_engine *e, const me_stage_weights *weights)
{
    me_tensor **held =
        me_alloc(weights->count, sizeof(me_tensor *), "weight_grads");
    if (held == NULL) {
        me_engine_fail(e, ME_ERR_NOMEM, "no host memory for a backward");
        return NULL;
    }
    for (uint32_t i = 0; i < weights->count; i++) {
        held[i] = me_retain(weights->tensors[i]->grad);
    }
    return held;
}

void me_backward_weight(me_engine *e, const me_stage_weights *weights,
                        me_parameter_groups *groups)
{
    locals l = {.captured = NULL};
    me_tensor **before = hold_gradients(e, weights);
    for (uint32_t i = 0; i < groups->count && me_engine_is_ok(e); i++) {
        run_group(e, &l, weights, &groups->groups[i]);
        if (me_engine_is_ok(e)) {
            group_fini(e, &groups->groups[i]);
        }
    }
    me_node_release(e, l.intermediate);
    me_release(e, l.captured);
    me_release(e, l.summed_grad);
    release_list(e, l.dweights, l.n_dweights);
    release_list(e, before, weights->count);
    me_parameter_groups_fini(e, groups);
}
