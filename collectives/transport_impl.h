/**
 * @file
 * What the transports share among themselves: the table of functions behind
 * me_transport. Nobody else includes this.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_COLLECTIVES_TRANSPORT_IMPL_H
#define MEMEST_COLLECTIVES_TRANSPORT_IMPL_H

#include "collectives/transport.h"

/** One transport's functions; each as its public namesake. */
typedef struct me_transport_ops {
    me_status (*agree)(me_transport *transport, me_status status,
                       me_diag *diag);
    me_status (*gather)(me_transport *transport, me_blob own, me_diag *diag,
                        me_blob **blobs_out);
    me_status (*all_gather)(me_transport *transport, me_blob own, me_diag *diag,
                            me_blob **blobs_out);
    void (*abort)(me_transport *transport, int exit_code);
    void (*destroy)(me_transport *transport);
} me_transport_ops;

/** The head that every transport's own structure begins with. */
struct me_transport {
    const me_transport_ops *ops;
    int rank;
    int size;
    size_t chunk_bytes; /**< the most bytes that one message carries */
    uint64_t lost;      /**< requests for memory, before there was this one */
};

#endif /* MEMEST_COLLECTIVES_TRANSPORT_IMPL_H */
