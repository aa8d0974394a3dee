/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/transport.h"

/** Stands in for transport_mpi.c where memest is built without MPI. */
me_status me_transport_mpi_create(int *argc, char ***argv, me_diag *diag,
                                  me_transport **transport_out)
{
    (void)argc;
    (void)argv;
    const me_status status = me_transport_local_create(transport_out);
    if (status != ME_OK) {
        return me_fail(diag, status, "no host memory for a transport");
    }
    return ME_OK;
}
