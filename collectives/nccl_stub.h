/**
 * @file
 * NCCL's interface without NCCL: the same names, argument orders and types,
 * and the same refusals, but a call only leaves a record in the log that its
 * communicator was made from. Buffers are never read and may be NULL. Never
 * include it together with the real <nccl.h>.
 *
 * The symbols are hidden, so that a real libnccl that is loaded at run time
 * keeps its own. As in NCCL, group sections and the last error belong to the
 * calling thread. All functions are Local: nothing is exchanged before
 * me_collectives_check().
 *
 * Left out: ncclGetUniqueId, because an id is made by me_comm_unique_id(),
 * which knows the log and the members; memory registration; custom
 * reductions.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_COLLECTIVES_NCCL_STUB_H
#define MEMEST_COLLECTIVES_NCCL_STUB_H

#include <stddef.h>

enum {
    NCCL_UNIQUE_ID_BYTES = 128,
    NCCL_SPLIT_NOCOLOR = -1
};

typedef struct ncclComm *ncclComm_t;
typedef struct CUstream_st *cudaStream_t;

/** Opaque; made by me_comm_unique_id(). */
typedef struct {
    char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

/** Communicator options; they have no effect on what is recorded. */
typedef struct ncclConfig_v22800 ncclConfig_t;

typedef enum {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclSystemError = 2,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
    ncclInProgress = 7,
    ncclNumResults = 8
} ncclResult_t;

typedef enum {
    ncclSum = 0,
    ncclProd = 1,
    ncclMax = 2,
    ncclMin = 3,
    ncclAvg = 4,
    ncclNumOps = 5,
    ncclMaxRedOp = 0x7fffffff
} ncclRedOp_t;

typedef enum {
    ncclInt8 = 0,
    ncclChar = 0,
    ncclUint8 = 1,
    ncclInt32 = 2,
    ncclInt = 2,
    ncclUint32 = 3,
    ncclInt64 = 4,
    ncclUint64 = 5,
    ncclFloat16 = 6,
    ncclHalf = 6,
    ncclFloat32 = 7,
    ncclFloat = 7,
    ncclFloat64 = 8,
    ncclDouble = 8,
    ncclBfloat16 = 9,
    ncclFloat8e4m3 = 10,
    ncclFloat8e5m2 = 11,
    ncclNumTypes = 12
} ncclDataType_t;

/** The phrase for a result; static. */
const char *ncclGetErrorString(ncclResult_t result);

/**
 * What was wrong with the last call of this thread that failed, "" if none.
 *
 * @param comm  not looked at; may be NULL
 */
const char *ncclGetLastError(ncclComm_t comm);

/** NCCL_VERSION_CODE of the NCCL that these stubs stand for. */
ncclResult_t ncclGetVersion(int *version);

/**
 * Make a communicator from an id of me_comm_unique_id().
 *
 * @param comm    the communicator; it lives until its log is destroyed
 * @param nranks  must be the number of members that the id was made for
 * @param rank    this rank's index in the group
 */
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId commId,
                              int rank);

/** As ncclCommInitRank(). @param config  not looked at; may be NULL */
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks,
                                    ncclUniqueId commId, int rank,
                                    ncclConfig_t *config);

/**
 * Split a communicator. The members of the part come from the function given
 * to me_call_log_set_split(); without one the call is ncclInvalidUsage.
 *
 * @param color    NCCL_SPLIT_NOCOLOR: this rank gets none
 * @param newcomm  the part's communicator, or NULL
 */
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key,
                           ncclComm_t *newcomm, ncclConfig_t *config);

/** Finish with a communicator: later calls on it are refused. */
ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);

/** Always ncclSuccess: nothing runs in the background. */
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *asyncError);

/** The number of members; ncclCommUserRank(): this rank's index among them. */
ncclResult_t ncclCommCount(const ncclComm_t comm, int *count);
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank);

/**
 * Collectives. A call is recorded on @p comm and @p stream and gives
 * ncclSuccess; ncclInvalidArgument or ncclInvalidUsage as NCCL would. Counts are
 * elements as NCCL counts them: of the whole buffer for Reduce, Broadcast and
 * AllReduce, of what one member sends for AllGather, of what one member receives
 * for ReduceScatter, of what goes to one member for AlltoAll.
 */
ncclResult_t ncclReduce(const void *sendbuff, void *recvbuff, size_t count,
                        ncclDataType_t datatype, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream);
/** As ncclBroadcast(), in place. */
ncclResult_t ncclBcast(void *buff, size_t count, ncclDataType_t datatype,
                       int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count,
                           ncclDataType_t datatype, int root, ncclComm_t comm,
                           cudaStream_t stream);
ncclResult_t ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
                           ncclDataType_t datatype, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclReduceScatter(const void *sendbuff, void *recvbuff,
                               size_t recvcount, ncclDataType_t datatype,
                               ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream);
ncclResult_t ncclAllGather(const void *sendbuff, void *recvbuff,
                           size_t sendcount, ncclDataType_t datatype,
                           ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclAlltoAll(const void *sendbuff, void *recvbuff, size_t count,
                          ncclDataType_t datatype, ncclComm_t comm,
                          cudaStream_t stream);

/** Point to point; @p peer is an index in the group. */
ncclResult_t ncclSend(const void *sendbuff, size_t count,
                      ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream);
ncclResult_t ncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype,
                      int peer, ncclComm_t comm, cudaStream_t stream);

/**
 * Calls between the two progress together and complete together; sections
 * nest. ncclGroupEnd() returns the first failure of the section's calls.
 */
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);

#endif /* MEMEST_COLLECTIVES_NCCL_STUB_H */
