/**
 * @file
 * Whether a rank has the same peaks as its twin (run/twin.h), whose program
 * differs only in holding fewer small blocks for a while. The rank's tracker is
 * told when that twin span begins and ends. If no peak lies within, the twin's
 * peaks are equal; this is settled when the span of time, or the iteration,
 * ends.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRACK_TWIN_SPAN_H
#define MEMEST_TRACK_TWIN_SPAN_H

#include <stdbool.h>
#include <stdint.h>

/** The peaks that are compared, in bytes. */
typedef struct me_twin_peaks {
    uint64_t requested; /**< of the open span of time */
    uint64_t allocated;
    uint64_t iteration; /**< requested, of the open iteration */
} me_twin_peaks;

/** All zero is a tracker without twin spans. */
typedef struct me_twin_span {
    me_twin_peaks begin;  /**< at the beginning of the twin span */
    me_twin_peaks raised; /**< what the twin span raised them to, if nothing has
                             raised them since; 0: it did not */
    bool has_peak; /**< a peak lies within, or a change of modules: the twin
                      must be simulated itself */
} me_twin_span;

/** A twin span begins; @p peaks so far. Local. */
void me_twin_span_begin(me_twin_span *span, const me_twin_peaks *peaks);

/** The twin span ends. Local. */
void me_twin_span_end(me_twin_span *span, const me_twin_peaks *peaks);

/** The span of time ends; its iteration goes on. Local. */
void me_twin_span_close_span(me_twin_span *span, const me_twin_peaks *peaks);

/** The iteration ends. Local. */
void me_twin_span_close_iteration(me_twin_span *span, uint64_t peak);

#endif /* MEMEST_TRACK_TWIN_SPAN_H */
