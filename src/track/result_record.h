/**
 * @file
 * The records of a rank's result: their fields, each described once. A new
 * number is a member in track/result.h, a row here and what fills it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRACK_RESULT_RECORD_H
#define MEMEST_TRACK_RESULT_RECORD_H

#include "track/record.h"

extern const me_record me_point_record;
extern const me_record me_peak_record;
extern const me_record me_iteration_record;
extern const me_record me_module_record;
extern const me_record me_limit_record;
extern const me_record me_device_record;

/** What a rank's record has in every report. */
extern const me_record me_result_record;

/** What it has where there is such a thing. */
extern const me_record me_result_optional_record;

#endif /* MEMEST_TRACK_RESULT_RECORD_H */
