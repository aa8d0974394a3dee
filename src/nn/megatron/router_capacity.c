/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/router_parts.h"
#include "ops/elementwise.h"
#include "ops/index.h"
#include "parallel/expert_rows.h"

/** The flags of those tokens that an expert takes: (T, E). Its other names come
 *  behind it. */
static me_tensor *capacity_mask(const me_router *router, me_tensor *probs,
                                const me_tensor *map, uint64_t capacity)
{
    me_engine *e = router->nn->e;
    const bool is_by_probs =
        router->nn->config->moe.drop_policy == ME_DROP_PROBS;
    if (capacity > me_dim(probs, 0)) {
        me_tensor *ones =
            me_pointwise(e, "ones_like", probs, (me_dtype)probs->dtype);
        me_tensor *mask = me_pointwise(e, "bool", ones, ME_DTYPE_BOOL);
        me_drop(e, ones);
        return mask;
    }
    me_tensor *by =
        is_by_probs ? probs : me_pointwise(e, "int", map, ME_DTYPE_INT32);
    me_tensor *indices = NULL;
    me_tensor *values = me_topk_rows(e, by, capacity, &indices); // (C, E)
    if (!is_by_probs) {
        me_drop(e, by);
    }
    me_tensor *mask = me_scatter_flags_as(e, probs);
    me_name_last(e, values);
    me_name_last(e, indices);
    return mask;
}

me_tensor *me_router_drop_tokens(const me_router *router, me_tensor *probs,
                                 me_tensor **map)
{
    me_engine *e = router->nn->e;
    const me_config *config = router->nn->config;
    const me_frame frame = me_enter(e);
    const uint64_t capacity = me_expert_capacity(config, me_dim(probs, 0));
    me_tensor *mask = capacity_mask(router, probs, *map, capacity);
    me_tensor *kept = mask;
    if (!config->moe.pad_to_capacity) {
        kept = me_pointwise(e, "logical_and", *map, ME_DTYPE_BOOL);
        me_fill_resized(e, 1);
    }
    me_tensor *weights = me_mul(e, probs, kept); // (T, E)
    me_leave_with(e, frame, 2, (me_tensor *[]){weights, kept});
    *map = kept;
    return weights;
}
