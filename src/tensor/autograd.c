/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensor/autograd.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "tensor/engine_private.h"
#include "tensor/kind.h"
#include "tensor/region.h"
#include "tensor/saved_hooks.h"
#include "tensor/tensor.h"

#include <string.h>

/** AccumulateGrad runs as soon as it is ready: the largest number. */
static const uint64_t SEQUENCE_LEAF = UINT64_MAX;

static me_node *new_node(me_engine *e, const me_op *op, uint64_t sequence)
{
    me_node *node = e->tape.free_nodes;
    if (node != NULL) {
        e->tape.free_nodes = node->next_free;
        memset(node, 0, offsetof(me_node, output_dtype));
    } else {
        node = me_arena_alloc(e->arena, 1, sizeof *node);
    }
    if (node == NULL) {
        me_engine_fail(e, ME_ERR_NOMEM, "no host memory for a node");
        return NULL;
    }
    node->op = op;
    node->edges = node->few_edges;
    node->sequence = sequence;
    node->refs = 1;
    node->thread = (uint8_t)e->context.thread;
    node->stream = e->context.stream;
    node->mempool = e->context.mempool;
    node->pass = e->pass;
    node->module = e->module;
    return node;
}

void me_node_release_saved(me_engine *e, me_node *node)
{
    if (node->region != NULL) {
        me_region_give_up(e, node);
    }
    for (int i = 0; i < ME_MAX_SAVED; i++) {
        if (node->saved[i] != NULL) {
            me_clear(e, &node->saved[i]);
        }
    }
    for (uint32_t i = 0; node->wide != NULL && i < node->wide->n_saved; i++) {
        me_clear(e, &node->wide->saved[i]);
    }
    me_region_let_go(e, node);
}

/** Let go of what a node holds; edges whose node died go on @p dead. */
static void dismantle(me_engine *e, me_node *node, me_node **dead)
{
    me_node_release_saved(e, node);
    me_node_hooks_free(e, node);
    if (node->variable != NULL) {
        node->variable->accumulator = NULL;
        me_clear(e, &node->variable);
    }
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        me_node *next = node->edges[i].node;
        if (next != NULL && --next->refs == 0) {
            next->next_free = *dead;
            *dead = next;
        }
    }
    if (node->wide != NULL) {
        node->wide->next_free = e->tape.free_wides;
        e->tape.free_wides = node->wide;
    }
}

void me_node_release(me_engine *e, me_node *node)
{
    if (node == NULL || --node->refs > 0) {
        return;
    }
    me_node *dead = node;
    node->next_free = NULL;
    while (dead != NULL) {
        me_node *next = dead;
        dead = next->next_free;
        dismantle(e, next, &dead);
        next->next_free = e->tape.free_nodes;
        e->tape.free_nodes = next;
    }
}

static const me_op clone_kernel = {"clone", .dispatcher = "clone.default"};

static void clone_into_grad(me_engine *e, me_tensor *variable,
                            const me_tensor *gradient)
{
    me_tensor *copy = NULL;
    if (me_is_dense(&variable->shape, variable->strides)) {
        me_tell_device_query(e, variable); // clone_obey_contract()
        copy = me_empty_like(e, clone_kernel.event, variable);
    } else {
        copy = me_empty(e, clone_kernel.event, (me_dtype)gradient->dtype,
                        variable->shape);
    }
    variable->grad = me_retain(copy);
    me_op_tell(e, &clone_kernel, ME_TENSORS(gradient), ME_TENSORS(copy));
}

static bool layout_fits(const me_tensor *variable, const me_tensor *gradient)
{
    if (!me_is_dense(&variable->shape, variable->strides)) {
        return me_tensor_is_contiguous(gradient);
    }
    for (int32_t i = 0; i < variable->shape.ndim; i++) {
        if (variable->shape.dim[i] != 1 &&
            variable->strides[i] != gradient->strides[i]) {
            return false;
        }
    }
    return true;
}

static void take_grad(me_engine *e, me_tensor *leaf, bool tells)
{
    if (leaf->parameter == NULL) {
        return;
    }
    me_categorize(e, leaf->grad, ME_CATEGORY_GRADIENT);
    if (tells && e->tape.on_grad != NULL && !e->tape.is_quiet) {
        e->tape.on_grad(e->tape.on_grad_self, e, leaf);
    }
}

void me_accumulate_grad(me_engine *e, me_tensor *leaf, me_tensor *gradient)
{
    if (leaf->grad == NULL) {
        if (gradient->refs == 1 && layout_fits(leaf, gradient)) {
            leaf->grad = me_retain(gradient);
        } else {
            clone_into_grad(e, leaf, gradient);
        }
    }
    take_grad(e, leaf, !leaf->is_made_later);
}

void me_hand_over_grad(me_engine *e, me_tensor *leaf, me_tensor **gradient)
{
    me_assign(e, &leaf->grad, *gradient);
    me_clear(e, gradient);
    take_grad(e, leaf, true);
}

static void accumulate_grad_backward(me_engine *e, me_node *node,
                                     me_tensor *const *gy, me_tensor **gx)
{
    (void)gx;
    if (gy[0] != NULL) {
        me_accumulate_grad(e, node->variable, gy[0]);
    }
}

static const me_op accumulate_grad_op =
    ME_NODE("AccumulateGrad", accumulate_grad_backward);

static void set_output(me_node *node, const me_tensor *x)
{
    const uint32_t nr = node->n_outputs;
    if (node->wide != NULL) {
        ME_ASSERT(nr < node->wide->capacity);
        node->output_dtype[0] = x->dtype;
    } else {
        ME_ASSERT(nr < ME_MAX_OUTPUTS);
        node->output_dtype[nr] = x->dtype;
    }
    *me_output_shape(node, nr) = x->shape;
    node->n_outputs++;
}

/** The leaf's AccumulateGrad with one more reference; NULL on failure. */
static me_node *accumulator(me_engine *e, me_tensor *leaf)
{
    if (leaf->accumulator != NULL) {
        leaf->accumulator->refs++;
        return leaf->accumulator;
    }
    me_node *node = new_node(e, &accumulate_grad_op, SEQUENCE_LEAF);
    if (node != NULL) {
        node->variable = me_retain(leaf);
        node->mempool = ME_MEMPOOL_DEFAULT; // it is none of a graph's
        node->is_dtensor = me_is_distributed(leaf);
        leaf->accumulator = node;
        set_output(node, leaf);
        me_tell_device_query(e, leaf); // AccumulateGrad's InputMetadata
    }
    return node;
}

me_node *me_leaf_accumulator(me_engine *e, me_tensor *leaf)
{
    return me_engine_is_ok(e) && leaf->requires_grad ? accumulator(e, leaf)
                                                     : NULL;
}

me_node *me_accumulator_hold(me_engine *e, me_tensor *parameter)
{
    if (!me_engine_is_ok(e)) {
        return NULL;
    }
    me_node *node = accumulator(e, parameter);
    if (node != NULL) {
        node->stream = ME_STREAM_SIDE;
    }
    return node;
}

/** Whoever works on the output of a collective waits for it first. */
static void await_inputs(me_engine *e, uint32_t n_inputs,
                         me_tensor *const *inputs)
{
    for (uint32_t i = 0; i < n_inputs; i++) {
        if (inputs[i] != NULL) {
            me_storage_await(e, inputs[i]->storage);
        }
    }
}

/** Will anybody ask for the gradients of @p inputs? */
static bool is_recorded(const me_engine *e, uint32_t n_inputs,
                        me_tensor *const *inputs)
{
    bool is_needed = false;
    for (uint32_t i = 0; i < n_inputs; i++) {
        is_needed =
            is_needed || (inputs[i] != NULL && inputs[i]->requires_grad);
    }
    return e->context.is_recording && is_needed && me_engine_is_ok(e);
}

static void set_edges(me_engine *e, me_node *node, uint32_t n_inputs,
                      me_tensor *const *inputs)
{
    node->n_inputs = (uint16_t)n_inputs;
    node->refs = 0; // until an output owns it
    if (inputs[0] != NULL) {
        node->data.shape = inputs[0]->shape;
    }
    for (uint32_t i = 0; i < n_inputs; i++) {
        me_tensor *x = inputs[i];
        if (x == NULL || !x->requires_grad) {
            continue;
        }
        node->is_dtensor = node->is_dtensor || me_is_distributed(x);
        if (x->grad_fn != NULL) {
            x->grad_fn->refs++;
            node->edges[i] = (me_edge){x->grad_fn, x->output_nr};
        } else {
            node->edges[i] = (me_edge){accumulator(e, x), 0};
        }
    }
}

static me_node *record(me_engine *e, const me_op *op, uint32_t n_inputs,
                       me_tensor *const *inputs)
{
    if (!is_recorded(e, n_inputs, inputs)) {
        return NULL;
    }
    ME_ASSERT(n_inputs <= ME_MAX_INPUTS);
    me_node *node = new_node(e, op, e->tape.sequence[e->context.thread]++);
    if (node != NULL) {
        set_edges(e, node, n_inputs, inputs);
    }
    return node;
}

me_node *me_record(me_engine *e, const me_op *op, uint32_t n_inputs,
                   me_tensor *const *inputs)
{
    if (op->queries > 0) {
        me_tell_device_queries(e, inputs[0], op->queries);
    }
    await_inputs(e, n_inputs, inputs);
    return record(e, op, n_inputs, inputs);
}

me_node *me_record_view(me_engine *e, const me_op *op, me_tensor *a)
{
    me_node *node = record(e, op, 1, &a);
    if (node != NULL) {
        node->is_view = true;
    }
    return node;
}

/** Room for @p count inputs or outputs, all zero; NULL without memory. */
static me_wide *new_wide(me_engine *e, uint32_t count)
{
    me_wide **place = &e->tape.free_wides;
    while (*place != NULL && (*place)->capacity < count) {
        place = &(*place)->next_free;
    }
    me_wide *wide = *place;
    if (wide != NULL) {
        *place = wide->next_free;
        memset(wide->edges, 0, wide->capacity * sizeof *wide->edges);
        wide->n_saved = 0;
        return wide; // its gradients have been handed on
    }
    wide = me_engine_alloc(e, 1, sizeof *wide);
    if (wide == NULL) {
        return NULL;
    }
    wide->capacity = count;
    wide->edges = me_engine_alloc(e, count, sizeof *wide->edges);
    wide->extents = me_engine_alloc(e, count, sizeof *wide->extents);
    wide->shapes = me_engine_alloc(e, count, sizeof *wide->shapes);
    wide->gradients = me_engine_alloc(e, count, sizeof(me_tensor *));
    wide->made = me_engine_alloc(e, count, sizeof(me_tensor *));
    wide->saved = me_engine_alloc(e, count, sizeof(me_tensor *));
    return me_engine_is_ok(e) ? wide : NULL;
}

/** A node of lists with room for @p count. */
static me_node *record_list(me_engine *e, const me_op *op, uint32_t n_inputs,
                            me_tensor *const *inputs, uint32_t count)
{
    ME_ASSERT(n_inputs <= count && count <= ME_MAX_LIST);
    me_wide *wide = new_wide(e, count);
    me_node *node =
        wide == NULL ? NULL
                     : new_node(e, op, e->tape.sequence[e->context.thread]++);
    if (node != NULL) {
        node->wide = wide;
        node->edges = wide->edges;
        set_edges(e, node, n_inputs, inputs);
    }
    return node;
}

me_node *me_record_wide(me_engine *e, const me_op *op, uint32_t n_inputs,
                        me_tensor *const *inputs, uint32_t n_outputs)
{
    return is_recorded(e, n_inputs, inputs)
               ? record_list(e, op, n_inputs, inputs,
                             n_inputs > n_outputs ? n_inputs : n_outputs)
               : NULL;
}

me_node *me_record_saving(me_engine *e, const me_op *op, uint32_t n_inputs,
                          me_tensor *const *inputs, uint32_t n_saved)
{
    if (!is_recorded(e, n_inputs, inputs)) {
        return NULL;
    }
    me_node *node = record_list(e, op, n_inputs, inputs,
                                n_inputs > n_saved ? n_inputs : n_saved);
    if (node != NULL) {
        node->wide->n_saved = n_saved;
    }
    return node;
}

void me_set_sequence(const me_tensor *x, uint64_t number)
{
    if (x->grad_fn != NULL) {
        x->grad_fn->sequence = number;
    }
}

me_node *me_record1(me_engine *e, const me_op *op, me_tensor *a)
{
    return me_record(e, op, 1, &a);
}

me_node *me_record2(me_engine *e, const me_op *op, me_tensor *a, me_tensor *b)
{
    return me_record(e, op, 2, (me_tensor *[]){a, b});
}

/** Where a node keeps what it saves. */
static me_tensor **place_of_saved(me_node *node, uint32_t index)
{
    if (index < ME_MAX_SAVED) {
        return &node->saved[index];
    }
    ME_ASSERT(node->wide != NULL && index - ME_MAX_SAVED < node->wide->n_saved);
    return &node->wide->saved[index - ME_MAX_SAVED];
}

void me_save(me_engine *e, me_node *node, uint32_t index, const me_tensor *x)
{
    if (node == NULL || x == NULL || !me_engine_is_ok(e)) {
        return;
    }
    me_tensor **place = place_of_saved(node, index);
    ME_ASSERT(*place == NULL);
    if (e->packing != NULL) {
        *place = me_region_hold(e, node);
        return;
    }
    me_tensor *saved = me_tensor_new(e);
    if (saved == NULL) {
        return;
    }
    saved->storage = x->storage;
    saved->dtype = x->dtype;
    saved->shape = x->shape;
    memcpy(saved->strides, x->strides, sizeof saved->strides);
    me_storage_retain(saved->storage);
    saved->version = x->storage == NULL ? 0 : x->storage->version;
    *place = saved;
    me_tell_saved(e, saved);
    if (saved->storage != NULL &&
        saved->storage->category == ME_CATEGORY_TEMPORARY) {
        me_categorize(e, saved, ME_CATEGORY_ACTIVATION);
    }
    if (e->recomputing != NULL) {
        me_region_fill(e, saved);
    }
    if (e->saved_hooks != NULL && x->parameter == NULL &&
        saved->storage != NULL) {
        *place = me_saved_pack(e, node, saved);
    }
}

/** A node that no output will own, because a recomputation ended in its
 *  operation, lets go of what it saved; once, whatever outputs there are. */
static void discard(me_engine *e, me_node *node)
{
    if (node != NULL && e->is_stopped && node->refs == 0 && node->op != NULL) {
        node->refs = 1;
        me_node_release(e, node);
        node->op = NULL;
    }
}

me_tensor *me_output(me_engine *e, me_node *node, me_tensor *y)
{
    if (node == NULL || !me_engine_is_ok(e)) {
        discard(e, node);
        return y;
    }
    me_node *before = y->grad_fn;
    y->output_nr = (uint8_t)node->n_outputs;
    set_output(node, y);
    node->refs++;
    y->grad_fn = node;
    y->requires_grad = true;
    me_tell_device_query(e, y); // set_history()'s InputMetadata
    me_node_release(e, before); // of an in-place operation
    return y;
}

void me_detach_in_place(me_engine *e, me_tensor *x)
{
    me_node *node = x->grad_fn;
    x->grad_fn = NULL;
    x->requires_grad = false;
    me_node_release(e, node);
}

void me_tape_on_grad(me_engine *e,
                     void (*on_grad)(void *self, me_engine *engine,
                                     me_tensor *parameter),
                     void *self)
{
    e->tape.on_grad = on_grad;
    e->tape.on_grad_self = self;
}

void me_tape_be_quiet(me_engine *e, bool is_quiet)
{
    e->tape.is_quiet = is_quiet;
}

void me_tape_at_end(me_engine *e, void (*on_end)(void *self, me_engine *engine),
                    void *self)
{
    e->tape.on_end = on_end;
    e->tape.on_end_self = self;
}

void me_tape_set_sum_to(me_engine *e, me_sum_to_function sum_to)
{
    e->tape.sum_to = sum_to;
}

void me_tape_fini(me_tape *tape)
{
    me_free(tape->slots);
    me_free(tape->stack);
    me_free(tape->heap);
    *tape = (me_tape){0};
}
