/**
 * @file
 * A tracker and a series of operations as the public API has them, for
 * api_tracker.c, api_tracker_read.c and api_series.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_API_API_TRACKER_H
#define MEMEST_API_API_TRACKER_H

#include "api/api_private.h"
#include "report/op_series_report.h"
#include "run/tool.h"

struct memest_series {
    const me_op_series *series; /**< what is shown */
    me_op_series loaded;        /**< it, of a file; owned */
    me_op_growth *growths;      /**< sorted; owned */
    uint32_t n_growths;
};

/**
 * Show a series.
 *
 * @param s       all zero, but for `loaded`; for me_api_series_fini() on
 *                failure as well
 * @param series  borrowed as long as it is shown
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status me_api_series_init(memest_series *s, const me_op_series *series,
                             me_diag *diag) ME_MUST_CHECK;

/** Give back what it holds. */
void me_api_series_fini(memest_series *s);

struct memest_tracker {
    me_tool tool;
    memest_series series; /**< of MemoryTracker, when it has run */
    bool has_series;
    bool is_running;
};

#endif /* MEMEST_API_API_TRACKER_H */
