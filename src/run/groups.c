/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/groups.h"

#include "base/alloc.h"

#include <stdatomic.h>

/**
 * Groups that a single stride describes need no list; the others (a group
 * over several axes) get theirs once, kept by kind and lowest member.
 */
struct me_groups {
    const me_plan *plan;
    _Atomic(int *) *lists; /**< kinds × world_size; owned. Whoever asks first
                                makes one, on whichever thread */
};

me_status me_groups_create(const me_plan *plan, me_groups **groups_out)
{
    me_groups *groups = me_alloc(1, sizeof *groups, "groups");
    if (groups == NULL) {
        return ME_ERR_NOMEM;
    }
    const size_t world = (size_t)plan->config->parallel.world_size;
    groups->plan = plan;
    groups->lists =
        me_alloc(world * ME_GROUP_COUNT, sizeof *groups->lists, "groups.lists");
    if (groups->lists == NULL) {
        me_free(groups);
        return ME_ERR_NOMEM;
    }
    *groups_out = groups;
    return ME_OK;
}

void me_groups_destroy(me_groups *groups)
{
    if (groups == NULL) {
        return;
    }
    const size_t world = (size_t)groups->plan->config->parallel.world_size;
    for (size_t i = 0; i < world * ME_GROUP_COUNT; i++) {
        me_free(atomic_load(&groups->lists[i]));
    }
    me_free(groups->lists);
    me_free(groups);
}

/** The members, listed once; NULL without memory. */
static const int *members_of(const me_groups *groups, me_group_kind kind,
                             const me_group *group)
{
    const size_t world = (size_t)groups->plan->config->parallel.world_size;
    _Atomic(int *) *place =
        &groups->lists[(size_t)kind * world + (size_t)group->base];
    int *there = atomic_load(place);
    if (there != NULL) {
        return there;
    }
    int *list = me_alloc((size_t)group->size, sizeof *list, "groups.members");
    for (int i = 0; list != NULL && i < group->size; i++) {
        list[i] = me_group_member(group, i);
    }
    if (list == NULL || atomic_compare_exchange_strong(place, &there, list)) {
        return list;
    }
    me_free(list);
    return there;
}

int me_groups_find(const void *self, int rank, me_group_kind kind,
                   me_comm_group *group_out)
{
    const me_groups *groups = self;
    const me_group group = me_grid_group(&groups->plan->grid, kind, rank);
    if (group.size == 0) {
        return ME_IN_NO_GROUP;
    }
    *group_out = (me_comm_group){
        .kind = kind,
        .count = group.size,
        .start = group.base,
        .stride = group.n_axes > 0 ? group.axes[0].stride : 1,
    };
    const bool is_strided =
        group.n_axes <= 1 ||
        me_group_member(&group, group.size - 1) ==
            group.base + (group.size - 1) * group_out->stride;
    if (!is_strided) {
        group_out->members = members_of(groups, kind, &group);
        if (group_out->members == NULL) {
            return ME_GROUP_HAS_NO_LIST;
        }
    }
    return me_group_index(&group, rank);
}
