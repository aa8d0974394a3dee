/**
 * @file
 * Stages that run against each other, for the files of step.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TIME_STEP_PRIVATE_H
#define MEMEST_TIME_STEP_PRIVATE_H

#include "model/event.h"
#include "time/pipeline_step.h"
#include "time/transfers.h"

#include <stddef.h>

/** A transfer that an action will wait for. */
typedef struct me_awaited {
    me_link_end end;
    uint32_t number;
    int32_t chunk;
    int32_t microbatch; /**< -1: whatever comes next */
    int64_t ns;
} me_awaited;

typedef struct me_meeting {
    int32_t arrived;
    int64_t latest;
} me_meeting;

/** Meetings of one kind of group, in order. */
typedef struct me_meetings {
    me_meeting *items;
    uint32_t count;
    uint32_t capacity;
    int32_t members;
} me_meetings;

/** A stage that runs. */
typedef struct me_step_runner {
    const me_time_program *program;
    uint32_t cursor;
    bool is_posted; /**< the item at the cursor has told the others */
    bool is_optimizing;
    int64_t optimizer_begin;
    int64_t clocks[ME_CLOCKS];
    uint32_t numbers[4]; /**< of the exchange's transfers, by bit */
    me_transfers transfers;
    me_awaited *awaited; /**< in the order in which they were asked for */
    uint32_t n_awaited;
    uint32_t awaited_capacity;
    uint32_t met[ME_GROUP_COUNT]; /**< of each group, so far */
    me_time_stage *stage;
    uint32_t spans_capacity;
    int64_t first_start;
    int64_t last_end;
} me_step_runner;

typedef struct me_step_run {
    int32_t n;
    me_step_runner *runners;
    me_links *links;
    me_meetings *meetings; /**< groups x the lowest stage of one */
    me_status status;
} me_step_run;

static inline int64_t me_step_later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/** When both host and kernels are done with what they have. */
static inline int64_t me_step_card_time(const me_step_runner *r)
{
    return me_step_later(r->clocks[ME_CLOCK_HOST], r->clocks[ME_CLOCK_COMPUTE]);
}

/** … and collectives and transfers. */
static inline int64_t me_step_all_time(const me_step_runner *r)
{
    return me_step_later(me_step_card_time(r),
                         r->clocks[ME_CLOCK_COMMUNICATION]);
}

/** Room for one more; false without memory. */
bool me_step_reserve(me_step_run *s, void **items, uint32_t count,
                     uint32_t *capacity, size_t size);

/** A collective over stages: the n-th of a kind of group is the same for all
 *  its members. @return false: somebody is still to come */
bool me_step_meet(me_step_run *s, me_step_runner *r, const me_time_item *x);

/** Groups meet with as many stages as have such a group in their program. */
void me_step_count_members(me_step_run *s);

#endif /* MEMEST_TIME_STEP_PRIVATE_H */
