/**
 * @file
 * PyTorch's text of an allocation that fails names the device, which a process
 * numbers within its node. Ranks that end alike share one text, in which the
 * number is 0; each of them is shown its own.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_OOM_TEXT_H
#define MEMEST_REPORT_OOM_TEXT_H

#include "report/job_report.h"

#include <stdio.h>

/** The device of @p rank in its process: its place on the node. Local. */
int32_t me_report_device_index(const me_report *report, int32_t rank);

/** Append @p message as device @p index would print it. Local. */
void me_oom_text_append(const char *message, int32_t index, me_str *text);

/** Print @p json, which may have such a message in it, as device @p index
 *  would print that. Local. */
void me_oom_text_print(const char *json, int32_t index, FILE *stream);

#endif /* MEMEST_REPORT_OOM_TEXT_H */
