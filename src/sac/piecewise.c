/* SPDX-License-Identifier: BSD-3-Clause */
/* For a given break b the curve is c0 + c1 u + c2 max(u - b, 0), which is solved
 * by orthogonalising the columns (modified Gram-Schmidt, the points' column
 * carried along: as stable as Householder's). Between two neighbouring points the
 * best break is where the two lines meet that fit the points on either side, or
 * else it is at one of the two (Hudson 1966, Fitting segmented curves whose join
 * points have to be estimated): so few breaks have to be tried, and one of them
 * is the best of all. */
#include "sac/piecewise.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

enum {
    COLUMNS = ME_PIECES + 1
};

/** Points with x from 0 to 1, and room for columns. */
typedef struct problem {
    const double *y;
    uint32_t n;
    double *u;
    double *columns[COLUMNS];
    double *rest; /**< of y, what no column explains */
} problem;

/** A curve: `at_0`, its slope, and by how much that changes at `at`. */
typedef struct curve {
    double coefficients[COLUMNS];
    double at;
    double residual;
} curve;

static double product(const double *a, const double *b, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

static void subtract(double *from, double factor, const double *what,
                     uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        from[i] -= factor * what[i];
    }
}

/** Least squares of y in the first @p n_columns columns, which are spent. */
static void solve(problem *p, uint32_t n_columns, curve *to)
{
    double r[COLUMNS][COLUMNS] = {{0}};
    double z[COLUMNS] = {0};
    for (uint32_t k = 0; k < n_columns; k++) {
        double *q = p->columns[k];
        r[k][k] = sqrt(product(q, q, p->n));
        for (uint32_t i = 0; i < p->n; i++) {
            q[i] /= r[k][k];
        }
        for (uint32_t j = k + 1; j < n_columns; j++) {
            r[k][j] = product(q, p->columns[j], p->n);
            subtract(p->columns[j], r[k][j], q, p->n);
        }
        z[k] = product(q, p->rest, p->n);
        subtract(p->rest, z[k], q, p->n);
    }
    for (uint32_t k = n_columns; k-- > 0;) {
        double value = z[k];
        for (uint32_t j = k + 1; j < n_columns; j++) {
            value -= r[k][j] * to->coefficients[j];
        }
        to->coefficients[k] = value / r[k][k];
    }
    to->residual = product(p->rest, p->rest, p->n);
}

static curve fit_at(problem *p, uint32_t n_segments, double at)
{
    curve c = {.at = at};
    for (uint32_t i = 0; i < p->n; i++) {
        p->columns[0][i] = 1;
        p->columns[1][i] = p->u[i];
        p->columns[2][i] = p->u[i] > at ? p->u[i] - at : 0;
        p->rest[i] = p->y[i];
    }
    solve(p, 1 + n_segments, &c);
    return c;
}

/** The line that fits points from @p first up to but not @p end. */
static void fit_line(const problem *p, uint32_t first, uint32_t end,
                     double *at_0, double *slope)
{
    const double count = end - first;
    double u = 0;
    double y = 0;
    for (uint32_t i = first; i < end; i++) {
        u += p->u[i] / count;
        y += p->y[i] / count;
    }
    double uu = 0;
    double uy = 0;
    for (uint32_t i = first; i < end; i++) {
        uu += (p->u[i] - u) * (p->u[i] - u);
        uy += (p->u[i] - u) * (p->y[i] - y);
    }
    *slope = uy / uu;
    *at_0 = y - *slope * u;
}

/** Do the lines of points 0 to @p k and of those behind meet between? */
static bool lines_meet(const problem *p, uint32_t k, double *at_out)
{
    double left_0 = 0;
    double left = 0;
    double right_0 = 0;
    double right = 0;
    fit_line(p, 0, k + 1, &left_0, &left);
    fit_line(p, k + 1, p->n, &right_0, &right);
    *at_out = (right_0 - left_0) / (left - right);
    return *at_out > p->u[k] && *at_out < p->u[k + 1];
}

/** Is @p a better by more than what rounding makes of equals? */
static bool is_better(const problem *p, const curve *a, const curve *best)
{
    const double one = 8 * DBL_EPSILON;
    const double noise =
        one * best->residual + one * one * product(p->y, p->y, p->n) * p->n;
    return a->residual < best->residual - noise;
}

static void keep_better(problem *p, double at, curve *best)
{
    const curve c = fit_at(p, 2, at);
    if (is_better(p, &c, best)) {
        *best = c;
    }
}

/** Breaks are tried from left to right, so that of equals the first stays. A
 *  single point on one side of a break lies on any line through it, and on one
 *  from its neighbour as well. */
static curve fit_two(problem *p)
{
    curve best = fit_at(p, 2, p->u[1]);
    for (uint32_t k = 1; k + 2 < p->n; k++) {
        double at = 0;
        if (lines_meet(p, k, &at)) {
            keep_better(p, at, &best);
        }
        keep_better(p, p->u[k + 1], &best);
    }
    return best;
}

static void describe(const curve *c, double first, double last,
                     me_piecewise *fit)
{
    const double range = last - first;
    fit->residual = c->residual;
    fit->breaks[0] = first;
    fit->breaks[fit->n_segments] = last;
    fit->slopes[0] = c->coefficients[1] / range;
    fit->intercepts[0] = c->coefficients[0] - fit->slopes[0] * first;
    if (fit->n_segments == 2) {
        const double at = first + c->at * range;
        const double value = c->coefficients[0] + c->coefficients[1] * c->at;
        fit->breaks[1] = at;
        fit->slopes[1] = (c->coefficients[1] + c->coefficients[2]) / range;
        fit->intercepts[1] = value - fit->slopes[1] * at;
    }
}

me_status me_piecewise_fit(const double *x, const double *y, uint32_t n,
                           uint32_t n_segments, me_piecewise *fit_out)
{
    me_piecewise fit = {.n_segments = n_segments};
    ME_ASSERT(n_segments == 1 ? n >= 1 : n_segments == 2 && n >= 4);
    if (n == 1) {
        fit.slopes[0] = NAN;
        fit.intercepts[0] = NAN;
        fit.breaks[0] = x[0];
        fit.breaks[1] = x[0];
        *fit_out = fit;
        return ME_OK;
    }
    double *room = me_alloc((size_t)n * (COLUMNS + 2), sizeof *room, "sac.fit");
    if (room == NULL) {
        return ME_ERR_NOMEM;
    }
    problem p = {.y = y, .n = n, .u = room, .rest = room + n};
    for (uint32_t k = 0; k < COLUMNS; k++) {
        p.columns[k] = room + (size_t)n * (k + 2);
    }
    for (uint32_t i = 0; i < n; i++) {
        p.u[i] = (x[i] - x[0]) / (x[n - 1] - x[0]);
    }
    const curve c = n_segments == 1 ? fit_at(&p, 1, 1) : fit_two(&p);
    describe(&c, x[0], x[n - 1], &fit);
    me_free(room);
    *fit_out = fit;
    return ME_OK;
}
