/**
 * @file
 * An engine whose allocations and frees are written down, so that a test
 * compares them with a line of text:
 *
 *     +24    24 bytes are allocated
 *     -24    they are freed
 *     ~24    their free is asked for, and comes later as -24
 *     AllReduce:6    a collective of six elements
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_SUPPORT_EVENTS_H
#define MEMEST_TESTS_SUPPORT_EVENTS_H

#include "tensor/engine.h"
#include "tensor/tensor.h"

enum {
    TEST_EVENTS_TEXT = 8192,
    TEST_WORKSPACE = 1000 /**< bytes that cuBLAS takes in tests */
};

typedef struct me_test_events {
    me_engine *e; /**< owned */
    char text[TEST_EVENTS_TEXT];
    size_t length;
    bool is_waiting; /**< a free was asked for: is it completed at once? */
    uint32_t block;
    uint64_t bytes;
    uint64_t live; /**< allocated and not freed */
    uint64_t late; /**< of those, bytes whose free was asked for */
} me_test_events;

/** A Hopper card's engine with operations installed. Fails the test if not. */
void me_test_events_init(me_test_events *events);

/** As me_test_events_init(), of that card's capability, 90: 9.0. */
void me_test_events_init_on(me_test_events *events, uint32_t capability);

void me_test_events_fini(me_test_events *events);

/** What happened since the last call, separated by blanks. */
const char *me_test_events_take(me_test_events *events);

/** cmocka's setup and teardown: *state is an me_test_events. */
int me_test_events_setup(void **state);
int me_test_events_teardown(void **state);

/** A test whose *state is an me_test_events. */
#define ENGINE_TEST(name)                                                      \
    cmocka_unit_test_setup_teardown(name, me_test_events_setup,                \
                                    me_test_events_teardown)

/** Compare what happened since the last comparison. */
#define EXPECT_EVENTS(events, expected)                                        \
    assert_string_equal(me_test_events_take(events), expected)

/** A bfloat16 leaf that needs a gradient, a variable of the running frame. */
me_tensor *me_test_leaf(me_engine *e, me_shape shape);

#endif /* MEMEST_TESTS_SUPPORT_EVENTS_H */
