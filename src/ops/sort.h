/**
 * @file
 * Sorting and selecting on the device, and the scratch memory that CUB's
 * kernels ask for (aten/native/cuda/Sort.cu, Indexing.cu, Nonzero.cu).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_OPS_SORT_H
#define MEMEST_OPS_SORT_H

#include "tensor/tensor.h"

/** A radix sort of pairs of a key and a value of 8 bytes, or of keys. */
typedef struct me_radix_sort {
    uint64_t items;
    uint64_t key_bits;     /**< that are looked at */
    uint64_t key_bytes;    /**< 1, 4 or 8 */
    bool is_of_keys_alone; /**< of 8 bytes */
} me_radix_sort;

/**
 * Temporary of CUB's one-sweep radix sort of keys with 8-byte values, as
 * cub/device/dispatch/dispatch_radix_sort.cuh adds it up: histograms of 256
 * digits for each pass of 8 bits, a look-back word for each digit and tile,
 * second buffers for keys and for values if there are several passes, and
 * counters; each rounded to 256 bytes. Tiles are those of sm_90
 * (cub/device/dispatch/tuning/tuning_radix_sort.cuh).
 */
uint64_t me_radix_sort_bytes(const me_radix_sort *sort);

/** `torch.arange(n)`: int64 (n), off the tape. */
me_tensor *me_arange(me_engine *e, uint64_t n);

/** `x.argsort(descending=True)` of one-dimensional flags or float32 (n):
 *  positions (n) int64. */
me_tensor *me_argsort(me_engine *e, const me_tensor *x);

/** `x.argsort(dim=-1, descending=True, stable=True)` of rows of bytes (n, m):
 *  positions (n, m) int64. */
me_tensor *me_argsort_rows(me_engine *e, const me_tensor *x);

/**
 * What `index_put_(accumulate=True)` takes beside its result: @p n indices made
 * linear and sorted with their positions.
 *
 * @param range   indices are below it
 * @param values  that are added, copied if they have holes; NULL: they have none
 */
void me_index_accumulate(me_engine *e, uint64_t n, uint64_t range,
                         const me_tensor *values);

/** As me_index_accumulate() of values without holes, of indices that are checked
 *  before. */
void me_index_put_rows(me_engine *e, uint64_t n, uint64_t range);

/**
 * What `x[rows, columns] = values` takes where operations are deterministic
 * (index_put_with_sort_kernel()): both indices are checked, made linear and
 * sorted.
 *
 * @param n                pairs of indices
 * @param range            elements of x
 * @param has_spread_rows  each row's number stands for several pairs
 */
void me_index_put_pairs(me_engine *e, uint64_t n, uint64_t range,
                        bool has_spread_rows);

/** What the selection of @p selected of @p n elements by a mask takes
 *  (masked_select by way of nonzero): indices, dropped by the caller. @p selected
 *  has to be waited for. */
me_tensor *me_nonzero(me_engine *e, uint64_t n, uint64_t selected);

/** What `masked_scatter_` over @p n elements takes: prefix sums of the mask. */
void me_mask_prefix_sum(me_engine *e, uint64_t n);

#endif /* MEMEST_OPS_SORT_H */
