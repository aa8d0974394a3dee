/**
 * @file
 * How many of the tokens that a rank's router sent to an expert leave the rank:
 * those beyond a capacity are dropped, and others come where quantised products
 * take a multiple.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_PARALLEL_EXPERT_ROWS_H
#define MEMEST_PARALLEL_EXPERT_ROWS_H

#include "model/job.h"

/** get_capacity() (core/transformer/moe/moe_utils.py): tokens that an expert takes
 *  of @p n_tokens; their number if there is no limit. Local. */
uint64_t me_expert_capacity(const me_config *config, uint64_t n_tokens);

/** get_align_size_for_quantization(): 32 rows for MXFP8, else 16. Local. */
uint64_t me_quantization_multiple(const me_config *config);

/**
 * Rows of one expert that a rank sends: apply_router_token_dropping(), and then
 * pad_routing_map(), which pads an expert without tokens by none and takes other
 * tokens of the rank while there are any. Local.
 *
 * @param n_tokens  of the rank
 * @param chosen    of them that the router chose the expert for
 */
uint64_t me_expert_rows_sent(const me_config *config, uint64_t n_tokens,
                             uint64_t chosen);

#endif /* MEMEST_PARALLEL_EXPERT_ROWS_H */
