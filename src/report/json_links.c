/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/json.h"
#include "report/links_table.h"

/** Bytes a second; null: as the card's own rates say. */
static json_t *make_rate(double bytes)
{
    return bytes > 0 ? json_integer((json_int_t)(bytes + 0.5)) : json_null();
}

static json_t *make_crossed(const me_link_use *use)
{
    const int32_t *links = me_link_use_links(use);
    json_t *object = json_object();
    for (int kind = 0; kind < ME_LINK_KINDS && object != NULL; kind++) {
        if (links[kind] > 0) {
            object = me_json_put(object, me_link_kind_name((me_link_kind)kind),
                                 json_integer(links[kind]));
        }
    }
    return object;
}

static json_t *make_use(const me_cluster *cluster, const me_link_use *use)
{
    return json_pack(
        "{s:s, s:i, s:i, s:i, s:i, s:o, s:s, s:o}", "group",
        me_group_kind_name(use->group), "groups", (int)use->groups, "ranks",
        (int)use->path.size, "nodes", (int)use->path.nodes, "ranks_of_node",
        (int)use->path.local, "links", make_crossed(use), "slowest",
        me_link_kind_name(me_link_use_slowest(use)), "bytes_per_second",
        make_rate(me_link_use_rate(cluster, use)));
}

static json_t *make_uses(const me_report *report)
{
    const me_link_uses *uses = report->links;
    json_t *list = json_array();
    for (int32_t i = 0; i < uses->n_items && list != NULL; i++) {
        if (me_link_use_matters(report, &uses->items[i])) {
            list = me_json_push(list, make_use(uses->cluster, &uses->items[i]));
        }
    }
    return list;
}

static json_t *make_kind(const me_cluster_link *link, me_link_kind kind)
{
    return json_pack(
        "{s:s, s:o, s:o, s:i, s:f, s:s}", "kind", me_link_kind_name(kind),
        "bytes_per_second", make_rate(link->is_cards ? 0 : link->bytes),
        "of_card_rates", link->is_cards ? json_real(link->scale) : json_null(),
        "shared", (int)link->shared, "step_us", link->step_s * 1e6, "source",
        link->source);
}

static json_t *make_kinds(const me_cluster *cluster)
{
    json_t *list = json_array();
    for (int kind = 0; kind < ME_LINK_KINDS && list != NULL; kind++) {
        if (cluster->links[kind].is_there) {
            list = me_json_push(
                list, make_kind(&cluster->links[kind], (me_link_kind)kind));
        }
    }
    return list;
}

json_t *me_json_machine(const me_report *report)
{
    const me_cluster *c = report->links->cluster;
    return json_pack("{s:s, s:i, s:i, s:s, s:o, s:o}", "name", c->name, "nodes",
                     (int)me_cluster_nodes(&c->layout), "ranks_of_node",
                     (int)c->layout.gpus_per_node, "placement",
                     c->layout.is_cyclic ? "cyclic" : "block", "links",
                     make_kinds(c), "groups", make_uses(report));
}
