/**
 * @file
 * How the GPUs of a node are joined, from the XML that hwloc's
 * `lstopo FILE.xml` writes on it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_DEVICE_TOPOLOGY_H
#define MEMEST_DEVICE_TOPOLOGY_H

#include "base/status.h"

#include <stdint.h>

enum {
    ME_TOPOLOGY_GPUS = 16,
    ME_TOPOLOGY_TEXT = 64
};

/** What two GPUs have in common, from the nearest to the farthest. */
typedef enum me_gpu_relation {
    ME_GPUS_SHARE_SWITCH, /**< a PCIe bridge below the host's */
    ME_GPUS_SHARE_NUMA,   /**< the NUMA node, not a bridge */
    ME_GPUS_SHARE_MACHINE /**< only the machine */
} me_gpu_relation;

/** A node. GPUs are in the order of their PCI addresses. */
typedef struct me_topology {
    int32_t n_gpus;
    uint8_t relation[ME_TOPOLOGY_GPUS][ME_TOPOLOGY_GPUS];
    double nvlink_bytes[ME_TOPOLOGY_GPUS][ME_TOPOLOGY_GPUS]; /**< a second, one
                                                way; 0: no NVLink is known */
    double pcie_bytes;  /**< a second, of the slowest PCIe link of a GPU, as
                            hwloc says; 0: it does not */
    int32_t n_adapters; /**< InfiniBand and RoCE devices */
    char cpu_vendor[ME_TOPOLOGY_TEXT]; /**< "GenuineIntel"; "": not said */
    char cpu_arch[ME_TOPOLOGY_TEXT];   /**< "x86_64" */
    uint64_t cpu_family;
    uint64_t cpu_model;
} me_topology;

/**
 * Read a file. hwloc itself, which crashes at some files that it did not write,
 * has no part in it. Local.
 *
 * @return ME_OK; ME_ERR_IO for one that is not there; ME_ERR_SYNTAX or
 *         ME_ERR_CONFIG for one that is no topology or has no NVIDIA GPUs, or
 *         more than ME_TOPOLOGY_GPUS; ME_ERR_NOMEM
 */
me_status me_topology_read(const char *path, me_diag *diag,
                           me_topology *topology_out) ME_MUST_CHECK;

#endif /* MEMEST_DEVICE_TOPOLOGY_H */
