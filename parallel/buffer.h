/**
 * @file
 * Where parameters lie in the contiguous buffer of a data-parallel wrapper,
 * and the buckets that it is reduced and gathered in.
 *
 * As Megatron-LM core_v0.19.0 lays them out: without the distributed optimizer
 * _compute_default_per_buffer_param_layout() of param_and_grad_buffer.py, with
 * it _compute_per_buffer_param_layout() of distrib_optimizer.py. All figures
 * are in elements; parameter and gradient buffer share one layout.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_PARALLEL_BUFFER_H
#define MEMEST_PARALLEL_BUFFER_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/** A parameter as the model registers it. */
typedef struct me_buffer_param {
    uint64_t numel;
    bool is_shared_embedding; /**< a bucket of its own */
} me_buffer_param;

/** What a layout depends on besides the parameters. */
typedef struct me_buffer_rules {
    int32_t shard_ranks; /**< ranks that a bucket is cut for: data x context,
                                 or expert data */
    bool is_distributed; /**< distributed optimizer: starts and ends are
                                 aligned */
    bool pads_for_bandwidth; /**< bucket ends to multiples of 65,536 as well */
    uint64_t bucket_numel;   /**< a bucket closes once it holds so many; 0: one
                                 bucket */
} me_buffer_rules;

/** One parameter in the buffer. */
typedef struct me_slot {
    uint32_t param;  /**< index in the order of registration */
    uint32_t bucket; /**< index of the bucket it is in */
    uint64_t start;  /**< first element in the buffer */
    uint64_t numel;
} me_slot;

/** One bucket: elements `start` to `end` - 1. */
typedef struct me_bucket {
    uint64_t start;
    uint64_t end;            /**< where the next one starts */
    uint64_t unpadded_numel; /**< up to its last parameter's end */
    uint32_t first_slot;
    uint32_t n_slots;
} me_bucket;

/** A layout; its arrays belong to it. */
typedef struct me_buffer {
    uint64_t numel; /**< of the whole buffer, padding included */
    me_slot *slots; /**< in the order of the buffer */
    uint32_t n_slots;
    me_bucket *buckets;
    uint32_t n_buckets;
} me_buffer;

/** What decides how large buckets are. */
typedef struct me_bucket_choice {
    bool overlaps_reduction; /**< gradients are reduced during backward */
    int32_t pipeline_rank;
    int32_t chunk;
    int32_t shard_ranks;  /**< data x context */
    uint64_t given_numel; /**< by the user, 0: not given */
    bool gathers_in_step; /**< the first chunk's parameters during the
                               optimizer's step */
} me_bucket_choice;

/**
 * Elements after which a bucket closes, for me_buffer_rules.bucket_numel: only
 * the first chunk of the first pipeline rank has more than one bucket, and only
 * with overlapped reduction and without a gather during the optimizer's step.
 * Source: resolve_ddp_bucket_size() and get_model() in training.py.
 *
 * @return elements; 0: one bucket for all
 */
uint64_t me_bucket_numel(const me_bucket_choice *choice);

/**
 * Elements that a bucket's end is a multiple of: lcm(ranks, 128), or
 * lcm(ranks, 128, 65536). Source: bucket_end_divisor() in param_layout.py.
 *
 * @return 1 without the distributed optimizer
 */
uint64_t me_bucket_divisor(const me_buffer_rules *rules);

/**
 * Lay out a buffer. Cost: O(parameters).
 *
 * @param params      in the order of registration, used during the call only
 * @param n_params    how many; 0 gives an empty buffer without buckets
 * @param rules       used during the call only
 * @param diag        filled in on failure
 * @param buffer_out  the layout, to be destroyed by the caller
 * @return ME_OK, ME_ERR_NOMEM, ME_ERR_OVERFLOW, ME_ERR_CONFIG for rules that
 *         make no sense
 */
me_status me_buffer_create(const me_buffer_param *params, uint32_t n_params,
                           const me_buffer_rules *rules, me_diag *diag,
                           me_buffer **buffer_out) ME_MUST_CHECK;

/** Give back a layout; NULL is allowed. */
void me_buffer_destroy(me_buffer *buffer);

#endif /* MEMEST_PARALLEL_BUFFER_H */
