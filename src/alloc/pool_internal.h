/**
 * @file
 * What the pool's files share: the record of a block, the store of records,
 * ordered sets of them, counters, and the pool itself. Nobody else includes
 * this. Each file calls those before it alone: pool_store.c, pool_free.c,
 * pool_block.c, pool_driver.c, pool_expand.c, pool_segment.c, pool.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_ALLOC_POOL_INTERNAL_H
#define MEMEST_ALLOC_POOL_INTERNAL_H

#include "alloc/pool.h"
#include "base/assert.h"
#include "base/size.h"

#define MIB (UINT64_C(1) << 20)

/** PyTorch's constants, in bytes. */
#define MIN_BLOCK         UINT64_C(512) /**< every request is a multiple of it */
#define SMALL_REQUEST     MIB           /**< largest one of the small pool */
#define SMALL_SEGMENT     (2 * MIB)     /**< segment of the small pool */
#define MIN_LARGE_SEGMENT (10 * MIB) /**< requests from here on get their own */
#define ROUND_LARGE       (2 * MIB)  /**< step of those segments */
#define TOO_LARGE         (UINT64_C(1) << 60) /**< refused without trying */

/** In the place of its stream a block of a private pool has the pool as well, so
 * that no other finds it: bits below this one, which no stream has. */
#define PRIVATE       (UINT64_C(1) << 63)
#define MEMPOOL_SHIFT 56U

/** No record. */
#define NIL UINT32_C(0)

typedef enum block_state {
    BLOCK_UNUSED,    /**< the record waits to be used again */
    BLOCK_FREE,      /**< cached */
    BLOCK_ALLOCATED, /**< the program has it */
    BLOCK_PENDING,   /**< freed, another stream still uses it */
    BLOCK_UNMAPPED,  /**< addresses of an expandable segment, no memory */
    BLOCK_EXTENT,    /**< not a block: memory that the driver gave */
    BLOCK_HOLE       /**< not a block: memory that the driver may give */
} block_state;

/**
 * A block, or an extent of the driver's. Records are known by their index, so
 * that the store can grow and a record fills one line of the cache.
 */
typedef struct block {
    uint64_t stream; /**< of a private pool see PRIVATE; of a driver's extent:
                          its chunk */
    uint64_t size;
    uint64_t address;
    uint64_t requested; /**< as asked for, without rounding */
    uint32_t prev;      /**< neighbours of the same segment */
    uint32_t next;
    uint32_t left; /**< children and parent in an ordered set; pending blocks
                      are chained by left and right */
    uint32_t right;
    uint32_t parent;
    uint32_t age_base;  /**< searches of the pool when it became free */
    uint32_t placed_at; /**< reservation of an expandable block, or the
                           driver's extent under a segment's first block */
    uint8_t state;      /**< block_state */
    uint8_t slot;       /**< ME_POOL_SMALL or ME_POOL_LARGE */
    bool is_expandable;
    uint8_t unused;
} block;

_Static_assert(sizeof(block) == 64, "a record fills one line of the cache");

/** Records in the order of stream, size and address, or stream and address. */
typedef struct block_set {
    uint32_t root;
    bool is_by_address;
} block_set;

enum {
    FREE_CLASSES = 512
};

/** Cached blocks of one stream by classes of sizes; see pool_free.c. */
typedef struct free_stream {
    uint64_t stream;
    uint64_t used[FREE_CLASSES / 64]; /**< bits of classes that hold blocks */
    block_set classes[FREE_CLASSES];
} free_stream;

/** Cached blocks in the order of stream, size and address. */
typedef struct free_set {
    free_stream **streams; /**< rising; owned, with what they point to */
    uint32_t n_streams;
    uint64_t first_stream; /**< the lowest one's, which nearly all are of */
    free_stream *first;    /**< it; NULL: there is none */
} free_set;

/** One counter; `freed` follows from the rest. */
typedef struct counter {
    uint64_t current;
    uint64_t peak;
    uint64_t allocated;
} counter;

/** Virtual addresses that an expandable segment may map. */
typedef struct reservation {
    uint64_t base;
    uint64_t size;
    uint64_t page;        /**< what is mapped at a time */
    uint32_t next_unused; /**< chain of those that were given back */
} reservation;

/** Addresses that a chunk has given back. */
typedef struct gap {
    uint64_t address;
    uint64_t size;
} gap;

/** The device's driver: where segments are placed. See pool_driver.c. */
typedef struct driver {
    uint64_t floor; /**< no chunk lies below, but those of mapped memory,
                              which ascend to `mapped_next` */
    uint64_t mapped_next;
    gap *gaps; /**< above the floor, in no order */
    uint32_t n_gaps;
    uint32_t n_gap_capacity;
    uint32_t local_memory; /**< extent of the kernels' local memory */
    uint64_t local_bytes;
    uint64_t reserve_next; /**< next address of a reservation */
    uint64_t *largest;     /**< a heap of maxima over the largest hole of each
                              chunk; NULL until the first chunk */
    uint32_t n_leaves;     /**< power of two */
    uint32_t n_chunks;     /**< chunks so far, dead ones included */
    uint32_t n_live;       /**< chunks that hold something */
    block_set holes;
} driver;

struct me_pool {
    me_pool_options options;
    uint64_t limit_bytes; /**< UINT64_MAX: no limit */

    block *blocks; /**< store of records; 0 is NIL */
    uint32_t n_blocks;
    uint32_t n_capacity;
    uint32_t unused; /**< chain of records by next */
    uint32_t n_unused;

    free_set free_blocks[ME_POOL_SLOTS];
    block_set unmapped[ME_POOL_SLOTS];
    uint32_t n_searches[ME_POOL_SLOTS]; /**< age of free blocks */
    uint32_t pending_first;
    uint32_t pending_last;
    uint32_t epoch; /**< times that all streams were waited for */

    reservation *reservations; /**< 0 is not used */
    uint32_t n_reservations;
    uint32_t n_reservation_capacity;
    uint32_t unused_reservation;
    driver driver;

    counter counters[ME_POOL_STAT_COUNT][ME_POOL_SLOTS];
    counter oversize_allocations;
    counter oversize_segments;
    uint64_t private_bytes;  /**< of segments of private pools */
    uint64_t newest_address; /**< of the segment that was taken last */
    uint64_t num_alloc_retries;
    uint64_t num_ooms;
    uint64_t num_sync_all_streams;
    uint64_t num_device_alloc;
    uint64_t num_device_free;
    me_pool_oom oom;
};

/** A request on its way through the pool. */
typedef struct request {
    uint64_t size;    /**< rounded */
    uint64_t segment; /**< what would be taken from the driver */
    uint64_t stream;
    me_pool_slot slot;
    uint32_t found; /**< the block that serves it */
    bool is_cached; /**< which is in the set of cached blocks still */
} request;

static inline bool is_private(uint64_t stream)
{
    return (stream & PRIVATE) != 0;
}

/** The CUDA stream, of whichever pool. */
static inline uint64_t cuda_stream(uint64_t stream)
{
    return is_private(stream) ? stream & ((UINT64_C(1) << MEMPOOL_SHIFT) - 1)
                              : stream;
}

/** The private pool; 0: none. */
static inline uint8_t mempool_of(uint64_t stream)
{
    return is_private(stream) ? (uint8_t)((stream & ~PRIVATE) >> MEMPOOL_SHIFT)
                              : 0;
}

static inline block *at(const me_pool *pool, uint32_t index)
{
    return &pool->blocks[index];
}

static inline void count_up(counter *c, uint64_t amount)
{
    c->current += amount;
    c->allocated += amount;
    c->peak = c->peak < c->current ? c->current : c->peak;
}

static inline void stat_up(me_pool *pool, me_pool_stat_kind kind, unsigned slot,
                           uint64_t amount)
{
    count_up(&pool->counters[kind][ME_POOL_ALL], amount);
    count_up(&pool->counters[kind][slot], amount);
}

static inline void stat_down(me_pool *pool, me_pool_stat_kind kind,
                             unsigned slot, uint64_t amount)
{
    pool->counters[kind][ME_POOL_ALL].current -= amount;
    pool->counters[kind][slot].current -= amount;
}

static inline bool is_split(const block *b)
{
    return b->prev != NIL || b->next != NIL;
}

static inline uint64_t reserved_bytes(const me_pool *pool)
{
    return pool->counters[ME_POOL_RESERVED_BYTES][ME_POOL_ALL].current;
}

/** Whether the driver has that much left. */
static inline bool has_room(const me_pool *pool, uint64_t bytes)
{
    const uint64_t capacity = pool->options.capacity_bytes;
    return capacity == 0 || reserved_bytes(pool) + bytes <= capacity;
}

/* pool_store.c: records and ordered sets of them */

/** Make room for @p count more records, so that me_pool_record() cannot fail
 * that many times. */
me_status me_pool_store_reserve(me_pool *pool, uint32_t count) ME_MUST_CHECK;

/** A cleared record out of the room that was made. */
uint32_t me_pool_record(me_pool *pool);

/** Give a record back; it is in no set. */
void me_pool_record_drop(me_pool *pool, uint32_t index);

/** Put a record into a set that it is not in. */
void me_pool_set_insert(me_pool *pool, block_set *set, uint32_t index);
/** Take a record out of the set that it is in. */
void me_pool_set_erase(me_pool *pool, block_set *set, uint32_t index);

/** First record that is not below the key, or NIL. */
uint32_t me_pool_set_lower_bound(const me_pool *pool, const block_set *set,
                                 uint64_t stream, uint64_t size,
                                 uint64_t address);

/** First record; NIL if there is none. */
uint32_t me_pool_set_first(const me_pool *pool, const block_set *set);

/** Neighbours in order; NIL at the ends. */
uint32_t me_pool_set_next(const me_pool *pool, uint32_t index);
uint32_t me_pool_set_prev(const me_pool *pool, uint32_t index);

/** Last record; NIL if there is none. */
uint32_t me_pool_set_last(const me_pool *pool, const block_set *set);

/** The record before NIL, that is the last one, or before @p index. */
uint32_t me_pool_set_before(const me_pool *pool, const block_set *set,
                            uint32_t index);

/* pool_free.c: the cached blocks */

/** Make room for blocks of @p stream. */
me_status me_pool_free_reserve(me_pool *pool, uint64_t stream) ME_MUST_CHECK;

/** Give back what the sets of cached blocks hold. */
void me_pool_free_fini(me_pool *pool);

/** Put a block into its set, or take it out; while it is there its stream,
 *  size and address stay. */
void me_pool_free_insert(me_pool *pool, uint32_t index);
void me_pool_free_erase(me_pool *pool, uint32_t index);

/** A cached block begins at another address and has another size. */
void me_pool_free_resize(me_pool *pool, uint32_t index, uint64_t address,
                         uint64_t size);

/** The smallest block of a stream that is large enough, of equals the one at
 *  the lowest address; NIL if there is none. */
uint32_t me_pool_free_find(const me_pool *pool, unsigned slot, uint64_t stream,
                           uint64_t size);

/** The largest block of a stream, and the one before a block; NIL at the
 *  beginning of the stream. */
uint32_t me_pool_free_last(const me_pool *pool, unsigned slot, uint64_t stream);
uint32_t me_pool_free_prev(const me_pool *pool, uint32_t index);

/** All blocks in order, stream after stream; NIL at the end. */
uint32_t me_pool_free_first(const me_pool *pool, unsigned slot);
uint32_t me_pool_free_next(const me_pool *pool, uint32_t index);

/* pool_block.c: trace, cached and freed blocks */

/** Cache a block. */
void me_pool_cache(me_pool *pool, uint32_t index);

/** Merge @p from, a neighbour of @p into, if it can be; the bytes it added. */
uint64_t me_pool_merge(me_pool *pool, uint32_t into, uint32_t from);

/** Complete every pending free. */
void me_pool_synchronize(me_pool *pool);

/** One entry of the trace; @p bytes as me_pool_trace says. */
void me_pool_emit(const me_pool *pool, me_pool_action action, uint64_t address,
                  uint64_t bytes, uint64_t stream);

/* pool_driver.c: addresses */

/** All addresses are free. */
void me_pool_driver_init(driver *d);
/** Give back what it holds. */
void me_pool_driver_fini(driver *d);

/** Place @p bytes; ME_ERR_OVERFLOW when there are no addresses left. */
me_status me_pool_driver_place(me_pool *pool, uint64_t bytes,
                               uint64_t *address_out, uint32_t *extent_out);

/** Give back what was placed. */
void me_pool_driver_free(me_pool *pool, uint32_t extent);

/** Addresses for an expandable segment, without memory. */
me_status me_pool_driver_reserve(me_pool *pool, uint64_t bytes,
                                 uint64_t *address_out);

/* pool_segment.c: memory from the driver and back */

/** Take a segment for @p r; ME_ERR_CAPACITY if the driver or the limit says
 * no. */
me_status me_pool_segment_take(me_pool *pool, request *r, bool is_retry);

/** Give back blocks for @p r under max_split_size; false: not enough. */
bool me_pool_release_available(me_pool *pool, const request *r);

/** Give back everything that is free as a whole. */
me_status me_pool_release_cached(me_pool *pool);

/** Give back old blocks once more than the threshold is held. */
void me_pool_collect_garbage(me_pool *pool);

/* pool_expand.c: expandable segments */

/** Map memory until @p r can be served; ME_ERR_CAPACITY if it does not fit. */
me_status me_pool_expand(me_pool *pool, request *r);

/** Unmap the whole pages inside of a free block, and give the segment's
 * addresses back if that was all of it. */
me_status me_pool_unmap(me_pool *pool, uint32_t index);

#endif /* MEMEST_ALLOC_POOL_INTERNAL_H */
