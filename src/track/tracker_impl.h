/**
 * @file
 * The inside of a tracker, shared by the file that watches (tracker.c) and the
 * one that writes down what was seen (tracker_finish.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRACK_TRACKER_IMPL_H
#define MEMEST_TRACK_TRACKER_IMPL_H

#include "track/course.h"
#include "track/live.h"
#include "track/module_stats.h"
#include "track/quiet.h"
#include "track/tracker.h"
#include "track/twin_span.h"

#include <stdbool.h>
#include <stdint.h>

/** The cause of an iteration's peak. */
typedef struct me_peak_cause {
    const char *op;
    uint32_t module;
    int32_t microbatch;
    uint8_t phase;
    bool is_shard; /**< see me_event */
} me_peak_cause;

/** Like blocks at a peak, paths not yet folded. */
typedef struct me_peak_part {
    const char *op;
    uint32_t module;
    uint8_t category;
    bool is_shard; /**< see me_event */
    uint64_t bytes;
    uint64_t blocks;
} me_peak_part;

typedef struct me_seen_iteration {
    int32_t iteration;
    uint64_t peak_requested;
    me_peak_cause cause;
    me_peaks peaks;
    me_peaks phases[ME_PHASE_COUNT];
    bool has_phase[ME_PHASE_COUNT];
    uint64_t reserved_ever; /**< the most since the beginning, at its end */
    uint64_t device_bytes;  /**< with reserved_ever */
    me_peak_part *parts;    /**< what was live at its peak; owned */
    uint32_t n_parts;
} me_seen_iteration;

struct me_tracker {
    const me_module_tree *tree;
    me_pool_counters pool;
    me_device_counter device;
    me_live live;
    me_module_stats modules;
    me_quiet quiet;
    me_twin_span twin_span;
    uint64_t span_requested; /**< peak since the span began */
    uint64_t open_peak;      /**< of the open iteration; UINT64_MAX: none */
    uint8_t phase;
    bool is_steady_over; /**< the steady iteration's modules are final */
    bool has_totals;     /**< and nothing else: see me_tracker_keep_totals() */
    me_peaks since_point;
    me_peaks now; /**< when the last span ended */
    me_course course;
    uint64_t reserved_ever;
    me_seen_iteration *iterations; /**< the last one may be open */
    uint32_t n_iterations;
    uint32_t iterations_capacity;
    me_point_result *points; /**< names are borrowed */
    uint32_t n_points;
    uint32_t points_capacity;
    me_volume_result volume[ME_GROUP_COUNT][ME_COLLECTIVE_COUNT];
    uint32_t *places;         /**< of modules by path, at the end; owned */
    me_result_common *common; /**< of all results, at the end; held */
    const me_shard_modules *shards; /**< at the end; borrowed; NULL: its own */
    me_status status;               /**< the first failure; it sticks */
};

/** So much is requested now: a peak, maybe, of the span and of the open iteration.
 *  For who counts totals. Local. */
void me_tracker_raise(me_tracker *tracker, uint64_t requested);

/** Add a call of the steady iteration to its group's volume. Local. */
void me_tracker_count_call(me_tracker *tracker, const me_event *event);

/** The same for the sends and receives of an exchange of rows. Local. */
void me_tracker_count_exchange(me_tracker *tracker,
                               const me_exchange_event *exchange);

/** Close the open iteration, if one is open. Local. */
void me_tracker_close_iteration(me_tracker *tracker);

#endif /* MEMEST_TRACK_TRACKER_IMPL_H */
