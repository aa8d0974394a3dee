/**
 * @file
 * Exchange of rows among the ranks that share the experts
 * (core/tensor_parallel/mappings.py: _AllToAll, and gather and reduce-scatter
 * of unequal parts).
 *
 * R rows reach an expert rank of a layer, r of them this one of the tensor
 * ranks that an expert is cut over; how R is shared among those is not given and
 * taken as even.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_ALL_TO_ALL_H
#define MEMEST_NN_MEGATRON_ALL_TO_ALL_H

#include "nn/nn.h"

/** Which rows travel: those of a layer's tokens. */
typedef struct me_token_exchange {
    const me_nn *nn;
    int32_t layer;     /**< of the model, from 0; that of a first pass */
    uint64_t balanced; /**< r if all ranks got the same */
    bool is_fixed;     /**< they do, whatever the routing */
    uint64_t most;     /**< rows that an expert takes; 0: any number */
} me_token_exchange;

/** R of this rank. */
uint64_t me_expert_rows(const me_token_exchange *exchange);

/** Rows of each local expert of this rank, which R is the sum of. */
void me_expert_counts(const me_token_exchange *exchange, uint64_t *counts_out);

/** Rows that this rank sends to all experts: as they were counted; of one rank
 *  what it gets; where some are dropped and it is not said whose, as many as all
 *  ranks send on average. */
uint64_t me_sent_rows(const me_token_exchange *exchange);

/** r of tensor rank @p tensor_rank of this rank's. */
uint64_t me_arriving_rows(const me_token_exchange *exchange,
                          int32_t tensor_rank);

/**
 * Rows to the ranks of their experts, or back.
 *
 * @param x         (rows, …); seen once more if there is one rank
 * @param exchange  lives as long as the tape
 * @param rows      that arrive
 */
me_tensor *me_all_to_all(me_tensor *x, const me_token_exchange *exchange,
                         bool is_back, uint64_t rows);

/** (r, …) of all tensor ranks to (R, …); backward reduces and scatters. */
me_tensor *me_gather_expert_rows(me_tensor *x,
                                 const me_token_exchange *exchange);

/** (R, …) summed over tensor ranks to (r, …); backward gathers. */
me_tensor *me_reduce_scatter_expert_rows(me_tensor *x,
                                         const me_token_exchange *exchange);

#endif /* MEMEST_NN_MEGATRON_ALL_TO_ALL_H */
