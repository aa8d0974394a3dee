/**
 * @file
 * Which parameters lie together in a bucket of Megatron-FSDP, and where: as
 * _get_parameter_groups() and build_data_parallel_buffer_index() of Megatron-LM
 * core_v0.19.0 (distributed/fsdp/src/megatron_fsdp/param_and_grad_buffer.py).
 * All figures are in elements.
 *
 * A rank's part of a parameter has whole rows, so that it is a tensor: a bucket
 * is cut at multiples of its chunk factor, which all of its rows divide.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_PARALLEL_FSDP_BUCKETS_H
#define MEMEST_PARALLEL_FSDP_BUCKETS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ME_NO_FSDP_UNIT = -1
};

/** A parameter as the model registers it. */
typedef struct me_fsdp_bucket_param {
    uint64_t numel;
    uint64_t row_numel; /**< product of all dimensions but the first */
    int32_t unit;       /**< that gathers it, or ME_NO_FSDP_UNIT */
    uint32_t kind;      /**< of type and of who shares it: no bucket has two */
    bool is_shared_embedding; /**< a bucket of its own */
} me_fsdp_bucket_param;

/** One parameter in its bucket. */
typedef struct me_fsdp_item {
    uint32_t param; /**< index in the order of registration */
    uint64_t start; /**< first element in the bucket */
    uint64_t numel;
} me_fsdp_item;

/** One bucket. */
typedef struct me_fsdp_bucket {
    int32_t unit;
    uint32_t kind;
    uint64_t chunk_factor;
    uint64_t unpadded_numel; /**< up to its last parameter's end */
    uint32_t first_item;
    uint32_t n_items;
} me_fsdp_bucket;

/** All buckets; the arrays belong to it. */
typedef struct me_fsdp_buckets {
    me_fsdp_bucket *buckets; /**< numbered as Megatron-FSDP numbers them */
    uint32_t count;
    me_fsdp_item *items; /**< bucket by bucket, in the bucket's order */
    uint32_t n_items;
} me_fsdp_buckets;

/** The part of a parameter that a rank owns. */
typedef struct me_fsdp_slice {
    uint64_t start; /**< first element, counted in the parameter */
    uint64_t numel; /**< 0: nothing */
} me_fsdp_slice;

/**
 * Lay out the buckets.
 *
 * @param params        in the order of registration
 * @param bucket_numel  outside of units a bucket closes once it holds so many;
 *                      0: never
 * @param diag          filled in on failure
 * @param buckets_out   to be destroyed by the caller
 * @return ME_OK or ME_ERR_NOMEM
 */
me_status me_fsdp_buckets_create(const me_fsdp_bucket_param *params,
                                 uint32_t n_params, uint64_t bucket_numel,
                                 me_diag *diag,
                                 me_fsdp_buckets **buckets_out) ME_MUST_CHECK;

/** Give them back; NULL is allowed. */
void me_fsdp_buckets_destroy(me_fsdp_buckets *buckets);

/** Elements of a bucket that @p ranks share: cut into equal parts of whole
 *  chunks, unless @p is_padded is false (no_shard). */
uint64_t me_fsdp_bucket_numel(const me_fsdp_bucket *bucket, uint64_t ranks,
                              bool is_padded);

/** What rank @p rank of @p ranks owns of @p item, in a bucket of @p numel. */
me_fsdp_slice me_fsdp_slice_of(const me_fsdp_item *item, uint64_t numel,
                               uint64_t ranks, uint64_t rank);

#endif /* MEMEST_PARALLEL_FSDP_BUCKETS_H */
