/**
 * @file
 * What the interleaved schedule has at hand (schedule_interleaved.c), for its
 * combined variant as well (schedule_combined.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_MEGATRON_INTERLEAVED_H
#define MEMEST_TRAIN_MEGATRON_INTERLEAVED_H

#include "parallel/order_interleaved.h"
#include "train/megatron/combined_1f1b.h"
#include "train/megatron/rounds.h"
#include "train/megatron/trainer.h"

/** A queue of tensors of one chunk. */
typedef struct me_queue {
    me_tensor **items;
    int32_t head;
    int32_t tail;
} me_queue;

/** Receive buffers: where the k-th tensor of a direction arrives. */
typedef struct me_slots {
    me_tensor **items;
    int32_t count;
} me_slots;

typedef struct me_interleaved {
    me_trainer *t;
    const me_pipeline *p;
    me_queue *inputs; /**< one a chunk */
    me_queue *outputs;
    me_queue *output_grads;
    me_tensor *output; /**< of the step before; NULL after a loss */
    me_tensor *input_grad;
    me_tensor *input;       /**< received last in warm-up */
    me_tensor *output_grad; /**< received last in cool-down */
    me_slots forward_slots; /**< receive buffers */
    me_slots backward_slots;
    me_queue handles;          /**< of gradients on their way */
    me_tensor *forward_handle; /**< of the input waited for last in warm-up */
    me_tensor *receive_handle; /**< kept by names to the end */
    me_tensor *send_handle;
    struct me_combined *combined; /**< two micro-batches in turns; NULL: not */
    me_rounds rounds;             /**< then: of the steady steps */
} me_interleaved;

static inline void me_il_push(me_queue *q, me_tensor *x)
{
    q->items[q->tail++] = x;
}

static inline me_tensor *me_il_pop(me_queue *q)
{
    return q->items[q->head++];
}

static inline bool me_il_is_first(const me_interleaved *l)
{
    return l->p->rank == 0;
}

static inline bool me_il_is_last(const me_interleaved *l)
{
    return l->p->rank == l->p->ranks - 1;
}

static inline void me_il_bind(me_interleaved *l, me_tensor **name, me_tensor *x)
{
    me_tensor *before = *name;
    *name = x;
    me_release(l->t->e, before);
}

static inline bool me_il_is_first_stage(const me_interleaved *l, int32_t chunk)
{
    return me_il_is_first(l) && chunk == 0;
}

static inline bool me_il_is_last_stage(const me_interleaved *l, int32_t chunk)
{
    return me_il_is_last(l) && chunk == l->p->chunks - 1;
}

/** What arrives with step @p k, taken over; if something does, the slot after
 *  it is cleared for what comes next. */
static inline void me_il_arrive(me_interleaved *l, me_slots *s, int32_t k,
                                me_tensor *x)
{
    me_il_bind(l, &s->items[k % s->count], x);
    if (x != NULL) {
        me_il_bind(l, &s->items[(k + 1) % s->count], NULL);
    }
}

/** Send @p sent, of step @p k, and receive what is next for its
 *  rank. @return what was received or NULL, owned beside the queue */
me_tensor *me_il_exchange_forward(me_interleaved *l, int32_t k, me_tensor *sent,
                                  bool receives);
/** The same for the gradients of step @p k. */
me_tensor *me_il_exchange_backward(me_interleaved *l, int32_t k,
                                   me_tensor *input_grad);
/** Wait for a gradient: its handle leaves the queue, and lives on only if it is
 *  given a name. @return owned; NULL if step @p k has nothing to wait for */
me_tensor *me_il_wait_for_gradient(me_interleaved *l, int32_t k);
/** What begins to be reduced after the backward of step @p k. */
void me_il_start_reduction(me_interleaved *l, int32_t k);
/** deallocate_output_tensor() of the step before. */
void me_il_deallocate(me_interleaved *l);

/** @name Of the combined schedule
 *  @{ */
/** Forward of step @p k alone: bound to the name and put in its queue. */
void me_il_combined_forward(me_interleaved *l, int32_t k);
/** Backward of step @p k alone. @return the input's gradient, owned */
me_tensor *me_il_combined_backward(me_interleaved *l, int32_t k);
/** Step @p forward_k forward and @p backward_k backward, in turns; both results
 *  are bound to their names. @p hooks may be NULL. */
void me_il_combined_both(me_interleaved *l, int32_t forward_k,
                         int32_t backward_k, const me_plan_hooks *hooks);
/** The loop's rounds; before its first step, with @p warmup of the forwards. */
void me_il_combined_init(me_interleaved *l, int32_t warmup);
/** Steady step @p k is next. @return steps that are done with in its place */
int32_t me_il_combined_tell(me_interleaved *l, int32_t k);
/** Forwards and backwards in turns, transfers overlapped. */
void me_il_combined_steady(me_interleaved *l, int32_t warmup, int32_t steps);
/** @} */

#endif /* MEMEST_TRAIN_MEGATRON_INTERLEAVED_H */
