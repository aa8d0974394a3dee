/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensor/backward_run.h"

#include "base/alloc.h"
#include "tensor/engine_private.h"

static bool reserve(me_engine *e, void **items, uint32_t count,
                    uint32_t *capacity, size_t size)
{
    void *larger = me_grow(*items, count, capacity, size, "tape");
    if (larger == NULL) {
        me_engine_fail(e, ME_ERR_NOMEM, "no host memory for the tape");
        return false;
    }
    *items = larger;
    return true;
}

static bool runs_before(const me_node *a, const me_node *b)
{
    return a->sequence < b->sequence;
}

/** The order in which equal numbers leave the ready queue is that of the C++
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

void me_run_push(me_engine *e, const me_run *r, me_node *node)
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

me_node *me_run_pop(me_engine *e, const me_run *r)
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
static bool visit(me_engine *e, const me_run *r, me_node *node)
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

void me_run_count(me_engine *e, const me_run *r, me_node *root)
{
    me_tape *tape = &e->tape;
    const uint32_t base = tape->n_stack;
    if (visit(e, r, root)) {
        push_search(e, root);
    }
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

me_run me_run_begin(me_engine *e)
{
    return (me_run){
        .task = ++e->tape.tasks,
        .first_slot = e->tape.n_slots,
        .first_ready = e->tape.n_heap,
    };
}

/** Does one of the node's inputs lead to what was asked for? */
static bool leads_on(const me_engine *e, const me_node *node)
{
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        const me_node *next = node->edges[i].node;
        if (next != NULL && e->tape.slots[next->slot].is_needed) {
            return true;
        }
    }
    return false;
}

void me_run_mark(me_engine *e, const me_run *r, uint32_t count,
                 me_node *const *inputs)
{
    me_tape *tape = &e->tape;
    for (uint32_t i = 0; i < count; i++) {
        if (inputs[i] != NULL && inputs[i]->task == r->task) {
            tape->slots[inputs[i]->slot].is_needed = true;
        }
    }
    // Nodes were found from the roots on, so that few passes are enough.
    bool has_changed = true;
    while (has_changed) {
        has_changed = false;
        for (uint32_t i = tape->n_slots; i > r->first_slot; i--) {
            me_task_slot *slot = &tape->slots[i - 1];
            if (!slot->is_needed && leads_on(e, slot->node)) {
                slot->is_needed = true;
                has_changed = true;
            }
        }
    }
}

void me_run_finish(me_engine *e, const me_run *r)
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
