/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/links.h"

me_link_kind me_link_use_slowest(const me_link_use *use)
{
    return me_link_path_slowest(&use->path);
}

bool me_link_use_matters(const me_report *report, const me_link_use *use)
{
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
        if (uses->items[i].path.links[kind] > 0 &&
            me_link_use_matters(report, &uses->items[i])) {
            return true;
        }
    }
    return false;
}

double me_link_use_rate(const me_cluster *cluster, const me_link_use *use)
{
    const me_link_kind kind = me_link_use_slowest(use);
    return cluster->links[kind].is_cards
               ? 0
               : me_cluster_rate(cluster, kind, use->path.local);
}
