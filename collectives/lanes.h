/**
 * @file
 * A program as a replay reads it: steps that complete as one, queued in
 * lanes. Every CUDA stream is a lane and so is every communicator, because
 * NCCL keeps the calls on either in order; a step stands in the lanes of all
 * its calls and begins when it is at the head of each.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_COLLECTIVES_LANES_H
#define MEMEST_COLLECTIVES_LANES_H

#include "collectives/call_log_impl.h"

/** A call of its own, a group section, or one stream's wait for another. */
typedef struct me_step {
    uint32_t first;    /**< its calls are those of [first, end) that are … */
    uint32_t end;      /**< … no waits, unless it is a wait itself */
    uint32_t position; /**< wait: steps of the awaited lane that must end */
} me_step;

typedef struct me_lanes {
    const me_call_log *log; /**< borrowed */
    me_step *steps;         /**< in program order */
    uint32_t n_steps;
    uint32_t n_streams; /**< lanes [0, n_streams) are streams … */
    uint32_t n_lanes;   /**< … and the rest communicators */
    uint32_t *start;    /**< of each lane, in `queue`; n_lanes + 1 */
    uint32_t *queue;    /**< steps, lane by lane */
} me_lanes;

/** Queue up @p log. @return ME_OK, ME_ERR_NOMEM. Local. */
me_status me_lanes_init(const me_call_log *log, me_lanes *lanes_out);

/** Give back what the lanes hold; all zero is allowed. Local. */
void me_lanes_fini(me_lanes *lanes);

/** Is the step a wait? Local. */
static inline bool me_step_is_wait(const me_lanes *lanes, const me_step *step)
{
    return lanes->log->calls[step->first].kind == ME_CALL_WAIT;
}

/** The lane of the call's communicator; that of its stream is `stream`. */
static inline uint32_t me_lanes_of_comm(const me_lanes *lanes,
                                        const me_call *call)
{
    return lanes->n_streams + call->comm;
}

#endif /* MEMEST_COLLECTIVES_LANES_H */
