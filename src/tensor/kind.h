/**
 * @file
 * What a tensor is beyond a plain one: a DTensor, of which this rank has a part,
 * and what else wraps data with more that belongs to it.
 *
 * A kind is a value. Its struct begins with a me_kind and holds what that kind
 * alone knows; tensors point to it and plain ones to none, so that operations
 * that know nothing of kinds hand on one pointer. The engine keeps each value
 * once (me_kind_intern()). A parameter's kind begins with that of its tensor.
 *
 * Another kind is an enumerator, a struct and the functions that make it, in the
 * folder of who makes it, as nn/torch/dtensor.h is. One that owns tensors, as a
 * quantised tensor owns its scale and a column-wise copy, is no value that is
 * shared: whoever makes it holds one for each tensor, and releases what it owns
 * with that.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TENSOR_KIND_H
#define MEMEST_TENSOR_KIND_H

#include "tensor/engine.h"

typedef enum me_kind_name {
    ME_KIND_DTENSOR,
    ME_KIND_QUANTIZED
} me_kind_name;

/** The beginning of all kinds: what autograd and operations ask. */
struct me_kind {
    me_kind_name name;
    bool
        is_distributed; /**< gradients are never summed in place, and may be cut
                              otherwise than what they are of */
};

/** Are the gradients of @p x those of a distributed tensor? */
static inline bool me_is_distributed(const me_tensor *x)
{
    return x->kind != NULL && x->kind->is_distributed;
}

/**
 * The engine's own copy of a kind.
 *
 * @param kind  of @p size bytes, cleared before it was filled: all of them are
 *              compared
 * @return lives as long as the engine; NULL, which has failed, without memory
 */
const me_kind *me_kind_intern(me_engine *e, const me_kind *kind, size_t size);

#endif /* MEMEST_TENSOR_KIND_H */
