/**
 * @file
 * The machine that a job runs on: nodes of GPUs, what joins each pair of them,
 * and how long collectives and transfers take over that, as NCCL's rings and
 * trees would run.
 *
 * Kinds of links are ordered from the nearest to the farthest, as NCCL's own
 * paths are (graph/topo.h); a ring prefers the nearer ones.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TIME_CLUSTER_H
#define MEMEST_TIME_CLUSTER_H

#include "model/event.h"
#include "time/rates.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ME_CLUSTER_GPUS = 16, /**< of a node, at most */
    ME_CLUSTER_TEXT = 256
};

/** X(constant, name): what joins two GPUs. */
#define ME_LINK_KIND_LIST(X)                                                   \
    X(ME_LINK_NVLINK, "nvlink")                                                \
    X(ME_LINK_PCIE_SWITCH, "pcie_switch")                                      \
    X(ME_LINK_HOST_BRIDGE, "host_bridge")                                      \
    X(ME_LINK_SOCKET, "socket")                                                \
    X(ME_LINK_NETWORK, "network")

#define ME_LINK_KIND_ENUM(constant, name) constant,

typedef enum me_link_kind {
    ME_LINK_KIND_LIST(ME_LINK_KIND_ENUM) ME_LINK_KINDS
} me_link_kind;

#undef ME_LINK_KIND_ENUM

/** As files and reports write it; static. */
const char *me_link_kind_name(me_link_kind kind);

/** One kind of link of a machine. */
typedef struct me_cluster_link {
    bool is_there;
    bool is_cards;  /**< as fast as the card's own rates say; NVLink alone */
    double scale;   /**< of the card's rates, for a wider or narrower NVLink */
    double step_s;  /**< latency of one step of a ring or one transfer */
    double bytes;   /**< a second, one way; of a GPU's own link or of one of
                        `shared` */
    int32_t shared; /**< links of a node that its GPUs share; 0: each GPU has
                         its own */
    char source[ME_CLUSTER_TEXT];
} me_cluster_link;

/** How ranks lie on nodes and GPUs. */
typedef struct me_cluster_layout {
    int32_t world;
    int32_t gpus_per_node; /**< that are used */
    bool is_cyclic; /**< rank r on node r mod nodes; else nodes are filled one
                         after the other */
} me_cluster_layout;

/** A machine; a value, read-only once it is made. */
typedef struct me_cluster {
    char name[ME_CLUSTER_TEXT];
    int32_t gpus;                   /**< of a node */
    uint8_t order[ME_CLUSTER_GPUS]; /**< GPU of each rank of a node */
    uint8_t pairs[ME_CLUSTER_GPUS][ME_CLUSTER_GPUS]; /**< me_link_kind */
    me_cluster_link links[ME_LINK_KINDS];
    double base_s;       /**< of a collective, beside its steps */
    uint64_t host_bytes; /**< memory of a node's host; 0: not said */
    me_cluster_layout layout;
} me_cluster;

/**
 * Read a machine's file. Its layout is not filled in. Local.
 *
 * @param text   of libconfig's syntax; see docs/time.md
 * @param where  what messages call the file
 * @return ME_OK; ME_ERR_SYNTAX; ME_ERR_CONFIG for a key that is missing,
 *         unknown or absurd, or a pair that nothing joins; ME_ERR_NOMEM
 */
me_status me_cluster_read(const char *text, const char *where, me_diag *diag,
                          me_cluster *cluster_out) ME_MUST_CHECK;

/** As me_cluster_read(), of a file; also as me_input_read(). Local. */
me_status me_cluster_load(const char *path, me_diag *diag,
                          me_cluster *cluster_out) ME_MUST_CHECK;

/** Add a machine to a statement (base/statement.h): "machine.links.nvlink".
 *  Local. */
void me_cluster_state(const me_cluster *cluster, me_str *statement);

/** Nodes that a layout needs. Local. */
int32_t me_cluster_nodes(const me_cluster_layout *layout);
/** Node of a rank. Local. */
int32_t me_cluster_node(const me_cluster_layout *layout, int32_t rank);

/** What joins two ranks that are not the same. Local. */
me_link_kind me_cluster_between(const me_cluster *cluster, int32_t a,
                                int32_t b);

/** What a group's ring crosses. */
typedef struct me_link_path {
    int32_t size;                 /**< ranks; 0 or 1: none is crossed */
    int32_t nodes;                /**< that they lie on */
    int32_t local;                /**< fewest ranks of it on one of them */
    int32_t links[ME_LINK_KINDS]; /**< of its ring, of each kind */
    int32_t peers[ME_LINK_KINDS]; /**< most that a rank has over each kind */
    int32_t transfers[ME_LINK_KINDS]; /**< from each rank to the next one, as a
                                           pipeline has them, of each kind */
} me_link_path;

/** The farthest kind that a ring crosses; of a path with two ranks or more. */
me_link_kind me_link_path_slowest(const me_link_path *path);

/**
 * The ring of a group: on each node the order of ranks that crosses the fewest
 * links of the farthest kind, then of the next one; between nodes the network.
 *
 * @param members  ranks of the group, rising; borrowed
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status me_link_path_find(const me_cluster *cluster, const int32_t *members,
                            int32_t size, me_link_path *path_out) ME_MUST_CHECK;

/** Bytes a second, one way, that @p local ranks of one group have of a kind of
 *  link while like groups use it too; @p kind is there. Local. */
double me_cluster_rate(const me_cluster *cluster, me_link_kind kind,
                       int32_t local);

/** Groups of one kind that cross the same. */
typedef struct me_link_use {
    me_group_kind group;
    int32_t groups; /**< how many */
    me_link_path path;
} me_link_use;

/** What a job's groups cross. */
typedef struct me_link_uses {
    const me_cluster *cluster; /**< borrowed; NULL: links are the card's */
    me_link_use *items;        /**< by group, owned */
    int32_t n_items;
} me_link_uses;

/** Nanoseconds of a collective once all are there. Local. */
int64_t me_cluster_collective_ns(const me_rates *rates,
                                 const me_cluster *cluster,
                                 const me_launch *collective,
                                 const me_link_path *path);

/** Bytes a second of a transfer of a pipeline over a kind of link: of one link,
 *  or of its share where all transfers of like pipelines run at once. Local. */
double me_cluster_transfer_rate(const me_cluster *cluster, me_link_kind kind,
                                const me_link_path *pipeline);

/** Nanoseconds of a transfer between two ranks of a pipeline. Local. */
int64_t me_cluster_transfer_ns(const me_rates *rates, const me_cluster *cluster,
                               uint64_t bytes, me_link_kind kind,
                               const me_link_path *pipeline);

#endif /* MEMEST_TIME_CLUSTER_H */
