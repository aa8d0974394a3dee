/* SPDX-License-Identifier: BSD-3-Clause */
/* Constants are those of NCCL 2.30's graph/topo.h, topo.cc and tuning.cc. */
#include "run/machine_xml.h"

#include "device/topology.h"

#include <stdio.h>
#include <string.h>

_Static_assert((int)ME_TOPOLOGY_GPUS == (int)ME_CLUSTER_GPUS, "of one node");

/** What NCCL counts of a PCIe link: 24 GB/s of the 31.5 of Gen4 x16. */
static const double NCCL_OF_PCIE = 24 / 31.5077;
/** Through an Intel CPU traffic between GPUs takes a fifth more. */
static const double OF_INTEL = 5.0 / 6;

/** hwLatencies and baseLatencies of rings, protocol Simple. */
static const double NVLINK_STEP_S = 3.4e-6;
static const double PCIE_STEP_S = 5.7e-6;
static const double NETWORK_STEP_S = 14e-6;
static const double BASE_S = 8.4e-6;

static bool is_intel(const me_topology *t)
{
    return strcmp(t->cpu_vendor, "GenuineIntel") == 0;
}

/** Bytes a second between NUMA nodes as ncclTopoGetInterCpuBw() has it; 0: it
 *  does not know the CPU. */
static double between_sockets(const me_topology *t)
{
    if (is_intel(t)) {
        const uint64_t model = t->cpu_family == 6 ? t->cpu_model : 0;
        return model >= 0xCF   ? 40e9
               : model >= 0x8F ? 22e9
               : model >= 0x55 ? 10e9
                               : 6e9;
    }
    if (strcmp(t->cpu_vendor, "AuthenticAMD") == 0) {
        return 16e9;
    }
    return strcmp(t->cpu_arch, "aarch64") == 0   ? 6e9
           : strcmp(t->cpu_arch, "ppc64le") == 0 ? 32e9
                                                 : 0;
}

static me_link_kind kind_of(const me_topology *t, int i, int j)
{
    static const me_link_kind kinds[] = {
        [ME_GPUS_SHARE_SWITCH] = ME_LINK_PCIE_SWITCH,
        [ME_GPUS_SHARE_NUMA] = ME_LINK_HOST_BRIDGE,
        [ME_GPUS_SHARE_MACHINE] = ME_LINK_SOCKET,
    };
    return t->nvlink_bytes[i][j] > 0 ? ME_LINK_NVLINK
                                     : kinds[t->relation[i][j]];
}

static void join_pairs(const me_topology *t, me_cluster *c)
{
    me_cluster_link *nvlink = &c->links[ME_LINK_NVLINK];
    for (int i = 0; i < t->n_gpus; i++) {
        c->order[i] = (uint8_t)i;
        for (int j = 0; j < t->n_gpus; j++) {
            const me_link_kind kind = kind_of(t, i, j);
            c->pairs[i][j] = (uint8_t)kind;
            c->links[kind].is_there |= i != j;
            if (i != j && kind == ME_LINK_NVLINK &&
                (nvlink->bytes == 0 || t->nvlink_bytes[i][j] < nvlink->bytes)) {
                nvlink->bytes = t->nvlink_bytes[i][j];
            }
        }
    }
}

static void describe_nvlink(me_cluster_link *link)
{
    link->is_cards = true;
    link->scale = 1;
    link->step_s = NVLINK_STEP_S;
    (void)snprintf(link->source, sizeof link->source,
                   "NVLinkBandwidth of the XML, %.0f GB/s (the least of all "
                   "pairs), at the card's rates for its NVLink",
                   link->bytes * 1e-9);
}

/** PCIe, through a switch or the CPU. */
static me_status describe_pcie(const me_topology *t, const char *path,
                               me_diag *diag, me_cluster *c)
{
    const double pcie = t->pcie_bytes * NCCL_OF_PCIE;
    const double of_host = is_intel(t) ? OF_INTEL : 1;
    const double sockets = between_sockets(t);
    const double least = pcie < sockets ? pcie : sockets;
    const double bytes[ME_LINK_KINDS] = {
        [ME_LINK_PCIE_SWITCH] = pcie,
        [ME_LINK_HOST_BRIDGE] = pcie * of_host,
        [ME_LINK_SOCKET] = least * of_host,
    };
    for (int kind = ME_LINK_PCIE_SWITCH; kind <= ME_LINK_SOCKET; kind++) {
        me_cluster_link *link = &c->links[kind];
        link->bytes = bytes[kind];
        link->step_s = PCIE_STEP_S;
        link->shared = kind == ME_LINK_SOCKET ? 1 : 0;
        if (link->is_there && !(link->bytes > 0)) {
            return me_fail_at(
                diag, ME_ERR_CONFIG, path, 0,
                "GPUs are joined by %s, whose speed cannot be told: PCIe link "
                "%.1f GB/s, CPU '%s'; write a machine file (docs/time.md)",
                me_link_kind_name((me_link_kind)kind), t->pcie_bytes * 1e-9,
                t->cpu_vendor);
        }
        (void)snprintf(link->source, sizeof link->source,
                       "PCIe of the XML, %.1f GB/s, CPU '%s', as NCCL's source "
                       "counts them; not measured",
                       t->pcie_bytes * 1e-9, t->cpu_vendor);
    }
    return ME_OK;
}

/** The XML has the adapters but not how fast their ports are. */
static void describe_network(const me_topology *t, const me_rates *rates,
                             me_cluster_link *link)
{
    link->is_there = true;
    link->bytes = rates->network.p2p;
    link->step_s = NETWORK_STEP_S;
    link->shared = t->n_adapters > 0 ? t->n_adapters : t->n_gpus;
    (void)snprintf(link->source, sizeof link->source,
                   "not in the XML, %s adapters of a node at the card's "
                   "network rate: %s",
                   t->n_adapters > 0 ? "its" : "as many as GPUs for",
                   rates->network_source);
}

me_status me_machine_read_hwloc(const char *path, const me_rates *rates,
                                me_diag *diag, me_cluster *cluster_out)
{
    me_topology t = {.n_gpus = 0};
    me_status status = me_topology_read(path, diag, &t);
    if (status != ME_OK) {
        return status;
    }
    me_cluster c = {.gpus = t.n_gpus, .base_s = BASE_S};
    const char *slash = strrchr(path, '/');
    (void)snprintf(c.name, sizeof c.name, "%.200s",
                   slash == NULL ? path : slash + 1);
    join_pairs(&t, &c);
    describe_nvlink(&c.links[ME_LINK_NVLINK]);
    status = describe_pcie(&t, path, diag, &c);
    describe_network(&t, rates, &c.links[ME_LINK_NETWORK]);
    if (status == ME_OK) {
        *cluster_out = c;
    }
    return status;
}
