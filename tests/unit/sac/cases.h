/**
 * @file
 * The modules' operations of the tables in tests/golden/trackers, and what
 * PyTorch's SACEstimator made of them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_UNIT_SAC_CASES_H
#define MEMEST_TESTS_UNIT_SAC_CASES_H

#include "sac/stats.h"
#include "sac/tradeoff.h"

#include <stdio.h>

enum {
    CASE_OPS = 192,
    CASE_NAME = 64
};

/** A module, and what is expected of it. */
typedef struct sac_case {
    char name[CASE_NAME];
    char names[CASE_OPS][CASE_NAME];
    me_sac_op ops[CASE_OPS];
    me_sac_stats stats;
    int32_t recomputed[CASE_OPS];
    uint32_t n_recomputed;
    int32_t stored[CASE_OPS];
    uint32_t n_stored;
    me_sac_candidate candidates[CASE_OPS];
    uint32_t n_candidates;
    me_sac_point points[CASE_OPS];
    uint32_t n_points;
    uint32_t n_segments;
    double residual;
} sac_case;

/** The next case of a file; false at its end. Fails the test where a line is
 *  not understood. */
bool me_sac_case_read(FILE *file, sac_case *c);

/** The operations of @p module in sac_stats.tsv. */
void me_sac_case_of_module(const char *module, sac_case *c);

#endif /* MEMEST_TESTS_UNIT_SAC_CASES_H */
