/**
 * @file
 * What the files of tool.h have of each other: a tool begins and is printed by
 * functions of the same shape.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_RUN_TOOL_ROWS_H
#define MEMEST_RUN_TOOL_ROWS_H

#include "run/tool.h"

/** @name tool_estimate.c: tools that cost operations, by the job's card
 *  @{ */
me_status me_tool_begin_runtime(me_tool *t, const me_run *run, me_engine *e,
                                me_diag *diag);
me_status me_tool_append_runtime(const me_tool *t, const me_tool_format *format,
                                 me_diag *diag, me_str *text);
me_status me_tool_begin_sac(me_tool *t, const me_run *run, me_engine *e,
                            me_diag *diag);
me_status me_tool_append_sac(const me_tool *t, const me_tool_format *format,
                             me_diag *diag, me_str *text);
me_status me_tool_begin_ilp(me_tool *t, const me_run *run, me_engine *e,
                            me_diag *diag);
me_status me_tool_append_ilp(const me_tool *t, const me_tool_format *format,
                             me_diag *diag, me_str *text);
/** Is the budget one that the tool knows? */
me_status me_tool_check_budget(const me_tool_options *options, me_diag *diag);
/** @} */

#endif /* MEMEST_RUN_TOOL_ROWS_H */
