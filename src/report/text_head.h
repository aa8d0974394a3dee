/**
 * @file
 * What the head of a report says of a job: one function a framework.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_TEXT_HEAD_H
#define MEMEST_REPORT_TEXT_HEAD_H

#include "base/str.h"

struct me_report;

/** Lines on model, grid, batch, optimizer and code. */
void me_text_head_megatron(const struct me_report *report, me_str *text);
void me_text_head_torch(const struct me_report *report, me_str *text);

#endif /* MEMEST_REPORT_TEXT_HEAD_H */
