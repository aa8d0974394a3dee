/* SPDX-License-Identifier: BSD-3-Clause */
/* One process gives up for good while the others wait for it: the job must
 * end, with an exit status that is not 0, and not hang. */
#include "collectives/transport.h"

int main(int argc, char **argv)
{
    me_transport *transport = NULL;
    if (me_transport_mpi_create(&argc, &argv, NULL, &transport) != ME_OK) {
        return 0;
    }
    if (me_transport_rank(transport) == me_transport_size(transport) - 1) {
        me_transport_abort(transport, 1);
    }
    (void)me_transport_agree(transport, ME_OK, NULL);
    me_transport_destroy(transport);
    return 0;
}
