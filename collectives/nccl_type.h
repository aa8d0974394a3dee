/**
 * @file
 * NCCL's element types and reductions: names, sizes, and which one PyTorch
 * uses for a tensor's type.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_COLLECTIVES_NCCL_TYPE_H
#define MEMEST_COLLECTIVES_NCCL_TYPE_H

#include "collectives/nccl_stub.h"
#include "model/dtype.h"

#include <stdint.h>

/** X(NCCL's constant, PyTorch's name, bytes of one element). */
#define ME_NCCL_TYPE_LIST(X)                                                   \
    X(ncclInt8, "int8", 1)                                                     \
    X(ncclUint8, "uint8", 1)                                                   \
    X(ncclInt32, "int32", 4)                                                   \
    X(ncclUint32, "uint32", 4)                                                 \
    X(ncclInt64, "int64", 8)                                                   \
    X(ncclUint64, "uint64", 8)                                                 \
    X(ncclFloat16, "float16", 2)                                               \
    X(ncclFloat32, "float32", 4)                                               \
    X(ncclFloat64, "float64", 8)                                               \
    X(ncclBfloat16, "bfloat16", 2)                                             \
    X(ncclFloat8e4m3, "float8_e4m3fn", 1)                                      \
    X(ncclFloat8e5m2, "float8_e5m2", 1)

/** Bytes of one element; 0 for what is no type. Local. */
uint64_t me_nccl_type_bytes(ncclDataType_t type);

/** PyTorch's name of the type; static. Local. */
const char *me_nccl_type_name(ncclDataType_t type);

/** PyTorch's name of the reduction; static. Local. */
const char *me_nccl_op_name(ncclRedOp_t op);

/**
 * What ProcessGroupNCCL sends a tensor of type @p dtype as: the type of the
 * same name, and bool as uint8. Local.
 */
ncclDataType_t me_nccl_type_of(me_dtype dtype);

#endif /* MEMEST_COLLECTIVES_NCCL_TYPE_H */
