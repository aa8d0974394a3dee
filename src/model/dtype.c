/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/dtype.h"

#include "base/assert.h"

uint64_t me_dtype_bytes(me_dtype dtype)
{
    switch (dtype) {
#define BYTES_CASE(constant, name, bytes, is_floating)                         \
    case constant: return bytes;
        // NOLINTNEXTLINE(bugprone-branch-clone): some types share a size
        ME_DTYPE_LIST(BYTES_CASE)
#undef BYTES_CASE
    case ME_DTYPE_COUNT: break;
    }
    ME_ASSERT(false);
    return 0;
}

bool me_dtype_is_floating(me_dtype dtype)
{
    switch (dtype) {
#define FLOATING_CASE(constant, name, bytes, is_floating)                      \
    case constant: return is_floating;
        // NOLINTNEXTLINE(bugprone-branch-clone): most types are alike
        ME_DTYPE_LIST(FLOATING_CASE)
#undef FLOATING_CASE
    case ME_DTYPE_COUNT: break;
    }
    ME_ASSERT(false);
    return false;
}

me_dtype me_dtype_promote(me_dtype a, me_dtype b)
{
    if (a == b || !me_dtype_is_floating(b)) {
        return a;
    }
    if (!me_dtype_is_floating(a)) {
        return b;
    }
    return a == ME_DTYPE_FLOAT64 || b == ME_DTYPE_FLOAT64 ? ME_DTYPE_FLOAT64
                                                          : ME_DTYPE_FLOAT32;
}

const char *me_dtype_name(me_dtype dtype)
{
    switch (dtype) {
#define NAME_CASE(constant, name, bytes, is_floating)                          \
    case constant: return name;
        ME_DTYPE_LIST(NAME_CASE)
#undef NAME_CASE
    case ME_DTYPE_COUNT: break;
    }
    ME_ASSERT(false);
    return "?";
}
