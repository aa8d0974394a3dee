/**
 * @file
 * Which links the groups cross that communicate, for text and JSON.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_LINKS_TABLE_H
#define MEMEST_REPORT_LINKS_TABLE_H

#include "report/job_report.h"

/** Links that it crosses, of each kind: of a pipeline's transfers, else of its
 *  ring; borrowed. */
const int32_t *me_link_use_links(const me_link_use *use);

/** The farthest kind that a group's calls cross. */
me_link_kind me_link_use_slowest(const me_link_use *use);

/** Does any rank call something of the group? Of a pipeline: always. */
bool me_link_use_matters(const me_report *report, const me_link_use *use);

/** Does such a group cross the kind? */
bool me_link_kind_matters(const me_report *report, me_link_kind kind);

/** Bytes a second of the slowest kind, for the group's ranks of a node
 *  together, or for one transfer; 0: as the card's own rates say. */
double me_link_use_rate(const me_cluster *cluster, const me_link_use *use);

#endif /* MEMEST_REPORT_LINKS_TABLE_H */
