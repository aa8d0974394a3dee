/**
 * @file
 * From launches to a rank's me_time_program: each is timed by the card's rates
 * and moves the clocks; equal stretches are kept once.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TIME_RECORDER_H
#define MEMEST_TIME_RECORDER_H

#include "time/clock_program.h"
#include "time/cluster.h"
#include "time/rates.h"

/** Where the rank is and what it waits for. */
typedef struct me_time_place {
    me_time_group group[ME_GROUP_COUNT];
    const me_cluster *cluster; /**< of which the links' times are; borrowed as
                                    long as the recorder. NULL: the card's */
    me_link_path path[ME_GROUP_COUNT];   /**< with a cluster */
    bool spans_stages[ME_GROUP_COUNT];   /**< its ranks are of several pipeline
                                            stages */
    int32_t first_stage[ME_GROUP_COUNT]; /**< lowest of its ranks' */
    int32_t rank;
    int32_t stage;        /**< pipeline rank */
    int32_t stage_stride; /**< between ranks of a pipeline */
    me_cluster_layout layout;
    me_host_program program;
    int64_t loader_ns; /**< of the host for each micro-batch's data */
} me_time_place;

typedef struct me_time_recorder me_time_recorder;

/**
 * @param rates         borrowed, as long as the recorder lives
 * @param place         copied
 * @param recorder_out  owned by the caller
 * @return ME_OK or ME_ERR_NOMEM
 */
me_status me_time_recorder_create(const me_rates *rates,
                                  const me_time_place *place,
                                  me_time_recorder **recorder_out);

/** Give back; NULL is allowed. */
void me_time_recorder_destroy(me_time_recorder *recorder);

/** For me_engine_listen(): records @p iteration. */
me_launch_listener me_time_recorder_listener(me_time_recorder *recorder,
                                             int32_t iteration);

/**
 * The end: what was recorded, borrowed from the recorder.
 *
 * @return ME_OK or ME_ERR_NOMEM, whenever it came
 */
me_status me_time_recorder_finish(me_time_recorder *recorder, me_diag *diag,
                                  me_time_program *program_out);

#endif /* MEMEST_TIME_RECORDER_H */
