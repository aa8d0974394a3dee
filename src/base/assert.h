/**
 * @file
 * Assertions about memest's own code, in debug builds only. What users or the
 * machine can get wrong is an me_status instead.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_ASSERT_H
#define MEMEST_BASE_ASSERT_H

#include <assert.h>
#include <stdbool.h>

#define ME_ASSERT(condition) assert(condition)

#endif /* MEMEST_BASE_ASSERT_H */
