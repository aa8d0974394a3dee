/**
 * @file
 * What a rank's training keeps in the host's memory instead of its card's.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_MODEL_HOST_MEMORY_H
#define MEMEST_MODEL_HOST_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/** What for. */
typedef enum me_host_use {
    ME_HOST_PARAMETERS,
    ME_HOST_GRADIENTS,
    ME_HOST_OPTIMIZER_STATE,
    ME_HOST_ACTIVATIONS,
    ME_HOST_USES
} me_host_use;

/** The most that each use holds; temporaries that are not pinned are left
 *  out. */
typedef struct me_host_memory {
    uint64_t bytes[ME_HOST_USES];
    uint64_t pinned_bytes; /**< as PyTorch's allocator of pinned memory takes
                                it: each block is a power of two, and one that
                                is free serves the next request of its size but
                                never goes back
                                (aten/core/CachingHostAllocator.h) */
    uint64_t peak_bytes;   /**< the most of all uses at once, pinned ones in
                                their blocks */
} me_host_memory;

/** Does the job keep anything there? */
static inline bool me_host_memory_is_used(const me_host_memory *host)
{
    bool is_used = false;
    for (int i = 0; i < ME_HOST_USES; i++) {
        is_used = is_used || host->bytes[i] > 0;
    }
    return is_used;
}

#endif /* MEMEST_MODEL_HOST_MEMORY_H */
