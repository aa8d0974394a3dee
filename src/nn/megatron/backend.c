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

/** transformer_block.py has one norm for a decoder that is given as one layer
 *  (LayerNormImpl); get_gpt_decoder_block_spec(), which jobs with experts take,
 *  that of the layers (LNImpl). */
const me_backend *me_final_norm_backend_of(const me_nn *nn)
{
    const me_config *config = nn->config;
    return config->impl.importable == ME_IMPORTABLE_TE &&
                   config->moe.num_experts == 0
               ? &me_te_backend
               : me_backend_of(nn);
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
