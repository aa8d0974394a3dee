/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/group.h"

#include <stdint.h>

bool me_group_is_valid(const me_group *group, int world_size)
{
    if (group->count < 1 || group->count > world_size ||
        (unsigned)group->kind >= ME_GROUP_COUNT) {
        return false;
    }
    if (group->members == NULL) {
        const int64_t last =
            group->start + (int64_t)(group->count - 1) * group->stride;
        return group->start >= 0 && group->start < world_size && last >= 0 &&
               last < world_size && (group->stride != 0 || group->count == 1);
    }
    for (int i = 0; i < group->count; i++) {
        if (group->members[i] < 0 || group->members[i] >= world_size) {
            return false;
        }
    }
    return true;
}

void me_group_print(const me_group *group, me_str *str)
{
    enum {
        SHOWN = 8,
        HEAD = 3
    };

    const int n = group->count;
    me_str_printf(str, "%s group {", me_group_kind_name(group->kind));
    for (int i = 0; i < n; i++) {
        if (n > SHOWN && i == HEAD) {
            me_str_append(str, ", ...");
            i = n - 1;
        }
        me_str_printf(str, "%s%d", i == 0 ? "" : ", ",
                      me_group_member(group, i));
    }
    me_str_append(str, "}");
}
