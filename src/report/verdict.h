/**
 * @file
 * Which rank is worst, and whether the job fits.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_VERDICT_H
#define MEMEST_REPORT_VERDICT_H

#include "report/job_report.h"

#include <stdint.h>

/**
 * The most bytes of one kind in a rank's whole life; ME_BYTES_UNKNOWN if
 * nobody knows. Local.
 */
uint64_t me_result_most_bytes(const me_rank_result *result, me_basis basis);

/**
 * The lowest rank with most bytes of one kind in its whole life. Local.
 *
 * @param bytes_out  of that rank; ME_BYTES_UNKNOWN if nobody knows
 */
int32_t me_report_worst_by(const me_report *report, me_basis basis,
                           uint64_t *bytes_out);

/** How far a rank's bytes of one kind may be off, by causes. Local. */
me_band me_verdict_band(const me_config *config, me_basis basis,
                        const me_rank_result *result);

/** Between which bytes a rank's reserved memory ends up. */
typedef struct me_reserved_range {
    bool is_known;        /**< its job is one that has a range */
    uint64_t least_bytes; /**< not below what is requested at once */
    uint64_t most_bytes;
} me_reserved_range;

/**
 * The range of a rank of an interleaved schedule whose transfers or reductions
 * overlap: when a block comes back that another stream used is decided by how
 * long neighbours make their communicators, and with it which block serves the
 * next request. As far as measured ranks lie from what is simulated. Local.
 */
me_reserved_range me_verdict_reserved_range(const me_config *config,
                                            const me_rank_result *result);

/** All parts of a band together. Local. */
uint64_t me_band_bytes(const me_band *band);

/** Is something left out of the job whose size nobody knows? Local. */
bool me_verdict_leaves_out_much(const me_config *config);

/** Judge the ranks of @p report against @p capacity_bytes (0: unknown). */
me_verdict me_verdict_judge(const me_report *report, uint64_t capacity_bytes);

#endif /* MEMEST_REPORT_VERDICT_H */
