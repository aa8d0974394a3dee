/**
 * @file
 * What one data-parallel rank owns of a buffer with the distributed optimizer:
 * an equal consecutive range of every bucket, and the parts of parameters that
 * lie in it. As Megatron-LM core_v0.19.0 (_build_model_gbuf_range() and
 * _build_model_gbuf_param_range_map() of distrib_optimizer.py). All figures are
 * in elements.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_PARALLEL_SHARDS_H
#define MEMEST_PARALLEL_SHARDS_H

#include "base/status.h"
#include "parallel/buffer.h"

#include <stdint.h>

/** The part of one parameter that a rank owns; never empty. */
typedef struct me_shard {
    uint32_t param;  /**< index in the order of registration */
    uint32_t bucket; /**< index of its bucket */
    uint64_t start;  /**< first element, counted in the parameter */
    uint64_t numel;
    uint64_t buffer_start; /**< first element, counted in the buffer */
} me_shard;

/** What one rank owns; the array belongs to it. */
typedef struct me_shards {
    me_shard *items; /**< bucket by bucket, in the order of the buffer */
    uint32_t count;
    uint64_t numel;       /**< sum over `items` */
    uint64_t range_numel; /**< of the ranges: `numel` and padding */
} me_shards;

/** A range of elements of the buffer, `end` not included. */
typedef struct me_range {
    uint64_t start;
    uint64_t end;
} me_range;

/**
 * The shards of one rank. Cost: O(parameters), whatever the number of ranks.
 *
 * @param buffer      laid out for the distributed optimizer and @p ranks
 * @param ranks       ranks that share the buffer
 * @param rank        index in their group, 0 to ranks - 1
 * @param diag        filled in on failure
 * @param shards_out  to be destroyed by the caller
 * @return ME_OK, ME_ERR_NOMEM; ME_ERR_CONFIG if a bucket can't be cut into
 *         @p ranks equal parts
 */
me_status me_shards_create(const me_buffer *buffer, int32_t ranks, int32_t rank,
                           me_diag *diag, me_shards **shards_out) ME_MUST_CHECK;

/** Give back shards; NULL is allowed. */
void me_shards_destroy(me_shards *shards);

#endif /* MEMEST_PARALLEL_SHARDS_H */
