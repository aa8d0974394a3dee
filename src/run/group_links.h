/**
 * @file
 * What a job's groups of ranks cross of a machine's links.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_RUN_GROUP_LINKS_H
#define MEMEST_RUN_GROUP_LINKS_H

#include "plan/plan.h"
#include "time/cluster.h"

/**
 * The links of one rank's group. Local.
 *
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status me_links_of_group(const me_cluster *cluster, const me_group *group,
                            me_link_path *path_out) ME_MUST_CHECK;

/**
 * The links of all groups of two ranks or more, those that cross the same
 * together. Local.
 *
 * @param uses_out  cluster is kept; for me_links_fini(), also on failure
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status me_links_survey(const me_plan *plan, const me_cluster *cluster,
                          me_diag *diag, me_link_uses *uses_out) ME_MUST_CHECK;

/** Give back. Local. */
void me_links_fini(me_link_uses *uses);

/** Add to the job's assumptions where groups of one kind cross different
 *  links: a rank's times are by its own. @return ME_OK, ME_ERR_NOMEM */
me_status me_links_note(const me_link_uses *uses, me_config *config,
                        me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_RUN_GROUP_LINKS_H */
