/**
 * @file
 * The plan's process groups as collectives ask for them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_RUN_GROUPS_H
#define MEMEST_RUN_GROUPS_H

#include "collectives/group.h"
#include "plan/plan.h"

typedef struct me_groups me_groups;

/** All groups of a plan. @param groups_out owned by the caller; borrows @p plan
 *  @return ME_OK, ME_ERR_NOMEM */
me_status me_groups_create(const me_plan *plan, me_groups **groups_out);

/** Give back; NULL is allowed. */
void me_groups_destroy(me_groups *groups);

/** An me_comm_group_of. @param self an me_groups */
int me_groups_find(const void *self, int rank, me_group_kind kind,
                   me_comm_group *group_out);

#endif /* MEMEST_RUN_GROUPS_H */
