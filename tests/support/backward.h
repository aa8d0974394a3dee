/**
 * @file
 * Backward of an operation under test, with a gradient that the caller holds.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_SUPPORT_BACKWARD_H
#define MEMEST_TESTS_SUPPORT_BACKWARD_H

#include "support/events.h"
#include "tensor/autograd.h"

/** What backward from @p root does. The root and its gradient are still
 *  variables of the running frame, so neither is freed; what was written down
 *  before is forgotten. */
static inline const char *test_backward(me_test_events *events, me_tensor *root)
{
    me_tensor *gradient = me_empty_like(events->e, "gradient", root);
    (void)me_test_events_take(events);
    me_backward(events->e, root, gradient);
    return me_test_events_take(events);
}

/** A tensor that needs no gradient. */
static inline me_tensor *test_tensor(me_engine *e, me_dtype dtype,
                                     me_shape shape)
{
    return me_empty(e, "tensor", dtype, shape);
}

#endif /* MEMEST_TESTS_SUPPORT_BACKWARD_H */
