/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/nccl_stub.h"

#include "base/size.h"
#include "collectives/call_log_impl.h"
#include "collectives/nccl_thread.h"
#include "collectives/nccl_type.h"

/** A call as its caller states it. */
typedef struct request {
    me_call_kind kind;
    size_t count;
    ncclDataType_t dtype;
    ncclRedOp_t op;
    int peer; /* root, or index of the other side; 0 where there is none */
    ncclComm_t comm;
    cudaStream_t stream;
} request;

/** "AllReduce": the name as NCCL's own messages write it. */
static const char *short_name(const request *r)
{
    return me_call_kind_name(r->kind) + sizeof "nccl" - 1;
}

/** The refusals of NCCL's ArgsCheck, in its order and its words. */
static ncclResult_t check_arguments(const request *r)
{
    const char *name = short_name(r);
    if (r->comm == NULL || r->comm->is_destroyed) {
        return me_nccl_fail(ncclInvalidArgument, "%s : comm argument is %s",
                            name, r->comm == NULL ? "NULL" : "destroyed");
    }
    const int size = r->comm->group.count;
    if (r->peer < 0 || r->peer >= size) {
        return me_nccl_fail(ncclInvalidArgument,
                            "%s : invalid root %d (root should be in the "
                            "0..%d range)",
                            name, r->peer, size);
    }
    if (me_nccl_type_bytes(r->dtype) == 0) {
        return me_nccl_fail(ncclInvalidArgument, "%s : invalid type %d", name,
                            (int)r->dtype);
    }
    if ((unsigned)r->op >= ncclNumOps) {
        return me_nccl_fail(ncclInvalidArgument,
                            "%s : invalid reduction operation %d", name,
                            (int)r->op);
    }
    return ncclSuccess;
}

/** Which section of its log a call belongs to; 0: none. */
static uint32_t open_section(me_call_log *log)
{
    const uint64_t section = me_nccl_section();
    if (section != 0 && log->seen_section != section) {
        log->seen_section = section;
        log->n_groups++;
    }
    return section == 0 ? 0 : log->n_groups;
}

/** NCCL refuses calls to oneself that nothing in the section answers. */
static ncclResult_t count_self(const request *r)
{
    ncclComm_t comm = r->comm;
    const bool is_grouped = me_nccl_section() != 0;
    if (is_grouped) {
        me_nccl_section_touch(comm);
    }
    comm->self_sends += r->kind == ME_CALL_SEND;
    comm->self_recvs += r->kind == ME_CALL_RECV;
    return is_grouped ? ncclSuccess : me_nccl_settle_self(comm);
}

static ncclResult_t submit(request r)
{
    ncclResult_t result = check_arguments(&r);
    if (result != ncclSuccess) {
        return result;
    }
    me_call_log *log = r.comm->log;
    const int size = r.comm->group.count;
    me_call call = {.kind = (uint8_t)r.kind,
                    .dtype = (uint8_t)r.dtype,
                    .op = (uint8_t)r.op,
                    .comm = r.comm->id,
                    .count = r.count,
                    .peer = r.peer};
    if (!me_size_is_valid(me_call_sent_bytes(&call, size))) {
        return me_nccl_fail(ncclInvalidArgument,
                            "%s : %zu elements exceed 64 bits of bytes",
                            short_name(&r), r.count);
    }
    if (me_call_is_p2p(&call)) {
        call.peer = (int)(((int64_t)r.peer - r.comm->index + size) % size);
        result = call.peer == 0 ? count_self(&r) : ncclSuccess;
    }
    if (result != ncclSuccess) {
        return result;
    }
    call.stream = (uint8_t)me_call_log_stream(log, r.stream);
    call.group = open_section(log);
    if (me_call_log_append(log, call) != ME_OK) {
        return me_nccl_fail(ncclSystemError, "%s : cannot record the call: %s",
                            short_name(&r), me_status_text(log->status));
    }
    return ncclSuccess;
}

ncclResult_t me_nccl_exchange(ncclComm_t comm, ncclDataType_t type,
                              const me_row_exchange *rows)
{
    const request r = {
        .kind = ME_CALL_SEND, .dtype = type, .op = ncclSum, .comm = comm};
    const ncclResult_t result = check_arguments(&r);
    if (result != ncclSuccess) {
        return result;
    }
    me_call_log *log = comm->log;
    bool is_empty = true;
    for (int i = 0; i < comm->group.count; i++) {
        is_empty = is_empty &&
                   (i == comm->index || rows->sent[i] + rows->received[i] == 0);
    }
    if (is_empty) {
        return ncclSuccess;
    }
    const me_call like = {.dtype = (uint8_t)type,
                          .comm = comm->id,
                          .stream = (uint8_t)me_call_log_stream(log, NULL),
                          .group = open_section(log)};
    if (me_call_log_append_exchange(log, like, rows) != ME_OK) {
        return me_nccl_fail(ncclSystemError, "%s : cannot record the call: %s",
                            short_name(&r), me_status_text(log->status));
    }
    return ncclSuccess;
}

me_status me_nccl_status(ncclResult_t result, me_diag *diag)
{
    if (result == ncclSuccess) {
        return ME_OK;
    }
    return me_fail(
        diag, result == ncclSystemError ? ME_ERR_NOMEM : ME_ERR_INTERNAL,
        "NCCL: %s: %s", ncclGetErrorString(result), ncclGetLastError(NULL));
}

// NOLINTNEXTLINE(readability-function-size): the parameters are NCCL's
ncclResult_t ncclReduce(const void *sendbuff, void *recvbuff, size_t count,
                        ncclDataType_t datatype, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream)
{
    (void)sendbuff;
    (void)recvbuff;
    return submit(
        (request){ME_CALL_REDUCE, count, datatype, op, root, comm, stream});
}

ncclResult_t ncclBcast(void *buff, size_t count, ncclDataType_t datatype,
                       int root, ncclComm_t comm, cudaStream_t stream)
{
    return ncclBroadcast(buff, buff, count, datatype, root, comm, stream);
}

// NOLINTNEXTLINE(readability-function-size): the parameters are NCCL's
ncclResult_t ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count,
                           ncclDataType_t datatype, int root, ncclComm_t comm,
                           cudaStream_t stream)
{
    (void)sendbuff;
    (void)recvbuff;
    return submit((request){ME_CALL_BROADCAST, count, datatype, ncclSum, root,
                            comm, stream});
}

// NOLINTNEXTLINE(readability-function-size): the parameters are NCCL's
ncclResult_t ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
                           ncclDataType_t datatype, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream)
{
    (void)sendbuff;
    (void)recvbuff;
    return submit(
        (request){ME_CALL_ALL_REDUCE, count, datatype, op, 0, comm, stream});
}

// NOLINTNEXTLINE(readability-function-size): the parameters are NCCL's
ncclResult_t ncclReduceScatter(const void *sendbuff, void *recvbuff,
                               size_t recvcount, ncclDataType_t datatype,
                               ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream)
{
    (void)sendbuff;
    (void)recvbuff;
    return submit((request){ME_CALL_REDUCE_SCATTER, recvcount, datatype, op, 0,
                            comm, stream});
}

ncclResult_t ncclAllGather(const void *sendbuff, void *recvbuff,
                           size_t sendcount, ncclDataType_t datatype,
                           ncclComm_t comm, cudaStream_t stream)
{
    (void)sendbuff;
    (void)recvbuff;
    return submit((request){ME_CALL_ALL_GATHER, sendcount, datatype, ncclSum, 0,
                            comm, stream});
}

ncclResult_t ncclAlltoAll(const void *sendbuff, void *recvbuff, size_t count,
                          ncclDataType_t datatype, ncclComm_t comm,
                          cudaStream_t stream)
{
    (void)sendbuff;
    (void)recvbuff;
    return submit((request){ME_CALL_ALL_TO_ALL, count, datatype, ncclSum, 0,
                            comm, stream});
}

ncclResult_t ncclSend(const void *sendbuff, size_t count,
                      ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    (void)sendbuff;
    return submit(
        (request){ME_CALL_SEND, count, datatype, ncclSum, peer, comm, stream});
}

ncclResult_t ncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype,
                      int peer, ncclComm_t comm, cudaStream_t stream)
{
    (void)recvbuff;
    return submit(
        (request){ME_CALL_RECV, count, datatype, ncclSum, peer, comm, stream});
}
