/**
 * @file
 * Which stage of a pipeline stands on which rank.
 *
 * A stage is one chunk of one rank. Microbatches pass the stages of a chain
 * from the first to the last and back. One chain has all stages, but for two
 * directions: there stages 0 to P − 1 are one chain, with the first half of
 * the micro-batches, and stages P to 2P − 1 the other, with the second half;
 * stage P + k is a second copy of model stage k.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_PARALLEL_PLACEMENT_H
#define MEMEST_PARALLEL_PLACEMENT_H

#include <stdint.h>

/** X(constant, name): where chunk c of rank r of P stands. */
#define ME_PLACEMENT_LIST(X)                                                   \
    X(ME_PLACEMENT_LOOP, "loop") /* stage c P + r */                           \
    X(ME_PLACEMENT_V, "v")       /* odd chunks go back: c P + P − 1 − r */ \
    X(ME_PLACEMENT_TWO_WAYS, "two_ways") /* as v, but two chains */            \
    X(ME_PLACEMENT_OTHER, "other")       /* of a file of the user's */

typedef enum me_placement {
#define ME_PLACEMENT_ENUM(constant, name) constant,
    ME_PLACEMENT_LIST(ME_PLACEMENT_ENUM)
#undef ME_PLACEMENT_ENUM
    ME_PLACEMENT_COUNT
} me_placement;

/** Its name; static. */
const char *me_placement_name(me_placement placement);

/**
 * The stage of a chunk. Of ME_PLACEMENT_OTHER only whoever read the file
 * knows; asking for it here is a bug.
 *
 * @param ranks  P
 * @param rank   0 to P − 1
 * @param chunk  0 and up; two directions have chunks 0 and 1
 */
int32_t me_placement_stage(me_placement placement, int32_t ranks, int32_t rank,
                           int32_t chunk);

/** The rank of a stage, likewise. */
int32_t me_placement_rank(me_placement placement, int32_t ranks, int32_t stage);

/** The stage after @p stage in its chain of @p stages; −1: it is the last. */
int32_t me_placement_next(me_placement placement, int32_t stages,
                          int32_t stage);

/** The stage before; −1: it is the first. */
int32_t me_placement_previous(me_placement placement, int32_t stages,
                              int32_t stage);

/** Which part of the model a stage holds: of two directions both P + k and k
 *  hold part k. */
int32_t me_placement_model_stage(me_placement placement, int32_t stages,
                                 int32_t stage);

#endif /* MEMEST_PARALLEL_PLACEMENT_H */
