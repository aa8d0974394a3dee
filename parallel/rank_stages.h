/**
 * @file
 * The stages of each rank of an order, found at once: a rank's are few, and all
 * of them would be looked through for every rank.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_PARALLEL_RANK_STAGES_H
#define MEMEST_PARALLEL_RANK_STAGES_H

#include "parallel/pipeline_order.h"

/** Stages by rank, ascending: those of rank r begin at `first[r]` and end
 *  before `first[r + 1]`. */
typedef struct me_rank_stages {
    int32_t *stages; /**< the order's n_stages of them; owned */
    int32_t *first;  /**< n_ranks + 1 of them; owned */
} me_rank_stages;

/** @return ME_OK, ME_ERR_NOMEM */
me_status me_rank_stages_init(const me_pipeline_order *order,
                              me_rank_stages *stages_out) ME_MUST_CHECK;

/** Give back. */
void me_rank_stages_fini(me_rank_stages *stages);

#endif /* MEMEST_PARALLEL_RANK_STAGES_H */
