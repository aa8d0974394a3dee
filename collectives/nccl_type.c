/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/nccl_type.h"

#include "base/assert.h"

#include <stdbool.h>

/** A type's name and size, by NCCL's number. */
static const struct {
    const char *name;
    uint64_t bytes;
} types[] = {

#define TYPE_ROW(constant, name, bytes) [constant] = {name, bytes},
    ME_NCCL_TYPE_LIST(TYPE_ROW)
#undef TYPE_ROW
};

static bool is_type(ncclDataType_t type)
{
    return (size_t)type < sizeof types / sizeof types[0];
}

uint64_t me_nccl_type_bytes(ncclDataType_t type)
{
    return is_type(type) ? types[type].bytes : 0;
}

const char *me_nccl_type_name(ncclDataType_t type)
{
    return is_type(type) ? types[type].name : "unknown type";
}

const char *me_nccl_op_name(ncclRedOp_t op)
{
    switch (op) {
    case ncclSum: return "sum";
    case ncclProd: return "product";
    case ncclMax: return "max";
    case ncclMin: return "min";
    case ncclAvg: return "avg";
    case ncclNumOps:
    case ncclMaxRedOp: break;
    }
    return "unknown reduction";
}

ncclDataType_t me_nccl_type_of(me_dtype dtype)
{
    switch (dtype) {
    case ME_DTYPE_FLOAT32: return ncclFloat32;
    case ME_DTYPE_FLOAT64: return ncclFloat64;
    case ME_DTYPE_FLOAT16: return ncclFloat16;
    case ME_DTYPE_BFLOAT16: return ncclBfloat16;
    case ME_DTYPE_INT64: return ncclInt64;
    case ME_DTYPE_INT32: return ncclInt32;
    case ME_DTYPE_UINT8:
    case ME_DTYPE_BOOL: return ncclUint8;
    case ME_DTYPE_COUNT: break;
    }
    ME_ASSERT(false);
    return ncclUint8;
}
