/**
 * @file
 * NCCL's interface as a table, from which the stubs' header and the real
 * <nccl.h> are both checked at compile time. Includes nothing: whoever uses
 * it has included one of the two before.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_COLLECTIVES_NCCL_TABLE_H
#define MEMEST_COLLECTIVES_NCCL_TABLE_H

/** X(function, type of a pointer to it). */
#define ME_NCCL_FUNCTION_LIST(X)                                               \
    X(ncclGetErrorString, const char *(*)(ncclResult_t))                       \
    X(ncclGetLastError, const char *(*)(ncclComm_t))                           \
    X(ncclGetVersion, ncclResult_t (*)(int *))                                 \
    X(ncclCommInitRank,                                                        \
      ncclResult_t (*)(ncclComm_t *, int, ncclUniqueId, int))                  \
    X(ncclCommInitRankConfig,                                                  \
      ncclResult_t (*)(ncclComm_t *, int, ncclUniqueId, int, ncclConfig_t *))  \
    X(ncclCommSplit,                                                           \
      ncclResult_t (*)(ncclComm_t, int, int, ncclComm_t *, ncclConfig_t *))    \
    X(ncclCommFinalize, ncclResult_t (*)(ncclComm_t))                          \
    X(ncclCommDestroy, ncclResult_t (*)(ncclComm_t))                           \
    X(ncclCommAbort, ncclResult_t (*)(ncclComm_t))                             \
    X(ncclCommGetAsyncError, ncclResult_t (*)(ncclComm_t, ncclResult_t *))     \
    X(ncclCommCount, ncclResult_t (*)(const ncclComm_t, int *))                \
    X(ncclCommUserRank, ncclResult_t (*)(const ncclComm_t, int *))             \
    X(ncclReduce,                                                              \
      ncclResult_t (*)(const void *, void *, size_t, ncclDataType_t,           \
                       ncclRedOp_t, int, ncclComm_t, cudaStream_t))            \
    X(ncclBcast, ncclResult_t (*)(void *, size_t, ncclDataType_t, int,         \
                                  ncclComm_t, cudaStream_t))                   \
    X(ncclBroadcast,                                                           \
      ncclResult_t (*)(const void *, void *, size_t, ncclDataType_t, int,      \
                       ncclComm_t, cudaStream_t))                              \
    X(ncclAllReduce,                                                           \
      ncclResult_t (*)(const void *, void *, size_t, ncclDataType_t,           \
                       ncclRedOp_t, ncclComm_t, cudaStream_t))                 \
    X(ncclReduceScatter,                                                       \
      ncclResult_t (*)(const void *, void *, size_t, ncclDataType_t,           \
                       ncclRedOp_t, ncclComm_t, cudaStream_t))                 \
    X(ncclAllGather,                                                           \
      ncclResult_t (*)(const void *, void *, size_t, ncclDataType_t,           \
                       ncclComm_t, cudaStream_t))                              \
    X(ncclSend, ncclResult_t (*)(const void *, size_t, ncclDataType_t, int,    \
                                 ncclComm_t, cudaStream_t))                    \
    X(ncclRecv, ncclResult_t (*)(void *, size_t, ncclDataType_t, int,          \
                                 ncclComm_t, cudaStream_t))                    \
    X(ncclGroupStart, ncclResult_t (*)(void))                                  \
    X(ncclGroupEnd, ncclResult_t (*)(void))

/** Functions that came with NCCL 2.28, listed in the same way. */
#define ME_NCCL_FUNCTION_LIST_2_28(X)                                          \
    X(ncclAlltoAll,                                                            \
      ncclResult_t (*)(const void *, void *, size_t, ncclDataType_t,           \
                       ncclComm_t, cudaStream_t))

/** X(constant, its value). */
#define ME_NCCL_VALUE_LIST(X)                                                  \
    X(ncclSuccess, 0)                                                          \
    X(ncclUnhandledCudaError, 1)                                               \
    X(ncclSystemError, 2)                                                      \
    X(ncclInternalError, 3)                                                    \
    X(ncclInvalidArgument, 4)                                                  \
    X(ncclInvalidUsage, 5)                                                     \
    X(ncclRemoteError, 6)                                                      \
    X(ncclInProgress, 7)                                                       \
    X(ncclSum, 0)                                                              \
    X(ncclProd, 1)                                                             \
    X(ncclMax, 2)                                                              \
    X(ncclMin, 3)                                                              \
    X(ncclAvg, 4)                                                              \
    X(ncclInt8, 0)                                                             \
    X(ncclUint8, 1)                                                            \
    X(ncclInt32, 2)                                                            \
    X(ncclUint32, 3)                                                           \
    X(ncclInt64, 4)                                                            \
    X(ncclUint64, 5)                                                           \
    X(ncclFloat16, 6)                                                          \
    X(ncclFloat32, 7)                                                          \
    X(ncclFloat64, 8)                                                          \
    X(ncclBfloat16, 9)                                                         \
    X(ncclFloat8e4m3, 10)                                                      \
    X(ncclFloat8e5m2, 11)                                                      \
    X(NCCL_UNIQUE_ID_BYTES, 128)                                               \
    X(NCCL_SPLIT_NOCOLOR, -1)

/** One compile-time check for each row. */
#define ME_NCCL_CHECK_FUNCTION(name, type)                                     \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&(name)),           \
                                                __typeof__((type)0)),          \
                   #name " has another signature");
#define ME_NCCL_CHECK_VALUE(name, value)                                       \
    _Static_assert((name) == (value), #name " has another value");

#endif /* MEMEST_COLLECTIVES_NCCL_TABLE_H */
