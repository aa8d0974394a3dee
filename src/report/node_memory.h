/**
 * @file
 * What the ranks of a node keep in its host's memory, all uses together, and
 * whether that is more than it has. What processes take beside (Python, CUDA,
 * data loaders) is not counted: it is a lower bound.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_NODE_MEMORY_H
#define MEMEST_REPORT_NODE_MEMORY_H

#include "report/job_report.h"

/** The node whose ranks keep most, the first of such; all zero where no rank keeps
 *  anything or not all ranks are in the report. Local. */
me_node_memory me_report_node_memory(const me_report *report);

/** Is it more than the node has, as far as anybody knows? Local. */
bool me_node_memory_is_over(const me_node_memory *node);

/** ": 8 ranks of node 0 keep 33.7 of 20.0 GiB in its host's memory", where it is
 *  over. Local. */
void me_node_memory_append_excess(const me_node_memory *node, me_str *text);

#endif /* MEMEST_REPORT_NODE_MEMORY_H */
