/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/machine_impl.h"
#include "device/topology.h"

const char *me_machine_hwloc(me_machine_card *card_out)
{
    (void)card_out;
    return "not built in";
}

me_status me_topology_read(const char *path, me_diag *diag,
                           me_topology *topology_out)
{
    (void)topology_out;
    return me_fail_at(diag, ME_ERR_UNSUPPORTED, path, 0,
                      "a topology needs hwloc, which is not built in");
}
