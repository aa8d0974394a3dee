/**
 * @file
 * The continuous curve of one or two straight pieces nearest to points, by least
 * squares: what the Python package pwlf searches at random, found exactly.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SAC_PIECEWISE_H
#define MEMEST_SAC_PIECEWISE_H

#include "base/status.h"

#include <stdint.h>

enum {
    ME_PIECES = 2
};

/** y = intercepts[i] + slopes[i] * x between breaks[i] and breaks[i + 1]. */
typedef struct me_piecewise {
    uint32_t n_segments;
    double slopes[ME_PIECES];
    double intercepts[ME_PIECES];
    double breaks[ME_PIECES + 1]; /**< the first and last are the points' */
    double residual;              /**< sum of squares */
} me_piecewise;

/**
 * Fit @p n_segments pieces to @p n points. Local.
 *
 * Where two pieces meet at several places equally well, they meet at the first
 * point that is such a place. One point has no slope: as of pwlf, slope and
 * intercept are NaN.
 *
 * @param x           rising
 * @param n           at least 1, with two segments at least 4
 * @param n_segments  1 or ME_PIECES
 * @return ME_OK or ME_ERR_NOMEM
 */
me_status me_piecewise_fit(const double *x, const double *y, uint32_t n,
                           uint32_t n_segments,
                           me_piecewise *fit_out) ME_MUST_CHECK;

#endif /* MEMEST_SAC_PIECEWISE_H */
