/**
 * @file
 * Which of several equal blocks served each request of a recording. The pool
 * takes the one at the lowest address; where the driver had put the segments no
 * recording says, but in PyTorch's an id stands for an address, and one that
 * comes back says where it is. A search: of blocks that nothing tells apart one
 * is tried; where an id contradicts, the search goes back to the last choice
 * that the contradiction can come from, and takes another. Where none agrees,
 * cached segments have gone back, which no recording of allocations and frees
 * says either: an id then comes where a block was, or is served by none that was
 * cached.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_ALLOC_REPLAY_SEARCH_H
#define MEMEST_ALLOC_REPLAY_SEARCH_H

#include "alloc/pool.h"
#include "alloc/replay_calls.h"

#include <stdbool.h>
#include <stdint.h>

/** X(constant, name): how a search ended. */
#define ME_SEARCH_VERDICT_LIST(X)                                              \
    /** the lowest address of the driver's model each time */                  \
    X(ME_SEARCH_NOTHING, "modelled")                                           \
    /** other choices, with which every id agrees */                           \
    X(ME_SEARCH_AGREES, "recorded")                                            \
    /** there are none; up to a call they agree */                             \
    X(ME_SEARCH_CONTRADICTS, "contradicted")                                   \
    /** the bound on work was reached; up to a call they agree */              \
    X(ME_SEARCH_GIVEN_UP, "given up")

typedef enum me_search_verdict {
#define ME_SEARCH_VERDICT_ENUM(constant, name) constant,
    ME_SEARCH_VERDICT_LIST(ME_SEARCH_VERDICT_ENUM)
#undef ME_SEARCH_VERDICT_ENUM
} me_search_verdict;

enum {
    ME_SEARCH_MAX_RELEASED = 64
};

/** What it found. */
typedef struct me_search_result {
    me_search_verdict verdict;
    uint16_t *chosen;  /**< of the equal blocks, lowest address first, at each
                          request that found more than one; owned */
    uint32_t n_chosen; /**< up to the last call that agrees */
    uint32_t n_calls;  /**< that agree */
    uint32_t released[ME_SEARCH_MAX_RELEASED]; /**< calls, rising, before which
                          cached segments must have gone back */
    uint32_t n_released;
    uint64_t n_steps; /**< calls that were tried, and more for going back */
} me_search_result;

/**
 * Search. Local.
 *
 * @param options    of the pool, without hooks
 * @param max_steps  calls to try before giving up
 * @param result_out to be given back with me_search_result_fini()
 * @return ME_OK or ME_ERR_NOMEM
 */
me_status me_replay_search(const me_pool_options *options,
                           const me_replay_calls *calls, uint64_t max_steps,
                           me_search_result *result_out) ME_MUST_CHECK;

/** A verdict's name; static. */
const char *me_search_verdict_name(me_search_verdict verdict);

void me_search_result_fini(me_search_result *result);

#endif /* MEMEST_ALLOC_REPLAY_SEARCH_H */
