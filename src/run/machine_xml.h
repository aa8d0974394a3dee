/**
 * @file
 * A machine from hwloc's XML: it says which GPUs share what; how fast that is
 * comes from the XML, where it says so, and from NCCL's source.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_RUN_MACHINE_XML_H
#define MEMEST_RUN_MACHINE_XML_H

#include "time/cluster.h"

/**
 * Read a node. Its network, which the XML does not describe, is the card's.
 * Local.
 *
 * @param rates  of the card
 * @return ME_OK; as me_topology_read(); ME_ERR_CONFIG where the speed of a link
 *         that joins GPUs cannot be told
 */
me_status me_machine_read_hwloc(const char *path, const me_rates *rates,
                                me_diag *diag,
                                me_cluster *cluster_out) ME_MUST_CHECK;

#endif /* MEMEST_RUN_MACHINE_XML_H */
