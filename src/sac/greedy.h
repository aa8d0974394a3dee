/**
 * @file
 * In which order a selective checkpoint of a module gives up its operations'
 * results: most memory for the least time first, as PyTorch's SACEstimator does
 * (torch/distributed/_tools/sac_estimator.py, SACGreedyOrderMeta and MSPS).
 *
 * Operations in place form groups with the one that made the storage; all random
 * ones are one group. A group is stored or recomputed as a whole.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SAC_GREEDY_H
#define MEMEST_SAC_GREEDY_H

#include "sac/int_set.h"
#include "sac/stats.h"

enum {
    ME_SAC_NO_OP = -1
};

/** An operation, or a group under its first one. */
typedef struct me_sac_candidate {
    int32_t op;
    uint64_t bytes;
    double runtime_ms;
    double bytes_per_ms; /**< the largest double where no time is taken */
} me_sac_candidate;

/** All zero is an empty one. */
typedef struct me_sac_greedy {
    me_int_set recomputed; /**< always: what is view-like */
    me_int_set stored;     /**< always: heads of groups */
    me_int_set *groups;    /**< by operation: the members of the group in place
                                whose head it is; empty of others; owned */
    uint32_t n_ops;
    int32_t random_head;          /**< the first random one, or ME_SAC_NO_OP */
    me_int_set random;            /**< all random ones */
    me_sac_candidate *candidates; /**< in the order they are given up; owned */
    uint32_t n_candidates;
} me_sac_greedy;

/**
 * The order for @p stats, which me_sac_stats_finish() left. Local.
 *
 * As in PyTorch, whose condition takes `&` for `and`, a group in place with
 * random members is stored under stores_random only if their number is odd.
 *
 * @param greedy_out  to be given back by me_sac_greedy_fini()
 * @return ME_OK or ME_ERR_NOMEM
 */
me_status me_sac_greedy_init(me_sac_greedy *greedy_out,
                             const me_sac_stats *stats,
                             me_diag *diag) ME_MUST_CHECK;

/** Give back what it owns; all zero is allowed. */
void me_sac_greedy_fini(me_sac_greedy *greedy);

/** Put @p op, and the group that it leads, into @p set, in Python's order. */
void me_sac_greedy_add_group(const me_sac_greedy *greedy, int32_t op,
                             me_int_set *set);

/** Bytes and milliseconds of the operations of @p set, added in its order. */
void me_sac_sum(const me_sac_stats *stats, const me_int_set *set,
                uint64_t *bytes_out, double *runtime_ms_out);

#endif /* MEMEST_SAC_GREEDY_H */
