/**
 * @file
 * The caching allocator's settings: what PYTORCH_CUDA_ALLOC_CONF holds, and
 * the strict reader of that string. Keys and limits are PyTorch 2.11's.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_ALLOC_ALLOC_CONF_H
#define MEMEST_ALLOC_ALLOC_CONF_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ME_ALLOC_CONF_INTERVALS = 16 /**< 1 MiB, 2 MiB, … 32 GiB */
};

/** No limit: every block may be split. */
#define ME_ALLOC_CONF_UNLIMITED UINT64_MAX

/** Settings that change what the allocator holds. */
typedef struct me_alloc_conf {
    uint64_t max_split_bytes; /**< blocks from here on are never split */
    uint64_t max_non_split_rounding_bytes;
    uint64_t large_segment_bytes; /**< segment of a request below 10 MiB */
    /** divisions between powers of two, by floor(log2(bytes / 1 MiB)) */
    uint64_t roundup_power2_divisions[ME_ALLOC_CONF_INTERVALS];
    /** The two fractions are doubles because PyTorch's arithmetic is: the
     * limit is the truncated product with a number of bytes. */
    double garbage_collection_threshold; /**< 0: off */
    double per_process_memory_fraction;  /**< negative: not set */
    bool expandable_segments;
    bool is_async_backend; /**< backend:cudaMallocAsync, not modelled */
} me_alloc_conf;

/** The settings of an empty string. Local. */
me_alloc_conf me_alloc_conf_default(void);

/**
 * Read a settings string such as
 * `expandable_segments:True,max_split_size_mb:128`. Local.
 *
 * Keys that do not change sizes (`pinned_…`, `release_lock_on_cudamalloc`, …)
 * are checked and skipped.
 *
 * @param text      the string; NULL and "" give the defaults
 * @param diag      says which key or value is wrong; may be NULL
 * @param conf_out  the settings; untouched on failure
 * @return ME_OK, ME_ERR_CONFIG for an unknown key, a value that is not one or
 *         is out of range, ME_ERR_UNSUPPORTED for the asynchronous backend
 */
me_status me_alloc_conf_parse(const char *text, me_diag *diag,
                              me_alloc_conf *conf_out) ME_MUST_CHECK;

/**
 * What the allocator lets itself hold: @p limit_bytes if that is not 0, else
 * the setting's fraction of the card, as set_per_process_memory_fraction().
 * Local.
 *
 * @param device_total_bytes  the card's memory; 0: not known, and no fraction
 *                            of it is
 * @return 0: no limit
 */
uint64_t me_alloc_conf_limit_bytes(const me_alloc_conf *conf,
                                   uint64_t limit_bytes,
                                   uint64_t device_total_bytes);

#endif /* MEMEST_ALLOC_ALLOC_CONF_H */
