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
#ifndef MEMEST_TRACK_OWN_H
#define MEMEST_TRACK_OWN_H

#include <stdbool.h>
#include <stdint.h>

/** Peaks of which each stands for itself, bytes. */
typedef struct me_own_peaks {
    uint64_t requested; /**< of the open span of time */
    uint64_t allocated;
    uint64_t iteration; /**< requested, of the open iteration */
} me_own_peaks;

/** All zero is a tracker that was never told. */
typedef struct me_own {
    me_own_peaks begin;  /**< when it began */
    me_own_peaks raised; /**< to what it raised them, if nothing does since; 0:
                              it did not */
    bool has_peak;       /**< one lies in between, or another state of modules:
                              the other rank has to be looked at itself */
} me_own;

/** It begins, with peaks so far. Local. */
void me_own_begin(me_own *own, const me_own_peaks *peaks);

/** It ends. Local. */
void me_own_end(me_own *own, const me_own_peaks *peaks);

/** The span of time ends; its iteration goes on. Local. */
void me_own_close_span(me_own *own, const me_own_peaks *peaks);

/** The iteration ends. Local. */
void me_own_close_iteration(me_own *own, uint64_t peak);

#endif /* MEMEST_TRACK_OWN_H */
