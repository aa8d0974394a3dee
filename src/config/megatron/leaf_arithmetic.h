/**
 * @file
 * What Python makes of an expression of numbers, which OmegaConf's files have as
 * `${eval:'…'}`. Left out: names, comparisons, texts, and whole numbers beyond
 * 2^53.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_MEGATRON_LEAF_ARITHMETIC_H
#define MEMEST_CONFIG_MEGATRON_LEAF_ARITHMETIC_H

#include "base/str.h"

#include <stdbool.h>

/**
 * Work out `+ - * / // % **`, brackets, `int()`, `float()`, `abs()`, `round()`,
 * `min()` and `max()`. Local.
 *
 * @param number_out  appended to as Python prints it, "8" or "8.0"; its status is
 *                    the caller's to look at
 * @return false: it is something else, or no number (a division by zero)
 */
bool me_leaf_evaluate(const char *expression, me_str *number_out);

#endif /* MEMEST_CONFIG_MEGATRON_LEAF_ARITHMETIC_H */
