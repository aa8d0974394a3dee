/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "collectives/transport_impl.h"

#include <string.h>

static me_status local_agree(me_transport *transport, me_status status,
                             me_diag *diag)
{
    (void)transport;
    if (status != ME_OK && diag != NULL && diag->status == ME_OK) {
        return me_fail(diag, status, "%s", me_status_text(status));
    }
    return status;
}

static me_status local_gather(me_transport *transport, me_blob own,
                              me_diag *diag, me_blob **blobs_out)
{
    (void)transport;
    me_blob *blobs = me_alloc(1, sizeof *blobs, "transport.blobs");
    unsigned char *bytes = me_alloc(own.size, 1, "transport.blob");
    if (blobs == NULL || bytes == NULL) {
        me_free(blobs);
        me_free(bytes);
        return me_fail(diag, ME_ERR_NOMEM,
                       "no host memory for a block of %zu bytes", own.size);
    }
    if (own.size > 0) {
        memcpy(bytes, own.bytes, own.size);
    }
    *blobs = (me_blob){.bytes = bytes, .size = own.size};
    *blobs_out = blobs;
    return ME_OK;
}

static void local_abort(me_transport *transport, int exit_code)
{
    (void)transport;
    (void)exit_code;
}

static void local_destroy(me_transport *transport)
{
    me_free(transport);
}

me_status me_transport_local_create(me_transport **transport_out)
{
    static const me_transport_ops ops = {
        .agree = local_agree,
        .gather = local_gather,
        .all_gather = local_gather,
        .abort = local_abort,
        .destroy = local_destroy,
    };
    me_transport *transport = me_alloc(1, sizeof *transport, "transport");
    if (transport == NULL) {
        return ME_ERR_NOMEM;
    }
    *transport = (me_transport){
        .ops = &ops, .rank = 0, .size = 1, .lost = me_alloc_lost()};
    *transport_out = transport;
    return ME_OK;
}
