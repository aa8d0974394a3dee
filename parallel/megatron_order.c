/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/megatron_order.h"

#include "base/alloc.h"
#include "parallel/order_interleaved.h"

/** One rank's list, and how many tensors came for each chunk so far. */
typedef struct list {
    const me_pipeline *p;
    me_actions *actions;
    int32_t *inputs;    /**< of each chunk */
    int32_t *gradients; /**< of each chunk */
    int32_t begin;      /**< of the batch that is being made */
} list;

static int32_t last_stage(const list *l)
{
    return l->p->ranks * l->p->chunks - 1;
}

static void push(list *l, me_action_kind kind, int32_t chunk,
                 int32_t microbatch)
{
    me_actions_push(l->actions, (me_action){
                                    .kind = (uint8_t)kind,
                                    .chunk = chunk,
                                    .stage = chunk * l->p->ranks + l->p->rank,
                                    .microbatch = microbatch,
                                });
}

static void begin_batch(list *l)
{
    l->begin = l->actions->count;
}

/** All of a batch but the last wait for the one behind. */
static void end_batch(list *l)
{
    for (int32_t i = l->begin; i < l->actions->count - 1; i++) {
        l->actions->items[i].is_batched = true;
    }
}

static void send_output(list *l, int32_t chunk, int32_t microbatch)
{
    if (chunk * l->p->ranks + l->p->rank != last_stage(l)) {
        push(l, ME_ACTION_SEND_FORWARD, chunk, microbatch);
    }
}

static void send_gradient(list *l, int32_t chunk, int32_t microbatch)
{
    if (chunk * l->p->ranks + l->p->rank != 0) {
        push(l, ME_ACTION_SEND_BACKWARD, chunk, microbatch);
    }
}

static void receive_input(list *l, int32_t chunk)
{
    if (chunk * l->p->ranks + l->p->rank != 0) {
        push(l, ME_ACTION_RECV_FORWARD, chunk, l->inputs[chunk]++);
    }
}

static void receive_gradient(list *l, int32_t chunk)
{
    if (chunk * l->p->ranks + l->p->rank != last_stage(l)) {
        push(l, ME_ACTION_RECV_BACKWARD, chunk, l->gradients[chunk]++);
    }
}

/** forward_backward_pipelining_without_interleaving(). */
static void list_1f1b(list *l)
{
    const int32_t m = l->p->microbatches;
    const int32_t ahead = l->p->ranks - 1 - l->p->rank;
    const int32_t w = ahead < m ? ahead : m;
    for (int32_t i = 0; i < w; i++) {
        receive_input(l, 0);
        push(l, ME_ACTION_FORWARD, 0, i);
        send_output(l, 0, i);
    }
    if (w < m) {
        receive_input(l, 0);
    }
    for (int32_t i = 0; i < m - w; i++) {
        push(l, ME_ACTION_FORWARD, 0, w + i);
        begin_batch(l);
        send_output(l, 0, w + i);
        receive_gradient(l, 0);
        end_batch(l);
        push(l, ME_ACTION_BACKWARD, 0, i);
        begin_batch(l);
        send_gradient(l, 0, i);
        if (i < m - w - 1) {
            receive_input(l, 0);
        }
        end_batch(l);
    }
    for (int32_t i = m - w; i < m; i++) {
        receive_gradient(l, 0);
        push(l, ME_ACTION_BACKWARD, 0, i);
        send_gradient(l, 0, i);
    }
}

/** What comes after virtual step @p k of a direction. */
static void receive_next(list *l, int32_t k, bool is_forward)
{
    const me_receive next = me_interleaved_receive(l->p, k, is_forward);
    if (next.is_expected && is_forward) {
        receive_input(l, next.chunk);
    } else if (next.is_expected) {
        receive_gradient(l, next.chunk);
    }
}

static me_virtual_step push_step(list *l, int32_t k, bool is_forward)
{
    const me_virtual_step step = me_interleaved_step(l->p, k, is_forward);
    push(l, is_forward ? ME_ACTION_FORWARD : ME_ACTION_BACKWARD, step.chunk,
         step.microbatch);
    return step;
}

/** Forwards before the first backward; the last one's batch also receives the
 *  first gradient. */
static void list_warmup(list *l, int32_t w, int32_t steps)
{
    receive_next(l, -1, true);
    for (int32_t k = 0; k < w; k++) {
        const me_virtual_step step = push_step(l, k, true);
        begin_batch(l);
        send_output(l, step.chunk, step.microbatch);
        receive_next(l, k, true);
        if (k == w - 1 && w < steps) {
            receive_next(l, -1, false);
        }
        end_batch(l);
    }
    if (w == steps) {
        receive_next(l, -1, false);
    }
}

/** forward_backward_pipelining_with_interleaving(). */
static void list_interleaved(list *l)
{
    const int32_t steps = me_interleaved_steps(l->p);
    const int32_t w = me_interleaved_warmup(l->p);
    list_warmup(l, w, steps);
    for (int32_t k = 0; k < steps - w; k++) {
        const me_virtual_step f = push_step(l, k + w, true);
        const me_virtual_step b = push_step(l, k, false);
        begin_batch(l);
        send_output(l, f.chunk, f.microbatch);
        send_gradient(l, b.chunk, b.microbatch);
        receive_next(l, k + w, true);
        receive_next(l, k, false);
        end_batch(l);
    }
    for (int32_t k = steps - w; k < steps; k++) {
        const me_virtual_step b = push_step(l, k, false);
        begin_batch(l);
        send_gradient(l, b.chunk, b.microbatch);
        receive_next(l, k, false);
        end_batch(l);
    }
}

static me_status list_rank(const me_pipeline *pipeline, me_actions *actions)
{
    const size_t chunks = (size_t)pipeline->chunks;
    int32_t *came = me_alloc(chunks * 2, sizeof *came, "megatron_order");
    if (came == NULL) {
        return ME_ERR_NOMEM;
    }
    list l = {.p = pipeline,
              .actions = actions,
              .inputs = came,
              .gradients = came + chunks};
    if (pipeline->chunks == 1) {
        list_1f1b(&l);
    } else {
        list_interleaved(&l);
    }
    me_free(came);
    return actions->status;
}

me_status me_megatron_order_create(const me_pipeline *pipeline, me_diag *diag,
                                   me_pipeline_order **order_out)
{
    me_pipeline p = *pipeline;
    const char *name = p.chunks == 1 ? "1f1b" : "interleaved";
    me_status status = me_schedule_check(me_schedule_find(name), &p, diag);
    if (status != ME_OK) {
        return status;
    }
    me_pipeline_order *order =
        me_pipeline_order_new(&p, ME_PLACEMENT_LOOP, p.ranks * p.chunks, NULL);
    status = order == NULL ? ME_ERR_NOMEM : ME_OK;
    for (p.rank = 0; status == ME_OK && p.rank < p.ranks; p.rank++) {
        status = list_rank(&p, &order->ranks[p.rank]);
    }
    if (status != ME_OK) {
        me_pipeline_order_destroy(order);
        return me_fail(diag, status, "no host memory for schedule %s", name);
    }
    *order_out = order;
    return ME_OK;
}
