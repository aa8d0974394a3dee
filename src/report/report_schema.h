/**
 * @file
 * The records of what a report has beside ranks' results (which are in
 * track/result_schema.h): their fields, each described once.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_REPORT_SCHEMA_H
#define MEMEST_REPORT_REPORT_SCHEMA_H

#include "track/schema.h"

extern const me_schema me_place_schema;      /**< of me_rank_place */
extern const me_schema me_stage_time_schema; /**< of me_time_stage */
extern const me_schema me_step_schema;       /**< of me_step_time */
extern const me_schema me_time_schema;       /**< of me_report_time */

/** The bytes of me_compare_stage. */
extern const me_schema me_compare_bytes_schema;

#endif /* MEMEST_REPORT_REPORT_SCHEMA_H */
