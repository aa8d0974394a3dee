/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensor/autograd.h"
#include "tensor/backward_run.h"
#include "tensor/engine_private.h"
#include "tensor/region.h"
#include "tensor/saved_hooks.h"
#include "tensor/tensor.h"

#include <string.h>

static const me_op add_kernel = {"add", .dispatcher = "add.Tensor"};
static const me_op add_in_place = {.dispatcher = "add_.Tensor"};

/** Does autograd add in place? A view made in the backward keeps its base, so
 *  that it is not the only one to hold its storage; a replayed graph holds its
 *  own. */
static bool is_sum_in_place(const me_engine *e, const me_node *next,
                            const me_tensor *first)
{
    return !e->has_dispatch_mode && !next->is_dtensor && first->refs == 1 &&
           first->storage != NULL && first->storage->refs == 1 &&
           first->storage->mempool != ME_MEMPOOL_REPLAY && !first->is_view &&
           me_is_dense(&first->shape, first->strides);
}

/** A new sum, held by another than a frame. Of DTensors one may be whole: this
 *  rank's part of it is cloned and added. */
static me_tensor *make_sum(me_engine *e, const me_tensor *a, const me_tensor *b)
{
    const me_frame frame = me_enter(e);
    const me_tensor *part = me_numel(b) < me_numel(a) ? b : a;
    if (me_numel(a) != me_numel(b)) {
        (void)me_empty_like(e, "clone", part);
    }
    me_tensor *sum = me_retain(me_empty_like(e, add_kernel.event, part));
    me_leave(e, frame, NULL);
    return sum;
}

/** InputBuffer::add() runs on the stream of the node that it adds for, and a new
 *  sum is that stream's. */
static me_tensor *make_sum_for(me_engine *e, const me_node *next,
                               const me_tensor *a, const me_tensor *b)
{
    const uint8_t stream = me_stream_set(e, next->stream);
    const uint8_t mempool = me_mempool_set(e, next->mempool);
    me_tensor *sum = make_sum(e, a, b);
    me_mempool_set(e, mempool);
    me_stream_set(e, stream);
    return sum;
}

/** Where the gradients of the node's outputs are collected. */
static me_tensor **awaited(me_engine *e, const me_node *node)
{
    return node->wide != NULL ? node->wide->gradients
                              : e->tape.slots[node->slot].gradients;
}

/** What Engine::execute() asks of gradients it begins with: validate_outputs(),
 *  then the stream of each; several roots go through a GraphRoot, of whose
 *  outputs it asks once more. */
static void tell_roots(me_engine *e, uint32_t count,
                       me_tensor *const *gradients)
{
    for (int pass = 0; pass < (count > 1 ? 3 : 2); pass++) {
        for (uint32_t i = 0; i < count; i++) {
            me_tell_device_queries(e, gradients[i], 1);
        }
    }
}

/** InputBuffer::add(): a gradient that another stream works on next; a parameter's
 *  AccumulateGrad is on the side stream if the data-parallel wrapper made it. */
static bool changes_stream(const me_node *node, const me_node *next)
{
    return next->variable == NULL ? next->stream != node->stream
                                  : next->stream == ME_STREAM_SIDE;
}

/** InputBuffer::add(): the first gradient of an input moves to @p sum, which leaves
 *  NULL; another is added, and stays where it is. */
static void add_gradient(me_engine *e, const me_node *next, me_tensor **sum,
                         me_tensor **gradient)
{
    me_tensor *first = *sum;
    me_tell_device_query(e, *gradient);
    if (first == NULL) {
        *sum = *gradient;
        *gradient = NULL;
        return;
    }
    me_storage_await(e, first->storage);
    me_storage_await(e, (*gradient)->storage);
    const bool in_place = is_sum_in_place(e, next, first);
    *sum =
        in_place ? me_retain(first) : make_sum_for(e, next, first, *gradient);
    me_launch_kernel(e, ME_KERNEL_ELEMENTWISE, me_numel(first),
                     3 * me_bytes(first));
    me_op_tell(e, in_place ? &add_in_place : &add_kernel,
               ME_TENSORS(first, *gradient), ME_TENSORS(*sum));
    me_release(e, first);
}

/** @param gradient  NULL: none */
static void hand_on(me_engine *e, const me_run *r, const me_node *node,
                    me_edge edge, me_tensor **gradient)
{
    me_node *next = edge.node;
    if (gradient != NULL && *gradient != NULL) {
        if (changes_stream(node, next)) {
            me_record_stream(*gradient);
        }
        add_gradient(e, next, &awaited(e, next)[edge.output_nr], gradient);
    }
    if (--e->tape.slots[next->slot].dependencies == 0) {
        me_run_push(e, r, next);
    }
}

static const me_op sum_kernel = {.dispatcher = "sum.dim_IntList"};
static const me_op view_kernel = {.dispatcher = "view.default",
                                  .is_view = true};
static const me_op cast_kernel = {"to", "_to_copy.default",
                                  .cost = ME_COST(CAST, 0, 1, 1)};

/** Sum to the input's shape and cast to its dtype, as the engine does. */
static me_tensor *validate(me_engine *e, me_edge edge, me_tensor *gradient)
{
    const me_shape *shape = me_output_shape(edge.node, edge.output_nr);
    const me_dtype dtype = me_output_dtype(edge.node, edge.output_nr);
    const me_frame frame = me_enter(e);
    me_tensor *right = gradient;
    // The parts of a DTensor may be cut otherwise than those of its gradient.
    const bool is_other_part =
        edge.node->is_dtensor && shape->ndim == right->shape.ndim;
    if (!me_shape_equal(&right->shape, shape) && !is_other_part) {
        right = e->tape.sum_to(e, right, shape);
        me_retain(right);
        me_op_tell(e, &sum_kernel, ME_TENSORS(gradient), ME_TENSORS(right));
        me_op_tell(e, &view_kernel, ME_TENSORS(right), ME_TENSORS(right));
        me_release(e, gradient);
    }
    if (right->dtype != (uint8_t)dtype && right != &e->none) {
        me_tensor *cast =
            me_retain(me_kernel_as(e, &cast_kernel, ME_TENSORS(right), dtype));
        me_release(e, right);
        right = cast;
    }
    if (right != &e->none) {
        me_tell_device_query(e, right); // validate_outputs()
    }
    me_leave(e, frame, NULL);
    return right;
}

/** Tensors of a region are the formula's alone; the last one goes first. */
static void clear_unpacked(me_engine *e, me_node *node)
{
    for (int i = ME_MAX_SAVED; i > 0; i--) {
        me_clear(e, &node->saved[i - 1]);
    }
}

static void run_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                         me_tensor **gx)
{
    const me_frame frame = me_enter(e);
    const uint8_t stream = me_stream_set(e, node->stream);
    const uint8_t mempool = me_mempool_set(e, node->mempool);
    for (uint32_t i = 0; !node->is_view && i < node->n_outputs; i++) {
        if (gy[i] != NULL) {
            me_storage_await(e, gy[i]->storage);
        }
    }
    node->op->backward(e, node, gy, gx);
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        me_retain(gx[i]);
    }
    me_leave(e, frame, NULL);
    if (node->region != NULL) {
        clear_unpacked(e, node);
    }
    if (node->saved_hooks != NULL) {
        me_saved_drop(e, node);
    }
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        if (me_needs(node, i) && gx[i] != NULL) {
            gx[i] = validate(e, node->edges[i], gx[i]);
        }
    }
    me_mempool_set(e, mempool);
    me_stream_set(e, stream);
}

/** What a node gets and makes; of a list it lies in the node itself. */
typedef struct exchange {
    me_tensor **gy;
    me_tensor **gx;
    me_tensor *few_gy[ME_MAX_OUTPUTS];
    me_tensor *few_gx[ME_MAX_INPUTS];
} exchange;

static void take_gradients(me_engine *e, const me_node *node, exchange *x)
{
    if (node->wide != NULL) {
        x->gy = node->wide->gradients;
        x->gx = node->wide->made;
        return;
    }
    memset(x->few_gx, 0, sizeof x->few_gx);
    memcpy(x->few_gy, e->tape.slots[node->slot].gradients, sizeof x->few_gy);
    memset(e->tape.slots[node->slot].gradients, 0, sizeof x->few_gy);
    x->gy = x->few_gy;
    x->gx = x->few_gx;
}

/** Which gradients of its inputs the node has to make. */
static void set_needed(const me_engine *e, const me_run *r, me_node *node)
{
    node->needed = 0;
    for (uint32_t i = 0; node->wide == NULL && i < node->n_inputs; i++) {
        const me_node *next = node->edges[i].node;
        if (next != NULL && (!r->is_partial || r->makes_all ||
                             e->tape.slots[next->slot].is_needed)) {
            node->needed |= (uint8_t)(1U << i);
        }
    }
}

/** What a node saved must be what it was (SavedVariable::unpack()). Holders of a
 *  region are not asked. */
static void check_versions(me_engine *e, const me_node *node)
{
    for (int i = 0; node->region == NULL && i < ME_MAX_SAVED; i++) {
        const me_tensor *saved = node->saved[i];
        if (saved != NULL && saved->storage != NULL &&
            saved->storage->version != saved->version && me_engine_is_ok(e)) {
            me_engine_fail(e, ME_ERR_CONFIG,
                           "%s: a tensor that its gradient needs has been "
                           "changed in place since it was saved, which "
                           "PyTorch's backward() refuses; the operation that "
                           "did so must make a new one (inplace = false)",
                           node->op->node);
            me_engine_locate(e);
        }
    }
}

/** Engine::evaluate_function() waits for the streams of its gradients. */
static void tell_gradients(me_engine *e, const me_node *node)
{
    if (!e->is_asked_devices) {
        return;
    }
    me_tensor *const *gradients = awaited(e, node);
    for (uint32_t i = 0; i < node->n_outputs; i++) {
        me_tell_device_queries(e, gradients[i], 1);
    }
}

/** Does it run, and so wait for its gradients? */
static bool is_awaited(const me_engine *e, const me_run *r, const me_node *next)
{
    return !r->is_partial || e->tape.slots[next->slot].is_needed;
}

/** Those that somebody waits for. What nobody asked for lives to the end of
 *  Engine::evaluate_function(), as everything that a function returned. */
static void hand_on_all(me_engine *e, const me_run *r, const me_node *node,
                        me_tensor **gx)
{
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        if (node->edges[i].node != NULL) {
            const bool is_taken =
                me_needs(node, i) && is_awaited(e, r, node->edges[i].node);
            hand_on(e, r, node, node->edges[i], is_taken ? &gx[i] : NULL);
        }
    }
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        me_clear(e, &gx[i]);
    }
}

static void run_node(me_engine *e, const me_run *r, me_node *node)
{
    exchange x;
    me_tensor *holders[ME_MAX_SAVED] = {NULL};
    const uint8_t pass = me_pass_set(e, node->pass);
    tell_gradients(e, node);
    take_gradients(e, node, &x);
    me_module_switch(e, node->module);
    if (node->hooks != NULL) {
        me_node_hooks_run(node);
        me_module_switch(e, node->module);
    }
    if (node->prehooks != NULL) {
        me_prehooks_run(e, node, x.gy);
        me_module_switch(e, node->module);
    }
    check_versions(e, node);
    if (node->region != NULL) {
        me_region_unpack(e, node, r->task, holders);
    }
    if (node->saved_hooks != NULL) {
        me_saved_unpack(e, node);
    }
    set_needed(e, r, node);
    run_backward(e, node, x.gy, x.gx);
    if (node->region != NULL) {
        memcpy(node->saved, holders, sizeof holders);
    }
    for (uint32_t i = 0; i < node->n_outputs; i++) {
        me_clear(e, &x.gy[i]);
    }
    if (!r->retains_graph) {
        me_node_release_saved(e, node);
    }
    hand_on_all(e, r, node, x.gx);
    me_pass_set(e, pass);
}

/** A node of a partial run: hands its gradient out, runs, or neither. */
static void run_asked(me_engine *e, const me_run *r, me_node *node)
{
    me_task_slot *slot = &e->tape.slots[node->slot];
    if (slot->taken != NULL) {
        tell_gradients(e, node);
        me_node_hooks_run(node);
        *slot->taken = slot->gradients[0];
        slot->gradients[0] = NULL;
    } else if (slot->is_needed) {
        run_node(e, r, node);
    } else {
        for (uint32_t i = 0; i < node->n_inputs; i++) {
            if (node->edges[i].node != NULL) {
                hand_on(e, r, node, node->edges[i], NULL);
            }
        }
    }
}

/** @return what held before */
static me_context enter_backward(me_engine *e)
{
    const me_context before = e->context;
    me_phase_set(e, ME_PHASE_BACKWARD);
    e->context.category = ME_CATEGORY_TEMPORARY;
    e->context.thread = ME_THREAD_AUTOGRAD;
    e->context.is_recording = false;
    return before;
}

/** The root is a leaf: its gradient is a copy, for the caller has the other. */
static void backward_of_leaf(me_engine *e, me_tensor *leaf, me_tensor *gradient)
{
    const me_context before = enter_backward(e);
    me_retain(gradient);
    me_accumulate_grad(e, leaf, gradient);
    me_release(e, gradient);
    me_context_restore(e, before);
}

/** Nodes run as they are ready. @param before  what held outside of the run */
static void run_all(me_engine *e, const me_run *r, const me_context *before)
{
    while (e->tape.n_heap > r->first_ready && me_engine_is_ok(e)) {
        run_node(e, r, me_run_pop(e, r));
    }
    if (before->thread != ME_THREAD_AUTOGRAD) { // not of one inside another
        me_tell_end_backward(e);
        if (e->tape.on_end != NULL) {
            e->tape.on_end(e->tape.on_end_self, e);
            e->tape.on_end = NULL;
        }
    }
}

void me_backward(me_engine *e, me_tensor *root, me_tensor *gradient)
{
    if (!me_engine_is_ok(e)) {
        return;
    }
    if (root->grad_fn == NULL) {
        if (root->requires_grad) {
            backward_of_leaf(e, root, gradient);
        }
        return;
    }
    const me_run r = me_run_begin(e);
    tell_roots(e, 1, &gradient);
    me_tell_device_query(e, gradient); // InputBuffer::add()
    const me_module_id module = e->module;
    const me_context before = enter_backward(e);
    me_run_count(e, &r, root->grad_fn);
    if (me_engine_is_ok(e)) {
        awaited(e, root->grad_fn)[root->output_nr] = me_retain(gradient);
        me_run_push(e, &r, root->grad_fn);
    }
    run_all(e, &r, &before);
    me_run_finish(e, &r);
    me_module_switch(e, module);
    me_context_restore(e, before);
}

/** Roots that others lead to wait for those (GraphRoot comes first). */
static void begin_at_roots(me_engine *e, const me_run *r,
                           const me_grad_request *request)
{
    for (uint32_t i = 0; i < request->n_roots; i++) {
        const me_edge *root = &request->roots[i];
        me_tensor *gradient = me_retain(request->gradients[i]);
        add_gradient(e, root->node, &awaited(e, root->node)[root->output_nr],
                     &gradient);
        me_clear(e, &gradient);
    }
    for (uint32_t i = 0; i < request->n_roots; i++) {
        me_node *node = request->roots[i].node;
        bool is_first = e->tape.slots[node->slot].dependencies == 0;
        for (uint32_t k = 0; k < i; k++) {
            is_first = is_first && request->roots[k].node != node;
        }
        if (is_first) {
            me_run_push(e, r, node);
        }
    }
}

void me_backward_all(me_engine *e, uint32_t n_roots, const me_edge *roots,
                     me_tensor *const *gradients)
{
    if (!me_engine_is_ok(e) || n_roots == 0) {
        return;
    }
    const me_run r = me_run_begin(e);
    tell_roots(e, n_roots, gradients);
    const me_module_id module = e->module;
    const me_context before = enter_backward(e);
    for (uint32_t i = 0; i < n_roots; i++) {
        me_run_count(e, &r, roots[i].node);
    }
    if (me_engine_is_ok(e)) {
        begin_at_roots(e, &r,
                       &(me_grad_request){.n_roots = n_roots,
                                          .roots = roots,
                                          .gradients = gradients});
    }
    run_all(e, &r, &before);
    me_run_finish(e, &r);
    me_module_switch(e, module);
    me_context_restore(e, before);
}

void me_autograd_grad(me_engine *e, const me_grad_request *request)
{
    for (uint32_t i = 0; i < request->n_inputs; i++) {
        request->gradients_out[i] = NULL;
    }
    if (!me_engine_is_ok(e)) {
        return;
    }
    me_run r = me_run_begin(e);
    r.retains_graph = request->retain_graph;
    r.is_partial = true;
    r.makes_all = request->makes_all;
    tell_roots(e, request->n_roots, request->gradients);
    const me_module_id module = e->module;
    const me_context before = enter_backward(e);
    for (uint32_t i = 0; i < request->n_roots; i++) {
        me_run_count(e, &r, request->roots[i].node);
    }
    if (me_engine_is_ok(e)) {
        me_run_mark(e, &r, request->n_inputs, request->inputs);
        for (uint32_t i = 0; i < request->n_inputs; i++) {
            const me_node *input = request->inputs[i];
            if (input != NULL && input->task == r.task) {
                e->tape.slots[input->slot].taken = &request->gradients_out[i];
            }
        }
        begin_at_roots(e, &r, request);
    }
    while (e->tape.n_heap > r.first_ready && me_engine_is_ok(e)) {
        run_asked(e, &r, me_run_pop(e, &r));
    }
    me_run_finish(e, &r);
    me_module_switch(e, module);
    me_context_restore(e, before);
}
