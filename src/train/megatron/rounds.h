/**
 * @file
 * Rounds of a loop over steps of several micro-batches each, which are repeated
 * and not run (tensor/round.h): a forward and a backward in turns belong to two
 * micro-batches, so neither is repeated by itself (repeat.h). Once two rounds in a
 * row did the same, observers are told the later ones, all but the last, and the
 * loop goes on behind them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_MEGATRON_ROUNDS_H
#define MEMEST_TRAIN_MEGATRON_ROUNDS_H

#include "tensor/round.h"

struct me_trainer;

/** What a loop is like. */
typedef struct me_round_loop {
    int32_t steps;        /**< of a round */
    int32_t microbatches; /**< of each chunk, by which a round goes on */
    int32_t end;          /**< steps from here on are not like those before */
    int32_t multiple;     /**< rounds are told in multiples of so many */
} me_round_loop;

typedef struct me_rounds {
    struct me_trainer *t;
    me_round_loop loop;
    bool is_off;
    bool is_recording;
    int32_t n_failed;    /**< recordings */
    uint64_t age;        /**< of the first block of the loop */
    me_live_blocks live; /**< when the last round began */
    me_script script;    /**< of the round before; owned */
    uint64_t calls;      /**< of collectives, when the last round began */
    int32_t forwards;    /**< then */
    int32_t n_reports;   /**< then */
    uint32_t *slots;     /**< of the reports that it has made */
} me_rounds;

/** The loop begins, with what comes before its first step; a failure is the
 *  engine's. */
void me_rounds_init(me_rounds *r, struct me_trainer *t,
                    const me_round_loop *loop);

/** Step @p step is next. @return steps that were told in its place and those after
 *  it, by which the loop's own counters are to be set on; mostly 0 */
int32_t me_rounds_tell(me_rounds *r, int32_t step);

void me_rounds_fini(me_rounds *r);

#endif /* MEMEST_TRAIN_MEGATRON_ROUNDS_H */
