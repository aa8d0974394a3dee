/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/links_table.h"

const int32_t *me_link_use_links(const me_link_use *use)
{
    return use->group == ME_GROUP_PIPELINE ? use->path.transfers
                                           : use->path.links;
}

me_link_kind me_link_use_slowest(const me_link_use *use)
{
    const int32_t *links = me_link_use_links(use);
    int kind = ME_LINK_NETWORK;
    while (kind > 0 && links[kind] == 0) {
        kind--;
    }
    return (me_link_kind)kind;
}

bool me_link_use_matters(const me_report *report, const me_link_use *use)
{
    if (use->group == ME_GROUP_PIPELINE) {
        return true; // PyTorch's transfers are calls of another group
    }
    for (uint32_t i = 0; i < report->n_results; i++) {
        for (int kind = 0; kind < ME_COLLECTIVE_COUNT; kind++) {
            if (report->results[i]->volume[use->group][kind].calls > 0) {
                return true;
            }
        }
    }
    return false;
}

bool me_link_kind_matters(const me_report *report, me_link_kind kind)
{
    const me_link_uses *uses = report->links;
    for (int32_t i = 0; i < uses->n_items; i++) {
        if (me_link_use_links(&uses->items[i])[kind] > 0 &&
            me_link_use_matters(report, &uses->items[i])) {
            return true;
        }
    }
    return false;
}

double me_link_use_rate(const me_cluster *cluster, const me_link_use *use)
{
    const me_link_kind kind = me_link_use_slowest(use);
    if (cluster->links[kind].is_cards) {
        return 0;
    }
    return use->group == ME_GROUP_PIPELINE
               ? me_cluster_transfer_rate(cluster, kind, &use->path)
               : me_cluster_rate(cluster, kind, use->path.local);
}
