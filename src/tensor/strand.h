/**
 * @file
 * Strands: ranks that one program stands for, since theirs differ in short parts
 * alone, as those of ranks with other shards do. Each has observers of its own.
 * What all do is run once and told to all; where they part, the program runs the
 * part of each strand in turn, which the observers of that one alone hear. What a
 * strand makes there it has to let go of in a part of its own.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TENSOR_STRAND_H
#define MEMEST_TENSOR_STRAND_H

#include "tensor/engine.h"

enum {
    ME_STRANDS_MAX = 8,
    ME_STRANDS_ALL = -1 /**< of a new engine */
};

/**
 * What follows is told to the observers of a strand alone, and observers that are
 * added are of it. Launches are told of the first strand. Local.
 *
 * @param strand  from 0 to before ME_STRANDS_MAX; ME_STRANDS_ALL: of all
 */
void me_strand_set(me_engine *e, int strand);

/** Can the part of a strand begin or end here? No free waits for the next
 *  allocation, which would be one strand's, and no module runs, which one strand
 *  would leave. Local. */
bool me_strands_can_part(const me_engine *e);

/** Strands but the first hear of what all do in pieces. Now they have heard all of
 *  it: for who looks at their observers, or gives back a script that was told.
 *  Local. */
void me_strands_settle(me_engine *e);

#endif /* MEMEST_TENSOR_STRAND_H */
