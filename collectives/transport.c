/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/transport.h"

#include "base/alloc.h"
#include "collectives/transport_impl.h"

void me_transport_abort(me_transport *transport, int exit_code)
{
    transport->ops->abort(transport, exit_code);
}

void me_transport_destroy(me_transport *transport)
{
    if (transport != NULL) {
        transport->ops->destroy(transport);
    }
}

int me_transport_rank(const me_transport *transport)
{
    return transport->rank;
}

int me_transport_size(const me_transport *transport)
{
    return transport->size;
}

void me_transport_set_chunk(me_transport *transport, size_t chunk_bytes)
{
    transport->chunk_bytes = chunk_bytes;
}

me_status me_transport_check(const me_transport *transport, me_status status,
                             me_diag *diag)
{
    return me_alloc_check(transport->lost, status, diag);
}

me_status me_transport_agree(me_transport *transport, me_status status,
                             me_diag *diag)
{
    return transport->ops->agree(
        transport, me_transport_check(transport, status, diag), diag);
}

/** The block is only read; me_blob has no const form. */
static me_blob borrow(const void *bytes, size_t size)
{
    union {
        const void *read_only;
        unsigned char *bytes;
    } view = {.read_only = bytes};

    return (me_blob){.bytes = view.bytes, .size = size};
}

me_status me_transport_gather(me_transport *transport, const void *bytes,
                              size_t size, me_diag *diag, me_blob **blobs_out)
{
    *blobs_out = NULL;
    return transport->ops->gather(transport, borrow(bytes, size), diag,
                                  blobs_out);
}

me_status me_transport_all_gather(me_transport *transport, const void *bytes,
                                  size_t size, me_diag *diag,
                                  me_blob **blobs_out)
{
    *blobs_out = NULL;
    return transport->ops->all_gather(transport, borrow(bytes, size), diag,
                                      blobs_out);
}

void me_blobs_free(me_blob *blobs, int count)
{
    for (int i = 0; blobs != NULL && i < count; i++) {
        me_free(blobs[i].bytes);
    }
    me_free(blobs);
}
