/* SPDX-License-Identifier: BSD-3-Clause */
/* Where ranks lie, and the ring of a group over what joins them. */
#include "base/alloc.h"
#include "time/cluster.h"

#include <string.h>

enum {
    DIGIT_BITS = 5 /**< of a cost: links of one kind, at most 16 */
};

const char *me_link_kind_name(me_link_kind kind)
{
#define ME_LINK_KIND_NAME(constant, name) [constant] = (name),
    static const char *const names[] = {ME_LINK_KIND_LIST(ME_LINK_KIND_NAME)};
#undef ME_LINK_KIND_NAME
    return names[kind];
}

int32_t me_cluster_nodes(const me_cluster_layout *layout)
{
    return (layout->world + layout->gpus_per_node - 1) / layout->gpus_per_node;
}

int32_t me_cluster_node(const me_cluster_layout *layout, int32_t rank)
{
    return layout->is_cyclic ? rank % me_cluster_nodes(layout)
                             : rank / layout->gpus_per_node;
}

/** Its place among the ranks of that node. Local. */
static int32_t local_rank(const me_cluster_layout *layout, int32_t rank)
{
    return layout->is_cyclic ? rank / me_cluster_nodes(layout)
                             : rank % layout->gpus_per_node;
}

static int32_t gpu_of(const me_cluster *cluster, int32_t rank)
{
    return cluster->order[local_rank(&cluster->layout, rank)];
}

me_link_kind me_cluster_between(const me_cluster *cluster, int32_t a, int32_t b)
{
    const me_cluster_layout *layout = &cluster->layout;
    if (me_cluster_node(layout, a) != me_cluster_node(layout, b)) {
        return ME_LINK_NETWORK;
    }
    return (me_link_kind)cluster->pairs[gpu_of(cluster, a)][gpu_of(cluster, b)];
}

me_link_kind me_link_path_slowest(const me_link_path *path)
{
    int kind = ME_LINK_NETWORK;
    while (kind > 0 && path->links[kind] == 0) {
        kind--;
    }
    return (me_link_kind)kind;
}

/** The GPUs of one node, of which @p gpus is the set. */
typedef struct node_ring {
    const me_cluster *cluster;
    uint8_t gpus[ME_CLUSTER_GPUS];
    int32_t n;
    bool is_closed; /**< a whole ring, else a way through the node */
} node_ring;

/** One link more. Costs compare as numbers do: the farthest kind first. */
static uint32_t link_cost(const node_ring *ring, int32_t i, int32_t j)
{
    const me_cluster *c = ring->cluster;
    return 1U << (DIGIT_BITS *
                  (unsigned)c->pairs[ring->gpus[i]][ring->gpus[j]]);
}

/** Extend every way over a set of GPUs by one. */
static void extend(const node_ring *ring, uint32_t set, uint32_t *costs)
{
    const size_t n = (size_t)ring->n;
    for (int32_t last = 0; last < ring->n; last++) {
        const uint32_t so_far = costs[set * n + (size_t)last];
        if (so_far == UINT32_MAX) {
            continue;
        }
        for (int32_t next = 0; next < ring->n; next++) {
            if ((set >> (unsigned)next & 1U) != 0) {
                continue;
            }
            const uint32_t larger = set | 1U << (unsigned)next;
            uint32_t *cost = &costs[larger * n + (size_t)next];
            const uint32_t sum = so_far + link_cost(ring, last, next);
            *cost = sum < *cost ? sum : *cost;
        }
    }
}

/** The least cost of a ring or way over all its GPUs: dynamic programming over
 *  sets. A way may begin anywhere, a ring begins at the first. */
static me_status find_cheapest(const node_ring *ring, uint32_t *cost_out)
{
    const size_t n = (size_t)ring->n;
    const size_t n_sets = (size_t)1 << n;
    uint32_t *costs = me_alloc(n_sets * n, sizeof *costs, "cluster.ring");
    if (costs == NULL) {
        return ME_ERR_NOMEM;
    }
    memset(costs, 0xff, n_sets * n * sizeof *costs);
    for (size_t i = 0; i < (ring->is_closed ? 1 : n); i++) {
        costs[((size_t)1 << i) * n + i] = 0;
    }
    for (uint32_t set = 1; set < n_sets; set++) {
        extend(ring, set, costs);
    }
    uint32_t best = UINT32_MAX;
    for (int32_t last = 0; last < ring->n; last++) {
        uint32_t cost = costs[(n_sets - 1) * n + (size_t)last];
        if (cost != UINT32_MAX && ring->is_closed && last > 0) {
            cost += link_cost(ring, last, 0);
        }
        best = cost < best ? cost : best;
    }
    me_free(costs);
    *cost_out = best;
    return ME_OK;
}

/** The node before, for many are alike. */
typedef struct known_node {
    uint32_t set;
    uint32_t cost;
} known_node;

/** Add a node's part of the ring. */
static me_status add_node(const me_cluster *cluster, uint32_t set,
                          bool is_closed, known_node *known, me_link_path *path)
{
    node_ring ring = {.cluster = cluster, .is_closed = is_closed};
    for (int32_t gpu = 0; gpu < cluster->gpus; gpu++) {
        if ((set >> (unsigned)gpu & 1U) != 0) {
            ring.gpus[ring.n++] = (uint8_t)gpu;
        }
    }
    path->nodes++;
    path->local =
        path->nodes == 1 || ring.n < path->local ? ring.n : path->local;
    if (ring.n < 2) {
        return ME_OK;
    }
    me_status status = ME_OK;
    if (known->set != set) {
        status = find_cheapest(&ring, &known->cost);
        known->set = status == ME_OK ? set : 0;
    }
    for (int kind = 0; status == ME_OK && kind < ME_LINK_NETWORK; kind++) {
        path->links[kind] +=
            (int32_t)(known->cost >> (DIGIT_BITS * kind) & 31U);
    }
    return status;
}

/** Peers of a member on its own node, by kind; the rest are on others. */
static void count_peers_of(const me_cluster *cluster, uint32_t set, int32_t gpu,
                           me_link_path *path)
{
    int32_t peers[ME_LINK_KINDS] = {0};
    int32_t here = 0;
    for (int32_t other = 0; other < cluster->gpus; other++) {
        if ((set >> (unsigned)other & 1U) != 0) {
            here++;
            peers[cluster->pairs[gpu][other]] += other != gpu;
        }
    }
    peers[ME_LINK_NETWORK] = path->size - here;
    for (int kind = 0; kind < ME_LINK_KINDS; kind++) {
        path->peers[kind] =
            peers[kind] > path->peers[kind] ? peers[kind] : path->peers[kind];
    }
}

static void count_peers(const me_cluster *cluster, uint32_t set,
                        me_link_path *path)
{
    for (int32_t gpu = 0; gpu < cluster->gpus; gpu++) {
        if ((set >> (unsigned)gpu & 1U) != 0) {
            count_peers_of(cluster, set, gpu, path);
        }
    }
}

static me_status add_nodes(const me_cluster *cluster, const uint32_t *sets,
                           int32_t n_nodes, me_link_path *path)
{
    int32_t used = 0;
    for (int32_t i = 0; i < n_nodes; i++) {
        used += sets[i] != 0;
    }
    me_status status = ME_OK;
    known_node known = {.set = 0};
    for (int32_t i = 0; i < n_nodes && status == ME_OK; i++) {
        if (sets[i] == 0) {
            continue;
        }
        if (known.set != sets[i]) {
            count_peers(cluster, sets[i], path);
        }
        status = add_node(cluster, sets[i], used == 1, &known, path);
    }
    path->links[ME_LINK_NETWORK] = used > 1 ? used : 0;
    return status;
}

me_status me_link_path_find(const me_cluster *cluster, const int32_t *members,
                            int32_t size, me_link_path *path_out)
{
    me_link_path path = {.size = size};
    if (size < 2) {
        *path_out = path;
        return ME_OK;
    }
    const int32_t n_nodes = me_cluster_nodes(&cluster->layout);
    uint32_t *sets = me_alloc((size_t)n_nodes, sizeof *sets, "cluster.nodes");
    if (sets == NULL) {
        return ME_ERR_NOMEM;
    }
    for (int32_t i = 0; i < size; i++) {
        sets[me_cluster_node(&cluster->layout, members[i])] |=
            1U << (unsigned)gpu_of(cluster, members[i]);
    }
    for (int32_t i = 1; i < size; i++) {
        path.transfers[me_cluster_between(cluster, members[i - 1],
                                          members[i])]++;
    }
    const me_status status = add_nodes(cluster, sets, n_nodes, &path);
    me_free(sets);
    if (status == ME_OK) {
        *path_out = path;
    }
    return status;
}
