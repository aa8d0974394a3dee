/* SPDX-License-Identifier: BSD-3-Clause */
/* Classes whose programs differ in the names of modules alone. */
#include "base/alloc.h"
#include "plan/plan.h"

void me_shard_kin_fini(me_shard_kin *kin)
{
    me_free(kin->kin);
    me_free(kin->begin);
    me_free(kin->modules);
    *kin = (me_shard_kin){.n_classes = 0};
}

int32_t me_plan_kin(const me_plan *plan, int32_t class_id)
{
    return plan->kin_of == NULL ? class_id : plan->kin_of[class_id];
}

/** A rank's row: shard classes of all members of its data-parallel group. */
typedef struct row {
    const me_shard_kin *kin;
    const int32_t *class_of; /**< of each member */
    me_group group;
    int32_t own; /**< the rank's class */
} row;

static row row_of_class(const me_plan *plan, int32_t class_id)
{
    const int32_t rank = me_plan_representative(plan, class_id);
    const size_t at = (size_t)me_plan_shard_row(plan, rank);
    row r = {.kin = &plan->shard_kin[at],
             .group = me_grid_group(&plan->grid, ME_GROUP_DATA_CONTEXT, rank)};
    r.class_of = plan->shard_class + at * (size_t)r.group.size;
    r.own = r.class_of[me_group_index(&r.group, rank)];
    return r;
}

/** Does another rank do what @p rank does, but for their shards? It has the same
 *  part of the sequence and, where tokens are not spread evenly, the same
 *  experts, which get as many. */
static bool is_like(const me_plan *plan, int32_t rank, int32_t other)
{
    const me_coordinates a = me_plan_coordinates(plan, rank);
    const me_coordinates b = me_plan_coordinates(plan, other);
    const me_coordinates x =
        me_grid_coordinates(&plan->grid, ME_GRID_EXPERT, rank);
    const me_coordinates y =
        me_grid_coordinates(&plan->grid, ME_GRID_EXPERT, other);
    return a.at[ME_AXIS_CONTEXT] == b.at[ME_AXIS_CONTEXT] &&
           (me_routing_is_uniform(&plan->routing) ||
            (x.at[ME_AXIS_EXPERT] == y.at[ME_AXIS_EXPERT] &&
             x.at[ME_AXIS_TENSOR] == y.at[ME_AXIS_TENSOR] &&
             plan->column_of[rank] == plan->column_of[other]));
}

/** The class of the first member of the data-parallel group that is of the same
 *  kin. */
static int32_t find_kin(const me_plan *plan, int32_t class_id)
{
    const int32_t rank = me_plan_representative(plan, class_id);
    const row r = row_of_class(plan, class_id);
    for (int32_t i = 0; r.kin->kin != NULL && i < r.group.size; i++) {
        const int32_t member = me_group_member(&r.group, i);
        if (r.kin->kin[r.class_of[i]] == r.kin->kin[r.own] &&
            plan->class_of[member] <= class_id && is_like(plan, rank, member)) {
            return plan->class_of[member];
        }
    }
    return class_id;
}

int32_t me_plan_first_like(const me_plan *plan, int32_t class_id)
{
    const int32_t rank = me_plan_representative(plan, class_id);
    const me_group group =
        me_grid_group(&plan->grid, ME_GROUP_DATA_CONTEXT, rank);
    int32_t i = 0;
    while (!is_like(plan, rank, me_group_member(&group, i))) {
        i++; // it is like itself
    }
    return plan->class_of[me_group_member(&group, i)];
}

me_status me_plan_find_kin(me_plan *plan, me_diag *diag)
{
    plan->kin_of =
        me_alloc((size_t)plan->n_classes, sizeof(int32_t), "plan.kin");
    if (plan->kin_of == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the plan");
    }
    for (int32_t i = 0; i < plan->n_classes; i++) {
        plan->kin_of[i] = find_kin(plan, i);
    }
    return ME_OK;
}

me_shard_modules me_plan_shard_modules(const me_plan *plan, int32_t class_id)
{
    const int32_t kin = me_plan_kin(plan, class_id);
    if (kin == class_id) {
        return (me_shard_modules){.count = 0};
    }
    const row own = row_of_class(plan, class_id);
    const row other = row_of_class(plan, kin);
    const uint32_t *begin = own.kin->begin;
    return (me_shard_modules){
        .from = own.kin->modules + begin[other.own],
        .to = own.kin->modules + begin[own.own],
        .count = begin[own.own + 1] - begin[own.own],
    };
}
