/**
 * @file
 * What a launcher says of the number of processes, and what is left open where
 * nobody can tell.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_RANK_COUNTS_H
#define MEMEST_CONFIG_RANK_COUNTS_H

#include "config/config.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ME_RANKS_MOST = 1 << 24, /**< ranks or nodes */
    ME_USUAL_GPUS = 8        /**< of a node */
};

/** What somebody says of the number of processes; 0: nothing. */
typedef struct me_rank_counts {
    uint64_t ranks;
    uint64_t nodes;
    uint64_t per_node;
    bool is_used;
} me_rank_counts;

/** Ranks, or nodes times ranks of a node, of which each is 1 where it is not
 *  said; 0: nothing is. */
uint64_t me_rank_counts_ranks(const me_rank_counts *said);

/**
 * Nobody can tell how many ranks there are, for this reason: the job is refused
 * with it unless something says the world size in another way, as --world-size
 * does. The first reason stays. Local.
 *
 * @return ME_OK; ME_ERR_NOMEM
 */
me_status me_config_leave_world_open(me_config *config, me_diag *diag,
                                     const char *format, ...) ME_PRINTF(3, 4);

/**
 * Has each of torchrun's ranks of a node a card? It sets that of its local rank
 * (Megatron-LM's initialize.py, torchtitan's train.py). Local.
 *
 * @param visible  cards that CUDA_VISIBLE_DEVICES lists; 0: it is not there
 * @return ME_OK; ME_ERR_CONFIG
 */
me_status me_rank_counts_check_cards(const me_rank_counts *torchrun,
                                     uint64_t visible,
                                     me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_RANK_COUNTS_H */
