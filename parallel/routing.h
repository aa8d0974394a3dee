/**
 * @file
 * How many tokens the experts get. Routing is data, so it is an input: counts
 * that were measured, or a rule under which all ranks fare alike. All figures
 * are in tokens that one expert gets (a token that goes to two experts counts
 * twice).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_PARALLEL_ROUTING_H
#define MEMEST_PARALLEL_ROUTING_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ME_MAX_LOCAL_EXPERTS = 1024 /**< of a rank, that memest can simulate */
};

/** One dispatch: where and when. All count from 0; `layer` those of the model. */
typedef struct me_routing_place {
    int32_t rank;   /**< of the world, that holds the experts */
    int32_t member; /**< of its expert group; files say nothing of it */
    int32_t iteration;
    int32_t layer;
    int32_t microbatch;
} me_routing_place;

/** The counts of one dispatch. */
typedef struct me_routing_row {
    me_routing_place at; /**< first, so that rows are ordered as places are */
    uint32_t number;     /**< of the line, which its counts stand by */
    int32_t line;        /**< where it stands, from 1 */
} me_routing_row;

/** A rank that lines are of. */
typedef struct me_routing_rank {
    int32_t rank;
    uint32_t begin; /**< of its rows, which end where the next one's begin */
} me_routing_rank;

/**
 * Given counts, or none: then every rank gets `imbalance` times what it would
 * get if all ranks got the same, and shares it evenly among its experts. That
 * is one rank's view (all ranks together get more than there is); 1 is a
 * routing that can be.
 */
typedef struct me_routing {
    double imbalance;
    uint32_t n_experts;     /**< counts of a row: local ones, or while it is of
                                 those that `is_routed` says, all */
    me_routing_row *rows;   /**< sorted by place; owned */
    uint32_t n_rows;        /**< 0: no counts are given */
    me_routing_rank *ranks; /**< of the rows, rising, and one more; owned */
    uint32_t n_ranks;
    uint64_t *counts; /**< owned */
    uint64_t *sent; /**< rows of each row's rank that leave it, to all experts;
                            owned; NULL: they are not known */
    uint32_t n_skewed; /**< experts of the model, of which `counts` has the
                               rows by layer; 0: it is not of this kind */
    bool is_alone;     /**< each rank's counts are from a run without its
                               peers: see me_routing_read() */
    bool is_routed;    /**< counts were given of what each rank's own tokens
                               chose */
} me_routing;

/**
 * Read counts: a line a dispatch, `iteration layer microbatch rank` and then
 * the tokens of each local expert of the rank; `#` begins a comment. A line
 * `alone` says that the ranks were measured where a stand-in took NCCL's place, so
 * that each took the others to do as it does: their counts do not add up, and a
 * rank that no line is of gets what it would get if all got the same. A line
 * `routed`, before all counts, says that they are of a rank's own tokens: how many
 * of them its router sent to each expert of the model.
 *
 * @param text         the lines
 * @param name         of the text, for errors
 * @param n_experts    local experts of a rank, and those of the model
 * @param routing_out  for me_routing_fini()
 * @return ME_OK; ME_ERR_CONFIG naming the line; ME_ERR_NOMEM
 */
me_status me_routing_read(const char *text, const char *name,
                          const uint32_t n_experts[2], me_diag *diag,
                          me_routing *routing_out) ME_MUST_CHECK;

/**
 * As me_routing_read(), from a file of any size, of which a block is held at a
 * time.
 *
 * @return ME_ERR_IO and ME_ERR_SYNTAX (a NUL byte) as well
 */
me_status me_routing_read_file(const char *path, const uint32_t n_experts[2],
                               me_diag *diag,
                               me_routing *routing_out) ME_MUST_CHECK;

/** Order of two places: by rank, iteration, layer and micro-batch. For qsort(). */
int me_routing_compare(const void *x, const void *y);

/** The row of a place; NULL: there is none. Local. */
const me_routing_row *me_routing_find(const me_routing *routing,
                                      const me_routing_place *at);

/** The counts of a row of it, `n_experts` of them; borrowed. Local. */
uint64_t *me_routing_row_counts(const me_routing *routing,
                                const me_routing_row *row);

/** Give back what it owns. */
void me_routing_fini(me_routing *routing);

/** Are there counts for @p at, or is none given at all? Local. */
bool me_routing_has(const me_routing *routing, const me_routing_place *at);

/** Is there a line of the rank? Of a rank that none is of, each expert gets the
 *  same in every dispatch. Local. */
bool me_routing_names(const me_routing *routing, int32_t rank);

/** Do both ranks get the same in every dispatch of the same iteration, layer and
 *  micro-batch, or is neither named? Local. */
bool me_routing_is_same(const me_routing *routing, int32_t rank, int32_t other);

/** Do all ranks get the same number, in all dispatches? Local. */
bool me_routing_is_uniform(const me_routing *routing);

/** Does each rank get the same number in all micro-batches? Local. */
bool me_routing_is_steady(const me_routing *routing);

/**
 * Tokens of each local expert.
 *
 * @param at          has counts
 * @param balanced    tokens that each rank would get if all got the same
 * @param n_experts   local experts
 * @param counts_out  for each of them
 */
void me_routing_counts(const me_routing *routing, const me_routing_place *at,
                       uint64_t balanced, uint32_t n_experts,
                       uint64_t *counts_out);

/** Their sum. Local. */
uint64_t me_routing_received(const me_routing *routing,
                             const me_routing_place *at, uint64_t balanced);

/** Rows that the rank sends to all experts. @return false: they are not known.
 *  Local. */
bool me_routing_sent(const me_routing *routing, const me_routing_place *at,
                     uint64_t *rows_out);

/** Part @p index of @p whole cut into @p parts as equal as can be: what one
 *  expert gets of its rank's tokens, and one rank's part of what another gets
 *  (how the sources share it is not given and decides no memory). Local. */
uint64_t me_routing_share(uint64_t whole, uint64_t parts, uint64_t index);

#endif /* MEMEST_PARALLEL_ROUTING_H */
