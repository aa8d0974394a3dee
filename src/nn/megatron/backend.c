/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/backend.h"

static const me_backend *const backends[] = {
    [ME_TRANSFORMER_LOCAL] = &me_local_backend,
    [ME_TRANSFORMER_ENGINE] = &me_te_backend,
};

const me_backend *me_backend_of(const me_nn *nn)
{
    return backends[nn->config->impl.transformer];
}

bool me_norms_are_fused(const me_nn *nn)
{
    return me_backend_of(nn)->fuse_layernorm_and_linear &&
           nn->config->model.norm_placement != ME_NORMS_POST;
}

me_tensor *me_column_parallel(me_nn *nn, const me_linear *linear, me_tensor *x)
{
    const me_backend *backend = me_backend_of(nn);
    return linear->norm_weight == NULL
               ? backend->column_parallel_linear(nn, linear, x)
               : backend->column_parallel_layer_norm_linear(nn, linear, x);
}

me_tensor *me_row_parallel(me_nn *nn, const me_linear *linear, me_tensor *x)
{
    return me_backend_of(nn)->row_parallel_linear(nn, linear, x);
}
