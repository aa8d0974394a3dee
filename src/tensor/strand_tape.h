/**
 * @file
 * What happens in a program is told to its first strand at once and to the others
 * (strand.h) in pieces, so that the state of one allocator at a time is worked on:
 * until then it is kept here. For the files of src/tensor alone; all functions are
 * Local.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TENSOR_STRAND_TAPE_H
#define MEMEST_TENSOR_STRAND_TAPE_H

#include "tensor/script_tell.h"
#include "tensor/strand.h"

typedef struct me_strand_tape me_strand_tape;

/** Give back; NULL is allowed. */
void me_strand_tape_destroy(me_strand_tape *tape);

/** @name Keep what the first strand was told, if there are others
 *  @{ */
void me_strand_keep_event(me_engine *e, const me_event *event);
void me_strand_keep_exchange(me_engine *e, const me_exchange_event *exchange);
/** A script begins to be told; what belongs to it follows. */
void me_strand_keep_repeated(me_engine *e, const me_telling *telling,
                             const me_repeated *action);
void me_strand_keep_stretch(me_engine *e, uint32_t index);
/** An event that stands alone in it, for those who want its kind this time. */
void me_strand_keep_alone(me_engine *e, const me_event *event);
/** It has been told: all its blocks are known. */
void me_strand_keep_repeated_end(me_engine *e);
/** @} */

/** Tell the other strands what is kept. Scripts that were told may go then. */
void me_strand_tell(me_engine *e);

#endif /* MEMEST_TENSOR_STRAND_TAPE_H */
