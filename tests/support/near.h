/**
 * @file
 * Numbers that a table has in fewer digits.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_SUPPORT_NEAR_H
#define MEMEST_TESTS_SUPPORT_NEAR_H

#include "support/test.h"

#include <math.h>

/** Is @p value within @p part of @p want? Otherwise the test ends. */
static inline void test_assert_near(double value, double want, double part)
{
    if (!(fabs(value - want) <= part * fabs(want))) {
        fail_msg("%.17g instead of %.17g", value, want);
    }
}

#endif /* MEMEST_TESTS_SUPPORT_NEAR_H */
