/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives and transfers over a machine's links, by the formulas of NCCL's
 * graph/tuning.cc. */
#include "time/cluster.h"

#include <math.h>

/** Of a ring's bandwidth what a tree reaches. */
static const double TREE_OF_RING = 0.92;

static int64_t nanoseconds(double seconds)
{
    return (int64_t)(seconds * 1e9 + 0.5);
}

double me_cluster_rate(const me_cluster *cluster, me_link_kind kind,
                       int32_t local)
{
    const me_cluster_link *link = &cluster->links[kind];
    if (link->shared == 0) {
        return link->bytes;
    }
    const me_cluster_layout *l = &cluster->layout;
    const int32_t ranks =
        l->world < l->gpus_per_node ? l->world : l->gpus_per_node;
    return link->bytes * link->shared * local / ranks;
}

static bool is_of_card(const me_cluster *cluster, const me_link_path *path)
{
    return me_link_path_slowest(path) == ME_LINK_NVLINK &&
           cluster->links[ME_LINK_NVLINK].is_cards;
}

/** Bytes a second over each link of a ring. */
static double ring_rate(const me_rates *rates, const me_cluster *cluster,
                        me_collective kind, const me_link_path *path)
{
    double least = INFINITY;
    for (int i = 0; i < ME_LINK_KINDS; i++) {
        const me_cluster_link *link = &cluster->links[i];
        if (path->links[i] > 0) {
            least = fmin(
                least,
                link->is_cards
                    ? link->scale * me_link_bus_rate(rates, kind, path->local)
                    : me_cluster_rate(cluster, (me_link_kind)i, path->local));
        }
    }
    return least;
}

/** Of one step within a node: the farthest kind of link that the ring has. */
static double inner_step(const me_cluster *cluster, const me_link_path *path)
{
    double most = 0;
    for (int i = 0; i < ME_LINK_NETWORK; i++) {
        if (path->links[i] > 0) {
            most = fmax(most, cluster->links[i].step_s);
        }
    }
    return most;
}

static double ring_seconds(const me_cluster *cluster, double bytes, double rate,
                           const me_link_path *path, bool is_all_reduce)
{
    const int twice = is_all_reduce ? 2 : 1;
    const int steps = twice * (path->size - 1);
    const int outer = twice * (path->nodes - 1);
    return cluster->base_s + (steps - outer) * inner_step(cluster, path) +
           outer * cluster->links[ME_LINK_NETWORK].step_s +
           bytes * steps / path->size / rate;
}

/** Two trees, of which each node is a chain: up and down again. */
static double tree_seconds(const me_cluster *cluster, double bytes, double rate,
                           const me_link_path *path)
{
    const double chain = (double)path->size / path->nodes - 1;
    const double depth = floor(log2(path->nodes));
    return cluster->base_s +
           2 * (chain * inner_step(cluster, path) +
                depth * cluster->links[ME_LINK_NETWORK].step_s) +
           2 * bytes / (TREE_OF_RING * rate);
}

/** Each rank sends its part to each other one; kinds of links work at once. */
static double all_to_all_seconds(const me_rates *rates,
                                 const me_cluster *cluster, double bytes,
                                 const me_link_path *path)
{
    double most = 0;
    for (int i = 0; i < ME_LINK_KINDS; i++) {
        const me_cluster_link *link = &cluster->links[i];
        if (path->peers[i] == 0) {
            continue;
        }
        const double rate =
            link->is_cards
                ? link->scale * me_link_bus_rate(
                                    rates, ME_COLLECTIVE_ALL_TO_ALL, path->size)
                : me_cluster_rate(cluster, (me_link_kind)i, 1);
        most = fmax(most,
                    link->step_s + bytes * path->peers[i] / path->size / rate);
    }
    return cluster->base_s + most;
}

int64_t me_cluster_collective_ns(const me_rates *rates,
                                 const me_cluster *cluster,
                                 const me_launch *collective,
                                 const me_link_path *path)
{
    const me_collective kind = (me_collective)collective->collective;
    me_launch scaled = *collective;
    if (path->size <= 1 || is_of_card(cluster, path)) {
        const double scale =
            path->size <= 1 ? 1 : cluster->links[ME_LINK_NVLINK].scale;
        scaled.bytes = (uint64_t)((double)scaled.bytes / scale);
        return me_collective_ns(rates, &scaled,
                                &(me_time_group){.size = path->size});
    }
    const double bytes = (double)collective->bytes;
    if (kind == ME_COLLECTIVE_ALL_TO_ALL) {
        return nanoseconds(all_to_all_seconds(rates, cluster, bytes, path));
    }
    const double rate = ring_rate(rates, cluster, kind, path);
    const bool is_all_reduce = kind == ME_COLLECTIVE_ALL_REDUCE;
    const double ring = ring_seconds(cluster, bytes, rate, path, is_all_reduce);
    return nanoseconds(
        is_all_reduce && path->nodes > 1
            ? fmin(ring, tree_seconds(cluster, bytes, rate, path))
            : ring);
}

double me_cluster_transfer_rate(const me_cluster *cluster, me_link_kind kind,
                                const me_link_path *pipeline)
{
    const me_cluster_link *link = &cluster->links[kind];
    if (link->shared == 0) {
        return link->bytes;
    }
    const double of_node =
        ceil((double)pipeline->transfers[kind] / pipeline->nodes);
    const double share = me_cluster_rate(cluster, kind, pipeline->local);
    return fmin(link->bytes, share / fmax(of_node, 1));
}

int64_t me_cluster_transfer_ns(const me_rates *rates, const me_cluster *cluster,
                               uint64_t bytes, me_link_kind kind,
                               const me_link_path *pipeline)
{
    const me_cluster_link *link = &cluster->links[kind];
    if (link->is_cards) {
        return me_transfer_ns(rates, (uint64_t)((double)bytes / link->scale),
                              false);
    }
    const double rate = me_cluster_transfer_rate(cluster, kind, pipeline);
    return nanoseconds(link->step_s + (double)bytes / rate);
}
