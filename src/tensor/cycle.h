/**
 * @file
 * A loop of the program whose rounds come to repeat: micro-batches in the
 * steady state of a pipeline.
 *
 * The program marks the end of each round. If what is live then is what was
 * live at the mark before, one round later (in order of birth the same
 * modules and operations, bytes, references, categories and streams), the
 * next rounds emit the events of this one with other blocks. Those rounds need
 * not be run: observers are told the events again, with blocks renamed, so
 * that the allocator places every one of them as it always does. Tensors and
 * the tape are spared, and whoever knows what a round does to it says which
 * events it can do without.
 *
 * The program promises that a round depends on its number in nothing but the
 * micro-batch of its events and the names of its points.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TENSOR_CYCLE_H
#define MEMEST_TENSOR_CYCLE_H

#include "tensor/engine.h"

/** Where a loop stands; all zero is a loop that has not begun. */
typedef struct me_cycle {
    struct me_cycle_block *blocks; /**< at the last mark, newest first; owned */
    uint32_t n_blocks;
    uint32_t n_pending;     /**< of them, that wait to be freed */
    uint64_t place;         /**< where the program was, without its tensors */
    uint64_t position;      /**< the program's own, at the last mark but one */
    uint64_t last_position; /**< at the last mark */
    me_rename *renames;     /**< from this mark to the one before; owned */
    uint32_t n_renames;
    me_work work[ME_PHASE_COUNT];
    bool has_mark;
} me_cycle;

/** How the program names a point in a round that is not run. */
typedef struct me_cycle_names {
    /** @param times  rounds after the one in which it was @p name */
    const char *(*find)(void *self, const char *name, int32_t times);
    void *self;
} me_cycle_names;

/**
 * A round ends, and the next one is like it.
 *
 * @param position  the program's own; `position` is then that of the last mark
 * @return true: this round repeats the one before, see me_cycle_again()
 */
bool me_cycle_mark(me_engine *e, me_cycle *cycle, uint64_t position);

/** Count the round that me_cycle_mark() found @p times more. The loop is at
 *  its end for this file: it must not be marked again. */
void me_cycle_again(me_engine *e, me_cycle *cycle, int32_t times,
                    const me_cycle_names *names);

/** Give back; the loop has ended. */
void me_cycle_fini(me_engine *e, me_cycle *cycle);

#endif /* MEMEST_TENSOR_CYCLE_H */
