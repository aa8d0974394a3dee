/**
 * @file
 * Element types of tensors.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_MODEL_DTYPE_H
#define MEMEST_MODEL_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** X(constant, PyTorch's name, bytes of one element, is it floating point). */
#define ME_DTYPE_LIST(X)                                                       \
    X(ME_DTYPE_FLOAT32, "float32", 4, true)                                    \
    X(ME_DTYPE_FLOAT64, "float64", 8, true)                                    \
    X(ME_DTYPE_FLOAT16, "float16", 2, true)                                    \
    X(ME_DTYPE_BFLOAT16, "bfloat16", 2, true)                                  \
    X(ME_DTYPE_INT64, "int64", 8, false)                                       \
    X(ME_DTYPE_INT32, "int32", 4, false)                                       \
    X(ME_DTYPE_UINT8, "uint8", 1, false)                                       \
    X(ME_DTYPE_BOOL, "bool", 1, false)

typedef enum me_dtype {
#define ME_DTYPE_ENUM(constant, name, bytes, is_floating) constant,
    ME_DTYPE_LIST(ME_DTYPE_ENUM)
#undef ME_DTYPE_ENUM
    ME_DTYPE_COUNT
} me_dtype;

/** Bytes of one element. */
uint64_t me_dtype_bytes(me_dtype dtype);

/** A floating-point type? */
bool me_dtype_is_floating(me_dtype dtype);

/** torch.promote_types() of floating-point types: neither of two of 16 bits
 *  holds the other. Of others, and of one that is none, the first. */
me_dtype me_dtype_promote(me_dtype a, me_dtype b);

/** PyTorch's name of the type; static. */
const char *me_dtype_name(me_dtype dtype);

#ifdef __cplusplus
}
#endif

#endif /* MEMEST_MODEL_DTYPE_H */
