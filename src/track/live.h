/**
 * @file
 * What is live, and what was live at the last peak: bytes by module, category
 * and operation. Each event costs a constant; the picture at the peak is kept
 * by remembering, per kind of block, its bytes before its first change since.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRACK_LIVE_H
#define MEMEST_TRACK_LIVE_H

#include "base/status.h"
#include "model/event.h"

#include <stdbool.h>
#include <stdint.h>

/** Blocks that share module, category and operation, and are parts of parameters
 *  or none. */
typedef struct me_live_kind {
    const char *op;
    uint32_t module;
    uint8_t category; /**< me_category */
    bool is_shard;    /**< see me_event */
    uint32_t next;    /**< the kind asked for after this one, the last time */
    uint32_t became;  /**< the kind that a block of it was then known to be */
    uint64_t serial;  /**< of the peak that the two below belong to */
    uint64_t bytes_at_peak;
    uint64_t blocks_at_peak;
    uint64_t bytes; /**< live now */
    uint64_t blocks;
} me_live_kind;

/** A block by its id. */
typedef struct me_live_block {
    uint64_t bytes;
    uint64_t born;  /**< how many allocations came before */
    uint64_t drift; /**< peak in whose picture it stays what it was */
    uint32_t kind;  /**< index of its me_live_kind */
    uint32_t epoch; /**< of me_module_stats, which alone sets it */
    bool is_live;
} me_live_block;

/** All zero is empty. */
typedef struct me_live {
    me_live_block *blocks; /**< by id */
    uint32_t n_blocks;
    me_live_kind *kinds;
    uint32_t n_kinds;
    uint32_t kinds_capacity;
    uint32_t *table; /**< open addressing: index of the kind + 1, 0: free */
    uint32_t table_mask;
    uint32_t last;      /**< the kind asked for last */
    uint64_t requested; /**< bytes live now */
    uint64_t n_allocations;
    uint64_t peak_serial;
    uint64_t peak_born; /**< allocations before the peak */
    me_status status;   /**< the first failure; it sticks */
} me_live;

/** Give back; the table is empty again. Local. */
void me_live_fini(me_live *live);

/** A block is asked for. Local. */
void me_live_alloc(me_live *live, const me_event *event);

/**
 * A block has come back.
 *
 * @return its bytes; 0 and ME_ERR_INTERNAL in the status if it is not live
 */
uint64_t me_live_free(me_live *live, const me_event *event);

/**
 * A block is now known to be of another category. Where its category had been
 * none but temporary or other, the picture at the peak learns of it as well:
 * the block was then what it is now known to be.
 */
void me_live_recategorize(me_live *live, const me_event *event);

/** The live block with this id, borrowed until the next event, or NULL. */
me_live_block *me_live_find(me_live *live, uint32_t block);

/** What is live now is the peak. */
void me_live_mark_peak(me_live *live);

/** Bytes live now, of each category. Local. */
void me_live_by_category(const me_live *live,
                         uint64_t bytes_out[ME_CATEGORY_COUNT]);

/** Bytes and blocks of one kind at the peak. */
uint64_t me_live_peak_bytes(const me_live *live, const me_live_kind *kind);
uint64_t me_live_peak_blocks(const me_live *live, const me_live_kind *kind);

#endif /* MEMEST_TRACK_LIVE_H */
