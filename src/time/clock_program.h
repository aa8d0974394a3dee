/**
 * @file
 * A rank's iteration as its clocks see it: stretches of launches between
 * points where it meets other ranks.
 *
 * A rank has three clocks: of the host, of the stream that computes, and of
 * the one that communicates. Each launch moves them by sums and maxima of what
 * they were, so a whole stretch is one matrix over (max, +), and equal
 * stretches (layers, micro-batches) are one.
 *
 * Times are whole nanoseconds.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TIME_CLOCK_PROGRAM_H
#define MEMEST_TIME_CLOCK_PROGRAM_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/** The clocks of a rank. */
typedef enum me_clock {
    ME_CLOCK_HOST,
    ME_CLOCK_COMPUTE,
    ME_CLOCK_COMMUNICATION,
    ME_CLOCKS
} me_clock;

/** From the end of what the card does to the host's next line. */
#define ME_SYNCHRONIZE_NS INT64_C(8000)

/** Earlier than every time that is one. */
#define ME_TIME_NEVER (INT64_MIN / 4)

/** Clock i after a stretch is the largest of clock j before it plus
 *  `after[i][j]`. */
typedef struct me_stretch {
    int64_t after[ME_CLOCKS][ME_CLOCKS];
    int64_t compute_ns;       /**< kernels */
    int64_t communication_ns; /**< collectives */
    int64_t exposed_ns;       /**< of them, while no kernel could run, if the
                                   stretch ran alone */
    int64_t host_ns;          /**< the host's own */
} me_stretch;

/** X(constant, name): what a stretch is part of. */
#define ME_TIME_PART_LIST(X)                                                   \
    X(ME_TIME_OTHER, "other")                                                  \
    X(ME_TIME_FORWARD, "forward")                                              \
    X(ME_TIME_BACKWARD, "backward")                                            \
    X(ME_TIME_WEIGHTS, "weight_gradient")                                      \
    X(ME_TIME_OPTIMIZER, "optimizer")

typedef enum me_time_part {
#define ME_TIME_PART_ENUM(constant, name) constant,
    ME_TIME_PART_LIST(ME_TIME_PART_ENUM)
#undef ME_TIME_PART_ENUM
    ME_TIME_PARTS
} me_time_part;

typedef enum me_time_item_kind {
    ME_TIME_RUN,      /**< a stretch */
    ME_TIME_EXCHANGE, /**< sends and receives with the stages beside it */
    ME_TIME_MEET,     /**< a collective over ranks of several stages */
    ME_TIME_ITEM_KINDS
} me_time_item_kind;

/** One item; what a kind does not use is zero. */
typedef struct me_time_item {
    uint8_t kind;       /**< me_time_item_kind */
    uint8_t part;       /**< me_time_part */
    uint8_t transfers;  /**< bits as in me_launch; exchange */
    uint8_t group;      /**< me_group_kind; meet */
    bool is_async;      /**< the host and the sender go on; exchange */
    bool is_queued;     /**< as in me_launch; exchange */
    int32_t chunk;      /**< action; exchange as in me_launch */
    int32_t microbatch; /**< as chunk */
    int32_t next;       /**< pipeline ranks as in me_launch; exchange */
    int32_t previous;
    int32_t first_stage; /**< of those that meet */
    uint32_t stretch;    /**< index; run */
    int64_t ns;          /**< a transfer's or the collective's own; exchange,
                             meet */
} me_time_item;

/** A rank's iteration. */
typedef struct me_time_program {
    me_stretch *stretches;
    uint32_t n_stretches;
    me_time_item *items;
    uint32_t n_items;
} me_time_program;

/** As reports write it; static. */
const char *me_time_part_name(me_time_part part);

/** Does nothing: each clock is what it was. Local. */
me_stretch me_stretch_none(void);

/** The clocks after @p stretch, in place. Local. */
void me_stretch_run(const me_stretch *stretch, int64_t clocks[ME_CLOCKS]);

#endif /* MEMEST_TIME_CLOCK_PROGRAM_H */
