/**
 * @file
 * What RuntimeEstimator prints, in its layout, and the same as JSON.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_RUNTIME_H
#define MEMEST_REPORT_RUNTIME_H

#include "base/status.h"
#include "base/str.h"
#include "track/runtime_estimator.h"

/** display_modulewise_stats(), behind the line of its end; modules up to @p depth
 *  names deep. */
void me_runtime_append(me_str *text, const me_runtime_estimator *r,
                       uint32_t depth);

/** Milliseconds of modules, and all four orders. @param card  by whose roofline
 *  @return ME_OK; ME_ERR_NOMEM */
me_status me_runtime_json_append(me_str *text, const me_runtime_estimator *r,
                                 const char *card, uint32_t depth);

#endif /* MEMEST_REPORT_RUNTIME_H */
