/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/moe_utils.h"

#include "ops/elementwise.h"
#include "ops/index.h"
#include "ops/sort.h"
#include "ops/view.h"
#include "tensor/launch.h"

/** `x.T.contiguous().view(-1)`: one name. */
static me_tensor *transposed_flat(me_engine *e, me_tensor *x)
{
    const me_frame frame = me_enter(e);
    me_tensor *t = me_contiguous(e, me_transpose(e, x, 0, 1));
    return me_leave(e, frame, me_view(e, t, ME_SHAPE(me_numel(t))));
}

me_permuted me_permute_tokens(me_engine *e, me_tensor *tokens, me_tensor *map,
                              me_tensor *probs, uint64_t rows)
{
    const me_frame frame = me_enter(e);
    me_permuted p = {.probs = NULL};
    me_tensor *flags = transposed_flat(e, map); // (E·T)
    me_tensor *positions = me_argsort(e, flags);
    me_tensor *first = me_alias(e, positions, ME_SHAPE(rows), (uint64_t[]){1});
    me_drop(e, positions);
    p.row_numbers = me_empty(e, "remainder", ME_DTYPE_INT64, ME_SHAPE(rows));
    if (probs != NULL) {
        me_tensor *flat = transposed_flat(e, probs); // (E·T)
        p.probs = me_index(e, flat, first);          // (rows)
        me_drop(e, flat);
    }
    p.tokens = me_index_select(e, tokens, p.row_numbers); // (rows, h)
    me_leave_with(e, frame, 3,
                  (me_tensor *[]){p.tokens, p.probs, p.row_numbers});
    return p;
}

me_tensor *me_unpermute(me_engine *e, me_tensor *rows, me_tensor *row_numbers,
                        uint64_t n_tokens)
{
    if (!me_is_deterministic(e)) {
        return me_scatter_add_rows(e, rows, row_numbers, n_tokens);
    }
    const me_shape shape = ME_SHAPE(n_tokens, me_dim(rows, -1));
    const me_dtype dtype = (me_dtype)rows->dtype;
    me_tensor *unused = me_empty(e, "zeros", dtype, shape); // of either way
    me_tensor *tokens = me_empty(e, "zeros", dtype, shape);
    me_launch_kernel(e, ME_KERNEL_INDEX, 0, 2 * me_bytes(tokens));
    me_drop(e, unused);
    return me_index_add_rows(e, tokens, row_numbers, rows);
}

void me_pad_routing_map(me_engine *e, const me_tensor *map)
{
    const me_frame frame = me_enter(e);
    me_tensor *counts = me_count_flags(e, map); // (E)
    me_tensor *negative = me_pointwise(e, "neg", counts, ME_DTYPE_INT64);
    me_pointwise(e, "remainder", counts, ME_DTYPE_INT64);
    me_drop(e, negative);
    me_tensor *zeros = me_pointwise(e, "eq", map, ME_DTYPE_BOOL); // (T, E)
    me_tensor *numbers = me_pointwise(e, "to", zeros, ME_DTYPE_INT32);
    me_tensor *ranks = me_pointwise(e, "cumsum", zeros, ME_DTYPE_INT64);
    me_tensor *source = me_pointwise(e, "contiguous", ranks, ME_DTYPE_INT64);
    me_tensor *sums = me_pointwise(e, "scan", ranks, ME_DTYPE_INT64);
    me_drop(e, sums);
    me_drop(e, source);
    me_drop(e, numbers);
    me_pointwise(e, "le", ranks, ME_DTYPE_BOOL);
    me_leave(e, frame, NULL);
}
