/**
 * @file
 * cmocka, with what it needs before it. Every test includes this and never
 * <cmocka.h> itself, whose four prerequisites a sorted include list reorders.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_SUPPORT_TEST_H
#define MEMEST_TESTS_SUPPORT_TEST_H

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#endif /* MEMEST_TESTS_SUPPORT_TEST_H */
