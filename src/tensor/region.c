/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensor/region.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "tensor/autocast.h"
#include "tensor/engine_private.h"
#include "tensor/hooks.h"
#include "tensor/launch.h"
#include "tensor/tensor.h"

#include <string.h>

/** A tensor that an exception's traceback holds. */
typedef struct me_local {
    struct me_local *next;
    me_tensor *x;
} me_local;

/** Results of operations that a selective region keeps, in their order. */
typedef struct kept_results {
    me_tensor **tensors; /**< NULL once it is handed out; owned */
    uint32_t count;
    uint32_t capacity;
    uint32_t next; /**< to be handed out */
} kept_results;

/** What a backward has made again. Each has its own, since half a backward
 *  leaves what it did not ask for, and the other half runs the region anew. */
typedef struct rerun {
    struct rerun *next;
    uint64_t task;       /**< of the backward (_current_graph_task_id()) */
    me_tensor **tensors; /**< of each place until it is handed out or its holder
                              goes; owned, with the list */
} rerun;

/** One run of the function that the backward may ask for again. */
typedef struct me_region {
    struct me_region *next; /**< of the engine's list of those alive */
    struct me_region *before;
    me_region_function function;
    me_tensor *input; /**< owned; kept until the last holder goes; NULL: the
                           region around this one has a holder of it */
    struct me_region *outer; /**< it, which that holder keeps alive */
    uint32_t input_place;    /**< there */
    bool needs_gradient;     /**< the input does */
    bool is_inner;           /**< and it is no leaf */
    me_module_id module;
    me_autocast_state autocast; /**< that it ran under */
    uint32_t refs;              /**< holders, and the forward while it runs */
    uint32_t n_holders;         /**< ever made: places in the list */
    uint32_t capacity;          /**< of the list */
    uint32_t n_filled;          /**< places, by the run that goes on */
    me_local *traceback;        /**< while it unwinds; owned, innermost first */
    bool *is_given_up;          /**< of each place: its holder has gone */
    rerun *reruns;              /**< in their order; owned */
    rerun *running;             /**< that goes on */
    kept_results kept;
    uint32_t n_products; /**< of the run that goes on */
} me_region;

static void link_region(me_engine *e, me_region *region)
{
    region->next = e->regions;
    if (e->regions != NULL) {
        e->regions->before = region;
    }
    e->regions = region;
}

static void unlink_region(me_engine *e, const me_region *region)
{
    if (region->before == NULL) {
        e->regions = region->next;
    } else {
        region->before->next = region->next;
    }
    if (region->next != NULL) {
        region->next->before = region->before;
    }
}

static void free_reruns(me_region *region)
{
    while (region->reruns != NULL) {
        rerun *run = region->reruns;
        region->reruns = run->next;
        me_free(run->tensors);
        me_free(run);
    }
}

void me_regions_fini(me_engine *e)
{
    while (e->regions != NULL) {
        me_region *region = e->regions;
        e->regions = region->next;
        free_reruns(region);
        me_free(region->is_given_up);
        me_free(region->kept.tensors);
        me_free(region);
    }
}

/** A holder has gone, and what was made for it and not handed out. */
static void give_up(me_engine *e, me_region *region, uint64_t number)
{
    region->is_given_up[number] = true;
    for (rerun *run = region->reruns; run != NULL; run = run->next) {
        me_clear(e, &run->tensors[number]);
    }
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as regions nest
static void release(me_engine *e, me_region *region, uint32_t count)
{
    region->refs -= count;
    if (region->refs > 0) {
        return;
    }
    free_reruns(region);
    me_free(region->is_given_up);
    for (uint32_t i = region->kept.next; i < region->kept.count; i++) {
        me_release(e, region->kept.tensors[i]);
    }
    me_free(region->kept.tensors);
    me_release(e, region->input);
    unlink_region(e, region);
    if (region->outer != NULL) {
        give_up(e, region->outer, region->input_place);
        release(e, region->outer, 1);
    }
    me_free(region);
}

/** The place of one more holder, which keeps the region alive. */
static bool add_place(me_engine *e, me_region *region, uint32_t *number_out)
{
    if (region->n_holders == region->capacity) {
        bool *larger =
            me_grow(region->is_given_up, region->n_holders, &region->capacity,
                    sizeof *larger, "region.places");
        if (larger == NULL) {
            me_engine_fail(e, ME_ERR_NOMEM, "no host memory for a region");
            return false;
        }
        region->is_given_up = larger;
    }
    region->is_given_up[region->n_holders] = false;
    *number_out = region->n_holders++;
    region->refs++;
    return true;
}

/** `_NoopSaveInputs`: what saves the region's input, until it runs again. Under
 *  another region that is a holder of its. */
static void save_input(me_engine *e, me_region *region, const me_tensor *x)
{
    me_tell_op_of(e, "empty.memory_format",
                  0); // what goes in, and out of it
    me_tell_op_of(e, "empty.memory_format", 0);
    region->needs_gradient = x->requires_grad;
    region->is_inner = x->is_inner || x->grad_fn != NULL;
    if (e->packing != NULL) {
        if (add_place(e, e->packing, &region->input_place)) {
            region->outer = e->packing;
        }
        return;
    }
    const me_frame frame = me_enter(e);
    me_tensor *input = me_detach(e, x);
    input->is_view = false;
    region->input = me_retain(input);
    me_leave(e, frame, NULL);
}

static void categorize_input(me_engine *e, const me_region *region)
{
    const me_tensor *input = region->input;
    if (input != NULL && input->storage != NULL && region->refs > 1 &&
        input->storage->category == ME_CATEGORY_TEMPORARY) {
        me_categorize(e, input, ME_CATEGORY_ACTIVATION);
    }
}

me_tensor *me_region_forward(me_engine *e, const me_region_function *function,
                             me_tensor *x)
{
    if (!me_engine_is_ok(e) || !e->context.is_recording) {
        return function->run(function->self, e, x);
    }
    me_launch_host(e, ME_HOST_CHECKPOINT);
    if (e->packing == NULL && e->recomputing != NULL) {
        me_region_fill(e, x); // the run that goes on saves it
    }
    me_region *region =
        me_engine_is_ok(e) ? me_alloc(1, sizeof *region, "region") : NULL;
    if (region == NULL) {
        if (!e->is_stopped) {
            me_engine_fail(e, ME_ERR_NOMEM, "no host memory for a region");
        }
        return me_none(e);
    }
    *region = (me_region){
        .function = *function,
        .module = e->module,
        .autocast = me_autocast_now(e),
        .refs = 1,
    };
    link_region(e, region);
    save_input(e, region, x);
    me_region *outer = e->packing;
    e->packing = region;
    me_tensor *y = function->run(function->self, e, x);
    e->packing = outer;
    categorize_input(e, region);
    release(e, region, 1);
    return y;
}

me_tensor *me_region_hold(me_engine *e, me_node *node)
{
    me_tensor *holder = me_tensor_new(e);
    uint32_t number = 0;
    if (holder == NULL || !add_place(e, e->packing, &number)) {
        me_release(e, holder);
        return NULL;
    }
    holder->shape = ME_SCALAR;
    holder->strides[0] = number;
    node->region = e->packing;
    node->n_holders++;
    return holder;
}

void me_region_fill(me_engine *e, const me_tensor *saved)
{
    me_region *region = e->recomputing;
    if (region->n_filled == region->n_holders) {
        return;
    }
    const uint32_t number = region->n_filled++;
    if (!region->is_given_up[number]) {
        me_tensor *handle = me_tensor_new(e);
        if (handle == NULL) {
            return;
        }
        handle->storage = saved->storage;
        handle->dtype = saved->dtype;
        handle->shape = saved->shape;
        memcpy(handle->strides, saved->strides, sizeof handle->strides);
        me_storage_retain(handle->storage);
        region->running->tensors[number] = handle;
    }
    e->is_stopped =
        region->n_filled == region->n_holders && !region->function.runs_to_end;
}

bool me_region_is_stopped(const me_engine *e)
{
    return e->is_stopped;
}

void me_region_hold_local(me_engine *e, me_tensor *x)
{
    me_region *region = e->recomputing;
    if (!e->is_stopped || x == NULL || x->storage == NULL) {
        return;
    }
    me_local *local = me_alloc(1, sizeof *local, "region.local");
    if (local == NULL) {
        me_engine_fail(e, ME_ERR_NOMEM, "no host memory for a region");
        return;
    }
    local->x = me_retain(x);
    me_local **end = &region->traceback;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = local;
}

/** The exception has been caught: frames go, the innermost first. */
static void drop_traceback(me_engine *e, me_region *region)
{
    while (region->traceback != NULL) {
        me_local *local = region->traceback;
        region->traceback = local->next;
        me_release(e, local->x);
        me_free(local);
    }
}

/** Until the last holder has its tensor: an exception then ends the function,
 *  whose variables go, and its graph with them. */
static void recompute(me_engine *e, me_region *region, const me_tensor *input)
{
    me_launch_host(e, ME_HOST_CHECKPOINT);
    const me_context before = me_context_recompute(e);
    const me_module_id module = e->module;
    me_module_switch(e, region->module);
    ME_ASSERT(e->packing == NULL && e->recomputing == NULL);
    e->recomputing = region;
    region->n_products = 0;
    const me_frame frame = me_enter(e);
    me_tensor *x = me_detach(e, input);
    x->is_view = false;
    x->requires_grad = region->needs_gradient;
    x->is_inner = region->is_inner;
    const me_autocast_state outer = me_autocast_enter(e, region->autocast);
    region->function.run(region->function.self, e, x);
    me_autocast_exit(e, outer);
    drop_traceback(e, region);
    me_leave(e, frame, NULL);
    e->is_stopped = false;
    e->recomputing = NULL;
    me_module_switch(e, module);
    me_context_restore(e, before);
}

/** One more run, of which nothing is there; NULL without memory. */
static rerun *add_rerun(me_engine *e, me_region *region, uint64_t task)
{
    rerun *run = me_alloc(1, sizeof *run, "region.rerun");
    me_tensor **tensors =
        me_alloc(region->n_holders, sizeof(me_tensor *), "region.rerun");
    if (run == NULL || tensors == NULL) {
        me_engine_fail(e, ME_ERR_NOMEM, "no host memory for a region");
        me_free(tensors);
        me_free(run);
        return NULL;
    }
    *run = (rerun){.task = task, .tensors = tensors};
    rerun **end = &region->reruns;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = run;
    region->running = run;
    region->n_filled = 0;
    return run;
}

/** What stands in a place, handed out; NULL after a failure of the engine. */
static me_tensor *take(const rerun *run, uint64_t number)
{
    me_tensor *x = run->tensors[number];
    run->tensors[number] = NULL;
    return x;
}

/** The first holder that a backward unpacks makes the region run again. The
 *  input may have to be made by the region around it, and goes once it has been
 *  used. @return what has been made; NULL after a failure */
// NOLINTNEXTLINE(misc-no-recursion): as deep as regions nest
static const rerun *run_again(me_engine *e, me_region *region, uint64_t task)
{
    rerun *run = region->reruns;
    while (run != NULL && run->task != task) {
        run = run->next;
    }
    if (run != NULL || !me_engine_is_ok(e)) {
        return run;
    }
    const rerun *outer =
        region->outer == NULL ? NULL : run_again(e, region->outer, task);
    run = add_rerun(e, region, task);
    if (run == NULL) {
        return NULL;
    }
    if (region->outer == NULL) {
        recompute(e, region, region->input);
        return run;
    }
    me_tensor *input = outer == NULL ? NULL : take(outer, region->input_place);
    if (input != NULL) {
        recompute(e, region, input);
        me_release(e, input);
    }
    return run;
}

/** torchtitan's policy: every second matrix product is made again. */
static bool is_kept(me_region *region, me_region_op op)
{
    if (region == NULL || !region->function.is_selective) {
        return false;
    }
    return op != ME_REGION_MM || ++region->n_products % 2 == 1;
}

static bool make_room(me_engine *e, kept_results *list, uint32_t count)
{
    if (list->count + count <= list->capacity) {
        return true;
    }
    me_tensor **larger = me_grow(list->tensors, list->capacity, &list->capacity,
                                 sizeof(me_tensor *), "region.kept");
    if (larger == NULL) {
        me_engine_fail(e, ME_ERR_NOMEM, "no host memory for a region");
        return false;
    }
    list->tensors = larger;
    return true;
}

/** One more reference to each result. */
static void keep_in(me_engine *e, me_region *region, uint32_t count,
                    me_tensor *const *results)
{
    kept_results *list = &region->kept;
    if (!make_room(e, list, count)) {
        return;
    }
    const me_frame frame = me_enter(e);
    for (uint32_t i = 0; i < count; i++) {
        me_tensor *x = me_detach(e, results[i]);
        x->is_view = false;
        list->tensors[list->count++] = me_retain(x);
        if (x->storage != NULL &&
            x->storage->category == ME_CATEGORY_TEMPORARY) {
            me_categorize(e, x, ME_CATEGORY_ACTIVATION);
        }
    }
    me_leave(e, frame, NULL);
}

void me_region_keep(me_engine *e, me_region_op op, uint32_t count,
                    me_tensor *const *results)
{
    for (me_region *region = e->packing; region != NULL && me_engine_is_ok(e);
         region = region->outer) {
        if (is_kept(region, op)) {
            keep_in(e, region, count, results);
        }
    }
}

bool me_region_kept(me_engine *e, me_region_op op, uint32_t count,
                    me_tensor **results_out)
{
    if (!me_engine_is_ok(e) || !is_kept(e->recomputing, op)) {
        return false;
    }
    kept_results *list = &e->recomputing->kept;
    ME_ASSERT(list->next + count <= list->count);
    for (uint32_t i = 0; i < count; i++) {
        results_out[i] = me_adopt(e, list->tensors[list->next]);
        list->tensors[list->next++] = NULL;
    }
    me_region_keep(e, op, count, results_out); // of those inside
    return true;
}

void me_region_unpack(me_engine *e, me_node *node, uint64_t task,
                      me_tensor **holders_out)
{
    const rerun *run = run_again(e, node->region, task);
    for (int i = 0; run != NULL && me_engine_is_ok(e) && i < ME_MAX_SAVED;
         i++) {
        me_tensor *holder = node->saved[i];
        if (holder != NULL) {
            holders_out[i] = holder;
            node->saved[i] = take(run, holder->strides[0]);
        }
    }
}

void me_region_give_up(me_engine *e, const me_node *node)
{
    for (int i = 0; i < ME_MAX_SAVED; i++) {
        if (node->saved[i] != NULL) {
            give_up(e, node->region, node->saved[i]->strides[0]);
        }
    }
}

void me_region_let_go(me_engine *e, me_node *node)
{
    me_region *region = node->region;
    const uint32_t count = node->n_holders;
    node->region = NULL;
    node->n_holders = 0;
    if (region != NULL) {
        release(e, region, count);
    }
}
