/**
 * @file
 * A rank's collectives printed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_COMM_H
#define MEMEST_REPORT_COMM_H

#include "base/status.h"
#include "base/str.h"
#include "track/comm_tracker.h"

/** Tables of the collectives in order, and of their sums. @return ME_OK,
 *  ME_ERR_NOMEM */
me_status me_comm_text_append(me_str *text,
                              const me_comm_tracker *t) ME_MUST_CHECK;

/** The same as JSON, in bytes. @return ME_OK, ME_ERR_NOMEM */
me_status me_comm_json_append(me_str *text,
                              const me_comm_tracker *t) ME_MUST_CHECK;

#endif /* MEMEST_REPORT_COMM_H */
