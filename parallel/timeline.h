/**
 * @file
 * When each action of a pipeline begins and ends.
 *
 * Every rank runs its list strictly in order. A forward of a stage needs the
 * forward of the stage before; a backward or input gradient needs its own
 * forward and the gradient of the stage after, which is there only when the
 * whole action that makes it has ended; a weight gradient needs its input
 * gradient. Sends do not occupy the sender, and links are never busy. An
 * overlapped block needs the inputs of both halves and gives both results at
 * its end.
 *
 * What an action and a transfer cost is the caller's, me_timeline_model; times
 * are whole numbers of whatever unit it uses (ticks, nanoseconds). The plain
 * model is me_ticks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_PARALLEL_TIMELINE_H
#define MEMEST_PARALLEL_TIMELINE_H

#include "parallel/pipeline_order.h"

#include <stdint.h>

/** From when to when; both in the model's unit. */
typedef struct me_span {
    int64_t start;
    int64_t end;
} me_span;

/** What a rank runs at one time: one action, or the two of an overlapped
 *  block. Borrowed from the order. */
typedef struct me_timeline_work {
    int32_t rank;
    const me_action *action; /**< the forward of a block */
    const me_action *other;  /**< the backward of a block, or NULL */
    int64_t ready;           /**< when its inputs are there, at least 0 */
    int64_t is_free;         /**< when the rank's work before ends */
} me_timeline_work;

/** A tensor between two stages on different ranks. */
typedef struct me_timeline_transfer {
    int32_t from_rank;
    int32_t to_rank;
    const me_action *action; /**< that made it */
    int64_t made;            /**< when that ended */
} me_timeline_transfer;

/**
 * What time is. Functions are called once for each work and transfer, work of
 * one rank in its order, and work after all that it needs; they may keep
 * clocks of their own behind `self`. An end must not be before its start, an
 * arrival not before `made`.
 */
typedef struct me_timeline_model {
    /** When does it run? In a block *other_out is the backward's span, which
     *  begins as the block's and is used where its result is needed. */
    me_span (*run)(void *self, const me_timeline_work *work,
                   me_span *other_out);
    /** When is it there? */
    int64_t (*arrive)(void *self, const me_timeline_transfer *transfer);
    void *self;
    bool splits_blocks; /**< a block's two actions run one after the other,
                             each when its own inputs are there */
} me_timeline_model;

/** The plain model: each kind of action has one duration. */
typedef struct me_ticks {
    int64_t forward;
    int64_t input_gradient;
    int64_t weight_gradient;
    int64_t backward;   /**< 0: input and weight gradient */
    int64_t overlapped; /**< of a block, 0: forward and backward */
    int64_t transfer;   /**< between stages on different ranks */
    bool is_serial;     /**< blocks are their two actions, one by one */
} me_ticks;

/** Ticks of a whole backward. */
int64_t me_ticks_backward(const me_ticks *ticks);
/** Forward, input gradient and weight gradient of 1, transfers of none. */
me_ticks me_ticks_default(void);

/** The model of @p ticks, which must live as long. */
me_timeline_model me_ticks_model(me_ticks *ticks);

/** Read `F=1,I=1,W=1,B=2,FB=3,comm=0`, any of them; those that are not named
 *  stay. Zero is allowed. @return ME_OK; ME_ERR_CONFIG with what is wrong */
me_status me_ticks_parse(const char *text, me_diag *diag,
                         me_ticks *ticks) ME_MUST_CHECK;

/** One rank's course. */
typedef struct me_timeline_rank {
    me_span *spans; /**< of each of its actions; 0 to 0 for what does not
                              compute; owned */
    int32_t count;
    int64_t first_start; /**< of its first action that computes */
    int64_t end;         /**< of its last */
    int64_t busy;        /**< spans added up, a block once */
    int64_t idle;        /**< makespan − busy */
    int64_t span_idle;   /**< end − first_start − busy */
} me_timeline_rank;

/** The course of a pipeline. */
typedef struct me_timeline {
    int32_t n_ranks;
    me_timeline_rank *ranks; /**< owned */
    int64_t makespan;        /**< the last end of all */
    int64_t bubble;          /**< makespan − the busiest rank's busy: what is
                                  lost where the optimizer's step waits for all
                                  ranks */
    int64_t span_bubble;     /**< the largest span_idle: what the zero-bubble
                                  papers give, lost where it does not wait */
} me_timeline;

/**
 * Run an order.
 *
 * @param order         passes me_pipeline_order_check(); sends, receives and
 *                      work on parameters are stepped over
 * @param timeline_out  to be destroyed by the caller
 * @return ME_OK; ME_ERR_CONFIG if ranks wait for each other for ever, with the
 *         cycle of waits; ME_ERR_NOMEM
 */
me_status me_timeline_create(const me_pipeline_order *order,
                             const me_timeline_model *model, me_diag *diag,
                             me_timeline **timeline_out) ME_MUST_CHECK;

/**
 * Run an order whose transfers block: a batch of sends and receives ends when
 * every rank that it talks to has come to the other end, and the tensors have
 * arrived; nothing is computed meanwhile. Blocks are their two actions.
 *
 * @param order  with transfers, as me_megatron_order_create() makes it
 * @return as me_timeline_create()
 */
me_status me_timeline_create_blocking(const me_pipeline_order *order,
                                      const me_timeline_model *model,
                                      me_diag *diag,
                                      me_timeline **timeline_out) ME_MUST_CHECK;

/** Give back a timeline; NULL is allowed. */
void me_timeline_destroy(me_timeline *timeline);

#endif /* MEMEST_PARALLEL_TIMELINE_H */
