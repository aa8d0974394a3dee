/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/group_links.h"

#include "base/alloc.h"

#include <string.h>

me_status me_links_of_group(const me_cluster *cluster, const me_group *group,
                            me_link_path *path_out)
{
    if (group->size < 2) {
        *path_out = (me_link_path){.size = group->size};
        return ME_OK;
    }
    int32_t *members =
        me_alloc((size_t)group->size, sizeof *members, "links.members");
    if (members == NULL) {
        return ME_ERR_NOMEM;
    }
    for (int32_t i = 0; i < group->size; i++) {
        members[i] = me_group_member(group, i);
    }
    const me_status status =
        me_link_path_find(cluster, members, group->size, path_out);
    me_free(members);
    return status;
}

/** One more group with this path. */
static me_status count_path(me_group_kind kind, const me_link_path *path,
                            me_link_uses *uses)
{
    for (int32_t i = 0; i < uses->n_items; i++) {
        me_link_use *use = &uses->items[i];
        if (use->group == kind && memcmp(&use->path, path, sizeof *path) == 0) {
            use->groups++;
            return ME_OK;
        }
    }
    me_link_use *items = me_realloc(uses->items, (size_t)uses->n_items + 1,
                                    sizeof *items, "links.uses");
    if (items == NULL) {
        return ME_ERR_NOMEM;
    }
    uses->items = items;
    items[uses->n_items++] =
        (me_link_use){.group = kind, .groups = 1, .path = *path};
    return ME_OK;
}

/** Paths of one kind's groups. Where nodes are filled in order, a group's lies
 *  as that of one whose ranks are some whole nodes before. */
static me_status survey_kind(const me_plan *plan, me_group_kind kind,
                             me_link_path *of_place, me_link_uses *uses)
{
    const me_cluster *c = uses->cluster;
    const int32_t places = c->layout.gpus_per_node;
    me_status status = ME_OK;
    memset(of_place, 0, (size_t)places * sizeof *of_place);
    for (int32_t rank = 0; rank < c->layout.world && status == ME_OK; rank++) {
        const me_group group = me_grid_group(&plan->grid, kind, rank);
        if (group.size < 2 || me_group_member(&group, 0) != rank) {
            continue;
        }
        me_link_path *path = &of_place[rank % places];
        if (path->size != group.size || c->layout.is_cyclic) {
            status = me_links_of_group(c, &group, path);
            if (kind != ME_GROUP_PIPELINE) {
                memset(path->transfers, 0, sizeof path->transfers);
            }
        }
        if (status == ME_OK) {
            status = count_path(kind, path, uses);
        }
    }
    return status;
}

me_status me_links_survey(const me_plan *plan, const me_cluster *cluster,
                          me_diag *diag, me_link_uses *uses_out)
{
    *uses_out = (me_link_uses){.cluster = cluster};
    me_link_path *of_place = me_alloc((size_t)cluster->layout.gpus_per_node,
                                      sizeof *of_place, "links.places");
    me_status status = of_place == NULL ? ME_ERR_NOMEM : ME_OK;
    for (int kind = 0; kind < ME_GROUP_COUNT && status == ME_OK; kind++) {
        status = survey_kind(plan, (me_group_kind)kind, of_place, uses_out);
    }
    me_free(of_place);
    return status == ME_OK
               ? ME_OK
               : me_fail(diag, status, "no host memory for the links");
}

void me_links_fini(me_link_uses *uses)
{
    me_free(uses->items);
    *uses = (me_link_uses){.cluster = NULL};
}

me_status me_links_note(const me_link_uses *uses, me_config *config,
                        me_diag *diag)
{
    for (int32_t i = 1; i < uses->n_items; i++) {
        if (uses->items[i].group == uses->items[i - 1].group) {
            return me_config_assume(
                config, diag,
                "groups of one kind cross different links (Links): a stage's "
                "times are by those of its lowest rank");
        }
    }
    return ME_OK;
}
