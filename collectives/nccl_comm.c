/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/call_log.h"
#include "collectives/call_log_impl.h"
#include "collectives/nccl_table.h"
#include "collectives/nccl_thread.h"

#include <string.h>

ME_NCCL_FUNCTION_LIST(ME_NCCL_CHECK_FUNCTION)
ME_NCCL_FUNCTION_LIST_2_28(ME_NCCL_CHECK_FUNCTION)
ME_NCCL_VALUE_LIST(ME_NCCL_CHECK_VALUE)

enum {
    NCCL_VERSION_CODE = 22809 /* the interface is that of 2.28.9 */
};

/** What memest puts into an ncclUniqueId. */
typedef struct ticket {
    char magic[8];
    me_call_log *log;
    me_comm_group group;
} ticket;

static const char ticket_magic[8] = "memest1";

_Static_assert(sizeof(ticket) <= NCCL_UNIQUE_ID_BYTES, "ticket fits an id");

void me_comm_unique_id(me_call_log *log, const me_comm_group *group,
                       ncclUniqueId *id_out)
{
    ticket own = {.log = log, .group = *group};
    memcpy(own.magic, ticket_magic, sizeof own.magic);
    memset(id_out, 0, sizeof *id_out);
    memcpy(id_out->internal, &own, sizeof own);
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId commId,
                              int rank)
{
    return ncclCommInitRankConfig(comm, nranks, commId, rank, NULL);
}

static ncclResult_t create(me_call_log *log, const me_comm_group *group,
                           int index, ncclComm_t *comm_out)
{
    me_diag diag = {0};
    switch (me_comm_create(log, group, index, &diag, comm_out)) {
    case ME_OK: return ncclSuccess;
    case ME_ERR_NOMEM: return me_nccl_fail(ncclSystemError, "%s", diag.text);
    case ME_ERR_CONFIG:
    case ME_ERR_SYNTAX:
    case ME_ERR_IO:
    case ME_ERR_OVERFLOW:
    case ME_ERR_CAPACITY:
    case ME_ERR_MISMATCH:
    case ME_ERR_UNSUPPORTED:
    case ME_ERR_MPI:
    case ME_ERR_INTERNAL:
    case ME_ERR_STOPPED: break;
    }
    return me_nccl_fail(ncclInvalidArgument, "%s", diag.text);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks,
                                    ncclUniqueId commId, int rank,
                                    ncclConfig_t *config)
{
    (void)config;
    if (comm == NULL) {
        return me_nccl_fail(ncclInvalidArgument,
                            "CommInitRank : comm argument is NULL");
    }
    *comm = NULL;
    ticket own = {0};
    memcpy(&own, commId.internal, sizeof own);
    if (memcmp(own.magic, ticket_magic, sizeof own.magic) != 0) {
        return me_nccl_fail(ncclInvalidArgument,
                            "CommInitRank : id not from me_comm_unique_id");
    }
    if (nranks != own.group.count || rank < 0 || rank >= nranks) {
        return me_nccl_fail(ncclInvalidArgument,
                            "Invalid rank requested : %d/%d", rank, nranks);
    }
    return create(own.log, &own.group, rank, comm);
}

static ncclResult_t check_comm(const char *call, const struct ncclComm *comm)
{
    if (comm == NULL) {
        return me_nccl_fail(ncclInvalidArgument, "%s : comm argument is NULL",
                            call);
    }
    if (comm->is_destroyed) {
        return me_nccl_fail(ncclInvalidArgument,
                            "%s : comm argument was destroyed", call);
    }
    return ncclSuccess;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key,
                           ncclComm_t *newcomm, ncclConfig_t *config)
{
    (void)config;
    const ncclResult_t result = check_comm("CommSplit", comm);
    if (result != ncclSuccess) {
        return result;
    }
    if (newcomm == NULL || color < NCCL_SPLIT_NOCOLOR) {
        return me_nccl_fail(ncclInvalidArgument,
                            "CommSplit : color must be greater or equal to "
                            "-1, got %d",
                            color);
    }
    *newcomm = NULL;
    me_call_log *log = comm->log;
    if (me_call_log_append(log, (me_call){.kind = ME_CALL_SPLIT,
                                          .comm = comm->id,
                                          .count = 1}) != ME_OK) {
        return me_nccl_fail(ncclSystemError, "CommSplit : no host memory");
    }
    if (color == NCCL_SPLIT_NOCOLOR) {
        return ncclSuccess;
    }
    me_comm_group part = {0};
    const int index =
        log->split == NULL
            ? -1
            : log->split(log->split_self, &comm->group, color, key, &part);
    if (index < 0) {
        return me_nccl_fail(ncclInvalidUsage,
                            "CommSplit : nobody knows the members of color %d",
                            color);
    }
    return create(log, &part, index, newcomm);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    return check_comm("CommFinalize", comm);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    if (comm == NULL) {
        return ncclSuccess; // as NCCL does
    }
    const ncclResult_t result = check_comm("CommDestroy", comm);
    comm->is_destroyed = true;
    return result;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    return ncclCommDestroy(comm);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *asyncError)
{
    const ncclResult_t result = check_comm("CommGetAsyncError", comm);
    if (result == ncclSuccess && asyncError != NULL) {
        *asyncError = ncclSuccess;
    }
    return result;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
    const ncclResult_t result = check_comm("CommCount", comm);
    if (result == ncclSuccess && count == NULL) {
        return me_nccl_fail(ncclInvalidArgument,
                            "CommCount : count argument is NULL");
    }
    if (result == ncclSuccess) {
        *count = comm->group.count;
    }
    return result;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
    const ncclResult_t result = check_comm("CommUserRank", comm);
    if (result == ncclSuccess && rank == NULL) {
        return me_nccl_fail(ncclInvalidArgument,
                            "CommUserRank : rank argument is NULL");
    }
    if (result == ncclSuccess) {
        *rank = comm->index;
    }
    return result;
}

ncclResult_t ncclGetVersion(int *version)
{
    if (version == NULL) {
        return me_nccl_fail(ncclInvalidArgument,
                            "GetVersion : version argument is NULL");
    }
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    switch (result) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError: return "unhandled cuda error";
    case ncclSystemError: return "unhandled system error";
    case ncclInternalError: return "internal error";
    case ncclInvalidArgument: return "invalid argument";
    case ncclInvalidUsage: return "invalid usage";
    case ncclRemoteError: return "remote process exited";
    case ncclInProgress: return "NCCL operation in progress";
    case ncclNumResults: break;
    }
    return "unknown result code";
}
