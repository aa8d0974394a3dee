/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "base/assert.h"
#include "tensor/autograd.h"
#include "tensor/engine_private.h"
#include "tensor/tensor.h"

#include <string.h>

/** One run of the tape. */
typedef struct run {
    uint64_t task;
    uint32_t first_slot;
    uint32_t first_ready; /**< where this run's heap begins */
} run;

static bool reserve(me_engine *e, void **items, uint32_t count,
                    uint32_t *capacity, size_t size)
{
    if (count < *capacity) {
        return true;
    }
    const uint32_t wanted = *capacity == 0 ? 128 : *capacity * 2;
    void *larger = me_realloc(*items, wanted, size, "tape");
    if (larger == NULL) {
        me_engine_fail(e, ME_ERR_NOMEM, "no host memory for the tape");
        return false;
    }
    *items = larger;
    *capacity = wanted;
    return true;
}

static bool runs_before(const me_node *a, const me_node *b)
{
    return a->sequence < b->sequence;
}

/* The order in which equal numbers leave the ready queue is that of the C++
 * library's heap (std::push_heap, std::pop_heap of libstdc++), so these two
 * move elements as those do. */
static void sift_up(me_node **heap, uint32_t hole, uint32_t top, me_node *node)
{
    while (hole > top && runs_before(heap[(hole - 1) / 2], node)) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = node;
}

static void sift_down(me_node **heap, uint32_t length, me_node *node)
{
    uint32_t hole = 0;
    uint32_t child = 0;
    while (length > 0 && child < (length - 1) / 2) {
        child = 2 * (child + 1);
        if (runs_before(heap[child], heap[child - 1])) {
            child--;
        }
        heap[hole] = heap[child];
        hole = child;
    }
    if (length % 2 == 0 && length >= 2 && child == (length - 2) / 2) {
        child = 2 * (child + 1);
        heap[hole] = heap[child - 1];
        hole = child - 1;
    }
    sift_up(heap, hole, 0, node);
}

static void push_ready(me_engine *e, const run *r, me_node *node)
{
    me_tape *tape = &e->tape;
    void *items = tape->heap;
    if (!reserve(e, &items, tape->n_heap, &tape->heap_capacity,
                 sizeof *tape->heap)) {
        return;
    }
    tape->heap = items;
    tape->n_heap++;
    sift_up(tape->heap + r->first_ready, tape->n_heap - 1 - r->first_ready, 0,
            node);
}

static me_node *pop_ready(me_engine *e, const run *r)
{
    me_tape *tape = &e->tape;
    me_node **heap = tape->heap + r->first_ready;
    me_node *node = heap[0];
    const uint32_t last = tape->n_heap - 1 - r->first_ready;
    if (last > 0) {
        sift_down(heap, last, heap[last]);
    }
    tape->n_heap--;
    return node;
}

/** Find or make the node's slot in this run. @return was it new? */
static bool visit(me_engine *e, const run *r, me_node *node)
{
    me_tape *tape = &e->tape;
    if (node->task == r->task) {
        return false;
    }
    void *items = tape->slots;
    if (!reserve(e, &items, tape->n_slots, &tape->slots_capacity,
                 sizeof *tape->slots)) {
        return false;
    }
    tape->slots = items;
    tape->slots[tape->n_slots] = (me_task_slot){
        .node = node,
        .outer_task = node->task,
        .outer_slot = node->slot,
    };
    node->task = r->task;
    node->slot = tape->n_slots++;
    node->refs++;
    return true;
}

static void push_search(me_engine *e, me_node *node)
{
    me_tape *tape = &e->tape;
    void *items = tape->stack;
    if (reserve(e, &items, tape->n_stack, &tape->stack_capacity,
                sizeof *tape->stack)) {
        tape->stack = items;
        tape->stack[tape->n_stack++] = node;
    }
}

/** Count for every node that can be reached how many gradients it awaits. */
static void count_dependencies(me_engine *e, const run *r, me_node *root)
{
    me_tape *tape = &e->tape;
    const uint32_t base = tape->n_stack;
    visit(e, r, root);
    push_search(e, root);
    while (tape->n_stack > base && me_engine_is_ok(e)) {
        me_node *node = tape->stack[--tape->n_stack];
        for (uint32_t i = 0; i < node->n_inputs; i++) {
            me_node *next = node->edges[i].node;
            if (next == NULL) {
                continue;
            }
            if (visit(e, r, next)) {
                push_search(e, next);
            }
            tape->slots[next->slot].dependencies++;
        }
    }
    tape->n_stack = base;
}

/** A second gradient for the same input: in place where PyTorch may, which it
 *  may not into a view, since that holds its base. */
static void add_gradient(me_engine *e, me_tensor **sum, me_tensor *gradient)
{
    me_tensor *first = *sum;
    if (first == NULL) {
        *sum = me_retain(gradient);
        return;
    }
    /* A view made in the backward keeps its base, so that it is not the only
     * one to hold its storage. */
    const bool in_place = first->refs == 1 && first->storage != NULL &&
                          first->storage->refs == 1 && !first->is_view &&
                          me_is_dense(&first->shape, first->strides);
    me_work_done(e, me_numel(first), 3 * me_bytes(first));
    if (!in_place) {
        const me_frame frame = me_enter(e);
        *sum = me_retain(me_empty_like(e, "add", first));
        me_leave(e, frame, NULL);
        me_release(e, first);
    }
}

/** Where the gradients of the node's outputs are collected. */
static me_tensor **awaited(me_engine *e, const me_node *node)
{
    return node->wide != NULL ? node->wide->gradients
                              : e->tape.slots[node->slot].gradients;
}

static void hand_on(me_engine *e, const run *r, me_edge edge,
                    me_tensor *gradient)
{
    me_node *next = edge.node;
    if (gradient != NULL && next->variable != NULL && next->data.flag) {
        me_record_stream(gradient);
    }
    if (gradient != NULL) {
        me_tensor *sum = awaited(e, next)[edge.output_nr];
        add_gradient(e, &sum, gradient);
        awaited(e, next)[edge.output_nr] = sum;
        me_release(e, gradient);
    }
    if (--e->tape.slots[next->slot].dependencies == 0) {
        push_ready(e, r, next);
    }
}

/** Sum to the input's shape and cast to its dtype, as the engine does. */
static me_tensor *validate(me_engine *e, me_edge edge, me_tensor *gradient)
{
    const me_shape *shape = me_output_shape(edge.node, edge.output_nr);
    const me_dtype dtype = me_output_dtype(edge.node, edge.output_nr);
    const me_frame frame = me_enter(e);
    me_tensor *right = gradient;
    if (!me_shape_equal(&right->shape, shape)) {
        right = e->tape.sum_to(e, right, shape);
        me_retain(right);
        me_release(e, gradient);
    }
    if (right->dtype != (uint8_t)dtype && right != &e->none) {
        me_tensor *cast = me_retain(me_empty_like_as(e, "to", right, dtype));
        me_work_done(e, 0, me_bytes(right) + me_bytes(cast));
        me_release(e, right);
        right = cast;
    }
    me_leave(e, frame, NULL);
    return right;
}

static void run_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                         me_tensor **gx)
{
    const me_frame frame = me_enter(e);
    node->op->backward(e, node, gy, gx);
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        me_retain(gx[i]);
    }
    me_leave(e, frame, NULL);
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        if (node->edges[i].node == NULL) {
            me_clear(e, &gx[i]);
        } else if (gx[i] != NULL) {
            gx[i] = validate(e, node->edges[i], gx[i]);
        }
    }
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

static void run_node(me_engine *e, const run *r, me_node *node)
{
    exchange x;
    take_gradients(e, node, &x);
    me_module_switch(e, node->module);
    if (node->hook != NULL) {
        node->hook(e, node->hook_self);
        me_module_switch(e, node->module);
    }
    run_backward(e, node, x.gy, x.gx);
    for (uint32_t i = 0; i < node->n_outputs; i++) {
        me_clear(e, &x.gy[i]);
    }
    for (int i = 0; i < ME_MAX_SAVED; i++) {
        if (node->saved[i] != NULL) {
            me_clear(e, &node->saved[i]);
        }
    }
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        if (node->edges[i].node != NULL) {
            me_tensor *gradient = x.gx[i];
            x.gx[i] = NULL;
            hand_on(e, r, node->edges[i], gradient);
        }
    }
}

/** Forget the run; after a failure gradients may still wait in it. */
static void finish(me_engine *e, const run *r)
{
    me_tape *tape = &e->tape;
    for (uint32_t i = r->first_slot; i < tape->n_slots; i++) {
        me_task_slot *slot = &tape->slots[i];
        slot->node->task = slot->outer_task;
        slot->node->slot = slot->outer_slot;
        for (int k = 0; k < ME_MAX_OUTPUTS; k++) {
            me_clear(e, &slot->gradients[k]);
        }
        for (uint32_t k = 0;
             slot->node->wide != NULL && k < slot->node->n_outputs; k++) {
            me_clear(e, &slot->node->wide->gradients[k]);
        }
        me_node_release(e, slot->node);
    }
    tape->n_slots = r->first_slot;
    tape->n_heap = r->first_ready;
}

void me_backward(me_engine *e, me_tensor *root, me_tensor *gradient)
{
    if (!me_engine_is_ok(e) || root->grad_fn == NULL) {
        return;
    }
    const run r = {
        .task = ++e->tape.tasks,
        .first_slot = e->tape.n_slots,
        .first_ready = e->tape.n_heap,
    };
    const me_phase phase = me_phase_set(e, ME_PHASE_BACKWARD);
    const me_category category = me_category_set(e, ME_CATEGORY_TEMPORARY);
    const int thread = me_thread_set(e, ME_THREAD_AUTOGRAD);
    const bool grad = me_grad_enable(e, false);
    const me_module_id module = e->module;

    count_dependencies(e, &r, root->grad_fn);
    if (me_engine_is_ok(e)) {
        awaited(e, root->grad_fn)[root->output_nr] = me_retain(gradient);
        push_ready(e, &r, root->grad_fn);
    }
    while (e->tape.n_heap > r.first_ready && me_engine_is_ok(e)) {
        run_node(e, &r, pop_ready(e, &r));
    }
    finish(e, &r);

    me_module_switch(e, module);
    me_grad_enable(e, grad);
    me_thread_set(e, thread);
    me_category_set(e, category);
    me_phase_set(e, phase);
}
