/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/rank_comms.h"

#include "base/alloc.h"
#include "collectives/call_log_impl.h"
#include "collectives/nccl_type.h"

struct me_rank_comms {
    me_call_log *log;
    int rank;
    me_comm_group_of group_of;
    const void *self;
    ncclComm_t comms[ME_GROUP_COUNT]; /* NULL: not made yet */
};

me_status me_rank_comms_create(me_call_log *log, int rank,
                               me_comm_group_of group_of, const void *self,
                               me_rank_comms **comms_out)
{
    me_rank_comms *comms = me_alloc(1, sizeof *comms, "rank_comms");
    if (comms == NULL) {
        return ME_ERR_NOMEM;
    }
    comms->log = log;
    comms->rank = rank;
    comms->group_of = group_of;
    comms->self = self;
    *comms_out = comms;
    return ME_OK;
}

void me_rank_comms_destroy(me_rank_comms *comms)
{
    me_free(comms);
}

static ncclResult_t call_stub(const me_rank_comms *comms, me_group_kind kind,
                              me_collective collective, ncclDataType_t type,
                              uint64_t count, int32_t peer)
{
    ncclComm_t comm = comms->comms[kind];
    cudaStream_t stream = NULL;
    const ncclRedOp_t op = ncclSum;
    switch (collective) {
    case ME_COLLECTIVE_ALL_REDUCE:
        return ncclAllReduce(NULL, NULL, count, type, op, comm, stream);
    case ME_COLLECTIVE_ALL_GATHER:
        return ncclAllGather(NULL, NULL, count, type, comm, stream);
    case ME_COLLECTIVE_REDUCE_SCATTER:
        return ncclReduceScatter(NULL, NULL, count, type, op, comm, stream);
    case ME_COLLECTIVE_BROADCAST:
        return ncclBroadcast(NULL, NULL, count, type, peer, comm, stream);
    case ME_COLLECTIVE_REDUCE:
        return ncclReduce(NULL, NULL, count, type, op, peer, comm, stream);
    case ME_COLLECTIVE_ALL_TO_ALL:
        return ncclAlltoAll(NULL, NULL, count, type, comm, stream);
    case ME_COLLECTIVE_SEND:
        return ncclSend(NULL, count, type, peer, comm, stream);
    case ME_COLLECTIVE_RECV:
        return ncclRecv(NULL, count, type, peer, comm, stream);
    case ME_COLLECTIVE_COUNT: break;
    }
    return ncclInvalidArgument;
}

/** The communicator of @p kind, made if need be. @param comm_out borrowed */
static me_status get_comm(me_rank_comms *comms, me_group_kind kind,
                          me_diag *diag, ncclComm_t *comm_out)
{
    if (comms->comms[kind] == NULL) {
        me_comm_group group = {0};
        const int index =
            comms->group_of(comms->self, comms->rank, kind, &group);
        if (index == ME_GROUP_HAS_NO_LIST) {
            return me_fail(diag, ME_ERR_NOMEM,
                           "no host memory for the %s group of rank %d",
                           me_group_kind_name(kind), comms->rank);
        }
        if (index < 0) {
            return me_fail(diag, ME_ERR_INTERNAL,
                           "rank %d has no %s group to call on", comms->rank,
                           me_group_kind_name(kind));
        }
        group.kind = kind;
        const me_status status = me_comm_create(comms->log, &group, index, diag,
                                                &comms->comms[kind]);
        if (status != ME_OK) {
            return status;
        }
    }
    *comm_out = comms->comms[kind];
    return ME_OK;
}

// NOLINTNEXTLINE(readability-function-size): it is the engine's callback
me_status me_rank_comms_call(void *self, me_group_kind kind,
                             me_collective collective, me_dtype dtype,
                             uint64_t count, int32_t peer, me_diag *diag)
{
    me_rank_comms *comms = self;
    ncclComm_t comm = NULL;
    const me_status status = get_comm(comms, kind, diag, &comm);
    if (status != ME_OK) {
        return status;
    }
    return me_nccl_status(
        call_stub(comms, kind, collective, me_nccl_type_of(dtype), count, peer),
        diag);
}

// NOLINTNEXTLINE(readability-function-size): it is the engine's callback
me_status me_rank_comms_exchange(void *self, me_group_kind kind, me_dtype dtype,
                                 uint64_t width, const uint64_t *sent,
                                 const uint64_t *received, me_diag *diag)
{
    me_rank_comms *comms = self;
    ncclComm_t comm = NULL;
    const me_status status = get_comm(comms, kind, diag, &comm);
    if (status != ME_OK) {
        return status;
    }
    const me_row_exchange rows = {
        .width = width, .sent = sent, .received = received};
    return me_nccl_status(me_nccl_exchange(comm, me_nccl_type_of(dtype), &rows),
                          diag);
}

me_status me_rank_comms_group_call(void *self, bool begin, me_diag *diag)
{
    (void)self;
    return me_nccl_status(begin ? ncclGroupStart() : ncclGroupEnd(), diag);
}

uint64_t me_rank_comms_position(void *self)
{
    const me_rank_comms *comms = self;
    return me_call_log_count(comms->log);
}

me_status me_rank_comms_repeat(void *self, uint64_t begin, uint64_t end)
{
    const me_rank_comms *comms = self;
    return me_call_log_repeat(comms->log, begin, end);
}
