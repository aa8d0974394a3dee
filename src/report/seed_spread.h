/**
 * @file
 * What the ranks of a job take under several seeds of its routing: the spread of
 * each rank's peak, and how often it is more than the card has.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_SEED_SPREAD_H
#define MEMEST_REPORT_SEED_SPREAD_H

#include "report/comparison.h"
#include "report/table.h"

/** Peaks of a rank over all seeds that could run. */
typedef struct me_seed_spread {
    int32_t rank;
    uint64_t least_bytes;
    uint64_t median_bytes; /**< the lower of the two in the middle */
    uint64_t most_bytes;
    uint32_t n_above; /**< seeds with more than the card has */
    uint32_t n_seeds;
} me_seed_spread;

/**
 * Work it out, of the verdict's kind of bytes. Local.
 *
 * @param comparison  a row for each seed
 * @param spreads_out one for each rank, in their order, for me_free(); NULL
 *                    where no seed could run
 * @param n_out       how many
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status me_seed_spreads(const me_comparison *comparison, me_diag *diag,
                          me_seed_spread **spreads_out,
                          size_t *n_out) ME_MUST_CHECK;

/** Append it as text, or as CSV. Local. @return ME_OK, ME_ERR_NOMEM */
me_status me_seed_spread_append(const me_comparison *comparison, bool is_csv,
                                me_diag *diag, me_str *text) ME_MUST_CHECK;

#endif /* MEMEST_REPORT_SEED_SPREAD_H */
