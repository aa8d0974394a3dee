/**
 * @file
 * The CUDA caching allocator of PyTorch 2.11, simulated, under any stream of
 * requests: which block serves what, what is held from the device, and the
 * counters that `torch.cuda.memory_stats()` shows.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_POOL_H
#define MEMEST_POOL_H

#include "memest/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct memest_pool memest_pool;

/** A block of a pool; a number is never used twice. */
typedef uint64_t memest_block;

/** How the allocator is set up. All zero: PyTorch's defaults, a card without
 *  end. Texts are borrowed for the call. */
typedef struct memest_pool_options {
    size_t struct_size;
    const char *alloc_conf; /**< as PYTORCH_CUDA_ALLOC_CONF; NULL: none */
    const char *device;     /**< a card, as `device.name`; NULL: none */
    uint64_t limit_bytes;   /**< what the allocator may hold; 0: the card's */
} memest_pool_options;

/**
 * An empty pool.
 *
 * @param options   NULL: all zero
 * @param pool_out  owned by the caller
 * @return MEMEST_OK; MEMEST_ERR_CONFIG or MEMEST_ERR_UNSUPPORTED for a setting
 *         or card; MEMEST_ERR_NOMEM
 */
MEMEST_API memest_status
memest_pool_create(const memest_pool_options *options, memest_pool **pool_out,
                   memest_error *error) MEMEST_MUST_CHECK;

/** Give back; NULL is allowed. */
MEMEST_API void memest_pool_destroy(memest_pool *pool);

/**
 * Serve a request.
 *
 * @param bytes      as the program asks for them; a request of 0 bytes gives
 *                   the block 0, which can be freed any number of times
 * @param stream     CUDA stream, 0 is the default one
 * @return MEMEST_OK; MEMEST_ERR_CAPACITY where PyTorch raises OutOfMemoryError,
 *         with the beginning of its message (memest_pool_message());
 *         MEMEST_ERR_OVERFLOW, MEMEST_ERR_NOMEM
 */
MEMEST_API memest_status memest_pool_alloc(
    memest_pool *pool, uint64_t bytes, uint64_t stream, memest_block *block_out,
    memest_error *error) MEMEST_MUST_CHECK;

/**
 * Free a block that no other stream uses: it can serve the next request.
 *
 * @return MEMEST_OK; MEMEST_ERR_CONFIG for a block that is not in use
 */
MEMEST_API memest_status memest_pool_free(memest_pool *pool, memest_block block,
                                          memest_error *error)
    MEMEST_MUST_CHECK;

/** Free a block that another stream still uses: it stays active until
 *  memest_pool_free_completed(). @return as memest_pool_free() */
MEMEST_API memest_status
memest_pool_free_requested(memest_pool *pool, memest_block block,
                           memest_error *error) MEMEST_MUST_CHECK;

/** The other streams are done with a block. @return MEMEST_OK;
 *  MEMEST_ERR_CONFIG if its free was not requested */
MEMEST_API memest_status
memest_pool_free_completed(memest_pool *pool, memest_block block,
                           memest_error *error) MEMEST_MUST_CHECK;

/** torch.cuda.empty_cache(). @return MEMEST_OK, MEMEST_ERR_NOMEM */
MEMEST_API memest_status memest_pool_empty_cache(
    memest_pool *pool, memest_error *error) MEMEST_MUST_CHECK;

/** torch.cuda.reset_peak_memory_stats(). */
MEMEST_API void memest_pool_reset_peaks(memest_pool *pool);

/** The counters over all blocks; peaks are those since the last reset. */
typedef struct memest_pool_counters {
    size_t struct_size;
    uint64_t requested_bytes;
    uint64_t requested_peak_bytes;
    uint64_t allocated_bytes;
    uint64_t allocated_peak_bytes;
    uint64_t reserved_bytes;
    uint64_t reserved_peak_bytes;
    uint64_t active_bytes; /**< allocated, and freed but still used */
    uint64_t active_peak_bytes;
    uint64_t inactive_split_bytes; /**< what fragments cannot give back */
    uint64_t inactive_split_peak_bytes;
    uint64_t allocations; /**< blocks */
    uint64_t segments;    /**< pieces that CUDA gave */
    uint64_t num_alloc_retries;
    uint64_t num_ooms;
} memest_pool_counters;

/** @return false if `struct_size` is too small to hold anything */
MEMEST_API bool memest_pool_read(const memest_pool *pool,
                                 memest_pool_counters *counters_out);

/**
 * The message of the OutOfMemoryError that PyTorch raises for the last request
 * that found no memory, whole; "" if there was none.
 *
 * @param text_out  ends with a NUL; owned by the caller, for
 *                  memest_text_destroy()
 * @return MEMEST_OK, MEMEST_ERR_NOMEM
 */
MEMEST_API memest_status
memest_pool_message(const memest_pool *pool, char **text_out,
                    memest_error *error) MEMEST_MUST_CHECK;

/** As what a replay is written. */
typedef enum memest_replay_format {
    MEMEST_REPLAY_TEXT,
    MEMEST_REPLAY_JSON,
    MEMEST_REPLAY_CSV
} memest_replay_format;

/**
 * Put a recording through a new pool, as `memest replay` does: a file that
 * `memest --events` wrote, or a memory snapshot of PyTorch as JSON.
 *
 * @param options   NULL: all zero
 * @param text_out  the counters at every point; ends with a NUL; owned by the
 *                  caller, for memest_text_destroy()
 * @return MEMEST_OK, also when the recording runs out of device memory;
 *         MEMEST_ERR_SYNTAX with the line of a call that makes no sense;
 *         MEMEST_ERR_IO, MEMEST_ERR_CONFIG, MEMEST_ERR_OVERFLOW,
 *         MEMEST_ERR_NOMEM
 */
MEMEST_API memest_status memest_replay(const memest_pool_options *options,
                                       const char *path,
                                       memest_replay_format format,
                                       char **text_out,
                                       memest_error *error) MEMEST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif /* MEMEST_POOL_H */
