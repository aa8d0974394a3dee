/**
 * @file
 * A small training job as a stream of events, made by hand: what a tracker or
 * a report says about it can be worked out with a pencil.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_SUPPORT_STREAM_H
#define MEMEST_TESTS_SUPPORT_STREAM_H

#include "model/event.h"
#include "tensor/module.h"

#include <stddef.h>

enum {
    TEST_MODULES = 8
};

/** Keeps what every event repeats, and hands events to observers. */
typedef struct me_test_stream {
    me_observer observers[2];
    size_t n_observers;
    uint8_t phase;
    int32_t iteration;
    int32_t microbatch;
    uint32_t module;
    uint64_t scale; /**< bytes of every block times this; 0: 1 */
} me_test_stream;

/** root, decoder(1), layers(2), 0(3), 0.mlp(4), 1(5), 1.mlp(6), head(7);
 * each mlp has 10 parameters of 2 bytes, the head 5. */
extern const me_module_tree me_stream_tree;

void me_stream_alloc(me_test_stream *s, uint32_t block, uint64_t bytes,
                     me_category category, const char *op);
void me_stream_free(me_test_stream *s, uint32_t block, uint64_t bytes);
void me_stream_recategorize(me_test_stream *s, uint32_t block,
                            me_category before, me_category after);
void me_stream_enter(me_test_stream *s, uint32_t module);
void me_stream_leave(me_test_stream *s);
void me_stream_phase(me_test_stream *s, me_phase phase);
void me_stream_iteration(me_test_stream *s, int32_t iteration);
/** An action of chunk @p chunk; NULL: it ends. */
void me_stream_action(me_test_stream *s, const char *name, int32_t chunk);
void me_stream_point(me_test_stream *s, const char *name);

/**
 * Set-up and two iterations of one micro-batch:
 *
 * block  bytes  what                                    live after it
 *     1    100  parameters (set-up)                     100
 *     2     50  gradients (set-up)                      150; model_built
 *   iteration i:
 *     3    200  layer 0 mlp, matmul, activation later   350
 *     4     30  layer 0 mlp, temporary, freed           380, 350
 *     5    200  layer 1 mlp, matmul, activation later   550
 *   backward:
 *     6     70  layer 1 mlp, temporary, freed           620 (the peak)
 *     5 freed 350, 7: 70 layer 0 mlp, temporary         420
 *     7, 3 freed                                        150; finalize_begin
 *   optimizer, iteration 0 only:
 *     8     80  optimizer state                         230
 */
void me_stream_play(me_test_stream *s);

#endif /* MEMEST_TESTS_SUPPORT_STREAM_H */
