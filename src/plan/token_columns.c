/* SPDX-License-Identifier: BSD-3-Clause */
/* Which counts of tokens ranks have: those with equal ones share a program. */
#include "base/alloc.h"
#include "plan/plan.h"

bool me_plan_is_steady(const me_plan *plan, int32_t rank)
{
    return plan->column_of[rank] == 0;
}

static bool is_counted(const me_plan *plan, const me_group *group)
{
    bool is_named = false;
    for (int32_t i = 0; i < group->size && !is_named; i++) {
        is_named = me_routing_names(&plan->routing, me_group_member(group, i));
    }
    return is_named;
}

/** Do the members of both expert groups get the same, one by one? */
static bool is_same_column(const me_plan *plan, const me_group *a,
                           const me_group *b)
{
    bool is_same = a->size == b->size;
    for (int32_t i = 0; i < a->size && is_same; i++) {
        is_same = me_routing_is_same(&plan->routing, me_group_member(a, i),
                                     me_group_member(b, i));
    }
    return is_same;
}

me_status me_plan_find_columns(me_plan *plan, me_diag *diag)
{
    const int32_t world = plan->config->parallel.world_size;
    int32_t *first_of = me_alloc((size_t)world + 1, sizeof *first_of, "plan");
    plan->column_of = me_alloc((size_t)world, sizeof(int32_t), "plan.columns");
    int32_t n = 0;
    if (first_of == NULL || plan->column_of == NULL) {
        me_free(first_of);
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the plan");
    }
    for (int32_t rank = 0;
         rank < world && !me_routing_is_steady(&plan->routing); rank++) {
        const me_group group =
            me_grid_group(&plan->grid, ME_GROUP_EXPERT, rank);
        const int32_t first = me_group_member(&group, 0);
        int32_t *column = &plan->column_of[rank];
        *column = first < rank ? plan->column_of[first] : 0;
        if (first < rank || !is_counted(plan, &group)) {
            continue;
        }
        bool is_found = false;
        while (!is_found && ++*column <= n) {
            const me_group other =
                me_grid_group(&plan->grid, ME_GROUP_EXPERT, first_of[*column]);
            is_found = is_same_column(plan, &group, &other);
        }
        if (!is_found) {
            n = *column;
            first_of[n] = rank;
        }
    }
    me_free(first_of);
    return ME_OK;
}
