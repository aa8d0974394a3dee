/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/backend.h"
#include "ops/layer_norm.h"
#include "ops/te_fused_attention.h"

/* LocalSpecProvider (core/models/backends.py): Megatron-LM's own layers and
 * PyTorch's norms, but the decoder's last (me_final_norm_backend_of()). A fused
 * rotary embedding is Transformer Engine's there too (rope_utils.py). */

static me_tensor *column_parallel_linear(me_nn *nn, const me_linear *linear,
                                         me_tensor *x)
{
    return me_column_linear(nn, linear, x, NULL);
}

/** WrappedTorchNorm. */
static me_tensor *layer_norm(me_nn *nn, const me_norm *norm, me_tensor *x)
{
    return norm->bias == NULL ? me_rms_norm(nn->e, x, norm->weight->tensor)
                              : me_layer_norm(nn->e, x, norm->weight->tensor,
                                              norm->bias->tensor);
}

const me_backend me_local_backend = {
    .makes_norms_on_host = true,
    .column_parallel_linear = column_parallel_linear,
    .row_parallel_linear = me_row_linear,
    .layer_norm = layer_norm,
    .fused_rope = me_te_rope,
};
