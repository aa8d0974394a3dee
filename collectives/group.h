/**
 * @file
 * The members of a process group, by global rank.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_COLLECTIVES_GROUP_H
#define MEMEST_COLLECTIVES_GROUP_H

#include "base/str.h"
#include "model/event.h"

#include <stdbool.h>

/** A group: a list of ranks, or a pattern. The order is the group's own. */
typedef struct me_comm_group {
    me_group_kind kind;
    int count;          /**< members */
    const int *members; /**< global ranks, borrowed; NULL: use the pattern */
    int start;          /**< the pattern: member i is start + i * stride */
    int stride;
} me_comm_group;

/** Global rank of member @p index, 0 <= index < count. Local. */
static inline int me_comm_group_member(const me_comm_group *group, int index)
{
    return group->members != NULL ? group->members[index]
                                  : group->start + index * group->stride;
}

/** What an me_comm_group_of returns instead of an index. */
enum {
    ME_IN_NO_GROUP = -1,      /**< the rank is in no group of the kind */
    ME_GROUP_HAS_NO_LIST = -2 /**< no host memory for the members */
};

/**
 * The group of @p kind that @p rank is in. It gives the same answer for all
 * members, and its list of members stays valid as long as somebody asks.
 *
 * @return the rank's index in the group, or one of the values below 0
 */
typedef int (*me_comm_group_of)(const void *self, int rank, me_group_kind kind,
                                me_comm_group *group_out);

/** Are all members ranks of a world of @p world_size? Local. */
bool me_comm_group_is_valid(const me_comm_group *group, int world_size);

/** Append "tensor group {0, 1, 2, 3}"; long groups are shortened. Local. */
void me_comm_group_print(const me_comm_group *group, me_str *str);

#endif /* MEMEST_COLLECTIVES_GROUP_H */
