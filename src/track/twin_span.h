/**
 * @file
 * Peaks that a rank may not share with another one. Of two ranks whose programs
 * differ in how many small blocks they hold for a while, the tracker of the one
 * with more of them is told when that begins and ends. The other rank's peaks
 * are the same if they do not lie in between, which is known at the end of the
 * span of time, or of the iteration.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRACK_TWIN_SPAN_H
#define MEMEST_TRACK_TWIN_SPAN_H

#include <stdbool.h>
#include <stdint.h>

/** Peaks of which each stands for itself, bytes. */
typedef struct me_twin_peaks {
    uint64_t requested; /**< of the open span of time */
    uint64_t allocated;
    uint64_t iteration; /**< requested, of the open iteration */
} me_twin_peaks;

/** All zero is a tracker that was never told. */
typedef struct me_twin_span {
    me_twin_peaks begin;  /**< when it began */
    me_twin_peaks raised; /**< to what it raised them, if nothing does since; 0:
                              it did not */
    bool has_peak;        /**< one lies in between, or another state of modules:
                              the other rank has to be looked at itself */
} me_twin_span;

/** It begins, with peaks so far. Local. */
void me_twin_span_begin(me_twin_span *span, const me_twin_peaks *peaks);

/** It ends. Local. */
void me_twin_span_end(me_twin_span *span, const me_twin_peaks *peaks);

/** The span of time ends; its iteration goes on. Local. */
void me_twin_span_close_span(me_twin_span *span, const me_twin_peaks *peaks);

/** The iteration ends. Local. */
void me_twin_span_close_iteration(me_twin_span *span, uint64_t peak);

#endif /* MEMEST_TRACK_TWIN_SPAN_H */
