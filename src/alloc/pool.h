/**
 * @file
 * The CUDA caching allocator of PyTorch 2.11, simulated: which block serves a
 * request, when a segment is taken from the driver, what is split, merged,
 * given back, retried, and every counter that `torch.cuda.memory_stats()`
 * shows. No memory is touched; a device is a number of bytes. Private pools of
 * CUDA graphs live as long as the pool; those of torch.cuda.MemPool, which may
 * serve others when memory runs out (use_on_oom), are left out.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_ALLOC_POOL_H
#define MEMEST_ALLOC_POOL_H

#include "alloc/alloc_conf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** X(constant, name): the counters that PyTorch keeps for all blocks and for
 * each of its two pools; names as in torch.cuda.memory_stats(). */
#define ME_POOL_STAT_LIST(X)                                                   \
    X(ME_POOL_ALLOCATION, "allocation")                                        \
    X(ME_POOL_SEGMENT, "segment")                                              \
    X(ME_POOL_ACTIVE, "active")                                                \
    X(ME_POOL_INACTIVE_SPLIT, "inactive_split")                                \
    X(ME_POOL_ALLOCATED_BYTES, "allocated_bytes")                              \
    X(ME_POOL_RESERVED_BYTES, "reserved_bytes")                                \
    X(ME_POOL_ACTIVE_BYTES, "active_bytes")                                    \
    X(ME_POOL_INACTIVE_SPLIT_BYTES, "inactive_split_bytes")                    \
    X(ME_POOL_REQUESTED_BYTES, "requested_bytes")

typedef enum me_pool_stat_kind {
#define ME_POOL_STAT_ENUM(constant, name) constant,
    ME_POOL_STAT_LIST(ME_POOL_STAT_ENUM) ME_POOL_STAT_COUNT
#undef ME_POOL_STAT_ENUM
} me_pool_stat_kind;

typedef enum me_pool_slot {
    ME_POOL_ALL,
    ME_POOL_SMALL, /**< requests up to 1 MiB after rounding */
    ME_POOL_LARGE,
    ME_POOL_SLOTS
} me_pool_slot;

/** One counter as PyTorch shows it. */
typedef struct me_pool_stat {
    uint64_t current;
    uint64_t peak;      /**< since the last reset of peaks */
    uint64_t allocated; /**< sum of all increases since the last reset */
    uint64_t freed;     /**< sum of all decreases since the last reset */
} me_pool_stat;

/** All counters. */
typedef struct me_pool_stats {
    me_pool_stat stat[ME_POOL_STAT_COUNT][ME_POOL_SLOTS];
    me_pool_stat oversize_allocations;
    me_pool_stat oversize_segments;
    uint64_t num_alloc_retries;
    uint64_t num_ooms;
    uint64_t num_sync_all_streams;
    uint64_t num_device_alloc;
    uint64_t num_device_free;
} me_pool_stats;

/** X(constant, name): what a memory snapshot records. */
#define ME_POOL_ACTION_LIST(X)                                                 \
    X(ME_POOL_TRACE_ALLOC, "alloc")                                            \
    X(ME_POOL_TRACE_FREE_REQUESTED, "free_requested")                          \
    X(ME_POOL_TRACE_FREE_COMPLETED, "free_completed")                          \
    X(ME_POOL_TRACE_SEGMENT_ALLOC, "segment_alloc")                            \
    X(ME_POOL_TRACE_SEGMENT_FREE, "segment_free")                              \
    X(ME_POOL_TRACE_SEGMENT_MAP, "segment_map")                                \
    X(ME_POOL_TRACE_SEGMENT_UNMAP, "segment_unmap")                            \
    X(ME_POOL_TRACE_OOM, "oom")

typedef enum me_pool_action {
#define ME_POOL_ACTION_ENUM(constant, name) constant,
    ME_POOL_ACTION_LIST(ME_POOL_ACTION_ENUM) ME_POOL_ACTION_COUNT
#undef ME_POOL_ACTION_ENUM
} me_pool_action;

/** One entry of the allocator's trace. */
typedef struct me_pool_trace {
    me_pool_action action;
    uint64_t address; /**< oom: bytes that are free on the device */
    uint64_t bytes;   /**< alloc, free: as requested; segment: its size; oom:
                         the request after rounding */
    uint64_t stream;
} me_pool_trace;

/** A block; its number is used again after its free has completed. */
typedef uint32_t me_pool_block;

enum {
    ME_POOL_PRIVATE_MAX = 127 /**< private pools */
};

/** What a request of no bytes gets, as a null pointer in PyTorch. */
#define ME_POOL_NO_BLOCK ((me_pool_block)0)

/** What a pool is made with; all zero but `conf` is a card without end. */
typedef struct me_pool_options {
    me_alloc_conf conf;
    uint64_t capacity_bytes;     /**< what the driver can give; 0: no limit */
    uint64_t limit_bytes;        /**< what the allocator lets itself hold, as
                                set_per_process_memory_fraction does; 0: none,
                                or by conf.per_process_memory_fraction */
    uint64_t device_total_bytes; /**< the card's memory; 0: not known */
    uint64_t outside_bytes;  /**< of it, gone to others than this allocator */
    int device_index;        /**< in the text of an error */
    bool counts_bytes_alone; /**< of the counters keep those of segments, and of
                                allocated bytes over both pools: the others,
                                which are half of the work, stay 0 */
    /** Where the driver puts @p bytes, for tests that know; NULL: built in.
     * False: it refuses. */
    bool (*place)(void *self, uint64_t bytes, uint64_t *address_out);
    void *place_self;
    /** Which of @p n equally good blocks to take, for who knows better than
     * the lowest address, which comes first; NULL: nobody does. */
    size_t (*choose)(void *self, const uint64_t *addresses, size_t n);
    void *choose_self;
    /** Called for each entry of the trace; NULL: nobody looks. */
    void (*on_trace)(void *self, const me_pool_trace *entry);
    void *trace_self;
} me_pool_options;

/** The request that found no memory. */
typedef struct me_pool_oom {
    uint64_t requested_bytes; /**< as asked for */
    uint64_t tried_bytes;     /**< the segment that was not to be had: what
                                 "Tried to allocate" says */
    uint64_t stream;
    uint64_t allocated_bytes;
    uint64_t reserved_bytes;
    uint64_t free_bytes; /**< left on the device; 0 if that is not known */
    uint64_t num_alloc_retries;
} me_pool_oom;

typedef struct me_pool me_pool;

/**
 * An empty pool. Local.
 *
 * @param options   copied; place_self and trace_self stay the caller's
 * @param pool_out  the pool, to be destroyed by the caller
 * @return ME_OK or ME_ERR_NOMEM
 */
me_status me_pool_create(const me_pool_options *options,
                         me_pool **pool_out) ME_MUST_CHECK;

/**
 * A pool in the same state, which goes on apart from this one: blocks have the
 * same numbers in both. Local.
 *
 * @param clone_out  to be destroyed by the caller; it calls the same hooks
 * @return ME_OK or ME_ERR_NOMEM
 */
me_status me_pool_clone(const me_pool *pool, me_pool **clone_out) ME_MUST_CHECK;

/** Give the pool back; NULL is allowed. Local. */
void me_pool_destroy(me_pool *pool);

/**
 * Serve a request. Local.
 *
 * @param bytes      as the program asks for them; 0 gives ME_POOL_NO_BLOCK
 * @param stream     CUDA stream that the block belongs to; 0: the default one
 * @param block_out  the block, until its free has completed
 * @return ME_OK; ME_ERR_CAPACITY when PyTorch would raise OutOfMemoryError
 *         (see me_pool_last_oom()); ME_ERR_OVERFLOW when the device's address
 *         space has run out; ME_ERR_NOMEM
 */
me_status me_pool_alloc(me_pool *pool, uint64_t bytes, uint64_t stream,
                        me_pool_block *block_out) ME_MUST_CHECK;

/** What me_pool_alloc() is given for @p stream of a private pool, from 1 to
 *  ME_POOL_PRIVATE_MAX; 0: the stream itself. */
uint64_t me_pool_private_stream(uint64_t stream, uint8_t mempool);

/**
 * As me_pool_alloc() while the thread allocates to a private pool
 * (beginAllocateToPool(), a capture): from segments of that pool's own, which no
 * emptying of caches gives back, since graphs have their addresses. Caches are
 * not emptied for it either while a capture is underway.
 *
 * @param mempool  the private pool, from 1 to ME_POOL_PRIVATE_MAX; 0: the
 *                 default one, as me_pool_alloc()
 */
me_status me_pool_alloc_private(me_pool *pool, uint64_t bytes, uint64_t stream,
                                uint8_t mempool,
                                me_pool_block *block_out) ME_MUST_CHECK;

/** Free a block that no other stream uses: it can be reused at once. Local. */
void me_pool_free(me_pool *pool, me_pool_block block);

/**
 * Free a block that another stream still uses: it counts as active and cannot
 * be reused until me_pool_free_completed(). Local.
 *
 * @return a number to pass to me_pool_free_completed()
 */
uint32_t me_pool_free_requested(me_pool *pool, me_pool_block block);

/**
 * The other streams are done with a block. Local.
 *
 * @param epoch  what me_pool_free_requested() returned; if the pool has since
 *               waited for all streams, the block is free already and nothing
 *               happens
 */
void me_pool_free_completed(me_pool *pool, me_pool_block block, uint32_t epoch);

/**
 * torch.cuda.empty_cache(): wait for all streams, then give every segment
 * that is free as a whole back to the driver. Local.
 *
 * @return ME_OK or ME_ERR_NOMEM
 */
me_status me_pool_empty_cache(me_pool *pool) ME_MUST_CHECK;

/**
 * What others than this allocator hold of the card has changed: with
 * device_total_bytes, what the driver can give is the rest. Local.
 *
 * @return false if the card has not as much beside what the pool holds
 */
bool me_pool_set_outside(me_pool *pool, uint64_t outside_bytes);

/** X(constant, name): who beside this allocator takes of the device's
 * addresses: CUDA, a library or another's cudaMalloc; mapped memory, as NCCL's;
 * local memory of kernels, instead of what they had. */
#define ME_POOL_TAKER_LIST(X)                                                  \
    X(ME_POOL_TAKER_DRIVER, "driver")                                          \
    X(ME_POOL_TAKER_MAPPED, "mapped")                                          \
    X(ME_POOL_TAKER_LOCAL_MEMORY, "local_memory")

typedef enum me_pool_taker {
#define ME_POOL_TAKER_ENUM(constant, name) constant,
    ME_POOL_TAKER_LIST(ME_POOL_TAKER_ENUM) ME_POOL_TAKER_COUNT
#undef ME_POOL_TAKER_ENUM
} me_pool_taker;

/**
 * Others take addresses of the device, for ever; only where segments lie
 * follows from it. Local.
 *
 * @param bytes  one piece; of local memory, what it is larger than at first,
 *               and nothing happens where it has that much already
 * @return ME_OK, ME_ERR_OVERFLOW, ME_ERR_NOMEM
 */
me_status me_pool_take(me_pool *pool, me_pool_taker taker,
                       uint64_t bytes) ME_MUST_CHECK;

/** torch.cuda.reset_peak_memory_stats(). Local. */
void me_pool_reset_peaks(me_pool *pool);

/** All counters at once. Local. */
void me_pool_read(const me_pool *pool, me_pool_stats *stats_out);

/** One counter over both pools, now. Local. */
uint64_t me_pool_current(const me_pool *pool, me_pool_stat_kind kind);

/** Its highest value since the last reset of peaks. Local. */
uint64_t me_pool_peak(const me_pool *pool, me_pool_stat_kind kind);

/** Bytes of the segments of private pools. Local. */
uint64_t me_pool_private_bytes(const me_pool *pool);

/** Final attempts after the cache was flushed. Local. */
uint64_t me_pool_num_alloc_retries(const me_pool *pool);

/** Times that memory was asked of the driver or given back. Local. */
uint64_t me_pool_driver_calls(const me_pool *pool);

/** Segments that were given back to the driver. Local. */
uint64_t me_pool_num_given_back(const me_pool *pool);

/** Segments that were taken, and the address of the last one. Local. */
uint64_t me_pool_num_taken(const me_pool *pool);
uint64_t me_pool_newest_address(const me_pool *pool);

/** Segments of the small pool. Local. */
uint64_t me_pool_small_segments(const me_pool *pool);

/** Bytes that may still be taken; UINT64_MAX without a limit. Local. */
uint64_t me_pool_room(const me_pool *pool);

/** Place a segment that is none of the pool's, and stays. Local.
 *  @return ME_OK, ME_ERR_NOMEM, ME_ERR_OVERFLOW */
me_status me_pool_place(me_pool *pool, uint64_t bytes,
                        uint64_t *address_out) ME_MUST_CHECK;

/** Is a request served from the small pool? Local. */
bool me_pool_is_small(const me_pool *pool, uint64_t bytes);

/** The last request that found no memory; all zero if there was none. */
const me_pool_oom *me_pool_last_oom(const me_pool *pool);

/** Append the message that PyTorch raises for me_pool_last_oom(). Local. */
void me_pool_oom_text(const me_pool *pool, me_str *text);

/** A block as a memory snapshot of PyTorch's shows it. */
typedef struct me_pool_listed {
    uint64_t address;
    uint64_t bytes;
    uint64_t requested_bytes; /**< 0 of one that is cached */
    uint64_t stream;          /**< the CUDA stream */
    uint8_t mempool;          /**< its private pool; 0: the default one */
    const char *state;        /**< PyTorch's word; static */
    bool is_large; /**< of which pool, as is_expandable of its segment */
    bool is_expandable;
    bool begins_segment; /**< those that follow are of the same one */
} me_pool_listed;

/**
 * All blocks of all segments, by address. Local.
 *
 * @param blocks_out  to be given back with me_free()
 * @param n_out       of them
 * @return ME_OK or ME_ERR_NOMEM
 */
me_status me_pool_list(const me_pool *pool, me_pool_listed **blocks_out,
                       uint32_t *n_out) ME_MUST_CHECK;

/** Largest request that cached memory could serve now on @p stream. */
uint64_t me_pool_largest_free(const me_pool *pool, uint64_t stream);

/**
 * Walk everything and compare: blocks tile their segments, no two free
 * neighbours, the free sets hold exactly the free blocks in order, counters
 * equal the sums. For tests; slow. Local.
 *
 * @return ME_OK or ME_ERR_INTERNAL with what is wrong
 */
me_status me_pool_check(const me_pool *pool, me_diag *diag) ME_MUST_CHECK;

/** A request after the allocator's rounding. Local. */
uint64_t me_pool_round(const me_alloc_conf *conf, uint64_t bytes);

/** The segment that a rounded request takes from the driver. Local. */
uint64_t me_pool_segment_bytes(const me_alloc_conf *conf, uint64_t rounded);

/** Names as PyTorch has them; static. */
const char *me_pool_stat_name(me_pool_stat_kind kind);
const char *me_pool_action_name(me_pool_action action);

/** As recordings of memest name them; static. */
const char *me_pool_taker_name(me_pool_taker taker);

#endif /* MEMEST_ALLOC_POOL_H */
