/**
 * @file
 * The records of a rank's result: their fields, each described once. A new
 * number is a member in track/result.h, a row here and what fills it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRACK_RESULT_SCHEMA_H
#define MEMEST_TRACK_RESULT_SCHEMA_H

#include "track/schema.h"

extern const me_schema me_point_schema;
extern const me_schema me_peak_schema;
extern const me_schema me_iteration_schema;
extern const me_schema me_module_schema;
extern const me_schema me_limit_schema;
extern const me_schema me_device_schema;
extern const me_schema me_late_schema;
extern const me_schema me_volume_schema;
extern const me_schema me_course_schema;

/** What a rank's record has in every report. */
extern const me_schema me_result_schema;

/** What it has where there is such a thing. */
extern const me_schema me_result_optional_schema;

#endif /* MEMEST_TRACK_RESULT_SCHEMA_H */
