/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "collectives/launcher.h"
#include "collectives/transport_impl.h"

#include <mpi.h>
#include <stdbool.h>
#include <string.h>

enum {
    DEFAULT_CHUNK_BYTES = 1 << 30, /* MPI counts are int */
    TAG_BLOB = 1,
    WIRE_INT = 4,
    /* a diagnosis: status, line, where, text */
    WIRE_LINE = WIRE_INT,
    WIRE_WHERE = WIRE_LINE + WIRE_INT,
    WIRE_TEXT = WIRE_WHERE + ME_DIAG_WHERE,
    WIRE_DIAG = WIRE_TEXT + ME_DIAG_TEXT
};

typedef struct mpi_transport {
    me_transport base;
    MPI_Comm comm;
    bool is_owner; /* initialised MPI and will finalise it */
} mpi_transport;

static MPI_Comm comm_of(const me_transport *transport)
{
    return ((const mpi_transport *)transport)->comm;
}

/** The one place where an MPI error becomes one of memest's. */
static me_status translate(int code, const char *call, me_diag *diag)
{
    if (code == MPI_SUCCESS) {
        return ME_OK;
    }
    char text[MPI_MAX_ERROR_STRING] = "unknown error";
    int length = 0;
    (void)MPI_Error_string(code, text, &length);
    return me_fail(diag, ME_ERR_MPI, "%s: %s", call, text);
}

static void put_int(unsigned char *at, int value)
{
    const uint32_t bits = (uint32_t)value;
    for (int i = 0; i < WIRE_INT; i++) {
        at[i] = (unsigned char)(bits >> (8 * i));
    }
}

static int get_int(const unsigned char *at)
{
    uint32_t bits = 0;
    for (int i = 0; i < WIRE_INT; i++) {
        bits |= (uint32_t)at[i] << (8 * i);
    }
    return (int32_t)bits;
}

static void encode_diag(const me_diag *diag, me_status status,
                        unsigned char *wire)
{
    me_diag reason = {0};
    if (diag != NULL && diag->status != ME_OK) {
        reason = *diag;
    } else {
        (void)me_fail(&reason, status, "%s", me_status_text(status));
    }
    put_int(wire, status);
    put_int(wire + WIRE_LINE, reason.line);
    memcpy(wire + WIRE_WHERE, reason.where, ME_DIAG_WHERE);
    memcpy(wire + WIRE_TEXT, reason.text, ME_DIAG_TEXT);
}

static void decode_diag(const unsigned char *wire, me_diag *diag)
{
    if (diag == NULL) {
        return;
    }
    diag->status = (me_status)get_int(wire);
    diag->line = get_int(wire + WIRE_LINE);
    memcpy(diag->where, wire + WIRE_WHERE, ME_DIAG_WHERE);
    memcpy(diag->text, wire + WIRE_TEXT, ME_DIAG_TEXT);
    diag->where[ME_DIAG_WHERE - 1] = '\0';
    diag->text[ME_DIAG_TEXT - 1] = '\0';
}

static me_status mpi_agree(me_transport *transport, me_status status,
                           me_diag *diag)
{
    const int own[2] = {status, transport->rank};
    int worst[2] = {0, 0};
    me_status failed = translate(
        MPI_Allreduce(own, worst, 1, MPI_2INT, MPI_MINLOC, comm_of(transport)),
        "MPI_Allreduce", diag);
    if (failed != ME_OK || worst[0] == ME_OK) {
        return failed;
    }
    unsigned char wire[WIRE_DIAG] = {0};
    if (transport->rank == worst[1]) {
        encode_diag(diag, status, wire);
    }
    failed = translate(
        MPI_Bcast(wire, WIRE_DIAG, MPI_BYTE, worst[1], comm_of(transport)),
        "MPI_Bcast", diag);
    if (failed != ME_OK) {
        return failed;
    }
    decode_diag(wire, diag);
    return (me_status)worst[0];
}

/** Everybody's sizes, and blocks for those that this process keeps. */
static me_status receive_sizes(me_transport *transport, size_t own_size,
                               bool is_keeping, me_diag *diag,
                               me_blob **blobs_out)
{
    const int size = transport->size;
    uint64_t *sizes = me_alloc((size_t)size, sizeof *sizes, "transport.sizes");
    me_blob *blobs = me_alloc((size_t)size, sizeof *blobs, "transport.blobs");
    me_status status = ME_OK;
    if (sizes == NULL || blobs == NULL) {
        status = me_fail(diag, ME_ERR_NOMEM,
                         "no host memory for the sizes of %d blocks", size);
    }
    status = mpi_agree(transport, status, diag);
    if (status != ME_OK || sizes == NULL || blobs == NULL) {
        goto out;
    }
    const uint64_t own = own_size;
    status = translate(MPI_Allgather(&own, 1, MPI_UINT64_T, sizes, 1,
                                     MPI_UINT64_T, comm_of(transport)),
                       "MPI_Allgather", diag);
    for (int i = 0; status == ME_OK && i < size; i++) {
        blobs[i].size = (size_t)sizes[i];
        if (is_keeping) {
            blobs[i].bytes = me_alloc(blobs[i].size, 1, "transport.blob");
        }
        if (is_keeping && blobs[i].bytes == NULL) {
            status = me_fail(diag, ME_ERR_NOMEM,
                             "no host memory for a block of %zu bytes",
                             blobs[i].size);
        }
    }
    status = mpi_agree(transport, status, diag);
    if (status == ME_OK) {
        *blobs_out = blobs;
        blobs = NULL;
    }
out:
    me_blobs_free(blobs, size);
    me_free(sizes);
    return status;
}

/** How much of a block the message at @p offset carries. */
static int chunk_at(const me_transport *transport, size_t size, size_t offset)
{
    const size_t rest = size - offset;
    return (int)(rest < transport->chunk_bytes ? rest : transport->chunk_bytes);
}

static me_status send_blob(me_transport *transport, me_blob blob, me_diag *diag)
{
    me_status status = ME_OK;
    for (size_t at = 0; status == ME_OK && at < blob.size;) {
        const int bytes = chunk_at(transport, blob.size, at);
        status = translate(MPI_Send(blob.bytes + at, bytes, MPI_BYTE, 0,
                                    TAG_BLOB, comm_of(transport)),
                           "MPI_Send", diag);
        at += (size_t)bytes;
    }
    return status;
}

static me_status receive_blob(me_transport *transport, int from, me_blob blob,
                              me_diag *diag)
{
    me_status status = ME_OK;
    for (size_t at = 0; status == ME_OK && at < blob.size;) {
        const int bytes = chunk_at(transport, blob.size, at);
        status =
            translate(MPI_Recv(blob.bytes + at, bytes, MPI_BYTE, from, TAG_BLOB,
                               comm_of(transport), MPI_STATUS_IGNORE),
                      "MPI_Recv", diag);
        at += (size_t)bytes;
    }
    return status;
}

static me_status broadcast_blob(me_transport *transport, int root, me_blob blob,
                                me_diag *diag)
{
    me_status status = ME_OK;
    for (size_t at = 0; status == ME_OK && at < blob.size;) {
        const int bytes = chunk_at(transport, blob.size, at);
        status = translate(MPI_Bcast(blob.bytes + at, bytes, MPI_BYTE, root,
                                     comm_of(transport)),
                           "MPI_Bcast", diag);
        at += (size_t)bytes;
    }
    return status;
}

static void keep_own(me_blob *blob, me_blob own)
{
    if (own.size > 0) {
        memcpy(blob->bytes, own.bytes, own.size);
    }
}

static me_status mpi_gather(me_transport *transport, me_blob own, me_diag *diag,
                            me_blob **blobs_out)
{
    const bool is_root = transport->rank == 0;
    me_blob *blobs = NULL;
    me_status status =
        receive_sizes(transport, own.size, is_root, diag, &blobs);
    if (status != ME_OK || blobs == NULL) {
        return status;
    }
    if (is_root) {
        keep_own(&blobs[0], own);
        for (int i = 1; status == ME_OK && i < transport->size; i++) {
            status = receive_blob(transport, i, blobs[i], diag);
        }
    } else {
        status = send_blob(transport, own, diag);
    }
    status = mpi_agree(transport, status, diag);
    if (status == ME_OK && is_root) {
        *blobs_out = blobs;
        return ME_OK;
    }
    me_blobs_free(blobs, transport->size);
    return status;
}

static me_status mpi_all_gather(me_transport *transport, me_blob own,
                                me_diag *diag, me_blob **blobs_out)
{
    me_blob *blobs = NULL;
    me_status status = receive_sizes(transport, own.size, true, diag, &blobs);
    if (status != ME_OK || blobs == NULL) {
        return status;
    }
    keep_own(&blobs[transport->rank], own);
    for (int i = 0; status == ME_OK && i < transport->size; i++) {
        status = broadcast_blob(transport, i, blobs[i], diag);
    }
    status = mpi_agree(transport, status, diag);
    if (status != ME_OK) {
        me_blobs_free(blobs, transport->size);
        return status;
    }
    *blobs_out = blobs;
    return ME_OK;
}

static void mpi_abort(me_transport *transport, int exit_code)
{
    (void)MPI_Abort(comm_of(transport), exit_code);
}

static void mpi_destroy(me_transport *transport)
{
    mpi_transport *mpi = (mpi_transport *)transport;
    if (mpi->comm != MPI_COMM_NULL) {
        (void)MPI_Comm_free(&mpi->comm);
    }
    if (mpi->is_owner) {
        (void)MPI_Finalize();
    }
    me_free(mpi);
}

/** Errors return on a communicator of our own, whatever the job's does. */
static me_status open_communicator(mpi_transport *mpi, me_diag *diag)
{
    int code = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (code == MPI_SUCCESS) {
        code = MPI_Comm_dup(MPI_COMM_WORLD, &mpi->comm);
    }
    if (code == MPI_SUCCESS) {
        code = MPI_Comm_set_errhandler(mpi->comm, MPI_ERRORS_RETURN);
    }
    if (code == MPI_SUCCESS) {
        code = MPI_Comm_rank(mpi->comm, &mpi->base.rank);
    }
    if (code == MPI_SUCCESS) {
        code = MPI_Comm_size(mpi->comm, &mpi->base.size);
    }
    return translate(code, "MPI_Comm_dup", diag);
}

me_status me_transport_mpi_create(int *argc, char ***argv, me_diag *diag,
                                  me_transport **transport_out)
{
    static const me_transport_ops ops = {
        .agree = mpi_agree,
        .gather = mpi_gather,
        .all_gather = mpi_all_gather,
        .abort = mpi_abort,
        .destroy = mpi_destroy,
    };
    if (!me_launcher_is_present()) {
        const me_status local = me_transport_local_create(transport_out);
        return local == ME_OK
                   ? local
                   : me_fail(diag, local, "%s", me_status_text(local));
    }
    mpi_transport *mpi = me_alloc(1, sizeof *mpi, "transport");
    if (mpi == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for a transport");
    }
    mpi->base.ops = &ops;
    mpi->base.lost = me_alloc_lost();
    mpi->base.chunk_bytes = DEFAULT_CHUNK_BYTES;
    mpi->comm = MPI_COMM_NULL;
    int is_initialized = 0;
    (void)MPI_Initialized(&is_initialized);
    me_status status = ME_OK;
    if (!is_initialized) {
        int provided = 0; // threads that simulate call nothing of MPI
        status = translate(
            MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided),
            "MPI_Init_thread", diag);
        mpi->is_owner = status == ME_OK;
    }
    if (status == ME_OK) {
        status = open_communicator(mpi, diag);
    }
    if (status != ME_OK) {
        mpi_destroy(&mpi->base);
        return status;
    }
    *transport_out = &mpi->base;
    return ME_OK;
}
