/**
 * @file
 * An operation-level series printed, saved, loaded and drawn.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_OP_SERIES_REPORT_H
#define MEMEST_REPORT_OP_SERIES_REPORT_H

#include "base/status.h"
#include "base/str.h"
#include "track/op_series.h"

/** How much more an operation left allocated than the one before it. */
typedef struct me_op_growth {
    const char *name; /**< the series' */
    int64_t bytes;    /**< negative: less */
    uint32_t at;      /**< its place in the series */
} me_op_growth;

/**
 * All operations but the first, the largest growth first, equal ones in the
 * order in which they ran.
 *
 * @param growths_out  the caller's, for me_free()
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status me_op_series_growths(const me_op_series *s,
                               me_op_growth **growths_out,
                               uint32_t *count_out) ME_MUST_CHECK;

/** MemoryTracker.summary(): the operations after which most more was allocated
 *  than before. @return ME_OK, ME_ERR_NOMEM */
me_status me_op_series_summary(me_str *text, const me_op_series *s,
                               uint32_t top);

/** As JSON with the keys of PyTorch's save_stats(). @return ME_OK,
 *  ME_ERR_NOMEM */
me_status me_op_series_save(me_str *text, const me_op_series *s);

/**
 * Read what me_op_series_save() wrote.
 *
 * @param path   of a file
 * @param s_out  empty; for me_op_series_fini() on failure as well
 * @return ME_OK; ME_ERR_IO; ME_ERR_SYNTAX; ME_ERR_CONFIG for JSON that is no
 *         series; ME_ERR_NOMEM
 */
me_status me_op_series_load(const char *path, me_diag *diag,
                            me_op_series *s_out);

/** A page with the plots of show_traces(): all three counters, and each alone.
 *  @return ME_OK; ME_ERR_NOMEM; ME_ERR_CONFIG without Vega */
me_status me_op_series_html(me_str *page, const me_op_series *s, uint32_t top,
                            me_diag *diag);

#endif /* MEMEST_REPORT_OP_SERIES_REPORT_H */
