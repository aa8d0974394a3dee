/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/node_memory.h"

#include "base/size.h"
#include "report/quantity.h"
#include "time/cluster.h"

/** How the configuration lays ranks on nodes. */
static me_cluster_layout layout_of(const me_report *report)
{
    const int32_t said = report->config->device.gpus_per_node;
    return (me_cluster_layout){
        .world = report->world_size,
        .gpus_per_node = said > 0 ? said : report->world_size,
        .is_cyclic = report->config->machine.placement == ME_RANKS_CYCLIC,
    };
}

/** What a node's ranks keep at most, each at its own time: nothing holds them
 *  together. */
static me_node_memory add_up(const me_report *report,
                             const me_cluster_layout *layout, int32_t node)
{
    const int32_t n_nodes = me_cluster_nodes(layout);
    const int32_t stride = layout->is_cyclic ? n_nodes : 1;
    me_node_memory sum = {
        .node = node,
        .first_rank = layout->is_cyclic ? node : node * layout->gpus_per_node,
    };
    for (int32_t i = 0; i < layout->gpus_per_node; i++) {
        const int32_t rank = sum.first_rank + i * stride;
        if (rank < layout->world) {
            const me_host_memory *host =
                &report->results[report->ranks[rank].result]->host;
            sum.bytes = me_size_add(sum.bytes, host->peak_bytes);
            sum.pinned_bytes =
                me_size_add(sum.pinned_bytes, host->pinned_bytes);
            sum.n_ranks++;
        }
    }
    return sum;
}

me_node_memory me_report_node_memory(const me_report *report)
{
    me_node_memory most = {.n_ranks = 0};
    bool is_used = false;
    for (uint32_t i = 0; i < report->n_results; i++) {
        is_used = is_used || report->results[i]->host.peak_bytes > 0;
    }
    if (!is_used || report->world_size != report->config->parallel.world_size) {
        return most;
    }
    const me_cluster_layout layout = layout_of(report);
    const int32_t n_nodes = me_cluster_nodes(&layout);
    for (int32_t node = 0; node < n_nodes; node++) {
        const me_node_memory sum = add_up(report, &layout, node);
        if (sum.bytes > most.bytes) {
            most = sum;
        }
    }
    most.capacity_bytes = report->config->device.host_memory_bytes;
    return most;
}

bool me_node_memory_is_over(const me_node_memory *node)
{
    return node->capacity_bytes != 0 && node->bytes > node->capacity_bytes;
}

void me_node_memory_append_excess(const me_node_memory *node, me_str *text)
{
    if (!me_node_memory_is_over(node)) {
        return;
    }
    me_str_printf(text, ": %d rank%s of node %d keep%s ", (int)node->n_ranks,
                  node->n_ranks == 1 ? "" : "s", (int)node->node,
                  node->n_ranks == 1 ? "s" : "");
    me_gib_append(text, node->bytes);
    me_str_append(text, " of ");
    me_gib_append(text, node->capacity_bytes);
    me_str_append(text, " GiB in its host's memory");
}
