/**
 * @file
 * How quantities are written in text. No floating point: the same bytes give
 * the same text everywhere.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_QUANTITY_H
#define MEMEST_REPORT_QUANTITY_H

#include "base/str.h"

#include <stdint.h>

/** GiB with three decimals, half up; "-" when unknown. Local. */
void me_gib_append(me_str *text, uint64_t bytes);

/** Exact, in groups of three: "1,234,567"; "-" when unknown. Local. */
void me_count_append(me_str *text, uint64_t count);

/** part / whole in percent with one decimal and "%"; "-" for 0 / 0. Local. */
void me_percent_append(me_str *text, uint64_t part, uint64_t whole);

/** A bar of part / whole, at most @p width long, nearest length. Local. */
void me_bar_append(me_str *text, uint64_t part, uint64_t whole, unsigned width);

/** Append " in iteration 1, backward", or " in set-up" before the first. */
void me_iteration_append(me_str *text, int32_t iteration, const char *phase);

#endif /* MEMEST_REPORT_QUANTITY_H */
