/**
 * @file
 * What gather.c and gather_lent.c share: parts that come from other processes are
 * encoded, those of the only one need not be.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_GATHER_PARTS_H
#define MEMEST_REPORT_GATHER_PARTS_H

#include "report/job_report.h"

/** Is it the lowest rank of its stage, whose times count for it? Local. */
static inline bool me_place_is_lowest(const me_rank_place *place)
{
    return place->tp == 0 && place->dp == 0 && place->cp == 0 && place->ep == 0;
}

/** Is the job's step predicted? Else the report says why not. Local. */
bool me_report_is_timed(const me_rates *rates, me_report *report);

/** Why a rank is not one of so many, or has two results or none. Local.
 *
 *  @return ME_ERR_INTERNAL */
me_status me_gather_refuse(int32_t world_size, int32_t rank, bool has_result,
                           me_diag *diag);

/**
 * Fill in ranks, results, which are all lent, and times of a report whose parts are
 * all of this process. Local.
 *
 * @param parts  of all ranks; their results live as long as the report
 * @return ME_OK, ME_ERR_NOMEM; ME_ERR_INTERNAL if a rank is missing or comes twice
 */
me_status me_report_lend(const me_report_part *parts, uint32_t n_parts,
                         const me_rates *rates, me_diag *diag,
                         me_report *report) ME_MUST_CHECK;

#endif /* MEMEST_REPORT_GATHER_PARTS_H */
