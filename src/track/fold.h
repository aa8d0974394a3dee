/**
 * @file
 * Writes many like module paths as one: "decoder.layers.0-31.mlp" for the
 * MLPs of 32 layers. Two paths are alike when they differ in numbers only.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRACK_FOLD_H
#define MEMEST_TRACK_FOLD_H

#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Order paths so that like ones are neighbours and, among those, numbers rise
 * as numbers. Local.
 *
 * @return below, equal to or above 0 as for strcmp(); 0 only for equal paths
 */
int me_path_compare(const char *a, const char *b);

/** Whether the two differ in numbers only, part by part. Local. */
bool me_path_is_like(const char *a, const char *b);

/**
 * Append the one name of @p count paths that are all alike: each part that is
 * a number becomes the ranges of the values it takes, "0-3,8-11". Local.
 *
 * @param paths  borrowed, in the order of me_path_compare(); equal ones may
 *               repeat
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status me_path_fold(const char *const *paths, size_t count,
                       me_str *name) ME_MUST_CHECK;

/**
 * Append the ranges of numbers, "0-3,8". Local.
 *
 * @param numbers     rising, borrowed; equal ones may repeat
 * @param ranges_max  further ranges become ",..."; 0 for all
 */
void me_ranges_append(me_str *str, const uint32_t *numbers, size_t count,
                      size_t ranges_max);

#endif /* MEMEST_TRACK_FOLD_H */
