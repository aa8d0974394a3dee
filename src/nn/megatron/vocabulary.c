// SPDX-License-Identifier: BSD-3-Clause
#include "nn/megatron/vocabulary.h"

#include "ops/elementwise.h"

me_tensor *me_mask_other_vocabulary(me_engine *e, const me_tensor *ids,
                                    me_tensor **masked_out)
{
    me_tensor *below = me_pointwise(e, "lt", ids, ME_DTYPE_BOOL);
    me_tensor *above = me_pointwise(e, "ge", ids, ME_DTYPE_BOOL);
    me_tensor *mask = me_pointwise(e, "or", below, ME_DTYPE_BOOL);
    me_drop(e, below);
    me_drop(e, above);
    me_tensor *copy = me_clone_detached(e, ids);
    *masked_out = me_pointwise(e, "sub", copy, ME_DTYPE_INT64);
    me_drop(e, copy);
    return mask;
}
